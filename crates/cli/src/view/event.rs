//! One thing worth saying, as a value: a line of text, or a line of JSON.

use std::fmt;

use serde::Serialize;

use super::duration_text;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// An object of the manifest was applied.
    Applied {
        /// `queue/training`.
        object: String,
        /// `created`, `configured` or `unchanged`; `deleted` where it was in vain.
        action: String,
    },
    /// The API attached a warning.
    Warning {
        /// What it is about.
        object: String,
        /// The warning.
        message: String,
    },
    /// A workload entered a phase, or its tasks moved within it.
    Workload {
        /// `vcjob/training`.
        workload: String,
        /// Namespace.
        namespace: String,
        /// Its phase.
        phase: String,
        /// Tasks wanted.
        wanted: u64,
        /// Tasks running.
        running: u64,
        /// Tasks succeeded.
        succeeded: u64,
        /// Tasks failed.
        failed: u64,
        /// Why it ended so, where the API says.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// A workload waits, for a reason that was not said before.
    Waits {
        /// `vcjob/training`.
        workload: String,
        /// Namespace.
        namespace: String,
        /// For what, in plain words.
        reason: String,
    },
    /// A task entered a phase.
    Task {
        /// `vcjob/training`.
        workload: String,
        /// `worker-0`.
        task: String,
        /// Name of its pod.
        pod: String,
        /// Its phase.
        phase: String,
        /// Where it runs.
        #[serde(skip_serializing_if = "String::is_empty")]
        node: String,
        /// How its first failed container ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// Why it failed, where the API says more than the exit code.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// How often its containers were started again.
        restarts: u64,
    },
    /// A line of a task's log.
    Log {
        /// `worker-0`.
        task: String,
        /// Without its end.
        line: String,
    },
    /// The end.
    Summary {
        /// How each workload stands.
        workloads: Vec<WorkloadEnd>,
        /// The exit code of the run.
        exit_code: u8,
    },
}

/// How a workload stands at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEnd {
    /// `vcjob/training`.
    pub workload: String,
    /// Namespace.
    pub namespace: String,
    /// Its phase.
    pub phase: String,
    /// Why, where the API says or where it still waits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it had ended before it was followed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended_before: bool,
    /// From being seen to its first running task, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<i64>,
    /// From being seen to its end or to now, in milliseconds.
    pub total_ms: i64,
    /// Its tasks by name.
    pub tasks: Vec<TaskEnd>,
}

/// How a task stands at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEnd {
    /// `worker-0`.
    pub task: String,
    /// Its phase.
    pub phase: String,
    /// Where it ran.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// How its first failed container ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Why it failed, where the API says more than the exit code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often its containers were started again.
    pub restarts: u64,
    /// How long it ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<i64>,
}

impl fmt::Display for Event {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Applied { object, action } => write!(to, "{object} {action}"),
            Event::Warning { object, message } => write!(to, "{object}: warning: {message}"),
            Event::Workload {
                workload,
                phase,
                wanted,
                running,
                succeeded,
                failed,
                message,
                ..
            } => {
                write!(to, "{workload}: {phase}")?;
                write!(to, "{}", counts(*wanted, *running, *succeeded, *failed))?;
                if message.is_empty() {
                    Ok(())
                } else {
                    write!(to, ": {message}")
                }
            }
            Event::Waits {
                workload, reason, ..
            } => write!(to, "{workload} waits: {reason}"),
            Event::Task {
                task,
                phase,
                node,
                exit_code,
                message,
                ..
            } => {
                write!(to, "{task}: {phase}")?;
                if let Some(code) = exit_code {
                    write!(to, " (exit code {code})")?;
                }
                if phase == "Running" && !node.is_empty() {
                    write!(to, " on {node}")?;
                }
                if !message.is_empty() {
                    write!(to, ": {message}")?;
                }
                Ok(())
            }
            Event::Log { task, line } => write!(to, "{task} | {line}"),
            Event::Summary { workloads, .. } => {
                let blocks: Vec<String> = workloads.iter().map(WorkloadEnd::to_string).collect();
                write!(to, "{}", blocks.join("\n"))
            }
        }
    }
}

impl fmt::Display for WorkloadEnd {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\n{}  {}  ", self.workload, self.phase)?;
        if self.ended_before {
            write!(to, "before this run")?;
        } else {
            write!(to, "after {}", duration_text(self.total_ms * 1000))?;
        }
        if let Some(waited) = self.waited_ms {
            write!(to, " (waited {})", duration_text(waited * 1000))?;
        }
        if !self.message.is_empty() {
            write!(to, "\n  {}", self.message)?;
        }
        let width = self.tasks.iter().map(|task| task.task.len()).max();
        for task in &self.tasks {
            write!(to, "\n  {:1$}", task.task, width.unwrap_or(0))?;
            write!(to, "  {:<9}", task.phase)?;
            let ran = task
                .ran_ms
                .map_or("-".to_owned(), |ms| duration_text(ms * 1000));
            write!(to, "  {ran:>6}  {}", task.node)?;
            if let Some(code) = task.exit_code {
                write!(to, "  exit code {code}")?;
            }
            if !task.message.is_empty() {
                write!(to, "  {}", task.message)?;
            }
            if task.restarts > 0 {
                write!(to, "  {} restarts", task.restarts)?;
            }
        }
        Ok(())
    }
}

/// ` (3 running, 1 succeeded of 5)`, or nothing before the first task moves.
pub(super) fn counts(wanted: u64, running: u64, succeeded: u64, failed: u64) -> String {
    let mut parts = Vec::new();
    for (count, word) in [
        (running, "running"),
        (succeeded, "succeeded"),
        (failed, "failed"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({} of {wanted})", parts.join(", "))
}
