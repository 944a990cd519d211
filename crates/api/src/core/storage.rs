//! Claims, volumes and classes.

use super::{Condition, NodeSelector, ObjectReference, ResourceList, TextMap};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;
use crate::selector::LabelSelector;
use serde_json::Value;

texts! {
    /// Where a claim is in its life.
    pub enum ClaimPhase {
        /// Has no volume yet.
        Pending = "Pending",
        /// Has its volume.
        Bound = "Bound",
        /// Its volume has gone.
        Lost = "Lost",
    }
}

texts! {
    /// Where a volume is in its life.
    pub enum VolumePhase {
        /// Being made.
        Pending = "Pending",
        /// Free.
        Available = "Available",
        /// Belongs to a claim.
        Bound = "Bound",
        /// Its claim has gone.
        Released = "Released",
        /// Could not be reclaimed.
        Failed = "Failed",
    }
}

read_only! {
    /// `v1` PersistentVolumeClaim.
    pub struct PersistentVolumeClaim {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ClaimSpec,
        /// What is.
        pub status: ClaimStatus,
    }

    /// What a claim wants.
    pub struct ClaimSpec {
        /// `ReadWriteOnce`, `ReadOnlyMany`, `ReadWriteMany`, `ReadWriteOncePod`.
        pub access_modes: Vec<Box<str>>,
        /// Which volumes.
        pub selector: Option<LabelSelector>,
        /// How much.
        pub resources: ClaimResources,
        /// The volume, once or in advance.
        pub volume_name: Box<str>,
        /// `None` means the default class, the empty text none at all.
        pub storage_class_name: Option<Box<str>>,
        /// `Filesystem` (default) or `Block`.
        pub volume_mode: Option<Box<str>>,
        /// What is to be in it.
        pub data_source: Option<Value>,
        /// What is to be in it, of any kind.
        pub data_source_ref: Option<Value>,
        /// The properties that its volume is to have.
        pub volume_attributes_class_name: Option<Box<str>>,
    }

    /// How much a claim wants.
    pub struct ClaimResources {
        /// At least.
        pub requests: ResourceList,
        /// At most.
        pub limits: ResourceList,
    }

    /// What a claim is.
    pub struct ClaimStatus {
        /// Where it is in its life.
        pub phase: ClaimPhase,
        /// What its volume can do.
        pub access_modes: Vec<Box<str>>,
        /// How much it has.
        pub capacity: ResourceList,
        /// Conditions.
        pub conditions: Vec<Condition>,
        /// The properties that its volume has.
        pub current_volume_attributes_class_name: Option<Box<str>>,
        /// The properties that its volume is getting.
        pub modify_volume_status: Option<VolumeModification>,
    }

    /// A change of a volume's properties that is under way.
    pub struct VolumeModification {
        /// The class that it leads to.
        pub target_volume_attributes_class_name: Box<str>,
    }

    /// `v1` PersistentVolume.
    pub struct PersistentVolume {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: VolumeSpec,
        /// What is.
        pub status: VolumeStatus,
    }

    /// What a volume offers.
    pub struct VolumeSpec {
        /// How much.
        pub capacity: ResourceList,
        /// What it can do.
        pub access_modes: Vec<Box<str>>,
        /// The properties that it has.
        pub volume_attributes_class_name: Option<Box<str>>,
        /// Whose it is.
        pub claim_ref: Option<ObjectReference>,
        /// `Retain`, `Delete` or `Recycle`.
        pub persistent_volume_reclaim_policy: Box<str>,
        /// Its class.
        pub storage_class_name: Box<str>,
        /// `Filesystem` (default) or `Block`.
        pub volume_mode: Option<Box<str>>,
        /// Where it can be reached.
        pub node_affinity: Option<VolumeNodeAffinity>,
        /// A directory of the node.
        pub host_path: Option<PathSource>,
        /// A disk of the node.
        pub local: Option<PathSource>,
        /// A driver's volume.
        pub csi: Option<CsiSource>,
    }

    /// Where a volume can be reached.
    pub struct VolumeNodeAffinity {
        /// Which nodes.
        pub required: Option<NodeSelector>,
    }

    /// A path on a node.
    pub struct PathSource {
        /// The path.
        pub path: Box<str>,
    }

    /// A driver's volume.
    pub struct CsiSource {
        /// The driver.
        pub driver: Box<str>,
        /// Its name for the volume.
        pub volume_handle: Box<str>,
    }

    /// What a volume is.
    pub struct VolumeStatus {
        /// Where it is in its life.
        pub phase: VolumePhase,
        /// A sentence.
        pub message: Box<str>,
        /// One word.
        pub reason: Box<str>,
    }

    /// `storage.k8s.io/v1` StorageClass.
    pub struct StorageClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Who makes the volumes.
        pub provisioner: Box<str>,
        /// For the provisioner.
        pub parameters: TextMap,
        /// `Delete` by default.
        pub reclaim_policy: Option<Box<str>>,
        /// `Immediate` by default, or `WaitForFirstConsumer`.
        pub volume_binding_mode: Option<Box<str>>,
        /// Whether claims may grow.
        pub allow_volume_expansion: Option<bool>,
        /// Where volumes may be made.
        pub allowed_topologies: Vec<TopologyTerm>,
    }

    /// Where volumes may be made: all of these.
    pub struct TopologyTerm {
        /// Requirements on node labels.
        pub match_label_expressions: Vec<TopologyRequirement>,
    }

    /// One requirement on a node label.
    pub struct TopologyRequirement {
        /// Label.
        pub key: Box<str>,
        /// One of these.
        pub values: Vec<Box<str>>,
    }
}

