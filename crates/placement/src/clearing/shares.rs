//! Shares that are short: who leaves a queue, or those beside it below one that is full, makes room within
//! what it may have, wherever that is.

use model::{NodeId, Reason, TaskId};

use super::Clearing;
use super::below::Below;
use super::grounds::Grounds;
use crate::cycle::Cycle;
use crate::victims::{Against, Search};

/// What is sought first for a task that lacks both a share and room. Neither way finds all that the other
/// one does: who has gone for the one may be who cannot give any more for the other.
#[derive(Clone, Copy, Debug)]
enum First {
    Share,
    Room,
}

/// Whether the reason is what the queue is, and not what its tasks have.
fn is_of_the_queue(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::QueueNotOpen { .. } | Reason::QueueMisplaced { .. }
    )
}

impl Clearing<'_> {
    /// Whether the queue has its share for what is promised to the gang.
    pub(super) fn is_within_share(&self, cycle: &mut Cycle<'_, '_>) -> bool {
        let mut before: Option<TaskId> = None;
        // What is short of one kind says nothing of who asks for another.
        self.promised.iter().all(|(task, _)| {
            let last = before.replace(*task);
            if last.is_some_and(|last| super::alike(cycle, last, *task)) {
                return true;
            }
            let mark = cycle.trial.mark();
            cycle.trial.unpromise(*task);
            let refused = cycle.rules.allocatable(cycle.view(), self.queue, *task);
            cycle.trial.rewind(mark);
            refused.is_none()
        })
    }

    /// Where it is the queue's share that is short, others of the queue leave it, wherever they are, until
    /// the task is within it.
    pub(super) fn make_share(&self, cycle: &mut Cycle<'_, '_>, search: &Search<'_>) -> bool {
        let task = search.claimant.task;
        let refused = |cycle: &Cycle<'_, '_>| {
            let view = cycle.view();
            cycle.rules.allocatable(view, self.queue, task)
        };
        let Some(reason) = refused(cycle) else {
            return true;
        };
        // A queue that takes nobody takes nobody more when others have left it.
        if self.against == Against::OtherQueues || is_of_the_queue(&reason) {
            return false;
        }
        let mark = cycle.trial.mark();
        let view = cycle.view();
        let in_turn = search.own_in_turn(view);
        for victim in search.candidates(view, &in_turn) {
            self.evict(cycle, &[victim]);
            if refused(cycle).is_none() {
                return true;
            }
        }
        cycle.trial.rewind(mark);
        false
    }

    /// Whether a queue above is full, so that only those below it can make the share for the task that its
    /// own queue deserves.
    pub(super) fn is_short_above(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
        let full = || cycle.rules.full_above(cycle.view(), self.queue, &[task]);
        self.against == Against::OtherQueues && full().is_some()
    }

    /// The node that has room for such a task, and its queues the share, now that others have gone. Where that
    /// cannot be nothing changes.
    pub(super) fn make_room_below(
        &self,
        cycle: &mut Cycle<'_, '_>,
        grounds: &mut Grounds,
        search: &Search<'_>,
    ) -> Option<NodeId> {
        let task = search.claimant.task;
        let mark = cycle.trial.mark();
        for first in [First::Share, First::Room] {
            let may = match first {
                First::Share => {
                    self.free_claims(cycle, search) && self.relieve(cycle, grounds, search)
                }
                First::Room => self.free_claims(cycle, search),
            };
            let found = may.then(|| self.find_for(cycle, grounds, search)).flatten();
            if let Some((node, victims)) = found {
                self.evict(cycle, &victims);
                if self.relieve(cycle, grounds, search) {
                    return Some(node);
                }
            }
            cycle.trial.rewind(mark);
            // What nodes cost was found out beside those who are back.
            self.forget(cycle, grounds);
        }
        if self.may_speak_for_all(cycle, task) {
            let claimant = (self.queue, self.likeness(cycle, task));
            grounds.short.insert(claimant, cycle.moves);
        }
        None
    }

    /// Evicts from queues below full ones, the lowest first, until the task keeps all of them within what
    /// they may have; whether it does.
    fn relieve(
        &self,
        cycle: &mut Cycle<'_, '_>,
        grounds: &mut Grounds,
        search: &Search<'_>,
    ) -> bool {
        let task = search.claimant.task;
        let full = |cycle: &Cycle<'_, '_>| {
            let view = cycle.view();
            cycle.rules.full_above(view, self.queue, &[task])
        };
        while let Some((above, kind)) = full(cycle) {
            let view = cycle.view();
            let below = grounds.below.entry((above, kind));
            let below = below.or_insert_with(|| Below::of(cycle.rules, view, above, kind));
            let victims = below.victims(view, search);
            if victims.is_empty() {
                return false;
            }
            for victim in victims {
                if full(cycle) != Some((above, kind)) {
                    break;
                }
                self.evict(cycle, &[victim]);
            }
        }
        let refused = cycle.rules.allocatable(cycle.view(), self.queue, task);
        refused.is_none()
    }
}
