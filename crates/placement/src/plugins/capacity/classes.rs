//! What queues may have of classes of devices, by the claims of their tasks (A.3): `deviceclass/gpu: 4` in
//! a queue's capability are four devices of the class, `memory.deviceclass/gpu: 80Gi` is what may be taken
//! of that dimension of their capacity.
//!
//! A claim counts once in a queue, however many tasks share it. Ceilings hold for all below them. Of a class a
//! queue may deserve something, or have it guaranteed, as of any resource (chapter 1.5).
//!
//! Memory and cores of virtual GPUs come the same way, since no task requests them of its node; their ceilings
//! are those of any resource.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use model::{
    Charge, Counted, GangId, GangPhase, Key, Kind, Phase, QueueId, Reason, Tables, TaskId, Vector,
    device_class,
};

use super::{Beyond, Row, ceiling_of};
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

/// Whether the kind is a count of devices of a class.
pub(super) fn is_count(tables: &Tables, kind: Kind) -> bool {
    device_class(tables.kinds().name(kind)).is_some_and(|(dimension, _)| dimension.is_empty())
}

/// Classes, and dimensions of their capacity, of which nothing is counted: what queues deserve of them, or are
/// guaranteed, says nothing.
pub(super) fn uncounted(tables: &Tables, counted: Option<Counted>) -> Vec<Kind> {
    let kinds = tables.kinds().iter();
    let is_left_out = |name| match (device_class(name), counted) {
        (None, _) | (Some(_), Some(Counted::DevicesAndCapacity)) => false,
        (Some((dimension, _)), Some(Counted::Devices)) => !dimension.is_empty(),
        (Some(_), None) => true,
    };
    let left_out = kinds.filter(|(_, name)| is_left_out(name));
    left_out.map(|(kind, _)| kind).collect()
}

/// The amounts without those of some kinds.
pub(super) fn without(kinds: &[Kind], amounts: &Vector) -> Vector {
    let mut left = amounts.clone();
    kinds.iter().for_each(|kind| left.set(*kind, 0));
    left
}

/// What tasks of the queue have of a class, those with it that are promised a place.
pub(super) fn taken(tables: &Tables, queue: QueueId, kind: Kind) -> i64 {
    let taken = tables.classes_taken(queue);
    taken.map_or(0, |sum| sum.get(kind))
}

/// The most that the queue's tasks may have of a kind that claims or virtual GPUs count for. Of a class: what
/// it names itself, or what the guarantees of those beside it leave of what the one above it may have. Of a
/// class that is not named they may have anything, and so of devices of which they may have none; of a dimension
/// that they ask for, and that is not named beside the class, nothing.
fn ceiling<'a>(
    view: View<'_>,
    (at, row): (QueueId, &Row),
    kind: Kind,
    charges: impl IntoIterator<Item = &'a Charge>,
) -> Option<i64> {
    let tables = view.tables;
    let Some((dimension, class)) = device_class(tables.kinds().name(kind)) else {
        return ceiling_of(tables, tables.queue(at), row, kind);
    };
    view.config.capacity.counted?;
    if !dimension.is_empty() && view.config.capacity.counted != Some(Counted::DevicesAndCapacity) {
        return None;
    }
    let limits = &tables.queue(at).spec.capability;
    let named = limits
        .get(kind)
        .filter(|most| !dimension.is_empty() || *most > 0);
    let above = row
        .above
        .first()
        .and_then(|at| view.state.capacity.row(*at));
    let of_above = above.and_then(|row| row.real.get(&kind));
    match row.real.get(&kind) {
        // Where nothing is kept for others the one above speaks for itself, by its name.
        Some(real) if Some(real) != of_above => return Some(*real),
        _ => {}
    }
    let is_of_class =
        |kind| device_class(tables.kinds().name(kind)).is_some_and(|it| it.1 == class);
    let is_known = || limits.entries().any(|(kind, _)| is_of_class(kind));
    // What a device gives by default nobody could leave out.
    let mut charges = charges.into_iter();
    let mut is_asked = || charges.any(|it| it.asks_for(kind));
    named.or_else(|| (!dimension.is_empty() && is_known() && is_asked()).then_some(0))
}

