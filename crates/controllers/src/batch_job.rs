//! `batch/v1` Job: pods until enough have succeeded, or too many have failed.
//!
//! A pod carries the tracking finalizer until it is counted. One status write counts finished pods
//! and names their uids; the next step takes the finalizers off; then the names are dropped. So
//! each pod counts exactly once, whatever dies between two writes.
//! A pod that the controller removes loses its finalizer first, which is how it is known not to
//! count as a failure.

use std::sync::Arc;

use api::batch::Job;
use api::core::{Pod, condition};
use api::intent::{Intent, ObjectKey, Propagation};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

mod conditions;
mod ending;
mod indexes;
mod pods;
mod tally;

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};
use ending::Ending;
use tally::Tally;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "batch_job",
    watches: &[Kind::BatchJob, Kind::Pod],
    keys,
    step,
};

/// Keeps a pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Who looks after a job that names nobody.
const MANAGER: &str = "kubernetes.io/job-controller";

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::BatchJob => keys.push((*change.key).clone()),
        _ => crate::keys::of_owner(change, Kind::BatchJob, keys),
    }
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    job: &'a Job,
    pods: Vec<Arc<Pod>>,
    tally: Tally,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(job) = inputs.mirror.get::<Job>(namespace, name) else {
        return Step::idle();
    };
    let is_foreign = job
        .spec
        .managed_by
        .as_deref()
        .is_some_and(|manager| manager != MANAGER);
    if is_foreign {
        return Step::idle();
    }
    let pods: Vec<Arc<Pod>> = inputs
        .mirror
        .owned_by::<Pod>(&job.metadata.uid)
        .cloned()
        .collect();
    if job.metadata.deletion_timestamp.is_some() || job.is_finished() {
        return finished(inputs, job, &pods);
    }
    let tally = Tally::read(job, &pods);
    let view = View {
        inputs,
        job,
        pods,
        tally,
    };
    view.step()
}

/// A job that has ended, or is being deleted: its pods are let go, and so is it in time.
fn finished(inputs: &Inputs<'_>, job: &Job, pods: &[Arc<Pod>]) -> Step {
    let mut intents: Vec<Intent> = Vec::new();
    for pod in pods.iter().take(inputs.settings.writes_per_step_max) {
        if has_finalizer(pod) {
            intents.push(write::without_finalizer(Kind::Pod, &pod.metadata, TRACKING));
        } else if !pod.is_finished() && !pod.is_terminating() {
            intents.push(write::delete(Kind::Pod, &pod.metadata));
        }
    }
    if !intents.is_empty() || job.metadata.deletion_timestamp.is_some() {
        return Step::write(intents);
    }
    let Some(seconds) = job.spec.ttl_seconds_after_finished else {
        return Step::idle();
    };
    let ended = ["Complete", "Failed"]
        .into_iter()
        .filter_map(|kind| condition(&job.status.conditions, kind)?.last_transition_time)
        .max();
    let Some(due) = ended.map(|ended| ended.plus_ms(i64::from(seconds) * 1_000)) else {
        return Step::idle();
    };
    if inputs.now < due {
        return Step::wake_at(due);
    }
    let foreground = Propagation::Foreground;
    Step::write(vec![write::delete_with(
        Kind::BatchJob,
        &job.metadata,
        None,
        foreground,
    )])
}

fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata
        .finalizers
        .iter()
        .any(|finalizer| &**finalizer == TRACKING)
}

