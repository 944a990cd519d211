//! Claims and volumes: matching, binding, making directories, and what becomes of volumes after.
//!
//! A key is a claim or a volume. Each step writes an object at most once: first the volume is
//! kept for the claim (`spec.claimRef`), then the claim names the volume, then both are Bound.

use std::sync::Arc;

use api::core::{ClaimPhase, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use api::disk::SELECTED_NODE;
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::quantity::Quantity;
use api::snapshot::VolumeSnapshotContent;
use mirror::{Change, Index, Mirror};
use serde_json::{Value, json};

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};
use source::Filling;

mod expansion;
mod source;
mod volume;

pub(crate) use volume::is_directory;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "claim",
    component: "persistentvolume-controller",
    tells_refused: &[],
    watches: &[
        Kind::Node,
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::Pod,
        Kind::StorageClass,
        Kind::VolumeSnapshot,
        Kind::VolumeSnapshotContent,
    ],
    keys,
    step,
};

/// The provisioner whose volumes are directories of the machine.
pub const PROVISIONER: &str = api::disk::DRIVER;
/// The provisioner of classes whose volumes nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// What provisioners of old look for.
const OLD_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";
/// How long a claim is a new one.
const FRESH_MS: i64 = 60_000;

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::PersistentVolumeClaim => {
            keys.push((*change.key).clone());
            let term = format!("{}/{}", change.key.namespace, change.key.name);
            let volumes = mirror.keys(Index::VolumeClaim, "", &term);
            keys.extend(volumes);
            for side in [change.before::<PersistentVolumeClaim>(), change.after()] {
                let source = side.and_then(|claim| source::cloned(claim));
                keys.extend(source.map(|source| key_of(&change.key.namespace, source)));
            }
            keys.extend(awaiting(mirror, change));
        }
        Kind::VolumeSnapshot => keys.extend(awaiting(mirror, change)),
        Kind::PersistentVolume => {
            keys.push((*change.key).clone());
            for side in [
                change.before::<PersistentVolume>(),
                change.after::<PersistentVolume>(),
            ] {
                let reference = side.and_then(|volume| volume.spec.claim_ref.as_ref());
                keys.extend(reference.map(|claim| {
                    ObjectKey::new(Kind::PersistentVolumeClaim, &claim.namespace, &claim.name)
                }));
            }
            let claims = mirror.keys(Index::ClaimVolume, "", &change.key.name);
            keys.extend(claims);
            if change.before.is_none() {
                keys.extend(pending(mirror));
            }
        }
        Kind::VolumeSnapshotContent if change.before.is_none() => {
            // It may be heard of after its snapshot has said that it is ready.
            if let Some(content) = change.after::<VolumeSnapshotContent>() {
                let of = &content.spec.volume_snapshot_ref;
                let kind = Kind::VolumeSnapshot;
                let claims = source::awaited(mirror, &of.namespace, &of.name, kind);
                keys.extend(claims.map(|claim| key_of(&of.namespace, &claim.metadata.name)));
            }
        }
        Kind::VolumeSnapshotContent => {}
        Kind::StorageClass => keys.extend(pending(mirror)),
        Kind::Node if change.before.is_none() || change.after.is_none() => {
            of_node(mirror, &change.key.name, keys);
        }
        Kind::Node => {}
        _ => of_pod(mirror, change, keys),
    }
}

/// A node that goes or comes may be the one that was chosen for a claim, or that its pod is bound to.
fn of_node(mirror: &Mirror, name: &str, keys: &mut Vec<ObjectKey>) {
    let claims = mirror.keys(Index::ClaimNode, "", name);
    keys.extend(claims);
    for pod in mirror.indexed::<Pod>(Index::PodNode, "", name) {
        let meta = &pod.metadata;
        let claims = api::core::claims_named(&meta.name, &pod.spec.volumes);
        keys.extend(claims.map(|claim| key_of(&meta.namespace, &claim)));
    }
}

