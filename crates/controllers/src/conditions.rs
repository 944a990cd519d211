//! Conditions with all their times, as they stand in a status and as they are written.

use api::core::DatedCondition;
use api::time::Time;
use serde_json::{Value, json};

/// What a condition is to say.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl Wanted<'_> {
    /// The condition, new at `now`, with the times that `stamps` name.
    pub(crate) fn at(&self, now: Time) -> DatedCondition {
        DatedCondition {
            kind: self.kind.into(),
            status: self.status.into(),
            reason: self.reason.into(),
            message: self.message.into(),
            last_transition_time: Some(now),
            ..DatedCondition::default()
        }
    }
}

/// The condition of this type.
pub(crate) fn find<'a>(list: &'a [DatedCondition], kind: &str) -> Option<&'a DatedCondition> {
    list.iter().find(|condition| &*condition.kind == kind)
}

/// Whether the condition of this type is `True`.
pub(crate) fn is_true(list: &[DatedCondition], kind: &str) -> bool {
    find(list, kind).is_some_and(|condition| &*condition.status == "True")
}

/// Conditions as JSON; what is empty is left out.
pub(crate) fn wire(list: &[DatedCondition]) -> Value {
    Value::Array(list.iter().map(one).collect())
}

fn one(condition: &DatedCondition) -> Value {
    let mut value = json!({ "type": condition.kind, "status": condition.status });
    for (field, text) in [
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
        if !text.is_empty() {
            value[field] = json!(text);
        }
    }
    let times = [
        ("lastHeartbeatTime", condition.last_heartbeat_time),
        ("lastProbeTime", condition.last_probe_time),
        ("lastTransitionTime", condition.last_transition_time),
        ("lastUpdateTime", condition.last_update_time),
    ];
    for (field, time) in times {
        if let Some(time) = time {
            value[field] = json!(time);
        }
    }
    if condition.observed_generation != 0 {
        value["observedGeneration"] = json!(condition.observed_generation);
    }
    value
}

/// An instant as conditions bear it: whole seconds.
pub(crate) fn whole_seconds(now: Time) -> Time {
    Time::from_seconds(now.micros().div_euclid(1_000_000))
}
