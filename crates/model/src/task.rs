//! Tasks: pods as the scheduler sees them.

use std::ops::Deref;
use std::sync::Arc;

use crate::charge::Charge;
use crate::device::Grant;
use crate::ids::{GangId, Key, NodeId, ShapeId, WriteId};
use crate::labels::Labels;
use crate::reason::Reason;
use crate::shape::ShapeSpec;
use crate::time::Time;
use crate::uid::Uid;
use crate::volume::TakenVolume;

/// Where a task is between being wanted and being over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Wants a node.
    Pending,
    /// Is promised room on a node that is not yet free.
    Pipelined,
    /// Placed on a trial that is still open.
    Allocated,
    /// Placed by a committed plan whose write is not yet seen.
    Binding,
    /// Bound to a node, not yet running.
    Bound,
    /// Running.
    Running,
    /// Being deleted; holds its node until it is gone.
    Releasing,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

impl Phase {
    /// All phases, in the order of a life.
    pub const ALL: [Phase; 9] = [
        Phase::Pending,
        Phase::Pipelined,
        Phase::Allocated,
        Phase::Binding,
        Phase::Bound,
        Phase::Running,
        Phase::Releasing,
        Phase::Succeeded,
        Phase::Failed,
    ];

    /// Whether the task holds room on its node.
    pub fn holds_node(self) -> bool {
        self.is_allocated() || self == Phase::Releasing
    }

    /// Whether the task counts as use of its queue (upstream's allocated set).
    pub fn is_allocated(self) -> bool {
        matches!(
            self,
            Phase::Allocated | Phase::Binding | Phase::Bound | Phase::Running
        )
    }

    /// Whether the task was given a node by a write that was taken, and has not failed there.
    pub fn is_under_way(self) -> bool {
        matches!(self, Phase::Bound | Phase::Running | Phase::Succeeded)
    }

    /// Whether the task still wants room.
    pub fn is_waiting(self) -> bool {
        matches!(self, Phase::Pending | Phase::Pipelined)
    }
}

/// Whether a task waits behind the gate that its queue opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// It has none of that kind.
    #[default]
    None,
    /// It does, and behind no other one.
    Closed,
    /// The write that opens it is on its way: what the task requests is kept for it in the queue.
    Opening,
    /// It was opened: the same, until the task has a node.
    Opened,
}

/// A task as the wall gives it.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Namespace and name of the pod.
    pub key: Key,
    /// Its uid: another uid under the same key is another task.
    pub uid: Uid,
    /// The gang's key; `None` for pods that are not ours to place but hold room.
    pub gang: Option<Key>,
    /// The task's role in its gang (`volcano.sh/task-spec`); empty when unset.
    pub role: Arc<str>,
    /// The number at the end of the pod's name, which orders tasks of one priority.
    pub index: u32,
    /// Requests and constraints.
    pub shape: ShapeSpec,
    /// Claims of its namespace that wait for their first consumer: all tasks that mount one of
    /// them must go to one node.
    pub claims: Vec<Arc<str>>,
    /// Claims of its namespace that one pod may use at a time (`ReadWriteOncePod`).
    pub sole: Vec<Arc<str>>,
    /// Labels, which other tasks' affinities look at.
    pub labels: Labels,
    /// Priority, or 1 when the pod has none; an annotation of the pod may say another one.
    pub priority: i32,
    /// The pod's own priority, where that is another one.
    pub pod_priority: Option<i32>,
    /// Whether its class is one of those of what the cluster itself needs.
    pub critical: bool,
    /// Whether it belongs to its node, and is there again when it was ended: a DaemonSet's, or one that the
    /// node runs by a file of its own.
    pub of_node: bool,
    /// What the pod's status says: never Pipelined, Allocated or Binding, which only plans make.
    pub phase: Phase,
    /// The node's name, once bound.
    pub node: Option<Arc<str>>,
    /// What it holds of its node's cards and units, once bound.
    pub grants: Vec<Grant>,
    /// What its claims of devices, and its virtual GPUs, count for in its queue.
    pub charges: Vec<Charge>,
    /// The node that it should go to if it fits there, by name.
    pub nominated: Option<Arc<str>>,
    /// Whether scheduling gates are left.
    pub gated: bool,
    /// The gate that its queue opens; never Opening, which only plans make.
    pub gate: Gate,
    /// Whether the task may be evicted for another.
    pub preemptable: bool,
    /// Whether others may be evicted for it (`preemptionPolicy` is not Never).
    pub preempts: bool,
    /// How long it is not evicted once it has its node, in milliseconds.
    pub cooldown_ms: i64,
    /// When it got its node, if it has one.
    pub scheduled: Option<Time>,
    /// When the pod was created.
    pub created: Time,
    /// When its node took the pod on, if it ever did.
    pub started: Option<Time>,
}

