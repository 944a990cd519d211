//! The kinds that our rooms watch and write.
//!
//! The embedded API serves more kinds than these; that registry is `store`'s.

/// One kind that a room of ours reads or writes. The order is [`KINDS`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `batch/v1` CronJob.
    BatchCronJob,
    /// `batch/v1` Job.
    BatchJob,
    /// What pods are allowed to use beside others on a node.
    ColocationConfiguration,
    /// Volcano's one-shot instruction to a job or queue.
    Command,
    /// Configuration data.
    ConfigMap,
    /// What a StatefulSet wanted once.
    ControllerRevision,
    /// What a storage driver tells of itself.
    CsiDriver,
    /// What storage drivers do on a node.
    CsiNode,
    /// How much a storage driver has left of a class.
    CsiStorageCapacity,
    /// A pod on each of some nodes.
    DaemonSet,
    /// Pods that are replaced in steps.
    Deployment,
    /// A sort of devices.
    DeviceClass,
    /// A taint on some devices.
    DeviceTaintRule,
    /// Addresses behind a Service.
    EndpointSlice,
    /// A note for people about an object (`v1`).
    Event,
    /// Nodes that are near one another.
    HyperNode,
    /// Volcano's jobs that come one after the other.
    JobFlow,
    /// What jobs of a JobFlow are made from.
    JobTemplate,
    /// A sign of life.
    Lease,
    /// A namespace.
    Namespace,
    /// Kubernetes' own gang: `scheduling.k8s.io` PodGroup.
    NativeGroup,
    /// Who may talk to whom.
    NetworkPolicy,
    /// A machine.
    Node,
    /// The nodes of one of several schedulers.
    NodeShard,
    /// How a node is laid out.
    Numatopology,
    /// Storage in the cluster.
    PersistentVolume,
    /// A wish for storage.
    PersistentVolumeClaim,
    /// A pod.
    Pod,
    /// How many pods must stay.
    PodDisruptionBudget,
    /// Volcano's gang.
    PodGroup,
    /// A named priority.
    PriorityClass,
    /// Volcano's queue.
    Queue,
    /// A number of equal pods.
    ReplicaSet,
    /// A wish for devices.
    ResourceClaim,
    /// What wishes for devices are made from.
    ResourceClaimTemplate,
    /// Limits of a namespace.
    ResourceQuota,
    /// Devices, and where they are.
    ResourceSlice,
    /// Secret data.
    Secret,
    /// A stable name for pods.
    Service,
    /// An identity for pods.
    ServiceAccount,
    /// Pods with numbers and claims of their own.
    StatefulSet,
    /// A way to make volumes.
    StorageClass,
    /// Volcano's CronJob.
    VcCronJob,
    /// Volcano's Job.
    VcJob,
    /// Properties of volumes that may change.
    VolumeAttributesClass,
    /// A wish to keep what is in a volume.
    VolumeSnapshot,
    /// Who makes snapshots.
    VolumeSnapshotClass,
    /// A snapshot as it lies with its driver.
    VolumeSnapshotContent,
}

/// What the wire calls a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindRow {
    /// Which one.
    pub kind: Kind,
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version spoken by our rooms.
    pub version: &'static str,
    /// `Pod`.
    pub name: &'static str,
    /// `pods`.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether status is written through its own subresource.
    pub status_subresource: bool,
}

const fn row(
    kind: Kind,
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    namespaced: bool,
    status_subresource: bool,
) -> KindRow {
    KindRow {
        kind,
        group,
        version,
        name,
        plural,
        namespaced,
        status_subresource,
    }
}

