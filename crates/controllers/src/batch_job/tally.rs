//! What the pods of a batch Job amount to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::batch::Job;
use api::core::{Pod, PodPhase};
use api::time::Time;
use serde_json::{Value, json};

use super::{has_finalizer, indexes};

/// The first wait after a failure; it doubles with each further one.
const BACKOFF_MS: i64 = 10_000;
const BACKOFF_MS_MAX: i64 = 600_000;
/// How many pods one status write counts at most.
const UNCOUNTED_MAX: usize = 500;

/// The sums.
pub(super) struct Tally {
    /// Pods that have succeeded in all.
    pub(super) succeeded: i32,
    /// Pods that have failed in all.
    pub(super) failed: i32,
    /// Indexes that have succeeded.
    pub(super) completed: BTreeSet<u32>,
    /// Pods that work, or will.
    pub(super) active: Vec<Arc<Pod>>,
    /// Pods that work, but were given up by us.
    pub(super) dismissed: Vec<Arc<Pod>>,
    /// Pods that the stored status counts and that still carry the finalizer.
    pub(super) counted: Vec<Arc<Pod>>,
    /// Pods under deletion.
    pub(super) terminating: usize,
    /// Uids that the next status counts for the first time or keeps: succeeded, failed.
    pub(super) uncounted: [Vec<Box<str>>; 2],
    failures: BTreeMap<Time, u32>,
    restarts: i64,
}

impl Tally {
    /// Counts.
    pub(super) fn read(job: &Job, pods: &[Arc<Pod>]) -> Tally {
        let stored = job
            .status
            .uncounted_terminated_pods
            .clone()
            .unwrap_or_default();
        let is_indexed = job.spec.completion_mode.as_deref() == Some("Indexed");
        let mut tally = Tally {
            succeeded: job.status.succeeded,
            failed: job.status.failed,
            completed: indexes::read(&job.status.completed_indexes),
            active: Vec::new(),
            dismissed: Vec::new(),
            counted: Vec::new(),
            terminating: pods
                .iter()
                .filter(|pod| pod.is_terminating() && !pod.is_finished())
                .count(),
            uncounted: [Vec::new(), Vec::new()],
            failures: BTreeMap::new(),
            restarts: 0,
        };
        for pod in pods {
            let uid = &pod.metadata.uid;
            let is_counted = stored.succeeded.contains(uid) || stored.failed.contains(uid);
            let Some(side) = ended(pod) else {
                tally.work(pod);
                continue;
            };
            if side == 1 {
                tally.note_failure(pod);
            }
            if !has_finalizer(pod) {
                continue;
            }
            if is_counted {
                tally.counted.push(Arc::clone(pod));
                tally.uncounted[side].push(uid.clone());
            } else if tally.uncounted.iter().map(Vec::len).sum::<usize>() < UNCOUNTED_MAX {
                tally.count(
                    side,
                    is_indexed.then(|| index_of(pod)).flatten(),
                    is_indexed,
                    uid,
                );
            }
        }
        tally
    }

    fn work(&mut self, pod: &Arc<Pod>) {
        let statuses = &pod.status.container_statuses;
        self.restarts += statuses
            .iter()
            .map(|it| i64::from(it.restart_count))
            .sum::<i64>();
        let list = match has_finalizer(pod) {
            true => &mut self.active,
            false => &mut self.dismissed,
        };
        list.push(Arc::clone(pod));
    }

    fn count(&mut self, side: usize, index: Option<u32>, is_indexed: bool, uid: &str) {
        self.uncounted[side].push(uid.into());
        if side == 1 {
            self.failed += 1;
            return;
        }
        // Of several pods of one index only the first success counts.
        let is_new = match index {
            Some(index) => self.completed.insert(index),
            None => !is_indexed,
        };
        self.succeeded += i32::from(is_new);
    }

    fn note_failure(&mut self, pod: &Pod) {
        let ends = pod.status.container_statuses.iter();
        let ended = ends
            .filter_map(|status| status.state.terminated.as_ref()?.finished_at)
            .max()
            .or(pod.metadata.deletion_timestamp)
            .or(pod.metadata.creation_timestamp)
            .unwrap_or_default();
        *self.failures.entry(ended).or_default() += 1;
    }

    /// Whether there were more failures than allowed.
    pub(super) fn exceeds(&self, limit: i32) -> bool {
        // Containers that are restarted in place count like pods, as upstream has it.
        let is_restarting = match limit {
            0 => self.restarts > 0,
            limit => self.restarts >= i64::from(limit),
        };
        self.failed > limit || is_restarting
    }

    /// When a failure has been waited for; `None` where nothing keeps a new pod from starting.
    pub(super) fn retry_at(&self, now: Time) -> Option<Time> {
        let (last, _) = self.failures.last_key_value()?;
        let doublings = u32::try_from(self.failed - 1).unwrap_or(0).min(16);
        let wait = (BACKOFF_MS << doublings).min(BACKOFF_MS_MAX);
        let due = last.plus_ms(wait);
        (now < due).then_some(due)
    }
}

/// 0 for a success, 1 for a failure; `None` while a pod works.
fn ended(pod: &Pod) -> Option<usize> {
    match pod.status.phase {
        PodPhase::Succeeded => Some(0),
        PodPhase::Failed => Some(1),
        // A pod that somebody else deletes counts as failed at once.
        _ if pod.is_terminating() => Some(1),
        _ => None,
    }
}

/// The completion index of a pod.
pub(super) fn index_of(pod: &Pod) -> Option<u32> {
    let text = pod.metadata.annotations.get(super::pods::INDEX)?;
    text.parse().ok()
}

/// The part of a status that this controller writes.
pub(super) struct Shown {
    pub(super) conditions: Value,
    pub(super) start_time: Option<Time>,
    pub(super) completion_time: Option<Time>,
    pub(super) active: i32,
    pub(super) ready: Option<i32>,
    pub(super) terminating: Option<i32>,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) completed_indexes: String,
    pub(super) uncounted: [Vec<Box<str>>; 2],
}

/// As JSON; what is empty is left out.
pub(super) fn wire(shown: &Shown) -> Value {
    let mut status = json!({
        "ready": shown.ready,
        "terminating": shown.terminating,
        "uncountedTerminatedPods": {},
    });
    let numbers = [
        ("active", shown.active),
        ("succeeded", shown.succeeded),
        ("failed", shown.failed),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        status[field] = json!(number);
    }
    for (field, time) in [
        ("startTime", shown.start_time),
        ("completionTime", shown.completion_time),
    ] {
        if let Some(time) = time {
            status[field] = json!(time);
        }
    }
    if shown
        .conditions
        .as_array()
        .is_some_and(|list| !list.is_empty())
    {
        status["conditions"] = shown.conditions.clone();
    }
    if !shown.completed_indexes.is_empty() {
        status["completedIndexes"] = json!(shown.completed_indexes);
    }
    for (field, uids) in ["succeeded", "failed"].iter().zip(&shown.uncounted) {
        if !uids.is_empty() {
            status["uncountedTerminatedPods"][*field] = json!(uids);
        }
    }
    status
}