pub(super) fn sum<'a>(charges: impl Iterator<Item = &'a Charge>) -> Vector {
    let mut sum = Vector::ZERO;
    charges.for_each(|charge| sum.add(&Vector::of(charge.amounts.iter().copied())));
    sum
}

/// The first queue of the path that the task's claims would take beyond what it may have.
pub(super) fn beyond<'a>(
    view: View<'_>,
    path: impl Iterator<Item = (QueueId, &'a Row)>,
    task: TaskId,
) -> Option<Beyond> {
    let tables = view.tables;
    let charges = &tables.task(task).charges;
    if charges.is_empty() {
        return None;
    }
    for (at, row) in path {
        let more = sum(charges.iter().filter(|it| !tables.is_taken(at, &it.claim)));
        // Also of a claim that is counted already: a queue that has too much takes nobody who wants more of
        // it, and who was promised room shows here that others with the claim were.
        for (kind, _) in sum(charges.iter()).entries() {
            let need = more.get(kind);
            let taken = taken(tables, at, kind);
            let most = ceiling(view, (at, row), kind, charges);
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
pub(super) fn enqueueable<'a>(
    view: View<'_>,
    path: impl Iterator<Item = (QueueId, &'a Row)>,
    gang: GangId,
) -> Option<Reason> {
    let tables = view.tables;
    let tasks = tables.gang(gang).tasks.iter();
    let own: Vec<&Charge> = tasks.flat_map(|id| &tables.task(*id).charges).collect();
    if own.is_empty() {
        return None;
    }
    let kinds = sum(own.iter().copied());
    for (at, row) in path {
        // Who else was let in is a question only where there is a ceiling.
        let mut kinds = kinds.entries();
        let most = |kind| ceiling(view, (at, row), kind, own.iter().copied());
        if kinds.all(|(kind, _)| most(kind).is_none()) {
            continue;
        }
        let own = own.iter().copied();
        let mut claims: BTreeMap<&Key, &Charge> = own.map(|it| (&it.claim, it)).collect();
        claims.retain(|claim, _| !tables.is_taken(at, claim));
        let wanted = sum(claims.values().copied());
        let mut all = Vector::ZERO;
        if let Some(let_in) = view.state.capacity.let_in.of(tables).get(&at) {
            claims.retain(|claim, _| !let_in.said.contains_key(claim));
            all.add(&let_in.sum);
        }
        all.add(&sum(claims.into_values()));
        let short = insufficient(tables, &wanted, |kind| {
            let all = taken(tables, at, kind).saturating_add(all.get(kind));
            most(kind).is_some_and(|most| all > most)
        });
        if !short.is_empty() {
            let queue = tables.queue(at).spec.name.clone();
            return Some(Reason::QueueQuota { queue, short });
        }
    }
    None
}

/// Claims of tasks that wait in gangs that were let in, by the queues to which they belong and those above, found
/// out when they are first asked for: nobody gets a place while gangs are let in.
#[derive(Clone, Debug, Default)]
pub(super) struct LetIn(OnceCell<BTreeMap<QueueId, Claims>>);

/// Claims in a queue, and below it, that nobody there has yet.
#[derive(Clone, Debug, Default)]
struct Claims {
    /// Of each the last task that has it, and what it says of it.
    said: BTreeMap<Key, (TaskId, Charge)>,
    sum: Vector,
}

impl LetIn {
    fn of(&self, tables: &Tables) -> &BTreeMap<QueueId, Claims> {
        self.0.get_or_init(|| {
            let mut of_queues = BTreeMap::new();
            for task in tables.claimants() {
                let gang = tables.task(*task).gang.map(|gang| tables.gang(gang));
                if gang.is_some_and(|gang| gang.phase() == GangPhase::Inqueue) {
                    claim(&mut of_queues, tables, *task);
                }
            }
            of_queues
        })
    }

    /// A gang was let in.
    pub(super) fn let_in(&mut self, tables: &Tables, id: GangId) {
        let Some(of_queues) = self.0.get_mut() else {
            return;
        };
        for task in &tables.gang(id).tasks {
            claim(of_queues, tables, *task);
        }
    }
}

/// The claims of a task of a gang that was let in, if it waits.
fn claim(of_queues: &mut BTreeMap<QueueId, Claims>, tables: &Tables, id: TaskId) {
    let task = tables.task(id);
    let queue = task.gang.and_then(|gang| tables.gang(gang).queue);
    let Some(queue) = queue.filter(|_| task.phase == Phase::Pending && !task.charges.is_empty())
    else {
        return;
    };
    for at in tables.up_from(queue) {
        for charge in &task.charges {
            if !tables.is_taken(at, &charge.claim) {
                of_queues.entry(at).or_default().add(id, charge);
            }
        }
    }
}

impl Claims {
    fn add(&mut self, task: TaskId, charge: &Charge) {
        let before = self.said.get(&charge.claim);
        if before.is_some_and(|(other, _)| *other > task) {
            return;
        }
        let said = (task, charge.clone());
        let before = self.said.insert(charge.claim.clone(), said);
        self.sum.sub(&sum(before.iter().map(|(_, before)| before)));
        self.sum.add(&sum(std::iter::once(charge)));
    }
}

/// Whether the queue, with what claims of these tasks count for, is within what it deserves of some class that
/// they ask for.
pub(super) fn is_within_deserved(
    tables: &Tables,
    (at, row): (QueueId, &Row),
    tasks: &[TaskId],
) -> bool {
    let mut claims: BTreeMap<&Key, (&Charge, i64)> = BTreeMap::new();
    for task in tasks.iter().map(|id| tables.task(*id)) {
        for charge in &task.charges {
            // What is kept for the task behind its gate is counted, and what others have makes it no dearer.
            let more = i64::from(!tables.is_taken(at, &charge.claim));
            if more > 0 || task.is_kept_for() {
                claims.insert(&charge.claim, (charge, more));
            }
        }
    }
    let asked = sum(claims.values().map(|(charge, _)| *charge));
    let new = claims.values().filter(|(_, more)| *more > 0);
    let more = sum(new.map(|(charge, _)| *charge));
    asked.entries().any(|(kind, need)| {
        let future = taken(tables, at, kind).saturating_add(more.get(kind));
        need > 0 && future <= row.deserved.get(kind)
    })
}

/// What the task's claims and virtual GPUs count for, as far as it is counted.
pub(super) fn held_by(view: View<'_>, task: TaskId) -> Vector {
    let charges = &view.tables.task(task).charges;
    if charges.is_empty() {
        return Vector::ZERO;
    }
    without(&view.state.capacity.uncounted, &sum(charges.iter()))
}

/// What gangs ask for by claims, found out when it is first asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted(OnceCell<BTreeMap<GangId, Vector>>);

/// What tasks of the gang ask for by claims, if anything counts; of a claim that several use, more than once.
pub(super) fn asked_by<'a>(view: View<'a>, gang: GangId) -> Option<&'a Vector> {
    let of_gangs = view.state.capacity.wanted.0.get_or_init(|| {
        let mut of_gangs: BTreeMap<GangId, Vector> = BTreeMap::new();
        for id in view.tables.claimants() {
            let held = held_by(view, *id);
            let gang = view.tables.task(*id).gang.filter(|_| !held.is_zero());
            if let Some(gang) = gang {
                of_gangs.entry(gang).or_default().add(&held);
            }
        }
        of_gangs
    });
    of_gangs.get(&gang)
}