/// All of them, in the order of [`Kind`].
pub const KINDS: &[KindRow] = &[
    row(
        Kind::BatchCronJob,
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        true,
        true,
    ),
    row(Kind::BatchJob, "batch", "v1", "Job", "jobs", true, true),
    row(
        Kind::ColocationConfiguration,
        "config.volcano.sh",
        "v1alpha1",
        "ColocationConfiguration",
        "colocationconfigurations",
        true,
        true,
    ),
    row(
        Kind::Command,
        "bus.volcano.sh",
        "v1alpha1",
        "Command",
        "commands",
        true,
        false,
    ),
    row(
        Kind::ConfigMap,
        "",
        "v1",
        "ConfigMap",
        "configmaps",
        true,
        false,
    ),
    row(
        Kind::ControllerRevision,
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        true,
        false,
    ),
    row(
        Kind::CsiDriver,
        "storage.k8s.io",
        "v1",
        "CSIDriver",
        "csidrivers",
        false,
        false,
    ),
    row(
        Kind::CsiNode,
        "storage.k8s.io",
        "v1",
        "CSINode",
        "csinodes",
        false,
        false,
    ),
    row(
        Kind::CsiStorageCapacity,
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        true,
        false,
    ),
    row(
        Kind::DaemonSet,
        "apps",
        "v1",
        "DaemonSet",
        "daemonsets",
        true,
        true,
    ),
    row(
        Kind::Deployment,
        "apps",
        "v1",
        "Deployment",
        "deployments",
        true,
        true,
    ),
    row(
        Kind::DeviceClass,
        "resource.k8s.io",
        "v1",
        "DeviceClass",
        "deviceclasses",
        false,
        false,
    ),
    row(
        Kind::DeviceTaintRule,
        "resource.k8s.io",
        "v1",
        "DeviceTaintRule",
        "devicetaintrules",
        false,
        true,
    ),
    row(
        Kind::EndpointSlice,
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        true,
        false,
    ),
    row(Kind::Event, "", "v1", "Event", "events", true, false),
    row(
        Kind::HyperNode,
        "topology.volcano.sh",
        "v1alpha1",
        "HyperNode",
        "hypernodes",
        false,
        true,
    ),
    row(
        Kind::JobFlow,
        "flow.volcano.sh",
        "v1alpha1",
        "JobFlow",
        "jobflows",
        true,
        true,
    ),
    row(
        Kind::JobTemplate,
        "flow.volcano.sh",
        "v1alpha1",
        "JobTemplate",
        "jobtemplates",
        true,
        true,
    ),
    row(
        Kind::Lease,
        "coordination.k8s.io",
        "v1",
        "Lease",
        "leases",
        true,
        false,
    ),
    row(
        Kind::Namespace,
        "",
        "v1",
        "Namespace",
        "namespaces",
        false,
        true,
    ),
    row(
        Kind::NativeGroup,
        "scheduling.k8s.io",
        "v1beta1",
        "PodGroup",
        "podgroups",
        true,
        true,
    ),
    row(
        Kind::NetworkPolicy,
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        true,
        false,
    ),
    row(Kind::Node, "", "v1", "Node", "nodes", false, true),
    row(
        Kind::NodeShard,
        "shard.volcano.sh",
        "v1alpha1",
        "NodeShard",
        "nodeshards",
        false,
        true,
    ),
    row(
        Kind::Numatopology,
        "nodeinfo.volcano.sh",
        "v1alpha1",
        "Numatopology",
        "numatopologies",
        false,
        false,
    ),
    row(
        Kind::PersistentVolume,
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        false,
        true,
    ),
    row(
        Kind::PersistentVolumeClaim,
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        true,
        true,
    ),
    row(Kind::Pod, "", "v1", "Pod", "pods", true, true),
    row(
        Kind::PodDisruptionBudget,
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        true,
        true,
    ),
    row(
        Kind::PodGroup,
        "scheduling.volcano.sh",
        "v1beta1",
        "PodGroup",
        "podgroups",
        true,
        false,
    ),
    row(
        Kind::PriorityClass,
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        false,
        false,
    ),
    row(
        Kind::Queue,
        "scheduling.volcano.sh",
        "v1beta1",
        "Queue",
        "queues",
        false,
        true,
    ),
    row(
        Kind::ReplicaSet,
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        true,
        true,
    ),
    row(
        Kind::ResourceClaim,
        "resource.k8s.io",
        "v1",
        "ResourceClaim",
        "resourceclaims",
        true,
        true,
    ),
    row(
        Kind::ResourceClaimTemplate,
        "resource.k8s.io",
        "v1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        true,
        false,
    ),
    row(
        Kind::ResourceQuota,
        "",
        "v1",
        "ResourceQuota",
        "resourcequotas",
        true,
        true,
    ),
    row(
        Kind::ResourceSlice,
        "resource.k8s.io",
        "v1",
        "ResourceSlice",
        "resourceslices",
        false,
        false,
    ),
    row(Kind::Secret, "", "v1", "Secret", "secrets", true, false),
    row(Kind::Service, "", "v1", "Service", "services", true, true),
    row(
        Kind::ServiceAccount,
        "",
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        true,
        false,
    ),
    row(
        Kind::StatefulSet,
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        true,
        true,
    ),
    row(
        Kind::StorageClass,
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        false,
        false,
    ),
    row(
        Kind::VcCronJob,
        "batch.volcano.sh",
        "v1alpha1",
        "CronJob",
        "cronjobs",
        true,
        true,
    ),
    row(
        Kind::VcJob,
        "batch.volcano.sh",
        "v1alpha1",
        "Job",
        "jobs",
        true,
        true,
    ),
    row(
        Kind::VolumeAttributesClass,
        "storage.k8s.io",
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        false,
        false,
    ),
    row(
        Kind::VolumeSnapshot,
        "snapshot.storage.k8s.io",
        "v1",
        "VolumeSnapshot",
        "volumesnapshots",
        true,
        true,
    ),
    row(
        Kind::VolumeSnapshotClass,
        "snapshot.storage.k8s.io",
        "v1",
        "VolumeSnapshotClass",
        "volumesnapshotclasses",
        false,
        false,
    ),
    row(
        Kind::VolumeSnapshotContent,
        "snapshot.storage.k8s.io",
        "v1",
        "VolumeSnapshotContent",
        "volumesnapshotcontents",
        false,
        true,
    ),
];

impl Kind {
    /// This kind's row.
    pub const fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
    }

    /// `v1` or `group/version`, as in `apiVersion`.
    pub fn api_version(self) -> String {
        let row = self.row();
        if row.group.is_empty() {
            row.version.to_owned()
        } else {
            [row.group, "/", row.version].concat()
        }
    }

    /// The kind that `apiVersion` and `kind` of an object name, if it is one of ours.
    /// The version is not compared: one version of each is spoken here.
    pub fn find(api_version: &str, name: &str) -> Option<Kind> {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        KINDS
            .iter()
            .find(|row| row.name == name && row.group == group)
            .map(|row| row.kind)
    }

    /// Whether a person who says this word means this kind before any other: our own name for it, in
    /// any case, singular or plural. Two kinds are called PodGroup on the wire; here the word means
    /// Volcano's, and Kubernetes' own is `NativeGroup`.
    pub fn is_called(self, word: &str) -> bool {
        let ours = format!("{self:?}").to_lowercase();
        let word = word.to_lowercase();
        word == ours || word.strip_suffix('s') == Some(&ours)
    }

    /// The path of the collection or, with `name`, of one object.
    pub fn path(self, namespace: &str, name: &str) -> String {
        let row = self.row();
        let mut path = if row.group.is_empty() {
            format!("/api/{}", row.version)
        } else {
            format!("/apis/{}/{}", row.group, row.version)
        };
        if row.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(row.plural);
        if !name.is_empty() {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_kinds() {
        for (index, row) in KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{}", row.name);
        }
    }
}