fn of_pod(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let facts = |pod: &Arc<Pod>| (pod.spec.node_name.clone(), pod.is_finished());
    let before = change.before::<Pod>();
    let after = change.after::<Pod>();
    if before.map(facts) == after.map(facts) && !change.is_recreation() {
        return;
    }
    // Of two pods of one name both may have claims, and not the same.
    for pod in after.into_iter().chain(before) {
        let (namespace, name) = (&change.key.namespace, &pod.metadata.name);
        for claim in api::core::claims_named(name, &pod.spec.volumes) {
            keys.push(key_of(namespace, &claim));
            // A claim may be gone before its last pod: then its volume has waited.
            let term = format!("{namespace}/{claim}");
            let volumes = mirror.keys(Index::VolumeClaim, "", &term);
            keys.extend(volumes);
        }
    }
}

fn key_of(namespace: &str, claim: &str) -> ObjectKey {
    ObjectKey::new(Kind::PersistentVolumeClaim, namespace, claim)
}

/// The claims that are to be made from what has changed.
fn awaiting(mirror: &Mirror, change: &Change) -> Vec<ObjectKey> {
    let (namespace, name) = (&change.key.namespace, &change.key.name);
    source::awaited(mirror, namespace, name, change.kind())
        .map(|claim| key_of(namespace, &claim.metadata.name))
        .collect()
}

fn pending(mirror: &Mirror) -> impl Iterator<Item = ObjectKey> {
    mirror
        .list::<PersistentVolumeClaim>()
        .filter(|claim| claim.status.phase != ClaimPhase::Bound)
        .map(|claim| {
            let meta = &claim.metadata;
            ObjectKey::new(Kind::PersistentVolumeClaim, &meta.namespace, &meta.name)
        })
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    if inputs.key.kind == Kind::PersistentVolume {
        return match inputs.mirror.get::<PersistentVolume>("", name) {
            Some(volume) => volume::step(inputs, volume),
            None => Step::idle(),
        };
    }
    let Some(claim) = inputs.mirror.get::<PersistentVolumeClaim>(namespace, name) else {
        return Step::idle();
    };
    match lost_node(inputs.mirror, claim) {
        Some(node) => choose_again(inputs, claim, node),
        None => Step::write(of_claim(inputs, claim)),
    }
}

/// The node that was chosen for a claim of ours that has no volume yet, if it is not there.
fn lost_node<'a>(mirror: &Mirror, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
    let meta = &claim.metadata;
    let node = meta.annotations.get(SELECTED_NODE)?;
    let row = mirror.get::<StorageClass>("", class_of(mirror, claim)?)?;
    let is_lost = meta.deletion_timestamp.is_none()
        && claim.spec.volume_name.is_empty()
        && &*row.provisioner == PROVISIONER
        && is_late(row)
        && mirror.get::<Node>("", node).is_none()
        && reserved(mirror, claim).is_none();
    is_lost.then_some(node)
}

/// Takes the choice away, so that whoever places the claim's next pod chooses another node.
fn choose_again(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim, node: &str) -> Step {
    let named = std::iter::once((ObjectKey::new(Kind::Node, "", node), ""));
    let first = inputs.before_presence(named, claim.metadata.revision());
    first.unwrap_or_else(|| {
        let unchosen = json!({ "metadata": { "annotations": { SELECTED_NODE: null } } });
        Step::write(vec![patch_claim(claim, unchosen)])
    })
}

