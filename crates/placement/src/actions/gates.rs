//! Gates that queues open: a pod that asks for it is held back by a scheduling gate until its queue has
//! room for it, and what it requests is kept for it from then on.

use std::sync::Arc;

use model::{GangId, Gate, Phase, QueueId, Reason, TaskId};

use crate::cycle::{Cycle, Lacks, Outcome};

/// Opens the gates of those tasks for which the queue has room, in the order of the tasks; why the first
/// of the others stays behind its own.
pub(super) fn open(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Reason> {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    if row.queue_gated == 0 {
        return None;
    }
    let is_closed = |id: &TaskId| {
        let task = view.tables.task(*id);
        task.phase == Phase::Pending && task.gate == Gate::Closed
    };
    let mut tasks: Vec<TaskId> = row.tasks.iter().copied().filter(is_closed).collect();
    tasks.sort_by(|a, b| cycle.rules.task_order(view, *a, *b));
    let mut first = None;
    for task in tasks {
        match cycle.rules.opens(cycle.view(), queue, task) {
            None => return None,
            Some(Ok(())) => {
                cycle.trial.open(task);
                // What others were found to have room for may be kept for this one now.
                cycle.moved();
            }
            Some(Err(reason)) => first = first.or(Some(reason)),
        }
    }
    first
}

/// Says what closed gates wait for, where nothing else is said of the gang.
pub(super) fn tell(cycle: &mut Cycle<'_, '_>, gang: GangId, reason: Reason) {
    let says_more = match cycle.outcomes.get(&gang) {
        None | Some(Outcome::Whole | Outcome::Entered) => false,
        Some(Outcome::WaitsForObjects(said)) => !matches!(**said, Reason::Gated { .. }),
        Some(_) => true,
    };
    if says_more {
        return;
    }
    let lacks = Lacks {
        shares: true,
        ..Lacks::default()
    };
    let outcome = match cycle.is_enough(gang) {
        true => Outcome::Extras(Arc::new(reason), lacks),
        false => Outcome::WaitsForShares(Arc::new(reason)),
    };
    cycle.outcomes.insert(gang, outcome);
}
