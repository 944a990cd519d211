//! `tensorflow`: tells each process of the cluster, and which part of it is its own (`TF_CONFIG`).

use api::volcano::{Job, Task};
use serde_json::{Map, Value, json};

use super::hosts::{of_pod, task_of};
use super::{Arguments, Place, Plugin, Port, Tells, each_main_container, set_env};

const PORT: Port = Port {
    name: "port",
    default: 2222,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "tensorflow",
    children: None,
    tells: |_| Tells::Pods,
    pod,
};

/// What a task may be: the word of the framework, the argument that names the task, and its name where
/// that is not given are one and the same.
const ROLES: &[&str] = &["ps", "worker", "chief", "evaluator"];

/// A task with none of these names has no part in the cluster and is told nothing.
fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    if is_alone(&job.spec.tasks) {
        return;
    }
    let tasks = ROLES.iter().filter_map(|role| {
        let task = task_of(job, arguments.text(role, role))?;
        Some((*role, task))
    });
    let tasks: Vec<(&str, &Task)> = tasks.collect();
    let own = tasks.iter().find(|(_, task)| task.name == place.task.name);
    let Some((role, _)) = own else { return };
    let port = arguments.port(&PORT);
    let cluster: Map<String, Value> = tasks
        .iter()
        .map(|(role, task)| {
            let hosts = (0..task.replicas()).map(|at| format!("{}:{port}", of_pod(job, task, at)));
            ((*role).to_owned(), hosts.collect())
        })
        .collect();
    let config = json!({
        "cluster": cluster,
        "task": { "type": role, "index": place.index },
    });
    let config = config.to_string();
    each_main_container(pod, |container| {
        set_env(container, "TF_CONFIG", config.as_str());
    });
}

/// A single process needs no cluster.
fn is_alone(tasks: &[Task]) -> bool {
    matches!(tasks, [task] if task.replicas() == 1)
}
