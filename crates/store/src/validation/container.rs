//! One container of a pod or template.

use std::collections::BTreeSet;

use api::names;
use api::quantity::Quantity;
use serde_json::Value;

use super::{list, not_negative, one_of, text, texts};
use crate::field::{self, FieldError};

/// Checks one container of a pod that has these volumes.
pub(super) fn check_container(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let at = |name: &str| field::child(path, name);
    match text(&container["name"]) {
        "" => errors.push(FieldError::required(&at("name"), "")),
        name => texts(names::check_label(name), name, &at("name"), errors),
    }
    let image = text(&container["image"]);
    if image.is_empty() {
        errors.push(FieldError::required(&at("image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&at("image"), image, detail));
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(
        &container["imagePullPolicy"],
        &at("imagePullPolicy"),
        &policies,
        errors,
    );
    let messages = ["FallbackToLogsOnError", "File"];
    one_of(
        &container["terminationMessagePolicy"],
        &at("terminationMessagePolicy"),
        &messages,
        errors,
    );
    check_ports(container, &at("ports"), errors);
    for (position, one) in list(&container["env"]).iter().enumerate() {
        check_variable(one, &field::index(&at("env"), position), errors);
    }
    check_mounts(container, &at("volumeMounts"), volumes, errors);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            check_probe(&container[probe], probe, &at(probe), errors);
        }
    }
    container_resources(&container["resources"], &at("resources"), errors);
}

/// Fields of a pod that its containers may read.
const READABLE: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn check_variable(variable: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name_at = field::child(path, "name");
    match text(&variable["name"]) {
        "" => errors.push(FieldError::required(&name_at, "")),
        name => texts(names::check_env_name(name), name, &name_at, errors),
    }
    let from = &variable["valueFrom"];
    if !from.is_object() {
        return;
    }
    let from_at = field::child(path, "valueFrom");
    let sources = from.as_object().map_or(0, serde_json::Map::len);
    let wrong = if sources == 0 {
        "must specify one of: `configMapKeyRef`, `fieldRef`, `fileKeyRef`, `resourceFieldRef` or `secretKeyRef`"
    } else if !text(&variable["value"]).is_empty() {
        "may not be specified when `value` is not empty"
    } else if sources > 1 {
        "may not have more than one field specified at a time"
    } else {
        ""
    };
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(&from_at, "", wrong));
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if from[source].is_object() && text(&from[source]["key"]).is_empty() {
            let at = field::child(&field::child(&from_at, source), "key");
            errors.push(FieldError::required(&at, ""));
        }
    }
    if from["fieldRef"].is_object() {
        let at = format!("{from_at}.fieldRef.fieldPath");
        let wanted = text(&from["fieldRef"]["fieldPath"]);
        let is_entry = ["metadata.annotations['", "metadata.labels['"]
            .iter()
            .any(|prefix| wanted.starts_with(prefix) && wanted.ends_with("']"));
        if wanted.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !is_entry && !READABLE.contains(&wanted) {
            let detail = format!("error converting fieldPath: field label not supported: {wanted}");
            errors.push(FieldError::invalid(&at, wanted, detail));
        }
    }
}

fn check_mounts(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let mut mounted = BTreeSet::new();
    for (position, mount) in list(&container["volumeMounts"]).iter().enumerate() {
        let mount_at = field::index(path, position);
        let name = text(&mount["name"]);
        let name_at = field::child(&mount_at, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_at, ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&name_at, name));
        }
        let place = text(&mount["mountPath"]);
        let place_at = field::child(&mount_at, "mountPath");
        if place.is_empty() {
            errors.push(FieldError::required(&place_at, ""));
        }
        if !mounted.insert(place) {
            errors.push(FieldError::invalid(&place_at, place, "must be unique"));
        }
        for name in ["subPath", "subPathExpr"] {
            let inner = text(&mount[name]);
            if !inner.is_empty() {
                check_path(inner, &field::child(&mount_at, name), errors);
            }
        }
    }
}

/// Checks that a path stays below the directory that it is taken from.
pub(super) fn check_path(path: &str, at: &str, errors: &mut Vec<FieldError>) {
    if path.starts_with('/') {
        errors.push(FieldError::invalid(at, path, "must be a relative path"));
    }
    if path.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(at, path, "must not contain '..'"));
    }
}

