//! Claims, volumes and classes → what a pod's volumes ask of its node; and what must happen to
//! them before the pod may be bound there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{
    ClaimPhase, CsiNode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, TopologyTerm,
    claims_named, makes_claim,
};
use api::disk::SELECTED_NODE;
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use model::{
    Key, NodeTerm, Operator, Requirement, Unmade, VolumeLack, VolumeNeed, ZONE_LABELS, Zone,
};
use serde_json::json;

use super::constraints;
use crate::held::Mirror;
use crate::index::Index;

mod free;

pub use free::{Chosen, chosen};
pub(super) use free::{free_volume, storage};

/// The provisioner of classes whose volumes nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The access mode of claims that one pod may use at a time.
const ONE_POD: &str = "ReadWriteOncePod";

/// How a pod's claims stand on their way to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Claims {
    /// Every claim is bound to a volume that the node can reach.
    Ready,
    /// These claims are still to be told the node, or these volumes their claim; then they are waited
    /// for.
    Tell(Vec<Intent>),
    /// All are told, some are not bound yet; what of them is awaited.
    Wait(String),
    /// The node cannot have them; the sentence says why.
    Conflict(String),
}

/// How the claims of `pod` stand for a place on `node`, where some of them get these volumes.
pub fn claims_of(mirror: &Mirror, pod: &Pod, node: &str, chosen: &[Chosen]) -> Claims {
    let mut tell = Vec::new();
    let mut waits = None;
    for name in claims_named(&pod.metadata.name, &pod.spec.volumes) {
        let namespace = &pod.metadata.namespace;
        let Some(claim) = mirror.get::<PersistentVolumeClaim>(namespace, &name) else {
            return Claims::Conflict(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        match unusable(pod, claim) {
            Some(VolumeLack::Leaving) => {
                return Claims::Conflict(format!(
                    "persistentvolumeclaim \"{name}\" is being deleted"
                ));
            }
            Some(_) => return Claims::Conflict(format!("claim {name} was not made for the pod")),
            None => {}
        }
        let volume = volume_of(mirror, claim);
        if let Some(volume) = volume.or_else(|| reserved(mirror, claim)) {
            if !reaches(mirror, volume, node) {
                return Claims::Conflict(format!(
                    "volume {} of claim {name} cannot be reached from node {node}",
                    volume.metadata.name
                ));
            }
            if claim.status.phase != ClaimPhase::Bound {
                waits.get_or_insert_with(|| unbound(&name));
            }
            continue;
        }
        waits.get_or_insert_with(|| unbound(&name));
        if let Some(given) = chosen.iter().find(|given| *given.claim == *name) {
            match free::give(mirror, claim, given) {
                Ok(intent) => tell.push(intent),
                Err(why) => return Claims::Conflict(why),
            }
            continue;
        }
        match claim.metadata.annotations.get(SELECTED_NODE) {
            Some(selected) if **selected == *node => {}
            Some(selected) => {
                return Claims::Conflict(format!("claim {name} is promised to node {selected}"));
            }
            // Of a claim that waits for nobody no node is asked.
            None if !claim.spec.volume_name.is_empty()
                || !is_by_consumer(class_of(mirror, claim)) => {}
            None => tell.push(tell_node(claim, node)),
        }
    }
    match (tell.is_empty(), waits) {
        (false, _) => Claims::Tell(tell),
        (true, Some(what)) => Claims::Wait(what),
        (true, None) => Claims::Ready,
    }
}

fn unbound(claim: &str) -> String {
    format!("persistentvolumeclaim \"{claim}\" is not bound")
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
    let mut claims: Vec<Arc<str>> = claims_named(&pod.metadata.name, &pod.spec.volumes)
        .filter(|name| {
            let need = need(mirror, pod, name);
            matches!(need, Some(VolumeNeed::FirstConsumer { .. }))
        })
        .map(|name| (&*name).into())
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// Claims of a pod that one pod may use at a time.
pub(super) fn sole(mirror: &Mirror, pod: &Pod) -> Vec<Arc<str>> {
    let namespace = &pod.metadata.namespace;
    let mut claims: Vec<Arc<str>> = claims_named(&pod.metadata.name, &pod.spec.volumes)
        .filter(|name| {
            let claim = mirror.get::<PersistentVolumeClaim>(namespace, name);
            let mut modes = claim.iter().flat_map(|claim| &claim.spec.access_modes);
            modes.any(|mode| &**mode == ONE_POD)
        })
        .map(|name| (&*name).into())
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// What the pod's claims ask of its node, in order. Claims that wait for their first consumer and are
/// otherwise alike are one need: which is which is known once they have volumes.
pub(super) fn needs(mirror: &Mirror, pod: &Pod, sole: &[Arc<str>]) -> Vec<VolumeNeed> {
    let claims = claims_named(&pod.metadata.name, &pod.spec.volumes);
    let claims: BTreeSet<_> = claims.collect();
    let mut needs: Vec<VolumeNeed> = (claims.iter())
        .filter_map(|name| need(mirror, pod, name))
        .collect();
    needs.extend((!sole.is_empty()).then_some(VolumeNeed::Alone));
    needs.sort();
    needs.dedup_by(|later, first| joined(first, later) || later == first);
    needs
}

/// Whether `other` asks the same as `need`, which counts its claims from now on.
fn joined(need: &mut VolumeNeed, other: &VolumeNeed) -> bool {
    if !is_alike(need, other) {
        return false;
    }
    let VolumeNeed::FirstConsumer { unmade, ask, .. } = need else {
        return false;
    };
    let more = other.ask().map_or(1, |ask| ask.count);
    if let Some(Unmade::Own(_, count)) = unmade {
        *count = count.saturating_add(more);
    }
    if let Some(ask) = ask {
        let ask = Arc::make_mut(ask);
        ask.count = ask.count.saturating_add(more);
    }
    true
}

/// Whether claims of the pod's own ask for the same, however many there are.
pub(super) fn is_alike(need: &VolumeNeed, other: &VolumeNeed) -> bool {
    let (
        VolumeNeed::FirstConsumer {
            topology,
            unmade,
            ask: Some(ask),
        },
        VolumeNeed::FirstConsumer {
            topology: also,
            unmade: same,
            ask: Some(other),
        },
    ) = (need, other)
    else {
        return false;
    };
    let driver = |unmade: &Option<Unmade>| match unmade {
        Some(Unmade::Own(driver, _)) => Some(Arc::clone(driver)),
        _ => None,
    };
    topology == also && ask.is_alike(other) && driver(unmade) == driver(same)
}

/// How many volumes each driver attaches to the node, where it says so.
pub(super) fn limits(mirror: &Mirror, node: &str) -> BTreeMap<Arc<str>, i64> {
    let drivers = mirror.get::<CsiNode>("", node).into_iter();
    let drivers = drivers.flat_map(|told| &told.spec.drivers);
    drivers
        .filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some(((&*driver.name).into(), i64::from(count)))
        })
        .collect()
}

fn need(mirror: &Mirror, pod: &Pod, name: &str) -> Option<VolumeNeed> {
    let namespace = &*pod.metadata.namespace;
    let waits = |why| {
        Some(VolumeNeed::Waits {
            claim: name.into(),
            why,
        })
    };
    let Some(claim) = mirror.get::<PersistentVolumeClaim>(namespace, name) else {
        return waits(
            match makes_claim(&pod.metadata.name, &pod.spec.volumes, name) {
                true => VolumeLack::Awaited,
                false => VolumeLack::Missing,
            },
        );
    };
    if let Some(why) = unusable(pod, claim) {
        return waits(why);
    }
    let volume = volume_of(mirror, claim);
    // One that is kept for the claim is as good as bound: whoever binds claims has only to follow.
    if let Some(volume) = volume.or_else(|| reserved(mirror, claim)) {
        let affinity = affinity(volume);
        let attach = attach(volume);
        let zones = zones(volume);
        if affinity.is_none() && zones.is_empty() && attach.is_none() {
            return None;
        }
        return Some(VolumeNeed::Bound {
            affinity,
            zones,
            attach,
        });
    }
    if claim.metadata.deletion_timestamp.is_some() || !claim.spec.volume_name.is_empty() {
        return waits(VolumeLack::Unbound);
    }
    let class = class_of(mirror, claim);
    let driver = class.map(|class| &*class.provisioner);
    let driver = driver.filter(|driver| !driver.is_empty() && *driver != NO_PROVISIONER);
    // The volume has no name yet: its claim stands for it, so that its slot is taken.
    let by_its_claim = |driver: &str| (driver.into(), format!("{namespace}/{name}").into());
    if let Some(node) = claim.metadata.annotations.get(SELECTED_NODE) {
        return Some(VolumeNeed::Bound {
            affinity: Some(vec![NodeTerm {
                labels: Vec::new(),
                names: vec![Requirement::equals("metadata.name", &**node)],
            }]),
            zones: Vec::new(),
            attach: driver.map(by_its_claim),
        });
    }
    match class {
        Some(class) if is_by_consumer(Some(class)) => {
            let is_own = is_own(pod, name);
            let mut ask = free::ask(mirror, claim, driver);
            ask.claim = (!is_own).then(|| Key::new(namespace, name));
            Some(VolumeNeed::FirstConsumer {
                topology: topology(&class.allowed_topologies),
                unmade: driver.map(|driver| match is_own {
                    true => Unmade::Own(driver.into(), 1),
                    false => Unmade::Shared(by_its_claim(driver)),
                }),
                ask: Some(Arc::new(ask)),
            })
        }
        _ => waits(VolumeLack::Unbound),
    }
}

/// The class of a claim, if there is one of its name.
fn class_of<'a>(mirror: &'a Mirror, claim: &PersistentVolumeClaim) -> Option<&'a StorageClass> {
    let name = claim.spec.storage_class_name.as_deref().unwrap_or("");
    mirror.get::<StorageClass>("", name).map(|class| &**class)
}

