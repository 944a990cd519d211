//! Who gives room back to other queues, and who is asked (A.3), by resources and by classes of devices alike.

use std::collections::BTreeMap;

use model::{GangId, Key, Kind, QueueId, TaskId, Vector};

use super::{Row, classes};
use crate::plugin::{Claimant, View};
use crate::plugins::queue_of;

/// Where ancestors may reclaim it depends on the claimant's place in the tree who gives; what a gang's claims
/// count for, on the gang.
pub(super) fn reclaims_like(view: View<'_>, gang: GangId) -> u64 {
    if classes::asked_by(view, gang).is_some() {
        return (1 << 32) + u64::from(gang.0);
    }
    let all = &view.state.capacity;
    match view.tables.gang(gang).queue {
        Some(queue) if all.is_tree && view.config.capacity.level > 0 => u64::from(queue.0) + 1,
        _ => 0,
    }
}

/// A.3: a task of a queue that holds more than it deserves of something that the claimant asks for and the
/// task holds, or that deserves nothing of what the task holds, or no pod slot for it; and nobody is brought
/// below what is kept for it.
pub(super) fn reclaimable(
    view: View<'_>,
    claimant: Claimant,
    tasks: &[TaskId],
    allowed: &mut [bool],
) {
    let mut given = Given {
        view,
        claimant: claimant.queue,
        request: &view.tables.shape_of(claimant.task).spec.requests,
        classes: classes::asked_by(view, claimant.gang),
        is_counted: tasks.len() > 1,
        left: BTreeMap::new(),
        gone: BTreeMap::new(),
    };
    for (task, allowed) in tasks.iter().zip(allowed) {
        *allowed &= given.gives(*task);
    }
}

/// What the queue holds, in a tree with all below it.
fn used(view: View<'_>, id: QueueId) -> &Vector {
    let queue = view.tables.queue(id);
    if view.state.capacity.is_tree {
        &queue.used
    } else {
        &queue.used_own
    }
}

/// What queues still hold while one candidate after the other is counted as gone.
struct Given<'a> {
    view: View<'a>,
    claimant: QueueId,
    /// What the claimant asks for.
    request: &'a Vector,
    /// What its gang asks for by claims: they start together, and who of them asks makes no difference.
    classes: Option<&'a Vector>,
    /// Whether there are others who would come after one that gives.
    is_counted: bool,
    /// Of queues that have given something.
    left: BTreeMap<QueueId, Vector>,
    /// How many of those that use a claim in a queue are gone.
    gone: BTreeMap<(QueueId, &'a Key), u32>,
}

impl<'a> Given<'a> {
    fn gives(&mut self, task: TaskId) -> bool {
        let (tables, all) = (self.view.tables, &self.view.state.capacity);
        let Some(queue) = queue_of(tables, task) else {
            return false;
        };
        let is_well = |row: &&Row| row.misplaced.is_none() && all.stops_all.is_none();
        let Some(row) = all.row(queue).filter(is_well) else {
            return false;
        };
        let held = Held {
            requests: &tables.shape_of(task).spec.requests,
            classes: classes::held_by(self.view, task),
        };
        // Asked of nearly everybody and mostly in vain: what decides the most comes first.
        let is_given = match deserves_some(row, &held) {
            true => self.exceeds(queue, row, &held),
            false => {
                self.has_more_pods(queue, row)
                    && self.asked().any(|kind| held.has(kind))
                    && !self.is_kin_without_claim(queue)
            }
        };
        if !is_given || self.breaks_into(queue, row, task, &held) {
            return false;
        }
        let level = if all.is_tree {
            self.view.config.capacity.level
        } else {
            0
        };
        let theirs = row.above.iter().take(level).enumerate();
        let ours = all.row(self.claimant).map(|row| &row.above);
        let is_asked = |(at, id): &(usize, &QueueId)| {
            let same = ours.and_then(|above| above.get(*at)) == Some(*id);
            Some(**id) != all.root && !same
        };
        let above = theirs.filter(is_asked).map(|(_, id)| *id);
        // Kin are spared at the leaf alone: one above that deserves nothing of it stands in nobody's way.
        let lets_go = |id| {
            let row = all.row(id);
            row.is_some_and(|row| match deserves_some(row, &held) {
                true => self.exceeds(id, row, &held),
                false => self.has_more_pods(id, row),
            })
        };
        if !above.clone().all(lets_go) {
            return false;
        }
        if !self.is_counted {
            return true;
        }
        for id in std::iter::once(queue).chain(above) {
            self.give(id, task, &held);
        }
        true
    }

