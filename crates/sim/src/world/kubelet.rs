//! What reaches the server from the nodes: nothing from one that is dark, a refusal where a pod does
//! not fit, and otherwise what the imitation wants.

use api::intent::{Action, Intent, WriteOutcome};
use api::kind::Kind;
use serde_json::{Value, json};

use super::World;
use crate::fault::Fault;
use crate::judge;

impl World {
    pub(super) fn hear_node(&mut self, intent: &Intent) {
        let outcome = match self.is_dark(intent) {
            true => WriteOutcome::Unknown {
                message: "the node is not heard".into(),
            },
            false => self.hear(intent),
        };
        self.fleet.handle_written(intent, &outcome, self.now);
    }

    fn hear(&mut self, intent: &Intent) -> WriteOutcome {
        let Some(reason) = self.refusal_of_kubelet(intent) else {
            let waiting = is_start(intent).then(|| self.wait_for_peers(intent));
            return match waiting.flatten() {
                Some(outcome) => outcome,
                None => self.perform("node", intent),
            };
        };
        let target = &intent.target;
        self.witness.hurt_pod(&target.namespace, &target.name);
        let mut refused = intent.clone();
        if let Action::Patch { patch, .. } = &mut refused.action {
            let started = patch["status"]["startTime"].take();
            *patch = json!({ "status": {
                "phase": "Failed",
                "startTime": started,
                "reason": reason,
                "message": "Pod was rejected by its node",
            }});
        }
        self.perform("node", &refused)
    }

    /// Why a kubelet does not start a pod: by chance, or since the node is full already.
    fn refusal_of_kubelet(&mut self, intent: &Intent) -> Option<&'static str> {
        if !is_start(intent) || self.is_waiting(intent) {
            return None;
        }
        let name = &*intent.target.name;
        if self.strikes(Fault::KubeletRefusal, name) {
            return Some("UnexpectedAdmissionError");
        }
        let pod = self.witness.pod(&intent.target.namespace, name)?;
        let node = pod["spec"]["nodeName"].as_str()?.to_owned();
        if !self.witness.is_excused(&node, self.now) {
            return None;
        }
        let uid = &pod["metadata"]["uid"];
        let has_place = |other: &&Value| {
            other["spec"]["nodeName"] == *node
                && (other["status"]["phase"] == "Running" || other["metadata"]["uid"] == *uid)
        };
        let pods = self.witness.all(Kind::Pod).filter(has_place);
        let nodes = self.witness.all(Kind::Node);
        let nodes = nodes.filter(|it| it["metadata"]["name"] == *node);
        let is_full = !judge::capacity(nodes, pods).is_empty();
        is_full.then_some("OutOfcpu")
    }

    fn is_dark(&mut self, intent: &Intent) -> bool {
        if intent.target.kind == Kind::Node {
            let name = &*intent.target.name;
            return self.dark.get(name).is_some_and(|until| self.now < *until);
        }
        if self.dark.is_empty() {
            return false;
        }
        let target = &intent.target;
        let pod = self.witness.pod(&target.namespace, &target.name);
        let node = pod.and_then(|pod| pod["spec"]["nodeName"].as_str());
        let until = node.and_then(|node| self.dark.get(node));
        until.is_some_and(|until| self.now < *until)
    }
}

fn is_start(intent: &Intent) -> bool {
    let Action::Patch { patch, .. } = &intent.action else {
        return false;
    };
    intent.target.kind == Kind::Pod && patch["status"]["phase"] == "Running"
}
