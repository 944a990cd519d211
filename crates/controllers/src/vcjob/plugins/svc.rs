//! `svc`: a headless Service, so that pods of a job find each other by name, and the list of names.

use api::kind::Kind;
use api::volcano::{Job, Task};
use serde_json::{Map, Value, json};

use super::hosts::{self, text};
use super::{Arguments, Child, Place, Plugin, append, each_container, peers};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "svc",
    ports: &[],
    children: Some(children),
    lists_peers: false,
    pod,
};

/// Where the list of names is mounted.
pub(super) const MOUNT_PATH: &str = "/etc/volcano";
/// What a ConfigMap may hold, less some room for its metadata.
const HOSTS_BYTES_MAX: usize = 1_000_000;

fn children(job: &Job, arguments: &Arguments) -> Result<Vec<Child>, String> {
    let name = job.metadata.name.to_string();
    let peers = hosts::peers(job);
    // Upstream's default is false. A gang whose members become ready by finding each other
    // would then wait for ever, so names are published at once unless the job says otherwise.
    let publish = arguments
        .flag("publish-not-ready-addresses")
        .unwrap_or(true);
    let mut children = vec![
        Child {
            kind: Kind::ConfigMap,
            name: format!("{name}-svc"),
            body: json!({ "data": hosts(job)? }),
            key: None,
        },
        Child {
            kind: Kind::Service,
            name: name.clone(),
            body: json!({ "spec": {
                "clusterIP": "None",
                "selector": peers.clone(),
                "publishNotReadyAddresses": publish,
            }}),
            key: None,
        },
    ];
    if !arguments.flag("disable-network-policy").unwrap_or(false) {
        children.push(Child {
            kind: Kind::NetworkPolicy,
            name,
            body: json!({ "spec": {
                "podSelector": { "matchLabels": peers.clone() },
                "ingress": [{ "from": [{ "podSelector": { "matchLabels": peers } }] }],
                "policyTypes": ["Ingress"],
            }}),
            key: None,
        });
    }
    Ok(children)
}

fn pod(job: &Job, arguments: &Arguments, place: &Place<'_>, pod: &mut Value) {
    let pod_name = pod["metadata"]["name"].clone();
    let spec = &mut pod["spec"];
    if text(spec, "hostname").is_empty() {
        spec["hostname"] = pod_name;
    }
    if text(spec, "subdomain").is_empty() {
        spec["subdomain"] = json!(job.metadata.name);
    }
    let hosts = format!("{}-svc", job.metadata.name);
    append(
        spec,
        "volumes",
        json!({ "name": hosts, "configMap": { "name": hosts } }),
    );
    peers::wait(job, arguments, place, pod);
    let inject = arguments.flag("inject-hosts-env").unwrap_or(true);
    each_container(pod, |container| {
        for task in job.spec.tasks.iter().filter(|_| inject) {
            for suffix in ["HOSTS", "NUM"] {
                let key = variable(task, suffix);
                let source = json!({ "configMapKeyRef": { "name": hosts, "key": key } });
                append(
                    container,
                    "env",
                    json!({ "name": key, "valueFrom": source }),
                );
            }
        }
        append(
            container,
            "volumeMounts",
            json!({ "name": hosts, "mountPath": MOUNT_PATH }),
        );
    });
}

/// The ConfigMap's data: per task a file of names, the same comma-joined, and their number.
fn hosts(job: &Job) -> Result<Map<String, Value>, String> {
    let mut data = Map::new();
    let mut bytes = 0;
    for task in &job.spec.tasks {
        let name_bytes = job.metadata.name.len() * 2 + task.name.len() + 12;
        bytes += name_bytes * 2 * usize::try_from(task.replicas()).unwrap_or(0);
        if bytes > HOSTS_BYTES_MAX {
            return Err(format!(
                "host names of task {} do not fit into ConfigMap {}-svc",
                task.name, job.metadata.name
            ));
        }
        let names = hosts::of_task(job, task);
        data.insert(file(task), json!(names.join("\n")));
        data.insert(variable(task, "HOSTS"), json!(names.join(",")));
        data.insert(variable(task, "NUM"), json!(names.len().to_string()));
    }
    Ok(data)
}

/// The file that lists a task's names.
pub(super) fn file(task: &Task) -> String {
    format!("{}.host", task.name.replace('-', "_"))
}

fn variable(task: &Task, suffix: &str) -> String {
    format!("VC_{}_{suffix}", task.name.to_uppercase().replace('-', "_"))
}
