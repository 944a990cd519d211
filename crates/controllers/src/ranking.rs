//! Which pods go first when there are too many: those that have come least far.

use std::cmp::Reverse;
use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::time::Time;

/// Whether a pod works or will: it has neither ended nor is under deletion.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !pod.is_finished() && !pod.is_terminating()
}

/// Whether a pod is under deletion and has not ended.
pub(crate) fn is_ending(pod: &Pod) -> bool {
    !pod.is_finished() && pod.is_terminating()
}

/// How ages are told apart.
#[derive(Clone, Copy)]
pub(crate) enum Ages {
    /// To the second.
    Exact,
    /// By their order of magnitude at that time, so that not always the youngest go.
    Magnitude(Time),
}

/// Sorts pods: what comes first goes first. `cost` makes a pod dearer, `neighbours` cheaper.
pub(crate) fn sort(
    pods: &mut [Arc<Pod>],
    ages: Ages,
    cost: impl Fn(&Pod) -> i64,
    neighbours: impl Fn(&Pod) -> usize,
) {
    pods.sort_by_cached_key(|pod| {
        (
            (!pod.spec.node_name.is_empty(), phase(pod), pod.is_ready()),
            cost(pod),
            Reverse(neighbours(pod)),
            age(ages, ready_since(pod)),
            Reverse(restarts(pod)),
            age(ages, pod.metadata.creation_timestamp),
            pod.metadata.uid.clone(),
        )
    });
}

fn phase(pod: &Pod) -> u8 {
    match pod.status.phase {
        PodPhase::Pending | PodPhase::Unset => 0,
        PodPhase::Unknown => 1,
        _ => 2,
    }
}

/// Greater for older; 0 where the time is not known.
fn age(ages: Ages, since: Option<Time>) -> i64 {
    let Some(since) = since else {
        return 0;
    };
    match ages {
        Ages::Exact => i64::MAX - since.micros(),
        Ages::Magnitude(now) => {
            let elapsed = now.micros().saturating_sub(since.micros());
            let nanos = elapsed.saturating_mul(1_000);
            1 + nanos.checked_ilog2().map_or(0, i64::from)
        }
    }
}

/// Since when a pod has been ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Time> {
    let ready = pod.status.condition("Ready");
    let ready = ready.filter(|it| &*it.status == "True")?;
    pod.status.at(ready.last_transition_time)
}

/// When a pod has been, or will have been, ready for `seconds`; `None` while it is not ready.
pub(crate) fn available_at(pod: &Pod, seconds: i32) -> Option<Time> {
    if !pod.is_ready() {
        return None;
    }
    if seconds == 0 {
        return Some(Time(i64::MIN));
    }
    let since = ready_since(pod)?;
    Some(since.plus_ms(i64::from(seconds) * 1_000))
}

fn restarts(pod: &Pod) -> i32 {
    let counts = pod.status.container_statuses.iter();
    counts.map(|it| it.restart_count).max().unwrap_or(0)
}
