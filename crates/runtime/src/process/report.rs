//! A pod's status as the API shows it, from what its containers do.

use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::phase::{Ended, State};
use super::pod::Pod;

/// What is known of one container.
pub(crate) struct Row<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub state: &'a State,
    pub last: Option<&'a Ended>,
    pub restarts: u32,
    pub ready: bool,
    pub started: bool,
    pub container_id: &'a str,
}

/// `ContainerStatus`.
pub(crate) fn container(row: &Row<'_>) -> Value {
    let last = row
        .last
        .map_or_else(|| json!({}), |last| json!({"terminated": ended(last)}));
    let mut status = json!({
        "name": row.name,
        "image": row.image,
        "imageID": "",
        "state": state(row.state),
        "lastState": last,
        "restartCount": row.restarts,
        "ready": row.ready,
        "started": row.started,
    });
    if !row.container_id.is_empty() {
        status["containerID"] = json!(row.container_id);
    }
    status
}

fn state(state: &State) -> Value {
    match state {
        State::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        State::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        State::Running { since } => json!({"running": {"startedAt": since.seconds_text()}}),
        State::Terminated(ended_as) => json!({"terminated": ended(ended_as)}),
    }
}

fn ended(ended: &Ended) -> Value {
    let mut made = json!({
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": ended.started.map(Time::seconds_text),
        "finishedAt": ended.finished.seconds_text(),
    });
    for (field, text) in [
        ("message", &ended.message),
        ("containerID", &ended.container_id),
    ] {
        if !text.is_empty() {
            made[field] = json!(text);
        }
    }
    if ended.signal != 0 {
        made["signal"] = json!(ended.signal);
    }
    made
}

/// Reads a container's state back from a status, as a plane finds it that has just started.
/// What ran then has ended with the plane before it.
pub(crate) fn found(status: &Value, now: Time) -> Option<State> {
    let state = &status["state"];
    let id = status["containerID"].as_str().unwrap_or_default();
    if let Some(running) = state.get("running") {
        return Some(State::Terminated(Ended {
            code: 137,
            signal: 9,
            reason: "NodeRestarted".to_owned(),
            message: "the node was restarted while the container was running".to_owned(),
            started: time(&running["startedAt"]),
            finished: now,
            container_id: id.to_owned(),
        }));
    }
    let terminated = state.get("terminated").or_else(|| {
        // It waited for its next start: its last end says when.
        state
            .get("waiting")
            .and(status["lastState"].get("terminated"))
    })?;
    Some(State::Terminated(read_ended(terminated, now)))
}

/// Reads a `terminated` state back.
pub(crate) fn read_ended(terminated: &Value, now: Time) -> Ended {
    let text = |field: &str| terminated[field].as_str().unwrap_or_default().to_owned();
    let number = |field: &str| {
        let number = terminated[field].as_i64().unwrap_or_default();
        i32::try_from(number).unwrap_or_default()
    };
    Ended {
        code: number("exitCode"),
        signal: number("signal"),
        reason: text("reason"),
        message: text("message"),
        started: time(&terminated["startedAt"]),
        finished: time(&terminated["finishedAt"]).unwrap_or(now),
        container_id: text("containerID"),
    }
}

fn time(value: &Value) -> Option<Time> {
    value.as_str().and_then(Time::parse)
}

/// The write of a status.
pub(crate) fn write(pod: &Pod, resource_version: &str, status: &Value) -> Intent {
    Intent {
        target: ObjectKey::new(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name),
        action: Action::Patch {
            uid: pod.metadata.uid.clone(),
            resource_version: resource_version.into(),
            part: Part::Status,
            patch: json!({"status": status}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_before_a_restart_of_the_node_has_ended_with_137() {
        let status = json!({"containerID": "x", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        let Some(State::Terminated(ended)) = found(&status, Time::from_seconds(5)) else {
            panic!("it is over");
        };
        assert_eq!((ended.code, ended.reason.as_str()), (137, "NodeRestarted"));
        assert_eq!(
            found(
                &json!({"state": {"waiting": {"reason": "PodInitializing"}}}),
                Time(0)
            ),
            None
        );
    }

    #[test]
    fn an_end_survives_the_way_to_the_api_and_back() {
        let before = Ended {
            code: 3,
            signal: 0,
            reason: "Error".to_owned(),
            message: "m".to_owned(),
            started: Some(Time::from_seconds(1)),
            finished: Time::from_seconds(2),
            container_id: "c".to_owned(),
        };
        assert_eq!(read_ended(&ended(&before), Time(0)), before);
    }
}
