//! `katmai logs [NAME]`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command, FromArgMatches};
use serde_json::json;

use super::Verb;
use super::shape::Place;
use crate::console;
use crate::start::{Connection, Follow, Format, LogsRequest, Outcome, Question, Start};

/// The row.
pub const VERB: Verb = Verb {
    name: "logs",
    command: || {
        Arguments::augment_args(
            Command::new("logs")
                .about("Print the logs of a workload's tasks, or without a name the plane's own"),
        )
    },
    begin: |matches| begin(Arguments::from_arg_matches(matches)?),
};

#[derive(Args)]
struct Arguments {
    /// A vcjob, a batch job or a pod
    name: Option<String>,
    /// Its namespace
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Wait for new lines until the tasks end
    #[arg(long, short)]
    follow: bool,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    /// Ask the cluster of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

fn begin(typed: Arguments) -> anyhow::Result<Outcome> {
    let Some(name) = typed.name else {
        let path = typed.place.state()?.log();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the plane's log {}", path.display()))?;
        match typed.output {
            Format::Text => console::say(text.trim_end()),
            Format::Json => (text.lines()).for_each(|line| {
                console::say(&json!({ "task": "katmai", "line": line }).to_string())
            }),
        }
        return Ok(Outcome::Exit(0));
    };
    let connection = match typed.kubeconfig {
        Some(path) => Connection {
            kubeconfig: Some(path),
            master: None,
        },
        None => typed.place.connection()?,
    };
    Ok(Outcome::Start(Box::new(Start::Ask(
        connection,
        Question::Logs(LogsRequest {
            namespace: typed.namespace,
            name,
            follow: if typed.follow {
                Follow::ToTheEnd
            } else {
                Follow::Once
            },
            format: typed.output,
        }),
    ))))
}
