//! `katmai whatif`.

use clap::{Args, Command, FromArgMatches};
use sim::Change;

use super::Verb;
use super::rehearsing::{Rehearsing, complain};
use crate::manifest;
use crate::start::{Outcome, RehearsalQuestion};

/// The row.
pub const VERB: Verb = Verb {
    name: "whatif",
    command: || {
        Arguments::augment_args(
            Command::new("whatif")
                .about("Say what would start, wait or be evicted if a cluster were changed so"),
        )
        .after_help(AFTER)
    },
    begin: |matches| begin(Arguments::from_arg_matches(matches)?),
};

const AFTER: &str = "\
A change is a manifest, which is applied, or one of these documents:
  {apiVersion: whatif.katmai.dev/v1, kind: Drain, nodes: [node-3], nodeSelector: {rack: r7}}
  {apiVersion: whatif.katmai.dev/v1, kind: Delete, objects: [{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: old}]}
They are tried out on a copy, all together, and the copy is left to do what it would do. Pods are
placed there and not run: nothing ends. The cluster itself is not changed.

Exit codes: 0 it is told, 1 a change would be refused or the cluster cannot be read, 2 a file is wrong.";

#[derive(Args)]
struct Arguments {
    /// What is changed: files, directories, or - for standard input
    #[arg(long, short, required = true, value_name = "FILE|DIRECTORY|-")]
    filename: Vec<String>,
    /// Namespace of objects that name none
    #[arg(long, short, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    rehearsing: Rehearsing,
}

fn begin(typed: Arguments) -> anyhow::Result<Outcome> {
    let format = typed.rehearsing.output;
    let named = typed.filename.iter().chain(&typed.rehearsing.dump);
    if let Some(mistake) = manifest::input_again(named) {
        return Ok(complain(&[mistake], format));
    }
    let documents = match manifest::read(&typed.filename) {
        Ok(documents) => documents,
        Err(mistakes) => return Ok(complain(&mistakes, format)),
    };
    let mut changes = Vec::new();
    let mut mistakes = Vec::new();
    for document in documents {
        match Change::read(&document.object, &typed.namespace) {
            Ok(change) => changes.push((document, change)),
            Err((field, text)) => mistakes.push(document.mistake(&field, text)),
        }
    }
    if !mistakes.is_empty() {
        return Ok(complain(&mistakes, format));
    }
    typed.rehearsing.begin(RehearsalQuestion::WhatIf(changes))
}
