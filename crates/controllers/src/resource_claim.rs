//! Claims of devices: made from templates for pods, told to them, and freed once nobody uses them.
//!
//! A key is a pod or a claim. A pod's claims are made first and told to it then. Who has ended or gone no
//! longer uses a claim; the last one takes its devices along, and a claim that was made for a pod goes
//! once that is over.
//!
//! Source: Kubernetes' resource claim controller.

use api::core::{Pod, PodResourceClaim};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::resource::{Consumer, FINALIZER, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate};
use mirror::{Change, Index, Mirror, claim_name, own_claim};
use model::CLAIM_USERS_MAX;
use serde_json::{Value, json};

use crate::child::{self, cut};
use crate::note::Occasion;
use crate::presence::Presence;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "resource_claim",
    component: "resource_claim",
    watches: &[Kind::Pod, Kind::ResourceClaim, Kind::ResourceClaimTemplate],
    keys,
    step,
};

/// Of a name made of two others so much is left for both, beside two hyphens.
const STEM_MAX: usize = 56;

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::Pod => of_pod(mirror, change, keys),
        Kind::ResourceClaim => {
            keys.push((*change.key).clone());
            let (namespace, name) = (&change.key.namespace, &change.key.name);
            let users = mirror.keys(Index::PodDeviceClaim, namespace, name);
            keys.extend(users);
            crate::keys::of_owner(change, Kind::Pod, keys);
        }
        _ => {
            let pods = mirror.list_in::<Pod>(&change.key.namespace);
            let name = Some(&change.key.name);
            let asks = |pod: &&std::sync::Arc<Pod>| {
                let mut claims = pod.spec.resource_claims.iter();
                claims.any(|claim| claim.resource_claim_template_name.as_ref() == name)
            };
            keys.extend(pods.filter(asks).map(|pod| pod_key(pod)));
        }
    }
}

fn of_pod(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let sides = [change.before::<Pod>(), change.after::<Pod>()];
    for pod in sides.into_iter().flatten() {
        let claims = pod.spec.resource_claims.iter();
        let names = claims.filter_map(|claim| claim_name(mirror, pod, claim));
        let namespace = &change.key.namespace;
        keys.extend(names.map(|name| ObjectKey::new(Kind::ResourceClaim, namespace, &name)));
        if !pod.spec.resource_claims.is_empty() {
            keys.push((*change.key).clone());
        }
    }
}

fn pod_key(pod: &Pod) -> ObjectKey {
    ObjectKey::new(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name)
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    match inputs.key.kind {
        Kind::Pod => match inputs.mirror.get::<Pod>(namespace, name) {
            Some(pod) if !pod.is_terminating() && !pod.is_finished() => serve(inputs, pod),
            _ => Step::idle(),
        },
        _ => match inputs.mirror.get::<ResourceClaim>(namespace, name) {
            Some(claim) => free(inputs, claim),
            None => Step::idle(),
        },
    }
}

/// Makes the claims that a pod needs, tells it their names, and keeps for it what it runs with.
fn serve(inputs: &Inputs<'_>, pod: &Pod) -> Step {
    let mut made = Vec::new();
    let mut intents = Vec::new();
    for claim in &pod.spec.resource_claims {
        let Some(template) = &claim.resource_claim_template_name else {
            continue;
        };
        let mut told = pod.status.resource_claim_statuses.iter().rev();
        let told = told.find(|told| told.name == claim.name);
        let is_settled = told.is_some_and(|told| match &told.resource_claim_name {
            Some(name) => is_there(inputs, pod, name),
            None => true,
        });
        if is_settled {
            continue;
        }
        match own_claim(inputs.mirror, pod, &claim.name) {
            Some(own) => made.push((&*claim.name, &*own.metadata.name)),
            None => match make(inputs, pod, claim, template) {
                Ok(create) => intents.push(create),
                Err(blocked) => return *blocked,
            },
        }
    }
    if !intents.is_empty() {
        return Step::write(intents);
    }
    if !made.is_empty() {
        return Step::write(vec![tell(pod, &made)]);
    }
    match pod.spec.node_name.is_empty() {
        // Whoever places it keeps the claims for it.
        true => Step::idle(),
        false => Step::write(keep(inputs.mirror, pod)),
    }
}

