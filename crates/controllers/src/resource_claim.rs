//! Claims of devices: made from templates for pods and groups, told to them, and freed once nobody uses
//! them.
//!
//! A key is a pod, a group of Kubernetes' own or a claim. Claims are made first and told then, those of a
//! group to the group and to its pods that share them. Who has ended or gone no longer uses a claim; the
//! last one takes its devices along, and a claim that was made for a pod goes once that is over. What a
//! group shares it uses until it has gone, and its last pod with it.
//!
//! Source: Kubernetes' resource claim controller; KEP-5729.

use api::core::{Pod, PodResourceClaim, PodResourceClaimStatus};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::native::PodGroup;
use api::resource::{
    Consumer, FINALIZER, GROUP_CLAIM_NAME, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate,
};
use mirror::{
    Change, Index, Mirror, claim_name, claim_user, extended_claim, own_claim, sharing_group,
};
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
    tells_refused: &[],
    watches: &[
        Kind::NativeGroup,
        Kind::Pod,
        Kind::ResourceClaim,
        Kind::ResourceClaimTemplate,
    ],
    keys,
    step,
};

/// Of a name made of two others so much is left for both, beside two hyphens.
const STEM_MAX: usize = 56;

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::Pod => of_pod(mirror, change, keys),
        Kind::NativeGroup => of_group(mirror, change, keys),
        Kind::ResourceClaim => {
            keys.push((*change.key).clone());
            let (namespace, name) = (&change.key.namespace, &change.key.name);
            let users = mirror.keys(Index::PodDeviceClaim, namespace, name);
            keys.extend(users);
            crate::keys::of_owner(change, Kind::Pod, keys);
            crate::keys::of_owner(change, Kind::NativeGroup, keys);
        }
        _ => {
            let namespace = &change.key.namespace;
            let name = Some(&change.key.name);
            let asks = |claims: &[PodResourceClaim]| {
                let mut claims = claims.iter();
                claims.any(|claim| claim.resource_claim_template_name.as_ref() == name)
            };
            let pods = mirror.list_in::<Pod>(namespace);
            let pods = pods.filter(|pod| asks(&pod.spec.resource_claims));
            keys.extend(pods.map(|pod| crate::keys::of_pod(pod)));
            let groups = mirror.list_in::<PodGroup>(namespace);
            let groups = groups.filter(|group| asks(&group.spec.resource_claims));
            keys.extend(
                groups.map(|group| {
                    ObjectKey::new(Kind::NativeGroup, namespace, &group.metadata.name)
                }),
            );
        }
    }
}

fn of_pod(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let sides = [change.before::<Pod>(), change.after::<Pod>()];
    for pod in sides.into_iter().flatten() {
        let claims = pod.spec.resource_claims.iter();
        let names = claims.filter_map(|claim| claim_name(mirror, pod, claim));
        let extended = extended_claim(mirror, pod).map(|claim| (&claim.metadata.name).into());
        let names = names.chain(extended);
        let namespace = &change.key.namespace;
        keys.extend(names.map(|name| ObjectKey::new(Kind::ResourceClaim, namespace, &name)));
        if !pod.spec.resource_claims.is_empty() {
            keys.push((*change.key).clone());
        }
    }
}

