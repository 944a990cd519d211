//! Where tasks of a queue may stand: what rules say of a node not only for a task's shape, but also for
//! its queue.
//!
//! Such rules see of a node nothing but its group. So what they say to a task is one small value, and
//! equal values are one: queues of which the same is said share their indexes, and a limit that is
//! reached and left again leads back to an index that is there already.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GroupLimits, NodeId, NodeSpec, Refusal, ShapeId, TaskId};

use crate::cycle::Cycle;
use crate::plugin::Score;
use crate::plugins;

/// What is said of a node: so many points more, or no.
pub(crate) type Stand = Result<Score, Refusal>;

/// What is said of every node, by its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Footing {
    /// Of nodes in these groups.
    pub(crate) groups: BTreeMap<Arc<str>, Stand>,
    /// Of nodes in any other group.
    pub(crate) others: Stand,
    /// Of nodes in no group.
    pub(crate) bare: Stand,
}

impl Footing {
    /// Any node is as good as the other.
    pub(crate) const ANYWHERE: Footing = Footing {
        groups: BTreeMap::new(),
        others: Ok(0),
        bare: Ok(0),
    };

    /// What is said of this node.
    pub(crate) fn of(&self, node: &NodeSpec) -> &Stand {
        match &node.group {
            None => &self.bare,
            Some(group) => self.groups.get(group).unwrap_or(&self.others),
        }
    }

    /// Why the node is not for the task, if it is not.
    pub(crate) fn refuses(&self, node: &NodeSpec) -> Option<Refusal> {
        self.of(node).as_ref().err().cloned()
    }

    /// How many points more the node has.
    pub(crate) fn points(&self, node: &NodeSpec) -> Score {
        self.of(node).as_ref().copied().unwrap_or(0)
    }
}

/// For whom nodes are judged: tasks of one shape of whom the same is said for their queues' sake.
/// Nothing is said where no rule looks at queues.
pub(crate) type Asker = (ShapeId, Option<Arc<Footing>>);

/// Why the task may not be on the node for its queue's sake.
pub(crate) fn refuses(cycle: &Cycle<'_, '_>, task: TaskId, node: NodeId) -> Option<Refusal> {
    let view = cycle.view();
    let footing = cycle.rules.footing(view, task)?;
    footing.refuses(&view.tables.node(node).spec)
}

/// Whether a limit of its queue in a group of nodes may refuse the task: then it counts who is there.
pub(crate) fn is_limited(cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
    let tables = cycle.trial.tables();
    let queue = plugins::queue_of(tables, task).filter(|_| cycle.rules.looks_at_queues());
    queue.is_some_and(|queue| tables.queue(queue).spec.group_limits != GroupLimits::default())
}

/// Whether all that is promised may be where it is promised, for their queue's sake: limits count what
/// is elsewhere, too, so that one promise can break another.
pub(crate) fn holds(cycle: &mut Cycle<'_, '_>, promised: &[(TaskId, NodeId)]) -> bool {
    if !cycle.rules.looks_at_queues() {
        return true;
    }
    promised.iter().all(|(task, node)| {
        let mark = cycle.trial.mark();
        cycle.trial.unpromise(*task);
        let refused = refuses(cycle, *task, *node);
        cycle.trial.rewind(mark);
        refused.is_none()
    })
}
