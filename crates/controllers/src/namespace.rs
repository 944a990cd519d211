//! Namespaces that are being deleted: their content goes first, then they do.
//!
//! Only watched kinds are seen here. Objects of other kinds, Secrets and Events among them, are
//! removed by the API server of the embedded plane when the namespace is finalized.

use std::collections::BTreeMap;

use api::core::{Namespace, condition};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::{KINDS, Kind};
use mirror::{Change, Mirror, Object};
use serde_json::json;

use crate::conditions::whole_seconds;
use crate::ownership_gc::WATCHED;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "namespace",
    component: "namespace-controller",
    tells_refused: &[],
    watches: &WATCHED,
    keys,
    step,
};

const FINALIZER: &str = "kubernetes";
/// The conditions of a deletion that nothing holds up.
const FINE: &[(&str, &str, &str)] = &[
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

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
    let content = Content::of(inputs.mirror, &meta.name);
    let mut intents: Vec<Intent> = Vec::new();
    for object in &content.next {
        if object.meta().deletion_timestamp.is_none()
            && intents.len() < inputs.settings.writes_per_step_max
        {
            intents.push(write::delete(object.kind(), object.meta()));
        }
    }
    if !intents.is_empty() {
        return Step::write(intents);
    }
    if let Some(patch) = conditions(inputs, namespace, &content) {
        return Step::write(vec![patch]);
    }
    if content.next.is_empty() {
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

/// What is left in a namespace.
struct Content<'a> {
    /// What goes next: pods before anything that they may still need.
    next: Vec<&'a Object>,
    /// How many objects are held by something, by `plural.group`. What was deleted and is held by
    /// nothing is as good as gone.
    counts: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    held: BTreeMap<&'a str, usize>,
}

impl<'a> Content<'a> {
    fn of(mirror: &'a Mirror, namespace: &str) -> Content<'a> {
        let mut content = Content {
            next: Vec::new(),
            counts: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        let rows = KINDS.iter().filter(|row| row.namespaced);
        let all = rows.flat_map(|row| mirror.objects(row.kind));
        let within = all.filter(|object| object.namespace() == namespace);
        content.next = within.collect();
        let is_pod = |object: &&Object| object.kind() == Kind::Pod;
        if content.next.iter().any(is_pod) {
            // Upstream says nothing of what remains before it has looked behind the pods.
            content.next.retain(is_pod);
            return content;
        }
        let is_held = |object: &&&Object| !object.meta().finalizers.is_empty();
        for object in content.next.iter().filter(is_held) {
            let row = object.kind().row();
            let name = format!("{}.{}", row.plural, row.group);
            *content.counts.entry(name).or_default() += 1;
            for finalizer in &object.meta().finalizers {
                *content.held.entry(finalizer).or_default() += 1;
            }
        }
        content
    }
}

/// The write that tells how the deletion stands. Mere numbers of what is left are not renewed.
fn conditions(inputs: &Inputs<'_>, namespace: &Namespace, content: &Content<'_>) -> Option<Intent> {
    let counts = content.counts.iter();
    let remain: Vec<String> = counts
        .map(|(name, count)| format!("{name} has {count} resource instances"))
        .collect();
    let held = content.held.iter();
    let held: Vec<String> = held
        .map(|(name, count)| format!("{name} in {count} resource instances"))
        .collect();
    let now = whole_seconds(inputs.now);
    let mut list = Vec::new();
    let mut is_news = false;
    for (kind, reason, message) in FINE {
        let (status, reason, message) = match *kind {
            "NamespaceContentRemaining" if !remain.is_empty() => (
                "True",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", remain.join(", ")),
            ),
            "NamespaceFinalizersRemaining" if !held.is_empty() => (
                "True",
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    held.join(", ")
                ),
            ),
            _ => ("False", *reason, (*message).to_owned()),
        };
        let known = condition(&namespace.status.conditions, kind);
        let same = known.filter(|known| &*known.status == status);
        let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        is_news |= same.is_none_or(|known| words(&known.message) != words(&message));
        list.push(json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": same.map_or(Some(now), |known| known.last_transition_time),
        }));
    }
    let status = json!({ "conditions": list });
    is_news.then(|| write::patch_status(Kind::Namespace, &namespace.metadata, status))
}