impl View<'_> {
    fn step(&self) -> Step {
        let now = self.inputs.now;
        let is_suspended = self.job.spec.suspend == Some(true);
        let ending = self.ending();
        let mut intents = Vec::new();
        let (status, notes) = self.status(ending.as_ref(), is_suspended);
        let old = self.wire_status();
        let is_settled = match write::merge_difference(&old, &status) {
            Some(patch) => {
                let meta = &self.job.metadata;
                intents.push(write::patch_status(Kind::BatchJob, meta, patch));
                intents.extend(notes);
                false
            }
            None => true,
        };
        intents.extend(self.release());
        let mut wake_at = self.deadline().filter(|due| *due > now && ending.is_none());
        if is_settled && (ending.is_some() || is_suspended) {
            intents.extend(self.remove(self.tally.active.len()));
        } else if is_settled {
            let (more, retry_at) = self.balance();
            intents.extend(more);
            wake_at = match (wake_at, retry_at) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Step::write(intents).or_wake_at(wake_at)
    }

    /// Creates or removes pods, so that as many are active as should be; and when to go on, where
    /// failures make it wait.
    fn balance(&self) -> (Vec<Intent>, Option<Time>) {
        let wanted = self.wanted_active();
        let active = self.tally.active.len();
        if active > wanted {
            return (self.remove(active - wanted), None);
        }
        if active == wanted {
            return (Vec::new(), None);
        }
        if let Some(due) = self.tally.retry_at(self.inputs.now) {
            return (Vec::new(), Some(due));
        }
        let count = (wanted - active).min(self.inputs.settings.writes_per_step_max);
        let mut intents = pods::creates(self.job, &self.pods, &self.tally, count);
        let notes: Vec<Intent> = intents
            .iter()
            .map(|intent| {
                let message = format!("Created pod: {}", intent.target.name);
                self.occasion("")
                    .normal("SuccessfulCreate", &message, self.inputs.now)
            })
            .collect();
        intents.extend(notes);
        (intents, None)
    }

    fn wanted_active(&self) -> usize {
        let parallelism = self.job.spec.parallelism.unwrap_or(1).max(0);
        let wanted = match self.job.spec.completions {
            Some(completions) => parallelism.min((completions - self.tally.succeeded).max(0)),
            // Once one pod of a work queue has succeeded, no new ones are made.
            None if self.tally.succeeded > 0 => {
                parallelism.min(i32::try_from(self.tally.active.len()).unwrap_or(i32::MAX))
            }
            None => parallelism,
        };
        usize::try_from(wanted).unwrap_or(0)
    }

    /// Takes the finalizer off active pods, and deletes those that have lost it.
    fn remove(&self, count: usize) -> Vec<Intent> {
        let mut youngest: Vec<&Arc<Pod>> = self.tally.active.iter().collect();
        youngest.sort_by_key(|pod| {
            (
                !pod.spec.node_name.is_empty(),
                pod.is_ready(),
                pod.metadata.name.clone(),
            )
        });
        let mut intents = Vec::new();
        for pod in youngest.into_iter().take(count) {
            if has_finalizer(pod) {
                intents.push(write::without_finalizer(Kind::Pod, &pod.metadata, TRACKING));
            }
        }
        for pod in &self.tally.dismissed {
            intents.push(write::delete(Kind::Pod, &pod.metadata));
            let message = format!("Deleted pod: {}", pod.metadata.name);
            let occasion = self.occasion("");
            intents.push(occasion.normal("SuccessfulDelete", &message, self.inputs.now));
        }
        intents
    }

    /// Lets go of pods that the status counts already.
    fn release(&self) -> Vec<Intent> {
        let counted = self.tally.counted.iter();
        let intents =
            counted.map(|pod| write::without_finalizer(Kind::Pod, &pod.metadata, TRACKING));
        intents
            .take(self.inputs.settings.writes_per_step_max)
            .collect()
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::BatchJob,
            meta: &self.job.metadata,
            component: "job-controller",
            id,
        }
    }

    /// The status as it is, as JSON.
    fn wire_status(&self) -> Value {
        let status = &self.job.status;
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        tally::wire(&tally::Shown {
            conditions: json!(
                status
                    .conditions
                    .iter()
                    .map(conditions::wire)
                    .collect::<Vec<_>>()
            ),
            start_time: status.start_time,
            completion_time: status.completion_time,
            active: status.active,
            ready: status.ready,
            terminating: status.terminating,
            succeeded: status.succeeded,
            failed: status.failed,
            completed_indexes: status.completed_indexes.to_string(),
            uncounted: [uncounted.succeeded, uncounted.failed],
        })
    }

    /// The status as it should be, and what there is to tell about the change.
    fn status(&self, ending: Option<&Ending>, is_suspended: bool) -> (Value, Vec<Intent>) {
        let now = Time::from_seconds(self.inputs.now.micros().div_euclid(1_000_000));
        let mut list: Vec<Value> = self
            .job
            .status
            .conditions
            .iter()
            .map(conditions::wire)
            .collect();
        let mut notes = Vec::new();
        let mut completion_time = self.job.status.completion_time;
        let mut start_time = self.job.status.start_time;
        if let Some(ending) = ending {
            conditions::set(
                &mut list,
                ending.herald,
                "True",
                ending.reason,
                &ending.message,
                now,
            );
            if self.has_ended() {
                let (kind, reason) = (ending.condition, ending.reason);
                conditions::set(&mut list, kind, "True", reason, &ending.message, now);
                completion_time = completion_time.or((kind == "Complete").then_some(now));
                notes.push(self.last_note(ending, now));
            }
        } else if is_suspended {
            start_time = None;
            let (reason, message) = ("JobSuspended", "Job suspended");
            if conditions::set(&mut list, "Suspended", "True", reason, message, now) {
                let occasion = now.seconds_text();
                notes.push(self.occasion(&occasion).normal("Suspended", message, now));
            }
        } else {
            start_time = start_time.or(Some(now));
            let was = condition(&self.job.status.conditions, "Suspended");
            if was.is_some_and(|it| &*it.status == "True") {
                let (reason, message) = ("JobResumed", "Job resumed");
                conditions::set(&mut list, "Suspended", "False", reason, message, now);
                let occasion = now.seconds_text();
                notes.push(self.occasion(&occasion).normal("Resumed", message, now));
                start_time = Some(now);
            }
        }
        let tally = &self.tally;
        let int = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let shown = tally::Shown {
            conditions: Value::Array(list),
            start_time,
            completion_time,
            active: int(tally.active.len() + tally.dismissed.len()),
            ready: Some(int(tally
                .active
                .iter()
                .filter(|pod| pod.is_ready())
                .count())),
            terminating: Some(int(tally.terminating)),
            succeeded: tally.succeeded,
            failed: tally.failed,
            completed_indexes: indexes::write(&tally.completed),
            uncounted: tally.uncounted.clone(),
        };
        (tally::wire(&shown), notes)
    }

    /// Whether nothing of the job is left that works or is still to be counted.
    fn has_ended(&self) -> bool {
        self.tally.active.is_empty()
            && self.tally.dismissed.is_empty()
            && self.tally.terminating == 0
            && self.tally.uncounted.iter().all(Vec::is_empty)
    }

    fn last_note(&self, ending: &Ending, now: Time) -> Intent {
        let occasion = self.occasion("end");
        match ending.condition {
            "Complete" => occasion.normal("Completed", "Job completed", now),
            _ => occasion.warning(ending.reason, &ending.message, now),
        }
    }
}
