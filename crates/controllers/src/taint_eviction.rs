//! Pods on nodes whose `NoExecute` taints they do not bear, or no longer: they are deleted.

use api::core::{DISRUPTION_TARGET, Node, Pod, Taint, disruption_target};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "taint_eviction",
    component: "taint-eviction-controller",
    watches: &[Kind::Node, Kind::Pod],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::Node {
        let taints = |node: &std::sync::Arc<Node>| node.spec.taints.clone();
        if change.before::<Node>().map(taints) != change.after::<Node>().map(taints) {
            let pods = mirror.pods_on(&change.key.name);
            keys.extend(pods.map(|pod| crate::keys::of_pod(pod)));
        }
        return;
    }
    let Some(pod) = change.after::<Pod>() else {
        return;
    };
    let node = mirror.get::<Node>("", &pod.spec.node_name);
    if node.is_some_and(|node| drives_away(node).next().is_some()) {
        keys.push((*change.key).clone());
    }
}

fn drives_away(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.taints.iter();
    taints.filter(|taint| &*taint.effect == "NoExecute")
}

fn step(inputs: &Inputs<'_>) -> Step {
    let mirror = inputs.mirror;
    let Some(pod) = mirror.get::<Pod>(&inputs.key.namespace, &inputs.key.name) else {
        return Step::idle();
    };
    if pod.is_terminating() || pod.spec.node_name.is_empty() {
        return Step::idle();
    }
    let Some(node) = mirror.get::<Node>("", &pod.spec.node_name) else {
        return Step::idle();
    };
    match due(pod, node, inputs.now) {
        None => Step::idle(),
        Some(due) if inputs.now < due => Step::wake_at(due),
        Some(_) => evict(inputs, pod),
    }
}

/// When a pod must go; `None` while it bears every taint for ever.
fn due(pod: &Pod, node: &Node, now: Time) -> Option<Time> {
    let mut first: Option<Time> = None;
    for taint in drives_away(node) {
        let tolerations = pod.spec.tolerations.iter();
        let matching: Vec<_> = tolerations.filter(|it| it.tolerates(taint)).collect();
        if matching.is_empty() {
            return Some(now);
        }
        // A pod that came later is given its time from then on.
        let since = taint.time_added.max(pod.metadata.creation_timestamp);
        let seconds = matching.iter().filter_map(|it| it.toleration_seconds).min();
        if let Some(seconds) = seconds {
            let wait = seconds.max(0).saturating_mul(1_000);
            let until = since.unwrap_or(now).plus_ms(wait);
            first = Some(first.map_or(until, |known| known.min(until)));
        }
    }
    first
}

/// Says why, then deletes.
fn evict(inputs: &Inputs<'_>, pod: &Pod) -> Step {
    let meta = &pod.metadata;
    let told = (pod.status.condition(DISRUPTION_TARGET)).filter(|it| &*it.status == "True");
    if told.is_none() {
        let message = "Taint manager: deleting due to NoExecute taint";
        let target = disruption_target("DeletionByTaintManager", message, inputs.now);
        let list = pod.status.conditions_with(vec![target]);
        let status = json!({ "conditions": list });
        return Step::write(vec![write::patch_status(Kind::Pod, meta, status)]);
    }
    let message = format!("Marking for deletion Pod {}/{}", meta.namespace, meta.name);
    let occasion = Occasion {
        kind: Kind::Pod,
        meta,
        component: "taint-eviction-controller",
        id: "",
    };
    let note = occasion.normal("TaintManagerEviction", &message, inputs.now);
    Step::write(vec![write::delete(Kind::Pod, meta), note])
}
