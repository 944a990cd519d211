//! `vcctl pod list`.

use std::fmt::Write;

use anyhow::bail;
use api::time::Time;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::age;
use super::pod_state::PodState;
use super::told::{Form, Manner, NOTHING, Told, widened};
use crate::rest::{self, Rest, text};

const JOB_NAME: &str = "volcano.sh/job-name";
const QUEUE_LABEL: &str = "volcano.sh/queue-name";
const QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";
/// What upstream leaves behind the longest value of a column. Headings do not count.
const COLUMNS_APART: usize = 8;

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
    /// What failed, in upstream's words: the command, then the group that it stands in.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Request::List(_) => "list pod",
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
    let pods = rest.list(&listed(list)?).await?;
    let is_of_another_queue = |pod: &Value| {
        let queue = text(pod, &["metadata", "labels", QUEUE_LABEL]);
        !queue.is_empty() && queue != list.queue
    };
    let must_match = !list.job.is_empty() && !list.queue.is_empty() && !list.all_namespaces;
    if must_match && pods.iter().any(is_of_another_queue) {
        bail!(
            "the input vcjob {} does not match the queue {}",
            list.job,
            list.queue
        );
    }
    let objects = chosen(list, pods);
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
    let mut rows =
        vec![["Namespace", "Name", "Ready", "Status", "Restart", "Age"].map(str::to_owned)];
    for pod in pods {
        let state = PodState::of(pod);
        rows.push([
            text(pod, &["metadata", "namespace"]).to_owned(),
            text(pod, &["metadata", "name"]).to_owned(),
            format!("{}/{}", state.ready, state.wanted),
            state.status,
            state.restarts.told(now),
            age(text(pod, &["metadata", "creationTimestamp"]), now),
        ]);
    }
    let width = |at: usize| {
        let longest = rows[1..].iter().map(|row| row[at].len()).max();
        // A heading keeps a blank behind it, even above a namespace of one letter.
        (longest.unwrap_or(0) + COLUMNS_APART).max(rows[0][at].len() + 1)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let first = usize::from(!list.all_namespaces);
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths).skip(first) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{cell:<width$}");
        }
        out.push('\n');
    }
    out
}
