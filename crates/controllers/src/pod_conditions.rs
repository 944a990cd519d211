//! Conditions of pods as they are written back.

use api::core::{Condition, Pod};
use api::time::Time;
use serde_json::{Value, json};

/// A condition as it stands, or with another status since then.
pub(crate) fn wire(condition: &Condition, change: Option<(&str, Time)>) -> Value {
    let mut value = json!({ "type": condition.kind, "status": condition.status });
    for (field, text) in [
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
        if !text.is_empty() {
            value[field] = json!(text);
        }
    }
    if let Some(time) = condition.last_transition_time {
        value["lastTransitionTime"] = json!(time);
    }
    if let Some((status, now)) = change {
        value["status"] = json!(status);
        value["lastTransitionTime"] = json!(now);
    }
    value
}

/// The conditions of a pod with one more, or one in its place.
pub(crate) fn with(pod: &Pod, kind: &str, reason: &str, message: &str, now: Time) -> Value {
    let others = pod.status.conditions.iter().filter(|it| &*it.kind != kind);
    let mut list: Vec<Value> = others.map(|it| wire(it, None)).collect();
    list.push(json!({
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }));
    Value::Array(list)
}
