//! Shapes: what tasks of the same requests and constraints share, so that it is judged once.

use std::sync::Arc;

use crate::claim::{DeviceAsk, UnmetClaim};
use crate::device::CardAsk;
use crate::labels::{Labels, NodeTerm, Requirement};
use crate::numa::NumaAsk;
use crate::resource::{Kind, Vector};
use crate::volume::{VolumeAsk, Zone};

/// What stands in for the request of a container that requests nothing, where nobody has told what does: cpu in
/// thousandths, memory in bytes (kube-scheduler's `DefaultMilliCPURequest` and `DefaultMemoryRequest`).
pub const STAND_INS: [i64; 2] = [100, 200 << 20];

/// Everything about a task that decides where it may run, except its labels and its gang.
///
/// Two tasks with equal specs get the same shape id and share one feasibility index over the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeSpec {
    /// Effective pod request (containers, init containers, sidecars, overhead), without the pod slot
    /// itself: the tables add one of kind *pods* by themselves.
    pub requests: Vector,
    /// `spec.nodeSelector`: all must hold.
    pub node_selector: Vec<Requirement>,
    /// Required node affinity: one term must hold; `None` means any node, an empty list no node.
    pub node_affinity: Option<Vec<NodeTerm>>,
    /// Preferred node affinity.
    pub preferred_nodes: Vec<Preferred<NodeTerm>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Host ports that the pod takes on its node.
    pub ports: Vec<HostPort>,
    /// What the pod's volumes ask of a node.
    pub volumes: Vec<VolumeNeed>,
    /// Required pod affinity.
    pub pod_affinity: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub pod_anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity (positive weights) and anti-affinity (negative weights).
    pub preferred_pods: Vec<Preferred<PodTerm>>,
    /// Topology spread constraints.
    pub spread: Vec<Spread>,
    /// What it wants of cards, if anything.
    pub cards: Option<Arc<CardAsk>>,
    /// What it wants of devices, if anything.
    pub devices: Option<Arc<DeviceAsk>>,
    /// What it wants of NUMA nodes, if anything.
    pub numa: Option<Arc<NumaAsk>>,
    /// Where the devices are that its claims have already: one term of each must hold.
    pub device_nodes: Vec<Vec<NodeTerm>>,
    /// Its claims of devices that cannot be served: while there is one, no node will do.
    pub device_claims: Vec<UnmetClaim>,
    /// Whether it bears nodes that are lent out only at times.
    pub revocable: bool,
    /// What it says itself of which node is the better one, if anything.
    pub strategy: Option<Arc<Strategy>>,
    /// The names of the images of its containers and volumes, one for each, in order; none where nobody
    /// looks at them.
    pub images: Vec<Arc<str>>,
    /// How much more cpu and memory than it requests its limits let it use; nothing where nobody looks at
    /// that.
    pub burst: [i64; 2],
    /// Its limits, by the names that quotas have for them; nothing where nobody looks at that.
    pub limits: Vector,
    /// How much more cpu and memory than it requests it counts for where nodes are compared by that, since
    /// some of its containers request none; where nobody has told it, as for one container.
    pub stand_ins: Option<[i64; 2]>,
}

/// Which node is the better one for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    /// The emptier one (`LeastAllocated`).
    Least,
    /// The fuller one (`MostAllocated`).
    Most,
}

/// What a pod says itself of which node is the better one for it, instead of what is configured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Strategy {
    /// For each resource that counts.
    pub fill: Fill,
    /// Which of its resources count, and how much; as configured where it does not say so.
    pub weights: Option<Vec<(Kind, i64)>>,
}

impl ShapeSpec {
    /// Whether the pod asks for no resources (upstream's BestEffort, placed by backfill).
    pub fn is_best_effort(&self) -> bool {
        self.requests.is_zero() && self.cards.is_none()
    }

    /// Whether amounts alone decide whether a node that suits the pod has room for it: it asks for nothing that
    /// is given out piece by piece (cards, devices, cores, ports, volumes).
    pub fn is_about_amounts(&self) -> bool {
        let is_of_devices = self.cards.is_some() || self.devices.is_some() || self.numa.is_some();
        self.ports.is_empty() && self.volumes.is_empty() && !is_of_devices
    }

    /// Whether other pods' places decide where this one may run.
    pub fn is_coupled(&self) -> bool {
        !(self.pod_affinity.is_empty()
            && self.pod_anti_affinity.is_empty()
            && self.preferred_pods.is_empty()
            && self.spread.is_empty())
    }
}

/// Something wished for, with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preferred<T> {
    /// How much it counts, 1 to 100; negative for anti-affinity.
    pub weight: i32,
    /// What is wished for.
    pub term: T,
}

/// Which taint effect a toleration covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TolerationEffect {
    /// Every effect.
    Any,
    /// Only this one.
    Only(crate::node::TaintEffect),
}

/// One toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// The taint's key; `None` covers every key.
    pub key: Option<Arc<str>>,
    /// The taint's value; `None` (operator Exists) covers every value.
    pub value: Option<Arc<str>>,
    /// The effect it covers.
    pub effect: TolerationEffect,
}