/// A group with claims: they are to be made, its pods to be told of them, and once it has gone it uses
/// them no longer.
fn of_group(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let (namespace, name) = (&change.key.namespace, &change.key.name);
    let sides = [change.before::<PodGroup>(), change.after::<PodGroup>()];
    let sides = sides.into_iter().flatten();
    let sides: Vec<_> = sides
        .filter(|group| !group.spec.resource_claims.is_empty())
        .collect();
    for group in &sides {
        let named = group.spec.resource_claims.iter();
        let named = named.filter_map(|claim| claim.resource_claim_name.as_deref());
        let made = group.status.resource_claim_statuses.iter();
        let made = made.filter_map(|told| told.resource_claim_name.as_deref());
        let claims = named.chain(made);
        keys.extend(claims.map(|claim| ObjectKey::new(Kind::ResourceClaim, namespace, claim)));
    }
    if !sides.is_empty() {
        keys.push((*change.key).clone());
        let pods = mirror.indexed::<Pod>(Index::PodNativeGroup, namespace, name);
        let pods = pods.filter(|pod| !pod.spec.resource_claims.is_empty());
        keys.extend(pods.map(|pod| crate::keys::of_pod(pod)));
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    match inputs.key.kind {
        Kind::Pod => match inputs.mirror.get::<Pod>(namespace, name) {
            Some(pod) if !pod.is_terminating() && !pod.is_finished() => serve(inputs, pod),
            _ => Step::idle(),
        },
        Kind::NativeGroup => match inputs.mirror.get::<PodGroup>(namespace, name) {
            Some(group) if group.metadata.deletion_timestamp.is_none() => {
                serve_group(inputs, group)
            }
            _ => Step::idle(),
        },
        _ => match inputs.mirror.get::<ResourceClaim>(namespace, name) {
            Some(claim) => free(inputs, claim),
            None => Step::idle(),
        },
    }
}

/// For whom claims are made: a pod, or a group for all its pods.
struct Claimant<'a> {
    kind: Kind,
    meta: &'a ObjectMeta,
    /// The annotation that says what it calls a claim.
    mark: &'static str,
    /// What it was told of its claims.
    told: &'a [PodResourceClaimStatus],
}

/// What is to be done for a claimant, claim by claim.
#[derive(Default)]
struct Work<'a> {
    /// Claims that are there and not yet told: what it calls each, and its name.
    made: Vec<(&'a str, &'a str)>,
    creates: Vec<Intent>,
}

