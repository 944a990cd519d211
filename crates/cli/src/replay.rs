//! Decision logs, played again: what is read, and how it is told.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api::intent::ObjectKey;
use api::time::Time;
use driver::log::{Asked, Moment, Replay, Segment, Summary, Tokens};
use serde_json::{Value, json};

use crate::console;
use crate::start::Format;
use crate::{EXIT_BAD_INPUT, EXIT_COMPLETE, EXIT_FAILED};

/// How a segment's name ends in a directory.
const SUFFIX: &str = ".decisions";
/// A longer file is no segment of ours.
const SEGMENT_BYTES_MAX: u64 = 2 << 30;
/// Pods that are named of those that other settings would treat otherwise.
const NAMED_MAX: usize = 20;

/// `katmai replay`.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// A segment, or a directory of them.
    pub(crate) path: PathBuf,
    /// Stop there.
    pub(crate) until: Option<Time>,
    /// Tell about this object.
    pub(crate) explain: Option<ObjectKey>,
    /// Compare with these settings of the scheduler.
    pub(crate) settings: Option<PathBuf>,
    /// How to say it.
    pub(crate) format: Format,
}

/// What was found in one segment.
#[derive(Default)]
struct Found {
    explained: Vec<(Time, String)>,
    otherwise: Vec<driver::Otherwise>,
}

/// Plays what is named and gives the exit code.
pub(crate) fn answer(request: &Request) -> u8 {
    match replay_all(request) {
        Ok(true) => EXIT_COMPLETE,
        Ok(false) => EXIT_FAILED,
        Err(error) => {
            console::complain(&format!("error: {error:#}"));
            EXIT_BAD_INPUT
        }
    }
}

/// Whether all segments came to the same.
fn replay_all(request: &Request) -> anyhow::Result<bool> {
    let paths = segments(&request.path)?;
    let configuration = match &request.settings {
        Some(path) => Some(configuration(path)?),
        None => None,
    };
    let mut is_equal = true;
    for path in &paths {
        is_equal &= replay(path, request, configuration.as_ref())
            .with_context(|| path.display().to_string())?;
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

fn configuration(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the settings {}", path.display()))?;
    serde_saphyr::from_str(&text)
        .with_context(|| format!("cannot understand the settings {}", path.display()))
}

fn replay(path: &Path, request: &Request, configuration: Option<&Value>) -> anyhow::Result<bool> {
    let length = fs::metadata(path).map(|about| about.len())?;
    if length > SEGMENT_BYTES_MAX {
        bail!("{length} bytes are too many for a decision log");
    }
    let bytes = fs::read(path)?;
    let segment = Segment::read(&bytes)?;
    let mut replay = Replay::new(&segment, tokens(path)?)?;
    if let Some(key) = &request.explain {
        replay = replay.explaining(key.clone());
    }
    if let Some(configuration) = configuration {
        replay = replay
            .asking(configuration)
            .map_err(|what| anyhow::anyhow!("the other settings: {what}"))?;
    }
    let is_keyed = replay.is_keyed();
    let mut found = Found::default();
    let mut version = String::new();
    let summary = replay.run(request.until, &mut |moment| {
        found.otherwise.extend(moment.otherwise.iter().cloned());
        if let Some(key) = &request.explain {
            explain(key, moment, &mut version, &mut found.explained);
        }
    })?;
    let told = Told {
        path,
        segment: &segment,
        is_keyed,
        summary: &summary,
        found: &found,
        request,
    };
    match request.format {
        Format::Text => told.say(),
        Format::Json => console::say(&told.json().to_string()),
    }
    Ok(summary.difference.is_none())
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
    let note: Value = serde_json::from_slice(&wanted.body).unwrap_or_default();
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

/// What is said of a segment.
struct Told<'a> {
    path: &'a Path,
    segment: &'a Segment<'a>,
    is_keyed: bool,
    summary: &'a Summary,
    found: &'a Found,
    request: &'a Request,
}

impl Told<'_> {
    fn say(&self) {
        let (header, summary) = (&self.segment.header, self.summary);
        console::say(&format!("{}", self.path.display()));
        console::say(&format!(
            "  written by {} in term {}, katmai {}, from {} to {}",
            header.identity,
            header.term,
            header.binary,
            summary.from.micro(),
            summary.until.micro(),
        ));
        if header.binary != env!("CARGO_PKG_VERSION") {
            console::say(&format!(
                "  note: this is katmai {}, which may decide otherwise",
                env!("CARGO_PKG_VERSION")
            ));
        }
        if let Some(torn) = self.segment.torn {
            console::say(&format!(
                "  note: the last {} bytes, from byte {}, were never finished and are left out",
                torn.bytes, torn.offset
            ));
        }
        if !self.is_keyed {
            console::say("  note: the key of its tokens is not here: secrets are not compared");
        }
        for (at, text) in &self.found.explained {
            console::say(&format!("  {} {text}", at.micro()));
        }
        console::say(&format!(
            "  {} events, {} plans with {} places, {} requests of which {} writes: {}",
            summary.events,
            summary.plans,
            summary.places,
            summary.requests,
            summary.writes,
            match &summary.difference {
                None => format!("equal, sum {:016x}", summary.logged_sum),
                Some(_) => "they differ".to_owned(),
            }
        ));
        if let Some(difference) = &summary.difference {
            console::say(&format!(
                "  first at {}, byte {}",
                difference.now.micro(),
                difference.offset
            ));
            console::say(&format!("    logged:   {}", difference.logged));
            console::say(&format!("    replayed: {}", difference.replayed));
        }
        self.say_otherwise();
    }

    fn say_otherwise(&self) {
        if self.request.settings.is_none() {
            return;
        }
        let all = &self.found.otherwise;
        console::say(&format!(
            "  the other settings would have treated {} pods otherwise",
            all.len()
        ));
        for one in all.iter().take(NAMED_MAX) {
            let place = |node: &Option<std::sync::Arc<str>>| match node {
                Some(node) => format!("on {node}"),
                None => "nowhere yet".to_owned(),
            };
            console::say(&format!(
                "    {} {}/{}: {} as decided, {} by these",
                one.now.micro(),
                one.pod.0,
                one.pod.1,
                place(&one.decided),
                place(&one.otherwise),
            ));
        }
    }

    fn json(&self) -> Value {
        let (header, summary) = (&self.segment.header, self.summary);
        let lines = self.found.explained.iter();
        let otherwise = self.found.otherwise.iter().map(|one| {
            json!({
                "at": one.now.micro(), "namespace": &*one.pod.0, "pod": &*one.pod.1,
                "decided": one.decided.as_deref(), "otherwise": one.otherwise.as_deref(),
            })
        });
        json!({
            "segment": self.path.display().to_string(),
            "identity": header.identity,
            "term": header.term,
            "binary": header.binary,
            "settings": header.settings,
            "from": summary.from.micro(),
            "until": summary.until.micro(),
            "events": summary.events,
            "plans": summary.plans,
            "places": summary.places,
            "requests": summary.requests,
            "writes": summary.writes,
            "secretsCompared": self.is_keyed,
            "tornBytes": self.segment.torn.map_or(0, |torn| torn.bytes),
            "equal": summary.difference.is_none(),
            "sum": format!("{:016x}", summary.logged_sum),
            "difference": summary.difference.as_ref().map(|it| json!({
                "at": it.now.micro(), "offset": it.offset,
                "logged": it.logged, "replayed": it.replayed,
            })),
            "explained": lines.map(|(at, text)| json!([at.micro(), text])).collect::<Vec<_>>(),
            "otherwise": otherwise.collect::<Vec<_>>(),
        })
    }
}
