//! What is wished of nodes for what they are: it counts in proportion to what is wished of others.

use std::collections::BTreeMap;

use model::{NodeId, Shape, TaintEffect};

use crate::plugin::View;

/// How much a node is wished for or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    /// The weights of the preferred terms that it meets.
    pub(crate) preferred: i64,
    /// How many of its taints are avoided.
    pub(crate) avoided: i64,
}

impl Wish {
    /// What tasks of the shape wish of the node.
    pub(crate) fn of(view: View<'_>, shape: &Shape, id: NodeId) -> Wish {
        if shape.spec.preferred_nodes.is_empty() && view.tables.glance(id).is_open {
            return Wish::default();
        }
        let node = &view.tables.node(id).spec;
        let terms = shape.spec.preferred_nodes.iter();
        let met = terms.filter(|wish| wish.term.accepts(&node.name, &node.labels));
        let taints = node.taints.iter();
        let soft = taints.filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
        let open = soft.filter(|taint| !shape.spec.tolerations.iter().any(|t| t.covers(taint)));
        Wish {
            preferred: met.map(|wish| i64::from(wish.weight)).sum(),
            avoided: i64::try_from(open.count()).unwrap_or(i64::MAX),
        }
    }
}

/// All wishes that were met, numbered; nothing has the number 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    all: Vec<Wish>,
    numbers: BTreeMap<Wish, u32>,
}

impl Wishes {
    /// The number of the wish, a new one if it is met for the first time.
    pub(super) fn number(&mut self, wish: Wish) -> u32 {
        if wish == Wish::default() {
            return 0;
        }
        let next = NodeId::from(self.all.len() + 1).0;
        *self.numbers.entry(wish).or_insert_with(|| {
            self.all.push(wish);
            next
        })
    }

    /// The wish of this number.
    pub(super) fn of(&self, number: u32) -> Wish {
        let at = (number as usize).checked_sub(1);
        at.map_or_else(Wish::default, |at| self.all[at])
    }
}
