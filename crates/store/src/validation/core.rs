//! Services, data, priorities, events.

use std::collections::BTreeSet;

use api::names;
use serde_json::Value;

use super::container::{amount_not_negative, port_number};
use super::{list, one_of, text, texts, unchanged};
use crate::field::{self, FieldError};

/// Most bytes of a ConfigMap or Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// Highest priority that a user's class may have.
const PRIORITY_MAX: i64 = 1_000_000_000;

pub(super) fn config_map(map: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for part in ["data", "binaryData"] {
        for (key, value) in map[part].as_object().into_iter().flatten() {
            let at = field::key(part, key);
            texts(names::check_config_key(key), key, &at, &mut errors);
            if part == "data" && map["binaryData"].get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&at, key.as_str(), detail));
            }
            bytes += text(value).len();
        }
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("", DATA_BYTES_MAX as i64));
    }
    errors
}

pub(super) fn secret(secret: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in secret["data"].as_object().into_iter().flatten() {
        texts(
            names::check_config_key(key),
            key,
            &field::key("data", key),
            &mut errors,
        );
        bytes += text(value).len() / 4 * 3;
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("data", DATA_BYTES_MAX as i64));
    }
    let needed: &[&str] = match text(&secret["type"]) {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        _ => &[],
    };
    for key in needed {
        if secret["data"].get(key).is_none() {
            errors.push(FieldError::required(&field::key("data", key), ""));
        }
    }
    errors
}

/// Data that was once declared immutable stays, and a secret keeps its type.
pub(super) fn immutable_data(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if object["kind"] == "Secret" {
        unchanged(&object["type"], &old["type"], "type", errors);
    }
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", detail));
    }
    for part in ["data", "binaryData"] {
        if object[part] != old[part] {
            errors.push(FieldError::forbidden(part, detail));
        }
    }
}

pub(super) fn service(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &service["spec"];
    let kind = text(&spec["type"]);
    let ports = list(&spec["ports"]);
    let is_headless = text(&spec["clusterIP"]) == "None";
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(&spec["type"], "spec.type", &kinds, &mut errors);
    let affinities = ["ClientIP", "None"];
    one_of(
        &spec["sessionAffinity"],
        "spec.sessionAffinity",
        &affinities,
        &mut errors,
    );
    if is_headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", detail));
    }
    if kind == "ExternalName" && text(&spec["externalName"]).is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    super::meta::labels(&spec["selector"], "spec.selector", &mut errors);
    let mut seen_names = BTreeSet::new();
    let mut seen_ports = BTreeSet::new();
    for (position, port) in ports.iter().enumerate() {
        let at = field::index("spec.ports", position);
        let name = text(&port["name"]);
        let name_at = field::child(&at, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&name_at, ""));
            }
        } else {
            texts(names::check_label(name), name, &name_at, &mut errors);
            if !seen_names.insert(name) {
                errors.push(FieldError::duplicate(&name_at, name));
            }
        }
        let number = port["port"].as_i64().unwrap_or(0);
        port_number(number, &field::child(&at, "port"), &mut errors);
        if kind == "ClusterIP" && port["nodePort"].as_i64().unwrap_or(0) != 0 {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(
                &field::child(&at, "nodePort"),
                detail,
            ));
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        one_of(
            &port["protocol"],
            &field::child(&at, "protocol"),
            &protocols,
            &mut errors,
        );
        let target_at = field::child(&at, "targetPort");
        match &port["targetPort"] {
            Value::Number(target) => {
                port_number(target.as_i64().unwrap_or(0), &target_at, &mut errors);
            }
            Value::String(target) => {
                texts(
                    names::check_port_name(target),
                    target,
                    &target_at,
                    &mut errors,
                );
            }
            _ => {}
        }
        if !seen_ports.insert((text(&port["protocol"]), number)) {
            let value = serde_json::json!({"protocol": port["protocol"], "port": number});
            errors.push(FieldError::duplicate(&at, value));
        }
    }
    errors
}

pub(super) fn service_update(service: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, was) = (&service["spec"], &old["spec"]);
    let had = text(&was["clusterIP"]);
    let keeps = text(&new["type"]) != "ExternalName" && text(&was["type"]) != "ExternalName";
    if keeps && !had.is_empty() && text(&new["clusterIP"]) != had {
        let detail = "may not change once set";
        let shown = new["clusterIPs"].clone();
        errors.push(FieldError::invalid("spec.clusterIPs[0]", shown, detail));
    }
}

pub(super) fn quota(quota: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, amount) in quota["spec"]["hard"].as_object().into_iter().flatten() {
        let at = field::key("spec.hard", name);
        texts(names::check_qualified(name), name, &at, &mut errors);
        amount_not_negative(amount, &at, &mut errors);
    }
    errors
}

pub(super) fn priority_class(class: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, value) = (
        text(&class["metadata"]["name"]),
        class["value"].as_i64().unwrap_or(0),
    );
    let is_system = matches!(
        (name, value),
        ("system-cluster-critical", 2_000_000_000) | ("system-node-critical", 2_000_001_000)
    );
    if name.starts_with("system-") && !is_system {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        errors.push(FieldError::forbidden("metadata.name", detail));
    }
    if value > PRIORITY_MAX && !is_system {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policies = ["Never", "PreemptLowerPriority"];
    one_of(
        &class["preemptionPolicy"],
        "preemptionPolicy",
        &policies,
        &mut errors,
    );
    errors
}

pub(super) fn priority_class_update(class: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if class["value"] != old["value"] {
        errors.push(FieldError::forbidden(
            "value",
            "may not be changed in an update.",
        ));
    }
    if class["preemptionPolicy"] != old["preemptionPolicy"] {
        let shown = class["preemptionPolicy"].clone();
        errors.push(FieldError::invalid(
            "preemptionPolicy",
            shown,
            super::IMMUTABLE,
        ));
    }
}

pub(super) fn event(event: &Value) -> Vec<FieldError> {
    let place = text(&event["involvedObject"]["namespace"]);
    let own = text(&event["metadata"]["namespace"]);
    // Events about cluster-wide things live in the default namespace.
    let fits = if place.is_empty() {
        matches!(own, "" | "default" | "kube-system")
    } else {
        place == own
    };
    if fits {
        return Vec::new();
    }
    let at = "involvedObject.namespace";
    vec![FieldError::invalid(
        at,
        place,
        "does not match event.namespace",
    )]
}
