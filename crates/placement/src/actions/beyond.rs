//! Gangs that want more than there is: where more tasks are needed than there are nodes, and all are alike or
//! there are very many of them, the places for each shape are counted, which costs a look at each node and
//! none at a task. A gang of a million tasks that cannot start is told so without its tasks being tried.
//!
//! Alike tasks are counted exactly, so that the words are those of a try. Tasks of several shapes are each
//! counted as if the others were not there: what is too little then is too little in any case.

use std::sync::Arc;

use model::{GangId, Phase, QueueId, Reason, ShapeId, TaskId};

use crate::actions::drain;
use crate::cycle::{Cycle, Lacks, Outcome, Placed};
use crate::diagnosis;
use crate::plugin::Room;
use crate::plugins::predicates::places_on;

/// Of larger gangs not every task is looked at for the sake of a name, or of an exact number.
const SORTED_MAX: usize = 10_000;

/// From so many tasks of several shapes on they are counted.
const VAST: u32 = 2_000;

/// The tasks of a gang that have one shape.
struct Crowd {
    shape: ShapeId,
    count: u64,
    /// How many of them find room now.
    places: u64,
    /// How many of them find none, even with the room that is on its way.
    homeless: u64,
}

/// Says that the gang waits for room where counting shows it; `None` where it has to be tried.
pub(super) fn outcome(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Outcome> {
    let needed = wants(cycle, gang)?;
    let crowds = crowds(cycle, gang, needed)?;
    // Of several the one that lacks most, and the first of equals.
    let crowd = crowds.iter().rev().max_by_key(|crowd| crowd.homeless)?;
    let task = homeless(cycle, gang, crowd).filter(|task| may_be_told(cycle, queue, *task))?;
    let places = u32::try_from(crowd.places).unwrap_or(u32::MAX);
    let view = cycle.view();
    let fits = view.tables.ready(gang).saturating_add(places);
    let wanted = view.tables.gang(gang).spec.min_member;
    let no_fit = diagnosis::no_fit_once_full(cycle, task, fits, wanted);
    let lacking = crowds.iter().filter(|crowd| crowd.homeless > 0);
    let lacks = Lacks {
        shapes: lacking.map(|crowd| crowd.shape).collect(),
        shares: false,
        placed: Placed::Counted(
            (crowds.iter())
                .map(|crowd| (crowd.shape, crowd.places))
                .collect(),
        ),
    };
    let outcome = Outcome::WaitsForRoom(Arc::new(Reason::NoFit(no_fit)), lacks);
    Some(drain::keep(cycle, gang, outcome))
}

/// How many tasks it lacks, where it is cheaper to count than to try.
fn wants(cycle: &Cycle<'_, '_>, gang: GangId) -> Option<u32> {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    let needed = (row.spec.min_member).saturating_sub(view.tables.ready(gang));
    let is_many = needed > view.tables.node_count();
    let is_many = is_many && (needed >= VAST || row.only_shape().is_some());
    if !is_many || cycle.scope.is_some() || row.count(Phase::Pipelined) > 0 {
        return None;
    }
    let may = row.spec.sub_groups.is_empty()
        && cycle.rules.extender().is_none()
        && !cycle.rules.looks_at_queues()
        && view.config.fit.leaves_room();
    may.then_some(needed)
}

/// What there is for the tasks of each shape, if too few of all find room. Those of which the shape is not
/// known are taken to find it.
fn crowds(cycle: &mut Cycle<'_, '_>, gang: GangId, needed: u32) -> Option<Vec<Crowd>> {
    let row = cycle.trial.tables().gang(gang);
    let mut room = u64::from(row.others());
    let shapes: Vec<(ShapeId, u32)> = row.shapes().collect();
    let mut crowds = Vec::new();
    for (shape, count) in shapes {
        let (now, later) = places(cycle, shape);
        let count = u64::from(count);
        room = room.saturating_add(later.min(count));
        crowds.push(Crowd {
            shape,
            count,
            places: now,
            homeless: count.saturating_sub(later),
        });
    }
    (room < u64::from(needed)).then_some(crowds)
}

/// How many tasks of the shape find room now, and with the room that is on its way, if there were no others.
fn places(cycle: &mut Cycle<'_, '_>, id: ShapeId) -> (u64, u64) {
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
    (now, later)
}

/// Whether amounts alone decide how many tasks like this one a node takes, so that what is told of it is
/// true of all that find no room.
fn may_be_told(cycle: &Cycle<'_, '_>, queue: QueueId, task: TaskId) -> bool {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    shape.spec.is_about_amounts()
        && !shape.spec.is_coupled()
        && !shape.spec.is_best_effort()
        && !crate::coupling::concerns(view, task)
        && cycle.rules.allocatable(view, queue, task).is_none()
}

/// The task of which it is told why it finds no node: the first in order for which no place is left, of a
/// very large gang the first one that waits.
fn homeless(cycle: &Cycle<'_, '_>, gang: GangId, crowd: &Crowd) -> Option<TaskId> {
    let tables = cycle.trial.tables();
    let row = tables.gang(gang);
    let waits = |id: &TaskId| {
        let task = tables.task(*id);
        task.phase == Phase::Pending && !task.gated && task.shape == crowd.shape
    };
    let mut waiting = row.tasks.iter().copied().filter(waits);
    if row.tasks.len() > SORTED_MAX {
        let unlike = (row.tasks.len() as u64).saturating_sub(crowd.count);
        let pending = u64::from(row.count(Phase::Pending)).saturating_sub(unlike);
        let is_gated = row.queue_gated > 0 || !row.gated.is_zero();
        let all_wait = !is_gated && pending > crowd.places;
        return waiting.next().filter(|_| all_wait);
    }
    let mut tasks: Vec<TaskId> = waiting.collect();
    let at = usize::try_from(crowd.places)
        .ok()
        .filter(|at| *at < tasks.len())?;
    let (rules, view) = (cycle.rules, cycle.view());
    let (_, task, _) = tasks.select_nth_unstable_by(at, |a, b| rules.task_order(view, *a, *b));
    Some(*task)
}
