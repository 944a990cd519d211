//! Nodes: what the wall says about them, and what is held on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::claim::Devices;
use crate::device::{CardLoads, Cards};
use crate::ids::TaskId;
use crate::labels::Labels;
use crate::numa::NumaLayout;
use crate::resource::Vector;
use crate::shape::HostPort;
use crate::tables::Measured;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaintEffect {
    /// They are not placed, and running ones are removed.
    NoExecute,
    /// They are not placed.
    NoSchedule,
    /// They are placed elsewhere if possible.
    PreferNoSchedule,
}

/// One taint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Arc<str>,
    /// What it does.
    pub effect: TaintEffect,
}

/// Names of images, in order, each with its bytes.
pub type Images = Arc<[(Arc<str>, i64)]>;

/// A node as the wall gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// `status.allocatable`, with the kind *pods*.
    pub allocatable: Vector,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Whether it is another scheduler's: it is used where no other node will do.
    pub foreign: bool,
    /// The group of nodes that it is in, if it is in one.
    pub group: Option<Arc<str>>,
    /// Attach slots by driver (CSINode); a driver without a row has no limit.
    pub volume_limits: BTreeMap<Arc<str>, i64>,
    /// Its cards, of the family that the cluster uses.
    pub cards: Cards,
    /// Its devices, which are claimed.
    pub devices: Devices,
    /// Its NUMA nodes, where somebody tells of them.
    pub numa: Option<Arc<NumaLayout>>,
    /// The images that it has, where somebody looks at them.
    pub images: Images,
}

/// A node's row.
#[derive(Clone, Debug)]
pub struct Node {
    /// What the wall says.
    pub spec: NodeSpec,
    /// Whether the wall has such a node: a row can stand for a name that only pods mention.
    pub known: bool,
    /// The tick at which `spec` last changed, for those who keep judgements of it.
    pub spec_tick: u64,
    /// Requests of the tasks that hold room here, with one *pods* each.
    pub used: Vector,
    /// The part of `used` that belongs to tasks on their way out.
    pub releasing: Vector,
    /// Requests of the tasks that are promised room here once it is released.
    pub pipelined: Vector,
    /// Used cpu and memory, where a pod that requests none counts as 100m and 200Mi (upstream's
    /// non-zero requests, which scores of empty pods need); wide, so that no sum is lost.
    pub used_nonzero: [i128; 2],
    /// The tasks that hold room here.
    pub tasks: BTreeSet<TaskId>,
    /// The tasks that are promised room here.
    pub promised: BTreeSet<TaskId>,
    /// Host ports taken, with the number of takers.
    pub ports: BTreeMap<HostPort, u32>,
    /// Attached volumes by driver and handle, with the number of users; of one that several may use and
    /// that has yet to be made its claim is the handle.
    pub volumes: BTreeMap<(Arc<str>, Arc<str>), u32>,
    /// Attach slots of volumes that have yet to be made here and are of one pod's own, by driver.
    pub unmade: BTreeMap<Arc<str>, u32>,
    /// What is held of its cards and devices, and of units on its NUMA nodes.
    pub cards: CardLoads,
    /// What was measured of it last, however long ago.
    pub measured: Option<Measured>,
}

impl Node {
    pub(crate) fn new(name: Arc<str>) -> Node {
        Node {
            spec: NodeSpec {
                name,
                ..NodeSpec::default()
            },
            known: false,
            spec_tick: 0,
            used: Vector::ZERO,
            releasing: Vector::ZERO,
            pipelined: Vector::ZERO,
            used_nonzero: [0; 2],
            tasks: BTreeSet::new(),
            promised: BTreeSet::new(),
            ports: BTreeMap::new(),
            volumes: BTreeMap::new(),
            unmade: BTreeMap::new(),
            cards: CardLoads::default(),
            measured: None,
        }
    }

    /// What was measured of it, if that still counts.
    pub fn measured_at(&self, now: crate::Time) -> Option<&Measured> {
        self.measured.as_ref().filter(|it| now < it.until())
    }

    /// Room that is free now and promised to nobody, by kind; negative where the node shrank.
    ///
    /// Upstream's Idle ignores what is promised; a promise that anyone may take is none.
    pub fn free(&self, kind: crate::Kind) -> i64 {
        free(
            self.spec.allocatable.get(kind),
            self.used.get(kind),
            self.pipelined.get(kind),
            self.releasing.get(kind),
        )
    }

    /// Room once the tasks on their way out are gone and the promised ones are in (upstream's
    /// FutureIdle).
    pub fn free_later(&self, kind: crate::Kind) -> i64 {
        self.spec
            .allocatable
            .get(kind)
            .saturating_sub(self.used.get(kind))
            .saturating_add(self.releasing.get(kind))
            .saturating_sub(self.pipelined.get(kind))
    }
}

/// What is free of one kind: see [`Node::free`].
#[inline]
pub(crate) fn free(allocatable: i64, used: i64, pipelined: i64, releasing: i64) -> i64 {
    let idle = allocatable.saturating_sub(used);
    let owed = pipelined.saturating_sub(releasing);
    idle.saturating_sub(owed.max(0))
}