/// What a pod is that says nothing: it waits, may be evicted, and others may be evicted for it.
impl Default for TaskSpec {
    fn default() -> Self {
        TaskSpec {
            key: Key::default(),
            uid: Uid::default(),
            gang: None,
            role: Arc::default(),
            index: 0,
            shape: ShapeSpec::default(),
            claims: Vec::new(),
            sole: Vec::new(),
            labels: Labels::default(),
            priority: 1,
            pod_priority: None,
            critical: false,
            of_node: false,
            phase: Phase::Pending,
            node: None,
            grants: Vec::new(),
            charges: Vec::new(),
            nominated: None,
            gated: false,
            gate: Gate::None,
            preemptable: true,
            preempts: true,
            cooldown_ms: 0,
            scheduled: None,
            created: Time::default(),
            started: None,
        }
    }
}

/// A task's row. What few tasks have stands in a part of its own and is read like the rest, so that the
/// others take no memory for it.
#[derive(Clone, Debug)]
pub struct Task {
    /// Namespace and name of the pod.
    pub key: Key,
    /// Its uid.
    pub uid: Uid,
    /// The gang, if it is ours to place.
    pub gang: Option<GangId>,
    /// The task's role in its gang.
    pub role: Arc<str>,
    /// The number at the end of the pod's name.
    pub index: u32,
    /// Requests and constraints.
    pub shape: ShapeId,
    /// Labels.
    pub labels: Labels,
    /// Priority.
    pub priority: i32,
    /// Where it is in its life.
    pub phase: Phase,
    /// The node that it holds, or is promised; none once it is over.
    pub node: Option<NodeId>,
    /// Whether scheduling gates are left.
    pub gated: bool,
    /// The gate that its queue opens.
    pub gate: Gate,
    /// Whether it asks for no resources.
    pub best_effort: bool,
    /// Whether it may be evicted for another.
    pub preemptable: bool,
    /// Whether others may be evicted for it.
    pub preempts: bool,
    /// Whether its class is one of those of what the cluster itself needs.
    pub critical: bool,
    /// Whether it belongs to its node, and is there again when it was ended. No decision looks at it.
    pub of_node: bool,
    /// When the pod was created.
    pub created: Time,
    /// When its node took the pod on, if it ever did.
    pub started: Option<Time>,
    /// The bind or eviction that is on its way.
    pub write: Option<WriteId>,
    /// Why it waits, as last said to the world.
    pub said: Option<Arc<Reason>>,
    /// What few tasks have; nothing where this one has none of it.
    pub(crate) extras: Option<Box<Extras>>,
}

/// What few tasks have.
#[derive(Clone, Debug, PartialEq)]
pub struct Extras {
    /// Claims of its namespace that wait for their first consumer: all tasks that mount one of
    /// them must go to one node.
    pub claims: Vec<Arc<str>>,
    /// Claims of its namespace that one pod may use at a time.
    pub sole: Vec<Arc<str>>,
    /// What it holds of its node's cards and units; nothing while it waits or is promised room.
    pub grants: Vec<Grant>,
    /// The free volumes that a plan gives to its claims, until they have them.
    pub volumes: Option<Arc<[TakenVolume]>>,
    /// What its claims of devices, and its virtual GPUs, count for in its queue.
    pub charges: Vec<Charge>,
    /// The node that it should go to if it fits there, by name. A wish makes no room: that it has
    /// changed is no news.
    pub nominated: Option<Arc<str>>,
    /// How long it is not evicted once it has its node, in milliseconds.
    pub cooldown_ms: i64,
    /// When it got its node, where it has such a time.
    pub scheduled: Option<Time>,
    /// The pod's own priority, where an annotation says another one.
    pub pod_priority: Option<i32>,
}

/// What most tasks have of it.
static NO_EXTRAS: Extras = Extras {
    claims: Vec::new(),
    sole: Vec::new(),
    grants: Vec::new(),
    volumes: None,
    charges: Vec::new(),
    nominated: None,
    cooldown_ms: 0,
    scheduled: None,
    pod_priority: None,
};

impl Extras {
    /// For a row, which holds none where there is nothing in them.
    pub(crate) fn kept(self) -> Option<Box<Extras>> {
        (self != NO_EXTRAS).then(|| Box::new(self))
    }
}

