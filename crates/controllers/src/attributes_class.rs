//! Classes of volumes' properties stay while a claim or a volume names them.

use std::collections::BTreeSet;

use api::core::{PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass};
use api::intent::{ObjectKey, Part};
use api::kind::Kind;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "attributes-class",
    component: "volumeattributesclass-protection-controller",
    tells_refused: &[],
    watches: &[
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::VolumeAttributesClass,
    ],
    keys,
    step,
};

/// Keeps a class while it is used.
const PROTECTION: &str = "kubernetes.io/vac-protection";

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let let_go: BTreeSet<&str> = match change.kind() {
        Kind::VolumeAttributesClass => {
            keys.push((*change.key).clone());
            return;
        }
        Kind::PersistentVolume => {
            let now = change.after::<PersistentVolume>();
            let now = now.and_then(|volume| volume.attributes_class());
            let before = change.before::<PersistentVolume>();
            let before = before.and_then(|volume| volume.attributes_class());
            before
                .into_iter()
                .filter(|name| now != Some(*name))
                .collect()
        }
        _ => {
            let now = change.after::<PersistentVolumeClaim>();
            let names = |name: &str| {
                now.is_some_and(|claim| claim.attributes_classes().any(|other| other == name))
            };
            let before = change.before::<PersistentVolumeClaim>();
            let before = before
                .into_iter()
                .flat_map(|claim| claim.attributes_classes());
            before.filter(|name| !names(name)).collect()
        }
    };
    let key = |name: &str| ObjectKey::new(Kind::VolumeAttributesClass, "", name);
    keys.extend(let_go.into_iter().map(key));
}

fn step(inputs: &Inputs<'_>) -> Step {
    let name = &inputs.key.name;
    let Some(class) = inputs.mirror.get::<VolumeAttributesClass>("", name) else {
        return Step::idle();
    };
    let meta = &class.metadata;
    let kind = Kind::VolumeAttributesClass;
    let is_protected = meta.finalizers.iter().any(|it| &**it == PROTECTION);
    let is_leaving = meta.deletion_timestamp.is_some();
    if is_leaving && is_protected && !is_used(inputs.mirror, name) {
        return Step::write(vec![write::without_finalizer(kind, meta, PROTECTION)]);
    }
    if !is_leaving && !is_protected {
        let kept = meta.finalizers.iter().map(|it| &**it);
        let finalizers: Vec<&str> = kept.chain([PROTECTION]).collect();
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        return Step::write(vec![write::patch(kind, meta, Part::Whole, patch)]);
    }
    Step::idle()
}

/// Whether a volume or a claim names the class. Only asked of classes that are to go.
fn is_used(mirror: &Mirror, name: &str) -> bool {
    let mut volumes = mirror.list::<PersistentVolume>();
    let mut claims = mirror.list::<PersistentVolumeClaim>();
    volumes.any(|volume| volume.attributes_class() == Some(name))
        || claims.any(|claim| claim.attributes_classes().any(|other| other == name))
}
