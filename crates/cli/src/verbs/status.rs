//! `katmai status`.

use std::sync::Arc;

use clap::{Args, Command, FromArgMatches};
use serde_json::{Value, json};

use super::Verb;
use super::shape::Place;
use crate::EXIT_FAILED;
use crate::cluster::Cluster;
use crate::console;
use crate::rest::Rest;
use crate::start::{Connection, Format, Outcome, Question, Start, StatusRequest};

/// The row.
pub const VERB: Verb = Verb {
    name: "status",
    command: || {
        Arguments::augment_args(
            Command::new("status").about("Say whether a plane is up, where, and what it holds"),
        )
    },
    begin: |matches| begin(&Arguments::from_arg_matches(matches)?),
};

#[derive(Args)]
struct Arguments {
    #[command(flatten)]
    place: Place,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

fn begin(typed: &Arguments) -> anyhow::Result<Outcome> {
    let state = typed.place.state()?;
    if state.running()?.is_none() {
        let path = state.path().display().to_string();
        console::say(&match typed.output {
            Format::Text => format!("no plane is up in {path}"),
            Format::Json => json!({ "up": false, "directory": path }).to_string(),
        });
        return Ok(Outcome::Exit(EXIT_FAILED));
    }
    Ok(Outcome::Start(Box::new(Start::Ask(
        Connection {
            kubeconfig: Some(state.kubeconfig()),
            master: None,
        },
        Question::Status(StatusRequest {
            state,
            format: typed.output,
        }),
    ))))
}

const COUNTED: &[(&str, &str)] = &[
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("queues", "/apis/scheduling.volcano.sh/v1beta1/queues"),
    ("vcjobs", "/apis/batch.volcano.sh/v1alpha1/jobs"),
    ("jobs", "/apis/batch/v1/jobs"),
];

/// Counts what the plane holds.
pub(super) async fn answer(
    request: &StatusRequest,
    cluster: Arc<dyn Cluster>,
) -> anyhow::Result<u8> {
    let rest = Rest::new(cluster);
    let mut counts = Vec::new();
    for (name, path) in COUNTED {
        counts.push((*name, rest.count(path).await?));
    }
    let running = request.state.running()?;
    let (address, pid) = running.map_or((String::new(), 0), |up| (up.address, up.pid));
    let kubeconfig = request.state.kubeconfig().display().to_string();
    match request.format {
        Format::Text => {
            console::say(&format!("up          {address} (pid {pid})"));
            console::say(&format!("directory   {}", request.state.path().display()));
            console::say(&format!("kubeconfig  {kubeconfig}"));
            for (name, count) in counts {
                console::say(&format!("{name:<11} {count}"));
            }
        }
        Format::Json => {
            let mut answer = json!({
                "up": true, "address": address, "pid": pid,
                "directory": request.state.path().display().to_string(), "kubeconfig": kubeconfig,
            });
            for (name, count) in counts {
                answer[name] = Value::from(count);
            }
            console::say(&answer.to_string());
        }
    }
    Ok(0)
}
