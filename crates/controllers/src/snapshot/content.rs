//! The content's side: how it is made, and when it may go.

use api::intent::{Intent, Part};
use api::kind::Kind;
use api::snapshot::{
    BEING_DELETED, GROUP, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent,
};
use serde_json::json;

use super::{Source, View, content_name};
use crate::{Inputs, write};

/// Keeps a content while its snapshot is there, or what lies on disk.
pub(super) const PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// The wish for a snapshot of a volume, under a name that follows from the snapshot's uid.
pub(super) fn create(view: &View<'_>, source: &Source<'_>, class: &VolumeSnapshotClass) -> Intent {
    let meta = view.meta();
    let mode = source.volume.spec.volume_mode.as_deref();
    write::create(
        Kind::VolumeSnapshotContent,
        json!({
            "metadata": {
                "name": content_name(view.snapshot),
                "finalizers": [PROTECTION],
            },
            "spec": {
                "deletionPolicy": class.deletion_policy,
                "driver": source.driver,
                "source": { "volumeHandle": source.handle },
                "sourceVolumeMode": mode.unwrap_or("Filesystem"),
                "volumeSnapshotClassName": class.metadata.name,
                "volumeSnapshotRef": {
                    "apiVersion": format!("{GROUP}/v1"),
                    "kind": "VolumeSnapshot",
                    "namespace": meta.namespace,
                    "name": meta.name,
                    "uid": meta.uid,
                    "resourceVersion": meta.resource_version,
                },
            },
        }),
    )
}

pub(super) fn step(inputs: &Inputs<'_>, content: &VolumeSnapshotContent) -> Vec<Intent> {
    let (kind, meta) = (Kind::VolumeSnapshotContent, &content.metadata);
    let is_protected = meta.finalizers.iter().any(|it| &**it == PROTECTION);
    if meta.deletion_timestamp.is_none() {
        if is_protected {
            return Vec::new();
        }
        let mut finalizers: Vec<&str> = meta.finalizers.iter().map(|it| &**it).collect();
        finalizers.push(PROTECTION);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        return vec![write::patch(kind, meta, Part::Whole, patch)];
    }
    if !is_protected || is_needed(inputs, content) {
        return Vec::new();
    }
    let lies_on_disk = content.status.snapshot_handle.is_some();
    if &*content.spec.deletion_policy != "Delete" || !lies_on_disk {
        return vec![write::without_finalizer(kind, meta, PROTECTION)];
    }
    // The driver removes what lies on disk and takes its handle out of the status.
    match meta.annotations.contains_key(BEING_DELETED) {
        true => Vec::new(),
        false => vec![mark(content)],
    }
}

/// Says that what lies on disk may go.
pub(super) fn mark(content: &VolumeSnapshotContent) -> Intent {
    let patch = json!({ "metadata": { "annotations": { BEING_DELETED: "yes" } } });
    let kind = Kind::VolumeSnapshotContent;
    write::patch(kind, &content.metadata, Part::Whole, patch)
}

/// Whether the snapshot that a content belongs to is there and stays.
fn is_needed(inputs: &Inputs<'_>, content: &VolumeSnapshotContent) -> bool {
    let of = &content.spec.volume_snapshot_ref;
    let snapshot = inputs.mirror.get::<VolumeSnapshot>(&of.namespace, &of.name);
    snapshot.is_some_and(|snapshot| {
        snapshot.metadata.uid == of.uid && snapshot.metadata.deletion_timestamp.is_none()
    })
}
