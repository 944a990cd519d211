//! Preempt: gangs that lack tasks take room from lesser ones of their queue; then tasks take room from
//! lesser ones of their own gang.

use model::{GangId, QueueId};

use crate::actions::drain;
use crate::actions::reclaim::starving_apart;
use crate::clearing::clear_room;
use crate::cycle::{Cycle, Turn};
use crate::plugin::Action;
use crate::victims::Against;

/// The row.
pub const ACTION: Action = Action {
    name: "preempt",
    evicts: true,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    let gangs = drain::without(cycle, starving_apart);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        drain::serve(cycle, Against::OtherGangs, queue, gang);
        Turn::Done
    });
    let gangs = with_lesser_tasks(cycle);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        clear_room(cycle, Against::OwnTasks, queue, gang);
        Turn::Done
    });
}

/// Gangs that hold room and still lack tasks, some of which matter more than some that have a place.
fn with_lesser_tasks(cycle: &Cycle<'_, '_>) -> Vec<(QueueId, GangId)> {
    let tables = cycle.trial.tables();
    let mut gangs = starving_apart(cycle);
    gangs.retain(|(_, id)| {
        let rows = || tables.gang(*id).tasks.iter().map(|task| tables.task(*task));
        let waiting = rows().filter(|task| task.phase == model::Phase::Pending && !task.gated);
        let held = rows().filter(|task| task.phase.is_allocated());
        let most = waiting.map(|task| task.priority).max();
        let least = held.map(|task| task.priority).min();
        most > least && least.is_some()
    });
    gangs
}