/// Whether claims of the class get their volumes where their first pods go.
fn is_by_consumer(class: Option<&StorageClass>) -> bool {
    let mode = class.and_then(|class| class.volume_binding_mode.as_deref());
    mode == Some("WaitForFirstConsumer")
}

/// Why no pod may be given a node with the claim, if so. One that has its node keeps what it mounts.
fn unusable(pod: &Pod, claim: &PersistentVolumeClaim) -> Option<VolumeLack> {
    let (of, meta) = (&pod.metadata, &claim.metadata);
    if !pod.spec.node_name.is_empty() {
        return None;
    }
    if meta.deletion_timestamp.is_some() {
        return Some(VolumeLack::Leaving);
    }
    let is_made = makes_claim(&of.name, &pod.spec.volumes, &meta.name);
    (is_made && !meta.is_controlled_by(&of.uid)).then_some(VolumeLack::Foreign)
}

/// Whether the claim is made for this pod and no other, as names of StatefulSets' claims and of generic
/// ephemeral volumes say it. Pods that differ in such claims only are of one shape.
fn is_own(pod: &Pod, claim: &str) -> bool {
    let pod = &*pod.metadata.name;
    let before = claim.strip_suffix(pod);
    let after = claim.strip_prefix(pod);
    before.is_some_and(|rest| rest.ends_with('-'))
        || after.is_some_and(|rest| rest.starts_with('-'))
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

/// The volume that is kept for a claim which does not name it yet, or names it and is not told yet that it has it.
fn reserved<'a>(mirror: &'a Mirror, claim: &PersistentVolumeClaim) -> Option<&'a PersistentVolume> {
    let meta = &claim.metadata;
    if !claim.spec.volume_name.is_empty() {
        // Whoever binds claims follows that, once the volume says so, too.
        let volume = mirror.get::<PersistentVolume>("", &claim.spec.volume_name)?;
        let kept = volume.spec.claim_ref.as_ref();
        let is_its = kept.is_some_and(|kept| kept.uid == meta.uid);
        return (is_its && volume.metadata.deletion_timestamp.is_none()).then_some(volume);
    }
    let term = format!("{}/{}", meta.namespace, meta.name);
    let mut volumes = mirror.indexed::<PersistentVolume>(Index::VolumeClaim, "", &term);
    let volume = volumes.find(|volume| {
        let kept = volume.spec.claim_ref.as_ref();
        volume.metadata.deletion_timestamp.is_none()
            && kept.is_some_and(|kept| kept.uid.is_empty() || kept.uid == meta.uid)
    })?;
    Some(volume)
}

/// Driver and handle of a volume that takes an attach slot.
fn attach(volume: &PersistentVolume) -> Option<(Arc<str>, Arc<str>)> {
    let csi = volume.spec.csi.as_ref()?;
    Some(((&*csi.driver).into(), (&*csi.volume_handle).into()))
}

fn affinity(volume: &PersistentVolume) -> Option<Vec<NodeTerm>> {
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    Some(constraints::node_terms(required))
}

/// Where the labels of a volume say that it is: one of the values that `__` sets apart.
fn zones(volume: &PersistentVolume) -> Vec<Zone> {
    let labels = &volume.metadata.labels;
    let keys = ZONE_LABELS.iter();
    keys.filter_map(|key| {
        let newer = key
            .strip_prefix("failure-domain.beta.")
            .map(|rest| format!("topology.{rest}").into());
        Some(Zone {
            key: (*key).into(),
            newer,
            values: labels.get(key)?.split("__").collect(),
        })
    })
    .collect()
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
