//! Room that is kept for who cannot start yet: promised, promised again while it holds, and taken back.

use model::{GangId, Mark, NodeId, Phase, Task, TaskId};

use crate::actions::attempt::Attempt;
use crate::clearing::will_take;
use crate::cycle::{Cycle, Outcome};
use crate::plugins::{deviceshare, is_beyond_the_start, missing, queue_of};

/// If the gang fits once tasks on their way out are gone, keeps that room for it; else how many of its tasks
/// would have a place then.
pub(super) fn promise(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    mark: Mark,
    attempt: &Attempt,
) -> Result<Outcome, u32> {
    let in_parts = !cycle.trial.tables().gang(gang).spec.sub_groups.is_empty();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let now = number(attempt.places.len());
    if attempt.shares.is_some() || attempt.homeless.is_empty() || in_parts {
        return Err(now);
    }
    let here = cycle.trial.mark();
    let tables = cycle.trial.tables();
    let leaving: Vec<NodeId> = tables
        .nodes()
        .filter(|(_, node)| !node.releasing.is_zero())
        .filter(|(id, _)| cycle.scope.as_ref().is_none_or(|scope| scope.contains(*id)))
        .map(|(id, _)| id)
        .collect();
    if leaving.is_empty() {
        return Err(now);
    }
    let mut places = attempt.places.clone();
    for task in &attempt.homeless {
        let view = cycle.view();
        let row = view.tables.gang(gang);
        if missing(view.tables, gang) == 0 {
            break;
        }
        let shape = view.tables.shape_of(*task);
        let is_beyond = is_beyond_the_start(view.tables, gang, view.tables.task(*task));
        if is_beyond || shape.spec.is_coupled() || deviceshare::concerns(view, *task) {
            continue;
        }
        // What is promised counts in the queue: of tasks that are alike only the first was asked about.
        let refused = row
            .queue
            .and_then(|queue| cycle.rules.allocatable(view, queue, *task));
        let mut nodes = leaving.iter().copied().filter(|_| refused.is_none());
        let node = nodes.find(|node| will_take(cycle, *task, *node));
        if let Some(node) = node {
            cycle.promise(*task, node);
            places.push((*task, node));
        }
    }
    if missing(cycle.trial.tables(), gang) > 0 {
        cycle.trial.rewind(here);
        return Err(number(places.len()));
    }
    // None of it starts yet: what would fit now is kept too, as a promise.
    cycle.trial.rewind(mark);
    let tasks = number(places.len());
    for (task, node) in places {
        cycle.promise(task, node);
    }
    cycle.moved();
    Ok(cycle.kept_for(gang, tasks))
}

/// A promise is kept until the gang starts or it no longer holds.
pub(super) fn keep_promises(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    promises: &[(TaskId, NodeId)],
) -> Option<Outcome> {
    let here = cycle.trial.mark();
    let tasks = promise_again(cycle, promises);
    if tasks > 0 && cycle.rules.job_pipelined(cycle.view(), gang) {
        return Some(cycle.kept_for(gang, tasks));
    }
    cycle.trial.rewind(here);
    None
}

/// Promises again what still holds, for the queue's sake too, and was not needed; how many tasks are promised
/// room then.
pub(super) fn promise_again(cycle: &mut Cycle<'_, '_>, promises: &[(TaskId, NodeId)]) -> u32 {
    let mut kept = 0;
    for (task, node) in promises {
        let waits = cycle.trial.tables().task(*task).phase == Phase::Pending;
        if waits && may_have(cycle, *task) && will_take(cycle, *task, *node) {
            cycle.promise(*task, *node);
            kept += 1;
        }
    }
    kept
}

/// Takes back what the gang was promised, so that it may get something better; what that was.
pub(super) fn take_promises_back(cycle: &mut Cycle<'_, '_>, gang: GangId) -> Vec<(TaskId, NodeId)> {
    take_some_back(cycle, gang, |_| true)
}

/// Takes back what those of its tasks were promised that are meant; what that was.
pub(super) fn take_some_back(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    is_meant: impl Fn(&Task) -> bool,
) -> Vec<(TaskId, NodeId)> {
    let tables = cycle.trial.tables();
    let row = tables.gang(gang);
    if row.count(Phase::Pipelined) == 0 {
        return Vec::new();
    }
    let tasks = row.tasks.iter().copied();
    let promised: Vec<(TaskId, NodeId)> = tasks
        .filter(|id| {
            let task = tables.task(*id);
            task.phase == Phase::Pipelined && is_meant(task)
        })
        .filter_map(|id| Some((id, tables.task(id).node?)))
        .collect();
    if !promised.is_empty() {
        // Room that was kept is free again: earlier findings no longer hold.
        cycle.refused.clear();
    }
    for (task, _) in &promised {
        cycle.trial.unpromise(*task);
    }
    promised
}

/// What the gang was promised is others' again: it gets nothing in its place.
pub(super) fn give_back(cycle: &mut Cycle<'_, '_>, gang: GangId) {
    if !take_promises_back(cycle, gang).is_empty() {
        cycle.moved();
    }
}

/// Whether its queue lets the task have anything: who is on the way out is charged no more, so that what is
/// refused now is not refused for the sake of those who make room.
fn may_have(cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
    let view = cycle.view();
    let queue = queue_of(view.tables, task);
    queue.is_some_and(|queue| cycle.rules.allocatable(view, queue, task).is_none())
}
