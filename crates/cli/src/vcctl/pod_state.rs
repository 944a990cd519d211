//! What a pod's line says of it, computed as kubectl's table is.

use api::time::Time;
use serde_json::Value;

use super::age;
use crate::rest::text;

/// Cells of a pod's line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PodState {
    /// Containers that are ready.
    pub(super) ready: usize,
    /// Containers that are there for as long as the pod is.
    pub(super) wanted: usize,
    /// In a word: the phase, or the reason that says more.
    pub(super) status: String,
    /// How often containers were started again.
    pub(super) restarts: Restarts,
}

/// How often containers were started again, and when the last of them had ended before that, if it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Restarts {
    count: u64,
    last: Option<Time>,
}

impl Restarts {
    fn of<'a>(statuses: impl Iterator<Item = &'a Value>) -> Restarts {
        let mut all = Restarts::default();
        statuses.for_each(|one| all.add(one));
        all
    }

    fn add(&mut self, status: &Value) {
        let ended = text(status, &["lastState", "terminated", "finishedAt"]);
        self.count += status["restartCount"].as_u64().unwrap_or(0);
        self.last = self.last.max(Time::parse(ended));
    }

    /// `2 (5m ago)`, or the number alone.
    pub(super) fn told(self, now: Time) -> String {
        match (self.count, self.last) {
            (1.., Some(last)) => {
                format!("{} ({} ago)", self.count, age(&last.seconds_text(), now))
            }
            (count, _) => count.to_string(),
        }
    }
}

impl PodState {
    pub(super) fn of(pod: &Value) -> PodState {
        let mut state = PodState {
            wanted: each(&pod["spec"]["containers"]).count(),
            status: base(pod).to_owned(),
            ..PodState::default()
        };
        let is_initializing = state.initialize(pod);
        if !is_initializing || has_condition(pod, "Initialized") {
            state.run(pod);
        }
        let is_gone = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
        if pod["metadata"]["deletionTimestamp"].is_string() {
            if text(pod, &["status", "reason"]) == "NodeLost" {
                state.status = "Unknown".to_owned();
            } else if !is_gone {
                state.status = "Terminating".to_owned();
            }
        }
        state
    }

    /// Counts init containers; whether one is still at work, which is the status then.
    fn initialize(&mut self, pod: &Value) -> bool {
        let specs = &pod["spec"]["initContainers"];
        let is_sidecar = |name| {
            let spec = each(specs).find(|spec| text(spec, &["name"]) == name);
            spec.is_some_and(|spec| spec["restartPolicy"] == "Always")
        };
        self.wanted += each(specs)
            .filter(|spec| spec["restartPolicy"] == "Always")
            .count();
        let mut working = None;
        for (at, one) in each(&pod["status"]["initContainerStatuses"]).enumerate() {
            let is_sidecar = is_sidecar(text(one, &["name"]));
            // Restarts of the others are forgotten once the pod runs.
            if is_sidecar || working.is_none() {
                self.restarts.add(one);
            }
            let is_serving = is_sidecar && one["started"] == true;
            self.ready += usize::from(is_serving && one["ready"] == true);
            let ended = &one["state"]["terminated"];
            let is_done = ended.is_object() && ended["exitCode"].as_i64().unwrap_or(0) == 0;
            if working.is_some() || is_serving || is_done {
                continue;
            }
            let waits = text(one, &["state", "waiting", "reason"]);
            let why = match (end(ended), waits) {
                (Some(end), _) => end,
                (None, "" | "PodInitializing") => format!("{at}/{}", each(specs).count()),
                (None, waits) => waits.to_owned(),
            };
            working = Some(format!("Init:{why}"));
        }
        let is_working = working.is_some();
        self.status = working.unwrap_or_else(|| std::mem::take(&mut self.status));
        if !is_working || has_condition(pod, "Initialized") {
            let statuses = each(&pod["status"]["initContainerStatuses"]);
            self.restarts = Restarts::of(statuses.filter(|one| is_sidecar(text(one, &["name"]))));
        }
        is_working
    }

