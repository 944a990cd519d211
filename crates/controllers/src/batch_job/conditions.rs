//! Conditions of a batch Job as they are written.

use api::core::Condition;
use api::time::Time;
use serde_json::{Value, json};

/// A condition as it stands in the status.
pub(super) fn wire(condition: &Condition) -> Value {
    json!({
        "type": condition.kind,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastProbeTime": condition.last_transition_time,
        "lastTransitionTime": condition.last_transition_time,
    })
}

/// Sets a condition; false where it stood so before.
pub(super) fn set(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Time,
) -> bool {
    let known = conditions
        .iter_mut()
        .find(|condition| condition["type"] == kind);
    if known
        .as_ref()
        .is_some_and(|condition| condition["status"] == status)
    {
        return false;
    }
    let condition = json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    });
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    true
}
