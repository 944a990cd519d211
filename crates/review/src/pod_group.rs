//! Gangs: the queue that a namespace prefers, and whether the queue is open.

use api::admission::Operation;
use api::kind::Kind;
use api::volcano::{DEFAULT_QUEUE, NetworkTopology, PodGroup, QUEUE_OF_POD};
use serde::Deserialize;
use serde_json::Value;

use crate::denials::others::{NO_QUEUE, QUEUE_NOT_OPEN, TIER_TWICE, TIER_TWICE_BELOW};
use crate::fields::{inside, text};
use crate::queue::{is_open, not_found, state_of};
use crate::{CREATES, Case, Rule, WRITES, Webhook};

pub(crate) const MUTATE: Webhook = Webhook {
    path: "/podgroups/mutate",
    name: "mutatepodgroup.volcano.sh",
    kind: Kind::PodGroup,
    operations: WRITES,
    rule: Rule::Mutate(mutate),
};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/podgroups/validate",
    name: "validatepodgroup.volcano.sh",
    kind: Kind::PodGroup,
    operations: CREATES,
    rule: Rule::Validate(validate),
};

/// A gang in the default queue goes to the queue that its namespace's annotation names: a new one,
/// and one that is there already, so that applying its manifest again does not move it away. One that has
/// a controller is not applied again: what that says of it counts, as upstream, where updates pass.
fn mutate(case: &Case<'_>) -> Option<Value> {
    if text(&case.object["spec"], "queue") != DEFAULT_QUEUE {
        return None;
    }
    let namespace = case.facts.object(Kind::Namespace, "", case.namespace);
    let queue = namespace.as_ref().map_or("", |namespace| {
        text(&namespace["metadata"]["annotations"], QUEUE_OF_POD)
    });
    let is_applied = || text(&case.old["spec"], "queue") == queue && !has_controller(case.object);
    let may_go = case.operation == Operation::Create || is_applied();
    if !may_go || queue.is_empty() {
        return None;
    }
    case.changed(|object| {
        if let Some(spec) = inside(object, "spec") {
            spec.insert("queue".to_owned(), queue.into());
        }
    })
}

fn has_controller(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|it| it["controller"] == true))
}

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    let group = PodGroup::deserialize(case.object).map_err(|error| error.to_string())?;
    let mut complaints = Vec::new();
    if let Some(complaint) = queue_complaint(case, &group.spec.queue) {
        complaints.push(complaint);
    }
    let mut tiers = Vec::new();
    if names_tier_twice(group.spec.network_topology.as_ref()) {
        tiers.push(TIER_TWICE.plain());
    }
    for policy in &group.spec.sub_group_policy {
        if names_tier_twice(policy.network_topology.as_ref()) {
            tiers.push(TIER_TWICE_BELOW.with(&[("policy", &policy.name)]));
        }
    }
    if !tiers.is_empty() {
        complaints.push(tiers.join(" "));
    }
    if complaints.is_empty() {
        return Ok(Vec::new());
    }
    Err(complaints.join("; "))
}

fn queue_complaint(case: &Case<'_>, name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let Some(queue) = case.facts.object(Kind::Queue, "", name) else {
        return Some(NO_QUEUE.with(&[("error", &not_found(name))]));
    };
    let state = state_of(&queue);
    (!is_open(case, &queue)).then(|| QUEUE_NOT_OPEN.with(&[("queue", &name), ("state", &state)]))
}

/// Whether the greatest tier is given both by number and by name.
pub(crate) fn names_tier_twice(topology: Option<&NetworkTopology>) -> bool {
    topology.is_some_and(|topology| {
        topology.highest_tier_allowed.is_some() && !topology.highest_tier_name.is_empty()
    })
}
