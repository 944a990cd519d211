//! What the class of a pod's runtime adds to it: room beside its containers, where it may run.

use serde_json::{Map, Value, json};

use crate::field;
use crate::read::key_of;
use crate::status::{Outcome, Refused};
use crate::store::Store;
use crate::write::{Writing, text};

impl Store {
    /// Puts a class's overhead, selector and tolerations into a new pod.
    pub(super) fn admit_runtime(&self, writing: &Writing<'_>, pod: &mut Value) -> Outcome<()> {
        let spec = &pod["spec"];
        let (wanted, has_overhead) = (&spec["runtimeClassName"], is_filled(&spec["overhead"]));
        if wanted.is_null() && !has_overhead {
            return Ok(());
        }
        let name = text(&pod["metadata"]["name"]);
        let refused = |why: String| Err(Refused::forbidden(writing.about(&name), &why));
        let mut class = Value::Null;
        if let Some(wanted) = wanted.as_str() {
            let id = self.registry.find("node.k8s.io", "runtimeclasses");
            let found = id.and_then(|id| self.shelf(id).latest(&key_of("", wanted)));
            let Some(found) = found else {
                let wanted = field::go_quoted(wanted);
                return refused(format!("pod rejected: RuntimeClass {wanted} not found"));
            };
            class = found.value();
        }
        let overhead = &class["overhead"]["podFixed"];
        if class["overhead"].is_null() && has_overhead {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return refused(why.to_owned());
        }
        if has_overhead && spec["overhead"] != *overhead {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return refused(why.to_owned());
        }
        if is_filled(overhead) {
            pod["spec"]["overhead"] = overhead.clone();
        }
        place(&mut pod["spec"], &class["scheduling"]).or_else(refused)
    }
}

fn is_filled(map: &Value) -> bool {
    map.as_object().is_some_and(|map| !map.is_empty())
}

/// Narrows where the pod may run.
fn place(spec: &mut Value, scheduling: &Value) -> Result<(), String> {
    let selector = scheduling["nodeSelector"].as_object();
    let mut merged: Map<String, Value> = spec["nodeSelector"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (key, value) in selector.into_iter().flatten() {
        if let Some(given) = merged.get(key).filter(|given| *given != value) {
            let (value, given) = (text(value), text(given));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        merged.insert(key.clone(), value.clone());
    }
    if !merged.is_empty() {
        spec["nodeSelector"] = Value::Object(merged);
    }
    if let Some(more) = scheduling["tolerations"].as_array() {
        let given = spec["tolerations"].as_array().cloned().unwrap_or_default();
        spec["tolerations"] = merge(given.into_iter().chain(more.iter().cloned()).collect());
    }
    Ok(())
}

/// Of tolerations of which one covers the other, that one; of equal ones the first.
fn merge(all: Vec<Value>) -> Value {
    let mut merged: Vec<Value> = Vec::new();
    for (position, one) in all.iter().enumerate() {
        let later = &all[position + 1..];
        let is_covered = merged.iter().any(|other| covers(other, one))
            || later.iter().any(|other| other != one && covers(other, one));
        if !is_covered {
            merged.push(one.clone());
        }
    }
    json!(merged)
}

fn covers(wide: &Value, one: &Value) -> bool {
    let part = |of: &Value, name: &str| text(&of[name]);
    let bears_all = part(wide, "key").is_empty() && part(wide, "operator") == "Exists";
    let effect = part(wide, "effect");
    if wide == one {
        return true;
    }
    if part(wide, "key") != part(one, "key") && !bears_all {
        return false;
    }
    if !effect.is_empty() && effect != part(one, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = wide["tolerationSeconds"].as_i64()
        && one["tolerationSeconds"]
            .as_i64()
            .is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match part(wide, "operator").as_str() {
        "" | "Equal" => {
            part(one, "operator") == "Equal" && part(one, "value") == part(wide, "value")
        }
        operator => operator == "Exists",
    }
}