fn check_probe(probe: &Value, name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let handlers = ["exec", "grpc", "httpGet", "tcpSocket"];
    let count = handlers
        .iter()
        .filter(|handler| probe[**handler].is_object())
        .count();
    if count == 0 {
        let detail = "must specify a handler type";
        errors.push(FieldError::required(path, detail));
    }
    for extra in handlers
        .iter()
        .filter(|handler| probe[**handler].is_object())
        .skip(1)
    {
        let detail = "may not specify more than 1 handler type";
        errors.push(FieldError::forbidden(&field::child(path, extra), detail));
    }
    if probe["exec"].is_object() && list(&probe["exec"]["command"]).is_empty() {
        let at = field::child(&field::child(path, "exec"), "command");
        errors.push(FieldError::required(&at, ""));
    }
    for count in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        not_negative(&probe[count], &field::child(path, count), errors);
    }
    let successes = probe["successThreshold"].as_i64().unwrap_or(1);
    if name != "readinessProbe" && successes > 1 {
        let at = field::child(path, "successThreshold");
        errors.push(FieldError::invalid(&at, successes, "must be 1"));
    }
}

fn check_ports(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (position, port) in list(&container["ports"]).iter().enumerate() {
        let at = field::index(path, position);
        let name = text(&port["name"]);
        let name_at = field::child(&at, "name");
        if !name.is_empty() {
            texts(names::check_port_name(name), name, &name_at, errors);
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&name_at, name));
            }
        }
        let number = port["containerPort"].as_i64().unwrap_or(0);
        let number_at = field::child(&at, "containerPort");
        if number == 0 {
            errors.push(FieldError::required(&number_at, ""));
        } else {
            port_number(number, &number_at, errors);
        }
        if let Some(host) = port["hostPort"].as_i64().filter(|host| *host != 0) {
            port_number(host, &field::child(&at, "hostPort"), errors);
        }
        one_of(
            &port["protocol"],
            &field::child(&at, "protocol"),
            &["SCTP", "TCP", "UDP"],
            errors,
        );
    }
}

/// Checks a port number.
pub(super) fn port_number(number: i64, path: &str, errors: &mut Vec<FieldError>) {
    if !(1..=65_535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path, number, detail));
    }
}

/// Resources that a container may name without a domain.
const CONTAINER_RESOURCES: &[&str] = &["cpu", "ephemeral-storage", "memory"];

/// Checks a container's requests and limits.
fn container_resources(found: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for part in ["limits", "requests"] {
        let part_at = field::child(path, part);
        for (name, amount) in found[part].as_object().into_iter().flatten() {
            let at = field::key(&part_at, name);
            let is_known = name.contains('/')
                || name.starts_with("hugepages-")
                || CONTAINER_RESOURCES.contains(&name.as_str());
            if !is_known {
                for detail in [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                ] {
                    errors.push(FieldError::invalid(&at, name.as_str(), detail));
                }
            }
            let is_whole = || parse(amount).is_none_or(|quantity| quantity.is_whole());
            if is_extended(name) && !is_whole() {
                let detail = "must be an integer";
                errors.push(FieldError::invalid(&at, amount.clone(), detail));
            }
        }
    }
    resources(found, path, errors);
}

/// A resource of somebody else's domain: it has no overcommitment.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

/// Checks requests and limits: no negative amounts, and no request above its limit.
fn resources(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let requests = field::child(path, "requests");
    for part in ["limits", "requests"] {
        let part_at = field::child(path, part);
        for (name, amount) in resources[part].as_object().into_iter().flatten() {
            let at = field::key(&part_at, name);
            texts(names::check_qualified(name), name, &at, errors);
            amount_not_negative(amount, &at, errors);
            if part == "limits" {
                continue;
            }
            let limit = resources["limits"].get(name).and_then(parse);
            match (parse(amount), limit) {
                (Some(request), Some(limit)) => {
                    let (asked, most) = (request.nanos(), limit.nanos());
                    let rule = if is_extended(name) && asked != most {
                        "equal to"
                    } else if asked > most {
                        "less than or equal to"
                    } else {
                        continue;
                    };
                    let detail = format!("must be {rule} {name} limit of {}", limit.canonical());
                    errors.push(FieldError::invalid(&requests, request.canonical(), detail));
                }
                (Some(_), None) if is_extended(name) => {
                    let detail = "Limit must be set for non overcommitable resources";
                    errors.push(FieldError::required(&field::child(path, "limits"), detail));
                }
                _ => {}
            }
        }
    }
}

/// Checks that an amount is not below zero.
pub(super) fn amount_not_negative(amount: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(quantity) = parse(amount).filter(|quantity| quantity.nanos() < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, quantity.canonical(), detail));
    }
}

fn parse(amount: &Value) -> Option<Quantity> {
    amount.as_str().and_then(|text| Quantity::parse(text).ok())
}
