//! Queues that wait for their turn, the first of them on top, also where they are a tree.
//!
//! In a tree a queue's place is that of its branch, which moves with every turn of a queue below it: what one
//! gets puts its siblings back, too. So each branch has a heap of its own, with what is right below it, each
//! standing for the best queue that waits there. A turn moves those on the way to its queue and nobody else.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{QueueId, Tables};

use crate::order::Heap;

/// What stands in a branch's heap.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// A queue with its own gangs.
    Own(QueueId),
    /// The best of those that wait in another branch, by its number.
    Below(usize),
}

/// What is right below a queue, or below none.
#[derive(Debug)]
struct Branch {
    heap: Heap<Entry>,
    above: Option<usize>,
    depth: usize,
}

/// The queues that wait.
pub(crate) struct Turns {
    /// The first is the one of queues without another above.
    branches: Vec<Branch>,
    numbers: BTreeMap<QueueId, usize>,
    /// Branches that are in no heap yet, the deepest first.
    loose: BTreeSet<(Reverse<usize>, usize)>,
    /// The queue that has its turn, with its branch, and whether it will want another one. It stays where it is,
    /// on top, until the next one is sought.
    taken: Option<(QueueId, usize)>,
    wants_more: bool,
    is_tree: bool,
}

impl Turns {
    /// Nobody waits; whether queues are a tree.
    pub(crate) fn new(is_tree: bool) -> Turns {
        Turns {
            branches: vec![Branch {
                heap: Heap::new(),
                above: None,
                depth: 0,
            }],
            numbers: BTreeMap::new(),
            loose: BTreeSet::new(),
            taken: None,
            wants_more: false,
            is_tree,
        }
    }

    /// A queue waits for its turn, or the one that has it wants another one.
    pub(crate) fn push(
        &mut self,
        tables: &Tables,
        queue: QueueId,
        before: impl Fn(QueueId, QueueId) -> bool,
    ) {
        if self.taken.is_some_and(|(taken, _)| taken == queue) {
            self.wants_more = true;
            return;
        }
        let branch = self.branch_above(tables, queue);
        self.insert(branch, Entry::Own(queue), &before);
    }

    /// The number of the branch in which the queue stands; those above it are loose while they are new.
    fn branch_above(&mut self, tables: &Tables, queue: QueueId) -> usize {
        let above = tables.queue(queue).parent.filter(|_| self.is_tree);
        let Some(above) = above else {
            return 0;
        };
        if let Some(number) = self.numbers.get(&above) {
            return *number;
        }
        let over = self.branch_above(tables, above);
        let (number, depth) = (self.branches.len(), self.branches[over].depth + 1);
        self.branches.push(Branch {
            heap: Heap::new(),
            above: Some(over),
            depth,
        });
        self.numbers.insert(above, number);
        self.loose.insert((Reverse(depth), number));
        number
    }

    /// The first in order.
    pub(crate) fn pop(&mut self, before: impl Fn(QueueId, QueueId) -> bool) -> Option<QueueId> {
        // The deepest first: each stands for the best that waits below it.
        while let Some((_, branch)) = self.loose.pop_first() {
            let above = self.branches[branch]
                .above
                .expect("only the first has none");
            self.insert(above, Entry::Below(branch), &before);
        }
        self.settle(&before);
        let mut branch = 0;
        loop {
            match self.branches[branch].heap.first()? {
                Entry::Below(below) => branch = below,
                Entry::Own(queue) => {
                    self.taken = Some((queue, branch));
                    return Some(queue);
                }
            }
        }
    }

    /// Whoever had a turn gets its new place, or goes, and so do those that stand for it.
    fn settle(&mut self, before: &impl Fn(QueueId, QueueId) -> bool) {
        let Some((_, mut branch)) = self.taken.take() else {
            return;
        };
        let mut stays = std::mem::take(&mut self.wants_more);
        loop {
            let mut heap = std::mem::take(&mut self.branches[branch].heap);
            let before = |a, b| self.is_before(a, b, before);
            match stays {
                true => heap.settle(before),
                false => drop(heap.pop(before)),
            }
            stays = heap.first().is_some();
            self.branches[branch].heap = heap;
            match self.branches[branch].above {
                Some(above) => branch = above,
                None => return,
            }
        }
    }

    /// Puts the first on top, where their order has changed since for another reason than a turn.
    pub(crate) fn sort(&mut self, before: impl Fn(QueueId, QueueId) -> bool) {
        self.settle(&before);
        let mut all: Vec<usize> = (0..self.branches.len()).collect();
        all.sort_by_key(|branch| Reverse(self.branches[*branch].depth));
        for branch in all {
            let mut heap = std::mem::take(&mut self.branches[branch].heap);
            heap.sort(|a, b| self.is_before(a, b, &before));
            self.branches[branch].heap = heap;
        }
    }

