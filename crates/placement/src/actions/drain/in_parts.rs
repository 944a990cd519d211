//! Gangs within a gang: room is kept for as many of its parts as start with it, each of them as close together
//! as it must be, and for tasks that belong to none.

use model::{GangId, QueueId, TaskId};

use super::{Budget, Places, fill_until, find_together, here_or_nearest};
use crate::actions::close::{Group, in_order, waiting_of};
use crate::cycle::Cycle;
use crate::domains;

/// A node for each of the tasks with which the gang starts. A part for which there would not be enough is left
/// out: where another will do that one is taken.
pub(super) fn find(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    budget: &mut Budget,
) -> Option<Places> {
    let is_enough = |cycle: &Cycle<'_, '_>| cycle.rules.job_pipelined(cycle.view(), gang);
    let mut places = Places::new();
    for part in in_order(cycle, gang) {
        if is_enough(cycle) {
            break;
        }
        let mut tasks = waiting_of(cycle, gang, &part.tasks);
        let mark = cycle.trial.mark();
        // Each part begins where the scope does, wherever the last one ended.
        let found = cycle.within(cycle.scope.clone(), |cycle| match part.is_loose {
            true => fill_until(cycle, queue, tasks, is_enough, |cycle, task, last| {
                here_or_nearest(cycle, task, last, budget)
            }),
            false => {
                let needed = part.needed.max(1) as usize;
                tasks.truncate(needed);
                let is_whole = tasks.len() == needed;
                let found = is_whole.then(|| together(cycle, queue, &part, &tasks, budget));
                found.flatten()
            }
        });
        cycle.trial.rewind(mark);
        for (task, node) in found.into_iter().flatten() {
            cycle.promise(task, node);
            places.push((task, node));
        }
    }
    (is_enough(cycle) && !places.is_empty()).then_some(places)
}

/// A node for each of these tasks of a part.
fn together(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    part: &Group,
    tasks: &[TaskId],
    budget: &mut Budget,
) -> Option<Places> {
    let inside = |cycle: &mut Cycle<'_, '_>, budget: &mut Budget| {
        let never = |_: &Cycle<'_, '_>| false;
        fill_until(cycle, queue, tasks.to_vec(), never, |cycle, task, last| {
            here_or_nearest(cycle, task, last, budget)
        })
    };
    let scopes = match &part.closeness {
        None => Vec::new(),
        Some(closeness) => {
            let view = cycle.view();
            let placed = domains::places(view, part.tasks.iter().copied());
            domains::allowed(view, closeness, &placed, cycle.scope.as_ref()).ok()?
        }
    };
    match scopes.is_empty() {
        true => inside(cycle, budget),
        false => {
            let scopes = scopes.into_iter().map(|(_, scope)| scope);
            find_together(cycle, scopes, budget, inside)
        }
    }
}
