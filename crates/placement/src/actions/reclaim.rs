//! Reclaim: gangs that lack tasks take room from queues that hold more than their share.

use model::{GangId, GangPhase, Phase, QueueId};

use crate::actions::drain;
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
    let gangs = drain::without(cycle, starving_apart);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        if cycle.rules.overused(cycle.view(), queue).is_some() {
            return Turn::Done;
        }
        drain::serve(cycle, Against::OtherQueues, queue, gang);
        Turn::Done
    });
}

/// Those of the starving gangs whose tasks may be anywhere. As upstream: the others need room that lies
/// together, which is for gangpreempt and gangreclaim.
pub(super) fn starving_apart(cycle: &Cycle<'_, '_>) -> Vec<(QueueId, GangId)> {
    let mut gangs = starving(cycle);
    gangs.retain(|(_, gang)| !parts::are_asked_for(cycle.trial.tables(), *gang));
    gangs
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
