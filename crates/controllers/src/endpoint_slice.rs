//! EndpointSlices: the addresses behind a Service with a selector.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{EndpointSlice, Pod, Service, TextMap};
use api::int_or_string::IntOrString;
use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use mirror::{Change, Index, Mirror};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::write::stable_suffix;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "endpoint_slice",
    watches: &[Kind::EndpointSlice, Kind::Pod, Kind::Service],
    keys,
    step,
};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// What the API allows in one slice.
const ENDPOINTS_MAX: usize = 1_000;

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let namespace = &change.key.namespace;
    match change.kind() {
        Kind::Service => keys.push((*change.key).clone()),
        Kind::EndpointSlice => {
            if let Some(service) = change.latest().meta().labels.get(SERVICE_NAME) {
                keys.push(ObjectKey::new(Kind::Service, namespace, service));
            }
        }
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
            for service in mirror.list_in::<Service>(namespace) {
                let selector = &service.spec.selector;
                let selects = |meta: &ObjectMeta| is_selected(selector, meta);
                if change.sides().any(|side| selects(side.meta())) {
                    keys.push(ObjectKey::new(
                        Kind::Service,
                        namespace,
                        &service.metadata.name,
                    ));
                }
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
    let mut intents: Vec<Intent> = Vec::new();
    let wanted = slices(service, &selected(inputs.mirror, service));
    for (name, body) in &wanted {
        match inputs.mirror.get::<EndpointSlice>(namespace, name) {
            None => intents.push(create(service, name, body.clone())),
            Some(slice) => intents.extend(mend(slice, body)),
        }
    }
    let index = Index::EndpointSliceService;
    for slice in inputs
        .mirror
        .indexed::<EndpointSlice>(index, namespace, name)
    {
        let meta = &slice.metadata;
        let is_ours = meta
            .labels
            .get(MANAGED_BY)
            .is_some_and(|manager| &**manager == MANAGER);
        if is_ours && !wanted.contains_key(&*meta.name) && meta.deletion_timestamp.is_none() {
            intents.push(write::delete(Kind::EndpointSlice, meta));
        }
    }
    Step::write(intents)
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

/// The wanted slices by name. Pods with different numbers for a named port go into different ones.
fn slices(service: &Service, pods: &[&Arc<Pod>]) -> BTreeMap<String, Value> {
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for pod in pods {
        let ports = ports(service, pod);
        let group = groups
            .entry(ports.to_string())
            .or_insert_with(|| (ports, Vec::new()));
        group.1.push(endpoint(service, pod));
    }
    if groups.is_empty() {
        groups.insert(String::new(), (json!([]), Vec::new()));
    }
    let mut slices = BTreeMap::new();
    for (ports, endpoints) in groups.into_values() {
        let chunks: Vec<&[Value]> = match endpoints.is_empty() {
            true => vec![&[]],
            false => endpoints.chunks(ENDPOINTS_MAX).collect(),
        };
        for chunk in chunks {
            let number = slices.len().to_string();
            let suffix = stable_suffix(&[&service.metadata.uid, &number]);
            let name = format!("{}-{}", service.metadata.name, &suffix[..5]);
            slices.insert(name, json!({ "endpoints": chunk, "ports": ports }));
        }
    }
    slices
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

fn endpoint(service: &Service, pod: &Pod) -> Value {
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
    }
    if !pod.spec.hostname.is_empty() && pod.spec.subdomain == service.metadata.name {
        endpoint["hostname"] = json!(pod.spec.hostname);
    }
    endpoint
}

fn create(service: &Service, name: &str, mut body: Value) -> Intent {
    let meta = &service.metadata;
    let mut labels = json!(meta.labels);
    labels[SERVICE_NAME] = json!(meta.name);
    labels[MANAGED_BY] = json!(MANAGER);
    if service.is_headless() {
        labels[HEADLESS] = json!("");
    }
    body["addressType"] = json!("IPv4");
    body["metadata"] = json!({
        "name": name,
        "namespace": meta.namespace,
        "labels": labels,
        "ownerReferences": [write::controller_ref(Kind::Service, meta)],
    });
    write::create(Kind::EndpointSlice, body)
}

fn mend(slice: &EndpointSlice, body: &Value) -> Option<Intent> {
    let wanted = EndpointSlice::deserialize(body).unwrap_or_default();
    if wanted.endpoints == slice.endpoints && wanted.ports == slice.ports {
        return None;
    }
    Some(write::patch(
        Kind::EndpointSlice,
        &slice.metadata,
        Part::Whole,
        body.clone(),
    ))
}
