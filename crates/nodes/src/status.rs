//! Pod statuses as a kubelet writes them.

use api::core::PodPhase;
use api::time::Time;
use serde_json::{Value, json};

use crate::node;
use crate::resident::{Part, Resident};

/// Conditions that a node writes; others' are kept.
const OURS: &[&str] = &[
    "ContainersReady",
    "Initialized",
    "PodReadyToStartContainers",
    "Ready",
];

/// The containers run.
pub(crate) fn running(pod: &Resident, now: Time) -> Value {
    let state = json!({ "running": { "startedAt": now.seconds_text() } });
    status(
        pod,
        PodPhase::Running,
        &state,
        &json!({}),
        pod.restarts,
        now,
    )
}

/// The containers have ended for good.
pub(crate) fn ended(pod: &Resident, now: Time) -> Value {
    status(
        pod,
        pod.end_phase(),
        &terminated(pod, now),
        &json!({}),
        pod.restarts,
        now,
    )
}

/// The containers have ended and run again.
pub(crate) fn restarted(pod: &Resident, now: Time) -> Value {
    let state = json!({ "running": { "startedAt": now.seconds_text() } });
    let restarts = pod.restarts.saturating_add(1);
    status(
        pod,
        PodPhase::Running,
        &state,
        &terminated(pod, now),
        restarts,
        now,
    )
}

fn terminated(pod: &Resident, now: Time) -> Value {
    json!({ "terminated": {
        "exitCode": pod.exit_code,
        "reason": if pod.exit_code == 0 { "Completed" } else { "Error" },
        "startedAt": pod.since.seconds_text(),
        "finishedAt": now.seconds_text(),
    } })
}

fn status(
    pod: &Resident,
    phase: PodPhase,
    state: &Value,
    last: &Value,
    restarts: i32,
    now: Time,
) -> Value {
    let is_on = phase == PodPhase::Running;
    let container = |part: &Part| {
        json!({
            "name": part.name,
            "image": part.image,
            "imageID": "",
            "containerID": format!("simulated://{}/{}/{restarts}", pod.uid, part.name),
            "ready": is_on,
            "started": is_on,
            "restartCount": restarts,
            "state": state,
            "lastState": last,
        })
    };
    let first = pod.start_time.unwrap_or(now).seconds_text();
    let init = |part: &Part| {
        if part.sidecar {
            return container(part);
        }
        json!({
            "name": part.name,
            "image": part.image,
            "imageID": "",
            "containerID": format!("simulated://{}/{}/0", pod.uid, part.name),
            "ready": true,
            "started": false,
            "restartCount": 0,
            "state": { "terminated": {
                "exitCode": 0, "reason": "Completed", "startedAt": first, "finishedAt": first,
            } },
            "lastState": {},
        })
    };
    let (host, ip) = (
        node::address(pod.node),
        node::pod_address(pod.node, pod.slot),
    );
    let mut status = json!({
        "phase": phase.text(),
        "hostIP": host,
        "hostIPs": [{ "ip": host }],
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "startTime": first,
        "conditions": conditions(pod, phase, now),
        "containerStatuses": pod.containers.iter().map(container).collect::<Vec<_>>(),
    });
    if !pod.init_containers.is_empty() {
        let parts: Vec<Value> = pod.init_containers.iter().map(init).collect();
        status["initContainerStatuses"] = parts.into();
    }
    status
}

fn conditions(pod: &Resident, phase: PodPhase, now: Time) -> Vec<Value> {
    let mut conditions: Vec<Value> = pod
        .conditions
        .iter()
        .filter(|condition| !OURS.contains(&&*condition.kind))
        .map(|condition| {
            let mut kept = json!({ "type": condition.kind, "status": condition.status });
            for (field, text) in [
                ("reason", &condition.reason),
                ("message", &condition.message),
            ] {
                if !text.is_empty() {
                    kept[field] = json!(text);
                }
            }
            if let Some(time) = condition.last_transition_time {
                kept["lastTransitionTime"] = time.after(pod.start_time).seconds_text().into();
            }
            kept
        })
        .collect();
    let (ready, reason) = match phase {
        PodPhase::Running => ("True", ""),
        PodPhase::Succeeded => ("False", "PodCompleted"),
        _ => ("False", "PodFailed"),
    };
    let wanted = [
        ("PodReadyToStartContainers", ready, ""),
        (
            "Initialized",
            "True",
            if phase == PodPhase::Succeeded {
                reason
            } else {
                ""
            },
        ),
        ("Ready", ready, reason),
        ("ContainersReady", ready, reason),
    ];
    for (kind, status, reason) in wanted {
        let known = pod.conditions.iter().find(|it| &*it.kind == kind);
        let since = known
            .filter(|known| &*known.status == status)
            .and_then(|known| known.last_transition_time)
            .map(|since| since.after(pod.start_time));
        let mut condition = json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": since.unwrap_or(now).seconds_text(),
        });
        if !reason.is_empty() {
            condition["reason"] = reason.into();
        }
        conditions.push(condition);
    }
    conditions
}
