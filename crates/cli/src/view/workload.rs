//! One vcjob, batch job or plain pod, with its tasks.

use std::collections::BTreeMap;

use api::time::Time;
use serde_json::Value;

use super::event::{self, Event, WorkloadEnd};
use super::task::Task;
use super::{Effect, Verdict, duration_text};
use crate::rest::text;

/// How long a reason stands before it is said.
const WAITS_STAND_MICROS: i64 = 200_000;

/// Kinds that have an end to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// `batch/v1` Job.
    BatchJob,
    /// Volcano's JobFlow; of its jobs only their number is told.
    JobFlow,
    /// A pod of its own.
    Pod,
    /// Volcano's Job.
    VcJob,
}

impl WorkloadKind {
    /// The kind of an object, if it is one of these.
    pub fn of(object: &Value) -> Option<WorkloadKind> {
        let group = text(object, &["apiVersion"])
            .split_once('/')
            .map_or("", |(group, _)| group);
        match (group, text(object, &["kind"])) {
            ("batch", "Job") => Some(WorkloadKind::BatchJob),
            ("batch.volcano.sh", "Job") => Some(WorkloadKind::VcJob),
            ("flow.volcano.sh", "JobFlow") => Some(WorkloadKind::JobFlow),
            ("", "Pod") => Some(WorkloadKind::Pod),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            WorkloadKind::BatchJob => "job",
            WorkloadKind::JobFlow => "jobflow",
            WorkloadKind::Pod => "pod",
            WorkloadKind::VcJob => "vcjob",
        }
    }
}

#[derive(Debug)]
pub(super) struct Workload {
    pub uid: String,
    kind: WorkloadKind,
    namespace: String,
    name: String,
    phase: String,
    message: String,
    wanted: u64,
    tasks: BTreeMap<String, Task>,
    gang_waits: String,
    /// Why it waits, and since when for that.
    waited_for: (String, Time),
    said_waits: String,
    said: (String, u64, u64, u64),
    began: Time,
    placed: Option<Time>,
    ended: Option<Time>,
    deleted: bool,
    ended_before: bool,
}

impl Workload {
    pub(super) fn new(kind: WorkloadKind, object: &Value, now: Time) -> Workload {
        Workload {
            uid: text(object, &["metadata", "uid"]).to_owned(),
            kind,
            namespace: text(object, &["metadata", "namespace"]).to_owned(),
            name: text(object, &["metadata", "name"]).to_owned(),
            ended_before: ending(&standing(kind, object).0).is_some(),
            phase: String::new(),
            message: String::new(),
            wanted: wanted(kind, object),
            tasks: BTreeMap::new(),
            gang_waits: String::new(),
            waited_for: (String::new(), now),
            said_waits: String::new(),
            said: (String::new(), 0, 0, 0),
            began: now,
            placed: None,
            ended: None,
            deleted: false,
        }
    }

    pub(super) fn see(&mut self, object: &Value, many: bool, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        if text(object, &["metadata", "uid"]) == self.uid {
            self.wanted = wanted(self.kind, object);
            (self.phase, self.message) = standing(self.kind, object);
        }
        match text(object, &["kind"]) {
            "PodGroup" => self.gang_waits = gang_waits(object),
            "Pod" => self.see_pod(object, many, now, &mut effects),
            _ => {}
        }
        if self.placed.is_none() && self.count("Running") + self.count("Succeeded") > 0 {
            self.placed = Some(now);
        }
        if self.verdict().is_some() {
            self.ended.get_or_insert(now);
        }
        self.say(now, &mut effects);
        effects
    }

    /// Says a reason that has stood for a while: many pass within milliseconds.
    pub(super) fn say_waits(&mut self, now: Time) -> Option<Event> {
        let (waits, since) = &self.waited_for;
        let stood = now.micros() - since.micros() >= WAITS_STAND_MICROS;
        if waits.is_empty() || *waits == self.said_waits || !stood {
            return None;
        }
        self.said_waits.clone_from(waits);
        Some(Event::Waits {
            workload: self.title(),
            namespace: self.namespace.clone(),
            reason: waits.clone(),
        })
    }

