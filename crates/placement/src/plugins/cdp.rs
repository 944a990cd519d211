//! CDP, cooldown protection: who has just got its node is left alone for as long as its pod says.

use model::{GangId, Phase, TaskId, Time};

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

fn is_left_alone(view: View<'_>, task: TaskId) -> bool {
    let task = view.tables.task(task);
    let until = task.left_alone_until();
    // Who has a node of which nobody has told since when has just got it.
    task.cooldown_ms > 0 && until.is_none_or(|until| until > view.state.now)
}

fn has_cooled_down(view: View<'_>, _: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    for (task, allowed) in tasks.iter().zip(allowed) {
        *allowed &= !is_left_alone(view, *task);
    }
}

/// Whoever lacks room looks again when somebody may be evicted who may not be now.
fn somebody_cools_down(view: View<'_>, gang: GangId) -> Option<Time> {
    let lacks_room = view.tables.gang(gang).count(Phase::Pending) > 0;
    view.tables
        .next_cooled(view.state.now)
        .filter(|_| lacks_room)
}