    /// Counts containers; the first of them that waits or has ended says more than the phase.
    fn run(&mut self, pod: &Value) {
        let mut is_any_running = false;
        let statuses: Vec<&Value> = each(&pod["status"]["containerStatuses"]).collect();
        for one in statuses.into_iter().rev() {
            self.restarts.add(one);
            let waits = text(one, &["state", "waiting", "reason"]);
            if !waits.is_empty() {
                self.status = waits.to_owned();
            } else if let Some(end) = end(&one["state"]["terminated"]) {
                self.status = end;
            } else if one["ready"] == true && one["state"]["running"].is_object() {
                is_any_running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" && is_any_running {
            let word = match has_condition(pod, "Ready") {
                true => "Running",
                false => "NotReady",
            };
            self.status = word.to_owned();
        }
    }
}

/// What is said of a pod before its containers are asked.
fn base(pod: &Value) -> &str {
    let is_gated = |one: &Value| {
        text(one, &["type"]) == "PodScheduled" && text(one, &["reason"]) == "SchedulingGated"
    };
    if each(&pod["status"]["conditions"]).any(is_gated) {
        return "SchedulingGated";
    }
    match text(pod, &["status", "reason"]) {
        "" => text(pod, &["status", "phase"]),
        reason => reason,
    }
}

/// How a container ended, if it did: the reason, or what the kernel said.
fn end(ended: &Value) -> Option<String> {
    if !ended.is_object() {
        return None;
    }
    let number = |field: &str| ended[field].as_i64().unwrap_or(0);
    Some(match (text(ended, &["reason"]), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    let is_it = |one: &Value| text(one, &["type"]) == kind && text(one, &["status"]) == "True";
    each(&pod["status"]["conditions"]).any(is_it)
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `READY STATUS RESTARTS` of a pod of two containers and two init containers, the first a sidecar where
    /// that is said.
    fn line(status: &str) -> String {
        let (sidecar, status) = match status.strip_prefix("sidecar ") {
            Some(status) => ("restartPolicy: Always", status),
            None => ("image: i", status),
        };
        let mut pod: Value = serde_saphyr::from_str(&format!(
            "spec: {{containers: [{{name: a}}, {{name: b}}], initContainers: [{{name: x, {sidecar}}}, {{name: y}}]}}"
        ))
        .expect("it is YAML");
        pod["status"] = serde_saphyr::from_str(status).expect("it is YAML");
        if pod["status"]["deleted"] == true {
            pod["metadata"]["deletionTimestamp"] = "2026-11-21T18:00:00Z".into();
        }
        let state = PodState::of(&pod);
        let now = Time::parse("2026-11-21T18:00:00Z").expect("it is a time");
        format!(
            "{}/{} {} {}",
            state.ready,
            state.wanted,
            state.status,
            state.restarts.told(now)
        )
    }

    #[test]
    fn a_pods_line_is_kubectls() {
        let run = "ready: true, restartCount: 1, state: {running: {}}";
        for (told, status) in [
            ("0/2 Pending 0", "{phase: Pending}".to_owned()),
            ("0/2 Evicted 0", "{phase: Failed, reason: Evicted}".to_owned()),
            ("0/2 SchedulingGated 0", "{phase: Pending, conditions: [{type: PodScheduled, reason: SchedulingGated}]}".to_owned()),
            ("2/2 Running 2", format!("{{phase: Running, containerStatuses: [{{{run}}}, {{{run}}}]}}")),
            ("1/2 CrashLoopBackOff 5", format!("{{phase: Running, containerStatuses: [{{restartCount: 4, state: {{waiting: {{reason: CrashLoopBackOff}}}}}}, {{{run}}}]}}")),
            ("2/2 Running 3 (5m ago)", format!("{{phase: Running, containerStatuses: [{{{run}, lastState: {{terminated: {{finishedAt: '2026-11-21T17:55:00Z'}}}}}}, {{{run}, lastState: {{terminated: {{finishedAt: '2026-11-21T17:00:00Z'}}}}}}, {{restartCount: 1}}]}}")),
            ("0/2 Running 0", "{phase: Running, containerStatuses: [{lastState: {terminated: {finishedAt: '2026-11-21T17:55:00Z'}}}]}".to_owned()),
            ("0/2 Error 0", "{phase: Failed, containerStatuses: [{state: {terminated: {reason: Error, exitCode: 1}}}, {state: {terminated: {reason: Completed}}}]}".to_owned()),
            ("0/2 Signal:9 0", "{phase: Failed, containerStatuses: [{state: {terminated: {signal: 9, exitCode: 137}}}]}".to_owned()),
            ("0/2 ExitCode:3 0", "{phase: Failed, containerStatuses: [{state: {terminated: {exitCode: 3}}}]}".to_owned()),
            ("1/2 NotReady 1", format!("{{phase: Running, containerStatuses: [{{state: {{terminated: {{reason: Completed}}}}}}, {{{run}}}]}}")),
            ("1/2 Running 1", format!("{{phase: Running, conditions: [{{type: Ready, status: 'True'}}], containerStatuses: [{{state: {{terminated: {{reason: Completed}}}}}}, {{{run}}}]}}")),
            ("0/2 Init:0/2 0", "{phase: Pending, initContainerStatuses: [{name: x, state: {running: {}}}, {name: y, state: {waiting: {reason: PodInitializing}}}]}".to_owned()),
            ("0/2 Init:1/2 1", "{phase: Pending, initContainerStatuses: [{name: x, restartCount: 1, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: y, state: {running: {}}}]}".to_owned()),
            ("0/2 Init:Error 2", "{phase: Pending, initContainerStatuses: [{name: x, restartCount: 2, state: {terminated: {exitCode: 1, reason: Error}}}]}".to_owned()),
            ("0/2 Init:ExitCode:1 0", "{phase: Pending, initContainerStatuses: [{name: x, state: {terminated: {exitCode: 1}}}]}".to_owned()),
            ("0/2 Init:ErrImagePull 0", "{phase: Pending, initContainerStatuses: [{name: x, state: {waiting: {reason: ErrImagePull}}}]}".to_owned()),
            ("1/3 Init:1/2 3", "sidecar {phase: Pending, initContainerStatuses: [{name: x, started: true, ready: true, restartCount: 3, state: {running: {}}}, {name: y, state: {running: {}}}]}".to_owned()),
            ("0/2 Init:Error 2 (90s ago)", "{phase: Pending, initContainerStatuses: [{name: x, restartCount: 2, state: {terminated: {exitCode: 1, reason: Error}}, lastState: {terminated: {finishedAt: '2026-11-21T17:58:30Z'}}}]}".to_owned()),
            ("2/2 Running 2", format!("{{phase: Running, initContainerStatuses: [{{name: x, restartCount: 2, state: {{terminated: {{exitCode: 0}}}}, lastState: {{terminated: {{finishedAt: '2026-11-21T17:58:30Z'}}}}}}], containerStatuses: [{{{run}}}, {{{run}}}]}}")),
            ("1/3 Init:1/2 3 (150m ago)", "sidecar {phase: Pending, initContainerStatuses: [{name: x, started: true, ready: true, restartCount: 3, state: {running: {}}, lastState: {terminated: {finishedAt: '2026-11-21T15:30:00Z'}}}, {name: y, state: {running: {}}}]}".to_owned()),
            ("0/2 Terminating 0", "{phase: Running, deleted: true}".to_owned()),
            ("0/2 Succeeded 0", "{phase: Succeeded, deleted: true}".to_owned()),
            ("0/2 Unknown 0", "{phase: Running, deleted: true, reason: NodeLost}".to_owned()),
        ] {
            assert_eq!(line(&status), told, "{status}");
        }
    }
}