    pub(super) fn gone(&mut self, object: &Value, many: bool, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        if text(object, &["metadata", "uid"]) == self.uid {
            if self.verdict().is_none() {
                self.deleted = true;
                self.phase = "Deleted".to_owned();
                self.message = "deleted before its end".to_owned();
                self.ended.get_or_insert(now);
            }
            self.say(now, &mut effects);
        } else if text(object, &["kind"]) == "Pod" {
            let name = text(object, &["metadata", "name"]);
            let uid = text(object, &["metadata", "uid"]);
            // An ended task stays in the summary; one that was cut short makes room for the next.
            self.see_pod(object, many, now, &mut effects);
            self.tasks.retain(|key, task| {
                key != name
                    || task.uid != uid
                    || matches!(task.phase.as_str(), "Succeeded" | "Failed")
            });
        }
        effects
    }

    fn see_pod(&mut self, pod: &Value, many: bool, now: Time, effects: &mut Vec<Effect>) {
        let title = self.title();
        let key = text(pod, &["metadata", "name"]).to_owned();
        let uid = text(pod, &["metadata", "uid"]);
        let task = self
            .tasks
            .entry(key.clone())
            .or_insert_with(|| Task::new(pod, &self.name));
        if task.uid != uid {
            *task = Task::new(pod, &self.name);
        }
        let label = if many && self.kind != WorkloadKind::Pod {
            format!("{}/{}", self.name, task.short)
        } else {
            task.short.clone()
        };
        if task.see(pod, now) {
            effects.push(Effect::Say(Event::Task {
                workload: title,
                task: label.clone(),
                pod: key,
                phase: task.phase.clone(),
                node: task.node.clone(),
                exit_code: task.exit_code.filter(|code| *code != 0),
                message: task.why.clone(),
                restarts: task.restarts,
            }));
        }
        effects.extend(task.fresh_logs(pod, &label).into_iter().map(Effect::Log));
    }

    fn say(&mut self, at: Time, effects: &mut Vec<Effect>) {
        let now = (
            self.phase.clone(),
            self.count("Running"),
            self.count("Succeeded"),
            self.count("Failed"),
        );
        let waits = self.waits();
        if waits != self.waited_for.0 {
            self.waited_for = (waits, at);
        }
        if now != self.said && !now.0.is_empty() {
            effects.push(Effect::Say(Event::Workload {
                workload: self.title(),
                namespace: self.namespace.clone(),
                phase: now.0.clone(),
                wanted: self.wanted,
                running: now.1,
                succeeded: now.2,
                failed: now.3,
                message: self.message.clone(),
            }));
            self.said = now;
        }
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        ending(&self.phase).or(self.deleted.then_some(Verdict::Failed))
    }

    pub(super) fn has_running_pods(&self) -> bool {
        self.count("Running") > 0
    }

    pub(super) fn screen(&self, now: Time) -> Vec<String> {
        let lasted = self.ended.unwrap_or(now).micros() - self.began.micros();
        let counts = event::counts(
            self.wanted,
            self.count("Running"),
            self.count("Succeeded"),
            self.count("Failed"),
        );
        let phase = if self.phase.is_empty() {
            "Accepted"
        } else {
            &self.phase
        };
        let mut lines = vec![format!(
            "{}  {phase}{counts}  {}",
            self.title(),
            duration_text(lasted)
        )];
        let waits = self.waits();
        if !waits.is_empty() {
            lines.push(format!("  waits: {waits}"));
        }
        lines
    }

    pub(super) fn end(&self, now: Time) -> WorkloadEnd {
        let waits = self.waits();
        WorkloadEnd {
            workload: self.title(),
            namespace: self.namespace.clone(),
            phase: if self.phase.is_empty() {
                "Accepted".to_owned()
            } else {
                self.phase.clone()
            },
            message: if waits.is_empty() {
                self.message.clone()
            } else {
                format!("waits: {waits}")
            },
            ended_before: self.ended_before,
            waited_ms: self
                .placed
                .filter(|_| !self.ended_before)
                .map(|placed| (placed.micros() - self.began.micros()) / 1000),
            total_ms: (self.ended.unwrap_or(now).micros() - self.began.micros()) / 1000,
            tasks: self.tasks.values().map(|task| task.end(now)).collect(),
        }
    }

