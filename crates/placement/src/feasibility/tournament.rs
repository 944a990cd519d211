//! Which of the nodes is worth the most, kept as a tournament among them.
//!
//! Nodes that stand next to each other compete in blocks, which are read through, and the blocks' winners
//! in a tree: so it takes little more memory than what each node is worth, which counts where an index is
//! made for a single task, and a change of one node costs O(log nodes).

use model::NodeId;

use super::NEVER;
use crate::plugin::Score;

/// So many nodes make a block.
const BLOCK: usize = 16;

/// What nodes are worth, and who wins.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    worth: Vec<Score>,
    /// The winner of each part, as a heap: the whole is at 1, the halves of the part at `n` are at `2n` and
    /// `2n + 1`, and the second half of the list is the blocks. Right once it was played.
    winners: Vec<u32>,
}

impl Tournament {
    /// Begins anew with so many nodes, none of which is worth anything yet.
    pub(super) fn begin(&mut self, nodes: usize) {
        // Room to grow, so that a few new nodes do not each begin it anew.
        let blocks = (nodes + nodes / 8).div_ceil(BLOCK).max(1);
        self.worth.clear();
        self.worth.resize(nodes, NEVER);
        self.winners.clear();
        self.winners.resize(blocks.next_power_of_two() * 2, 0);
    }

    /// For how many nodes there is room.
    pub(super) fn room(&self) -> usize {
        self.winners.len() / 2 * BLOCK
    }

    /// Takes new nodes in, as many as there are together; whether there is room for them.
    pub(super) fn takes_in(&mut self, nodes: usize) -> bool {
        let has_room = nodes <= self.room();
        if has_room {
            self.worth.resize(nodes, NEVER);
        }
        has_room
    }

    /// What the node is worth.
    #[inline]
    pub(super) fn worth(&self, node: NodeId) -> Score {
        self.worth.get(node.index()).copied().unwrap_or(NEVER)
    }

    /// What each node is worth, by id.
    pub(super) fn all(&self) -> &[Score] {
        &self.worth
    }

    /// The same, to be said anew; then it must be played.
    pub(super) fn all_mut(&mut self) -> &mut [Score] {
        &mut self.worth
    }

    /// Finds out anew who wins against whom.
    pub(super) fn play(&mut self) {
        let blocks = self.winners.len() / 2;
        for block in 0..blocks {
            self.winners[blocks + block] = self.best_of_block(block);
        }
        for at in (1..blocks).rev() {
            self.winners[at] = self.better(at);
        }
    }

    /// Says what a node is worth now, and who wins by that.
    pub(super) fn set(&mut self, node: NodeId, worth: Score) {
        let before = std::mem::replace(&mut self.worth[node.index()], worth);
        if worth == before {
            return;
        }
        let block = node.index() / BLOCK;
        let mut at = self.winners.len() / 2 + block;
        self.winners[at] = self.best_of_block(block);
        at /= 2;
        while at >= 1 {
            self.winners[at] = self.better(at);
            at /= 2;
        }
    }

    /// The node that is worth the most; of those that are worth the same, the one of the lowest id.
    pub(super) fn best(&self) -> Option<NodeId> {
        let winner = NodeId(*self.winners.get(1)?);
        (self.worth(winner) != NEVER).then_some(winner)
    }

    /// The better one of the two halves of a part. The left one wins a tie: it has the lower id.
    fn better(&self, at: usize) -> u32 {
        let (left, right) = (self.winners[2 * at], self.winners[2 * at + 1]);
        match self.worth(NodeId(right)) > self.worth(NodeId(left)) {
            true => right,
            false => left,
        }
    }

    fn best_of_block(&self, block: usize) -> u32 {
        let first = block * BLOCK;
        let worth = self.worth.get(first..).unwrap_or_default();
        let (mut best, mut most) = (first, NEVER);
        for (at, worth) in worth.iter().take(BLOCK).enumerate() {
            if *worth > most {
                (best, most) = (first + at, *worth);
            }
        }
        NodeId::from(best).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    /// By reading all of them.
    fn best(all: &[Score]) -> Option<NodeId> {
        let most = all.iter().copied().filter(|worth| *worth != NEVER).max()?;
        let at = all.iter().position(|worth| *worth == most);
        at.map(NodeId::from)
    }

    fn worth(dice: &mut Dice) -> Score {
        match dice.one_in(4) {
            true => NEVER,
            false => Score::from(dice.small(6)) - 3,
        }
    }

    #[test]
    fn the_first_of_those_that_are_worth_the_most_wins() {
        for seed in 0..300 {
            let dice = &mut Dice(seed);
            let mut all: Vec<Score> = (0..dice.small(100)).map(|_| worth(dice)).collect();
            let mut it = Tournament::default();
            it.begin(all.len());
            it.all_mut().copy_from_slice(&all);
            it.play();
            assert_eq!(it.best(), best(&all), "seed {seed}");
            for _ in 0..200 {
                if dice.one_in(20) && it.takes_in(all.len() + 1) {
                    all.push(NEVER);
                }
                if all.is_empty() {
                    continue;
                }
                let at = dice.place(all.len());
                all[at] = worth(dice);
                it.set(NodeId::from(at), all[at]);
                assert_eq!(it.best(), best(&all), "seed {seed}");
                assert_eq!(it.all(), all, "seed {seed}");
            }
        }
    }
}
