//! Claims, volumes and classes → what a pod's volumes ask of its node; and what must happen to
//! them before the pod may be bound there.

use std::sync::Arc;

use api::core::{
    ClaimPhase, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, TopologyTerm,
    claims_named,
};
use api::disk::SELECTED_NODE;
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use model::{NodeTerm, Operator, Requirement, VolumeNeed};
use serde_json::json;

use super::constraints;
use crate::held::Mirror;

/// How a pod's claims stand on their way to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Claims {
    /// Every claim is bound to a volume that the node can reach.
    Ready,
    /// These claims are still to be told the node; then they are waited for.
    Tell(Vec<Intent>),
    /// All are told, some are not bound yet.
    Wait,
    /// The node cannot have them; the sentence says why.
    Conflict(String),
}

/// How the claims of `pod` stand for a place on `node`.
pub fn claims_of(mirror: &Mirror, pod: &Pod, node: &str) -> Claims {
    let mut tell = Vec::new();
    let mut waits = false;
    for name in claims_named(&pod.metadata.name, &pod.spec.volumes) {
        let namespace = &pod.metadata.namespace;
        let Some(claim) = mirror.get::<PersistentVolumeClaim>(namespace, &name) else {
            return Claims::Conflict(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if let Some(volume) = volume_of(mirror, claim) {
            if !reaches(mirror, volume, node) {
                return Claims::Conflict(format!(
                    "volume {} of claim {name} cannot be reached from node {node}",
                    volume.metadata.name
                ));
            }
            continue;
        }
        waits = true;
        match claim.metadata.annotations.get(SELECTED_NODE) {
            Some(selected) if **selected == *node => {}
            Some(selected) => {
                return Claims::Conflict(format!("claim {name} is promised to node {selected}"));
            }
            None => tell.push(tell_node(claim, node)),
        }
    }
    match (tell.is_empty(), waits) {
        (false, _) => Claims::Tell(tell),
        (true, true) => Claims::Wait,
        (true, false) => Claims::Ready,
    }
}

fn tell_node(claim: &PersistentVolumeClaim, node: &str) -> Intent {
    let meta = &claim.metadata;
    Intent {
        target: ObjectKey::new(Kind::PersistentVolumeClaim, &meta.namespace, &meta.name),
        action: Action::Patch {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            part: Part::Whole,
            patch: json!({ "metadata": { "annotations": { SELECTED_NODE: node } } }),
        },
    }
}

fn reaches(mirror: &Mirror, volume: &PersistentVolume, node: &str) -> bool {
    let Some(terms) = affinity(volume) else {
        return true;
    };
    let labels = constraints::node_labels(mirror, node);
    terms.iter().any(|term| term.accepts(node, &labels))
}

/// Claims of a pod that wait for their first consumer: they go where it goes.
pub(super) fn unplaced(mirror: &Mirror, pod: &Pod) -> Vec<Arc<str>> {
    let namespace = &pod.metadata.namespace;
    let mut claims: Vec<Arc<str>> = claims_named(&pod.metadata.name, &pod.spec.volumes)
        .filter(|name| {
            let need = need(mirror, namespace, name);
            matches!(need, Some(VolumeNeed::FirstConsumer { .. }))
        })
        .map(|name| (&*name).into())
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

pub(super) fn needs(mirror: &Mirror, pod: &Pod) -> Vec<VolumeNeed> {
    let mut needs: Vec<VolumeNeed> = claims_named(&pod.metadata.name, &pod.spec.volumes)
        .filter_map(|name| need(mirror, &pod.metadata.namespace, &name))
        .collect();
    needs.sort();
    needs.dedup();
    needs
}

fn need(mirror: &Mirror, namespace: &str, name: &str) -> Option<VolumeNeed> {
    let waits = |exists| {
        Some(VolumeNeed::Waits {
            claim: name.into(),
            exists,
        })
    };
    let Some(claim) = mirror.get::<PersistentVolumeClaim>(namespace, name) else {
        return waits(false);
    };
    if let Some(volume) = volume_of(mirror, claim) {
        let affinity = affinity(volume);
        let attach = volume
            .spec
            .csi
            .as_ref()
            .map(|csi| ((&*csi.driver).into(), (&*csi.volume_handle).into()));
        if affinity.is_none() && attach.is_none() {
            return None;
        }
        return Some(VolumeNeed::Bound { affinity, attach });
    }
    if claim.metadata.deletion_timestamp.is_some() || !claim.spec.volume_name.is_empty() {
        return waits(true);
    }
    if let Some(node) = claim.metadata.annotations.get(SELECTED_NODE) {
        return Some(VolumeNeed::Bound {
            affinity: Some(vec![NodeTerm {
                labels: Vec::new(),
                names: vec![Requirement::equals("metadata.name", &**node)],
            }]),
            attach: None,
        });
    }
    let class = claim.spec.storage_class_name.as_deref().unwrap_or("");
    match mirror.get::<StorageClass>("", class) {
        Some(class) if class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer") => {
            Some(VolumeNeed::FirstConsumer {
                topology: topology(&class.allowed_topologies),
            })
        }
        _ => waits(true),
    }
}

/// The volume of a claim whose binding is complete.
fn volume_of<'a>(
    mirror: &'a Mirror,
    claim: &PersistentVolumeClaim,
) -> Option<&'a PersistentVolume> {
    if claim.status.phase != ClaimPhase::Bound {
        return None;
    }
    let volume = mirror.get::<PersistentVolume>("", &claim.spec.volume_name)?;
    Some(volume)
}

fn affinity(volume: &PersistentVolume) -> Option<Vec<NodeTerm>> {
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    Some(constraints::node_terms(required))
}

fn topology(terms: &[TopologyTerm]) -> Option<Vec<NodeTerm>> {
    if terms.is_empty() {
        return None;
    }
    let terms = terms.iter().map(|term| NodeTerm {
        labels: term
            .match_label_expressions
            .iter()
            .map(|requirement| Requirement {
                key: (&*requirement.key).into(),
                operator: Operator::In,
                values: requirement.values.iter().map(|v| &**v).collect(),
            })
            .collect(),
        names: Vec::new(),
    });
    Some(terms.collect())
}
