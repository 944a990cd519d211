//! Nodes that have gone silent, and the taints that follow from what nodes say of themselves.
//!
//! A node gives signs of life by renewing its Lease. One that has not for a while is marked
//! Unknown; taints keep new pods off it and, with time, drive the others away. A node that never
//! had a Lease has nobody who speaks for it and is not judged.

use std::sync::Arc;

use api::core::{DatedCondition, Lease, Node, Pod, Taint};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

use crate::conditions::{self, whole_seconds};
use crate::note::Occasion;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "node_health",
    component: "node-controller",
    tells_refused: &[],
    watches: &[Kind::Lease, Kind::Node, Kind::Pod],
    keys,
    step,
};

/// Where nodes keep their leases.
const LEASES: &str = "kube-node-lease";
/// How long a node may be silent.
const GRACE_MS: i64 = 50_000;
/// How long a new node may take to say something.
const STARTUP_GRACE_MS: i64 = 60_000;
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// What a silent node is no longer believed.
const DOUBTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Which taint follows from which condition.
const TAINTS: &[(&str, &str, &str)] = &[
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::Node => {
            keys.push((*change.key).clone());
            let is_ready = |node: Option<&Arc<Node>>| node.is_some_and(|node| node.is_ready());
            if is_ready(change.before::<Node>()) != is_ready(change.after::<Node>()) {
                // Whether anybody works at all decides about those that do not.
                let others = mirror.list::<Node>().filter(|node| !node.is_ready());
                keys.extend(others.map(|node| key_of(&node.metadata.name)));
            }
        }
        // A renewed lease is found when the time comes.
        Kind::Lease if change.before.is_none() && &*change.key.namespace == LEASES => {
            keys.push(key_of(&change.key.name));
        }
        _ => {}
    }
}

fn key_of(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Node, "", name)
}

