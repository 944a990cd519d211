//! What is said about workloads: object states in, things to say out. No clock, no IO.
//!
//! [`View::see`] takes each object as a watch reports it and returns [`Effect`]s: an event worth
//! saying, or a container whose log can be opened now. [`View::screen`] is the moving picture,
//! [`View::summary`] the end.

mod event;
mod task;
mod workload;

use api::time::Time;
use serde_json::Value;

pub use event::{Event, TaskEnd, WorkloadEnd};
pub use task::{Instance, LogSource};
pub use workload::WorkloadKind;

use crate::rest::text;
use workload::Workload;

/// Everything that one run follows.
#[derive(Debug, Default)]
pub struct View {
    workloads: Vec<Workload>,
}

/// What an object's new state calls for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Say this.
    Say(Event),
    /// A container began, and its log can be opened.
    Log(LogSource),
}

/// How a workload ended. The order is from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All that was asked for was done.
    Completed,
    /// It failed, or was aborted, terminated or deleted.
    Failed,
    /// It had not ended when the time was up.
    TimedOut,
}

impl Verdict {
    /// The exit code that tells this verdict.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Completed => crate::EXIT_COMPLETE,
            Verdict::Failed => crate::EXIT_FAILED,
            Verdict::TimedOut => crate::EXIT_TIMEOUT,
        }
    }
}

impl View {
    /// Begins to follow an object of the manifest; `None` if its kind has no end to follow.
    pub fn follow(&mut self, object: &Value, now: Time) -> Option<WorkloadKind> {
        let kind = WorkloadKind::of(object)?;
        self.workloads.push(Workload::new(kind, object, now));
        Some(kind)
    }

    /// Takes in the state of a workload, of its PodGroup or of one of its pods.
    pub fn see(&mut self, object: &Value, now: Time) -> Vec<Effect> {
        let many = self.workloads.len() > 1;
        match self.owner_of(object) {
            Some(workload) => workload.see(object, many, now),
            None => Vec::new(),
        }
    }

    /// Takes in that an object is gone.
    pub fn gone(&mut self, object: &Value, now: Time) -> Vec<Effect> {
        let many = self.workloads.len() > 1;
        match self.owner_of(object) {
            Some(workload) => workload.gone(object, many, now),
            None => Vec::new(),
        }
    }

    /// What has stood long enough to be said, though nothing happened.
    pub fn pass(&mut self, now: Time) -> Vec<Event> {
        self.workloads
            .iter_mut()
            .filter_map(|workload| workload.say_waits(now))
            .collect()
    }

    /// One line for each workload, and one more for each that waits.
    pub fn screen(&self, now: Time) -> Vec<String> {
        self.workloads
            .iter()
            .flat_map(|workload| workload.screen(now))
            .collect()
    }

    /// The worst verdict, once every workload has ended; at once if there is none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.workloads
            .iter()
            .map(Workload::verdict)
            .try_fold(Verdict::Completed, |worst, one| Some(worst.max(one?)))
    }

    /// How each workload stands or ended.
    pub fn summary(&self, now: Time) -> Vec<WorkloadEnd> {
        self.workloads
            .iter()
            .map(|workload| workload.end(now))
            .collect()
    }

    /// Whether some pod runs, as far as it was seen.
    pub fn has_running_pods(&self) -> bool {
        self.workloads.iter().any(Workload::has_running_pods)
    }

    /// Whether there is nothing to follow.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    fn owner_of(&mut self, object: &Value) -> Option<&mut Workload> {
        let uid = text(object, &["metadata", "uid"]);
        let owners = object["metadata"]["ownerReferences"].as_array();
        self.workloads.iter_mut().find(|workload| {
            workload.uid == uid
                || owners
                    .into_iter()
                    .flatten()
                    .any(|owner| text(owner, &["uid"]) == workload.uid)
        })
    }
}

/// `1.2s`, `3m04s`, `2h05m`.
pub fn duration_text(micros: i64) -> String {
    let tenths = micros.max(0) / 100_000;
    let seconds = tenths / 10;
    match seconds {
        0..60 => format!("{seconds}.{}s", tenths % 10),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests;
