//! Rows of everything else that is built in.

use api::time::Time;
use serde_json::{Value, json};

use super::cells::{age, labels, list, number, or_none, selector, since, text_or};
use super::rare;
use crate::annotations::STORAGE_CLASS;

pub(super) fn node(node: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&node["spec"], &node["status"]);
    let ready = list(&status["conditions"])
        .iter()
        .find(|c| c["type"] == "Ready");
    let mut phase = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if spec["unschedulable"] == true {
        phase.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        list(&status["addresses"])
            .iter()
            .find(|address| address["type"] == kind)
            .map_or("<none>", |address| text_or(&address["address"], "<none>"))
    };
    let info = |name: &str| Value::from(text_or(&status["nodeInfo"][name], "<unknown>"));
    vec![
        node["metadata"]["name"].clone(),
        phase.into(),
        roles(node).into(),
        age(node, now),
        text_or(&status["nodeInfo"]["kubeletVersion"], "").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in node["metadata"]["labels"].as_object().into_iter().flatten() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some("") => {}
            Some(role) => roles.push(role),
            None if key == "kubernetes.io/role" => roles.extend(value.as_str()),
            None => {}
        }
    }
    roles.retain(|role| !role.is_empty());
    roles.sort_unstable();
    roles.dedup();
    or_none(roles.join(","))
}

