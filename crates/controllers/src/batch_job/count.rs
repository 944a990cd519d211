//! What the pods of a batch Job amount to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::batch::Job;
use api::core::{Pod, PodPhase};

use super::indexes::Indexes;
use super::policy::{self, Verdict};
use super::{backoff, is_tracked};
use crate::{conditions, ranking};

/// Annotation and label with a pod's completion index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation with the failures of a pod's index before it.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation with the failures of its index that did not count.
pub(super) const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Uids of pods, in the order in which a status names them. Each pod of a job is looked up in them.
#[derive(Clone, Default)]
pub(super) struct Uids {
    pub(super) list: Vec<Box<str>>,
    known: BTreeSet<Box<str>>,
}

impl Uids {
    pub(super) fn of(list: Vec<Box<str>>) -> Uids {
        let known = list.iter().cloned().collect();
        Uids { list, known }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.known.contains(uid)
    }

    pub(super) fn push(&mut self, uid: &str) {
        self.known.insert(uid.into());
        self.list.push(uid.into());
    }
}

/// The sums.
pub(super) struct Count {
    /// Pods that work, or will.
    pub(super) active: Vec<Arc<Pod>>,
    /// Pods under deletion that have not ended.
    pub(super) terminating: usize,
    /// Pods that have succeeded in all; of an indexed job, indexes.
    pub(super) succeeded: i32,
    /// Pods that have failed in all and count.
    pub(super) failed: i32,
    /// Uids in the stored status: succeeded, failed.
    pub(super) uncounted: [Uids; 2],
    /// Indexes in the stored status.
    pub(super) stored_indexes: Indexes,
    /// Indexes that have succeeded.
    pub(super) succeeded_indexes: Indexes,
    /// Indexes that have failed, where that is counted by index.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last failed pod of an index that waits for its next pod: it stays until that is there,
    /// because it knows how often the index has failed.
    pub(super) awaiting: BTreeMap<u32, Arc<Pod>>,
}

impl Count {
    /// Counts.
    pub(super) fn of(job: &Job, pods: &[Arc<Pod>]) -> Count {
        let stored = job.status.uncounted_terminated_pods.clone();
        let stored = stored.unwrap_or_default();
        let active = pods.iter().filter(|pod| ranking::is_active(pod));
        let mut count = Count {
            active: active.cloned().collect(),
            terminating: pods.iter().filter(|pod| ranking::is_ending(pod)).count(),
            succeeded: job
                .status
                .succeeded
                .saturating_add(int(stored.succeeded.len())),
            failed: job.status.failed.saturating_add(int(stored.failed.len())),
            uncounted: [stored.succeeded, stored.failed].map(Uids::of),
            stored_indexes: Indexes::default(),
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            awaiting: BTreeMap::new(),
        };
        for pod in pods.iter().filter(|pod| is_valid(job, pod)) {
            let uid = &pod.metadata.uid;
            let is_success = pod.status.phase == PodPhase::Succeeded;
            if is_success && !count.uncounted[0].contains(uid) {
                count.succeeded = count.succeeded.saturating_add(1);
            }
            let is_new_failure = is_failed(job, pod) && !count.uncounted[1].contains(uid);
            if is_new_failure && !matches!(policy::verdict(job, pod), Verdict::Ignore) {
                count.failed = count.failed.saturating_add(1);
            }
        }
        if let Some(completions) = completions(job) {
            count.indexed(job, pods, completions);
        }
        count
    }

