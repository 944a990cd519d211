//! Pods on nodes whose `NoExecute` taints they do not bear, or no longer: they are deleted.
//!
//! How long a pod bears a taint is counted from when that was seen first, which is written down in the taint
//! itself where it has no time.

use api::core::{DISRUPTION_TARGET, Node, Pod, Taint, disruption_target};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::json;

use crate::conditions::whole_seconds;
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "taint_eviction",
    component: "taint-eviction-controller",
    tells_refused: &[],
    watches: &[Kind::Node, Kind::Pod],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::Node {
        let taints = |node: &std::sync::Arc<Node>| node.spec.taints.clone();
        if change.after::<Node>().is_some_and(|node| is_undated(node)) {
            keys.push((*change.key).clone());
        }
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
    if inputs.key.kind == Kind::Node {
        let node = mirror.get::<Node>("", &inputs.key.name);
        return node.map_or_else(Step::idle, |node| date(node, inputs.now));
    }
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

/// Whether somebody has added a taint that drives pods away, and did not say when.
fn is_undated(node: &Node) -> bool {
    let mut taints = node.spec.taints.iter();
    taints.any(|taint| taint.drives_away() && taint.time_added.is_none())
}

/// Writes down that taints without a time are there since now.
fn date(node: &Node, now: Time) -> Step {
    if !is_undated(node) {
        return Step::idle();
    }
    let mut taints = node.spec.taints.clone();
    for taint in taints.iter_mut().filter(|taint| taint.drives_away()) {
        taint.time_added = taint.time_added.or(Some(whole_seconds(now)));
    }
    Step::write(vec![write::patch_taints(&node.metadata, &taints)])
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
