//! CDP, cooldown protection: who has just started is left alone for as long as its pod says.

use model::{GangId, Phase, Task, TaskId, Time};

use crate::plugin::{Claimant, Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "cdp",
    preemptable: Some(has_cooled_down),
    reclaimable: Some(has_cooled_down),
    // Upstream: a tier further down decides where this one finds nobody, and knows of no cooldown.
    never_preempted: Some(is_left_alone),
    never_reclaimed: Some(is_left_alone),
    wakes_at: Some(somebody_cools_down),
    ..Plugin::NONE
};

/// Until when the task is left alone. Upstream: one that does not say when it started is not.
fn until(task: &Task) -> Option<Time> {
    let at = task.started.filter(|_| task.cooldown_ms > 0)?;
    Some(at.plus_millis(task.cooldown_ms))
}

fn is_left_alone(view: View<'_>, task: TaskId) -> bool {
    until(view.tables.task(task)).is_some_and(|until| until > view.state.now)
}

fn has_cooled_down(view: View<'_>, _: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    for (task, allowed) in tasks.iter().zip(allowed) {
        *allowed &= !is_left_alone(view, *task);
    }
}

/// Whoever lacks room looks again when somebody may be evicted who may not be now.
fn somebody_cools_down(view: View<'_>, gang: GangId) -> Option<Time> {
    let lacks_room = view.tables.gang(gang).count(Phase::Pending) > 0;
    let tasks = view.tables.tasks().filter(|_| lacks_room);
    let held = tasks.filter(|(_, task)| task.phase.is_allocated());
    let times = held.filter_map(|(_, task)| until(task));
    times.filter(|at| *at > view.state.now).min()
}
