//! Under which names the pods of a job find each other.

use std::fmt;

use api::volcano::{JOB_NAME, JOB_NAMESPACE, Job, Task};
use serde_json::Value;

use crate::vcjob::pods;
use crate::write::object;

/// The task of a job that has a name.
pub(super) fn task_of<'a>(job: &'a Job, name: &str) -> Option<&'a Task> {
    job.spec.tasks.iter().find(|task| &*task.name == name)
}

/// `<pod>.<job>`, or what the template says itself: with a fixed host name all pods of a task share
/// one.
pub(super) fn of_pod(job: &Job, task: &Task, index: i32) -> String {
    let mut name = String::new();
    // A text takes everything.
    let _ = write(&mut name, job, task, index);
    name
}

/// Writes the name of a pod.
pub(super) fn write(out: &mut impl fmt::Write, job: &Job, task: &Task, index: i32) -> fmt::Result {
    let spec = &task.template["spec"];
    let subdomain = subdomain(job, task);
    match text(spec, "hostname") {
        "" => write!(
            out,
            "{}-{}-{index}.{subdomain}",
            job.metadata.name, task.name
        ),
        hostname => write!(out, "{hostname}.{subdomain}"),
    }
}

/// What stands behind the point of a task's names.
fn subdomain<'a>(job: &'a Job, task: &'a Task) -> &'a str {
    match text(&task.template["spec"], "subdomain") {
        "" => &job.metadata.name,
        subdomain => subdomain,
    }
}

/// The names of a task's pods, each once.
pub(super) fn of_task(job: &Job, task: &Task) -> Vec<String> {
    (0..count(task))
        .map(|index| of_pod(job, task, index))
        .collect()
}

/// How many names a task's pods have.
pub(super) fn count(task: &Task) -> i32 {
    match text(&task.template["spec"], "hostname") {
        "" => task.replicas(),
        _ => task.replicas().min(1),
    }
}

/// How long the names of a task's pods are at most: a point, two dashes, and a number of nine digits, since so
/// many names fit into nothing.
pub(super) fn name_bytes(job: &Job, task: &Task) -> usize {
    let spec = &task.template["spec"];
    let host_bytes = match text(spec, "hostname") {
        "" => job.metadata.name.len() + task.name.len() + 11,
        hostname => hostname.len(),
    };
    host_bytes + 1 + subdomain(job, task).len()
}

/// A list of names that a plugin tells containers, before it is written down.
pub(super) struct List {
    variable: &'static str,
    names: i64,
    bytes: usize,
}

impl List {
    /// An empty one.
    pub(super) fn new(variable: &'static str) -> List {
        List {
            variable,
            names: 0,
            bytes: 0,
        }
    }

    /// Adds so many names of a task, beside each of which so many bytes stand.
    pub(super) fn add(&mut self, job: &Job, task: &Task, count: i32, beside: usize) {
        let each = name_bytes(job, task) + beside;
        let all = usize::try_from(count).unwrap_or(0).saturating_mul(each);
        self.names += i64::from(count.max(0));
        self.bytes = self.bytes.saturating_add(all);
    }

    /// Whether so many containers of a task's pod can be told it.
    pub(super) fn fits(&self, task: &Task, containers: usize) -> Result<(), String> {
        if self.bytes.saturating_mul(containers) <= pods::BYTES_MAX {
            return Ok(());
        }
        let List {
            variable, names, ..
        } = self;
        Err(format!(
            "variable {variable} with the names of {names} pods does not fit into the {} of a pod of task {}; there \
             must be fewer replicas to name, or fewer containers",
            counted(containers),
            task.name,
        ))
    }
}

/// Containers of a pod, for a message.
pub(super) fn counted(containers: usize) -> String {
    match containers {
        1 => "container".to_owned(),
        more => format!("{more} containers"),
    }
}

/// Labels that all pods of a job have and no others.
pub(super) fn peers(job: &Job) -> Value {
    let meta = &job.metadata;
    object!({ JOB_NAME => &*meta.name, JOB_NAMESPACE => &*meta.namespace })
}

/// The same labels, as they are held.
pub(super) fn peer_labels(job: &Job) -> [(&'static str, &str); 2] {
    let meta = &job.metadata;
    [(JOB_NAME, &meta.name), (JOB_NAMESPACE, &meta.namespace)]
}

pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or("")
}
