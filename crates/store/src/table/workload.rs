//! Rows of pods and of what makes them.

use api::time::Time;
use serde_json::{Value, json};

use super::cells::{
    age, containers, human_duration, labels, list, number, selector, since, span, text_or,
};

pub(super) fn pod(pod: &Value, now: Time) -> Vec<Value> {
    let view = PodView::of(pod);
    let restarts = match view.last_restart {
        Some(at) if view.restarts != 0 => {
            format!("{} ({} ago)", view.restarts, human_duration(now, at))
        }
        _ => view.restarts.to_string(),
    };
    let status = &pod["status"];
    let ip = list(&status["podIPs"])
        .first()
        .map_or(&status["podIP"], |first| &first["ip"]);
    let gates = list(&pod["spec"]["readinessGates"]);
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        let open = gates
            .iter()
            .filter(|gate| {
                list(&status["conditions"]).iter().any(|condition| {
                    condition["type"] == gate["conditionType"] && condition["status"] == "True"
                })
            })
            .count();
        format!("{open}/{}", gates.len())
    };
    vec![
        pod["metadata"]["name"].clone(),
        format!("{}/{}", view.ready, view.total).into(),
        view.reason.into(),
        restarts.into(),
        age(pod, now),
        text_or(ip, "<none>").into(),
        text_or(&pod["spec"]["nodeName"], "<none>").into(),
        text_or(&status["nominatedNodeName"], "<none>").into(),
        gates.into(),
    ]
}

struct PodView {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<Time>,
}