fn is_there(inputs: &Inputs<'_>, pod: &Pod, name: &str) -> bool {
    let claim = inputs
        .mirror
        .get::<ResourceClaim>(&pod.metadata.namespace, name);
    claim.is_some_and(|claim| claim.is_of_pod(&pod.metadata.uid))
}

fn make(
    inputs: &Inputs<'_>,
    pod: &Pod,
    claim: &PodResourceClaim,
    template: &str,
) -> Result<Intent, Box<Step>> {
    let meta = &pod.metadata;
    let Some(template) = inputs
        .mirror
        .get::<ResourceClaimTemplate>(&meta.namespace, template)
    else {
        return Err(Box::new(without_template(inputs, pod, claim, template)));
    };
    let mut annotations = template.spec.metadata.annotations.clone();
    annotations.insert(POD_CLAIM_NAME.into(), claim.name.clone());
    let mut body = json!({
        "metadata": {
            "name": name_of(pod, &claim.name),
            "namespace": meta.namespace,
            "annotations": annotations,
            "ownerReferences": [write::controller_ref(Kind::Pod, meta)],
        },
        "spec": template.spec.spec,
    });
    let labels = &template.spec.metadata.labels;
    if !labels.is_empty() {
        body["metadata"]["labels"] = json!(labels);
    }
    Ok(write::create(Kind::ResourceClaim, body))
}

fn without_template(
    inputs: &Inputs<'_>,
    pod: &Pod,
    claim: &PodResourceClaim,
    template: &str,
) -> Step {
    let meta = &pod.metadata;
    let occasion = Occasion {
        kind: Kind::Pod,
        meta,
        component: CONTROLLER.component,
        id: &claim.name,
    };
    let message = format!(
        "PodResourceClaim {}: resource claim template \"{template}\" not found",
        claim.name
    );
    let key = ObjectKey::new(Kind::ResourceClaimTemplate, &meta.namespace, template);
    Step {
        intents: vec![occasion.warning("FailedResourceClaimCreation", &message, inputs.now)],
        ..Step::blocked("ResourceClaimTemplateNotFound", vec![key])
    }
}

/// A name that is the same whenever it is made for this pod: as upstream's, it begins with the names of
/// both, each cut in proportion where they are long.
fn name_of(pod: &Pod, claim: &str) -> String {
    let meta = &pod.metadata;
    let whole = meta.name.len() + claim.len();
    let share = |text| match whole > STEM_MAX {
        true => cut(text, text.len() * STEM_MAX / whole),
        false => text,
    };
    let stem = format!("{}-{}-", share(&meta.name), share(claim));
    child::name(&stem, &[&meta.uid, claim])
}

/// Tells a pod the claims that were made for it.
fn tell(pod: &Pod, made: &[(&str, &str)]) -> Intent {
    let known = pod.status.resource_claim_statuses.iter();
    let known = known.filter(|told| made.iter().all(|(name, _)| *told.name != **name));
    let mut rows: Vec<Value> = known.map(|told| json!(told)).collect();
    rows.extend(
        made.iter()
            .map(|(name, claim)| json!({ "name": name, "resourceClaimName": claim })),
    );
    let status = json!({ "resourceClaimStatuses": rows });
    write::patch_status(Kind::Pod, &pod.metadata, status)
}

