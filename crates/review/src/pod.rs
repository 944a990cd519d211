//! Pods: the gate of a queue, what a resource group gives, and the annotations that limit
//! disruption.

use api::kind::Kind;
use api::names::go_quote;
use api::volcano::{JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_GATE};
use serde_json::{Value, json};

use crate::denials::others::{NO_NUMBER, NO_PERCENTAGE, NOT_POSITIVE, TWO_BUDGETS};
use crate::fields::{inside, text};
use crate::{CREATES, Case, ResourceGroup, Rule, Webhook};

pub(crate) const MUTATE: Webhook = Webhook {
    path: "/pods/mutate",
    name: "mutatepod.volcano.sh",
    kind: Kind::Pod,
    operations: CREATES,
    rule: Rule::Mutate(mutate),
};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/pods/validate",
    name: "validatepod.volcano.sh",
    kind: Kind::Pod,
    operations: CREATES,
    rule: Rule::Validate(validate),
};

pub(crate) const KEYS: [&str; 2] = [JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE];

/// A new pod that asks for it is held back until its queue has room, and gets what its resource
/// group gives. Of pods there are many, and mostly there is nothing to do: then nothing is copied.
fn mutate(case: &Case<'_>) -> Option<Value> {
    let asks = case.object["metadata"]["annotations"][QUEUE_GATE] == "true";
    let groups = &case.settings.resource_groups;
    let group = groups
        .iter()
        .find(|group| group.has(case.namespace, case.object));
    // The group may move it: what counts is who will place it, since nobody else opens the gate.
    let places_it = group.and_then(ResourceGroup::scheduler);
    let places_it = places_it.unwrap_or_else(|| text(&case.object["spec"], "schedulerName"));
    let is_gated = case.settings.queue_gates && asks && is_one_of_ours(case, places_it);
    if !is_gated && group.is_none() {
        return None;
    }
    case.changed(|pod| {
        if is_gated {
            add_gate(pod);
        }
        if let Some(group) = group {
            group.give(pod);
        }
    })
}

fn add_gate(pod: &mut Value) {
    let Some(spec) = inside(pod, "spec") else {
        return;
    };
    let gates = spec.entry("schedulingGates").or_insert(Value::Null);
    if gates.is_null() {
        *gates = json!([]);
    }
    let Some(gates) = gates.as_array_mut() else {
        return;
    };
    if gates.iter().all(|gate| gate["name"] != QUEUE_GATE) {
        gates.push(json!({ "name": QUEUE_GATE }));
    }
}

/// Only pods of our schedulers are judged: other people's pods are never stopped.
fn is_ours(case: &Case<'_>) -> bool {
    is_one_of_ours(case, text(&case.object["spec"], "schedulerName"))
}

fn is_one_of_ours(case: &Case<'_>, scheduler: &str) -> bool {
    let mut names = case.settings.scheduler_names.iter();
    names.any(|name| **name == *scheduler)
}

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    if !is_ours(case) {
        return Ok(Vec::new());
    }
    let annotations = &case.object["metadata"]["annotations"];
    let mut found = 0;
    for key in KEYS {
        if let Some(value) = annotations[key].as_str() {
            found += 1;
            check(key, value)?;
        }
    }
    if found > 1 {
        return Err(TWO_BUDGETS.with(&[("annotations", &KEYS.join(" "))]));
    }
    Ok(Vec::new())
}

/// A positive whole number, or 1% to 99%.
fn check(key: &str, value: &str) -> Result<(), String> {
    if let Ok(number) = value.parse::<i32>() {
        if number <= 0 {
            return Err(NOT_POSITIVE.with(&[("value", &go_quote(value)), ("annotation", &key)]));
        }
        return Ok(());
    }
    let digits = value.replace('%', "");
    let percent: i64 = digits
        .parse()
        .map_err(|_| NO_NUMBER.with(&[("digits", &go_quote(&digits)), ("annotation", &key)]))?;
    if percent <= 0 || percent >= 100 {
        return Err(NO_PERCENTAGE.with(&[("value", &go_quote(value)), ("annotation", &key)]));
    }
    Ok(())
}
