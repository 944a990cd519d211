//! The volume's side: its phase, its end, and how a directory is made into one.

use api::core::{
    Node, NodeRequirement, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumePhase,
};
use api::disk::DIRECTORY;
use api::intent::{ObjectKey, Part};
use api::kind::Kind;
use mirror::Mirror;
use serde_json::{Value, json};

use super::{PROVISIONER, claim_ref, is_used};
use crate::{Inputs, Step, write};

const HOSTNAME: &str = "kubernetes.io/hostname";
/// Keeps a volume while a claim has it.
const PROTECTION: &str = "kubernetes.io/pv-protection";

pub(super) fn step(inputs: &Inputs<'_>, volume: &PersistentVolume) -> Step {
    let meta = &volume.metadata;
    let mirror = inputs.mirror;
    let phase = phase(mirror, volume);
    let is_protected = meta.finalizers.iter().any(|it| &**it == PROTECTION);
    if meta.deletion_timestamp.is_some() {
        if is_protected && phase != VolumePhase::Bound {
            let kind = Kind::PersistentVolume;
            return Step::write(vec![write::without_finalizer(kind, meta, PROTECTION)]);
        }
        return Step::idle();
    }
    if !is_protected {
        let mut finalizers: Vec<&str> = meta.finalizers.iter().map(|it| &**it).collect();
        finalizers.push(PROTECTION);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        return Step::write(vec![write::patch(
            Kind::PersistentVolume,
            meta,
            Part::Whole,
            patch,
        )]);
    }
    if phase == VolumePhase::Released {
        // One that has been found gone stays so.
        let claim = volume.spec.claim_ref.as_ref();
        let claim = claim.filter(|_| volume.status.phase != phase).map(|claim| {
            let kind = Kind::PersistentVolumeClaim;
            (
                ObjectKey::new(kind, &claim.namespace, &claim.name),
                &*claim.uid,
            )
        });
        if let Some(first) = inputs.before_presence(claim.into_iter(), meta.revision()) {
            return first;
        }
    }
    if volume.status.phase != phase {
        let status = json!({ "phase": phase });
        return Step::write(vec![write::patch_status(
            Kind::PersistentVolume,
            meta,
            status,
        )]);
    }
    let is_spent = phase == VolumePhase::Released
        && &*volume.spec.persistent_volume_reclaim_policy == "Delete"
        && is_directory(volume);
    if let Some(claim) = volume.spec.claim_ref.as_ref().filter(|_| is_spent)
        && !is_used(mirror, &claim.namespace, &claim.name)
    {
        return Step::write(vec![write::delete(Kind::PersistentVolume, meta)]);
    }
    Step::idle()
}

fn phase(mirror: &Mirror, volume: &PersistentVolume) -> VolumePhase {
    let reference = volume.spec.claim_ref.as_ref();
    let Some(reference) = reference.filter(|reference| !reference.uid.is_empty()) else {
        return VolumePhase::Available;
    };
    let claim = mirror.get::<PersistentVolumeClaim>(&reference.namespace, &reference.name);
    match claim.filter(|claim| claim.metadata.uid == reference.uid) {
        Some(claim) if volume.metadata.name == claim.spec.volume_name => VolumePhase::Bound,
        // Kept for a claim that does not name it yet.
        Some(_) => volume.status.phase,
        None => VolumePhase::Released,
    }
}

pub(crate) fn is_directory(volume: &PersistentVolume) -> bool {
    let made_by = volume
        .metadata
        .annotations
        .get("pv.kubernetes.io/provisioned-by");
    made_by.is_some_and(|made_by| &**made_by == PROVISIONER)
}

/// A volume for a claim, under a name that follows from the claim's uid.
pub(super) fn body(
    inputs: &Inputs<'_>,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
) -> Value {
    let name = format!("pvc-{}", claim.metadata.uid);
    let path = format!("{}/{name}", inputs.settings.volumes_directory);
    let mut spec = json!({
        "capacity": { "storage": claim.spec.resources.requests.get("storage") },
        "accessModes": claim.spec.access_modes,
        "volumeMode": claim.spec.volume_mode.as_deref().unwrap_or("Filesystem"),
        "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
        "storageClassName": class.metadata.name,
        "claimRef": claim_ref(claim),
        "hostPath": { "path": path, "type": "DirectoryOrCreate" },
    });
    if let Some(node) = node {
        let host = node
            .metadata
            .labels
            .get(HOSTNAME)
            .map_or(&*node.metadata.name, |host| host);
        let term = json!({ "key": HOSTNAME, "operator": "In", "values": [host] });
        spec["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [term] }] } });
    }
    json!({
        "metadata": {
            "name": name,
            "annotations": { "pv.kubernetes.io/provisioned-by": PROVISIONER },
            "finalizers": [DIRECTORY, PROTECTION],
        },
        "spec": spec,
    })
}

/// Whether a volume's node affinity lets a node reach it.
pub(super) fn is_reachable(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.node_affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|selector| {
        let terms = &selector.node_selector_terms;
        terms.iter().any(|term| {
            term.match_expressions
                .iter()
                .all(|it| is_met(it, node.metadata.labels.get(&it.key).map(|label| &**label)))
        })
    })
}

fn is_met(requirement: &NodeRequirement, label: Option<&str>) -> bool {
    let is_listed = label.is_some_and(|label| requirement.values.iter().any(|it| &**it == label));
    match &*requirement.operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        // Numbers never tell where a volume lies.
        _ => false,
    }
}