/// A pod that was bound without whoever places pods: it uses claims that have devices.
fn keep(mirror: &Mirror, pod: &Pod) -> Vec<Intent> {
    let meta = &pod.metadata;
    let claims = pod.spec.resource_claims.iter();
    let claims = claims.filter_map(|claim| {
        let name = claim_name(mirror, pod, claim)?;
        mirror.get::<ResourceClaim>(&meta.namespace, &name)
    });
    let lacks = claims.filter(|claim| {
        claim.status.allocation.is_some()
            && claim.metadata.deletion_timestamp.is_none()
            && !claim.is_reserved_for(&meta.uid)
            && claim.status.reserved_for.len() < CLAIM_USERS_MAX
    });
    lacks
        .map(|claim| {
            let status = json!({ "reservedFor": claim.users_with(meta) });
            write::patch_status(Kind::ResourceClaim, &claim.metadata, status)
        })
        .collect()
}

/// Frees a claim of users that have ended or gone.
fn free(inputs: &Inputs<'_>, claim: &ResourceClaim) -> Step {
    let meta = &claim.metadata;
    let mut valid = Vec::new();
    let mut unknown = Vec::new();
    for user in &claim.status.reserved_for {
        match uses(inputs, claim, user) {
            Some(true) => valid.push(user),
            Some(false) => {}
            None => unknown.push(ObjectKey::new(Kind::Pod, &meta.namespace, &user.name)),
        }
    }
    if !unknown.is_empty() {
        return Step::ask(unknown);
    }
    let has_finalizer = meta.finalizers.iter().any(|it| **it == *FINALIZER);
    let status =
        |status: Value| Step::write(vec![write::patch_status(Kind::ResourceClaim, meta, status)]);
    if valid.len() < claim.status.reserved_for.len() {
        return status(match valid.is_empty() {
            true if has_finalizer => json!({ "allocation": null, "reservedFor": null }),
            true => json!({ "reservedFor": null }),
            false => json!({ "reservedFor": valid }),
        });
    }
    if !valid.is_empty() {
        return Step::idle();
    }
    let is_leaving = meta.deletion_timestamp.is_some();
    if is_leaving && has_finalizer {
        return match claim.status.allocation {
            Some(_) => status(json!({ "allocation": null })),
            None => {
                let intent = write::without_finalizer(Kind::ResourceClaim, meta, FINALIZER);
                Step::write(vec![intent])
            }
        };
    }
    match !is_leaving && is_left_over(inputs.mirror, claim) {
        true => Step::write(vec![write::delete(Kind::ResourceClaim, meta)]),
        false => Step::idle(),
    }
}

/// Whether a user still uses a claim; `None` where that has to be looked up. What is no pod is not ours
/// to judge.
fn uses(inputs: &Inputs<'_>, claim: &ResourceClaim, user: &Consumer) -> Option<bool> {
    if !user.is_pod() {
        return Some(true);
    }
    let meta = &claim.metadata;
    let key = ObjectKey::new(Kind::Pod, &meta.namespace, &user.name);
    match inputs.presence(&key, &user.uid, meta.revision()) {
        Presence::There => {
            let pod = inputs.mirror.get::<Pod>(&meta.namespace, &user.name);
            Some(pod.is_none_or(|pod| !is_done(pod)))
        }
        Presence::Unheard => Some(true),
        Presence::Gone => Some(false),
        Presence::Unknown => None,
    }
}

/// Whether it was made for a pod that is over or has another's name by now; what belongs to one that has
/// gone goes with all that does.
fn is_left_over(mirror: &Mirror, claim: &ResourceClaim) -> bool {
    let Some(owner) = claim.metadata.controller() else {
        return false;
    };
    if Kind::find(&owner.api_version, &owner.kind) != Some(Kind::Pod) {
        return false;
    }
    let pod = mirror.get::<Pod>(&claim.metadata.namespace, &owner.name);
    pod.is_some_and(|pod| pod.metadata.uid == owner.uid && is_done(pod))
}

/// Whether none of its containers runs nor ever will.
fn is_done(pod: &Pod) -> bool {
    pod.is_finished() || pod.is_terminating() && pod.spec.node_name.is_empty()
}
