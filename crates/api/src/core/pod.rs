//! Pods.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    Affinity, PodRemarks, PodStatus, ResourceList, TextMap, Toleration, TopologySpreadConstraint,
};
use crate::meta::ObjectMeta;
use crate::shared::{List, Name, Word};

/// The annotation of a pod that its node runs by a file of its own.
const MIRRORED: &str = "kubernetes.io/config.mirror";

texts! {
    /// Where a pod is in its life.
    pub enum PodPhase {
        /// Accepted; not all containers have started.
        Pending = "Pending",
        /// Bound, and at least one container has started.
        Running = "Running",
        /// All containers ended well.
        Succeeded = "Succeeded",
        /// All containers ended, at least one badly.
        Failed = "Failed",
        /// The node does not answer.
        Unknown = "Unknown",
    }
}

read_only! {
    /// `v1` Pod.
    pub struct Pod {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodSpec,
        /// What is.
        pub status: PodStatus,
    }

    /// What a pod template in JSON holds: the typed view of a `template` field.
    pub struct PodTemplate {
        /// Labels and annotations of the pods.
        pub metadata: ObjectMeta,
        /// Their spec.
        pub spec: PodSpec,
    }

    /// A reason, by name, not to place the pod yet.
    pub struct SchedulingGate {
        /// Name.
        pub name: Box<str>,
    }

    /// One claim of devices, as the pod names it: an existing one or one that is made for the pod.
    pub struct PodResourceClaim {
        /// What the pod's containers call it.
        pub name: Box<str>,
        /// An existing one.
        pub resource_claim_name: Option<Box<str>>,
        /// From what it is made.
        pub resource_claim_template_name: Option<Box<str>>,
    }

    /// The claim that was made for a pod.
    pub struct PodResourceClaimStatus {
        /// What the pod's containers call it.
        pub name: Box<str>,
        /// Its name; none was needed where there is none.
        pub resource_claim_name: Option<Box<str>>,
    }

    /// The claim that was made for resources of a pod that classes of devices serve.
    pub struct PodExtendedClaim {
        /// Which request of it each resource of a container means.
        pub request_mappings: Box<[ContainerExtendedRequest]>,
        /// Its name.
        pub resource_claim_name: Box<str>,
    }

    /// What a container has for a resource.
    pub struct ContainerExtendedRequest {
        /// The container.
        pub container_name: Box<str>,
        /// The resource.
        pub resource_name: Box<str>,
        /// The devices of this request.
        pub request_name: Box<str>,
    }

    /// A group of Kubernetes' own, of the same namespace.
    pub struct SchedulingGroup {
        /// Its name; it need not exist yet.
        pub pod_group_name: Box<str>,
    }

    /// One container, as a scheduler sees it.
    pub struct Container {
        /// Name.
        pub name: Box<str>,
        /// Image.
        pub image: Box<str>,
        /// Requests and limits.
        pub resources: ResourceRequirements,
        /// Ports.
        pub ports: Box<[ContainerPort]>,
        /// `Always` makes an init container a sidecar.
        pub restart_policy: Option<Box<str>>,
    }

    /// Requests and limits.
    pub struct ResourceRequirements {
        /// What is set aside.
        pub requests: ResourceList,
        /// What it may reach.
        pub limits: ResourceList,
    }

    /// One port of a container.
    pub struct ContainerPort {
        /// Name.
        pub name: Box<str>,
        /// Inside.
        pub container_port: i32,
        /// On the node; 0 for none.
        pub host_port: i32,
        /// The node's address; all if empty.
        #[serde(rename = "hostIP")]
        pub host_ip: Box<str>,
        /// `TCP` (also when empty), `UDP` or `SCTP`.
        pub protocol: Box<str>,
    }

    /// One volume of a pod.
    pub struct Volume {
        /// Name.
        pub name: Box<str>,
        /// A claim by name.
        pub persistent_volume_claim: Option<ClaimSource>,
        /// A claim that belongs to the pod: named `<pod>-<volume>`.
        pub ephemeral: Option<EphemeralSource>,
        /// What is in an image.
        pub image: Option<ImageSource>,
    }

    /// An image as a volume.
    pub struct ImageSource {
        /// Which.
        pub reference: Box<str>,
    }

    /// A claim by name.
    pub struct ClaimSource {
        /// The claim.
        pub claim_name: Box<str>,
        /// Mounted read-only.
        pub read_only: bool,
    }

    /// A claim made for the pod.
    pub struct EphemeralSource {
        /// The claim's metadata and spec.
        pub volume_claim_template: serde_json::Value,
    }
}

