//! `batch/v1` Job: pods until enough have succeeded, or too many have failed.
//!
//! A pod carries the tracking finalizer until it is counted. One status write names the uids of
//! pods that have ended (an indexed job: the indexes); the next step takes the finalizers off;
//! then the names become numbers. So each pod counts exactly once, whatever dies between two
//! writes. A pod that the controller itself gives up loses its finalizer first, which is how it is
//! known not to count as a failure.
//!
//! An end is told twice: `SuccessCriteriaMet` or `FailureTarget` as soon as it is certain,
//! `Complete` or `Failed` once nothing is left that works or is still to be counted.

use std::sync::Arc;

use api::batch::Job;
use api::core::Pod;
use api::intent::{Intent, ObjectKey, Propagation};
use api::kind::Kind;
use mirror::{Change, Mirror};

mod backoff;
mod count;
mod ending;
mod indexes;
mod pods;
mod policy;
mod status;

use crate::adoption::{self, Owner};
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, conditions, write};
use count::Count;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "batch_job",
    component: "job-controller",
    tells_refused: &[],
    watches: &[Kind::BatchJob, Kind::Pod],
    keys,
    step,
};

/// Keeps a pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Who looks after a job that names nobody.
const MANAGER: &str = "kubernetes.io/job-controller";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::BatchJob {
        keys.push((*change.key).clone());
        let gone = change.after.is_none() || change.is_recreation();
        if let Some(before) = change.before.as_ref().filter(|_| gone) {
            let left = mirror.owned_by::<Pod>(before.uid());
            keys.extend(
                left.filter(|pod| is_tracked(pod))
                    .map(|pod| crate::keys::of_pod(pod)),
            );
        }
        return;
    }
    crate::keys::of_owner(change, Kind::BatchJob, keys);
    adoption::keys_of_adopters::<Job>(mirror, change, |job| job.spec.selector.as_ref(), keys);
    if let Some(pod) = change.after::<Pod>().filter(|pod| is_tracked(pod)) {
        let owner = pod.metadata.controller();
        let is_known = owner.is_some_and(|owner| {
            let job = mirror.get::<Job>(&pod.metadata.namespace, &owner.name);
            job.is_some_and(|job| job.metadata.uid == owner.uid)
        });
        if !is_known {
            keys.push((*change.key).clone());
        }
    }
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    job: &'a Job,
    pods: Vec<Arc<Pod>>,
    count: Count,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    if inputs.key.kind == Kind::Pod {
        return orphan(inputs);
    }
    let Some(job) = inputs.mirror.get::<Job>(namespace, name) else {
        return Step::idle();
    };
    if is_foreign(job) {
        return Step::idle();
    }
    let mut pods: Vec<Arc<Pod>> = inputs
        .mirror
        .owned_by::<Pod>(&job.metadata.uid)
        .cloned()
        .collect();
    if job.is_finished() {
        return finished(inputs, job, &pods);
    }
    if let Some(selector) = &job.spec.selector {
        let owner = Owner {
            kind: Kind::BatchJob,
            meta: &job.metadata,
            selector,
        };
        let claimed = adoption::claim::<Pod>(inputs.mirror, owner, Some(TRACKING), |_| true);
        if !claimed.intents.is_empty() {
            return Step::write(claimed.intents);
        }
        pods = claimed.own;
    }
    let count = Count::of(job, &pods);
    let view = View {
        inputs,
        job,
        pods,
        count,
    };
    view.step()
}

fn is_foreign(job: &Job) -> bool {
    let manager = job.spec.managed_by.as_deref();
    manager.is_some_and(|manager| manager != MANAGER)
}

/// A pod whose job has gone or ended: nobody counts it any more.
fn orphan(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(pod) = inputs.mirror.get::<Pod>(namespace, name) else {
        return Step::idle();
    };
    if !is_tracked(pod) {
        return Step::idle();
    }
    if let Some(owner) = pod.metadata.controller() {
        if Kind::find(&owner.api_version, &owner.kind) != Some(Kind::BatchJob) {
            return Step::idle();
        }
        let key = ObjectKey::new(Kind::BatchJob, namespace, &owner.name);
        let named = std::iter::once((key, &*owner.uid));
        if let Some(first) = inputs.before_presence(named, pod.metadata.revision()) {
            return first;
        }
        let job = inputs.mirror.get::<Job>(namespace, &owner.name);
        let job = job.filter(|job| job.metadata.uid == owner.uid);
        if job.is_some_and(|job| is_foreign(job) || !job.is_finished()) {
            return Step::idle();
        }
    }
    Step::write(vec![release(pod)])
}

