//! Enqueue: lets gangs in, so that their pods are made. A gang that is refused does not hold up those
//! behind it.

use std::sync::Arc;

use model::{Gang, GangId, GangPhase, GangStatus, Phase, QueueId, Reason, Verdict};

use crate::cycle::{Cycle, Outcome, Turn};
use crate::plugin::Action;

/// The row.
pub const ACTION: Action = Action {
    name: "enqueue",
    evicts: false,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    cycle.rules.begin_letting_in(&mut cycle.state);
    let tables = cycle.trial.tables();
    let mut waiting: Vec<(QueueId, GangId)> = Vec::new();
    let mut homeless = Vec::new();
    for id in &cycle.gangs {
        let Some(gang) = tables.find_gang(*id) else {
            continue;
        };
        // A status on its way is waited for: nothing is decided about a gang whose last write is
        // unseen.
        if !gang.known || gang.phase() != GangPhase::Pending || gang.status_write.is_some() {
            continue;
        }
        match gang.queue.filter(|queue| tables.queue(*queue).known) {
            Some(queue) => waiting.push((queue, *id)),
            None if is_idle(gang) => {}
            None => homeless.push((
                *id,
                Reason::QueueMissing {
                    queue: gang.spec.queue.clone(),
                },
            )),
        }
    }
    for (id, reason) in homeless {
        cycle
            .outcomes
            .insert(id, Outcome::WaitsForObjects(Arc::new(reason)));
    }
    cycle.take_turns(waiting, |cycle, _, gang| {
        enter(cycle, gang);
        Turn::Done
    });
}

/// Whether all of the gang's tasks have their places, or had them: a queue that is gone is no news to those.
pub(super) fn is_idle(gang: &Gang) -> bool {
    let waits = gang.count(Phase::Pending) + gang.count(Phase::Pipelined) > 0;
    !waits && !gang.tasks.is_empty()
}

fn enter(cycle: &mut Cycle<'_, '_>, id: GangId) {
    let gang = cycle.trial.tables().gang(id);
    // Upstream: a gang that says nothing about its minimum is let in unasked.
    let refused = gang
        .spec
        .min_resources
        .as_ref()
        .and_then(|_| cycle.rules.enqueueable(cycle.view(), id))
        .or_else(|| cycle.rules.beyond_all_slots(cycle.view(), id));
    if let Some(reason) = refused {
        return refuse(cycle, id, reason);
    }
    let_in(cycle, id);
}

fn refuse(cycle: &mut Cycle<'_, '_>, id: GangId, reason: Reason) {
    let outcome = match reason {
        Reason::QueueNotOpen { .. } => Outcome::WaitsForObjects(Arc::new(reason)),
        reason => Outcome::WaitsForShares(Arc::new(reason)),
    };
    cycle.outcomes.insert(id, outcome);
}

/// Lets in whoever waits for it, unasked: nobody was named who would refuse it. Only whose pods could never
/// have their slots stays out.
pub(super) fn all_enter(cycle: &mut Cycle<'_, '_>) {
    let tables = cycle.trial.tables();
    let waits = |id: &GangId| {
        let gang = tables.find_gang(*id);
        gang.is_some_and(|gang| {
            gang.known && gang.phase() == GangPhase::Pending && gang.status_write.is_none()
        })
    };
    let waiting: Vec<GangId> = cycle.gangs.iter().copied().filter(waits).collect();
    for id in waiting {
        match cycle.rules.beyond_all_slots(cycle.view(), id) {
            Some(reason) => refuse(cycle, id, reason),
            None => let_in(cycle, id),
        }
    }
}

fn let_in(cycle: &mut Cycle<'_, '_>, id: GangId) {
    let status = GangStatus {
        phase: GangPhase::Inqueue,
        verdict: Verdict::Undecided,
        ..cycle.trial.tables().gang(id).status().clone()
    };
    cycle.trial.show(id, status);
    cycle.trial.settle();
    let rules = cycle.rules;
    rules.let_in(cycle.trial.tables(), &mut cycle.state, id);
    cycle.outcomes.insert(id, Outcome::Entered);
}
