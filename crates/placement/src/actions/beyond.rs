//! Gangs that want more than there is: where all tasks are alike and more of them are needed than there are
//! nodes, the places for them are counted, which costs a look at each node and none at a task. A gang of a
//! million tasks that cannot start is told so, with the same words, without its tasks being tried.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, Phase, QueueId, Reason, ShapeId, TaskId};

use crate::actions::drain;
use crate::cycle::{Cycle, Lacks, Outcome};
use crate::diagnosis;
use crate::plugin::Room;
use crate::plugins::predicates::places_on;

/// Of larger gangs not every task is looked at for the sake of a name.
const SORTED_MAX: usize = 10_000;

/// Says that the gang waits for room where counting shows it; `None` where it has to be tried.
pub(super) fn outcome(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Outcome> {
    let (shape, needed) = wants(cycle, gang)?;
    let places = places(cycle, shape, needed)?;
    let task = homeless(cycle, gang, places)?;
    let view = cycle.view();
    let is_tied = crate::coupling::concerns(view, task);
    if is_tied || cycle.rules.allocatable(view, queue, task).is_some() {
        return None;
    }
    let fits = view.tables.ready(gang).saturating_add(places);
    let wanted = view.tables.gang(gang).spec.min_member;
    let no_fit = diagnosis::no_fit_once_full(cycle, task, fits, wanted);
    let lacks = Lacks {
        shapes: BTreeSet::from([shape]),
        shares: false,
    };
    let outcome = Outcome::WaitsForRoom(Arc::new(Reason::NoFit(no_fit)), lacks);
    Some(drain::keep(cycle, gang, outcome))
}

/// The one shape of its tasks and how many of them it lacks, where it is cheaper to count than to try and
/// amounts alone decide how many a node takes.
fn wants(cycle: &Cycle<'_, '_>, gang: GangId) -> Option<(ShapeId, u32)> {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    let needed = (row.spec.min_member).saturating_sub(view.tables.ready(gang));
    let is_many = needed > view.tables.node_count();
    if !is_many || cycle.scope.is_some() || row.count(Phase::Pipelined) > 0 {
        return None;
    }
    let id = row.only_shape()?;
    let shape = view.tables.shape(id);
    let by_amounts = drain::is_about_amounts(shape)
        && shape.spec.volumes.is_empty()
        && !shape.spec.is_coupled()
        && !shape.spec.is_best_effort();
    let may = by_amounts
        && row.spec.sub_groups.is_empty()
        && cycle.rules.extender().is_none()
        && !cycle.rules.looks_at_queues()
        && view.config.fit.leaves_room();
    may.then_some((id, needed))
}

/// How many tasks of the shape find room now, if those are too few even with the room that is on its way.
fn places(cycle: &mut Cycle<'_, '_>, id: ShapeId, needed: u32) -> Option<u32> {
    let view = cycle.rules.view(cycle.trial.tables(), &cycle.state);
    let shape = view.tables.shape(id);
    let index = cycle.indexes.synced(cycle.rules, view, &(id, None));
    let (mut now, mut later) = (0_u64, 0_u64);
    for (node, row) in view.tables.nodes() {
        let takes = index.takes(node);
        let here = if takes {
            places_on(row, shape, Room::Now)
        } else {
            0
        };
        let leaving = !row.releasing.is_zero();
        now = now.saturating_add(here);
        later = later.saturating_add(match leaving {
            true => here.max(places_on(row, shape, Room::Later)),
            false => here,
        });
    }
    (later < u64::from(needed)).then_some(u32::try_from(now).unwrap_or(u32::MAX))
}

/// The task of which it is told why it finds no node: the first in order for which no place is left, of a
/// very large gang the first one that waits.
fn homeless(cycle: &Cycle<'_, '_>, gang: GangId, places: u32) -> Option<TaskId> {
    let tables = cycle.trial.tables();
    let row = tables.gang(gang);
    let waits = |id: &TaskId| {
        let task = tables.task(*id);
        task.phase == Phase::Pending && !task.gated
    };
    let mut waiting = row.tasks.iter().copied().filter(waits);
    if row.tasks.len() > SORTED_MAX {
        let all_wait = row.gated.is_zero() && row.count(Phase::Pending) > places;
        return waiting.next().filter(|_| all_wait);
    }
    let mut tasks: Vec<TaskId> = waiting.collect();
    let at = usize::try_from(places)
        .ok()
        .filter(|at| *at < tasks.len())?;
    let (rules, view) = (cycle.rules, cycle.view());
    let (_, task, _) = tasks.select_nth_unstable_by(at, |a, b| rules.task_order(view, *a, *b));
    Some(*task)
}
