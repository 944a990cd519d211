//! Pods on nodes whose `NoExecute` taints they do not bear, or no longer: they are deleted.

use api::core::{DISRUPTION_TARGET, Node, Pod, Taint, disruption_target};
use api::intent::ObjectKey;
use api::kind::Kind;
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
    if node.is_some_and(|node| node.spec.taints.iter().any(Taint::drives_away)) {
        keys.push((*change.key).clone());
    }
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
    match pod.leaves_at(&node.spec.taints, inputs.now) {
        None => Step::idle(),
        Some(due) if inputs.now < due => Step::wake_at(due),
        Some(_) => evict(inputs, pod),
    }
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
