//! A snapshot that was deleted: first what is made from it, then its content, then itself.

use api::core::PersistentVolumeClaim;
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::snapshot::{BEING_DELETED, VolumeSnapshotContent};
use serde_json::json;

use super::{AS_SOURCE, BOUND, View, content, is_from};
use crate::write;

pub(super) fn step(view: &View<'_>) -> Vec<Intent> {
    let meta = view.meta();
    if !meta.finalizers.iter().any(|it| is_ours(it)) {
        return Vec::new();
    }
    if is_used(view) {
        let message = "Snapshot is being used to restore a PVC";
        let now = view.inputs.now;
        return vec![
            view.occasion()
                .warning("SnapshotDeletePending", message, now),
        ];
    }
    match view.content().filter(|content| is_of(view, content)) {
        Some(content) => end_content(view, content),
        None => vec![let_go(view)],
    }
}

fn is_ours(finalizer: &str) -> bool {
    finalizer == BOUND || finalizer == AS_SOURCE
}

/// Whether a claim is being made from the snapshot.
fn is_used(view: &View<'_>) -> bool {
    let meta = view.meta();
    view.inputs
        .mirror
        .list_in::<PersistentVolumeClaim>(&meta.namespace)
        .any(|claim| {
            claim.spec.volume_name.is_empty()
                && claim.metadata.deletion_timestamp.is_none()
                && is_from(claim, &meta.name)
        })
}

fn is_of(view: &View<'_>, content: &VolumeSnapshotContent) -> bool {
    content.spec.volume_snapshot_ref.uid == view.meta().uid
}

fn end_content(view: &View<'_>, content: &VolumeSnapshotContent) -> Vec<Intent> {
    if !content.metadata.annotations.contains_key(BEING_DELETED) {
        return vec![content::mark(content)];
    }
    if &*content.spec.deletion_policy != "Delete" {
        return vec![let_go(view)];
    }
    if content.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let kind = Kind::VolumeSnapshotContent;
    vec![write::delete(kind, &content.metadata)]
}

fn let_go(view: &View<'_>) -> Intent {
    let meta = view.meta();
    let kept: Vec<&str> = meta
        .finalizers
        .iter()
        .map(|it| &**it)
        .filter(|it| !is_ours(it))
        .collect();
    let kept = (!kept.is_empty()).then_some(kept);
    let patch = json!({ "metadata": { "finalizers": kept } });
    write::patch(Kind::VolumeSnapshot, meta, Part::Whole, patch)
}
