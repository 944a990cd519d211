//! How a snapshot stands: what its content says, in a snapshot's terms.

use api::intent::Intent;
use api::kind::Kind;
use api::snapshot::{SnapshotError, VolumeSnapshotContent};
use api::time::Time;
use serde_json::{Value, json};

use super::{Trouble, View, content_name};
use crate::write;

const SIZES: [(&str, u32); 6] = [
    ("Ei", 60),
    ("Pi", 50),
    ("Ti", 40),
    ("Gi", 30),
    ("Mi", 20),
    ("Ki", 10),
];

/// Takes over what the content's status says; each new stage is told once.
pub(super) fn follow(view: &View<'_>, content: &VolumeSnapshotContent) -> Vec<Intent> {
    let (old, new) = (&view.snapshot.status, &content.status);
    let is_ready = new.ready_to_use == Some(true);
    let taken = new.creation_time.map(|nanos| Time(nanos / 1_000));
    let mut wanted = json!({
        "boundVolumeSnapshotContentName": content_name(view.snapshot),
        "readyToUse": is_ready,
    });
    if let Some(taken) = taken {
        wanted["creationTime"] = json!(taken);
    }
    if let Some(bytes) = new.restore_size {
        wanted["restoreSize"] = json!(size(bytes));
    }
    if let Some(error) = new.error.as_ref().filter(|_| !is_ready) {
        wanted["error"] = wire_error(error);
    }
    let meta = view.meta();
    let difference = write::status_difference(Kind::VolumeSnapshot, meta, &wire(view), &wanted);
    let Some(patch) = difference else {
        return Vec::new();
    };
    let (occasion, now) = (view.occasion(), view.inputs.now);
    let mut intents = vec![patch];
    let place = format!("{}/{}", meta.namespace, meta.name);
    if taken.is_some() && old.creation_time.is_none() {
        let message = format!("Snapshot {place} was successfully created by the CSI driver.");
        intents.push(occasion.normal("SnapshotCreated", &message, now));
    }
    if is_ready && old.ready_to_use != Some(true) {
        let message = format!("Snapshot {place} is ready to use.");
        intents.push(occasion.normal("SnapshotReady", &message, now));
    }
    intents
}

/// Says why nothing goes on, once for each cause.
pub(super) fn troubled(view: &View<'_>, trouble: &Trouble) -> Vec<Intent> {
    let known = view.snapshot.status.error.as_ref();
    if known.is_some_and(|error| *error.message == trouble.message) {
        return Vec::new();
    }
    let now = view.inputs.now;
    let status = json!({
        "error": { "message": trouble.message, "time": now },
        "readyToUse": false,
    });
    vec![
        write::patch_status(Kind::VolumeSnapshot, view.meta(), status),
        view.occasion()
            .warning(trouble.reason, &trouble.message, now),
    ]
}

/// The stored status as JSON; what is absent is left out.
fn wire(view: &View<'_>) -> Value {
    let status = &view.snapshot.status;
    let mut value = json!({});
    if let Some(name) = &status.bound_volume_snapshot_content_name {
        value["boundVolumeSnapshotContentName"] = json!(name);
    }
    if let Some(is_ready) = status.ready_to_use {
        value["readyToUse"] = json!(is_ready);
    }
    if let Some(taken) = status.creation_time {
        value["creationTime"] = json!(taken);
    }
    if let Some(size) = &status.restore_size {
        value["restoreSize"] = json!(size);
    }
    if let Some(error) = &status.error {
        value["error"] = wire_error(error);
    }
    value
}

fn wire_error(error: &SnapshotError) -> Value {
    json!({ "message": error.message, "time": error.time })
}

/// Bytes as the shortest quantity: 1073741824 is `1Gi`.
fn size(bytes: i64) -> String {
    for (suffix, shift) in SIZES {
        let unit = 1i64 << shift;
        if bytes >= unit && bytes % unit == 0 {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}
