//! Conditions of pods that several rooms write.

use serde_json::{Value, json};

use crate::time::Time;

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