fn of_claim(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim) -> Vec<Intent> {
    let meta = &claim.metadata;
    let is_protected = meta
        .finalizers
        .iter()
        .any(|finalizer| &**finalizer == PROTECTION);
    if let Some(free) = source::let_go(inputs.mirror, claim) {
        return vec![free];
    }
    if meta.deletion_timestamp.is_some() {
        if is_protected && users(inputs.mirror, claim).next().is_none() {
            let kind = Kind::PersistentVolumeClaim;
            return vec![write::without_finalizer(kind, meta, PROTECTION)];
        }
        return Vec::new();
    }
    if !claim.spec.volume_name.is_empty() {
        if !is_protected {
            return vec![adopt(claim, None)];
        }
        return bind(inputs, claim);
    }
    let class = class_of(inputs.mirror, claim);
    let volume =
        reserved(inputs.mirror, claim).or_else(|| fitting(inputs, claim, class.unwrap_or("")));
    if !is_protected || class != claim.spec.storage_class_name.as_deref() {
        return vec![adopt(claim, class)];
    }
    let Some(volume) = volume else {
        let mut intents = provision(inputs, claim, class.unwrap_or(""));
        if intents.is_empty() && is_new(inputs, claim) {
            intents.extend(first_note(inputs, claim, class.unwrap_or("")));
        }
        return intents;
    };
    source::waits(inputs, claim, volume).unwrap_or_else(|| take(claim, volume))
}

/// Whether the claim may still be told for what it waits. The note has the same name each time.
fn is_new(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim) -> bool {
    let made = claim.metadata.creation_timestamp;
    made.is_none_or(|made| inputs.now < made.plus_ms(FRESH_MS))
}

/// The claim's class; one that names none gets the default, the newest if there are several.
fn class_of<'a>(mirror: &'a Mirror, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
    if let Some(class) = &claim.spec.storage_class_name {
        return Some(class);
    }
    let default = mirror
        .list::<StorageClass>()
        .filter(|class| class.is_default())
        .max_by_key(|class| class.metadata.creation_timestamp);
    default.map(|class| &*class.metadata.name)
}

/// Whether a pod that has a node and has not ended mounts a claim of this name, whichever: who mounts one
/// that has gone cannot be told any more.
fn is_used(mirror: &Mirror, namespace: &str, claim: &str) -> bool {
    let mut pods = mirror.indexed::<Pod>(Index::PodClaim, namespace, claim);
    pods.any(|pod| is_at_work(pod))
}

/// Pods that use the claim: those that have a node, have not ended and mount it. One without a node does not:
/// nobody places it while the claim is on its way out, and it waits for the next claim of this name. Neither
/// does one for which a claim of this name is to be made, if this one was made for a former pod of its name.
fn users<'a>(
    mirror: &'a Mirror,
    claim: &'a PersistentVolumeClaim,
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let meta = &claim.metadata;
    let pods = mirror.indexed::<Pod>(Index::PodClaim, &meta.namespace, &meta.name);
    pods.filter(|pod| is_at_work(pod) && mounts(pod, claim))
}

/// Whether a pod has a node and has not ended.
fn is_at_work(pod: &Pod) -> bool {
    !pod.spec.node_name.is_empty() && !pod.is_finished()
}

/// Whether a pod that has a volume of the claim's name means this very claim.
fn mounts(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    let is_named = pod.spec.volumes.iter().any(|volume| {
        let named = volume.persistent_volume_claim.as_ref();
        named.is_some_and(|it| meta.name == it.claim_name)
    });
    is_named || meta.is_controlled_by(&pod.metadata.uid)
}

/// Puts class and finalizer on a claim that is seen for the first time.
fn adopt(claim: &PersistentVolumeClaim, class: Option<&str>) -> Intent {
    let mut finalizers: Vec<&str> = claim.metadata.finalizers.iter().map(|it| &**it).collect();
    if !finalizers.contains(&PROTECTION) {
        finalizers.push(PROTECTION);
    }
    let mut patch = json!({ "metadata": { "finalizers": finalizers } });
    if let Some(class) = class {
        patch["spec"] = json!({ "storageClassName": class });
    }
    patch_claim(claim, patch)
}

fn patch_claim(claim: &PersistentVolumeClaim, patch: Value) -> Intent {
    write::patch(
        Kind::PersistentVolumeClaim,
        &claim.metadata,
        Part::Whole,
        patch,
    )
}

