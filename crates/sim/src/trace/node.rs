//! Nodes as users write them, made whole: one line about cpu and memory is enough.

use api::time::Time;
use serde_json::{Map, Value, json};

/// What a node that says nothing takes of pods.
const PODS: &str = "110";

/// A node that is ready, from a manifest that may say little; its capacity, where it states none,
/// is what it may allocate, and the other way round.
pub(super) fn whole(written: &Value, name: &str, now: Time) -> Value {
    let mut node = written.clone();
    node["metadata"]["name"] = name.into();
    if let Some(meta) = node["metadata"].as_object_mut() {
        meta.remove("generateName");
    }
    let labels = &mut node["metadata"]["labels"];
    for (key, value) in [
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
    ] {
        if labels[key].is_null() {
            labels[key] = value.into();
        }
    }
    labels["kubernetes.io/hostname"] = name.into();
    let status = &written["status"];
    let stated = |field: &str| status[field].as_object().filter(|it| !it.is_empty());
    let has = stated("capacity").or(stated("allocatable"));
    let gives = stated("allocatable").or(stated("capacity"));
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    node["status"] = json!({
        "capacity": with_pods(has),
        "allocatable": with_pods(gives),
        "conditions": nodes::conditions(&conditions, now),
        "addresses": [{ "type": "Hostname", "address": name }],
        "nodeInfo": status["nodeInfo"].as_object().map_or_else(told, |it| it.clone().into()),
    });
    node
}

fn with_pods(amounts: Option<&Map<String, Value>>) -> Value {
    let mut amounts = amounts.cloned().unwrap_or_default();
    amounts.entry("pods").or_insert_with(|| PODS.into());
    amounts.into()
}

fn told() -> Value {
    json!({
        "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "simulated://1",
        "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "simulated",
        "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": "",
    })
}