read_only! {
    /// `storage.k8s.io/v1` CSIDriver.
    pub struct CsiDriver {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it says.
        pub spec: CsiDriverSpec,
    }

    /// What a storage driver says of itself.
    pub struct CsiDriverSpec {
        /// Whether volumes are made only where a CSIStorageCapacity tells of enough room.
        pub storage_capacity: Option<bool>,
    }

    /// `storage.k8s.io/v1` CSIStorageCapacity.
    pub struct CsiStorageCapacity {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The class.
        pub storage_class_name: Box<str>,
        /// Which nodes reach it; absent means none.
        pub node_topology: Option<LabelSelector>,
        /// How much is left; absent means that nobody knows.
        pub capacity: Option<Quantity>,
        /// The largest volume that can be made, where that is told.
        pub maximum_volume_size: Option<Quantity>,
    }
}

read_only! {
    /// `storage.k8s.io/v1` CSINode: it bears the name of its node.
    pub struct CsiNode {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is on the node.
        pub spec: CsiNodeSpec,
    }

    /// What storage drivers are on a node.
    pub struct CsiNodeSpec {
        /// Each driver that has told its kubelet that it is there.
        pub drivers: Vec<CsiNodeDriver>,
    }

    /// A storage driver on a node.
    pub struct CsiNodeDriver {
        /// Its name.
        pub name: Box<str>,
        /// How much it can do there; absent means without a limit.
        pub allocatable: Option<VolumeNodeResources>,
    }

    /// How much a storage driver can do on a node.
    pub struct VolumeNodeResources {
        /// How many different volumes it attaches at most; absent means without a limit.
        pub count: Option<i32>,
    }
}

read_only! {
    /// `storage.k8s.io/v1` VolumeAttributesClass.
    pub struct VolumeAttributesClass {
        /// Metadata.
        pub metadata: ObjectMeta,
    }
}

impl PersistentVolumeClaim {
    /// The classes of properties that it wants, has or is getting.
    pub fn attributes_classes(&self) -> impl Iterator<Item = &str> {
        let target = self.status.modify_volume_status.as_ref();
        let names = [
            self.spec.volume_attributes_class_name.as_deref(),
            self.status.current_volume_attributes_class_name.as_deref(),
            target.map(|target| &*target.target_volume_attributes_class_name),
        ];
        names.into_iter().flatten().filter(|name| !name.is_empty())
    }
}

impl PersistentVolume {
    /// The class of properties that it has.
    pub fn attributes_class(&self) -> Option<&str> {
        let name = self.spec.volume_attributes_class_name.as_deref();
        name.filter(|name| !name.is_empty())
    }
}

/// The annotation that makes a StorageClass the default one.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

impl StorageClass {
    /// Whether claims without a class get this one.
    pub fn is_default(&self) -> bool {
        self.metadata
            .annotations
            .get(DEFAULT_CLASS)
            .is_some_and(|value| &**value == "true")
    }
}
