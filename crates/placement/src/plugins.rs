//! All plugins, sorted by name.

pub(crate) mod binpack;
pub(crate) mod capacity;
mod cdp;
mod conformance;
pub(crate) mod deviceshare;
pub(crate) mod drf;
pub(crate) mod extender;
pub(crate) mod gang;
pub(crate) mod network_topology_aware;
pub(crate) mod nodegroup;
pub(crate) mod nodeorder;
pub(crate) mod numa_aware;
pub(crate) mod overcommit;
mod pdb;
pub(crate) mod predicates;
mod priority;
pub(crate) mod proportion;
pub(crate) mod rescheduling;
pub(crate) mod reserved;
pub(crate) mod resource_strategy_fit;
pub(crate) mod resourcequota;
pub(crate) mod sla;
pub(crate) mod task_topology;
pub(crate) mod tdm;
pub(crate) mod usage;

pub(crate) use gang::{
    OfRoles, PLUGIN as GANG, can_be_spared, is_beyond_the_start, missing, ready_without_promises,
};
pub(crate) use pdb::beyond_budgets;

use std::borrow::Cow;
use std::sync::Arc;

use model::{Kind, Queue, QueueId, Tables, TaskId, Vector};

use crate::plugin::Plugin;

/// All plugins, sorted by name.
pub const PLUGINS: &[Plugin] = &[
    binpack::PLUGIN,
    capacity::PLUGIN,
    cdp::PLUGIN,
    conformance::PLUGIN,
    deviceshare::PLUGIN,
    drf::PLUGIN,
    extender::PLUGIN,
    gang::PLUGIN,
    network_topology_aware::PLUGIN,
    nodegroup::PLUGIN,
    nodeorder::PLUGIN,
    numa_aware::PLUGIN,
    overcommit::PLUGIN,
    pdb::PLUGIN,
    predicates::PLUGIN,
    priority::PLUGIN,
    proportion::PLUGIN,
    rescheduling::PLUGIN,
    resource_strategy_fit::PLUGIN,
    resourcequota::PLUGIN,
    sla::PLUGIN,
    task_topology::PLUGIN,
    tdm::PLUGIN,
    usage::PLUGIN,
];

/// The names of those kinds that are asked for and, as `is_short` says, not to be had.
pub(crate) fn insufficient(
    tables: &Tables,
    asked: &Vector,
    is_short: impl Fn(Kind) -> bool,
) -> Vec<Arc<str>> {
    let wanted = asked.entries().filter(|(_, need)| *need > 0);
    let short = wanted.filter(|(kind, _)| is_short(*kind));
    short
        .map(|(kind, _)| tables.kinds().name(kind).clone())
        .collect()
}

/// The queue to which a task is charged, if there is one.
pub(crate) fn queue_of(tables: &Tables, task: TaskId) -> Option<QueueId> {
    tables.gang(tables.task(task).gang?).queue
}

/// What the tasks request together.
pub(crate) fn requests_of<'t>(tables: &'t Tables, tasks: &[TaskId]) -> Cow<'t, Vector> {
    if let [task] = tasks {
        return Cow::Borrowed(&tables.shape_of(*task).spec.requests);
    }
    let mut sum = Vector::ZERO;
    for task in tasks {
        sum.add(&tables.shape_of(*task).spec.requests);
    }
    Cow::Owned(sum)
}

/// The ceiling that the queue names of a kind. One of zero or less on cpu or memory means none, as upstream
/// has it.
pub(crate) fn named_ceiling(queue: &Queue, kind: Kind) -> Option<i64> {
    let may_be_nothing = kind != Kind::CPU && kind != Kind::MEMORY;
    let ceiling = queue.spec.capability.get(kind);
    ceiling.filter(|value| *value > 0 || may_be_nothing)
}

/// What limits a queue in a kind of which it may have `share`, if anything does. A share of the whole cluster
/// is no limit: it is room that is short then. Its own ceiling holds all the same: what runs on a node that
/// counts no more is still held. What is guaranteed to the queue is its own beyond that.
pub(crate) fn limit(tables: &Tables, queue: &Queue, kind: Kind, share: i64) -> Option<i64> {
    if share < tables.total().get(kind) {
        return Some(share);
    }
    let guarantee = queue.spec.guarantee.get(kind);
    named_ceiling(queue, kind).map(|ceiling| ceiling.max(guarantee))
}

/// `part / whole` in millionths; a whole of zero or less gives none.
pub(crate) fn millionths(part: i64, whole: i64) -> Option<i64> {
    if whole <= 0 {
        return None;
    }
    Some(match part.checked_mul(1_000_000) {
        Some(scaled) => scaled / whole,
        None => {
            let wide = i128::from(part) * 1_000_000 / i128::from(whole);
            i64::try_from(wide).unwrap_or(i64::MAX)
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn plugins_are_sorted() {
        assert!(super::PLUGINS.is_sorted_by_key(|plugin| plugin.name));
    }
}
