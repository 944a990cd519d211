//! Node objects and addresses.

use api::intent::{Action, Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use serde_json::json;

use crate::{SIM_NODE, Settings};

const PREFIX: &str = "sim-node-";

/// `sim-node-N`
pub fn name(index: u32) -> String {
    format!("{PREFIX}{index}")
}

/// The index of a node of this fleet.
pub(crate) fn index(name: &str, nodes: u32) -> Option<u32> {
    let index = name.strip_prefix(PREFIX)?.parse().ok()?;
    (index < nodes && crate::node::name(index) == name).then_some(index)
}

/// 100.64.0.1 for the first node, up to a million of them apart.
pub(crate) fn address(index: u32) -> String {
    let [_, a, b, c] = (index + 1).to_be_bytes();
    format!("100.{}.{b}.{c}", 64 + a % 64)
}

/// 10.128.0.2 for the first pod of the first node; 32,768 nodes apart, then again from the start.
pub(crate) fn pod_address(index: u32, slot: u8) -> String {
    let [_, _, a, b] = index.to_be_bytes();
    format!("10.{}.{b}.{slot}", 128 + a % 128)
}

/// The write that makes a node, with its status.
pub(crate) fn create(settings: &Settings, index: u32, now: Time) -> Intent {
    let name = name(index);
    let mut labels = json!({
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        SIM_NODE: "true",
    });
    if settings.zones > 0 {
        let zone = format!("zone-{}", index % settings.zones);
        labels["topology.kubernetes.io/zone"] = zone.into();
    }
    for (key, value) in &settings.labels {
        labels[&**key] = (&**value).into();
    }
    let mut has = json!({
        "cpu": settings.cpu.to_string(),
        "memory": settings.memory.to_string(),
        "pods": settings.pods.to_string(),
    });
    for (key, amount) in &settings.extra {
        has[&**key] = amount.to_string().into();
    }
    let body = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": { "podCIDR": pod_address(index, 0) + "/24" },
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": crate::conditions(&[], now),
            "addresses": [
                { "type": "InternalIP", "address": address(index) },
                { "type": "Hostname", "address": name },
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "simulated://1",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": "simulated",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "",
                "systemUUID": "",
            },
        },
    });
    Intent {
        target: ObjectKey::new(Kind::Node, "", &name),
        action: Action::Create { body },
    }
}
