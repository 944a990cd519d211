//! `pytorch`: where the master is, how many there are, and which of them a process is.

use api::volcano::Job;
use serde_json::{Value, json};

use super::hosts::{of_pod, task_of};
use super::{
    Arguments, Place, Plugin, Port, Tells, append, each_main_container, open_port, set_env,
};

const PORT: Port = Port {
    name: "port",
    default: 23_456,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "pytorch",
    children: None,
    tells: |_| Tells::Itself,
    pod,
};

/// Seconds that a worker waits for its master.
const WAIT_DEFAULT: u32 = 300;
const WAIT_IMAGE: &str = "busybox:1.36.1";

/// Without a master nobody is told anything, nor is a task that is neither.
fn pod(job: &Job, arguments: &Arguments<'_>, place: &Place<'_>, pod: &mut Value) {
    let worker = arguments.text("worker", "worker");
    let Some(master) = task_of(job, arguments.text("master", "master")) else {
        return;
    };
    let is_worker = &*place.task.name == worker;
    if !is_worker && place.task.name != master.name {
        return;
    }
    let rank = match is_worker {
        true => u64::from(place.index) + 1,
        false => 0,
    };
    let workers = task_of(job, worker).map_or(0, |task| task.replicas());
    let size = i64::from(master.replicas()) + i64::from(workers);
    let (address, port) = (of_pod(job, master, 0), arguments.port(&PORT));
    each_main_container(pod, |container| {
        open_port(container, "pytorchjob-port", port);
        set_env(container, "MASTER_ADDR", address.as_str());
        set_env(container, "MASTER_PORT", port.to_string());
        set_env(container, "WORLD_SIZE", size.to_string());
        set_env(container, "RANK", rank.to_string());
    });
    if is_worker && arguments.flag("wait-master-enabled").unwrap_or(false) {
        let waits = wait_for(&address, port, arguments);
        append(&mut pod["spec"], "initContainers", waits);
    }
}

/// A container that ends well once the master listens.
fn wait_for(address: &str, port: u16, arguments: &Arguments<'_>) -> Value {
    let seconds = arguments.text("wait-master-timeout", "").parse();
    let seconds = seconds.unwrap_or(WAIT_DEFAULT);
    // An image may have nc, a shell that opens sockets by itself, which is seldom its sh, or Python.
    let script = format!(
        "end=$(( $(date +%s) + {seconds} )); \
         until nc -z -w 2 {address} {port} 2>/dev/null \
         || bash -c ': </dev/tcp/{address}/{port}' 2>/dev/null \
         || python3 -c 'import socket; socket.create_connection((\"{address}\", {port}), 2)' 2>/dev/null; do \
         if [ $(date +%s) -ge $end ]; then echo \"{address}:{port} did not answer within {seconds} s\"; exit 1; fi; \
         sleep 2; done"
    );
    json!({
        "name": "wait-for-master",
        "image": arguments.text("wait-master-image", WAIT_IMAGE),
        "command": ["sh", "-c", script],
    })
}
