//! Decision logs, played again: what is read, and how it is told.

#[cfg(test)]
mod tests;
mod told;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api::intent::ObjectKey;
use api::time::Time;
use driver::log::{Asked, Moment, Problem, Replay, Segment, Tokens};

use crate::console;
use crate::scheduler_conf;
use crate::start::{Format, ReplayRequest};
use crate::{EXIT_BAD_INPUT, EXIT_COMPLETE, EXIT_FAILED};
use told::{Found, Told};

/// How a segment's name ends in a directory.
const SUFFIX: &str = ".decisions";
/// A longer file is no segment of ours.
const SEGMENT_BYTES_MAX: u64 = 2 << 30;
/// Plays what is named and gives the exit code; `here` is what a plane of this binary decides by.
pub fn replay(request: &ReplayRequest, here: &driver::Settings) -> u8 {
    match replay_all(request, here) {
        Ok(true) => EXIT_COMPLETE,
        Ok(false) => EXIT_FAILED,
        Err(error) => {
            console::complain(&format!("error: {error:#}"));
            EXIT_BAD_INPUT
        }
    }
}

/// Whether all segments came to the same.
fn replay_all(request: &ReplayRequest, here: &driver::Settings) -> anyhow::Result<bool> {
    let paths = segments(&request.path)?;
    let configuration = match &request.settings {
        Some(path) => Some(scheduler_conf::load(path)?.conf.placement),
        None => None,
    };
    let mut is_equal = true;
    for path in &paths {
        let begun = Begun {
            path,
            request,
            configuration: configuration.as_ref(),
            here,
        };
        is_equal &= begun.play().with_context(|| path.display().to_string())?;
    }
    Ok(is_equal)
}

fn segments(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = path.display();
    let about = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {shown}"))? {
        let path = entry
            .with_context(|| format!("cannot read {shown}"))?
            .path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.ends_with(SUFFIX)) {
            all.push(path);
        }
    }
    if all.is_empty() {
        bail!("{shown} holds no decision log (no file ends with {SUFFIX})");
    }
    all.sort();
    Ok(all)
}

/// The key beside a segment, if it is there.
fn tokens(segment: &Path) -> anyhow::Result<Tokens> {
    let path = segment.with_file_name("key");
    let key = match fs::read(&path) {
        Ok(key) => key,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Tokens::blank()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let key = <[u8; 16]>::try_from(key.as_slice());
    let key = key.with_context(|| format!("{} is no key: 16 bytes are wanted", path.display()))?;
    Ok(Tokens::keyed(key))
}

/// One segment, and what is asked about it.
struct Begun<'a> {
    path: &'a Path,
    request: &'a ReplayRequest,
    configuration: Option<&'a engine::Placement>,
    here: &'a driver::Settings,
}

impl Begun<'_> {
    /// Plays it, tells what was found, and says whether it came to the same.
    fn play(&self) -> anyhow::Result<bool> {
        let length = fs::metadata(self.path).map(|about| about.len())?;
        if length > SEGMENT_BYTES_MAX {
            bail!("{length} bytes are too many for a decision log");
        }
        let bytes = fs::read(self.path)?;
        let is_one_of_many = self.path != self.request.path;
        if is_one_of_many && Segment::read(&bytes).err() == Some(Problem::Empty) {
            // A plane that ends at this very moment leaves such a file; nothing was decided in it.
            let note = format!("{}: {}", self.path.display(), Problem::Empty);
            console::complain(&note);
            return Ok(true);
        }
        let told = self.told(&bytes, tokens(self.path)?)?;
        match self.request.format {
            Format::Text => told.lines().iter().for_each(|line| console::say(line)),
            Format::Json => console::say(&told.json().to_string()),
        }
        Ok(told.summary.difference.is_none())
    }

    fn told(&self, bytes: &[u8], tokens: Tokens) -> anyhow::Result<Told> {
        let segment = Segment::read(bytes)?;
        let differs = segment.header.differs_from(self.here);
        let mut replay = match Replay::new(&segment, tokens) {
            Ok(replay) => replay,
            Err(problem @ Problem::Settings { .. }) => {
                let all: Vec<String> = differs.iter().map(ToString::to_string).collect();
                bail!(
                    "{problem}; they differ from this katmai's in {}",
                    all.join("; ")
                )
            }
            Err(problem) => return Err(problem.into()),
        };
        if let Some(key) = &self.request.explain {
            replay = replay.explaining(key.clone());
        }
        let mut other_settings = None;
        if let Some(configuration) = self.configuration {
            let wrong = |what| anyhow::anyhow!("the other settings: {what}");
            let others = segment.header.differs_from_configuration(configuration);
            replay = replay.asking(configuration.clone()).map_err(wrong)?;
            other_settings = Some(others);
        }
        let is_keyed = replay.is_keyed();
        let mut found = Found::default();
        let mut version = String::new();
        let summary = replay.run(self.request.until, &mut |moment| {
            found.otherwise.extend(moment.otherwise.iter().cloned());
            if let Some(key) = &self.request.explain {
                explain(key, moment, &mut version, &mut found.explained);
            }
        })?;
        Ok(Told {
            path: self.path.to_owned(),
            header: segment.header,
            torn: segment.torn,
            is_keyed,
            differs,
            other_settings,
            summary,
            found,
        })
    }
}

/// What a moment says about an object.
fn explain(
    key: &ObjectKey,
    moment: &Moment<'_>,
    version: &mut String,
    explained: &mut Vec<(Time, String)>,
) {
    let held = moment.driver.mirror().object(key);
    let now = held.map_or("", |held| &held.meta().resource_version);
    if now != version {
        let text = match now {
            "" => "has gone".to_owned(),
            now => format!("is there at version {now}"),
        };
        explained.push((moment.now, text));
        now.clone_into(version);
    }
    for step in &moment.steps {
        explained.push((moment.now, step.clone()));
    }
    let Some(Asked::Write(wanted)) = moment.asked else {
        return;
    };
    if wanted.target == *key {
        let asked = Asked::Write(wanted.clone());
        explained.push((moment.now, asked.to_string()));
        return;
    }
    if wanted.target.kind != api::kind::Kind::Event {
        return;
    }
    let note = wanted.body.value();
    let involved = &note["involvedObject"];
    let is_about = involved["kind"] == key.kind.row().name
        && involved["name"] == *key.name
        && involved["namespace"].as_str().unwrap_or("") == &*key.namespace;
    if is_about {
        let word = |name: &str| note[name].as_str().unwrap_or("").to_owned();
        let text = format!("is told {}: {}", word("reason"), word("message"));
        explained.push((moment.now, text));
    }
}