    fn indexed(&mut self, job: &Job, pods: &[Arc<Pod>], completions: u32) {
        let valid = || pods.iter().filter(|pod| is_valid(job, pod));
        let stored = Indexes::read(&job.status.completed_indexes, completions);
        let new = valid().filter(|pod| pod.status.phase == PodPhase::Succeeded);
        self.succeeded_indexes = stored.with(new.filter_map(|pod| index_of(pod)));
        self.stored_indexes = stored;
        self.succeeded = i32::try_from(self.succeeded_indexes.len()).unwrap_or(i32::MAX);
        let Some(limit) = job.spec.backoff_limit_per_index else {
            return;
        };
        let text = job.status.failed_indexes.as_deref().unwrap_or("");
        let failed = valid().filter(|pod| is_index_failed(job, pod, limit));
        let failed_indexes =
            Indexes::read(text, completions).with(failed.filter_map(|pod| index_of(pod)));
        let working: BTreeSet<u32> = self.active.iter().filter_map(|pod| index_of(pod)).collect();
        for pod in valid().filter(|pod| is_failed(job, pod)) {
            let Some(index) = index_of(pod) else {
                continue;
            };
            let is_settled = self.succeeded_indexes.has(index)
                || failed_indexes.has(index)
                || working.contains(&index);
            let is_later = self.awaiting.get(&index).is_none_or(|known| {
                let sum = |pod: &Pod| {
                    let (counted, ignored) = index_failures(pod);
                    counted.saturating_add(ignored)
                };
                sum(known) <= sum(pod) && backoff::ended_at(pod) >= backoff::ended_at(known)
            });
            if !is_settled && is_later {
                self.awaiting.insert(index, Arc::clone(pod));
            }
        }
        self.failed_indexes = Some(failed_indexes);
    }
}

/// Completions of an indexed job.
pub(super) fn completions(job: &Job) -> Option<u32> {
    let is_indexed = job.spec.completion_mode.as_deref() == Some("Indexed");
    is_indexed.then(|| u32::try_from(job.spec.completions.unwrap_or(0)).unwrap_or(0))
}

/// Whether a pod is still to be counted and has a place to be counted in.
fn is_valid(job: &Job, pod: &Pod) -> bool {
    is_tracked(pod) && has_place(job, pod)
}

/// Whether a pod of an indexed job has an index of the job.
pub(super) fn has_place(job: &Job, pod: &Pod) -> bool {
    completions(job).is_none_or(|completions| index_of(pod).is_some_and(|it| it < completions))
}

/// Whether a pod is replaced only once it has ended.
pub(super) fn replaces_ended_only(job: &Job) -> bool {
    job.spec.pod_replacement_policy.as_deref() == Some("Failed")
        || job.spec.pod_failure_policy.is_some()
}

/// Whether a pod counts as failed.
pub(super) fn is_failed(job: &Job, pod: &Pod) -> bool {
    if pod.status.phase == PodPhase::Failed {
        // Pods that an early success ends are not to blame for it.
        return !(is_met(job) && pod.is_terminating());
    }
    // A pod under deletion may never get to say that it has failed.
    ranking::is_ending(pod) && !replaces_ended_only(job) && !is_met(job)
}

fn is_met(job: &Job) -> bool {
    conditions::is_true(&job.status.conditions, "SuccessCriteriaMet")
}

fn is_index_failed(job: &Job, pod: &Pod, limit: i32) -> bool {
    if !is_failed(job, pod) {
        return false;
    }
    match policy::verdict(job, pod) {
        Verdict::FailIndex => true,
        Verdict::Ignore => false,
        Verdict::Count | Verdict::FailJob(_) => index_failures(pod).0 >= limit,
    }
}

/// The completion index of a pod.
pub(super) fn index_of(pod: &Pod) -> Option<u32> {
    pod.metadata.annotations.get(INDEX)?.parse().ok()
}

/// How often the index of a pod had failed before: failures that count, and others.
pub(super) fn index_failures(pod: &Pod) -> (i32, i32) {
    let number = |name: &str| {
        let text = pod.metadata.annotations.get(name);
        let number = text.and_then(|text| text.parse::<i32>().ok());
        number.filter(|number| *number >= 0).unwrap_or(0)
    };
    (number(INDEX_FAILURES), number(INDEX_IGNORED))
}

/// A count as the wire has it.
pub(super) fn int(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
