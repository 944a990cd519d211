//! How long a failure is waited for before a pod is made in its place.
//!
//! Upstream keeps the number of failures in memory; here it is read from the pods that are there,
//! so that a restart forgets nothing.

use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::time::Time;

use super::count::{index_failures, is_failed};
use super::{View, is_tracked};

/// The first wait after a failure; it doubles with each further one.
const WAIT_MS: i64 = 10_000;
const WAIT_MS_MAX: i64 = 600_000;

impl View<'_> {
    /// When the job's failures since its last success have been waited for.
    pub(super) fn retry_at(&self) -> Option<Time> {
        let ends = |pods: &mut dyn Iterator<Item = &Arc<Pod>>| -> Vec<Time> {
            pods.map(|pod| ended_at(pod)).collect()
        };
        let succeeded = |pod: &&Arc<Pod>| pod.status.phase == PodPhase::Succeeded;
        let success = ends(&mut self.pods.iter().filter(succeeded))
            .into_iter()
            .max();
        let has_failed = |pod: &&Arc<Pod>| {
            // A pod without its finalizer that is being deleted was given up by us.
            is_failed(self.job, pod) && (is_tracked(pod) || !pod.is_terminating())
        };
        let failures: Vec<Time> = ends(&mut self.pods.iter().filter(has_failed))
            .into_iter()
            .filter(|ended| success.is_none_or(|success| *ended >= success))
            .collect();
        let last = failures.iter().max()?;
        Some(last.plus_ms(wait_ms(failures.len())))
    }
}

/// When the failures of an index have been waited for, by the last pod that failed for it.
pub(super) fn index_retry_at(last: &Pod) -> Time {
    let (counted, ignored) = index_failures(last);
    let failures = counted.saturating_add(ignored).saturating_add(1);
    ended_at(last).plus_ms(wait_ms(usize::try_from(failures).unwrap_or(1)))
}

fn wait_ms(failures: usize) -> i64 {
    let doublings = u32::try_from(failures.saturating_sub(1))
        .unwrap_or(0)
        .min(16);
    (WAIT_MS << doublings).min(WAIT_MS_MAX)
}

/// When a pod ended, as well as that can be told.
pub(super) fn ended_at(pod: &Pod) -> Time {
    let of_containers = || {
        let sidecars: Vec<&str> = pod
            .spec
            .init_containers
            .iter()
            .filter(|it| it.restart_policy.as_deref() == Some("Always"))
            .map(|it| &*it.name)
            .collect();
        let early = pod.status.init_container_statuses.iter();
        let early = early.filter(|it| sidecars.contains(&&*it.name));
        let all = pod.status.container_statuses.iter().chain(early);
        let ends: Option<Vec<Time>> = all
            .map(|it| {
                let ended = it.state.terminated.as_ref()?;
                pod.status.at(ended.finished_at)
            })
            .collect();
        ends?.into_iter().max()
    };
    let of_ready = || {
        let ready = pod.status.condition("Ready")?;
        let since = pod.status.at(ready.last_transition_time);
        since.filter(|_| &*ready.status == "False")
    };
    let of_deletion = || {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let deleted = pod.metadata.deletion_timestamp?;
        Some(deleted.plus_ms(grace.saturating_mul(-1_000)))
    };
    of_containers()
        .or_else(of_ready)
        .or_else(of_deletion)
        .or(pod.metadata.creation_timestamp)
        .unwrap_or_default()
}