impl Deref for Task {
    type Target = Extras;

    #[inline]
    fn deref(&self) -> &Extras {
        self.extras.as_deref().unwrap_or(&NO_EXTRAS)
    }
}

impl Task {
    /// Whether a decision cannot tell the two apart: nothing that rules or sums look at differs.
    pub(crate) fn decides_like(&self, other: &Task) -> bool {
        self.asks_like(other)
            && self.phase == other.phase
            && self.started == other.started
            && self.scheduled == other.scheduled
            && self.write == other.write
    }

    /// The priority of its pod, which no annotation changes: what is protected is judged by it.
    pub fn priority_of_pod(&self) -> i32 {
        self.pod_priority.unwrap_or(self.priority)
    }

    /// Until when it is not evicted, by how long it said that it needs once it has its node; none while nobody
    /// has told since when it does.
    pub fn left_alone_until(&self) -> Option<Time> {
        let since = self.scheduled.or(self.started);
        let since = since.filter(|_| self.cooldown_ms > 0)?;
        Some(since.plus_millis(self.cooldown_ms))
    }

    /// Whether it holds the room that it held, a step further in its life: no task finds a node
    /// because of that.
    pub(crate) fn goes_on_from(&self, before: &Task) -> bool {
        self.phase.is_allocated() && before.phase.is_allocated() && self.asks_like(before)
    }

    /// Whether its queue keeps what it requests for it, though it has no node yet.
    pub fn is_kept_for(&self) -> bool {
        self.phase == Phase::Pending && matches!(self.gate, Gate::Opening | Gate::Opened)
    }

    /// Whether no share of a queue tells the two apart: they request the same, their claims count for the
    /// same, and the queue keeps it for both or for none.
    pub fn counts_like(&self, other: &Task) -> bool {
        self.shape == other.shape
            && self.charges.len() == other.charges.len()
            && (self.charges.iter().zip(&other.charges)).all(|(mine, its)| mine.counts_like(its))
            && self.is_kept_for() == other.is_kept_for()
    }

    fn asks_like(&self, other: &Task) -> bool {
        self.uid == other.uid
            && self.gang == other.gang
            && self.role == other.role
            && self.index == other.index
            && self.shape == other.shape
            && self.labels == other.labels
            && self.priority == other.priority
            && self.node == other.node
            && self.gated == other.gated
            && self.gate == other.gate
            && self.preemptable == other.preemptable
            && self.preempts == other.preempts
            && self.critical == other.critical
            && self.created == other.created
            && self.has_extras_like(other)
    }

    fn has_extras_like(&self, other: &Task) -> bool {
        let (mine, its): (&Extras, &Extras) = (self, other);
        std::ptr::eq(mine, its)
            || mine.claims == its.claims
                && mine.sole == its.sole
                && mine.grants == its.grants
                && mine.volumes == its.volumes
                && mine.charges == its.charges
                && mine.cooldown_ms == its.cooldown_ms
                && mine.pod_priority == its.pod_priority
    }

    /// The part that few tasks have, to change it.
    pub(crate) fn extras_mut(&mut self) -> &mut Extras {
        self.extras
            .get_or_insert_with(|| Box::new(NO_EXTRAS.clone()))
    }

    pub(crate) fn set_grants(&mut self, grants: Vec<Grant>) {
        if !(grants.is_empty() && self.grants.is_empty()) {
            self.extras_mut().grants = grants;
        }
    }

    /// Forgets the node that it should go to; whether there was one.
    pub(crate) fn lapse(&mut self) -> bool {
        self.nominated.is_some() && self.extras_mut().nominated.take().is_some()
    }

    pub(crate) fn set_volumes(&mut self, volumes: Option<Arc<[TakenVolume]>>) {
        if volumes.is_some() || self.volumes.is_some() {
            self.extras_mut().volumes = volumes;
        }
    }

    /// The free volumes that a plan gives to its claims.
    pub fn taken(&self) -> &[TakenVolume] {
        self.volumes.as_deref().unwrap_or_default()
    }

    /// Whether where others are decides, by its claims, where it may go.
    pub fn is_tied(&self) -> bool {
        !(self.claims.is_empty() && self.sole.is_empty())
    }

    /// What a person calls the task: role and index, else the pod's name.
    pub fn nickname(&self) -> String {
        if self.role.is_empty() {
            return self.key.name.to_string();
        }
        format!("{}-{}", self.role, self.index)
    }
}
