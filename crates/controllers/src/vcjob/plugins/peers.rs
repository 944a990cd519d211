//! A container in front of a pod's own that waits until DNS knows the names of the pod's peers or, where
//! the job tells addresses itself, until they are told.
//!
//! No gate before a pod is made can see to that: a pod has a name only once it has an address, and
//! where its peers look is the DNS of their node, with caches of its own. So each pod waits for itself,
//! where its own containers will look, and for no longer than the gate's deadline. Names of pods that
//! are not ready yet are published, so that all of a gang may wait at the same time.

use std::collections::BTreeSet;

use api::volcano::{Job, Task};
use serde_json::{Map, Value, json};

use super::svc::{self, MOUNT_PATH};
use super::{Arguments, Place, addresses, hosts};
use crate::vcjob::pods;
use crate::vcjob::roster::Roster;

/// The argument of the `svc` plugin: whether pods wait, or with which image they do.
const ARGUMENT: &str = "wait-for-peers";
/// The container's name.
const NAME: &str = "wait-for-peers";
/// As many names are waited for at most: each pod of a gang asks for those of all others.
const NAMES_MAX: i64 = 128;
/// The file that says how many pods have ended, beside those of names.
const ENDED: &str = "ended";
/// What the container does. Each name is asked for until it is known; the end is the same whether all
/// are or time is over.
const SCRIPT: &str = include_str!("peers.sh");
/// What it does where addresses are told without DNS.
const ADDRESSES_SCRIPT: &str = include_str!("addresses.sh");
/// Anybody but the superuser; the number that most systems call `nobody`.
const NOBODY: i64 = 65_534;

/// Puts the container in front of a pod's own, if the job or the operator wants it.
pub(super) fn wait(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let Some(image) = image(arguments) else {
        return;
    };
    let tasks = peers(job, place.task);
    let least = least(job, &tasks);
    if least <= i64::from(job.status.succeeded) {
        return;
    }
    let seconds = arguments.patience.seconds.to_string();
    let (script, env) = match addresses::are_wanted(arguments) {
        true => {
            let file = format!("{MOUNT_PATH}/{}", addresses::FILE);
            let env = vec![
                ("KATMAI_PEERS_ADDRESSES", file),
                ("KATMAI_PEERS_SECONDS", seconds),
            ];
            (ADDRESSES_SCRIPT, env)
        }
        false => {
            let files = tasks
                .iter()
                .map(|task| format!("{MOUNT_PATH}/{}", svc::file(task)));
            let files: Vec<_> = files.collect();
            let domain = &arguments.patience.domain;
            let end = format!("{}.svc.{domain}", job.metadata.namespace);
            let env = vec![
                ("KATMAI_PEERS", files.join(" ")),
                ("KATMAI_PEERS_LEAST", least.to_string()),
                ("KATMAI_PEERS_MOST", NAMES_MAX.to_string()),
                ("KATMAI_PEERS_ENDED", format!("{MOUNT_PATH}/{ENDED}")),
                ("KATMAI_PEERS_DOMAIN", end),
                ("KATMAI_PEERS_SECONDS", seconds),
            ];
            (SCRIPT, env)
        }
    };
    let env = env.into_iter();
    let env = env.map(|(name, value)| json!({ "name": name, "value": value }));
    let env: Vec<Value> = env.collect();
    let container = json!({
        "name": NAME,
        "image": image,
        "command": ["sh", "-c", script],
        "env": env,
        "resources": resources(pod),
        // What the strictest of Kubernetes' levels for pods demands.
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": NOBODY,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
    });
    match pod["spec"]
        .get_mut("initContainers")
        .and_then(Value::as_array_mut)
    {
        Some(others) => others.insert(0, container),
        None => pod["spec"]["initContainers"] = json!([container]),
    }
}

/// How many of the pods that start together have ended, for those that have yet to start: names of
/// pods that have ended are gone, and who waits for them waits in vain. `None` where nobody is to know,
/// or all have started.
pub(super) fn ended(job: &Job, roster: &Roster, is_wanted: bool) -> Option<(&'static str, String)> {
    if !is_wanted {
        return None;
    }
    let ended = roster.counting().filter(|it| it.pod.is_finished());
    let ended = i64::try_from(ended.count()).unwrap_or(i64::MAX);
    let pods = job.spec.replicas();
    let started = ended + i64::from(roster.counts().running);
    let together = job.spec.min_available.map_or(pods, i64::from);
    (ended > 0 && started < pods).then(|| (ENDED, ended.min(together).to_string()))
}

/// Whether a pod is told which tasks it waits for.
pub(super) fn tells_tasks(arguments: &Arguments<'_>) -> bool {
    image(arguments).is_some() && !addresses::are_wanted(arguments)
}

/// The image of the container, if there is to be one.
fn image<'a>(arguments: &'a Arguments<'_>) -> Option<&'a str> {
    let patience = &arguments.patience;
    match arguments.values.get(ARGUMENT) {
        None => patience.is_usual.then_some(patience.image),
        Some(value) => match arguments.flag(ARGUMENT) {
            Some(false) => None,
            Some(true) => Some(patience.image),
            None => Some(value),
        },
    }
}

/// The tasks whose pods are there while one of this task starts: those that wait for no other task,
/// its own, and those that it waits for itself. To wait for one that starts later could be to wait for
/// oneself.
fn peers<'a>(job: &'a Job, own: &'a Task) -> Vec<&'a Task> {
    let tasks = pods::tasks_by_name(job);
    let mut before: BTreeSet<&str> = BTreeSet::from([&*own.name]);
    let mut open = vec![own];
    while let Some(task) = open.pop() {
        for name in task.depends_on.iter().flat_map(|depends| &depends.name) {
            let found = tasks.get(name);
            if let Some(found) = found.filter(|found| before.insert(&found.name)) {
                open.push(found);
            }
        }
    }
    let is_there = |task: &&Task| task.depends_on.is_none() || before.contains(&*task.name);
    job.spec.tasks.iter().filter(is_there).collect()
}

/// How many names of these tasks are certain to come: those of as many pods as start together.
fn least(job: &Job, tasks: &[&Task]) -> i64 {
    let pods: i64 = tasks.iter().map(|task| i64::from(task.replicas())).sum();
    let together = job.spec.min_available.map_or(pods, i64::from);
    // Where pods share a name, there are fewer names than pods.
    let names = tasks.iter().map(|task| i64::from(hosts::count(task)));
    together.min(pods).min(names.sum())
}

/// Cpu and memory as the first container has them: so the pod needs no more than before, stays in its
/// class of service, and meets a quota that wants them said.
fn resources(pod: &Value) -> Value {
    let first = &pod["spec"]["containers"][0]["resources"];
    let mut own = Map::new();
    for part in ["limits", "requests"] {
        let amounts = first[part].as_object().into_iter().flatten();
        let usual = amounts.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
        let usual: Map<_, _> = usual
            .map(|(name, amount)| (name.clone(), amount.clone()))
            .collect();
        if !usual.is_empty() {
            own.insert(part.to_owned(), Value::Object(usual));
        }
    }
    Value::Object(own)
}
