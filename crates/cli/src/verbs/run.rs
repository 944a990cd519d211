//! `katmai run FILE…`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};

use super::Verb;
use super::shape::{Place, Shape};
use crate::manifest;
use crate::start::{Cleanup, Connection, Data, Format, Outcome, Question, RunRequest, Start};

/// The row.
pub const VERB: Verb = Verb {
    name: "run",
    command: || {
        Arguments::augment_args(
            Command::new("run")
                .about("Apply manifests and follow their workloads to the end")
                .after_help(
                    "Uses the plane that is up, if one is and no flag shapes another; else a plane of its own \
                     that ends with the run.\n\n\
                     Exit codes: 0 all completed, 1 one failed or was aborted, 2 the manifest is wrong, 3 timeout.",
                ),
        )
    },
    begin: |matches| begin(Arguments::from_arg_matches(matches)?),
};

#[derive(Args)]
struct Arguments {
    /// Manifest files (YAML or JSON), directories, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Namespace of objects that name none
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Give up after so long, such as 90s or 5m
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
    /// Delete afterwards what this run created
    #[arg(long)]
    rm: bool,
    /// How to write what happens
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    /// Run on the cluster of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    shape: Shape,
}

fn begin(typed: Arguments) -> anyhow::Result<Outcome> {
    let Arguments {
        files,
        namespace,
        timeout,
        rm,
        output,
        kubeconfig,
        place,
        shape,
    } = typed;
    let documents = match manifest::read(&files) {
        Ok(documents) => documents,
        Err(mistakes) => return Ok(Outcome::Exit(crate::run::complain(&mistakes, output))),
    };
    let question = Question::Run(RunRequest {
        documents,
        namespace,
        timeout,
        cleanup: if rm { Cleanup::Remove } else { Cleanup::Keep },
        format: output,
    });
    let start = if kubeconfig.is_some() {
        Start::Ask(
            Connection {
                kubeconfig,
                master: None,
            },
            question,
        )
    } else if !shape.is_given() && is_up(&place) {
        Start::Ask(place.connection()?, question)
    } else {
        Start::Own(shape.plane(Data::Ephemeral, None)?, question)
    };
    Ok(Outcome::Start(Box::new(start)))
}

/// Without a home directory no plane can be up: the run then has its own.
fn is_up(place: &Place) -> bool {
    place
        .state()
        .and_then(|state| state.running())
        .is_ok_and(|running| running.is_some())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "expected a duration such as 5s or 1h30m".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}
