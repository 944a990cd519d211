//! `tensorflow`: tells each process of the cluster, and which part of it is its own (`TF_CONFIG`).

use api::volcano::{Job, Task};
use serde_json::{Map, Value, json};

use super::hosts::{List, of_pod, task_of};
use super::{Arguments, Child, Place, Plugin, Port, Tells, each_main_container, set_env};
use crate::vcjob::pods;

const PORT: Port = Port {
    name: "port",
    default: 2222,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "tensorflow",
    children: Some(children),
    tells: |_| Tells::Pods,
    pod,
};

/// What a task may be: the word of the framework, the argument that names the task, and its name where
/// that is not given are one and the same.
const ROLES: &[&str] = &["ps", "worker", "chief", "evaluator"];

/// The variable that tells a process of the cluster.
const VARIABLE: &str = "TF_CONFIG";

/// It needs nothing beside pods, but these must hold the cluster.
fn children(job: &Job, arguments: &Arguments<'_>) -> Result<Vec<Child>, String> {
    let tasks = parts(job, arguments);
    let mut list = List::new(VARIABLE);
    for (_, task) in &tasks {
        list.add(job, task, task.replicas(), r#"\"\":65535,"#.len());
    }
    for (_, task) in tasks {
        list.fits(task, pods::main_containers(task))?;
    }
    Ok(Vec::new())
}

/// The tasks that have a part in the cluster; none where there is no cluster.
fn parts<'a>(job: &'a Job, arguments: &Arguments<'_>) -> Vec<(&'static str, &'a Task)> {
    if is_alone(&job.spec.tasks) {
        return Vec::new();
    }
    let tasks = ROLES.iter().filter_map(|role| {
        let task = task_of(job, arguments.text(role, role))?;
        Some((*role, task))
    });
    tasks.collect()
}

/// A task with none of these names has no part in the cluster and is told nothing.
fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let tasks = parts(job, arguments);
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
        set_env(container, VARIABLE, config.as_str());
    });
}

/// A single process needs no cluster.
fn is_alone(tasks: &[Task]) -> bool {
    matches!(tasks, [task] if task.replicas() == 1)
}
