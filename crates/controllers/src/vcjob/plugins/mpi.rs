//! `mpi`: a port for the way in, and the list of hosts for the one that starts the others.

use api::volcano::Job;
use serde_json::Value;

use super::hosts::{self, task_of};
use super::{Arguments, Place, Plugin, Port, Tells, each_container, open_port, set_env};

const PORT: Port = Port {
    name: "port",
    default: 22,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "mpi",
    children: None,
    tells: |_| Tells::Itself,
    pod,
};

fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let port = arguments.port(&PORT);
    let is_master = &*place.task.name == arguments.text("master", "master");
    let workers = task_of(job, arguments.text("worker", "worker")).filter(|_| is_master);
    let workers = workers.map(|task| hosts::of_task(job, task).join(","));
    each_container(pod, |container| {
        open_port(container, "mpijob-port", port);
        if let Some(workers) = &workers {
            set_env(container, "MPI_HOST", workers.as_str());
        }
    });
}
