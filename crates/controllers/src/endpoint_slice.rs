//! EndpointSlices: the addresses behind a Service with a selector.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{EndpointSlice, Node, Pod, Service, TextMap};
use api::int_or_string::IntOrString;
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use mirror::{Change, Index, Mirror};
use serde::Deserialize;
use serde_json::{Value, json};

mod sharing;

use crate::write::object;
use crate::{Controller, Inputs, Step, child, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "endpoint_slice",
    component: "endpoint-slice-controller",
    tells_refused: &[],
    watches: &[Kind::EndpointSlice, Kind::Node, Kind::Pod, Kind::Service],
    keys,
    step,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const ZONE: &str = "topology.kubernetes.io/zone";

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let namespace = &change.key.namespace;
    match change.kind() {
        Kind::Service => keys.push((*change.key).clone()),
        Kind::EndpointSlice => {
            if let Some(service) = change.latest().meta().labels.get(SERVICE_NAME) {
                keys.push(ObjectKey::new(Kind::Service, namespace, service));
            }
        }
        // A node's zone is told where its pods are; it does not move.
        Kind::Node => {}
        _ => {
            let sides = [change.before::<Pod>(), change.after::<Pod>()];
            let [before, after] = sides.map(|side| side.map(|pod| facts(pod)));
            // A pod without an address is in no slice.
            let has_address = sides
                .iter()
                .flatten()
                .any(|pod| !pod.status.pod_ip.is_empty());
            if before == after || !has_address {
                return;
            }
            for side in sides.into_iter().flatten() {
                selecting(mirror, &side.metadata, keys);
            }
        }
    }
}

/// The Services that select a pod, beside those that are there already.
fn selecting(mirror: &Mirror, pod: &ObjectMeta, keys: &mut Vec<ObjectKey>) {
    for (key, value) in &pod.labels {
        let term = mirror::label_term(key, value);
        let services = mirror.indexed::<Service>(Index::ServiceLabel, &pod.namespace, &term);
        for service in services.filter(|it| is_selected(&it.spec.selector, pod)) {
            let meta = &service.metadata;
            let key = ObjectKey::new(Kind::Service, &meta.namespace, &meta.name);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
}

/// What of a pod shows in a slice.
fn facts(pod: &Pod) -> (&TextMap, &str, &str, bool, bool, bool) {
    (
        &pod.metadata.labels,
        &pod.status.pod_ip,
        &pod.spec.node_name,
        pod.is_ready(),
        pod.is_terminating(),
        pod.is_finished(),
    )
}

fn is_selected(selector: &TextMap, meta: &ObjectMeta) -> bool {
    !selector.is_empty()
        && selector
            .iter()
            .all(|(key, value)| meta.labels.get(key) == Some(value))
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(service) = inputs.mirror.get::<Service>(namespace, name) else {
        return Step::idle();
    };
    let is_leaving = service.metadata.deletion_timestamp.is_some();
    if service.spec.selector.is_empty() || &*service.spec.kind == "ExternalName" || is_leaving {
        return Step::idle();
    }
    let index = Index::EndpointSliceService;
    let known = inputs
        .mirror
        .indexed::<EndpointSlice>(index, namespace, name);
    let known: Vec<&Arc<EndpointSlice>> = known.filter(|slice| is_ours(slice)).collect();
    let pods = selected(inputs.mirror, service);
    let wanted = sharing::shared_out(known, groups(inputs.mirror, service, &pods));
    let mut intents: Vec<Intent> = Vec::new();
    for slice in wanted.idle {
        intents.push(write::delete(Kind::EndpointSlice, &slice.metadata));
    }
    for (slice, body) in wanted.kept {
        intents.extend(mend(service, slice, &body));
    }
    let mut number = 0u32;
    for body in wanted.new {
        let free = |name: &String| {
            let slice = inputs.mirror.get::<EndpointSlice>(namespace, name);
            slice.is_none()
        };
        let name = std::iter::from_fn(|| {
            number += 1;
            Some(slice_name(service, number - 1))
        })
        .find(free);
        intents.extend(name.map(|name| create(service, &name, body)));
    }
    Step::write(intents)
}

fn slice_name(service: &Service, number: u32) -> String {
    let meta = &service.metadata;
    let stem = format!("{}-", meta.name);
    child::name(&stem, &[&meta.uid, &number.to_string()])
}

fn is_ours(slice: &EndpointSlice) -> bool {
    let manager = slice.metadata.labels.get(MANAGED_BY);
    manager.is_some_and(|manager| &**manager == MANAGER)
        && slice.metadata.deletion_timestamp.is_none()
}

fn selected<'a>(mirror: &'a Mirror, service: &Service) -> Vec<&'a Arc<Pod>> {
    let meta = &service.metadata;
    let is_member = |pod: &&Arc<Pod>| {
        is_selected(&service.spec.selector, &pod.metadata)
            && !pod.is_finished()
            && !pod.status.pod_ip.is_empty()
    };
    // The Service of a vcjob selects that job's pods by its name: they are found by their owner,
    // which keeps a namespace with many jobs from being searched for each of them.
    let owner = meta.controller().filter(|owner| {
        Kind::find(&owner.api_version, &owner.kind) == Some(Kind::VcJob)
            && service.spec.selector.contains_key(api::volcano::JOB_NAME)
    });
    match owner {
        Some(owner) => mirror
            .owned_by::<Pod>(&owner.uid)
            .filter(is_member)
            .collect(),
        None => mirror
            .list_in::<Pod>(&meta.namespace)
            .filter(is_member)
            .collect(),
    }
}

