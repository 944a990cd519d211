//! What of a pod may change once it is there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{affinity, whole};
use crate::validation::spot::{Faults, Spot};
use crate::validation::{list, meta, same, text};

/// What may change in a pod, as the real server lists it.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a changed pod.
pub(crate) fn check(pod: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(pod, old, faults);
    whole(pod, faults);
    let (spec, was) = (pod.at("spec"), &old["spec"]);
    for kind in ["containers", "initContainers"] {
        if !containers(&spec.at(kind), &was[kind], faults) {
            return;
        }
    }
    if !deadline(&spec.at("activeDeadlineSeconds"), was, faults) {
        return;
    }
    tolerations(&spec.at("tolerations"), &was["tolerations"], faults);
    gates(&spec.at("schedulingGates"), &was["schedulingGates"], faults);
    if same(spec.value, was) {
        return;
    }
    let mut rest = without_updatable(spec.value, was);
    if !list(&was["schedulingGates"]).is_empty() {
        direct(&spec, &mut rest, was, faults);
    }
    if !same(&rest, was) {
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n");
        faults.forbidden(&spec, &detail);
    }
}

/// Whether the two lists can be compared further.
fn containers(new: &Spot<'_, '_>, old: &Value, faults: &mut Faults) -> bool {
    if new.len() != list(old).len() {
        faults.forbidden(new, "pod updates may not add or remove containers");
        return false;
    }
    for container in new.items() {
        let image = container.at("image");
        faults.need(&image);
        super::container::trimmed_image(&container, faults);
    }
    true
}

fn deadline(at: &Spot<'_, '_>, was: &Value, faults: &mut Faults) -> bool {
    let had = was["activeDeadlineSeconds"].as_i64();
    match (at.maybe(), had) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            faults.within(at, 0, i64::from(i32::MAX));
            false
        }
        (Some(new), Some(had)) if had < new => {
            let detail = "must be less than or equal to previous value";
            faults.invalid_as(at, new, detail);
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            faults.invalid(at, detail);
            true
        }
        _ => true,
    }
}

/// Tolerations may be added, and kept for another while.
fn tolerations(new: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let apart_from_time = |one: &Value| {
        let mut one = one.clone();
        if let Some(map) = one.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        one
    };
    let kept: Vec<Value> = list(new.value).iter().map(apart_from_time).collect();
    let are_kept = list(old)
        .iter()
        .all(|one| kept.contains(&apart_from_time(one)));
    if !are_kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return faults.forbidden(new, detail);
    }
    affinity::tolerations(new, faults);
}

fn gates(new: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    for gate in new.items() {
        let name = gate.at("name");
        if !list(old).iter().any(|old| old["name"] == *name.value) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            );
            faults.forbidden(&name, &detail);
        }
    }
}

/// The new spec with what may change made as it was.
fn without_updatable(new: &Value, was: &Value) -> Value {
    let mut rest = new.clone();
    for kind in ["containers", "initContainers"] {
        let news = rest.get_mut(kind).and_then(Value::as_array_mut);
        for (container, old) in news.into_iter().flatten().zip(list(&was[kind])) {
            container["image"] = old["image"].clone();
        }
    }
    let mut free = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    let grace = "terminationGracePeriodSeconds";
    if was[grace].as_i64().is_some_and(|seconds| seconds < 0) && new[grace] == json!(1) {
        free.push(grace);
    }
    for name in free {
        put_back(&mut rest, was, name);
    }
    rest
}

fn put_back(object: &mut Value, was: &Value, name: &str) {
    if let Some(map) = object.as_object_mut() {
        match was.get(name) {
            Some(value) => map.insert(name.to_owned(), value.clone()),
            None => map.remove(name),
        };
    }
}

/// A gated pod may be told more narrowly where to go.
fn direct(spec: &Spot<'_, '_>, rest: &mut Value, was: &Value, faults: &mut Faults) {
    let selector = spec.at("nodeSelector");
    let are_kept = was["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| selector.value.get(key) == Some(value));
    if !are_kept {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        faults.invalid(&selector, detail);
    }
    put_back(rest, was, "nodeSelector");
    let affinity = spec.at("affinity");
    let node = affinity.at("nodeAffinity");
    let old = &was["affinity"]["nodeAffinity"];
    if node.value == old {
        return;
    }
    narrowed(&node, old, faults);
    match (rest["affinity"].as_object_mut(), old.is_null()) {
        (None, true) => {}
        (None, false) => rest["affinity"] = json!({ "nodeAffinity": old }),
        (Some(map), true) => {
            map.remove("nodeAffinity");
            if map.is_empty() && was["affinity"].is_null() {
                put_back(rest, was, "affinity");
            }
        }
        (Some(map), false) => {
            map.insert("nodeAffinity".to_owned(), old.clone());
        }
    }
}

fn narrowed(node: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    let needed = "requiredDuringSchedulingIgnoredDuringExecution";
    let olds = list(&old[needed]["nodeSelectorTerms"]);
    let required = node.at(needed);
    let terms = required.at("nodeSelectorTerms");
    if olds.is_empty() {
        return;
    }
    if olds.len() != terms.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return faults.invalid(&terms, detail);
    }
    for (term, old) in terms.items().zip(olds) {
        let has_only_more = ["matchExpressions", "matchFields"].iter().all(|part| {
            let (new, old) = (list(&term.value[part]), list(&old[part]));
            new.len() >= old.len() && new[..old.len()] == *old
        });
        if !has_only_more {
            let detail = "only additions are allowed (no mutations or deletions)";
            faults.invalid(&term, detail);
        }
    }
}

/// Checks a pod to which containers were added for a while.
pub(crate) fn ephemeral(pod: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(pod, old, faults);
    whole(pod, faults);
    let spec = pod.at("spec");
    let at = spec.at("ephemeralContainers");
    let news: BTreeMap<&str, &Value> = list(at.value)
        .iter()
        .map(|one| (text(&one["name"]), one))
        .collect();
    for old in list(&old["spec"]["ephemeralContainers"]) {
        let name = text(&old["name"]);
        let detail = match news.get(name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(new) if !same(new, old) => {
                format!("existing ephemeral containers {name:?} may not be changed\n")
            }
            Some(_) => continue,
        };
        faults.forbidden(&at, &detail);
    }
}
