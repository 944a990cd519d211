//! `vcctl pod list`.

use std::fmt::Write;

use anyhow::bail;
use api::time::Time;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::job::BATCH;
use super::pod_state::PodState;
use super::told::{Form, Manner, NOTHING, Told, widened};
use super::{age, width};
use crate::rest::{self, Place, Rest, text};

const JOB_NAME: &str = "volcano.sh/job-name";
const QUEUE_LABEL: &str = "volcano.sh/queue-name";
const QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";

/// One of the pod commands.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Request {
    /// list pod information created by vcjob
    List(List),
}

/// Which pods to list.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct List {
    /// the namespace of pods
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// list pods of the queue
    #[arg(short, long, default_value = "")]
    queue: String,
    /// list pods of the job
    #[arg(short, long, default_value = "")]
    job: String,
    /// list pods in all namespaces
    #[arg(long)]
    all_namespaces: bool,
}

impl Request {
    /// What failed, in upstream's words.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Request::List(_) => "pod list",
        }
    }
}

/// Where a list's objects are.
pub(super) fn listed(list: &List) -> anyhow::Result<String> {
    let label = match (&*list.job, &*list.queue) {
        ("", "") => Some(JOB_NAME.to_owned()),
        // A queue's pods are known by a label or by an annotation, for which there is no selector.
        ("", _) => None,
        (job, _) => Some(format!("{JOB_NAME}={job}")),
    };
    let namespace = match list.all_namespaces {
        true => "",
        false => &list.namespace,
    };
    let collection = rest::listed("/api/v1", namespace, "pods")?;
    Ok(match label {
        Some(label) => format!(
            "{collection}?labelSelector={}",
            api::call::query_escape(&label)
        ),
        None => collection,
    })
}

pub(super) async fn answer(request: &Request, manner: Manner, rest: &Rest) -> anyhow::Result<Told> {
    let Request::List(list) = request;
    if !list.job.is_empty() && !list.queue.is_empty() && !list.all_namespaces {
        let place = Place {
            collection: rest::collection(BATCH, &list.namespace, "jobs")?,
            name: list.job.clone(),
        };
        let job = rest.get(&place).await?;
        if text(&job, &["spec", "queue"]) != list.queue {
            bail!(
                "the input vcjob {} does not match the queue {}",
                list.job,
                list.queue
            );
        }
    }
    let objects = chosen(list, rest.list(&listed(list)?).await?);
    let mut table = table(list, &objects, manner.now);
    if manner.form == Form::Wide {
        table = widened(
            &table,
            &objects,
            &[
                ("IP", |pod| text(pod, &["status", "podIP"]).to_owned()),
                ("Node", |pod| text(pod, &["spec", "nodeName"]).to_owned()),
            ],
        );
    }
    Ok(Told::Objects { objects, table })
}

/// The pods that a list is about, by namespace and name.
fn chosen(list: &List, mut pods: Vec<Value>) -> Vec<Value> {
    // Without a namespace a job has no queue to compare: there may be several of its name.
    let is_chosen_by_queue = list.job.is_empty() || list.all_namespaces;
    if is_chosen_by_queue && !list.queue.is_empty() {
        pods.retain(|pod| {
            let meta = &pod["metadata"];
            text(meta, &["labels", QUEUE_LABEL]) == list.queue
                || text(meta, &["annotations", QUEUE_ANNOTATION]) == list.queue
        });
    }
    pods.sort_by_cached_key(|pod| {
        (
            text(pod, &["metadata", "namespace"]).to_owned(),
            text(pod, &["metadata", "name"]).to_owned(),
        )
    });
    pods
}

fn table(list: &List, pods: &[Value], now: Time) -> String {
    if pods.is_empty() {
        return NOTHING.to_owned();
    }
    let names = width(
        "Name",
        pods.iter().map(|pod| text(pod, &["metadata", "name"])),
    );
    let namespaces = width(
        "Namespace",
        pods.iter().map(|pod| text(pod, &["metadata", "namespace"])),
    );
    let states: Vec<PodState> = pods.iter().map(PodState::of).collect();
    let statuses = width("Status", states.iter().map(|it| it.status.as_str()));
    let mut out = String::new();
    let mut row = |pod: [&str; 2], cells: [&str; 4]| {
        // Writing to a String cannot fail.
        if list.all_namespaces {
            let _ = write!(out, "{:<namespaces$}", pod[0]);
        }
        let _ = write!(out, "{:<names$}{:<8}", pod[1], cells[0]);
        let _ = writeln!(out, "{:<statuses$}{:<10}{}", cells[1], cells[2], cells[3]);
    };
    row(["Namespace", "Name"], ["Ready", "Status", "Restart", "Age"]);
    for (pod, state) in pods.iter().zip(&states) {
        row(
            [
                text(pod, &["metadata", "namespace"]),
                text(pod, &["metadata", "name"]),
            ],
            [
                &format!("{}/{}", state.ready, state.wanted),
                &state.status,
                &state.restarts.to_string(),
                &age(text(pod, &["metadata", "creationTimestamp"]), now),
            ],
        );
    }
    out
}
