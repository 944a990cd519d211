//! Points in proportion to the most among all nodes that take a shape: the fewer NUMA nodes a task of it
//! would lie on, the more (`numa-aware`).
//!
//! The most is kept with the numbers, so that a change of one node says anew what others are worth only
//! where it moves the most.

use model::{NUMA_NODES_MAX, NodeId};

use crate::plugin::Score;
use crate::plugins::nodeorder::POINT;

/// Nodes with what they are worth by themselves, and how wide a task would lie there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Widths {
    weight: i64,
    rows: Vec<Option<(Score, usize)>>,
    /// How many nodes there are of each width.
    counts: [u32; NUMA_NODES_MAX + 1],
}

impl Widths {
    /// None yet, of so many nodes.
    pub(crate) fn of(weight: i64, nodes: usize) -> Widths {
        Widths {
            weight,
            rows: vec![None; nodes],
            ..Widths::default()
        }
    }

    /// Says of a node what it is worth by itself and how wide a task would lie there, or that it takes
    /// none. Whether others are worth something else by that.
    pub(crate) fn put(&mut self, node: NodeId, row: Option<(Score, usize)>) -> bool {
        let before = self.most();
        let row = row.map(|(score, width)| (score, width.min(NUMA_NODES_MAX)));
        if let Some((_, width)) = std::mem::replace(&mut self.rows[node.index()], row) {
            self.counts[width] -= 1;
        }
        if let Some((_, width)) = row {
            self.counts[width] += 1;
        }
        self.most() != before
    }

    /// What a node is worth in all: 100 points less its share of the most, each so often as they weigh.
    pub(crate) fn worth(&self, node: NodeId) -> Option<Score> {
        let (score, width) = self.rows[node.index()]?;
        let share = (width * 100).checked_div(self.most()).unwrap_or(0);
        let points = 100 - i64::try_from(share).unwrap_or(100);
        let points = points.saturating_mul(self.weight).saturating_mul(POINT);
        Some(score.saturating_add(points))
    }

    fn most(&self) -> usize {
        let widths = self.counts.iter().rposition(|count| *count > 0);
        widths.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn worths_are_as_if_found_out_anew_and_who_moves_others_says_so() {
        let nodes = 6;
        for seed in 0..200_u64 {
            let mut widths = Widths::of(3, nodes);
            let mut rows = vec![None; nodes];
            let mut dice = Dice(seed);
            let mut roll = |sides: usize| dice.place(sides);
            for _ in 0..40 {
                let (at, score) = (roll(6), i64::try_from(roll(5)).unwrap_or(0));
                let row = (roll(3) > 0).then(|| (score, roll(4)));
                let before: Vec<_> = (0..nodes)
                    .map(|at| widths.worth(NodeId::from(at)))
                    .collect();
                let moves = widths.put(NodeId::from(at), row);
                rows[at] = row;
                let most = rows.iter().flatten().map(|(_, width)| *width).max();
                for other in 0..nodes {
                    let worth = widths.worth(NodeId::from(other));
                    let points = |width: usize| match most {
                        None | Some(0) => 100,
                        Some(most) => 100 - i64::try_from(width * 100 / most).unwrap_or(0),
                    };
                    let anew = rows[other].map(|(score, width)| score + 3 * POINT * points(width));
                    assert_eq!(worth, anew, "seed {seed}");
                    if other != at && worth != before[other] {
                        assert!(moves, "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_is_wider_than_all_numa_nodes() {
        let mut widths = Widths::of(1, 1);
        widths.put(NodeId::from(0), Some((0, usize::MAX)));
        assert_eq!(widths.worth(NodeId::from(0)), Some(0));
    }
}
