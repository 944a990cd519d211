//! Claims that grow: first their volume does, then they have what they asked for.

use api::core::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use api::intent::{Intent, Part};
use api::kind::Kind;
use serde_json::json;

use super::volume::is_directory;
use crate::note::Occasion;
use crate::{Inputs, write};

const STORAGE: &str = "storage";

/// What is next for a bound claim that asks for more than it has; nothing if it does not.
pub(super) fn grow(
    inputs: &Inputs<'_>,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Vec<Intent> {
    let wanted = claim.spec.resources.requests.get(STORAGE);
    let has = claim.status.capacity.get(STORAGE);
    let Some(wanted) = wanted.filter(|wanted| has.is_some_and(|has| has < wanted)) else {
        return Vec::new();
    };
    let class = claim.spec.storage_class_name.as_deref().unwrap_or("");
    let class = inputs.mirror.get::<StorageClass>("", class);
    if class.is_none_or(|class| class.allow_volume_expansion != Some(true)) {
        return Vec::new();
    }
    let occasion = |component| Occasion {
        kind: Kind::PersistentVolumeClaim,
        meta: &claim.metadata,
        component,
        id: "",
    };
    if !is_directory(volume) {
        let message = "waiting for an external controller to expand this PVC";
        let note = occasion("volume_expand").normal("ExternalExpanding", message, inputs.now);
        return vec![note];
    }
    let size = volume.spec.capacity.get(STORAGE);
    if size.is_none_or(|size| size < wanted) {
        // A directory is as large as its disk: only the number has to grow.
        let patch = json!({ "spec": { "capacity": { STORAGE: wanted } } });
        let meta = &volume.metadata;
        return vec![write::patch(
            Kind::PersistentVolume,
            meta,
            Part::Whole,
            patch,
        )];
    }
    let status = json!({ "capacity": volume.spec.capacity });
    let id = wanted.to_string();
    let occasion = Occasion {
        id: &id,
        ..occasion("volume_expand")
    };
    let message = "Resize volume succeeded";
    let note = occasion.normal("VolumeResizeSuccessful", message, inputs.now);
    let kind = Kind::PersistentVolumeClaim;
    vec![write::patch_status(kind, &claim.metadata, status), note]
}
