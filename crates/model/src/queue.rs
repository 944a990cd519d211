//! Queues: Volcano's tree of shares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{GangId, QueueId, WriteId};
use crate::resource::{Limits, Vector};
use crate::time::Time;

/// Whether a queue takes work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueState {
    /// Takes work.
    Open,
    /// Takes none.
    Closed,
    /// Takes none and still has some.
    Closing,
    /// Nobody has said yet; upstream treats it as not open.
    #[default]
    Unknown,
}

impl QueueState {
    /// The word that the API uses.
    pub fn word(self) -> &'static str {
        match self {
            QueueState::Open => "Open",
            QueueState::Closed => "Closed",
            QueueState::Closing => "Closing",
            QueueState::Unknown => "Unknown",
        }
    }
}

/// A queue as the wall gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its parent's name; `None` for a root.
    pub parent: Option<Arc<str>>,
    /// Weight among its siblings, at least 1.
    pub weight: i32,
    /// Ceiling; a kind without one is unlimited.
    pub capability: Limits,
    /// What it should get.
    pub deserved: Vector,
    /// What is kept for it.
    pub guarantee: Vector,
    /// Whether others may take back what it has beyond its share.
    pub reclaimable: bool,
    /// Priority among queues.
    pub priority: i32,
    /// When it was made: of queues that are alike the older one comes first.
    pub created: Time,
    /// Its identity.
    pub uid: Arc<str>,
    /// Whether it takes work.
    pub state: QueueState,
    /// Its place among the queues that share by a tree of their own (hierarchical drf), from below the
    /// root down; one that names none is right below the root.
    pub branches: Vec<Branch>,
    /// Which groups of nodes it uses.
    pub groups: NodeGroups,
    /// The most that its own tasks may hold in a group of nodes.
    pub group_limits: GroupLimits,
    /// `status.allocated` as the API shows it.
    pub published: Vector,
}

/// A step on the way to a queue in the tree of shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name among those beside it.
    pub name: Arc<str>,
    /// Its weight among those, in thousandths, at least 1000.
    pub weight: i64,
}

/// What a queue says of groups of nodes, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeGroups {
    /// Its tasks may be there, and are better there than anywhere else.
    pub required: Vec<Arc<str>>,
    /// Its tasks may be there; the first is the best.
    pub preferred: Vec<Arc<str>>,
    /// Its tasks may not be there.
    pub forbidden: Vec<Arc<str>>,
    /// Its tasks may be there, but rather not.
    pub avoided: Vec<Arc<str>>,
}

impl NodeGroups {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        let all = [
            &self.required,
            &self.preferred,
            &self.forbidden,
            &self.avoided,
        ];
        all.into_iter().all(Vec::is_empty)
    }
}

/// Ceilings of a queue in groups of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupLimits {
    /// By the group's name; a group that is not named has none.
    Known(BTreeMap<Arc<str>, Limits>),
    /// There are some, and nobody can tell which.
    Unreadable,
}

impl Default for GroupLimits {
    fn default() -> Self {
        GroupLimits::Known(BTreeMap::new())
    }
}

/// What a queue and all below it have, beside [`Queue::used`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeSums {
    /// [`Queue::promised`] of all of them.
    pub promised: Vector,
    /// [`Queue::inqueue`] of all of them.
    pub inqueue: Vector,
    /// [`Queue::elastic`] of all of them.
    pub elastic: Vector,
}

impl TreeSums {
    pub(crate) fn add(&mut self, other: &TreeSums) {
        self.promised.add(&other.promised);
        self.inqueue.add(&other.inqueue);
        self.elastic.add(&other.elastic);
    }

    pub(crate) fn sub(&mut self, other: &TreeSums) {
        self.promised.sub(&other.promised);
        self.inqueue.sub(&other.inqueue);
        self.elastic.sub(&other.elastic);
    }
}

/// A queue's row.
#[derive(Clone, Debug)]
pub struct Queue {
    /// What the wall says.
    pub spec: QueueSpec,
    /// Whether the wall has such a queue: a row can stand for a name that only gangs mention.
    pub known: bool,
    /// The parent's row.
    pub parent: Option<QueueId>,
    /// The children's rows.
    pub children: BTreeSet<QueueId>,
    /// The gangs that name this queue.
    pub gangs: BTreeSet<GangId>,
    /// Requests of allocated tasks of this queue's own gangs.
    pub used_own: Vector,
    /// `used_own` of this queue and all below it.
    pub used: Vector,
    /// Allocated tasks of this queue and all below it.
    pub used_slots: i64,
    /// Requests of this queue's own tasks that want room.
    pub pending: Vector,
    /// The part of `pending` that is promised room on a node, or for which the queue has opened a gate.
    pub promised: Vector,
    /// Sums of this queue and all below it.
    pub tree: TreeSums,
    /// What enqueued gangs of this queue have been let in for and do not hold yet (A.2 `inqueue`).
    pub inqueue: Vector,
    /// What gangs of this queue hold beyond their minimum (A.2 `elastic`).
    pub elastic: Vector,
    /// The status write that is on its way, with what it says.
    pub publishing: Option<(WriteId, Vector)>,
    /// When the last status write was planned.
    pub published_at: Option<Time>,
}

impl Queue {
    pub(crate) fn new(name: Arc<str>) -> Queue {
        Queue {
            spec: QueueSpec {
                name,
                weight: 1,
                ..QueueSpec::default()
            },
            known: false,
            parent: None,
            children: BTreeSet::new(),
            gangs: BTreeSet::new(),
            used_own: Vector::ZERO,
            used_slots: 0,
            used: Vector::ZERO,
            pending: Vector::ZERO,
            promised: Vector::ZERO,
            tree: TreeSums::default(),
            inqueue: Vector::ZERO,
            elastic: Vector::ZERO,
            publishing: None,
            published_at: None,
        }
    }

    /// `status.allocated` as the API shows or is about to show it.
    pub fn published(&self) -> &Vector {
        self.publishing
            .as_ref()
            .map_or(&self.spec.published, |(_, wanted)| wanted)
    }
}
