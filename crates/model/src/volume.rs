//! Volumes that are there before anybody uses them, and storage from which others can be made: what a
//! claim that waits for its first consumer may get.
//!
//! Source: Kubernetes' volume binding of classes whose binding mode is `WaitForFirstConsumer`.

use std::sync::Arc;

use crate::ids::Key;
use crate::labels::{Labels, NodeTerm, Requirement, Values};

/// The label by which volumes of one node name it.
pub(crate) const HOST: &str = "kubernetes.io/hostname";

/// A label that says in which zone or region a volume is: the node's must have one of the values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// The label's key.
    pub key: Arc<str>,
    /// The key under which a node may say it instead, where the first is one of old.
    pub newer: Option<Arc<str>>,
    /// The values.
    pub values: Values,
}

impl Zone {
    /// Whether a node with these labels lies in it.
    pub fn contains(&self, labels: &Labels) -> bool {
        let newer = || labels.get(self.newer.as_deref()?);
        let value = labels.get(&self.key).or_else(newer);
        value.is_some_and(|value| self.values.contains(value))
    }
}

/// Labels that say in which zone or region something is. Each of old comes after the one that is said
/// instead of it now.
pub const ZONE_LABELS: &[&str] = &[
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];

/// Whether a node with these labels lies in all of the zones. One that says of none where it is lies in
/// every zone, as Kubernetes has it.
pub fn is_within(zones: &[Zone], labels: &Labels) -> bool {
    zones.is_empty()
        || zones.iter().all(|zone| zone.contains(labels))
        || !ZONE_LABELS.iter().any(|key| labels.get(key).is_some())
}

/// From where a volume, or storage, can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whence {
    /// One of these must hold; `None` means from any node.
    pub nodes: Option<Vec<NodeTerm>>,
    /// And within all of these.
    pub zones: Vec<Zone>,
}

impl Whence {
    /// Whether from a node of this name and these labels.
    pub fn accepts(&self, name: &str, labels: &Labels) -> bool {
        let terms = self.nodes.as_ref();
        terms.is_none_or(|terms| terms.iter().any(|term| term.accepts(name, labels)))
            && is_within(&self.zones, labels)
    }

    /// Whether from every node.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.nodes.is_none() && self.zones.is_empty()
    }

    /// The hosts that it names, if every term names some.
    pub(crate) fn hosts(&self) -> Option<Vec<&Arc<str>>> {
        let mut hosts = Vec::new();
        for term in self.nodes.as_ref()? {
            let mut named = term.labels.iter();
            let named = named.find(|it| &*it.key == HOST && it.operator == crate::Operator::In)?;
            hosts.extend(named.values.iter());
        }
        Some(hosts)
    }
}

/// A volume that no claim has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeVolume {
    /// Its name.
    pub name: Arc<str>,
    /// Its class; empty where it has none.
    pub class: Arc<str>,
    /// Its size in bytes.
    pub size: i64,
    /// How it can be accessed.
    pub modes: Vec<Arc<str>>,
    /// `Filesystem` or `Block`.
    pub form: Arc<str>,
    /// The class of its properties; empty where it has none.
    pub attributes: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// From where it can be reached.
    pub whence: Whence,
    /// Driver and handle, where it takes an attach slot.
    pub attach: Option<(Arc<str>, Arc<str>)>,
}

/// Storage of a class from which volumes can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The object that tells of it.
    pub name: Arc<str>,
    /// The class.
    pub class: Arc<str>,
    /// The largest volume that it has room for, in bytes.
    pub largest: i64,
    /// From where its volumes can be reached.
    pub whence: Whence,
}

/// What becomes of a claim that no free volume serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Making {
    /// It waits: nobody makes volumes of its class.
    Never,
    /// A volume is made for it in the class's topology.
    Anywhere,
    /// The same, where its driver has told of enough storage.
    WhereRoom,
}

/// What a claim that waits for its first consumer wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeAsk {
    /// The least size in bytes. It comes first: the smallest claims choose first.
    pub size: i64,
    /// The class.
    pub class: Arc<str>,
    /// How it is to be accessed, in order.
    pub modes: Vec<Arc<str>>,
    /// `Filesystem` or `Block`.
    pub form: Arc<str>,
    /// The class of properties; empty where none is wanted.
    pub attributes: Arc<str>,
    /// What its labels must be.
    pub labels: Vec<Requirement>,
    /// The claim, where other pods may use it, too; `None` where it is of the pod's own.
    pub claim: Option<Key>,
    /// How many such claims the pod has.
    pub count: u32,
    /// What becomes of those that no free volume serves.
    pub making: Making,
}

impl VolumeAsk {
    /// Whether the volume would serve, from wherever it can be reached.
    pub fn accepts(&self, volume: &FreeVolume) -> bool {
        self.class == volume.class
            && self.size <= volume.size
            && self.form == volume.form
            && self.attributes == volume.attributes
            && self.modes.iter().all(|mode| volume.modes.contains(mode))
            && crate::labels::matches_all(&self.labels, &volume.labels)
    }

    /// Whether claims of the pod's own ask for the same.
    pub fn is_alike(&self, other: &VolumeAsk) -> bool {
        self.claim.is_none()
            && *self
                == VolumeAsk {
                    count: self.count,
                    ..other.clone()
                }
    }
}

/// A free volume that a plan gives to a claim of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenVolume {
    /// Which of its shape's volumes it is for.
    pub need: u32,
    /// The claim, where other tasks may use it, too.
    pub claim: Option<Key>,
    /// The volume.
    pub volume: Arc<str>,
    /// Its driver and handle, where it takes an attach slot.
    pub attach: Option<(Arc<str>, Arc<str>)>,
}

/// What a task takes with it when it is placed.
#[derive(Clone, Debug, Default)]
pub struct Hands {
    /// Of cards and devices.
    pub grants: Vec<crate::Grant>,
    /// Of free volumes; `None` where there are none.
    pub volumes: Option<Arc<[TakenVolume]>>,
}

impl From<Vec<crate::Grant>> for Hands {
    fn from(grants: Vec<crate::Grant>) -> Hands {
        Hands {
            grants,
            volumes: None,
        }
    }
}
