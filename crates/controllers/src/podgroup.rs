//! PodGroups for pods that name our scheduler but belong to no gang
//! (`specs/volcano.md` 2.3). How those of ReplicaSets and StatefulSets go on is said by
//! [`crate::workload_group`].

use std::collections::BTreeMap;

use api::core::{Pod, ResourceList};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::volcano::{
    COOLDOWN_TIME, GROUP_MIN_MEMBER, GROUP_NAME, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE,
    PREEMPTABLE, PodGroup, QUEUE_OF_POD, REVOCABLE_ZONE, TOPOLOGY_HIGHEST_TIER, TOPOLOGY_MODE,
    group_of_pod, pod_group_of_owner,
};
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::note::Occasion;
use crate::presence::Presence;
use crate::ranking::is_active;
use crate::vcjob::{add_times, pod_requests};
use crate::{Controller, Inputs, Refused, Step, write};

/// Owners whose annotations are handed on to the group.
const OWNERS: [Kind; 4] = [
    Kind::BatchJob,
    Kind::DaemonSet,
    Kind::ReplicaSet,
    Kind::StatefulSet,
];

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "podgroup",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[
        Kind::BatchJob,
        Kind::DaemonSet,
        Kind::Pod,
        Kind::PodGroup,
        Kind::Queue,
        Kind::ReplicaSet,
        Kind::StatefulSet,
    ],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if let Some(pod) = change.after::<Pod>()
        && is_waiting(mirror, pod)
    {
        keys.push((*change.key).clone());
    }
    // A group that goes is made again for those that are in it.
    if change.kind() == Kind::PodGroup && (change.after.is_none() || change.is_recreation()) {
        let pods = mirror.pods_of_group(&change.key.namespace, &change.key.name);
        let waiting = pods.filter(|pod| is_waiting(mirror, pod));
        keys.extend(waiting.map(|pod| crate::keys::of_pod(pod)));
    }
    // Pods may be heard of before their owner, and wait for it then. Its later news wake nobody.
    let is_new = change.before.is_none() || change.is_recreation();
    if let Some(owner) = change.after.as_ref().filter(|_| is_new)
        && OWNERS.contains(&owner.kind())
    {
        let pods = mirror.owned_by::<Pod>(owner.uid());
        let waiting = pods.filter(|pod| is_waiting(mirror, pod));
        keys.extend(waiting.map(|pod| crate::keys::of_pod(pod)));
    }
}

/// Whether a pod has no group yet, or one that is not there.
fn is_waiting(mirror: &Mirror, pod: &Pod) -> bool {
    is_active(pod) && (group_of_pod(&pod.metadata).is_none() || lacks_group(mirror, pod))
}

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let Some(pod) = mirror.get::<Pod>(&inputs.key.namespace, &inputs.key.name) else {
        return Step::idle();
    };
    let meta = &pod.metadata;
    let is_ours = inputs
        .settings
        .scheduler_names
        .contains(&pod.spec.scheduler_name);
    if !is_ours || !is_active(pod) {
        return Step::idle();
    }
    if inputs.settings.native_groups && pod.native_group().is_some() {
        return Step::idle();
    }
    let name = group_name(pod);
    if group_of_pod(meta).is_some() {
        if !lacks_group(mirror, pod) {
            return Step::idle();
        }
        if let Some(first) = before_group(inputs, meta) {
            return first;
        }
        // It goes as its group went.
        if has_lost_owner(inputs, meta) {
            return Step::idle();
        }
        let mut intents = vec![create(inputs, pod, &name)];
        intents.extend(refusal(inputs, pod, &name));
        return Step::write(intents);
    }
    if mirror.get::<PodGroup>(&meta.namespace, &name).is_none() {
        // Both at once: they name each other whichever comes first, and each can be repeated.
        return before_group(inputs, meta).unwrap_or_else(|| {
            let mut intents = vec![create(inputs, pod, &name), join(pod, &name)];
            intents.extend(refusal(inputs, pod, &name));
            Step::write(intents)
        });
    }
    Step::write(vec![join(pod, &name)])
}

/// What to do before a pod's group can be made: to find out whether its owner is there, which says how
/// many start together and of which nothing may have been heard yet. `None` where it is known.
fn before_group(inputs: &Inputs<'_>, meta: &ObjectMeta) -> Option<Step> {
    if !inputs.settings.inherit_owner_annotations {
        return None;
    }
    let (key, uid) = owner_key(meta)?;
    inputs.before_presence(std::iter::once((key, uid)), meta.revision())
}

fn group_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let owner_uid = meta.controller().map_or(&meta.uid, |owner| &owner.uid);
    pod_group_of_owner(owner_uid)
}

/// Whether a pod has joined a group of ours that is not there: joining and making are two writes,
/// and the second may have failed.
fn lacks_group(mirror: &Mirror, pod: &Pod) -> bool {
    let meta = &pod.metadata;
    group_of_pod(meta).is_some_and(|joined| {
        *joined == *group_name(pod) && mirror.get::<PodGroup>(&meta.namespace, joined).is_none()
    })
}

fn join(pod: &Pod, group: &str) -> Intent {
    let patch = json!({ "metadata": { "annotations": { GROUP_NAME: group } } });
    write::patch(Kind::Pod, &pod.metadata, Part::Whole, patch)
}