impl<'a> Claimant<'a> {
    fn of_pod(pod: &'a Pod) -> Claimant<'a> {
        Claimant {
            kind: Kind::Pod,
            meta: &pod.metadata,
            mark: POD_CLAIM_NAME,
            told: &pod.status.resource_claim_statuses,
        }
    }

    fn of_group(group: &'a PodGroup) -> Claimant<'a> {
        Claimant {
            kind: Kind::NativeGroup,
            meta: &group.metadata,
            mark: GROUP_CLAIM_NAME,
            told: &group.status.resource_claim_statuses,
        }
    }

    /// Whether it knows a claim of the name it was told, which was made for the one with this uid.
    fn is_told(&self, inputs: &Inputs<'_>, name: &str, uid: &str) -> bool {
        let mut told = self.told.iter().rev();
        let told = told.find(|told| *told.name == *name);
        told.is_some_and(|told| match &told.resource_claim_name {
            Some(name) => {
                let mirror = inputs.mirror;
                let claim = mirror.get::<ResourceClaim>(&self.meta.namespace, name);
                claim.is_some_and(|claim| claim.is_made_for(uid))
            }
            None => true,
        })
    }

    fn own(&self, inputs: &Inputs<'a>, name: &str) -> Option<&'a ResourceClaim> {
        own_claim(inputs.mirror, (&self.meta.uid, self.mark), name).map(|claim| &**claim)
    }

    /// What is to be done so that it has its own claim of what it calls so; the step to take where
    /// that cannot be.
    fn want(
        &self,
        inputs: &Inputs<'a>,
        claim: &'a PodResourceClaim,
        work: &mut Work<'a>,
    ) -> Result<(), Box<Step>> {
        let Some(template) = &claim.resource_claim_template_name else {
            return Ok(());
        };
        if self.is_told(inputs, &claim.name, &self.meta.uid) {
            return Ok(());
        }
        match self.own(inputs, &claim.name) {
            Some(own) => work.made.push((&claim.name, &own.metadata.name)),
            None => work.creates.push(self.make(inputs, claim, template)?),
        }
        Ok(())
    }

    fn make(
        &self,
        inputs: &Inputs<'_>,
        claim: &PodResourceClaim,
        template: &str,
    ) -> Result<Intent, Box<Step>> {
        let meta = self.meta;
        let Some(template) = inputs
            .mirror
            .get::<ResourceClaimTemplate>(&meta.namespace, template)
        else {
            return Err(Box::new(self.without_template(inputs, claim, template)));
        };
        let mut annotations = template.spec.metadata.annotations.clone();
        annotations.insert(self.mark.into(), (&*claim.name).into());
        let mut body = json!({
            "metadata": {
                "name": name_of(meta, &claim.name),
                "namespace": meta.namespace,
                "annotations": annotations,
                "ownerReferences": [write::controller_ref(self.kind, meta)],
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
        &self,
        inputs: &Inputs<'_>,
        claim: &PodResourceClaim,
        template: &str,
    ) -> Step {
        let occasion = Occasion {
            kind: self.kind,
            meta: self.meta,
            component: CONTROLLER.component,
            id: &claim.name,
        };
        let whose = match self.kind {
            Kind::Pod => "PodResourceClaim",
            _ => "PodGroupResourceClaim",
        };
        let message = format!(
            "{whose} {}: resource claim template \"{template}\" not found",
            claim.name
        );
        let namespace = &self.meta.namespace;
        let key = ObjectKey::new(Kind::ResourceClaimTemplate, namespace, template);
        Step {
            intents: vec![occasion.warning("FailedResourceClaimCreation", &message, inputs.now)],
            ..Step::blocked("ResourceClaimTemplateNotFound", vec![key])
        }
    }

    /// The next step: claims are made, and once they are there it is told of them. `None` where nothing
    /// is to be done.
    fn step(&self, work: Work<'_>) -> Option<Step> {
        if !work.creates.is_empty() {
            return Some(Step::write(work.creates));
        }
        (!work.made.is_empty()).then(|| Step::write(vec![self.tell(&work.made)]))
    }

    fn tell(&self, made: &[(&str, &str)]) -> Intent {
        let known = self.told.iter();
        let known = known.filter(|told| made.iter().all(|(name, _)| *told.name != **name));
        let mut rows: Vec<Value> = known.map(|told| json!(told)).collect();
        rows.extend(
            made.iter()
                .map(|(name, claim)| json!({ "name": name, "resourceClaimName": claim })),
        );
        let status = json!({ "resourceClaimStatuses": rows });
        write::patch_status(self.kind, self.meta, status)
    }
}

/// Makes the claims that a pod needs, tells it their names, and keeps for it what it runs with. What its
/// group shares is made for the group.
fn serve(inputs: &Inputs<'_>, pod: &Pod) -> Step {
    let claimant = Claimant::of_pod(pod);
    let mut work = Work::default();
    let group = match (inputs.settings.native_groups, pod.native_group()) {
        (true, Some(name)) => Some(name),
        _ => None,
    };
    let group = group.map(|name| ObjectKey::new(Kind::NativeGroup, &pod.metadata.namespace, name));
    let mut waits_for = None;
    for claim in &pod.spec.resource_claims {
        if let Some(key) = &group
            && claim.resource_claim_template_name.is_some()
        {
            if inputs.mirror.object(key).is_none() {
                // Whether the claim is the group's nobody knows before.
                waits_for = Some(key);
                continue;
            }
            if let Some(group) = sharing_group(inputs.mirror, pod, claim) {
                let is_told = claimant.is_told(inputs, &claim.name, &group.metadata.uid);
                let shared = Claimant::of_group(group).own(inputs, &claim.name);
                match shared.filter(|_| !is_told) {
                    Some(shared) => work.made.push((&claim.name, &shared.metadata.name)),
                    None if is_told => {}
                    None => waits_for = Some(key),
                }
                continue;
            }
        }
        if let Err(blocked) = claimant.want(inputs, claim, &mut work) {
            return *blocked;
        }
    }
    if let Some(step) = claimant.step(work) {
        return step;
    }
    if let Some(key) = waits_for {
        return Step::blocked("PodGroupHasNoClaim", vec![key.clone()]);
    }
    match pod.spec.node_name.is_empty() {
        // Whoever places it keeps the claims for it.
        true => Step::idle(),
        false => Step::write(keep(inputs.mirror, pod)),
    }
}

/// Makes the claims that a group's pods share, and tells it their names.
fn serve_group(inputs: &Inputs<'_>, group: &PodGroup) -> Step {
    let claimant = Claimant::of_group(group);
    let mut work = Work::default();
    for claim in &group.spec.resource_claims {
        if let Err(blocked) = claimant.want(inputs, claim, &mut work) {
            return *blocked;
        }
    }
    claimant.step(work).unwrap_or_else(Step::idle)
}

/// A name that is the same whenever it is made for this pod or group: as upstream's, it begins with the
/// names of both, each cut in proportion where they are long.
fn name_of(meta: &ObjectMeta, claim: &str) -> String {
    let whole = meta.name.len() + claim.len();
    let share = |text| match whole > STEM_MAX {
        true => cut(text, text.len() * STEM_MAX / whole),
        false => text,
    };
    let stem = format!("{}-{}-", share(&meta.name), share(claim));
    child::name(&stem, &[&meta.uid, claim])
}

/// A pod that was bound without whoever places pods: it uses claims that have devices.
fn keep(mirror: &Mirror, pod: &Pod) -> Vec<Intent> {
    let meta = &pod.metadata;
    let claims = pod.spec.resource_claims.iter();
    let claims = claims.filter_map(|named| {
        let name = claim_name(mirror, pod, named)?;
        let claim = mirror.get::<ResourceClaim>(&meta.namespace, &name)?;
        Some((claim, claim_user(mirror, pod, named)))
    });
    // A group that has gone before its pods: what it shared is still kept for it.
    let is_of_former_group = |claim: &ResourceClaim| {
        let group = pod.native_group();
        let former = group.filter(|name| mirror.get::<PodGroup>(&meta.namespace, name).is_none());
        former.is_some_and(|name| claim.is_reserved_for_group(name))
    };
    let lacks = claims.filter(|(claim, user)| {
        claim.status.allocation.is_some()
            && claim.metadata.deletion_timestamp.is_none()
            && !claim.is_reserved_for(&user.uid)
            && !is_of_former_group(claim)
            && claim.status.reserved_for.len() < CLAIM_USERS_MAX
    });
    lacks
        .map(|(claim, user)| {
            let status = json!({ "reservedFor": claim.users_with(&user) });
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
            None => unknown.push(user_key(claim, user)),
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

fn user_key(claim: &ResourceClaim, user: &Consumer) -> ObjectKey {
    let kind = match user.is_group() {
        true => Kind::NativeGroup,
        false => Kind::Pod,
    };
    ObjectKey::new(kind, &claim.metadata.namespace, &user.name)
}

/// Whether a user still uses a claim; `None` where that has to be looked up. What is no pod and no group
/// is not ours to judge.
fn uses(inputs: &Inputs<'_>, claim: &ResourceClaim, user: &Consumer) -> Option<bool> {
    let is_known = user.is_pod() || user.is_group() && inputs.settings.native_groups;
    if !is_known {
        return Some(true);
    }
    let meta = &claim.metadata;
    let key = user_key(claim, user);
    match inputs.presence(&key, &user.uid, meta.revision()) {
        Presence::There if user.is_group() => Some(true),
        Presence::There => {
            let pod = inputs.mirror.get::<Pod>(&meta.namespace, &user.name);
            Some(pod.is_none_or(|pod| !is_done(pod)))
        }
        Presence::Unheard => Some(true),
        Presence::Gone => Some(user.is_group() && outlives(inputs.mirror, claim, &user.name)),
        Presence::Unknown => None,
    }
}

/// Whether a pod of a group that has gone still runs with a claim.
fn outlives(mirror: &Mirror, claim: &ResourceClaim, group: &str) -> bool {
    let meta = &claim.metadata;
    let mut pods = mirror.indexed::<Pod>(Index::PodDeviceClaim, &meta.namespace, &meta.name);
    pods.any(|pod| pod.native_group() == Some(group) && !is_done(pod))
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