/// Endpoints by their ports: pods with different numbers for a named port go into different slices.
fn groups(mirror: &Mirror, service: &Service, pods: &[&Arc<Pod>]) -> Vec<(Value, Vec<Value>)> {
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for pod in pods {
        let ports = ports(service, pod);
        let group = groups
            .entry(ports.to_string())
            .or_insert_with(|| (ports, Vec::new()));
        group.1.push(endpoint(mirror, service, pod));
    }
    groups.into_values().collect()
}

fn ports(service: &Service, pod: &Pod) -> Value {
    let ports = service.spec.ports.iter().filter_map(|port| {
        let number = match &port.target_port {
            IntOrString::Int(0) => port.port,
            IntOrString::Int(number) => *number,
            IntOrString::Text(name) if name.is_empty() => port.port,
            IntOrString::Text(name) => named_port(pod, name)?,
        };
        let protocol = match &*port.protocol {
            "" => "TCP",
            protocol => protocol,
        };
        let mut value = json!({ "name": port.name, "protocol": protocol, "port": number });
        if let Some(application) = &port.app_protocol {
            value["appProtocol"] = json!(application);
        }
        Some(value)
    });
    Value::Array(ports.collect())
}

fn named_port(pod: &Pod, name: &str) -> Option<i32> {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let mut ports = containers.flat_map(|container| &container.ports);
    let port = ports.find(|port| &*port.name == name)?;
    Some(port.container_port)
}

fn endpoint(mirror: &Mirror, service: &Service, pod: &Pod) -> Value {
    let serving = pod.is_ready();
    let terminating = pod.is_terminating();
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": [pod.status.pod_ip],
        "conditions": { "ready": ready, "serving": serving, "terminating": terminating },
        "targetRef": {
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
        },
    });
    if !pod.spec.node_name.is_empty() {
        endpoint["nodeName"] = json!(pod.spec.node_name);
        let node = mirror.get::<Node>("", &pod.spec.node_name);
        if let Some(zone) = node.and_then(|node| node.metadata.labels.get(ZONE)) {
            endpoint["zone"] = json!(zone);
        }
    }
    if !pod.spec.hostname.is_empty() && service.metadata.name == pod.spec.subdomain {
        endpoint["hostname"] = json!(pod.spec.hostname);
    }
    endpoint
}

fn labels(service: &Service) -> TextMap {
    let mut labels = service.metadata.labels.clone();
    labels.remove(HEADLESS);
    labels.insert(SERVICE_NAME.into(), (&*service.metadata.name).into());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if service.is_headless() {
        labels.insert(HEADLESS.into(), "".into());
    }
    labels
}

fn create(service: &Service, name: &str, mut body: Value) -> Intent {
    let meta = &service.metadata;
    body["addressType"] = "IPv4".into();
    body["metadata"] = object!({
        "name" => name,
        "generateName" => format!("{}-", meta.name),
        "namespace" => &*meta.namespace,
        "labels" => json!(labels(service)),
        "ownerReferences" => vec![write::controller_ref(Kind::Service, meta)],
    });
    write::create(Kind::EndpointSlice, body)
}

fn mend(service: &Service, slice: &EndpointSlice, body: &Value) -> Option<Intent> {
    let wanted = EndpointSlice::deserialize(body).unwrap_or_default();
    let labels = labels(service);
    let has_labels = slice.metadata.labels == labels;
    if wanted.endpoints == slice.endpoints && wanted.ports == slice.ports && has_labels {
        return None;
    }
    let mut patch = body.clone();
    let (old, new) = (json!(slice.metadata.labels), json!(labels));
    if let Some(labels) = write::merge_difference(&old, &new) {
        patch["metadata"] = json!({ "labels": labels });
    }
    let meta = &slice.metadata;
    Some(write::patch(Kind::EndpointSlice, meta, Part::Whole, patch))
}