fn create(inputs: &Inputs<'_>, pod: &Pod, name: &str) -> Intent {
    let meta = &pod.metadata;
    let owner = owner_of(inputs, meta);
    let min_member = owner.and_then(|owner| declared_min_member(inputs, owner));
    let owners = match meta.controller() {
        Some(_) => json!(meta.owner_references),
        None => json!([write::controller_ref(Kind::Pod, meta)]),
    };
    let (labels, annotations) = marks(inputs, meta, owner);
    write::create(
        Kind::PodGroup,
        json!({
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": owners,
            },
            "spec": spec(pod, min_member.unwrap_or(1)),
            "status": { "phase": "Pending" },
        }),
    )
}

/// Tells a pod why its group could not be made; once for each reason.
fn refusal(inputs: &Inputs<'_>, pod: &Pod, name: &str) -> Option<Intent> {
    let is_it = |it: &&Refused| it.target.kind == Kind::PodGroup && *it.target.name == *name;
    let refused = inputs.last.refused.iter().find(is_it)?;
    let occasion = Occasion {
        kind: Kind::Pod,
        meta: &pod.metadata,
        component: CONTROLLER.component,
        id: name,
    };
    let message = format!("Failed to create PodGroup, err: {}", refused.message);
    Some(occasion.warning("PodGroupError", &message, inputs.now))
}

/// How many pods of an owner start together, where it says so itself.
pub(crate) fn declared_min_member(inputs: &Inputs<'_>, owner: &ObjectMeta) -> Option<i32> {
    let said = owner.annotations.get(GROUP_MIN_MEMBER);
    said.filter(|_| inputs.settings.inherit_owner_annotations)
        .and_then(|text| text.parse::<i32>().ok())
        .filter(|count| *count >= 0)
}

/// What a group of pods like this one wants: only what the pod and its owner say.
pub(crate) fn spec(pod: &Pod, min_member: i32) -> Value {
    let mut min_resources = ResourceList::new();
    add_times(
        &mut min_resources,
        &pod_requests(pod.spec.clone()),
        i64::from(min_member),
    );
    let meta = &pod.metadata;
    let mut spec = json!({ "minMember": min_member, "minResources": min_resources });
    if !pod.spec.priority_class_name.is_empty() {
        spec["priorityClassName"] = json!(pod.spec.priority_class_name);
    }
    let queue = meta.annotations.get(QUEUE_OF_POD);
    if let Some(queue) = queue.filter(|queue| !queue.is_empty()) {
        spec["queue"] = json!(queue);
    }
    if let Some(topology) = topology(meta) {
        spec["networkTopology"] = topology;
    }
    spec
}

/// Key and uid of the direct owner, where it is of a kind whose annotations are handed on.
fn owner_key(meta: &ObjectMeta) -> Option<(ObjectKey, &str)> {
    let owner = meta.controller()?;
    let kind = Kind::find(&owner.api_version, &owner.kind)?;
    let is_asked = OWNERS.contains(&kind);
    is_asked.then(|| {
        let key = ObjectKey::new(kind, &meta.namespace, &owner.name);
        (key, &*owner.uid)
    })
}

/// Whether that owner has gone.
fn has_lost_owner(inputs: &Inputs<'_>, meta: &ObjectMeta) -> bool {
    owner_key(meta)
        .is_some_and(|(key, uid)| inputs.presence(&key, uid, meta.revision()) == Presence::Gone)
}

/// That owner, where it is there.
fn owner_of<'a>(inputs: &Inputs<'a>, meta: &ObjectMeta) -> Option<&'a ObjectMeta> {
    let (key, uid) = owner_key(meta)?;
    let found = inputs.mirror.object(&key)?;
    (*found.uid() == *uid).then(|| found.meta())
}

/// Labels or annotations.
pub(crate) type Texts<'a> = BTreeMap<&'a str, &'a str>;

/// Labels and annotations of a group, from one of its pods and its owner.
pub(crate) fn marks<'a>(
    inputs: &Inputs<'_>,
    meta: &'a ObjectMeta,
    owner: Option<&'a ObjectMeta>,
) -> (Texts<'a>, Texts<'a>) {
    let mut labels = Texts::new();
    let mut annotations = Texts::new();
    if let Some(owner) = owner.filter(|_| inputs.settings.inherit_owner_annotations) {
        for (key, value) in &owner.annotations {
            if key.starts_with("volcano.sh/") {
                annotations.insert(key, value);
            }
        }
    }
    for key in [PREEMPTABLE, COOLDOWN_TIME] {
        if let Some(value) = meta.labels.get(key) {
            labels.insert(key, value);
        }
    }
    let budget = match meta.annotations.contains_key(JDB_MIN_AVAILABLE) {
        true => JDB_MIN_AVAILABLE,
        false => JDB_MAX_UNAVAILABLE,
    };
    for key in [PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE, budget] {
        if let Some(value) = meta.annotations.get(key) {
            annotations.insert(key, value);
        }
    }
    (labels, annotations)
}

fn topology(meta: &ObjectMeta) -> Option<Value> {
    let mode = meta.annotations.get(TOPOLOGY_MODE);
    let tier = meta.annotations.get(TOPOLOGY_HIGHEST_TIER);
    if mode.is_none() && tier.is_none() {
        return None;
    }
    // As upstream: what is not soft, however it is written, is hard.
    let is_soft = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("soft"));
    let mut topology = json!({ "mode": if is_soft { "soft" } else { "hard" } });
    if let Some(tier) = tier.and_then(|tier| tier.parse::<i64>().ok()) {
        topology["highestTierAllowed"] = json!(tier);
    }
    Some(topology)
}
