//! Backfill: places tasks that request nothing, of gangs that were let in. Queue shares do not count.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, Phase, QueueId, Reason, ShapeId, Tables, TaskId};

use crate::actions::allocate::{Asking, eligible, promise_again, take_some_back, waiting_tasks};
use crate::actions::attempt::Hopeless;
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
    cycle.take_turns(gangs, |cycle, _, gang| {
        fill(cycle, gang);
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

fn fill(cycle: &mut Cycle<'_, '_>, gang: GangId) {
    let mark = cycle.trial.mark();
    let promises = take_some_back(cycle, gang, |task| task.best_effort);
    let mut homeless: BTreeSet<ShapeId> = BTreeSet::new();
    let mut hopeless = Hopeless::default();
    let mut first = None;
    let mut placed = Vec::new();
    let waiting = waiting_tasks(cycle, gang, Asking::Nothing);
    for group in together::groups(cycle.trial.tables(), &waiting) {
        if let Some(node) = together::meet(cycle, &group) {
            cycle.place(group[0], node);
            placed.push(group[0]);
        }
    }
    for task in waiting {
        if cycle.trial.tables().task(task).phase != Phase::Pending {
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
        shares: false,
        placed: Placed::These(placed),
    };
    let whole = ready_without_promises(cycle.trial.tables(), gang);
    let reason = first.map(|task| {
        if kept > 0 {
            return Arc::new(Reason::WaitsForRelease { tasks: kept });
        }
        let row = cycle.trial.tables().gang(gang);
        let all = u32::try_from(row.tasks.len()).unwrap_or(u32::MAX);
        let wanted = if whole { all } else { row.spec.min_member };
        let fits = cycle.trial.tables().ready(gang);
        Arc::new(Reason::NoFit(diagnosis::no_fit(cycle, task, fits, wanted)))
    });
    if !whole {
        cycle.trial.rewind(mark);
        if let Some(reason) = reason.filter(|_| kept == 0) {
            cycle
                .outcomes
                .insert(gang, Outcome::WaitsForRoom(reason, lacks));
        }
        return;
    }
    cycle.moves += 1;
    match (reason, cycle.outcomes.get(&gang)) {
        // What allocate found out about tasks that request something weighs more.
        (_, Some(Outcome::Extras(..))) => {}
        (Some(reason), _) => {
            // Whoever found a place here keeps it.
            lacks.placed = Placed::default();
            cycle.outcomes.insert(gang, Outcome::Extras(reason, lacks));
        }
        (None, _) => {
            cycle.outcomes.insert(gang, Outcome::Whole);
        }
    }
}