/// A job that has ended: its pods are let go, and so is it in time.
fn finished(inputs: &Inputs<'_>, job: &Job, pods: &[Arc<Pod>]) -> Step {
    let tracked = pods.iter().filter(|pod| is_tracked(pod));
    let intents: Vec<Intent> = tracked
        .take(inputs.settings.writes_per_step_max)
        .map(|pod| release(pod))
        .collect();
    if !intents.is_empty() || job.metadata.deletion_timestamp.is_some() {
        return Step::write(intents);
    }
    let Some(seconds) = job.spec.ttl_seconds_after_finished else {
        return Step::idle();
    };
    let ended = ["Complete", "Failed"]
        .into_iter()
        .filter(|kind| conditions::is_true(&job.status.conditions, kind))
        .filter_map(|kind| conditions::find(&job.status.conditions, kind)?.last_transition_time)
        .max();
    let Some(due) = ended.map(|ended| ended.plus_ms(i64::from(seconds) * 1_000)) else {
        return Step::idle();
    };
    if inputs.now < due {
        return Step::wake_at(due);
    }
    let foreground = Propagation::Foreground;
    let meta = &job.metadata;
    Step::write(vec![write::delete_with(
        Kind::BatchJob,
        meta,
        None,
        foreground,
    )])
}

/// Whether a pod is still to be counted.
fn is_tracked(pod: &Pod) -> bool {
    let finalizers = &pod.metadata.finalizers;
    finalizers.iter().any(|finalizer| &**finalizer == TRACKING)
}

fn release(pod: &Pod) -> Intent {
    write::without_finalizer(Kind::Pod, &pod.metadata, TRACKING)
}

impl View<'_> {
    /// One stage: pods are made or removed first, then the status tells of it.
    fn step(&self) -> Step {
        let ending = self.ending();
        let is_leaving = self.job.metadata.deletion_timestamp.is_some();
        let mut intents = Vec::new();
        let mut wake_at = self.deadline().filter(|_| ending.is_none());
        if ending.is_some() {
            intents.extend(self.end_pods());
        } else if !is_leaving {
            let managed = self.manage();
            wake_at = match (wake_at, managed.wake_at) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            // What is refused must not keep the status from being told.
            if !managed.intents.is_empty() && self.inputs.last.failures == 0 {
                return Step::write(managed.intents).or_wake_at(wake_at);
            }
            intents.extend(managed.intents);
        }
        intents.extend(self.status(ending.as_ref()));
        intents.extend(self.releases(ending.as_ref()));
        Step::write(intents).or_wake_at(wake_at)
    }

    /// Lets go of pods that the stored status counts already, or that do not count.
    fn releases(&self, ending: Option<&ending::Ending>) -> Vec<Intent> {
        let is_heralded = ending.is_none_or(|ending| ending.is_heralded);
        let tracked = self.pods.iter().filter(|pod| is_tracked(pod));
        tracked
            .filter(|pod| is_heralded && self.is_releasable(pod, ending))
            .take(self.inputs.settings.writes_per_step_max)
            .map(|pod| release(pod))
            .collect()
    }

    /// Whether the stored status knows all that it has to know of a pod.
    fn is_releasable(&self, pod: &Pod, ending: Option<&ending::Ending>) -> bool {
        if !self.may_leave(pod, ending) {
            return false;
        }
        match self.account(pod, ending) {
            status::Account::Succeeded => self.count.uncounted[0].contains(&pod.metadata.uid),
            status::Account::Index(index) => self.count.stored_indexes.has(index),
            status::Account::Failed => self.count.uncounted[1].contains(&pod.metadata.uid),
            status::Account::Nothing => true,
        }
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::BatchJob,
            meta: &self.job.metadata,
            component: CONTROLLER.component,
            id,
        }
    }
}