pub(super) fn service(service: &Value, now: Time) -> Vec<Value> {
    let spec = &service["spec"];
    let ip = list(&spec["clusterIPs"])
        .first()
        .and_then(Value::as_str)
        .or(spec["clusterIP"].as_str())
        .filter(|ip| !ip.is_empty());
    let ports: Vec<String> = list(&spec["ports"])
        .iter()
        .map(|port| {
            let (number, protocol) = (number(&port["port"]), text_or(&port["protocol"], "TCP"));
            match port["nodePort"].as_i64().filter(|node| *node > 0) {
                Some(node) => format!("{number}:{node}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        service["metadata"]["name"].clone(),
        text_or(&spec["type"], "").into(),
        ip.unwrap_or("<none>").into(),
        external_ip(service).into(),
        or_none(ports.join(",")).into(),
        age(service, now),
        labels(&spec["selector"]).into(),
    ]
}

fn external_ip(service: &Value) -> String {
    let spec = &service["spec"];
    let mut addresses: Vec<&str> = list(&spec["externalIPs"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match spec["type"].as_str() {
        Some("ExternalName") => return text_or(&spec["externalName"], "").to_owned(),
        Some("LoadBalancer") => {
            let given = list(&service["status"]["loadBalancer"]["ingress"]);
            let mut given: Vec<&str> = given
                .iter()
                .map(|row| text_or(&row["ip"], text_or(&row["hostname"], "")))
                .filter(|address| !address.is_empty())
                .collect();
            if given.is_empty() && addresses.is_empty() {
                return "<pending>".to_owned();
            }
            given.sort_unstable();
            given.append(&mut addresses);
            addresses = given;
        }
        _ => {}
    }
    or_none(addresses.join(","))
}

pub(super) fn claim(claim: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let bound = text_or(&spec["volumeName"], "");
    let (modes, capacity) = if bound.is_empty() {
        (String::new(), "")
    } else {
        (
            access_modes(&status["accessModes"]),
            text_or(&status["capacity"]["storage"], "0"),
        )
    };
    vec![
        claim["metadata"]["name"].clone(),
        phase(claim),
        bound.into(),
        capacity.into(),
        modes.into(),
        storage_class(claim).into(),
        text_or(&spec["volumeAttributesClassName"], "<unset>").into(),
        age(claim, now),
        text_or(&spec["volumeMode"], "<unset>").into(),
    ]
}

pub(super) fn volume(volume: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&volume["spec"], &volume["status"]);
    let claim = &spec["claimRef"];
    let claim = match claim.is_object() {
        true => format!(
            "{}/{}",
            text_or(&claim["namespace"], ""),
            text_or(&claim["name"], "")
        ),
        false => String::new(),
    };
    vec![
        volume["metadata"]["name"].clone(),
        text_or(&spec["capacity"]["storage"], "0").into(),
        access_modes(&spec["accessModes"]).into(),
        text_or(&spec["persistentVolumeReclaimPolicy"], "").into(),
        phase(volume),
        claim.into(),
        storage_class(volume).into(),
        text_or(&spec["volumeAttributesClassName"], "<unset>").into(),
        text_or(&status["reason"], "").into(),
        age(volume, now),
        text_or(&spec["volumeMode"], "<unset>").into(),
    ]
}

fn phase(object: &Value) -> Value {
    match object["metadata"]["deletionTimestamp"].is_null() {
        true => text_or(&object["status"]["phase"], "").into(),
        false => "Terminating".into(),
    }
}

fn storage_class(object: &Value) -> &str {
    let annotation = &object["metadata"]["annotations"][STORAGE_CLASS];
    text_or(annotation, text_or(&object["spec"]["storageClassName"], ""))
}

fn access_modes(value: &Value) -> String {
    const MODES: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = list(value);
    let shown: Vec<&str> = MODES
        .iter()
        .filter(|(long, _)| modes.iter().any(|mode| mode == long))
        .map(|(_, short)| *short)
        .collect();
    shown.join(",")
}

pub(super) fn event(event: &Value, now: Time) -> Vec<Value> {
    // The two groups spell the same things differently; either spelling may be shown.
    let either = |new: &str, old: &str| match event[new].is_null() {
        true => event[old].clone(),
        false => event[new].clone(),
    };
    let series = &event["series"];
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let first = match first.is_null() {
        true => since(&event["eventTime"], now),
        false => since(&first, now),
    };
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let (last, count) = if series.is_object() {
        (
            since(&series["lastObservedTime"], now),
            number(&series["count"]),
        )
    } else {
        let count = number(&either("count", "deprecatedCount")).max(1);
        match last.is_null() {
            true => (first.clone(), count),
            false => (since(&last, now), count),
        }
    };
    let about = either("involvedObject", "regarding");
    let kind = text_or(&about["kind"], "").to_lowercase();
    let target = match text_or(&about["name"], "") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = either("source", "deprecatedSource");
    let component = match text_or(&source["component"], "") {
        "" => {
            let old = text_or(&event["reportingComponent"], "");
            text_or(&event["reportingController"], old)
        }
        component => component,
    };
    let host = text_or(&source["host"], text_or(&event["reportingInstance"], ""));
    let source = match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    let message = either("message", "note");
    vec![
        last.into(),
        text_or(&event["type"], "").into(),
        text_or(&event["reason"], "").into(),
        target.into(),
        text_or(&about["fieldPath"], "").into(),
        source.into(),
        text_or(&message, "").trim().into(),
        first.into(),
        count.into(),
        event["metadata"]["name"].clone(),
    ]
}

pub(super) fn endpoint_slice(slice: &Value, now: Time) -> Vec<Value> {
    let ports = list(&slice["ports"])
        .iter()
        .map(|port| match port["port"].as_i64() {
            Some(port) => port.to_string(),
            None => "*".to_owned(),
        });
    let addresses = list(&slice["endpoints"])
        .iter()
        .flat_map(|endpoint| list(&endpoint["addresses"]))
        .map(|address| text_or(address, "").to_owned());
    vec![
        slice["metadata"]["name"].clone(),
        slice["addressType"].clone(),
        three_of(ports.collect(), "<unset>").into(),
        three_of(addresses.collect(), "<unset>").into(),
        age(slice, now),
    ]
}

/// The first three texts, and how many more there are; `nothing` where there is none.
pub(super) fn three_of(texts: Vec<String>, nothing: &str) -> String {
    match texts.len() {
        0 => nothing.to_owned(),
        1..=3 => texts.join(","),
        more => format!("{} + {} more...", texts[..3].join(","), more - 3),
    }
}

/// Cells that are one field, or one simple count.
pub(super) fn simple(resource: &str, column: &str, object: &Value, now: Time) -> Value {
    let spec = &object["spec"];
    let count = |value: &Value| match value {
        Value::Array(list) => Value::from(list.len()),
        Value::Object(map) => Value::from(map.len()),
        _ => Value::from(0),
    };
    let text = |value: &Value| match value {
        Value::Null => Value::from("<none>"),
        other => other.clone(),
    };
    match (resource, column) {
        ("storageclasses", "Name") => storage_class_name(object),
        (_, "Name") => object["metadata"]["name"].clone(),
        (_, "Age") => age(object, now),
        (_, "Created At") => object["metadata"]["creationTimestamp"].clone(),
        ("configmaps", "Data") => {
            let size = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
            json!(size(&object["data"]) + size(&object["binaryData"]))
        }
        ("secrets", "Data") => count(&object["data"]),
        ("secrets", "Type") => text_or(&object["type"], "").into(),
        ("namespaces", "Status") => text_or(&object["status"]["phase"], "").into(),
        ("leases", "Holder") => text_or(&spec["holderIdentity"], "").into(),
        ("networkpolicies", "Pod-Selector") => selector(&spec["podSelector"]).into(),
        ("priorityclasses", "Value") => number(&object["value"]).into(),
        ("priorityclasses", "Global-Default") => (object["globalDefault"] == true).into(),
        ("priorityclasses", "PreemptionPolicy") => {
            text_or(&object["preemptionPolicy"], "PreemptLowerPriority").into()
        }
        ("storageclasses", "Provisioner") => object["provisioner"].clone(),
        ("storageclasses", "ReclaimPolicy") => text_or(&object["reclaimPolicy"], "Delete").into(),
        ("storageclasses", "VolumeBindingMode") => {
            text_or(&object["volumeBindingMode"], "Immediate").into()
        }
        ("storageclasses", "AllowVolumeExpansion") => {
            (object["allowVolumeExpansion"] == true).into()
        }
        ("poddisruptionbudgets", "Min Available") => budget(&spec["minAvailable"]),
        ("poddisruptionbudgets", "Max Unavailable") => budget(&spec["maxUnavailable"]),
        ("poddisruptionbudgets", "Allowed Disruptions") => {
            number(&object["status"]["disruptionsAllowed"]).into()
        }
        ("rolebindings" | "clusterrolebindings", "Role") => {
            let role = &object["roleRef"];
            format!(
                "{}/{}",
                text_or(&role["kind"], ""),
                text_or(&role["name"], "")
            )
            .into()
        }
        ("rolebindings" | "clusterrolebindings", "Users") => subjects(object, "User"),
        ("rolebindings" | "clusterrolebindings", "Groups") => subjects(object, "Group"),
        ("rolebindings" | "clusterrolebindings", _) => subjects(object, "ServiceAccount"),
        ("runtimeclasses", "Handler") => object["handler"].clone(),
        ("mutatingwebhookconfigurations" | "validatingwebhookconfigurations", _) => {
            count(&object["webhooks"])
        }
        ("csinodes", "Drivers") => count(&spec["drivers"]),
        ("controllerrevisions", "Revision") => number(&object["revision"]).into(),
        ("ingressclasses", "Controller") => text(&spec["controller"]),
        ("resourceclaims", "State") => claim_state(object).into(),
        ("resourceslices", "Node") => text_or(&spec["nodeName"], "").into(),
        ("resourceslices", "Driver") => text(&spec["driver"]),
        ("resourceslices", "Pool") => text(&spec["pool"]["name"]),
        ("apiservices", "Service") => "Local".into(),
        ("apiservices", "Available") => "True".into(),
        ("resourcequotas", "Request" | "Limit") => quota(object, column).into(),
        ("workloads" | "podgroups", "Workload") => {
            text(&spec["podGroupTemplateRef"]["workloadName"])
        }
        _ => rare::cell(resource, column, object).unwrap_or(Value::Null),
    }
}

fn claim_state(claim: &Value) -> String {
    let status = &claim["status"];
    let is_leaving = !claim["metadata"]["deletionTimestamp"].is_null();
    let is_allocated = !status["allocation"].is_null();
    let states = [
        ("deleted", is_leaving),
        ("pending", !is_leaving && !is_allocated),
        ("allocated", is_allocated),
        (
            "reserved",
            is_allocated && !list(&status["reservedFor"]).is_empty(),
        ),
    ];
    let states = states.into_iter().filter(|(_, is)| *is);
    states.map(|(state, _)| state).collect::<Vec<_>>().join(",")
}

fn storage_class_name(object: &Value) -> Value {
    let name = text_or(&object["metadata"]["name"], "");
    let annotations = &object["metadata"]["annotations"];
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| annotations[key] == "true");
    match is_default {
        true => format!("{name} (default)").into(),
        false => name.into(),
    }
}

fn budget(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

fn subjects(object: &Value, kind: &str) -> Value {
    let names: Vec<String> = list(&object["subjects"])
        .iter()
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| match (kind, text_or(&subject["name"], "")) {
            ("ServiceAccount", name) => format!("{}/{name}", text_or(&subject["namespace"], "")),
            (_, name) => name.to_owned(),
        })
        .collect();
    names.join(", ").into()
}

fn quota(object: &Value, column: &str) -> String {
    let (hard, used) = (&object["status"]["hard"], &object["status"]["used"]);
    let texts: Vec<String> = hard
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits") == (column == "Limit"))
        .map(|(name, value)| {
            format!(
                "{name}: {}/{}",
                text_or(&used[name], "0"),
                text_or(value, "0")
            )
        })
        .collect();
    texts.join(", ")
}
