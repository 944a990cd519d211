//! The rules that are asked of every node.
//!
//! They are gathered once: to ask all rows for each of ten thousand nodes whether they have such a rule
//! takes as long as the answers of those that do.

use model::{NodeId, Refusal, Shape};

use super::Rules;
use crate::plugin::{NodeCheck, Plugin, Room, RoomCheck, Score, View};

/// Points for the node, from the node alone.
type NodeScore = fn(View<'_>, &Shape, NodeId) -> Score;

/// What rows have to say of nodes, each kind in tier order.
#[derive(Clone, Debug, Default)]
pub(super) struct OfNodes {
    suits: Vec<NodeCheck>,
    consents: Vec<NodeCheck>,
    has_room: Vec<RoomCheck>,
    score: Vec<NodeScore>,
}

impl OfNodes {
    pub(super) fn of(rows: &[Plugin]) -> OfNodes {
        let rows = || rows.iter();
        OfNodes {
            suits: rows().filter_map(|row| row.suits).collect(),
            consents: rows()
                .flat_map(|row| [row.consents, row.valued])
                .flatten()
                .collect(),
            has_room: rows().filter_map(|row| row.has_room).collect(),
            score: rows().filter_map(|row| row.score).collect(),
        }
    }
}

impl Rules {
    /// Why the node does not suit the shape.
    pub(crate) fn suits(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
        self.suits_by_itself(view, shape, node)
            .or_else(|| self.consents(view, shape, node))
    }

    /// Why the node does not suit the shape, as far as nobody outside is asked.
    pub(crate) fn suits_by_itself(
        &self,
        view: View<'_>,
        shape: &Shape,
        node: NodeId,
    ) -> Option<Refusal> {
        let mut rules = self.of_nodes.suits.iter();
        rules.find_map(|f| f(view, shape, node))
    }

    /// Why somebody outside does not agree to the node for the shape.
    pub(crate) fn consents(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
        let mut rules = self.of_nodes.consents.iter();
        rules.find_map(|f| f(view, shape, node))
    }

    /// Why what is held on the node leaves no room for the shape.
    pub(crate) fn has_room(
        &self,
        view: View<'_>,
        shape: &Shape,
        node: NodeId,
        room: Room,
    ) -> Option<Refusal> {
        let mut rules = self.of_nodes.has_room.iter();
        rules.find_map(|f| f(view, shape, node, room))
    }

    /// What the node is worth to the shape, by itself.
    pub(crate) fn score(&self, view: View<'_>, shape: &Shape, node: NodeId) -> Score {
        let rules = self.of_nodes.score.iter();
        rules.fold(0, |sum, f| sum.saturating_add(f(view, shape, node)))
    }
}
