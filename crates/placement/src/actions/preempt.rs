//! Preempt: gangs that lack tasks take room from lesser ones of their queue; then tasks take room from
//! lesser ones of their own gang.

use model::{GangId, QueueId};

use crate::actions::drain;
use crate::actions::reclaim::{serve, starving};
use crate::arguments::{Asked, Switched};
use crate::clearing::clear_room;
use crate::cycle::{Cycle, Turn};
use crate::parts;
use crate::plugin::Action;
use crate::victims::Against;

/// The row.
pub const ACTION: Action = Action {
    name: "preempt",
    evicts: true,
    configure: Some(|asked, config| config.preempt = Comparison::read(asked)),
    run,
};

/// How nodes are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comparison {
    /// How many are compared by dry runs at most; none where the one is taken on which room costs the
    /// least.
    pub(crate) compared: Option<usize>,
}

/// The most nodes that may be asked for.
const COMPARED_MAX: i64 = 10_000;

impl Comparison {
    fn read(asked: &mut Asked<'_>) -> Comparison {
        let most = asked.whole("maxCandidateNodesAbsolute", 100, 1, COMPARED_MAX);
        // As many as may be are always compared, one after the other and in an order of their own.
        asked.without_effect(&[
            "minCandidateNodesAbsolute",
            "minCandidateNodesPercentage",
            "predicateErrorCacheEnable",
            "topologyAwarePreemptWorkerNum",
        ]);
        let is_on = asked.flag("enableTopologyAwarePreemption", Switched::Off) == Switched::On;
        Comparison {
            compared: usize::try_from(most).ok().filter(|_| is_on),
        }
    }
}

fn run(cycle: &mut Cycle<'_, '_>) {
    let gangs = drain::without(cycle, starving);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        serve(cycle, Against::OtherGangs, queue, gang);
        Turn::Done
    });
    let gangs = with_lesser_tasks(cycle);
    cycle.take_turns(gangs, |cycle, queue, gang| {
        clear_room(cycle, Against::OwnTasks, queue, gang);
        Turn::Done
    });
}

/// Gangs that hold room and still lack tasks, some of which matter more than some that have a place. Those whose
/// tasks must be close together, or that have gangs within them, keep what they have.
fn with_lesser_tasks(cycle: &Cycle<'_, '_>) -> Vec<(QueueId, GangId)> {
    let tables = cycle.trial.tables();
    let mut gangs = starving(cycle);
    gangs.retain(|(_, id)| {
        if parts::are_asked_for(tables, *id) {
            return false;
        }
        let rows = || tables.gang(*id).tasks.iter().map(|task| tables.task(*task));
        let waiting = rows().filter(|task| task.phase == model::Phase::Pending && !task.gated);
        let held = rows().filter(|task| task.phase.is_allocated());
        let most = waiting.map(|task| task.priority).max();
        let least = held.map(|task| task.priority).min();
        most > least && least.is_some()
    });
    gangs
}
