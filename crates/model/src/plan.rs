//! The plan: all moves of one cycle. Each row is one wanted write, and pending in the tables until
//! it is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::gang::GangStatus;
use crate::ids::{GangId, NodeId, QueueId, TaskId, Tick, WriteId};
use crate::reason::Reason;
use crate::resource::Vector;
use crate::tables::{Query, Question};
use crate::time::Time;

/// All moves of one cycle, in the order in which they were decided.
///
/// Whoever carries it out answers every [`WriteId`] once, also for a row that turned out to need no
/// write (that is a `confirm`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The tables' tick at which it was decided.
    pub tick: Tick,
    /// Tasks to bind. Whole gangs, or the rest of gangs that are whole already.
    pub places: Vec<Place>,
    /// Tasks to evict.
    pub evictions: Vec<Eviction>,
    /// Tasks whose queue opens their gate.
    pub openings: Vec<Opening>,
    /// Tasks that are promised room on a node, or (`node` is `None`) no longer are.
    pub nominations: Vec<Nomination>,
    /// PodGroup statuses to write.
    pub statuses: Vec<StatusWrite>,
    /// What to say on pods that wait, only where it differs from what was said last. Best effort:
    /// no write id, nothing depends on them.
    pub waits: Vec<TaskWait>,
    /// What else to say of gangs whose status is written. Best effort, as `waits`.
    pub remarks: Vec<Remark>,
    /// Queue statuses (`status.allocated`) to write.
    pub queues: Vec<QueueUse>,
    /// What is to be asked of somebody outside, since somebody waits for an answer. No move depends on it
    /// in this cycle.
    pub asks: Vec<(Query, Question)>,
    /// When to run a cycle although nothing happens.
    pub wake_at: Option<Time>,
}

impl Plan {
    /// Whether there is nothing to carry out.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
            && self.evictions.is_empty()
            && self.openings.is_empty()
            && self.nominations.is_empty()
            && self.statuses.is_empty()
            && self.waits.is_empty()
            && self.remarks.is_empty()
            && self.queues.is_empty()
    }

    /// The same in parts, to be carried out in this order: statuses, and why tasks wait with what those
    /// tasks are promised, come so many at a time, for there may be as many as gangs and tasks. Everything
    /// else is in the first.
    pub fn into_parts(mut self, most: usize) -> Vec<Plan> {
        let statuses = self.statuses.split_off(self.statuses.len().min(most));
        let waits = self.waits.split_off(self.waits.len().min(most));
        let later: BTreeSet<TaskId> = waits.iter().map(|wait| wait.task).collect();
        let promises = self
            .nominations
            .extract_if(.., |it| later.contains(&it.task));
        let mut promises: BTreeMap<TaskId, Nomination> =
            promises.map(|promise| (promise.task, promise)).collect();
        let tick = self.tick;
        let mut parts = vec![self];
        parts.extend(statuses.chunks(most).map(|statuses| Plan {
            tick,
            statuses: statuses.to_vec(),
            ..Plan::default()
        }));
        parts.extend(waits.chunks(most).map(|waits| {
            let promised = waits.iter().filter_map(|wait| promises.remove(&wait.task));
            Plan {
                tick,
                nominations: promised.collect(),
                waits: waits.to_vec(),
                ..Plan::default()
            }
        }));
        parts
    }
}

/// One task to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The task.
    pub task: TaskId,
    /// The node.
    pub node: NodeId,
    /// The write that binds it.
    pub write: WriteId,
}

/// For whose or what sake a task is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sake {
    /// The gang that gets the room.
    Gang(GangId),
    /// Nobody gets the room by this plan: the task has to leave its node, and why.
    Leaving(Arc<Reason>),
}

impl Sake {
    /// The gang that gets the room, if one does.
    pub fn gang(&self) -> Option<GangId> {
        match self {
            Sake::Gang(gang) => Some(*gang),
            Sake::Leaving(_) => None,
        }
    }
}

/// One task to evict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The victim.
    pub task: TaskId,
    /// For whose or what sake.
    pub sake: Sake,
    /// Upstream's word for it: `preempt`, `reclaim`, `shuffle`, `gangpreempt`, `gangreclaim`.
    pub cause: &'static str,
    /// The write that evicts it.
    pub write: WriteId,
}

/// One task whose queue has room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The task.
    pub task: TaskId,
    /// The write that takes its gate away.
    pub write: WriteId,
}

/// One task's promised node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// The task.
    pub task: TaskId,
    /// The node, or none to take the promise back.
    pub node: Option<NodeId>,
}

/// One gang's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    /// The gang.
    pub gang: GangId,
    /// What its status should show.
    pub status: GangStatus,
    /// The write that shows it.
    pub write: WriteId,
}

/// Why one task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWait {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: Arc<Reason>,
}

/// What the people of a gang should know, though the gang does not wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The gang.
    pub gang: GangId,
    /// What.
    pub reason: Arc<Reason>,
}

/// One queue's use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUse {
    /// The queue.
    pub queue: QueueId,
    /// Requests of the allocated tasks of the queue and all below it.
    pub allocated: Vector,
    /// The write that shows it.
    pub write: WriteId,
}
