//! Conditions of pods and nodes as they are written back: the whole list, which a merge patch
//! replaces.

use serde_json::{Value, json};

use super::Condition;
use crate::time::Time;

impl Condition {
    /// The condition as it stands; what is empty is left out.
    pub fn wire(&self) -> Value {
        let mut value = json!({ "type": self.kind, "status": self.status });
        for (field, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                value[field] = json!(text);
            }
        }
        if let Some(time) = self.last_transition_time {
            value["lastTransitionTime"] = json!(time);
        }
        value
    }
}

/// The conditions as they stand, with `wanted` (whole, with its `type`) last and instead of the one
/// of its type.
pub fn conditions_with(shown: &[Condition], wanted: Value) -> Vec<Value> {
    let others = shown.iter().filter(|it| *it.kind != wanted["type"]);
    let mut list: Vec<Value> = others.map(Condition::wire).collect();
    list.push(wanted);
    list
}

/// The type of the condition of a pod that is taken away through no fault of its own; a Job's
/// podFailurePolicy asks for it.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// `DisruptionTarget=True`, whole seconds.
pub fn disruption_target(reason: &str, message: &str, now: Time) -> Value {
    json!({
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": Time::from_seconds(now.micros().div_euclid(1_000_000)),
    })
}