parted! {
    /// What a pod wants.
    pub struct PodSpec {
        /// Empty until bound.
        pub node_name: Word,
        /// Host name; the pod's name if empty. Where it says that name, both are held as one.
        pub hostname: Name,
        /// Volumes.
        pub volumes: Volumes,
    }

    /// What all pods of a template want.
    pub struct PodWants {
        /// Who places it.
        pub scheduler_name: Box<str>,
        /// Main containers.
        pub containers: Box<[Container]>,
        /// Run first and in order; those with `restartPolicy: Always` stay.
        pub init_containers: Box<[Container]>,
        /// Required node labels.
        pub node_selector: TextMap,
        /// Wishes about nodes and other pods.
        pub affinity: Option<Box<Affinity>>,
        /// Borne taints.
        pub tolerations: Box<[Toleration]>,
        /// How evenly to spread.
        pub topology_spread_constraints: Box<[TopologySpreadConstraint]>,
        /// Resolved from the class by the server.
        pub priority: Option<i32>,
        /// The priority class.
        pub priority_class_name: Box<str>,
        /// `Never` or `PreemptLowerPriority` (default).
        pub preemption_policy: Option<Box<str>>,
        /// While there is one, the pod is not placed.
        pub scheduling_gates: Box<[SchedulingGate]>,
        /// The group of Kubernetes' own that it is part of.
        pub scheduling_group: Option<SchedulingGroup>,
        /// Claims of devices (`resource.k8s.io`).
        pub resource_claims: Box<[PodResourceClaim]>,
        /// `Always` (default), `OnFailure` or `Never`.
        pub restart_policy: Box<str>,
        /// What the runtime itself needs on top.
        pub overhead: ResourceList,
        /// Requests of the pod as a whole, which win over the sum of its containers.
        pub resources: Option<Box<ResourceRequirements>>,
        /// The headless Service that names it.
        pub subdomain: Box<str>,
        /// Shares the node's network.
        pub host_network: bool,
        /// `ClusterFirst` by default.
        pub dns_policy: Box<str>,
        /// Seconds between asking and killing; 30 by default.
        pub termination_grace_period_seconds: Option<i64>,
        /// Greatest run time in seconds.
        pub active_deadline_seconds: Option<i64>,
        /// Identity.
        pub service_account_name: Box<str>,
        /// Who runs its containers.
        pub runtime_class_name: Option<Box<str>>,
    }
}

/// The volumes of a pod whose source is one that rooms read; there is none of the others, which each pod
/// has under a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Volumes(List<Volume>);

impl std::ops::Deref for Volumes {
    type Target = [Volume];

    fn deref(&self) -> &[Volume] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Volumes, D::Error> {
        let mut all = Vec::<Volume>::deserialize(deserializer)?;
        all.retain(|volume| {
            let is_read = volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
            is_read || volume.image.is_some()
        });
        Ok(Volumes(all.into()))
    }
}

impl PodWants {
    /// Whether nothing tells the two apart, not even how amounts are written.
    fn is_alike(&self, other: &PodWants) -> bool {
        let mut amounts = self.amounts().zip(other.amounts());
        self == other && amounts.all(|(mine, its)| mine.is_alike(its))
    }

    /// All amounts that are in it.
    fn amounts(&self) -> impl Iterator<Item = &ResourceList> {
        let containers = self.containers.iter().chain(&self.init_containers);
        let resources = containers.map(|it| &it.resources);
        let resources = resources.chain(self.resources.as_deref());
        let lists = resources.flat_map(|it| [&it.requests, &it.limits]);
        lists.chain([&self.overhead])
    }
}

impl Pod {
    /// Shares with another pod what both have alike: mostly all but names, addresses and the node. A host
    /// name that is the pod's name is held with it.
    pub fn share(&mut self, other: &Pod) {
        self.metadata.share(&other.metadata);
        self.spec.hostname.share(&self.metadata.name);
        let (spec, its) = (&mut self.spec, &other.spec);
        spec.volumes.0.share(&its.volumes.0);
        spec.common.share(&its.common, PodWants::is_alike);
        let (status, its) = (&mut self.status, &other.status);
        status.conditions.share(&its.conditions);
        status.container_statuses.share(&its.container_statuses);
        status.common.share(&its.common, PodRemarks::is_alike);
    }

    /// The group of Kubernetes' own that it names.
    pub fn native_group(&self) -> Option<&str> {
        let group = self.spec.scheduling_group.as_ref()?;
        (!group.pod_group_name.is_empty()).then_some(&*group.pod_group_name)
    }

    /// Whether it has ended, for good or ill.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether it belongs to its node: a DaemonSet's, or one that the node runs by a file of its own and only
    /// shows. Whoever ends it finds it there again.
    pub fn is_of_node(&self) -> bool {
        let mut owners = self.metadata.owner_references.iter();
        owners.any(|owner| &*owner.kind == "DaemonSet") || self.is_mirrored()
    }

    /// Whether its node runs it by a file of its own, and only shows it.
    pub fn is_mirrored(&self) -> bool {
        self.metadata.annotations.contains_key(MIRRORED)
    }

    /// Whether its deletion was asked for.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its condition `Ready` is `True`.
    pub fn is_ready(&self) -> bool {
        let ready = self.status.condition("Ready");
        ready.is_some_and(|ready| &*ready.status == "True")
    }
}
