//! What queues' tasks use of classes of devices by their claims, kept up to date with every task that
//! comes and goes. A claim counts once in a queue, and once in each queue above.

use std::collections::{BTreeMap, BTreeSet};

use super::{Key, Kind, QueueId, Tables, TaskId, Vector};
use crate::charge::Charge;
use crate::task::Phase;

/// How much of what, by kind.
type Amounts = Vec<(Kind, i64)>;

/// Claims that are used in queues, and what they come to. No row is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassUse {
    /// How many tasks say of a claim that it counts for so much. They may disagree for the moment in which
    /// it changes: then the greatest counts, so that taking a task back leads where it came from.
    claims: BTreeMap<QueueId, BTreeMap<Key, BTreeMap<Amounts, u32>>>,
    sums: BTreeMap<QueueId, Vector>,
}

impl ClassUse {
    fn add(&mut self, queue: QueueId, charge: &Charge) {
        let of_queue = self.claims.entry(queue).or_default();
        let said = of_queue.entry(charge.claim.clone()).or_default();
        let before = said.keys().next_back().cloned();
        *said.entry(charge.amounts.clone()).or_default() += 1;
        let after = said.keys().next_back().cloned();
        self.alter(queue, before, after);
    }

    fn take(&mut self, queue: QueueId, charge: &Charge) {
        let of_queue = self.claims.get_mut(&queue);
        let of_queue = of_queue.expect("every claim is added once before it is taken");
        let said = of_queue.get_mut(&charge.claim);
        let said = said.expect("every claim is added once before it is taken");
        let before = said.keys().next_back().cloned();
        let users = said.get_mut(&charge.amounts);
        let users = users.expect("a task takes what it has added");
        *users -= 1;
        if *users == 0 {
            said.remove(&charge.amounts);
        }
        let after = said.keys().next_back().cloned();
        if said.is_empty() {
            of_queue.remove(&charge.claim);
        }
        if of_queue.is_empty() {
            self.claims.remove(&queue);
        }
        self.alter(queue, before, after);
    }

    /// How many tasks say of the claim that it counts for so much, if any does.
    fn said(&self, queue: QueueId, claim: &Key) -> Option<&BTreeMap<Amounts, u32>> {
        self.claims.get(&queue)?.get(claim)
    }

    fn alter(&mut self, queue: QueueId, before: Option<Amounts>, after: Option<Amounts>) {
        if before == after {
            return;
        }
        let sum = self.sums.entry(queue).or_default();
        sum.sub(&Vector::of(before.into_iter().flatten()));
        sum.add(&Vector::of(after.into_iter().flatten()));
        if sum.is_zero() {
            self.sums.remove(&queue);
        }
    }
}

/// What of a queue's claims is summed up.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// Of tasks that have a place.
    held: ClassUse,
    /// Of these, and of those that are promised one or for which the queue has opened a gate.
    taken: ClassUse,
    /// All tasks with claims that count.
    claimants: BTreeSet<TaskId>,
}

impl Tables {
    /// What tasks of the queue and of all below it use of classes of devices, those with it that are
    /// promised a place; nothing if there is none.
    pub fn classes_taken(&self, queue: QueueId) -> Option<&Vector> {
        self.classes.taken.sums.get(&queue)
    }

    /// The same of those that have a place.
    pub fn classes_held(&self, queue: QueueId) -> Option<&Vector> {
        self.classes.held.sums.get(&queue)
    }

    /// Whether a claim is counted in the queue already.
    pub fn is_taken(&self, queue: QueueId, claim: &Key) -> bool {
        self.classes.taken.said(queue, claim).is_some()
    }

    /// How many tasks of the queue, and of those below it, use the claim and have a place.
    pub fn holders_of(&self, queue: QueueId, claim: &Key) -> u32 {
        let said = self.classes.held.said(queue, claim);
        said.map_or(0, |said| said.values().sum())
    }

    /// All tasks that have claims which count.
    pub fn claimants(&self) -> &BTreeSet<TaskId> {
        &self.classes.claimants
    }

    /// A queue and those above it, the nearest first.
    pub fn up_from(&self, queue: QueueId) -> impl Iterator<Item = QueueId> {
        std::iter::successors(Some(queue), |at| self.queue(*at).parent)
    }

    /// The task's claims begin to count, as far as it is in its life.
    pub(super) fn add_charges(&mut self, id: TaskId) {
        if self.tasks.row(id.index()).charges.is_empty() {
            return;
        }
        self.classes.claimants.insert(id);
        self.alter_charges(id, ClassUse::add);
    }

    /// The other way round.
    pub(super) fn take_charges(&mut self, id: TaskId) {
        if self.tasks.row(id.index()).charges.is_empty() {
            return;
        }
        self.classes.claimants.remove(&id);
        self.alter_charges(id, ClassUse::take);
    }

    fn alter_charges(&mut self, id: TaskId, alter: fn(&mut ClassUse, QueueId, &Charge)) {
        let task = self.tasks.row(id.index());
        let is_held = task.phase.is_allocated();
        let is_taken = is_held || task.phase == Phase::Pipelined || task.is_kept_for();
        let gang = task.gang.map(|gang| self.gangs.row(gang.index()));
        let Some(queue) = gang.and_then(|gang| gang.queue).filter(|_| is_taken) else {
            return;
        };
        let mut next = Some(queue);
        while let Some(at) = next {
            for charge in &task.charges {
                alter(&mut self.classes.taken, at, charge);
                if is_held {
                    alter(&mut self.classes.held, at, charge);
                }
            }
            next = self.queues.row(at.index()).parent;
        }
    }

    /// Tasks with claims that count in the queue or below it.
    pub(super) fn claimants_below(&self, queue: QueueId) -> Vec<TaskId> {
        let is_below = |task: &&TaskId| {
            let gang = self.task(**task).gang;
            let own = gang.and_then(|gang| self.gang(gang).queue);
            own.is_some_and(|own| self.up_from(own).any(|at| at == queue))
        };
        self.claimants().iter().filter(is_below).copied().collect()
    }
}
