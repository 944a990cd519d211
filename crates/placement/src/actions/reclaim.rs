//! Reclaim: gangs that lack tasks take room from queues that hold more than their share.

use model::{GangId, GangPhase, Phase, QueueId};

use crate::actions::{bundles, drain};
use crate::clearing::clear_room;
use crate::cycle::{Cycle, Turn};
use crate::parts;
use crate::plugin::Action;
use crate::victims::Against;

/// The row.
pub const ACTION: Action = Action {
    name: "reclaim",
    evicts: true,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    let gangs = drain::without(cycle, starving);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        if cycle.rules.overused(cycle.view(), queue).is_some() {
            return Turn::Done;
        }
        serve(cycle, Against::OtherQueues, queue, gang);
        Turn::Done
    });
}

/// Clears room for a gang by evicting tasks one by one, in one place where its tasks must be close together or
/// there are gangs within it. Such gangs are left to the action that clears whole places, where it is
/// configured.
pub(super) fn serve(cycle: &mut Cycle<'_, '_>, against: Against, queue: QueueId, gang: GangId) {
    let in_one_place = parts::are_asked_for(cycle.trial.tables(), gang);
    if in_one_place && cycle.rules.has_action(against.by_places()) {
        return;
    }
    drain::serve(cycle, gang, |cycle| match in_one_place {
        true => bundles::clear_one_by_one(cycle, against, queue, gang),
        false => clear_room(cycle, against, queue, gang),
    });
}

/// Gangs that were let in, lack tasks and may take others' room for them.
pub(super) fn starving(cycle: &Cycle<'_, '_>) -> Vec<(QueueId, GangId)> {
    let view = cycle.view();
    let mut starving = Vec::new();
    for id in &cycle.gangs {
        let Some(gang) = view.tables.find_gang(*id).filter(|gang| gang.known) else {
            continue;
        };
        let is_in = gang.phase() != GangPhase::Pending;
        let wants = gang.count(Phase::Pending) > 0;
        let queue = gang.queue.filter(|queue| view.tables.queue(*queue).known);
        let Some(queue) = queue.filter(|_| is_in && wants) else {
            continue;
        };
        let is_valid = cycle.rules.job_valid(view, *id).is_none();
        if is_valid && cycle.rules.job_starving(view, *id) {
            starving.push((queue, *id));
        }
    }
    starving
}
