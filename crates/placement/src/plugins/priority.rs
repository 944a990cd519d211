//! Priority: the more important gang, and the more important task of a gang, comes first and may take
//! the room of lesser ones.

use std::cmp::Ordering;

use model::{GangId, TaskId};

use crate::plugin::{Claimant, Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "priority",
    job_order: Some(job_order),
    task_order: Some(task_order),
    job_starving: Some(job_starving),
    preemptable: Some(preemptable),
    never_preempted_by: Some(is_above),
    preempts_like: Some(importance),
    ..Plugin::NONE
};

fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    view.tables
        .gang(b)
        .priority
        .cmp(&view.tables.gang(a).priority)
}

fn task_order(view: View<'_>, a: TaskId, b: TaskId) -> Ordering {
    view.tables
        .task(b)
        .priority
        .cmp(&view.tables.task(a).priority)
}

/// A gang some of whose tasks have no room yet.
fn job_starving(view: View<'_>, id: GangId) -> bool {
    let gang = view.tables.gang(id);
    let served = view.tables.ready(id) as usize + gang.count(model::Phase::Pipelined) as usize;
    served < gang.tasks.len()
}

/// Tasks of a lesser gang, and lesser tasks of the same gang.
fn preemptable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    for (task, allowed) in tasks.iter().zip(allowed) {
        *allowed &= match standing(view, claimant, *task) {
            Some(order) => order.is_lt(),
            None => false,
        };
    }
}

/// Beyond upstream, where a tier below may decide when this one finds nobody: whoever is more
/// important never makes room, so that no two gangs drive each other out in turns.
fn is_above(view: View<'_>, claimant: Claimant, task: TaskId) -> bool {
    standing(view, claimant, task).is_none_or(Ordering::is_gt)
}

fn importance(view: View<'_>, gang: GangId) -> u64 {
    u64::from(view.tables.gang(gang).priority.cast_unsigned())
}

/// How important the task is beside the claimant's; tasks of one gang by their own priorities.
fn standing(view: View<'_>, claimant: Claimant, task: TaskId) -> Option<Ordering> {
    let row = view.tables.task(task);
    let gang = row.gang?;
    if gang == claimant.gang {
        return Some(row.priority.cmp(&view.tables.task(claimant.task).priority));
    }
    let theirs = view.tables.gang(gang).priority;
    Some(theirs.cmp(&view.tables.gang(claimant.gang).priority))
}
