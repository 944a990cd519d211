//! What queues may have of classes of devices, by the claims of their tasks (A.3): `deviceclass/gpu: 4` in
//! a queue's capability are four devices of the class, `memory.deviceclass/gpu: 80Gi` is what may be taken
//! of that dimension of their capacity.
//!
//! A claim counts once in a queue, however many tasks share it. Ceilings hold for all below them; deserved
//! and guaranteed amounts say nothing of classes.

use std::collections::BTreeMap;

use model::{
    Charge, Counted, GangId, GangPhase, Key, Kind, Phase, Queue, QueueId, Reason, Tables, TaskId,
    Vector, device_class,
};

use super::Beyond;
use crate::arguments::{Asked, Switched};
use crate::plugin::View;
use crate::plugins::insufficient;

/// What is counted. Kubernetes allocates devices by default, and parts of their capacity not.
pub(super) fn counted(asked: &mut Asked<'_>) -> Option<Counted> {
    let mut is_on = |key, default| asked.flag(key, default) == Switched::On;
    let devices = is_on("capacity.DynamicResourceAllocationEnable", Switched::On);
    let capacity = is_on("capacity.DRAConsumableCapacityEnable", Switched::Off);
    devices.then_some(match capacity {
        true => Counted::DevicesAndCapacity,
        false => Counted::Devices,
    })
}

/// The most that the queue's tasks may have of a class. Of a class that is not named they may have
/// anything, and so of devices of which they may have none; of a dimension that is not named beside the
/// class, nothing.
fn ceiling(view: View<'_>, queue: &Queue, kind: Kind) -> Option<i64> {
    let tables = view.tables;
    let (dimension, class) = device_class(tables.kinds().name(kind))?;
    let named = queue.spec.capability.get(kind);
    if dimension.is_empty() {
        return named.filter(|most| *most > 0);
    }
    if view.config.capacity.counted != Some(Counted::DevicesAndCapacity) {
        return None;
    }
    let mut kinds = queue.spec.capability.entries();
    let is_of_class =
        |kind| device_class(tables.kinds().name(kind)).is_some_and(|it| it.1 == class);
    let is_known = kinds.any(|(kind, _)| is_of_class(kind));
    named.or_else(|| is_known.then_some(0))
}

fn sum<'a>(charges: impl Iterator<Item = &'a Charge>) -> Vector {
    let mut sum = Vector::ZERO;
    charges.for_each(|charge| sum.add(&Vector::of(charge.amounts.iter().copied())));
    sum
}

/// The first queue of the path that the task's claims would take beyond what it may have.
pub(super) fn beyond(
    view: View<'_>,
    path: impl Iterator<Item = QueueId>,
    task: TaskId,
) -> Option<Beyond> {
    let tables = view.tables;
    let charges = &tables.task(task).charges;
    if charges.is_empty() || view.config.capacity.counted.is_none() {
        return None;
    }
    for at in path {
        let queue = tables.queue(at);
        let more = sum(charges.iter().filter(|it| !tables.is_taken(at, &it.claim)));
        // Also of a claim that is counted already: a queue that has too much takes nobody who wants more of
        // it, and who was promised room shows here that others with the claim were.
        for (kind, _) in sum(charges.iter()).entries() {
            let need = more.get(kind);
            let taken = tables.classes_taken(at).map_or(0, |sum| sum.get(kind));
            let most = ceiling(view, queue, kind);
            if let Some(most) = most.filter(|most| taken.saturating_add(need) > *most) {
                let left = most.saturating_sub(taken);
                return Some(Beyond {
                    at,
                    kind,
                    need,
                    left,
                });
            }
        }
    }
    None
}

/// Why letting the gang in would promise more of a class than a queue of the path may have: beside what is
/// taken, the claims of gangs that were let in and wait, and its own. Of pods that are not made yet nobody
/// knows their claims.
pub(super) fn enqueueable(
    view: View<'_>,
    path: impl Iterator<Item = QueueId>,
    gang: GangId,
) -> Option<Reason> {
    let tables = view.tables;
    let tasks = tables.gang(gang).tasks.iter();
    let own: Vec<&Charge> = tasks.flat_map(|id| &tables.task(*id).charges).collect();
    if own.is_empty() || view.config.capacity.counted.is_none() {
        return None;
    }
    for at in path {
        let own = own.iter().copied();
        let mut claims: BTreeMap<&Key, &Charge> = own.map(|it| (&it.claim, it)).collect();
        claims.retain(|claim, _| !tables.is_taken(at, claim));
        let wanted = sum(claims.values().copied());
        claims.extend(let_in(tables, at).map(|charge| (&charge.claim, charge)));
        let queue = tables.queue(at);
        let all = sum(claims.into_values());
        let short = insufficient(tables, &wanted, |kind| {
            let taken = tables.classes_taken(at).map_or(0, |sum| sum.get(kind));
            let all = taken.saturating_add(all.get(kind));
            ceiling(view, queue, kind).is_some_and(|most| all > most)
        });
        if !short.is_empty() {
            let queue = queue.spec.name.clone();
            return Some(Reason::QueueQuota { queue, short });
        }
    }
    None
}

/// Claims in the queue, and below it, of tasks that wait in gangs that were let in, and that nobody there
/// has yet.
fn let_in(tables: &Tables, queue: QueueId) -> impl Iterator<Item = &Charge> {
    let tasks = tables.claimants().iter().map(|id| tables.task(*id));
    let waiting = tasks.filter(move |task| {
        let gang = task.gang.map(|gang| tables.gang(gang));
        let gang = gang.filter(|gang| gang.phase() == GangPhase::Inqueue);
        let own = gang.and_then(|gang| gang.queue);
        task.phase == Phase::Pending
            && own.is_some_and(|own| tables.up_from(own).any(|at| at == queue))
    });
    let charges = waiting.flat_map(|task| &task.charges);
    charges.filter(move |charge| !tables.is_taken(queue, &charge.claim))
}
