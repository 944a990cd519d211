//! One pod of a workload, as a task that people follow.

use std::collections::BTreeMap;

use api::time::Time;
use serde_json::Value;

use super::event::TaskEnd;
use crate::rest::text;

/// A container instance whose log can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSource {
    /// What stands before each line.
    pub label: String,
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Which instance.
    pub instance: Instance,
}

/// Which instance of a container a log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instance {
    /// The one that runs, or ran last.
    Current,
    /// The one before it.
    Previous,
}

#[derive(Debug)]
pub(super) struct Task {
    pub uid: String,
    pub short: String,
    pub phase: String,
    pub node: String,
    pub restarts: u64,
    pub exit_code: Option<i64>,
    /// Why it failed, where the API says.
    pub why: String,
    /// Why it cannot run yet, in the API's words.
    pub waits: String,
    began: Option<Time>,
    ended: Option<Time>,
    /// Container → how many instances have had their log opened.
    logged: BTreeMap<String, u64>,
}

impl Task {
    pub(super) fn new(pod: &Value, workload: &str) -> Task {
        let name = text(pod, &["metadata", "name"]);
        let short = name
            .strip_prefix(workload)
            .and_then(|rest| rest.strip_prefix('-'))
            .unwrap_or(name);
        Task {
            uid: text(pod, &["metadata", "uid"]).to_owned(),
            short: short.to_owned(),
            phase: String::new(),
            node: String::new(),
            restarts: 0,
            exit_code: None,
            why: String::new(),
            waits: String::new(),
            began: None,
            ended: None,
            logged: BTreeMap::new(),
        }
    }

    /// Takes in a pod's state; true if its phase or restarts moved.
    pub(super) fn see(&mut self, pod: &Value, now: Time) -> bool {
        let phase = match text(pod, &["status", "phase"]) {
            "" => "Pending",
            phase => phase,
        };
        let restarts = statuses(pod, "containerStatuses")
            .map(|status| status["restartCount"].as_u64().unwrap_or(0))
            .sum();
        self.node = text(pod, &["spec", "nodeName"]).to_owned();
        self.exit_code = exit_code(pod);
        self.why = if phase == "Failed" {
            why_failed(pod)
        } else {
            String::new()
        };
        self.waits = waits(pod);
        let moved = self.phase != phase || self.restarts != restarts;
        if phase == "Running" {
            self.began.get_or_insert(now);
        }
        if matches!(phase, "Succeeded" | "Failed") {
            // Whoever is seen only after its end ran when its containers say.
            let (began, ended) = ran(pod).unwrap_or((now, now));
            if self.began.is_none() {
                self.ended = Some(ended);
            }
            self.began.get_or_insert(began);
            self.ended.get_or_insert(now);
        }
        self.phase = phase.to_owned();
        self.restarts = restarts;
        moved
    }

    /// Container instances that began since this was last asked.
    pub(super) fn fresh_logs(&mut self, pod: &Value, label: &str) -> Vec<LogSource> {
        let mut sources = Vec::new();
        let several = pod["spec"]["containers"]
            .as_array()
            .is_some_and(|all| all.len() > 1);
        let both = statuses(pod, "initContainerStatuses")
            .map(|status| (status, true))
            .chain(statuses(pod, "containerStatuses").map(|status| (status, several)));
        for (status, named) in both {
            let container = text(status, &["name"]).to_owned();
            let began = status["restartCount"].as_u64().unwrap_or(0)
                + u64::from(
                    status["state"]["running"].is_object()
                        || status["state"]["terminated"].is_object(),
                );
            let logged = self.logged.entry(container.clone()).or_insert(0);
            let missed = began.saturating_sub(*logged);
            let waiting = status["state"]["waiting"].is_object();
            *logged = began.max(*logged);
            let mut push = |instance| {
                sources.push(LogSource {
                    label: if named {
                        format!("{label}/{container}")
                    } else {
                        label.to_owned()
                    },
                    namespace: text(pod, &["metadata", "namespace"]).to_owned(),
                    pod: text(pod, &["metadata", "name"]).to_owned(),
                    container: container.clone(),
                    instance,
                });
            };
            // Only two instances can be read: the current one and the one before.
            if missed > 1 && !waiting {
                push(Instance::Previous);
            }
            if missed > 0 {
                push(Instance::Current);
            }
        }
        sources
    }

    pub(super) fn end(&self, now: Time) -> TaskEnd {
        TaskEnd {
            task: self.short.clone(),
            phase: self.phase.clone(),
            node: self.node.clone(),
            exit_code: self.exit_code.filter(|code| *code != 0),
            message: self.why.clone(),
            restarts: self.restarts,
            ran_ms: self
                .began
                .map(|began| (self.ended.unwrap_or(now).micros() - began.micros()) / 1000),
        }
    }
}

fn statuses<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod["status"][field].as_array().into_iter().flatten()
}

/// From the first container's start to the last one's end.
fn ran(pod: &Value) -> Option<(Time, Time)> {
    let ends = || statuses(pod, "containerStatuses").map(|status| &status["state"]["terminated"]);
    let time = |field: &'static str| ends().filter_map(move |end| Time::parse(text(end, &[field])));
    Some((time("startedAt").min()?, time("finishedAt").max()?))
}

fn exit_code(pod: &Value) -> Option<i64> {
    let codes: Vec<i64> = statuses(pod, "containerStatuses")
        .filter_map(|status| status["state"]["terminated"]["exitCode"].as_i64())
        .collect();
    codes
        .iter()
        .copied()
        .find(|code| *code != 0)
        .or(codes.first().copied())
}

/// `OOMKilled`, `failed to start the container: …`; nothing where the exit code says it all.
fn why_failed(pod: &Value) -> String {
    let of_pod = [["status", "message"], ["status", "reason"]];
    let said = of_pod.iter().map(|path| text(pod, path));
    let mut of_containers = statuses(pod, "initContainerStatuses")
        .chain(statuses(pod, "containerStatuses"))
        .map(|status| &status["state"]["terminated"])
        .filter(|end| end["exitCode"].as_i64().is_some_and(|code| code != 0))
        .flat_map(|end| [text(end, &["message"]), text(end, &["reason"])]);
    said.chain(&mut of_containers)
        .find(|said| !matches!(*said, "" | "Error"))
        .and_then(|said| said.lines().next())
        .unwrap_or_default()
        .to_owned()
}

fn waits(pod: &Value) -> String {
    let unplaced = statuses(pod, "conditions")
        .find(|one| one["type"] == "PodScheduled" && one["status"] == "False")
        .map(|condition| text(condition, &["message"]));
    if let Some(message) = unplaced {
        return mirror::plain_words(message).to_owned();
    }
    statuses(pod, "initContainerStatuses")
        .chain(statuses(pod, "containerStatuses"))
        .map(|status| &status["state"]["waiting"])
        .find(|waiting| waiting.is_object())
        .map(|waiting| {
            let (reason, message) = (text(waiting, &["reason"]), text(waiting, &["message"]));
            match (reason, message) {
                // Every container passes through these; they say nothing about a trouble.
                ("ContainerCreating" | "PodInitializing", _) => String::new(),
                (reason, "") => reason.to_owned(),
                (reason, message) => format!("{reason}: {message}"),
            }
        })
        .unwrap_or_default()
}
