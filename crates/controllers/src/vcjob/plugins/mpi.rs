//! `mpi`: a port for the way in, and the list of hosts for the one that starts the others.

use api::volcano::{Job, Task};
use serde_json::Value;

use super::hosts::{self, List, task_of};
use super::{Arguments, Child, Place, Plugin, Port, Tells, each_container, open_port, set_env};
use crate::vcjob::pods;

const PORT: Port = Port {
    name: "port",
    default: 22,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "mpi",
    children: Some(children),
    tells: |_| Tells::Pods,
    pod,
};

/// The variable that lists the hosts.
const VARIABLE: &str = "MPI_HOST";

/// It needs nothing beside pods, but the master's must hold the list.
fn children(job: &Job, arguments: &Arguments<'_>) -> Result<Vec<Child>, String> {
    let mut list = List::new(VARIABLE);
    if let Some(workers) = workers(job, arguments) {
        list.add(job, workers, hosts::count(workers), ",".len());
    }
    for task in job.spec.tasks.iter().filter(|it| is_master(it, arguments)) {
        list.fits(task, pods::all_containers(task))?;
    }
    Ok(Vec::new())
}

fn is_master(task: &Task, arguments: &Arguments<'_>) -> bool {
    &*task.name == arguments.text("master", "master")
}

fn workers<'a>(job: &'a Job, arguments: &Arguments<'_>) -> Option<&'a Task> {
    task_of(job, arguments.text("worker", "worker"))
}

fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let port = arguments.port(&PORT);
    let workers = workers(job, arguments).filter(|_| is_master(place.task, arguments));
    let workers = workers.map(|task| hosts::of_task(job, task).join(","));
    each_container(pod, |container| {
        open_port(container, "mpijob-port", port);
        if let Some(workers) = &workers {
            set_env(container, VARIABLE, workers.as_str());
        }
    });
}
