//! What a plugin and an action can be: rows of optional function pointers.

use std::cmp::Ordering;

use model::{GangId, NodeId, QueueId, Reason, Refusal, Shape, Tables, TaskId};

use crate::arguments::Asked;
use crate::cycle::Cycle;
use crate::rules::{Config, State};
use crate::settings::Switch;

/// What a plugin sees: the tables as the trial has them, its settings, and what it computed when the
/// cycle began.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The tables.
    pub tables: &'a Tables,
    /// The plugins' settings.
    pub(crate) config: &'a Config,
    /// What the plugins computed at the cycle's start.
    pub(crate) state: &'a State,
}

/// A vote on letting a gang in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Whatever later tiers say.
    Permit,
    /// No opinion.
    Abstain,
    /// No, and why.
    Reject(Reason),
}

/// A score in millionths of a point.
pub type Score = i64;

/// Whether a node takes a shape.
pub type NodeCheck = fn(View<'_>, &Shape, NodeId) -> Option<Refusal>;

/// Whether a queue has room left for a task.
pub type ShareCheck = fn(View<'_>, QueueId, TaskId) -> Option<Reason>;

/// One plugin: the hooks that it has. A hook that is `None` abstains.
#[derive(Clone, Copy)]
pub struct Plugin {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Reads its arguments.
    pub configure: Option<fn(&mut Asked<'_>, &mut Config)>,
    /// Computes its state at the start of a cycle.
    pub open: Option<fn(&Tables, &Config, &mut State)>,
    /// Which gang of a queue comes first.
    pub job_order: Option<fn(View<'_>, GangId, GangId) -> Ordering>,
    /// Which queue comes first.
    pub queue_order: Option<fn(View<'_>, QueueId, QueueId) -> Ordering>,
    /// Which task of a gang comes first.
    pub task_order: Option<fn(View<'_>, TaskId, TaskId) -> Ordering>,
    /// Whether a gang can be tried at all.
    pub job_valid: Option<fn(View<'_>, GangId) -> Option<Reason>>,
    /// Whether enough of a gang is placed.
    pub job_ready: Option<fn(View<'_>, GangId) -> bool>,
    /// Whether a gang may be let in.
    pub enqueueable: Option<fn(View<'_>, GangId) -> Vote>,
    /// Whether a queue has its whole share.
    pub overused: Option<fn(View<'_>, QueueId) -> bool>,
    /// Whether a task keeps its queue within its share.
    pub allocatable: Option<ShareCheck>,
    /// Whether the node's own nature suits the shape: labels, taints, volumes' places.
    pub suits: Option<NodeCheck>,
    /// Whether what is held on the node leaves room for the shape.
    pub has_room: Option<NodeCheck>,
    /// Points for the node, from the node alone.
    pub score: Option<fn(View<'_>, &Shape, NodeId) -> Score>,
    /// Whether the task may never be a victim (the complete rule book's door).
    pub protects: Option<fn(View<'_>, TaskId) -> bool>,
}

impl Plugin {
    /// A plugin without any hook, to be completed by a row.
    pub const NONE: Plugin = Plugin {
        name: "",
        configure: None,
        open: None,
        job_order: None,
        queue_order: None,
        task_order: None,
        job_valid: None,
        job_ready: None,
        enqueueable: None,
        overused: None,
        allocatable: None,
        suits: None,
        has_room: None,
        score: None,
        protects: None,
    };

    /// The row with the switched-off hooks taken out.
    #[must_use]
    pub(crate) fn without(mut self, off: impl IntoIterator<Item = Switch>) -> Plugin {
        for switch in off {
            match switch {
                Switch::Allocatable => self.allocatable = None,
                Switch::JobEnqueued => self.enqueueable = None,
                Switch::JobOrder => self.job_order = None,
                Switch::JobReady => self.job_ready = None,
                Switch::NodeOrder => self.score = None,
                Switch::Overused => self.overused = None,
                Switch::Predicate => (self.suits, self.has_room) = (None, None),
                // The victim rules come with the complete rule book.
                Switch::Preemptable | Switch::Reclaimable => self.protects = None,
                Switch::QueueOrder => self.queue_order = None,
                Switch::TaskOrder => self.task_order = None,
                // No row has the hooks of these yet.
                Switch::BestNode
                | Switch::ClusterOrder
                | Switch::Hierarchy
                | Switch::HyperNodeGradient
                | Switch::HyperNodeOrder
                | Switch::JobPipelined
                | Switch::JobStarving
                | Switch::Preemptive
                | Switch::ReservedNodes
                | Switch::SubJobOrder
                | Switch::SubJobPipelined
                | Switch::SubJobReady
                | Switch::TargetJob
                | Switch::Victim => {}
            }
        }
        self
    }
}

/// One action.
#[derive(Clone, Copy)]
pub struct Action {
    /// Its name in the configuration.
    pub name: &'static str,
    /// What it does in a cycle.
    pub run: fn(&mut Cycle<'_, '_>),
}