impl PodView {
    fn of(pod: &Value) -> PodView {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let phase = text_or(&status["phase"], "");
        let sidecars = list(&spec["initContainers"])
            .iter()
            .filter(|c| is_sidecar(c))
            .count();
        let mut view = PodView {
            ready: 0,
            total: list(&spec["containers"]).len() + sidecars,
            reason: text_or(&status["reason"], phase).to_owned(),
            restarts: 0,
            last_restart: None,
        };
        let conditions = list(&status["conditions"]);
        if conditions
            .iter()
            .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated")
        {
            view.reason = "SchedulingGated".to_owned();
        }
        let initialized = conditions
            .iter()
            .any(|c| c["type"] == "Initialized" && c["status"] == "True");
        let (is_initializing, sidecar_restarts) = view.initialize(spec, status);
        if !is_initializing || initialized {
            (view.restarts, view.last_restart) = sidecar_restarts;
            view.run(status, conditions);
        }
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if status["reason"] == "NodeLost" {
                view.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                view.reason = "Terminating".to_owned();
            }
        }
        view
    }

    /// Looks at the init containers; says whether one still holds up the pod, and the restarts of
    /// those that run beside the others.
    fn initialize(&mut self, spec: &Value, status: &Value) -> (bool, (i64, Option<Time>)) {
        let all = list(&spec["initContainers"]);
        let mut sidecars = (0, None);
        for (position, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
            let is_sidecar = all
                .iter()
                .any(|c| c["name"] == container["name"] && is_sidecar(c));
            let (restarts, last) = restarts_of(container);
            self.restarts += restarts;
            self.last_restart = self.last_restart.max(last);
            if is_sidecar {
                sidecars = (sidecars.0 + restarts, sidecars.1.max(last));
            }
            let (ended, waiting) = (
                &container["state"]["terminated"],
                &container["state"]["waiting"],
            );
            if ended.is_object() && number(&ended["exitCode"]) == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waits_for = text_or(&waiting["reason"], "");
            self.reason = if ended.is_object() {
                format!("Init:{}", end_reason(ended))
            } else if !matches!(waits_for, "" | "PodInitializing") {
                format!("Init:{waits_for}")
            } else {
                format!("Init:{position}/{}", all.len())
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    fn run(&mut self, status: &Value, conditions: &[Value]) {
        let mut has_running = false;
        for container in list(&status["containerStatuses"]).iter().rev() {
            let (restarts, last) = restarts_of(container);
            self.restarts += restarts;
            self.last_restart = self.last_restart.max(last);
            let state = &container["state"];
            let waits_for = text_or(&state["waiting"]["reason"], "");
            if !waits_for.is_empty() {
                self.reason = waits_for.to_owned();
            } else if state["terminated"].is_object() {
                self.reason = end_reason(&state["terminated"]);
            } else if container["ready"] == true && state["running"].is_object() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && has_running {
            let is_ready = conditions
                .iter()
                .any(|c| c["type"] == "Ready" && c["status"] == "True");
            self.reason = if is_ready { "Running" } else { "NotReady" }.to_owned();
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn restarts_of(container: &Value) -> (i64, Option<Time>) {
    let last = container["lastState"]["terminated"]["finishedAt"]
        .as_str()
        .and_then(Time::parse);
    (number(&container["restartCount"]), last)
}

fn end_reason(terminated: &Value) -> String {
    match (
        text_or(&terminated["reason"], ""),
        number(&terminated["signal"]),
    ) {
        ("", 0) => format!("ExitCode:{}", number(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// What a row says of an object that has ended, so that clients may fade it.
pub(super) fn row_conditions(object: &Value) -> Option<Value> {
    if object["kind"] != "Pod" {
        return None;
    }
    let (reason, message) = match object["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

pub(super) fn job(job: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&job["spec"], &job["status"]);
    let done = number(&status["succeeded"]);
    let completions = match (spec["completions"].as_i64(), number(&spec["parallelism"])) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    };
    let instant = |name: &str| status[name].as_str().and_then(Time::parse);
    let duration = match (instant("startTime"), instant("completionTime")) {
        (None, _) => String::new(),
        (Some(start), None) => human_duration(now, start),
        (Some(start), Some(end)) => span(end.micros().saturating_sub(start.micros())),
    };
    let is_true = |kind: &str| {
        list(&status["conditions"])
            .iter()
            .any(|c| c["type"] == kind && c["status"] == "True")
    };
    let phase = if is_true("Complete") {
        "Complete"
    } else if is_true("Failed") {
        "Failed"
    } else if !job["metadata"]["deletionTimestamp"].is_null() {
        "Terminating"
    } else if is_true("Suspended") {
        "Suspended"
    } else if is_true("FailureTarget") {
        "FailureTarget"
    } else if is_true("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let [names, images] = containers(&spec["template"]["spec"]);
    vec![
        job["metadata"]["name"].clone(),
        phase.into(),
        completions.into(),
        duration.into(),
        age(job, now),
        names,
        images,
        selector(&spec["selector"]).into(),
    ]
}

pub(super) fn cron_job(cron: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&cron["spec"], &cron["status"]);
    let last = match status["lastScheduleTime"].is_null() {
        true => "<none>".to_owned(),
        false => since(&status["lastScheduleTime"], now),
    };
    let template = &spec["jobTemplate"]["spec"];
    let [names, images] = containers(&template["template"]["spec"]);
    vec![
        cron["metadata"]["name"].clone(),
        spec["schedule"].clone(),
        text_or(&spec["timeZone"], "<none>").into(),
        match spec["suspend"].as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        }
        .into(),
        list(&status["active"]).len().into(),
        last.into(),
        age(cron, now),
        names,
        images,
        selector(&template["selector"]).into(),
    ]
}

pub(super) fn deployment(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]["spec"]);
    vec![
        object["metadata"]["name"].clone(),
        format!(
            "{}/{}",
            number(&status["readyReplicas"]),
            number(&spec["replicas"])
        )
        .into(),
        number(&status["updatedReplicas"]).into(),
        number(&status["availableReplicas"]).into(),
        age(object, now),
        names,
        images,
        selector(&spec["selector"]).into(),
    ]
}

pub(super) fn replica_set(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]["spec"]);
    let shown = match object["kind"] == "ReplicationController" {
        true => labels(&spec["selector"]),
        false => selector(&spec["selector"]),
    };
    vec![
        object["metadata"]["name"].clone(),
        number(&spec["replicas"]).into(),
        number(&status["replicas"]).into(),
        number(&status["readyReplicas"]).into(),
        age(object, now),
        names,
        images,
        shown.into(),
    ]
}

pub(super) fn stateful_set(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]["spec"]);
    vec![
        object["metadata"]["name"].clone(),
        format!(
            "{}/{}",
            number(&status["readyReplicas"]),
            number(&spec["replicas"])
        )
        .into(),
        age(object, now),
        names,
        images,
    ]
}

pub(super) fn daemon_set(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [names, images] = containers(&spec["template"]["spec"]);
    let count = |name: &str| Value::from(number(&status[name]));
    vec![
        object["metadata"]["name"].clone(),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        labels(&spec["template"]["spec"]["nodeSelector"]).into(),
        age(object, now),
        names,
        images,
        selector(&spec["selector"]).into(),
    ]
}
