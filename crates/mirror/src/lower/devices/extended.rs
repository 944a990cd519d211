//! The claim for a pod's resources that classes of devices serve: it is made when the pod has a place and
//! devices, gets them like any other, and the pod is told which of its containers has what.
//!
//! Source: Kubernetes' dynamic resource allocation (KEP-5004).

use std::collections::BTreeSet;

use api::core::{Pod, PodExtendedClaim};
use api::intent::{Action, Intent, ObjectKey, Part, Propagation};
use api::kind::Kind;
use api::resource::{Consumer, EXTENDED_CLAIM, ResourceClaim, share_id};
use api::time::Time;
use serde_json::{Value, json};

use super::{Given, Standing};
use crate::held::Mirror;
use crate::lower::patched;
use crate::rows::{EXTENDED, class_of, extended_claim, requests, resources};

/// Of the pod's name so much is left in the claim's.
const STEM_MAX: usize = 220;

/// How the claim stands for a place on `node` with what the pod was given there for its resources.
pub(super) fn stands(
    mirror: &Mirror,
    pod: &Pod,
    node: &str,
    given: &[Given],
    now: Time,
) -> Result<Standing, String> {
    let given: Vec<&Given> = given.iter().filter(|it| *it.claim == *EXTENDED).collect();
    let claim = extended_claim(mirror, pod);
    let Some(claim) = claim else {
        return match given.is_empty() {
            true => Ok(Standing::Kept),
            false => made(mirror, pod, &given).map(Standing::Tell),
        };
    };
    let is_leaving = claim.metadata.deletion_timestamp.is_some();
    match (&claim.status.allocation, given.is_empty()) {
        // The node has all of it otherwise: what was made before is nobody's.
        (None, true) => Ok(Standing::Kept),
        (None, false) if is_leaving => Ok(Standing::Waits),
        (None, false) if spec(mirror, pod, &given)? != asked(claim) => {
            Ok(Standing::Tell(removed(claim)))
        }
        _ => {
            let user = Consumer::pod(&pod.metadata);
            super::stands(mirror, (node, &user), claim, &given, now)
        }
    }
}

/// What is to be written so that the pod knows which devices it has for its resources, or that it has none
/// any more; `None` where it knows.
pub(super) fn told(mirror: &Mirror, pod: &Pod) -> Option<Intent> {
    let claim = extended_claim(mirror, pod).filter(|claim| claim.status.allocation.is_some());
    let wanted = claim.map(|claim| {
        let known = claim.spec.devices.requests.iter();
        let known: BTreeSet<&str> = known.map(|request| &*request.name).collect();
        let mappings = requests(pod, resources(mirror, pod)).mappings.into_iter();
        PodExtendedClaim {
            request_mappings: mappings
                .filter(|it| known.contains(&*it.request_name))
                .collect(),
            resource_claim_name: (&claim.metadata.name).into(),
        }
    });
    if pod.status.extended_resource_claim_status.as_deref() == wanted.as_ref() {
        return None;
    }
    let status = json!({ "extendedResourceClaimStatus": wanted });
    let patch = json!({ "status": status });
    Some(patched(&pod.metadata, Kind::Pod, Part::Status, patch))
}

/// The key of the claim that a pod has for its resources, or will have if it needs one.
pub fn extended_claim_key(mirror: &Mirror, pod: &Pod) -> Option<ObjectKey> {
    let namespace = &pod.metadata.namespace;
    if let Some(claim) = extended_claim(mirror, pod) {
        return Some(ObjectKey::new(
            Kind::ResourceClaim,
            namespace,
            &claim.metadata.name,
        ));
    }
    let is_served = !resources(mirror, pod).is_empty();
    is_served.then(|| ObjectKey::new(Kind::ResourceClaim, namespace, &name_of(pod)))
}

/// A name that is the same whenever it is made for this pod.
fn name_of(pod: &Pod) -> String {
    let stem: String = pod.metadata.name.chars().take(STEM_MAX).collect();
    let stem = stem.trim_end_matches(['-', '.']);
    let own = share_id(&pod.metadata.uid);
    format!("{stem}-extended-resources-{}", &own[..8])
}

/// The claim's requests, as they are to be for what was given: names, classes and counts.
type Asked = Vec<(String, String, i64)>;

/// What the claim is to ask for: whatever is served by devices on the node.
fn spec(mirror: &Mirror, pod: &Pod, given: &[&Given]) -> Result<Asked, String> {
    let is_given = |name: &str| given.iter().any(|it| *it.request == *name);
    let wanted = requests(pod, resources(mirror, pod)).requests.into_iter();
    let wanted = wanted.filter(|request| is_given(&request.name));
    wanted
        .map(|request| {
            let class = class_of(mirror, &request.resource);
            let class = class.ok_or_else(|| format!("no class serves {}", request.resource))?;
            Ok((request.name, class.metadata.name.to_string(), request.count))
        })
        .collect()
}

/// What it asks for.
fn asked(claim: &ResourceClaim) -> Asked {
    let requests = claim.spec.devices.requests.iter();
    let requests = requests.filter_map(|request| {
        let way = request.exactly.as_ref()?;
        let class = way.device_class_name.to_string();
        Some((request.name.to_string(), class, way.count.max(1)))
    });
    requests.collect()
}

fn made(mirror: &Mirror, pod: &Pod, given: &[&Given]) -> Result<Intent, String> {
    let meta = &pod.metadata;
    let requests: Vec<Value> = spec(mirror, pod, given)?
        .into_iter()
        .map(|(name, class, count)| {
            json!({ "name": name, "exactly": {
                "deviceClassName": class, "allocationMode": "ExactCount", "count": count,
            } })
        })
        .collect();
    let name = name_of(pod);
    let body = json!({
        "apiVersion": Kind::ResourceClaim.api_version(),
        "kind": Kind::ResourceClaim.row().name,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "annotations": { EXTENDED_CLAIM: "true" },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid,
                "controller": true,
            }],
        },
        "spec": { "devices": { "requests": requests } },
    });
    Ok(Intent {
        target: ObjectKey::new(Kind::ResourceClaim, &meta.namespace, &name),
        action: Action::Create { body },
    })
}

/// One that was made for another node asks for something else; what a claim asks for never changes.
fn removed(claim: &ResourceClaim) -> Intent {
    let meta = &claim.metadata;
    Intent {
        target: ObjectKey::new(Kind::ResourceClaim, &meta.namespace, &meta.name),
        action: Action::Delete {
            uid: meta.uid.clone(),
            resource_version: Some(meta.resource_version.clone()),
            grace_seconds: None,
            propagation: Propagation::Background,
        },
    }
}
