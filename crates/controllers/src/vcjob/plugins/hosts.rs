//! Under which names the pods of a job find each other.

use std::fmt;

use api::volcano::{JOB_NAME, JOB_NAMESPACE, Job, Task};
use serde_json::Value;

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
    let subdomain = match text(spec, "subdomain") {
        "" => &job.metadata.name,
        subdomain => subdomain,
    };
    match text(spec, "hostname") {
        "" => write!(
            out,
            "{}-{}-{index}.{subdomain}",
            job.metadata.name, task.name
        ),
        hostname => write!(out, "{hostname}.{subdomain}"),
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
