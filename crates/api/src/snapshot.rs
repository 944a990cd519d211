//! `snapshot.storage.k8s.io/v1`: what was in a volume at some time.
//!
//! They are only read: what a room writes is a patch, and whole objects stay JSON.

use crate::core::{ObjectReference, TextMap};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;
use crate::time::Time;

/// The API group.
pub const GROUP: &str = "snapshot.storage.k8s.io";
/// The annotation that makes a class the default one of its driver.
pub const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// On a content whose snapshot is leaving: what lies on disk may go, too.
pub const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";

read_only! {
    /// A wish to keep what is in a claim's volume.
    pub struct VolumeSnapshot {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: SnapshotSpec,
        /// What is.
        pub status: SnapshotStatus,
    }

    /// What is wanted of a snapshot.
    pub struct SnapshotSpec {
        /// Of what.
        pub source: SnapshotSource,
        /// By which class; `None` means the default one of the volume's driver.
        pub volume_snapshot_class_name: Option<Box<str>>,
    }

    /// What a snapshot is of: one of the two.
    pub struct SnapshotSource {
        /// A claim of the same namespace.
        pub persistent_volume_claim_name: Option<Box<str>>,
        /// A content that is there already.
        pub volume_snapshot_content_name: Option<Box<str>>,
    }

    /// How a snapshot stands.
    pub struct SnapshotStatus {
        /// Its content.
        pub bound_volume_snapshot_content_name: Option<Box<str>>,
        /// When it was taken.
        pub creation_time: Option<Time>,
        /// Whether volumes can be made from it.
        pub ready_to_use: Option<bool>,
        /// How large they must be at least.
        pub restore_size: Option<Quantity>,
        /// What went wrong last.
        pub error: Option<SnapshotError>,
    }

    /// What went wrong.
    pub struct SnapshotError {
        /// For people.
        pub message: Box<str>,
        /// When.
        pub time: Option<Time>,
    }

    /// Who makes snapshots, and what becomes of them.
    pub struct VolumeSnapshotClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Who makes them.
        pub driver: Box<str>,
        /// `Delete` or `Retain`.
        pub deletion_policy: Box<str>,
        /// For the driver.
        pub parameters: TextMap,
    }

    /// A snapshot as it lies with its driver.
    pub struct VolumeSnapshotContent {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ContentSpec,
        /// What is.
        pub status: ContentStatus,
    }

    /// What is wanted of a content.
    pub struct ContentSpec {
        /// `Delete` or `Retain`, when its snapshot goes.
        pub deletion_policy: Box<str>,
        /// Who makes it.
        pub driver: Box<str>,
        /// Of what.
        pub source: ContentSource,
        /// Its class.
        pub volume_snapshot_class_name: Option<Box<str>>,
        /// Whose it is.
        pub volume_snapshot_ref: ObjectReference,
    }

    /// What a content is of: one of the two, in the driver's words.
    pub struct ContentSource {
        /// A snapshot that is there already.
        pub snapshot_handle: Option<Box<str>>,
        /// A volume.
        pub volume_handle: Option<Box<str>>,
    }

    /// How a content stands.
    pub struct ContentStatus {
        /// When it was taken, in nanoseconds since 1970.
        pub creation_time: Option<i64>,
        /// Whether volumes can be made from it.
        pub ready_to_use: Option<bool>,
        /// How large they must be at least, in bytes.
        pub restore_size: Option<i64>,
        /// The driver's word for it.
        pub snapshot_handle: Option<Box<str>>,
        /// What went wrong last.
        pub error: Option<SnapshotError>,
    }
}

impl VolumeSnapshotClass {
    /// Whether snapshots of its driver's volumes get this class when they name none.
    pub fn is_default(&self) -> bool {
        let mark = self.metadata.annotations.get(DEFAULT_CLASS);
        mark.is_some_and(|value| &**value == "true")
    }
}
