//! `katmai simulate`: a workload is played, and what was seen is told.

mod facts;
mod picture;
mod table;

use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::{Flaw, Origin, Part, Play, Report, Trace};

use crate::manifest::{Document, Mistake};
use crate::rest::Refusal;
use crate::start::{Format, SimulateRequest};
use crate::{EXIT_COMPLETE, EXIT_FAILED, EXIT_TIMEOUT, console, run};

/// Plays what was asked for and tells how it went; gives the exit code.
///
/// # Errors
/// A picture or a transcript that cannot be written.
pub fn simulate(request: &SimulateRequest, drivers: driver::Settings) -> anyhow::Result<u8> {
    let objects = |documents: &[Document]| -> Vec<_> {
        documents.iter().map(|it| it.object.clone()).collect()
    };
    let (there, comes) = (objects(&request.cluster), objects(&request.workload));
    let settings = request.settings.clone();
    let begun = Trace::read(&there, &comes, settings).and_then(|trace| trace.begin(drivers));
    let mut play = match begun {
        Ok(play) => play,
        Err(flaws) => {
            let mistakes: Vec<Mistake> = flaws.iter().flat_map(|it| told(request, it)).collect();
            return Ok(run::complain(&mistakes, request.format));
        }
    };
    follow(&mut play, request.settings.for_ms);
    let report = play.report();
    if let Some(path) = &request.svg {
        write(path, &picture::of(&report))?;
    }
    if let Some(path) = &request.transcript {
        write(path, &play.transcript())?;
    }
    console::say(&match request.format {
        Format::Text => table::of(&report),
        Format::Json => facts::of(&report).to_string(),
    });
    Ok(verdict(&report))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Lets time pass; on a terminal somebody is told how far it has come.
fn follow(play: &mut Play, for_ms: i64) {
    let bar =
        ProgressBar::with_draw_target(Some(for_ms.unsigned_abs()), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    while play.step() {
        let (came, ended) = play.progress();
        let now = table::span(play.now_ms());
        bar.set_position(play.now_ms().unsigned_abs());
        bar.set_message(format!(
            "{now} simulated, {ended} of {came} workloads ended"
        ));
    }
    bar.finish_and_clear();
}

fn verdict(report: &Report) -> u8 {
    let any_failed = report.workloads.iter().any(sim::Workload::has_failed);
    let mut finite = report.workloads.iter().filter(|it| !it.is_endless);
    if any_failed || !report.turned_away.is_empty() || !report.findings.is_empty() {
        EXIT_FAILED
    } else if finite.any(|it| it.ended_ms.is_none()) {
        EXIT_TIMEOUT
    } else {
        EXIT_COMPLETE
    }
}

/// A flaw as mistakes of the file that it was read from.
fn told(request: &SimulateRequest, flaw: &Flaw) -> Vec<Mistake> {
    let Some(document) = flaw.origin.and_then(|origin| written(request, origin)) else {
        return vec![Mistake {
            file: request.cluster_file.clone(),
            line: 0,
            column: 0,
            field: flaw.field.clone(),
            message: flaw.text.clone(),
        }];
    };
    let mut mistakes = match flaw.field.is_empty() {
        false => vec![document.mistake(&flaw.field, flaw.text.clone())],
        true => {
            let refusal = Refusal {
                code: 422,
                reason: String::new(),
                message: flaw.text.clone(),
                causes: flaw.causes.clone(),
            };
            run::mistakes_in(document, &refusal)
        }
    };
    for mistake in &mut mistakes {
        let number = format!(" (document {})", document.number());
        mistake.message.push_str(&number);
    }
    mistakes
}

fn written(request: &SimulateRequest, origin: Origin) -> Option<&Document> {
    match origin.part {
        Part::Cluster => request.cluster.get(origin.index),
        Part::Workload => request.workload.get(origin.index),
    }
}

#[cfg(test)]
mod tests;
