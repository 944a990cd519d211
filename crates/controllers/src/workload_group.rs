//! Groups of ReplicaSets' and StatefulSets' pods follow their owner (`specs/volcano.md` 2.3): what it
//! says of them, what its pods need, and its end at no replicas.
//!
//! Only what the owner and its pods say is written, over whatever stands there; what they say nothing
//! of is left to whoever set it. A group stays until the last pod that counts in it leaves: taken
//! away earlier it would be made again for those that are still there.

use api::core::{Pod, ReplicaSet, StatefulSet};
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::volcano::{PodGroup, group_of_pod, pod_group_of_owner};
use mirror::{Change, Mirror};
use serde_json::{Map, Value, json};

use crate::podgroup::{declared_min_member, marks, spec};
use crate::ranking::is_active;
use crate::stateful_set::revision_of;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "workload_group",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[
        Kind::Pod,
        Kind::PodGroup,
        Kind::ReplicaSet,
        Kind::StatefulSet,
    ],
    keys,
    step,
};

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::ReplicaSet | Kind::StatefulSet => keys.push((*change.key).clone()),
        Kind::Pod if !change.sides().any(|pod| has_joined(pod.meta())) => {}
        _ => {
            crate::keys::of_owner(change, Kind::ReplicaSet, keys);
            crate::keys::of_owner(change, Kind::StatefulSet, keys);
        }
    }
}

/// Whether a pod is in the group that was made for its owner.
fn has_joined(pod: &ObjectMeta) -> bool {
    let joined = group_of_pod(pod);
    let owner = pod.controller();
    joined.is_some_and(|name| owner.is_some_and(|it| *name == *pod_group_of_owner(&it.uid)))
}

/// A ReplicaSet or StatefulSet, as far as its group is concerned.
struct Owner<'a> {
    meta: &'a ObjectMeta,
    replicas: i32,
    /// Pods of this revision show what its pods are like; empty for all of them.
    revision: &'a str,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some(owner) = read(inputs) else {
        return Step::idle();
    };
    // A group of an owner that leaves is taken away with it.
    let Some(group) = group_of(inputs, owner.meta) else {
        return Step::idle();
    };
    let pods = inputs.mirror.owned_by::<Pod>(&owner.meta.uid);
    let mut pods = pods.filter(|pod| is_active(pod) && has_joined(&pod.metadata));
    if owner.replicas <= 0 {
        return match pods.next() {
            Some(_) => Step::idle(),
            None => Step::write(vec![write::delete(Kind::PodGroup, &group.metadata)]),
        };
    }
    let is_like_all = |pod: &Pod| owner.revision.is_empty() || revision_of(pod) == owner.revision;
    let intent = pods
        .find(|pod| is_like_all(pod))
        .and_then(|pod| mend(inputs, &owner, pod, group));
    Step::write(intent.into_iter().collect())
}

fn read<'a>(inputs: &Inputs<'a>) -> Option<Owner<'a>> {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let owner = match inputs.key.kind {
        Kind::ReplicaSet => {
            let set = inputs.mirror.get::<ReplicaSet>(namespace, name)?;
            Owner {
                meta: &set.metadata,
                replicas: set.spec.replicas.unwrap_or(1),
                revision: "",
            }
        }
        Kind::StatefulSet => {
            let set = inputs.mirror.get::<StatefulSet>(namespace, name)?;
            Owner {
                meta: &set.metadata,
                replicas: set.spec.replicas.unwrap_or(1),
                revision: &set.status.update_revision,
            }
        }
        _ => return None,
    };
    let is_leaving = owner.meta.deletion_timestamp.is_some();
    (!is_leaving).then_some(owner)
}

/// The group that was made for the owner, if it is still its own.
fn group_of<'a>(inputs: &Inputs<'a>, owner: &ObjectMeta) -> Option<&'a PodGroup> {
    let name = pod_group_of_owner(&owner.uid);
    let group = inputs.mirror.get::<PodGroup>(&owner.namespace, &name)?;
    let meta = &group.metadata;
    (meta.is_controlled_by(&owner.uid) && meta.deletion_timestamp.is_none()).then_some(&**group)
}

/// What has to be changed of a group so that it is as its owner and a pod of it say.
fn mend(inputs: &Inputs<'_>, owner: &Owner<'_>, pod: &Pod, group: &PodGroup) -> Option<Intent> {
    let min_member = declared_min_member(inputs, owner.meta)
        .or(group.spec.min_member)
        .unwrap_or(1);
    let (labels, annotations) = marks(inputs, &pod.metadata, Some(owner.meta));
    let said = json!({
        "metadata": { "labels": labels, "annotations": annotations },
        "spec": spec(pod, min_member),
    });
    let there = json!({
        "metadata": { "labels": group.metadata.labels, "annotations": group.metadata.annotations },
        "spec": group.spec,
    });
    let patch = difference(&there, &said)?;
    Some(write::patch(
        Kind::PodGroup,
        &group.metadata,
        Part::Whole,
        patch,
    ))
}

/// What is said and not there, as a merge patch. What is needed at least is one whole: a resource
/// that is no more asked for is no more needed.
fn difference(there: &Value, said: &Value) -> Option<Value> {
    let Value::Object(fields) = said else {
        return write::merge_difference(there, said);
    };
    let mut patch = Map::new();
    for (name, value) in fields {
        let before = there.get(name).unwrap_or(&Value::Null);
        let changed = match &**name {
            "minResources" => write::merge_difference(before, value),
            _ => difference(before, value),
        };
        patch.extend(changed.map(|changed| (name.clone(), changed)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