fn is_late(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

fn first_note(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim, class: &str) -> Option<Intent> {
    let occasion = occasion(claim);
    let now = inputs.now;
    match inputs.mirror.get::<StorageClass>("", class) {
        None if class.is_empty() => Some(occasion.normal(
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
            now,
        )),
        None => Some(occasion.warning(
            "ProvisioningFailed",
            &format!("storageclass.storage.k8s.io \"{class}\" not found"),
            now,
        )),
        Some(row) if is_late(row) && selected_node(inputs.mirror, claim).is_none() => {
            let message = "waiting for first consumer to be created before binding";
            Some(occasion.normal("WaitForFirstConsumer", message, now))
        }
        Some(_) => None,
    }
}

fn occasion(claim: &PersistentVolumeClaim) -> Occasion<'_> {
    Occasion {
        kind: Kind::PersistentVolumeClaim,
        meta: &claim.metadata,
        component: "persistentvolume-controller",
        id: "",
    }
}

/// A volume that is kept for this claim already.
fn reserved<'a>(
    mirror: &'a Mirror,
    claim: &PersistentVolumeClaim,
) -> Option<&'a Arc<PersistentVolume>> {
    let term = format!("{}/{}", claim.metadata.namespace, claim.metadata.name);
    mirror
        .indexed::<PersistentVolume>(Index::VolumeClaim, "", &term)
        .find(|volume| is_for(volume, claim) && volume.metadata.deletion_timestamp.is_none())
}

fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|reference| {
        reference.namespace == claim.metadata.namespace
            && claim.metadata.name == reference.name
            && (reference.uid.is_empty() || reference.uid == claim.metadata.uid)
    })
}

/// The smallest free volume that serves the claim.
fn fitting<'a>(
    inputs: &Inputs<'a>,
    claim: &PersistentVolumeClaim,
    class: &str,
) -> Option<&'a Arc<PersistentVolume>> {
    let mirror = inputs.mirror;
    let row = mirror.get::<StorageClass>("", class);
    let node = selected_node(mirror, claim);
    if let Some(row) = row.filter(|row| is_late(row)) {
        // Whoever chose the node has looked at free volumes: he keeps one for the claim, or wants one
        // made, and what is free meanwhile may be on its way to another claim.
        let is_to_be_made = claim.metadata.annotations.contains_key(SELECTED_NODE)
            && &*row.provisioner != NO_PROVISIONER;
        if node.is_none() || is_to_be_made {
            return None;
        }
    }
    let size = |volume: &PersistentVolume| volume.spec.capacity.get("storage").cloned();
    let wanted = claim
        .spec
        .resources
        .requests
        .get("storage")
        .cloned()
        .unwrap_or_default();
    let mode = |mode: &Option<Box<str>>| mode.as_deref().unwrap_or("Filesystem").to_owned();
    mirror
        .list::<PersistentVolume>()
        .filter(|volume| {
            let spec = &volume.spec;
            spec.claim_ref.is_none()
                && volume.metadata.deletion_timestamp.is_none()
                && &*spec.storage_class_name == class
                && claim
                    .spec
                    .access_modes
                    .iter()
                    .all(|mode| spec.access_modes.contains(mode))
                && mode(&spec.volume_mode) == mode(&claim.spec.volume_mode)
                && size(volume).unwrap_or_default() >= wanted
        })
        .filter(|volume| {
            let selector = claim.spec.selector.as_ref();
            selector.is_none_or(|selector| selector.matches(&volume.metadata.labels))
        })
        .filter(|volume| node.is_none_or(|node| volume::is_reachable(volume, node)))
        .min_by_key(|volume| (size(volume), volume.metadata.name.clone()))
}

/// The node on which the first consumer runs, or will run.
fn selected_node<'a>(mirror: &'a Mirror, claim: &PersistentVolumeClaim) -> Option<&'a Arc<Node>> {
    let meta = &claim.metadata;
    if let Some(name) = meta.annotations.get(SELECTED_NODE) {
        return mirror.get::<Node>("", name);
    }
    users(mirror, claim).find_map(|pod| mirror.get::<Node>("", &pod.spec.node_name))
}

