//! What a node in good health says of itself.

use api::time::Time;
use serde_json::{Value, json};

/// Type, status, reason and message of each condition.
const TRUTH: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    (
        "Ready",
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    ),
];

/// The conditions of a node that is well, over those that it has: a status that stays keeps the
/// time since when it holds, and conditions of others are kept.
pub fn conditions(before: &[Value], now: Time) -> Vec<Value> {
    let stamp = now.seconds_text();
    let ours = |one: &Value| TRUTH.iter().any(|(kind, ..)| one["type"] == *kind);
    let told = TRUTH.iter().map(|(kind, status, reason, message)| {
        let since = before
            .iter()
            .find(|one| one["type"] == *kind && one["status"] == *status)
            .and_then(|one| one["lastTransitionTime"].as_str())
            .unwrap_or(&stamp);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": stamp, "lastTransitionTime": since,
        })
    });
    let foreign = before.iter().filter(|one| !ours(one)).cloned();
    foreign.chain(told).collect()
}

/// Whether these conditions are what a node in good health says of itself.
pub fn are_believed(conditions: &[Value]) -> bool {
    TRUTH.iter().all(|(kind, status, ..)| {
        let mut found = conditions.iter();
        found.any(|one| one["type"] == *kind && one["status"] == *status)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubted_node_says_again_that_it_is_well_and_keeps_what_others_say() {
        let mut before = conditions(&[], Time::from_seconds(100));
        assert!(are_believed(&before));
        before[3]["status"] = json!("Unknown");
        before.push(json!({ "type": "Theirs", "status": "True" }));
        assert!(!are_believed(&before));
        let after = conditions(&before, Time::from_seconds(200));
        let line = |one: &Value| {
            format!(
                "{} {} {}",
                one["type"], one["status"], one["lastTransitionTime"]
            )
        };
        let lines: Vec<String> = after.iter().map(line).collect();
        assert_eq!(
            lines.join("\n").replace('"', ""),
            "Theirs True null\n\
             MemoryPressure False 1970-01-01T00:01:40Z\n\
             DiskPressure False 1970-01-01T00:01:40Z\n\
             PIDPressure False 1970-01-01T00:01:40Z\n\
             Ready True 1970-01-01T00:03:20Z"
        );
    }
}
