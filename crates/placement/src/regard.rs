//! How one task regards nodes, each by itself: for questions about what would help it. What other nodes
//! and other tasks of its gang have to say is not asked here.

use std::sync::Arc;

use model::{NodeGroups, NodeId, QueueId, Refusal, Tables, TaskId, Time, Trial};

use crate::footing::Footing;
use crate::plugin::{Room, View};
use crate::plugins::{self, deviceshare, predicates::lacks};
use crate::rules::{Rules, State};

/// One task's view of nodes, as the tables are now.
pub struct Regard<'a> {
    rules: &'a Rules,
    tables: &'a Tables,
    task: TaskId,
    state: State,
    footing: Option<Arc<Footing>>,
}

impl<'a> Regard<'a> {
    /// The view of a task.
    pub fn of(rules: &'a Rules, tables: &'a Tables, task: TaskId, now: Time) -> Regard<'a> {
        let state = State::at(now);
        let footing = rules.footing(rules.view(tables, &state), task);
        Regard {
            rules,
            tables,
            task,
            state,
            footing,
        }
    }

    /// Why the node would refuse it even if nobody held anything there, or in the node's group.
    pub fn stance(&self, node: NodeId) -> Option<Refusal> {
        let shape = self.tables.shape_of(self.task);
        let said = self.rules.suits(self.view(), shape, node);
        said.or_else(|| {
            let full = Refusal::NodeGroupFull;
            self.group_refusal(node).filter(|refusal| *refusal != full)
        })
    }

    /// Why it may not be in the node's group, for its queue's sake.
    pub fn group_refusal(&self, node: NodeId) -> Option<Refusal> {
        let spec = &self.tables.node(node).spec;
        self.footing.as_ref()?.refuses(spec)
    }

    /// Whether it would go there now.
    pub fn takes(&self, node: NodeId) -> bool {
        let (view, shape) = (self.view(), self.tables.shape_of(self.task));
        self.rules.suits(view, shape, node).is_none()
            && self.group_refusal(node).is_none()
            && self.rules.has_room(view, shape, node, Room::Now).is_none()
            && deviceshare::refuses(view, self.task, node, Room::Now).is_none()
            && lacks(view, shape, node, Room::Now).is_none()
    }

    fn view(&self) -> View<'_> {
        self.rules.view(self.tables, &self.state)
    }
}

/// How many of the waiting tasks would go to the node now, one after the other; they are alike, so that
/// behind the first that would not nobody is asked. What they are promised is not theirs meanwhile.
pub fn places_on(
    rules: &Rules,
    tables: &mut Tables,
    tasks: &[TaskId],
    node: NodeId,
    now: Time,
) -> usize {
    let mut trial = Trial::begin(tables);
    for task in tasks {
        if trial.tables().task(*task).node.is_some() {
            trial.unpromise(*task);
        }
    }
    let given = |trial: &Trial<'_>, task: TaskId| {
        let regard = Regard::of(rules, trial.tables(), task, now);
        let takes = regard.takes(node);
        takes.then(|| rules.hand_out(regard.view(), task, node))
    };
    let mut count = 0;
    for task in tasks {
        let Some(grants) = given(&trial, *task) else {
            break;
        };
        trial.place_with(*task, node, grants);
        count += 1;
    }
    count
}

impl Rules {
    /// When a zone that is lent out only at times opens next; never where nothing says so.
    pub fn zone_opens_at(&self, zone: &str, now: Time) -> Option<Time> {
        self.config.tdm.opens_at(&self.config, zone, now)
    }

    /// How much of a node's cpu and memory may be used before it takes nobody, in millionths of it.
    pub fn usage_most(&self) -> [i64; 2] {
        self.config.usage.most()
    }

    /// Which groups of nodes a queue uses, be it that one above it says so.
    pub fn node_groups(&self, tables: &Tables, queue: QueueId) -> NodeGroups {
        let state = State::default();
        plugins::nodegroup::groups_of(self.view(tables, &state), queue).clone()
    }
}
