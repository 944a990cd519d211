//! Backfill: places tasks that request nothing, of gangs that were let in. Queue shares do not count, but for
//! tasks whose claims of devices do.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, NoFit, Phase, QueueId, Reason, ShapeId, Tables, TaskId};

use crate::actions::allocate::eligible;
use crate::actions::attempt::Hopeless;
use crate::actions::promises::{promise_again, take_some_back};
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::cycle::{Cycle, Lacks, Outcome, Placed, Turn};
use crate::diagnosis;
use crate::parts;
use crate::plugin::Action;
use crate::plugins::ready_without_promises;
use crate::together;

/// The row.
pub const ACTION: Action = Action {
    name: "backfill",
    evicts: false,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    let mut gangs: Vec<(QueueId, GangId)> = eligible(cycle);
    // Tasks that must be close together are allocate's, whatever they request.
    gangs.retain(|(_, gang)| {
        !parts::are_asked_for(cycle.trial.tables(), *gang)
            && (is_promised_something(cycle.trial.tables(), *gang)
                || !waiting_tasks(cycle, *gang, Asking::Nothing).is_empty())
    });
    cycle.take_turns(gangs, |cycle, queue, gang| {
        fill(cycle, queue, gang);
        Turn::Done
    });
}

/// Whether actions before this one promised room to tasks that request nothing: of such they may find some
/// that need nobody to go.
fn is_promised_something(tables: &Tables, gang: GangId) -> bool {
    let row = tables.gang(gang);
    let is_meant = |id: &TaskId| {
        let task = tables.task(*id);
        task.phase == Phase::Pipelined && task.best_effort
    };
    row.count(Phase::Pipelined) > 0 && row.tasks.iter().any(is_meant)
}

/// Why the queue lets the task have nothing, if its claims of devices count there.
fn refused(cycle: &Cycle<'_, '_>, queue: QueueId, task: TaskId) -> Option<Reason> {
    let view = cycle.view();
    if view.tables.task(task).charges.is_empty() {
        return None;
    }
    cycle.rules.allocatable(view, queue, task)
}

fn fill(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) {
    let mark = cycle.trial.mark();
    let promises = take_some_back(cycle, gang, |task| task.best_effort);
    let mut homeless: BTreeSet<ShapeId> = BTreeSet::new();
    let mut hopeless = Hopeless::default();
    let (mut first, mut denied) = (None, None);
    let mut placed = Vec::new();
    let waiting = waiting_tasks(cycle, gang, Asking::Nothing);
    for group in together::groups(cycle.trial.tables(), &waiting) {
        if refused(cycle, queue, group[0]).is_some() {
            continue;
        }
        if let Some(node) = together::meet(cycle, &group) {
            cycle.place(group[0], node);
            placed.push(group[0]);
        }
    }
    for task in waiting {
        if cycle.trial.tables().task(task).phase != Phase::Pending {
            continue;
        }
        if let Some(reason) = refused(cycle, queue, task) {
            denied = denied.or(Some(reason));
            continue;
        }
        if hopeless.has(cycle, task) {
            continue;
        }
        match cycle.best_node(task) {
            Some(node) => {
                cycle.place(task, node);
                placed.push(task);
            }
            None => {
                hopeless.add(cycle, task);
                homeless.insert(cycle.trial.tables().task(task).shape);
                first = first.or(Some(task));
            }
        }
    }
    let kept = promise_again(cycle, &promises);
    let mut lacks = Lacks {
        shapes: homeless,
        shares: denied.is_some(),
        placed: Placed::These(placed),
    };
    let whole = ready_without_promises(cycle.trial.tables(), gang);
    let reason = why(cycle, gang, (first, denied), kept).map(Arc::new);
    if !whole {
        cycle.trial.rewind(mark);
        if let Some(reason) = reason.filter(|_| kept == 0) {
            let outcome = match *reason {
                Reason::NoFit(_) => Outcome::WaitsForRoom(reason, lacks),
                Reason::QueueNotOpen { .. } => Outcome::WaitsForObjects(reason),
                _ => Outcome::WaitsForShares(reason),
            };
            cycle.outcomes.insert(gang, outcome);
        }
        return;
    }
    cycle.moved();
    // Whoever found a place here keeps it.
    lacks.placed = Placed::default();
    let outcome = match (cycle.outcomes.remove(&gang), reason) {
        // What allocate found out about tasks that request something weighs more.
        (Some(extras @ Outcome::Extras(..)), _) => extras,
        (Some(Outcome::WaitsForRoom(said, others)), _) => {
            lacks.shapes.extend(others.shapes);
            lacks.shares |= others.shares;
            let said = match &*said {
                Reason::NoFit(no_fit) => {
                    let (fits, wanted) = counted(cycle.trial.tables(), gang);
                    let no_fit = NoFit {
                        fits,
                        wanted,
                        ..(**no_fit).clone()
                    };
                    Arc::new(Reason::NoFit(Box::new(no_fit)))
                }
                _ => said,
            };
            Outcome::Extras(said, lacks)
        }
        (Some(Outcome::WaitsForShares(said)), _) => {
            lacks.shares = true;
            Outcome::Extras(said, lacks)
        }
        (Some(Outcome::WaitsForPromise(said)), _) | (_, Some(said)) => Outcome::Extras(said, lacks),
        (_, None) => Outcome::Whole,
    };
    cycle.outcomes.insert(gang, outcome);
}

/// Why some of the gang's tasks that request nothing have no place, if some have none: the first that found no
/// node, else the first that its queue refused.
fn why(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    (homeless, denied): (Option<TaskId>, Option<Reason>),
    kept: u32,
) -> Option<Reason> {
    if kept > 0 && (homeless.is_some() || denied.is_some()) {
        return Some(Reason::WaitsForRelease { tasks: kept });
    }
    let Some(task) = homeless else {
        return denied;
    };
    let (fits, wanted) = counted(cycle.trial.tables(), gang);
    Some(Reason::NoFit(diagnosis::no_fit(cycle, task, fits, wanted)))
}

/// How many of the gang's tasks fit, and of how many that is said: of all, or of those that it starts with.
fn counted(tables: &Tables, gang: GangId) -> (u32, u32) {
    let row = tables.gang(gang);
    let wanted = match ready_without_promises(tables, gang) {
        true => u32::try_from(row.tasks.len()).unwrap_or(u32::MAX),
        false => row.spec.min_member,
    };
    (tables.ready(gang), wanted)
}
