//! Namespaces that are being deleted: their content goes first, then they do.
//!
//! Only watched kinds are seen here. Objects of other kinds, Secrets and Events among them, are
//! removed by the API server of the embedded plane when the namespace is finalized.

use api::core::Namespace;
use api::intent::{Intent, ObjectKey, Part};
use api::kind::{KINDS, Kind};
use mirror::{Change, Mirror};
use serde_json::json;

use crate::ownership_gc::WATCHED;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "namespace",
    watches: &WATCHED,
    keys,
    step,
};

const FINALIZER: &str = "kubernetes";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let name = match change.kind() {
        Kind::Namespace => &change.key.name,
        _ => &change.key.namespace,
    };
    let is_leaving = mirror
        .get::<Namespace>("", name)
        .is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some());
    if is_leaving {
        keys.push(ObjectKey::new(Kind::Namespace, "", name));
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some(namespace) = inputs.mirror.get::<Namespace>("", &inputs.key.name) else {
        return Step::idle();
    };
    let meta = &namespace.metadata;
    let finalizers = &namespace.spec.finalizers;
    let is_ours = finalizers.iter().any(|finalizer| &**finalizer == FINALIZER);
    if meta.deletion_timestamp.is_none() || !is_ours {
        return Step::idle();
    }
    let mut is_empty = true;
    let mut intents: Vec<Intent> = Vec::new();
    for row in KINDS.iter().filter(|row| row.namespaced) {
        let objects = inputs.mirror.objects(row.kind);
        for object in objects.filter(|object| object.namespace() == &*meta.name) {
            is_empty = false;
            if object.meta().deletion_timestamp.is_none()
                && intents.len() < inputs.settings.writes_per_step_max
            {
                intents.push(write::delete(row.kind, object.meta()));
            }
        }
    }
    if is_empty {
        let kept: Vec<&str> = finalizers
            .iter()
            .map(|finalizer| &**finalizer)
            .filter(|finalizer| *finalizer != FINALIZER)
            .collect();
        let patch = json!({ "spec": { "finalizers": kept } });
        intents.push(write::patch(Kind::Namespace, meta, Part::Finalize, patch));
    }
    Step::write(intents)
}
