//! Pods and pod templates.

use std::collections::BTreeSet;

use api::names;
use api::quantity::Quantity;
use serde_json::{Value, json};

use super::meta::labels;
use super::{list, not_negative, one_of, text, texts};
use crate::field::{self, FieldError};

/// What may change in a pod, as the real server lists it.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a pod's spec, its own or a template's.
pub(super) fn spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let at = |name: &str| field::child(path, name);
    let mut volumes = BTreeSet::new();
    for (position, volume) in list(&spec["volumes"]).iter().enumerate() {
        let path = field::index(&at("volumes"), position);
        check_volume(volume, &path, &mut volumes, &mut errors);
    }
    let containers = list(&spec["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(&at("containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        for (position, container) in list(&spec[kind]).iter().enumerate() {
            let path = field::index(&at(kind), position);
            check_container(container, &path, &volumes, &mut errors);
            let name = text(&container["name"]);
            if !name.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(&field::child(&path, "name"), name));
            }
        }
    }
    one_of(
        &spec["restartPolicy"],
        &at("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &mut errors,
    );
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&spec["dnsPolicy"], &at("dnsPolicy"), &dns, &mut errors);
    labels(&spec["nodeSelector"], &at("nodeSelector"), &mut errors);
    not_negative(
        &spec["terminationGracePeriodSeconds"],
        &at("terminationGracePeriodSeconds"),
        &mut errors,
    );
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(
            &at("activeDeadlineSeconds"),
            seconds,
            detail,
        ));
    }
    for name in ["hostname", "subdomain"] {
        let value = text(&spec[name]);
        if !value.is_empty() {
            texts(names::check_label(value), value, &at(name), &mut errors);
        }
    }
    for name in ["nodeName", "priorityClassName", "serviceAccountName"] {
        let value = text(&spec[name]);
        if !value.is_empty() {
            texts(names::check_subdomain(value), value, &at(name), &mut errors);
        }
    }
    for (position, toleration) in list(&spec["tolerations"]).iter().enumerate() {
        check_toleration(
            toleration,
            &field::index(&at("tolerations"), position),
            &mut errors,
        );
    }
    errors
}

fn check_volume<'a>(
    volume: &'a Value,
    path: &str,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(&volume["name"]);
    let name_at = field::child(path, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&name_at, ""));
    } else {
        texts(names::check_label(name), name, &name_at, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_at, name));
        }
    }
    let sources = volume.as_object().into_iter().flatten();
    for (source, _) in sources.filter(|(key, _)| *key != "name").skip(1) {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(&field::child(path, source), detail));
    }
    for (source, needed) in [
        ("configMap", "name"),
        ("hostPath", "path"),
        ("persistentVolumeClaim", "claimName"),
        ("secret", "secretName"),
    ] {
        if volume[source].is_object() && text(&volume[source][needed]).is_empty() {
            let at = field::child(&field::child(path, source), needed);
            errors.push(FieldError::required(&at, ""));
        }
    }
}

fn check_container(
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
    if text(&container["image"]).is_empty() {
        errors.push(FieldError::required(&at("image"), ""));
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
        let name_at = field::child(&field::index(&at("env"), position), "name");
        match text(&one["name"]) {
            "" => errors.push(FieldError::required(&name_at, "")),
            name => texts(names::check_env_name(name), name, &name_at, errors),
        }
    }
    let mut mounted = BTreeSet::new();
    for (position, mount) in list(&container["volumeMounts"]).iter().enumerate() {
        let mount_at = field::index(&at("volumeMounts"), position);
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
    }
    container_resources(&container["resources"], &at("resources"), errors);
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

fn check_toleration(toleration: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (key, operator) = (text(&toleration["key"]), text(&toleration["operator"]));
    let at = |name: &str| field::child(path, name);
    if !key.is_empty() {
        texts(names::check_qualified(key), key, &at("key"), errors);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&at("operator"), operator, detail));
    }
    if !matches!(operator, "" | "Equal" | "Exists") {
        errors.push(FieldError::not_supported(
            &at("operator"),
            operator,
            &["Equal", "Exists"],
        ));
    }
    let effect = text(&toleration["effect"]);
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effect.is_empty() && !effects.contains(&effect) {
        errors.push(FieldError::not_supported(&at("effect"), effect, &effects));
    }
}

/// Checks that a changed pod changes only what it may.
pub(super) fn update(pod: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (new, was) = (&pod["spec"], &old["spec"]);
    if list(&new["containers"]).len() != list(&was["containers"]).len() {
        let detail = "pod updates may not add or remove containers";
        return vec![FieldError::forbidden("spec.containers", detail)];
    }
    for (position, container) in list(&new["containers"]).iter().enumerate() {
        if text(&container["image"]).is_empty() {
            let at = field::index("spec.containers", position);
            errors.push(FieldError::required(&field::child(&at, "image"), ""));
        }
    }
    let kept = list(&was["tolerations"]);
    let tolerations = list(&new["tolerations"]);
    if !kept.iter().all(|one| tolerations.contains(one)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", detail));
    }
    // What may change is made equal; any difference left is forbidden.
    let mut munged = new.clone();
    for kind in ["containers", "initContainers"] {
        let olds = list(&was[kind]);
        let news = munged.get_mut(kind).and_then(Value::as_array_mut);
        for (container, old) in news.into_iter().flatten().zip(olds) {
            container["image"] = old["image"].clone();
        }
    }
    let is_gated = !list(&was["schedulingGates"]).is_empty();
    let mut free = vec!["activeDeadlineSeconds", "tolerations"];
    if is_gated {
        free.extend(["schedulingGates", "nodeSelector", "affinity"]);
    }
    if was["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0)
        && new["terminationGracePeriodSeconds"] == json!(1)
    {
        free.push("terminationGracePeriodSeconds");
    }
    if let Some(map) = munged.as_object_mut() {
        for name in free {
            match was.get(name) {
                Some(value) => map.insert(name.to_owned(), value.clone()),
                None => map.remove(name),
            };
        }
    }
    if munged != *was {
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n");
        errors.push(FieldError::forbidden("spec", detail));
    }
    errors
}
