//! The queues of a story: a tree of which only the leaves take work, shared by weight.

use serde_json::{Value, json};

use super::pick;
use crate::random::Random;

/// Weights are at most so large.
const WEIGHT_MAX: i64 = 3;
/// The weight of the queues that every story has: the default one and the late one.
const OTHERS_WEIGHT: i64 = 2;

/// Queues, parents before their children; none in stories without a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) queues: Vec<Queue>,
    /// What the cluster has of cpu, in thousandths.
    total_milli: i64,
}

/// A queue as its user writes it, and what becomes of it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) name: String,
    parent: Option<usize>,
    weight: i64,
    /// Its weight after somebody has changed it.
    pub(super) weight_later: i64,
    /// The most that it may use.
    ceiling_milli: Option<i64>,
    /// Its ceiling after somebody has changed it.
    pub(super) ceiling_later_milli: Option<i64>,
    guarantee_milli: i64,
}

/// Where a part goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// None for the default queue.
    pub(super) queue: Option<String>,
    /// What it is sure to get, in thousandths of cpu, whatever all others want for ever; nothing
    /// where nobody else wants anything.
    pub(super) sure_milli: Option<i64>,
}

impl Tree {
    /// Two to five queues, some of them below others.
    pub(super) fn draw(random: &mut Random, total_milli: i64) -> Tree {
        let count = random.between(2, 5);
        let mut queues: Vec<Queue> = Vec::new();
        for index in 0..count {
            let tops: Vec<usize> = (0..queues.len())
                .filter(|at| queues[*at].parent.is_none() && queues[*at].guarantee_milli == 0)
                .collect();
            let parent = match tops.is_empty() || random.once_in(2) {
                true => None,
                false => {
                    let last = i64::try_from(tops.len()).unwrap_or(1);
                    Some(tops[pick(random, last)])
                }
            };
            let mut weight = || random.between(1, WEIGHT_MAX);
            let (weight, weight_later) = (weight(), weight());
            // A ceiling below is never above that of its parent, which has none.
            let mut ceiling = || random.between(total_milli / 4, total_milli);
            let ceilings = (ceiling(), ceiling());
            let has_ceiling = random.once_in(3);
            let has_guarantee = parent.is_none() && random.once_in(4);
            queues.push(Queue {
                name: format!("queue-{index}"),
                parent,
                weight,
                weight_later,
                ceiling_milli: has_ceiling.then_some(ceilings.0),
                ceiling_later_milli: has_ceiling.then_some(ceilings.1),
                guarantee_milli: if has_guarantee { total_milli / 8 } else { 0 },
            });
        }
        let mut tree = Tree {
            queues,
            total_milli,
        };
        // Whoever has children takes no work and has neither a ceiling nor a guarantee of its own.
        for at in 0..tree.queues.len() {
            if !tree.is_leaf(at) {
                tree.queues[at].ceiling_milli = None;
                tree.queues[at].ceiling_later_milli = None;
                tree.queues[at].guarantee_milli = 0;
            }
        }
        tree
    }

    pub(super) fn is_leaf(&self, at: usize) -> bool {
        self.queues.iter().all(|queue| queue.parent != Some(at))
    }

    /// The leaves, by number.
    pub(super) fn leaves(&self) -> Vec<usize> {
        let all = 0..self.queues.len();
        all.filter(|at| self.is_leaf(*at)).collect()
    }

    /// A queue for a part: a leaf, or the default one. Nothing is drawn without a tree.
    pub(super) fn pick(&self, random: &mut Random) -> Place {
        if self.queues.is_empty() {
            return Place::default();
        }
        let leaves = self.leaves();
        let count = i64::try_from(leaves.len()).unwrap_or(0);
        let leaf = match random.once_in(4) {
            true => None,
            false => leaves.get(pick(random, count)).map(|at| &self.queues[*at]),
        };
        Place {
            queue: leaf.map(|queue| queue.name.clone()),
            sure_milli: Some(self.sure_milli(leaf)),
        }
    }

    /// What the late queue is sure to get.
    pub(super) fn sure_of_others(&self) -> Option<i64> {
        (!self.queues.is_empty()).then(|| self.sure_milli(None))
    }

    /// By weight, however weights and ceilings change: its least against everybody's most.
    fn sure_milli(&self, leaf: Option<&Queue>) -> i64 {
        let leaves = self.leaves();
        let queues = leaves.iter().map(|at| &self.queues[*at]);
        let most = |queue: &Queue| queue.weight.max(queue.weight_later);
        let all: i64 = OTHERS_WEIGHT + queues.clone().map(most).sum::<i64>();
        let kept: i64 = queues.map(|queue| queue.guarantee_milli).sum();
        let weight = leaf.map_or(1, |queue| queue.weight.min(queue.weight_later));
        let share = self.total_milli * weight / all;
        let own = leaf.map_or(0, |queue| queue.guarantee_milli);
        let ceilings = leaf.map(|queue| [queue.ceiling_milli, queue.ceiling_later_milli]);
        let ceiling = ceilings.into_iter().flatten().flatten().min();
        share
            .min(self.total_milli - kept + own)
            .min(ceiling.unwrap_or(i64::MAX))
    }

    /// What its user writes.
    pub(super) fn manifest(&self, at: usize) -> Value {
        let queue = &self.queues[at];
        let mut spec = json!({ "weight": queue.weight });
        if let Some(parent) = queue.parent {
            spec["parent"] = self.queues[parent].name.clone().into();
        }
        if let Some(milli) = queue.ceiling_milli {
            spec["capability"] = json!({ "cpu": format!("{milli}m") });
        }
        if queue.guarantee_milli > 0 {
            let kept = json!({ "cpu": format!("{}m", queue.guarantee_milli) });
            spec["guarantee"] = json!({ "resource": kept });
            spec["deserved"] = kept;
        }
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": { "name": queue.name },
            "spec": spec,
        })
    }

    /// For the transcript.
    pub(super) fn told(&self) -> String {
        let line = |queue: &Queue| {
            let parent = queue.parent.map(|at| self.queues[at].name.as_str());
            format!(
                "{} below {} weight {} ceiling {:?} guarantee {}",
                queue.name,
                parent.unwrap_or("root"),
                queue.weight,
                queue.ceiling_milli,
                queue.guarantee_milli
            )
        };
        let lines: Vec<String> = self.queues.iter().map(line).collect();
        lines.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_queues_are_sure_of_fits_the_cluster() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let total = random.between(2, 320) * 1_000;
            let tree = Tree::draw(&mut random, total);
            let leaves = tree.leaves();
            let sure = leaves
                .iter()
                .map(|at| tree.sure_milli(Some(&tree.queues[*at])));
            let others = OTHERS_WEIGHT * tree.sure_milli(None);
            let all: i64 = sure.clone().sum::<i64>() + others;
            assert!(
                all <= total,
                "seed {seed}: {all} of {total}\n{}",
                tree.told()
            );
            assert!(sure.chain([others]).all(|it| it > 0), "seed {seed}");
        }
    }
}
