//! Which tasks of a gang actions try to place.

use model::{GangId, TaskId};

use crate::cycle::Cycle;

/// Which tasks to place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Tasks that request resources.
    Something,
    /// Tasks that request none.
    Nothing,
}

/// Tasks that wait for room, in order.
pub(crate) fn waiting_tasks(cycle: &Cycle<'_, '_>, gang: GangId, asking: Asking) -> Vec<TaskId> {
    let is_nothing = asking == Asking::Nothing;
    let (rules, view) = (cycle.rules, cycle.view());
    // Most gangs have none of these, and know it without a look at their tasks.
    if is_nothing && view.tables.gang(gang).census.pending_best_effort == 0 {
        return Vec::new();
    }
    rules.waiting(view, gang, |task| task.best_effort == is_nothing)
}