/// Keeps the volume for the claim, and once that is seen, names it in the claim.
fn take(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Vec<Intent> {
    let is_kept = volume
        .spec
        .claim_ref
        .as_ref()
        .is_some_and(|reference| reference.uid == claim.metadata.uid);
    if !is_kept {
        let mut patch = json!({ "spec": { "claimRef": claim_ref(claim) } });
        if volume.spec.claim_ref.is_none() {
            patch["metadata"] = json!({ "annotations": { BOUND_BY: "yes" } });
        }
        let meta = &volume.metadata;
        return vec![write::patch(
            Kind::PersistentVolume,
            meta,
            Part::Whole,
            patch,
        )];
    }
    vec![patch_claim(
        claim,
        json!({
            "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes",
                BOUND_BY: "yes" } },
            "spec": { "volumeName": volume.metadata.name },
        }),
    )]
}

fn claim_ref(claim: &PersistentVolumeClaim) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    })
}

/// Makes the status of a claim that names its volume say how that stands.
fn bind(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim) -> Vec<Intent> {
    let kind = Kind::PersistentVolumeClaim;
    let meta = &claim.metadata;
    let Some(volume) = inputs
        .mirror
        .get::<PersistentVolume>("", &claim.spec.volume_name)
    else {
        if claim.status.phase != ClaimPhase::Bound {
            return Vec::new();
        }
        let note = occasion(claim).warning(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            inputs.now,
        );
        let lost = json!({ "phase": ClaimPhase::Lost });
        return vec![write::patch_status(kind, meta, lost), note];
    };
    if volume.spec.claim_ref.is_none() {
        return take(claim, volume);
    }
    if !is_for(volume, claim) {
        return Vec::new();
    }
    if volume
        .spec
        .claim_ref
        .as_ref()
        .is_some_and(|reference| reference.uid.is_empty())
    {
        return take(claim, volume);
    }
    if claim.status.phase == ClaimPhase::Bound {
        return expansion::grow(inputs, claim, volume);
    }
    let status = json!({
        "phase": ClaimPhase::Bound,
        "accessModes": volume.spec.access_modes,
        "capacity": volume.spec.capacity,
    });
    vec![write::patch_status(kind, meta, status)]
}

/// Makes a directory for the claim, or says who is to make a volume.
fn provision(inputs: &Inputs<'_>, claim: &PersistentVolumeClaim, class: &str) -> Vec<Intent> {
    let Some(row) = inputs.mirror.get::<StorageClass>("", class) else {
        return Vec::new();
    };
    let node = selected_node(inputs.mirror, claim);
    if is_late(row) && node.is_none() {
        return Vec::new();
    }
    if &*row.provisioner == PROVISIONER {
        let size = claim.spec.resources.requests.get("storage");
        if size.is_none_or(|size| *size <= Quantity::default()) {
            return Vec::new();
        }
        let from = match source::filling(inputs, claim, class) {
            Filling::Empty => None,
            Filling::From(from) => Some(from),
            Filling::First(intents) => return intents,
            // Such a claim is bound once somebody has made its volume.
            Filling::Foreign => return Vec::new(),
        };
        let node = node.filter(|_| is_late(row)).map(|node| &**node);
        let mut made = volume::body(inputs, claim, row, node);
        if let Some(from) = &from {
            source::mark(&mut made, from);
        }
        return vec![write::create(Kind::PersistentVolume, made)];
    }
    let known = claim.metadata.annotations.get(STORAGE_PROVISIONER);
    if known.is_some_and(|it| *it == *row.provisioner)
        || &*row.provisioner == "kubernetes.io/no-provisioner"
    {
        return Vec::new();
    }
    let provisioner = &row.provisioner;
    let annotations =
        json!({ STORAGE_PROVISIONER: provisioner, OLD_STORAGE_PROVISIONER: provisioner });
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    );
    vec![
        patch_claim(claim, json!({ "metadata": { "annotations": annotations } })),
        occasion(claim).normal("ExternalProvisioning", &message, inputs.now),
    ]
}
