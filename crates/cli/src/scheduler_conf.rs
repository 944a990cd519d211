//! Files of the scheduler's configuration: read for what a verb starts, or looked at and told about.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use driver::scheduler_conf::{BYTES_MAX, Reading, Remark, SchedulerConf, Severity, read, shown};
use serde_json::{Value, json};

use crate::start::Format;
use crate::{EXIT_BAD_INPUT, EXIT_COMPLETE, EXIT_FAILED, console};

/// A configuration that was read from a file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The file.
    pub path: PathBuf,
    /// What it held.
    pub bytes: Vec<u8>,
    /// What that means.
    pub conf: SchedulerConf,
}

/// What to check, and how to say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// The file, or `-`.
    pub path: PathBuf,
    /// What a warning is worth.
    pub strictness: Strictness,
    /// How to say it.
    pub format: Format,
}

/// What a warning is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Nothing.
    Lenient,
    /// A failure.
    Strict,
}

/// Reads a file that something is started by; warnings go to standard error.
///
/// # Errors
/// It cannot be read, or is refused: all reasons with their places.
pub fn load(path: &Path) -> anyhow::Result<Loaded> {
    let bytes = bytes_of(path)?;
    let Reading { conf, remarks } = read(&bytes);
    let is_worth_it = |remark: &&Remark| remark.severity > Severity::Note;
    for remark in remarks.list().into_iter().filter(is_worth_it) {
        console::complain(&told(path, remark));
    }
    let Some(conf) = conf else {
        bail!(
            "the scheduler's configuration {} is refused",
            path.display()
        );
    };
    Ok(Loaded {
        path: path.to_owned(),
        bytes,
        conf,
    })
}

/// Says what there is to say about a file, and gives the exit code: 0 where it counts as it is
/// written, 1 where something does not and that is asked for, 2 where it is refused.
pub fn check(request: &CheckRequest) -> u8 {
    let bytes = match bytes_of(&request.path) {
        Ok(bytes) => bytes,
        Err(error) => {
            console::complain(&format!("error: {error:#}"));
            return EXIT_BAD_INPUT;
        }
    };
    let reading = read(&bytes);
    match request.format {
        Format::Text => console::say(&text_of(&request.path, &reading)),
        Format::Json => console::say(&json_of(&request.path, &reading).to_string()),
    }
    match (reading.remarks.worst(), request.strictness) {
        (Some(Severity::Error), _) => EXIT_BAD_INPUT,
        (Some(Severity::Warning), Strictness::Strict) => EXIT_FAILED,
        _ => EXIT_COMPLETE,
    }
}

/// No more than can be understood, and one byte, so that it is noticed.
fn bytes_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    let most = BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.with_context(|| {
        let path = path.display();
        format!("cannot read the scheduler's configuration {path}")
    })?;
    Ok(bytes)
}

fn text_of(path: &Path, reading: &Reading) -> String {
    let remarks = &reading.remarks;
    let mut lines: Vec<String> = remarks
        .list()
        .into_iter()
        .map(|it| told(path, it))
        .collect();
    if remarks.more() > 0 {
        lines.push(format!("{}: and {} more", path.display(), remarks.more()));
    }
    let verdict = match (&reading.conf, remarks.worst()) {
        (None, _) => "refused: the rules stay as they were",
        (Some(_), None | Some(Severity::Note)) => "it counts as it is written",
        (Some(_), Some(_)) => "it counts, but for what is warned of",
    };
    lines.push(format!("{}: {verdict}", path.display()));
    if let Some(conf) = &reading.conf {
        let placement = &conf.placement;
        lines.push(format!("actions: {}", placement.actions.join(", ")));
        for (at, tier) in placement.tiers.iter().enumerate() {
            let names: Vec<&str> = tier.iter().map(|plugin| &*plugin.name).collect();
            lines.push(format!("tier {}: {}", at + 1, names.join(", ")));
        }
    }
    lines.join("\n")
}

fn told(path: &Path, remark: &Remark) -> String {
    let path = path.display();
    match remark.place.line {
        0 => format!("{path}: {remark}"),
        _ => format!("{path}:{remark}"),
    }
}

fn json_of(path: &Path, reading: &Reading) -> Value {
    let remark = |remark: &Remark| {
        json!({
            "severity": remark.severity.word(),
            "line": remark.place.line,
            "column": remark.place.column,
            "field": remark.field,
            "message": remark.message,
            "advice": remark.advice,
        })
    };
    let remarks = reading.remarks.list();
    json!({
        "file": path.display().to_string(),
        "accepted": reading.conf.is_some(),
        "remarks": remarks.into_iter().map(remark).collect::<Vec<_>>(),
        "more": reading.remarks.more(),
        "settings": reading.conf.as_ref().map(|conf| shown(&conf.placement)),
    })
}
