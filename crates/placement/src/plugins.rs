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
mod resourcequota;
pub(crate) mod sla;
pub(crate) mod task_topology;
pub(crate) mod tdm;
pub(crate) mod usage;

pub(crate) use gang::{PLUGIN as GANG, can_be_spared, ready_without_promises};
pub(crate) use pdb::beyond_budgets;

use std::sync::Arc;

use model::{Kind, QueueId, Tables, TaskId, Vector};

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