impl Toleration {
    /// Whether the toleration covers the taint.
    pub fn covers(&self, taint: &crate::node::Taint) -> bool {
        let effect = match self.effect {
            TolerationEffect::Any => true,
            TolerationEffect::Only(effect) => effect == taint.effect,
        };
        effect
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self
                .value
                .as_ref()
                .is_none_or(|value| *value == taint.value)
    }
}

/// A port on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Arc<str>,
    /// The host address; `0.0.0.0` (also for an empty one) conflicts with every address.
    pub address: Arc<str>,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Whether the two cannot be taken on one node.
    pub fn conflicts(&self, other: &HostPort) -> bool {
        let wild = |a: &str| a.is_empty() || a == "0.0.0.0" || a == "::";
        self.port == other.port
            && self.protocol == other.protocol
            && (wild(&self.address) || wild(&other.address) || self.address == other.address)
    }
}

/// What one volume of a pod asks of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeNeed {
    /// The claim is bound: the node must suit the volume, and have an attach slot left if the volume
    /// is attached by a driver with a limit.
    Bound {
        /// Required node affinity of the volume; `None` means any node.
        affinity: Option<Vec<NodeTerm>>,
        /// Zones and regions in which the volume is, as its labels say.
        zones: Vec<Zone>,
        /// Driver and handle of a volume that takes an attach slot.
        attach: Option<(Arc<str>, Arc<str>)>,
    },
    /// The claim waits for its first consumer: the node must reach a free volume that serves it, or lie
    /// in the class's allowed topologies, where one can be made.
    FirstConsumer {
        /// Allowed topologies; `None` means any node.
        topology: Option<Vec<NodeTerm>>,
        /// What will take attach slots; `None` where nobody makes volumes.
        unmade: Option<Unmade>,
        /// What the volume must be like, be it one that is there already; `None` means that one is made
        /// anyhow.
        ask: Option<Arc<VolumeAsk>>,
    },
    /// Some claims are for one pod at a time, which its task names: who waits for another pod to go.
    Alone,
    /// The claim cannot be used yet: no node suits.
    Waits {
        /// The claim's name.
        claim: Arc<str>,
        /// What is wrong with it.
        why: VolumeLack,
    },
}

/// Why a pod's claim of a volume cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeLack {
    /// It does not exist.
    Missing,
    /// It is to be made for the pod, and is not there yet.
    Awaited,
    /// It is not bound, though it must be.
    Unbound,
    /// It is being deleted.
    Leaving,
    /// It is to be made for the pod, and somebody else's has its name.
    Foreign,
}

impl VolumeLack {
    pub(crate) fn words(self) -> &'static str {
        match self {
            VolumeLack::Missing => "does not exist",
            VolumeLack::Awaited => "is still to be made for it",
            VolumeLack::Unbound => "is not bound",
            VolumeLack::Leaving => "is being deleted",
            VolumeLack::Foreign => "was not made for it",
        }
    }
}

impl VolumeNeed {
    /// What a volume that is there already must be like to serve the claim.
    pub fn ask(&self) -> Option<&VolumeAsk> {
        match self {
            VolumeNeed::FirstConsumer { ask, .. } => ask.as_deref(),
            VolumeNeed::Alone | VolumeNeed::Bound { .. } | VolumeNeed::Waits { .. } => None,
        }
    }
}

/// Volumes that have yet to be made, which take attach slots all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmade {
    /// Of the pod's own: the driver, and how many. Pods that differ in nothing else are of one shape.
    Own(Arc<str>, u32),
    /// One that others may use, too: the driver, and `namespace/claim` for a handle.
    Shared((Arc<str>, Arc<str>)),
}

/// One term of a pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// The node label whose value makes a domain.
    pub topology_key: Arc<str>,
    /// Requirements on the other pods' labels.
    pub selector: Vec<Requirement>,
    /// Namespaces in which to look, already resolved; `None` means all.
    pub namespaces: Option<Vec<Arc<str>>>,
}

impl PodTerm {
    /// Whether the term speaks of a pod in this namespace with these labels.
    pub fn selects(&self, namespace: &str, labels: &Labels) -> bool {
        self.namespaces
            .as_ref()
            .is_none_or(|list| list.iter().any(|n| &**n == namespace))
            && crate::labels::matches_all(&self.selector, labels)
    }
}

/// One topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// The node label whose value makes a domain.
    pub topology_key: Arc<str>,
    /// The most that a domain may exceed the emptiest one.
    pub max_skew: i32,
    /// `minDomains`, 1 when unset.
    pub min_domains: u32,
    /// Whether a violation refuses the node (DoNotSchedule) or only lowers its score.
    pub required: bool,
    /// Requirements on the pods counted.
    pub selector: Vec<Requirement>,
    /// The namespace in which pods are counted.
    pub namespace: Arc<str>,
    /// Whether only nodes make domains that the pod selects (`nodeAffinityPolicy`, Honor when unset).
    pub affinity: Inclusion,
    /// Whether only nodes make domains whose taints the pod bears (`nodeTaintsPolicy`, Ignore when
    /// unset).
    pub taints: Inclusion,
}

/// Whether a rule of the pod decides which nodes make domains of a spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inclusion {
    /// It does.
    Honor,
    /// All nodes do, as far as that rule goes.
    Ignore,
}
