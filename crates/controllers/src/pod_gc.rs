//! Pods that nobody would remove otherwise: on nodes that have gone, never placed but being
//! deleted, or finished and too many.

use api::core::{DISRUPTION_TARGET, Node, Pod, disruption_target};
use api::intent::ObjectKey;
use api::kind::Kind;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "pod_gc",
    component: "pod-garbage-collector",
    tells_refused: &[],
    watches: &[Kind::Node, Kind::Pod],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::Node {
        if change.after.is_none() {
            let pods = mirror.pods_on(&change.key.name);
            keys.extend(pods.map(|pod| crate::keys::of_pod(pod)));
        }
        return;
    }
    let Some(pod) = change.after::<Pod>() else {
        return;
    };
    let before = change.before::<Pod>();
    let is_news = before.is_none_or(|before| {
        before.is_finished() != pod.is_finished()
            || before.is_terminating() != pod.is_terminating()
            || before.spec.node_name != pod.spec.node_name
            || before.status.conditions != pod.status.conditions
    });
    if is_news {
        keys.push((*change.key).clone());
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let Some(pod) = mirror.get::<Pod>(&inputs.key.namespace, &inputs.key.name) else {
        return Step::idle();
    };
    let node = &pod.spec.node_name;
    if node.is_empty() {
        if pod.is_terminating() && pod.metadata.finalizers.is_empty() {
            return Step::write(vec![write::delete_now(Kind::Pod, &pod.metadata)]);
        }
    } else if mirror.get::<Node>("", node).is_none() {
        let named = std::iter::once((ObjectKey::new(Kind::Node, "", node), ""));
        let first = inputs.before_presence(named, pod.metadata.revision());
        return first.unwrap_or_else(|| orphan(inputs, pod));
    }
    surplus(inputs)
}

/// A pod whose node has gone is told why, then deleted. One that somebody still holds, to count it,
/// is told to have failed first; for a gang's policies the deletion of a pod that ran is an eviction.
fn orphan(inputs: &Inputs<'_>, pod: &Pod) -> Step {
    let is_held = !pod.metadata.finalizers.is_empty();
    if pod.is_finished() && pod.is_terminating() && is_held {
        // Whoever holds it lets it go.
        return Step::idle();
    }
    let is_told = pod.status.condition(DISRUPTION_TARGET).is_some();
    if pod.is_finished() || (!is_held && is_told) {
        return Step::write(vec![write::delete_now(Kind::Pod, &pod.metadata)]);
    }
    let message = "PodGC: node no longer exists";
    let target = disruption_target("DeletionByPodGC", message, inputs.now);
    let list = pod.status.conditions_with(vec![target]);
    let mut status = json!({ "conditions": list });
    if is_held {
        status["phase"] = json!("Failed");
    }
    Step::write(vec![write::patch_status(Kind::Pod, &pod.metadata, status)])
}

/// Removes the oldest finished pods beyond the limit.
fn surplus(inputs: &Inputs<'_>) -> Step {
    let limit = inputs.settings.terminated_pods_max;
    if inputs.mirror.count(Kind::Pod) <= limit {
        return Step::idle();
    }
    let mut finished: Vec<_> = inputs
        .mirror
        .list::<Pod>()
        .filter(|pod| pod.is_finished() && !pod.is_terminating())
        .collect();
    let Some(surplus) = finished.len().checked_sub(limit).filter(|count| *count > 0) else {
        return Step::idle();
    };
    finished.sort_by_key(|pod| (pod.metadata.creation_timestamp, pod.metadata.revision()));
    let oldest = finished
        .iter()
        .take(surplus.min(inputs.settings.writes_per_step_max));
    Step::write(
        oldest
            .map(|pod| write::delete(Kind::Pod, &pod.metadata))
            .collect(),
    )
}