    fn insert(&mut self, branch: usize, entry: Entry, before: &impl Fn(QueueId, QueueId) -> bool) {
        let mut heap = std::mem::take(&mut self.branches[branch].heap);
        heap.push(entry, |a, b| self.is_before(a, b, before));
        self.branches[branch].heap = heap;
    }

    fn is_before(&self, a: Entry, b: Entry, before: &impl Fn(QueueId, QueueId) -> bool) -> bool {
        match (self.best(a), self.best(b)) {
            (Some(a), Some(b)) => before(a, b),
            // Whoever stands for nobody any more comes last.
            (a, b) => a.is_some() && b.is_none(),
        }
    }

    fn best(&self, entry: Entry) -> Option<QueueId> {
        let mut next = entry;
        loop {
            match next {
                Entry::Own(queue) => return Some(queue),
                Entry::Below(branch) => next = self.branches[branch].heap.first()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{QueueId, QueueSpec, Tables};

    use super::Turns;
    use crate::dice::Dice;

    /// A random tree; its leaves.
    fn tree(dice: &mut Dice) -> (Tables, Vec<QueueId>) {
        let mut tables = Tables::new();
        for at in 0..2 + dice.roll(12) {
            let parent = (at > 0 && dice.roll(4) > 0).then(|| format!("q{}", dice.roll(at)));
            tables.put_queue(QueueSpec {
                name: format!("q{at}").as_str().into(),
                parent: parent.as_deref().map(Into::into),
                ..QueueSpec::default()
            });
        }
        let leaves = tables.queues().filter(|(_, row)| row.children.is_empty());
        let leaves = leaves.map(|(id, _)| id).collect();
        (tables, leaves)
    }

    /// Where the ways to the two part the one with less comes first.
    fn is_before(tables: &Tables, held: &[u64], a: QueueId, b: QueueId) -> bool {
        let way = |queue| {
            let mut way: Vec<QueueId> = tables.up_from(queue).collect();
            way.reverse();
            way
        };
        let (ours, theirs) = (way(a), way(b));
        let mut both = ours.iter().zip(&theirs);
        let apart = both.find(|(x, y)| x != y).map(|(x, y)| (*x, *y));
        let (x, y) = apart.unwrap_or((a, b));
        (held[x.index()], a) < (held[y.index()], b)
    }

    /// The best of those that wait, branch by branch, with nothing kept.
    fn best(tables: &Tables, held: &[u64], waiting: &BTreeSet<QueueId>) -> Option<QueueId> {
        fn of(
            tables: &Tables,
            held: &[u64],
            waiting: &BTreeSet<QueueId>,
            queues: &[QueueId],
        ) -> Option<QueueId> {
            let mut best: Option<QueueId> = None;
            for queue in queues {
                let below: Vec<QueueId> = tables.queue(*queue).children.iter().copied().collect();
                let own = waiting.contains(queue).then_some(*queue);
                let found = own.or_else(|| of(tables, held, waiting, &below));
                best = match (best, found) {
                    (Some(a), Some(b)) if is_before(tables, held, a, b) => Some(a),
                    (before, None) => before,
                    (_, found) => found,
                };
            }
            best
        }
        let tops = tables.queues().filter(|(_, row)| row.parent.is_none());
        let tops: Vec<QueueId> = tops.map(|(id, _)| id).collect();
        of(tables, held, waiting, &tops)
    }

    #[test]
    fn whoever_has_its_turn_is_the_best_of_those_that_wait() {
        for seed in 0..400 {
            let mut dice = Dice(seed);
            let (tables, leaves) = tree(&mut dice);
            let mut held = vec![0; tables.queues().count()];
            held.iter_mut().for_each(|it| *it = dice.roll(5));
            let mut turns = Turns::new(true);
            for leaf in &leaves {
                turns.push(&tables, *leaf, |a, b| is_before(&tables, &held, a, b));
            }
            let mut waiting: BTreeSet<QueueId> = leaves.into_iter().collect();
            while let Some(queue) = turns.pop(|a, b| is_before(&tables, &held, a, b)) {
                assert_eq!(Some(queue), best(&tables, &held, &waiting), "seed {seed}");
                // What it gets counts for all above it.
                let got = dice.roll(3);
                tables.up_from(queue).for_each(|at| held[at.index()] += got);
                match dice.roll(3) {
                    0 => drop(waiting.remove(&queue)),
                    _ => turns.push(&tables, queue, |a, b| is_before(&tables, &held, a, b)),
                }
            }
            assert!(waiting.is_empty(), "seed {seed}: each has its turn");
        }
    }
}
