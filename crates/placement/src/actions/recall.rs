//! Promises that were made before: who begins anew finds them where they were written down, in the status of
//! the pods (`nominatedNodeName`), and makes them again before anybody has a turn. What room was cleared for
//! one gang would be taken by another otherwise.

use model::{GangId, NodeId, Phase, TaskId};

use crate::actions::allocate::eligible;
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::clearing::will_take;
use crate::cycle::{Cycle, Turn, nominated};

/// Promises again what those gangs were promised, as far as it still holds.
pub(crate) fn run(cycle: &mut Cycle<'_, '_>) {
    let mut expected = eligible(cycle);
    expected.retain(|(_, gang)| is_expected(cycle, *gang));
    cycle.take_turns(expected, |cycle, _, gang| {
        promise(cycle, gang);
        Turn::Done
    });
}

fn is_expected(cycle: &Cycle<'_, '_>, gang: GangId) -> bool {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    let mut tasks = row.tasks.iter();
    row.count(Phase::Pipelined) == 0 && tasks.any(|task| nominated(view, *task).is_some())
}

/// Enough of the gang for it to start, or more for one that has started; else nothing.
fn promise(cycle: &mut Cycle<'_, '_>, gang: GangId) {
    let mark = cycle.trial.mark();
    let asked = [Asking::Something, Asking::Nothing];
    let tasks = asked.map(|asking| waiting_tasks(cycle, gang, asking));
    let places = tasks.into_iter().flatten().filter_map(|task| {
        let node = nominated(cycle.view(), task)?;
        Some((task, node))
    });
    let places: Vec<(TaskId, NodeId)> = places.collect();
    for (task, node) in places {
        // Whether its queue may have it still is asked when it has its turn.
        if will_take(cycle, task, node) {
            cycle.promise(task, node);
        }
    }
    if !cycle.rules.job_pipelined(cycle.view(), gang) {
        cycle.trial.rewind(mark);
    }
}