    /// The task is counted as gone from the queue.
    fn give(&mut self, id: QueueId, task: TaskId, held: &Held<'_>) {
        let freed = self.freed(id, task);
        let tables = self.view.tables;
        let left = self.left.entry(id).or_insert_with(|| {
            let used = used(self.view, id);
            let classes = tables.classes_held(id);
            let mut left = classes.map_or_else(|| used.clone(), |classes| used.plus(classes));
            left.set(Kind::PODS, self.view.state.capacity.slots(tables, id));
            left
        });
        left.set(Kind::PODS, left.get(Kind::PODS).saturating_sub(1));
        left.sub(held.requests);
        left.sub(&freed);
        for charge in &tables.task(task).charges {
            *self.gone.entry((id, &charge.claim)).or_default() += 1;
        }
    }

    /// What its claims no longer count for in the queue without the task: those that nobody else uses there.
    fn freed(&self, id: QueueId, task: TaskId) -> Vector {
        let tables = self.view.tables;
        let is_last = |claim| {
            let gone = self.gone.get(&(id, claim)).copied().unwrap_or(0);
            tables.holders_of(id, claim) <= gone + 1
        };
        let charges = tables.task(task).charges.iter();
        classes::sum(charges.filter(|charge| is_last(&charge.claim)))
    }

    /// What the queue holds without those who have gone. It is looked up once, and asked for several kinds.
    fn left(&self, id: QueueId) -> impl Fn(Kind) -> i64 {
        let view = self.view;
        let counted = self.left.get(&id);
        let (sum, classes) = match counted {
            Some(left) => (left, None),
            None => (used(view, id), view.tables.classes_held(id)),
        };
        move |kind| {
            if kind == Kind::PODS && counted.is_none() {
                return view.state.capacity.slots(view.tables, id);
            }
            let of_classes = classes.map_or(0, |classes| classes.get(kind));
            sum.get(kind).saturating_add(of_classes)
        }
    }

    /// The kinds that the claimant asks for.
    fn asked(&self) -> impl Iterator<Item = Kind> {
        let classes = self.classes.into_iter().flat_map(Vector::entries);
        let both = self.request.entries().chain(classes);
        both.map(|(kind, _)| kind)
    }

    /// Whether something that is kept for the queue would be short without the task.
    fn breaks_into(&self, id: QueueId, row: &Row, task: TaskId, held: &Held<'_>) -> bool {
        let mut kept = row.guarantee.entries().peekable();
        if kept.peek().is_none() {
            return false;
        }
        let (left, freed) = (self.left(id), self.freed(id, task));
        kept.any(|(kind, kept)| {
            let goes = match kind {
                Kind::PODS => 1,
                _ => held.requests.get(kind).saturating_add(freed.get(kind)),
            };
            left(kind).saturating_sub(goes) < kept
        })
    }

    /// Whether the queue has more pods than it deserves, if it says how many. They count only where it deserves
    /// nothing else of what the task holds: with a pod less it has less of that, too.
    fn has_more_pods(&self, id: QueueId, row: &Row) -> bool {
        let deserved = row.deserved.get(Kind::PODS);
        deserved == 0 || self.left(id)(Kind::PODS) > deserved
    }

    /// Whether the queue holds more than it deserves of something that the claimant asks for and the task
    /// holds. What else it has too much of makes no victims: its end would bring the queue below what it
    /// deserves of what is asked for, or free none of what there is too much of.
    fn exceeds(&self, id: QueueId, row: &Row, held: &Held<'_>) -> bool {
        let left = self.left(id);
        let mut asked = self.asked().filter(|kind| held.has(*kind));
        asked.any(|kind| {
            let deserved = row.deserved.get(kind);
            deserved > 0 && left(kind) > deserved
        })
    }

    /// Kin within the level from whom a claimant that deserves nothing of what it asks for takes nothing.
    fn is_kin_without_claim(&self, id: QueueId) -> bool {
        let all = &self.view.state.capacity;
        let level = self.view.config.capacity.level;
        if !all.is_tree || level == 0 {
            return false;
        }
        let Some((ours, theirs)) = all.row(self.claimant).zip(all.row(id)) else {
            return false;
        };
        let deserves = self.asked().any(|kind| ours.deserved.get(kind) > 0);
        let near = |row: &Row| -> Vec<QueueId> {
            let above = row.above.iter().copied().take(level);
            above.filter(|id| Some(*id) != all.root).collect()
        };
        let theirs = near(theirs);
        !deserves && near(ours).iter().any(|id| theirs.contains(id))
    }
}

/// Whether the queue deserves something of what the task holds beside its slot.
fn deserves_some(row: &Row, held: &Held<'_>) -> bool {
    row.deserved.entries().any(|(kind, _)| held.has(kind))
}

/// What a task holds.
struct Held<'a> {
    requests: &'a Vector,
    /// What its claims count for, those with it that others use as well.
    classes: Vector,
}

impl Held<'_> {
    fn has(&self, kind: Kind) -> bool {
        self.requests.get(kind) > 0 || self.classes.get(kind) > 0
    }
}