struct View<'a> {
    inputs: &'a Inputs<'a>,
    node: &'a Node,
    lease: Option<&'a Lease>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let name = &inputs.key.name;
    let Some(node) = inputs.mirror.get::<Node>("", name) else {
        return Step::idle();
    };
    let view = View {
        inputs,
        node,
        lease: inputs
            .mirror
            .get::<Lease>(LEASES, name)
            .map(|lease| &**lease),
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        let now = self.inputs.now;
        let mut intents: Vec<Intent> = self.registered().into_iter().collect();
        let due = self.due();
        if due.is_some_and(|due| now >= due)
            && let Some(patch) = self.doubt()
        {
            intents.push(patch);
            return Step::write(intents);
        }
        let wake_at = due.filter(|due| *due > now);
        intents.extend(self.taint());
        if self.ready() == Some("Unknown") {
            intents.extend(self.mark_pods());
        }
        Step::write(intents).or_wake_at(wake_at)
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::Node,
            meta: &self.node.metadata,
            component: CONTROLLER.component,
            id,
        }
    }

    fn registered(&self) -> Option<Intent> {
        let name = &self.node.metadata.name;
        let made = self.node.metadata.creation_timestamp?;
        let is_new = self.inputs.now < made.plus_ms(STARTUP_GRACE_MS);
        self.lease.filter(|_| is_new)?;
        let message = format!("Node {name} event: Registered Node {name} in Controller");
        Some(self.occasion("").normal("RegisteredNode", &message, made))
    }

    /// What the node says of itself: `True`, `False` or `Unknown`.
    fn ready(&self) -> Option<&str> {
        let ready = conditions::find(&self.node.status.conditions, "Ready")?;
        Some(&ready.status)
    }

    /// Until when the node is believed; `None` for one that nobody speaks for.
    fn due(&self) -> Option<Time> {
        let lease = self.lease?;
        let ready = conditions::find(&self.node.status.conditions, "Ready");
        let said = lease.spec.renew_time;
        let reported = ready.and_then(|ready| ready.last_heartbeat_time);
        let made = self.node.metadata.creation_timestamp;
        // Before this process began to watch, nobody could have been heard.
        let heard = Some(self.inputs.settings.heard_since);
        let last = said.max(reported).max(made).max(heard)?;
        let grace = if ready.is_some() {
            GRACE_MS
        } else {
            STARTUP_GRACE_MS
        };
        Some(last.plus_ms(grace))
    }

    /// Marks what a silent node has said of itself as unknown.
    fn doubt(&self) -> Option<Intent> {
        let now = whole_seconds(self.inputs.now);
        let mut list = self.node.status.conditions.to_vec();
        for kind in DOUBTED {
            match list.iter_mut().find(|it| &*it.kind == kind) {
                Some(known) if &*known.status == "Unknown" => {}
                Some(known) => {
                    known.status = "Unknown".into();
                    known.reason = "NodeStatusUnknown".into();
                    known.message = "Kubelet stopped posting node status.".into();
                    known.last_transition_time = Some(now);
                }
                None => list.push(DatedCondition {
                    kind: kind.into(),
                    status: "Unknown".into(),
                    reason: "NodeStatusNeverUpdated".into(),
                    message: "Kubelet never posted node status.".into(),
                    last_heartbeat_time: self.node.metadata.creation_timestamp,
                    last_transition_time: Some(now),
                    ..DatedCondition::default()
                }),
            }
        }
        if list == *self.node.status.conditions {
            return None;
        }
        let status = json!({ "conditions": conditions::wire(&list) });
        Some(write::patch_status(Kind::Node, &self.node.metadata, status))
    }

    /// Sets the taints that follow from the conditions, and tells of a node that is ready no more.
    fn taint(&self) -> Vec<Intent> {
        let now = whole_seconds(self.inputs.now);
        let wanted = self.wanted_taints();
        let known = &self.node.spec.taints;
        let is_wanted = |taint: &Taint| {
            let mut wanted = wanted.iter();
            wanted.any(|(key, effect)| *key == &*taint.key && *effect == &*taint.effect)
        };
        let mut taints: Vec<Taint> = known
            .iter()
            .filter(|taint| !is_ours(taint) || is_wanted(taint))
            .cloned()
            .collect();
        let mut is_loss = false;
        for (key, effect) in &wanted {
            let has = |taint: &Taint| &*taint.key == *key && &*taint.effect == *effect;
            if !known.iter().any(has) {
                is_loss |= [NOT_READY, UNREACHABLE].contains(key) && *effect == "NoSchedule";
                taints.push(Taint {
                    key: (*key).into(),
                    value: "".into(),
                    effect: (*effect).into(),
                    time_added: Some(now),
                });
            }
        }
        let mut intents = Vec::new();
        if taints != *known {
            intents.push(write::patch_taints(&self.node.metadata, &taints));
        }
        if is_loss {
            let name = &self.node.metadata.name;
            let message = format!("Node {name} status is now: NodeNotReady");
            let id = now.seconds_text();
            intents.push(self.occasion(&id).normal("NodeNotReady", &message, now));
            // One that is still heard may set them right again: they are told once.
            if self.ready() != Some("Unknown") {
                intents.extend(self.mark_pods());
            }
        }
        intents
    }

    fn wanted_taints(&self) -> Vec<(&'static str, &'static str)> {
        let list = &self.node.status.conditions;
        let mut wanted = Vec::new();
        let drives_away = self.lease.is_some() && self.somebody_works();
        for (kind, status, key) in TAINTS {
            let condition = conditions::find(list, kind);
            if condition.is_none_or(|it| &*it.status != *status) {
                continue;
            }
            wanted.push((*key, "NoSchedule"));
            if *kind == "Ready" && drives_away {
                wanted.push((*key, "NoExecute"));
            }
        }
        if self.node.spec.unschedulable {
            wanted.push((UNSCHEDULABLE, "NoSchedule"));
        }
        wanted
    }

    /// Where no node works, the fault is more likely on this side: nobody is driven away.
    fn somebody_works(&self) -> bool {
        let mut nodes = self.inputs.mirror.list::<Node>();
        nodes.any(|node| node.is_ready())
    }

    /// Tells pods of the node that they are not ready, so that nobody is sent to them.
    fn mark_pods(&self) -> Vec<Intent> {
        let max = self.inputs.settings.writes_per_step_max;
        let pods = self.inputs.mirror.pods_on(&self.node.metadata.name);
        let ready = pods.filter(|pod| pod.is_ready());
        ready.take(max).flat_map(|pod| self.mark(pod)).collect()
    }

    fn mark(&self, pod: &Pod) -> [Intent; 2] {
        let now = whole_seconds(self.inputs.now);
        let list: Vec<Value> = pod
            .status
            .conditions
            .iter()
            .map(|it| {
                let mut value = it.wire(pod.status.start_time);
                if &*it.kind == "Ready" {
                    value["status"] = json!("False");
                    value["lastTransitionTime"] = json!(now);
                }
                value
            })
            .collect();
        let status = json!({ "conditions": list });
        let occasion = Occasion {
            kind: Kind::Pod,
            meta: &pod.metadata,
            ..self.occasion("")
        };
        [
            write::patch_status(Kind::Pod, &pod.metadata, status),
            occasion.warning("NodeNotReady", "Node is not ready", now),
        ]
    }
}

/// Whether a taint is set and removed here.
fn is_ours(taint: &Taint) -> bool {
    let key = &*taint.key;
    match &*taint.effect {
        "NoSchedule" => key == UNSCHEDULABLE || TAINTS.iter().any(|row| row.2 == key),
        "NoExecute" => key == NOT_READY || key == UNREACHABLE,
        _ => false,
    }
}