    fn title(&self) -> String {
        format!("{}/{}", self.kind.word(), self.name)
    }

    fn count(&self, phase: &str) -> u64 {
        self.tasks
            .values()
            .filter(|task| task.phase == phase)
            .count() as u64
    }

    /// Why it does not move, from the most particular source that says so.
    fn waits(&self) -> String {
        if self.verdict().is_some() || self.count("Running") == self.wanted {
            return String::new();
        }
        if self.phase == "Pending" && !self.message.is_empty() {
            return self.message.clone();
        }
        if !self.gang_waits.is_empty() {
            return self.gang_waits.clone();
        }
        self.tasks
            .values()
            .filter(|task| task.phase == "Pending")
            .map(|task| task.waits.clone())
            .find(|waits| !waits.is_empty())
            .unwrap_or_default()
    }
}

/// The verdict that a phase means, if it is an end.
fn ending(phase: &str) -> Option<Verdict> {
    match phase {
        "Completed" | "Complete" | "Succeed" | "Succeeded" => Some(Verdict::Completed),
        "Failed" | "Aborted" | "Terminated" => Some(Verdict::Failed),
        _ => None,
    }
}

fn wanted(kind: WorkloadKind, object: &Value) -> u64 {
    match kind {
        WorkloadKind::Pod => 1,
        // Its pods are its jobs'.
        WorkloadKind::JobFlow => 0,
        WorkloadKind::BatchJob => {
            let spec = &object["spec"];
            spec["completions"]
                .as_u64()
                .or_else(|| spec["parallelism"].as_u64())
                .unwrap_or(1)
        }
        WorkloadKind::VcJob => object["spec"]["tasks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|task| task["replicas"].as_u64().unwrap_or(0))
            .fold(0, u64::saturating_add),
    }
}

/// Phase and message of a workload's own object.
fn standing(kind: WorkloadKind, object: &Value) -> (String, String) {
    let status = &object["status"];
    match kind {
        WorkloadKind::JobFlow => {
            let count = |list: &Value| list.as_array().map_or(0, Vec::len);
            let completed = count(&status["completedJobs"]);
            let wanted = count(&object["spec"]["flows"]);
            (
                text(status, &["state", "phase"]).to_owned(),
                format!("{completed} of {wanted} jobs completed"),
            )
        }
        WorkloadKind::VcJob => {
            let state = &status["state"];
            let (reason, message) = (text(state, &["reason"]), text(state, &["message"]));
            let said = match message {
                "" => reason,
                // What its group waits for is told as such, once it has lasted.
                of_group if mirror::plain_words(of_group) != of_group => "",
                message => message,
            };
            (text(state, &["phase"]).to_owned(), said.to_owned())
        }
        WorkloadKind::Pod => (
            text(status, &["phase"]).to_owned(),
            text(status, &["message"]).to_owned(),
        ),
        WorkloadKind::BatchJob => {
            let ended = status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|one| {
                    one["status"] == "True"
                        && (one["type"] == "Complete" || one["type"] == "Failed")
                });
            match ended {
                Some(condition) if condition["type"] == "Complete" => {
                    ("Complete".to_owned(), String::new())
                }
                Some(condition) => (
                    "Failed".to_owned(),
                    text(condition, &["message"]).to_owned(),
                ),
                None if object["spec"]["suspend"] == true => {
                    ("Suspended".to_owned(), String::new())
                }
                // Between the last pod's end and the condition nothing is active any more.
                None if ["active", "succeeded", "failed"]
                    .iter()
                    .any(|count| status[count].as_u64().unwrap_or(0) > 0) =>
                {
                    ("Running".to_owned(), String::new())
                }
                None => ("Pending".to_owned(), String::new()),
            }
        }
    }
}

/// Why a gang has no room, while it has none.
fn gang_waits(group: &Value) -> String {
    if !matches!(
        text(group, &["status", "phase"]),
        "" | "Pending" | "Inqueue"
    ) {
        return String::new();
    }
    group["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .rev()
        .find(|one| one["status"] == "True")
        .filter(|one| one["type"] == "Unschedulable")
        .map(|condition| mirror::plain_words(text(condition, &["message"])).to_owned())
        .unwrap_or_default()
}
