//! Whether a task's pod template could become a pod, by the rules of Kubernetes' core validation
//! that a batch manifest can break: names, images, ports, mounts, amounts and choices.
//!
//! The rest is judged when the pod is made.

mod places;

use std::collections::BTreeSet;

use api::core::ResourceRequirements;
use api::names::{
    check_env_name, check_label, check_label_value, check_port_name, check_qualified,
    check_subdomain,
};
use api::volcano::Task;
use serde::Deserialize;
use serde_json::Value;

use crate::fields::{
    check_amount, duplicate, invalid, invalid_number, is_extended_resource, items, not_found,
    required, text, unsupported,
};

const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const DNS_POLICIES: &[&str] = &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Resources that a container may name without a domain.
const CONTAINER_RESOURCES: &[&str] = &["cpu", "ephemeral-storage", "memory"];

/// `spec.task[i].<complaint>. <complaint>. `, or the rule on whole cpus, or nothing.
pub(super) fn message(index: usize, task: &Task, template: &Value) -> String {
    let mut complaints = Vec::new();
    check(template, &mut complaints);
    if !complaints.is_empty() {
        let text: String = complaints
            .iter()
            .map(|complaint| format!("{complaint}. "))
            .collect();
        return format!("spec.task[{index}].{text}");
    }
    whole_cpus(index, task, &template["spec"]).unwrap_or_default()
}

/// With a NUMA policy every container must ask for whole cpus.
fn whole_cpus(index: usize, task: &Task, spec: &Value) -> Option<String> {
    if matches!(&*task.topology_policy, "" | "none") {
        return None;
    }
    let containers = items(spec, "containers")
        .iter()
        .chain(items(spec, "initContainers"));
    for (id, container) in containers.enumerate() {
        let resources =
            ResourceRequirements::deserialize(&container["resources"]).unwrap_or_default();
        let asked = if resources.requests.is_empty() {
            &resources.limits
        } else {
            &resources.requests
        };
        let cpu = asked.get("cpu").cloned().unwrap_or_default();
        if !cpu.is_whole() || cpu.is_zero() || cpu.is_negative() {
            return Some(format!(
                "the cpu request isn't an integer in spec.task[{index}] container[{id}]."
            ));
        }
    }
    None
}

fn check(template: &Value, complaints: &mut Vec<String>) {
    labels(
        "template.labels",
        &template["metadata"]["labels"],
        complaints,
    );
    let spec = &template["spec"];
    let volumes = volumes(spec, complaints);
    let mut names = BTreeSet::new();
    let containers = items(spec, "containers");
    if containers.is_empty() {
        complaints.push(required("template.spec.containers"));
    }
    for field in ["containers", "initContainers"] {
        for (index, container) in items(spec, field).iter().enumerate() {
            let path = format!("template.spec.{field}[{index}]");
            let name = text(container, "name");
            if !name.is_empty() && !names.insert(name) {
                complaints.push(duplicate(&format!("{path}.name"), name));
            }
            check_container(&path, container, &volumes, complaints);
        }
    }
    choice(
        "template.spec.restartPolicy",
        text(spec, "restartPolicy"),
        RESTART_POLICIES,
        complaints,
    );
    choice(
        "template.spec.dnsPolicy",
        text(spec, "dnsPolicy"),
        DNS_POLICIES,
        complaints,
    );
    if let Some(grace) = spec["terminationGracePeriodSeconds"].as_i64()
        && grace < 0
    {
        complaints.push(invalid_number(
            "template.spec.terminationGracePeriodSeconds",
            grace,
            "must be greater than or equal to 0",
        ));
    }
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        complaints.push(invalid_number(
            "template.spec.activeDeadlineSeconds",
            deadline,
            "must be between 1 and 2147483647, inclusive",
        ));
    }
    labels(
        "template.spec.nodeSelector",
        &spec["nodeSelector"],
        complaints,
    );
    named(spec, "serviceAccountName", check_subdomain, complaints);
    named(spec, "priorityClassName", check_subdomain, complaints);
    named(spec, "hostname", check_label, complaints);
    named(spec, "subdomain", check_label, complaints);
}

fn named(spec: &Value, field: &str, rule: fn(&str) -> Vec<String>, complaints: &mut Vec<String>) {
    let name = text(spec, field);
    if !name.is_empty() {
        for complaint in rule(name) {
            complaints.push(invalid(&format!("template.spec.{field}"), name, &complaint));
        }
    }
}

fn choice(path: &str, value: &str, supported: &[&str], complaints: &mut Vec<String>) {
    // The empty text is defaulted before Kubernetes looks at it.
    if !value.is_empty() && !supported.contains(&value) {
        complaints.push(unsupported(path, value, supported));
    }
}

fn labels(path: &str, labels: &Value, complaints: &mut Vec<String>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for complaint in check_qualified(key) {
            complaints.push(invalid(path, key, &complaint));
        }
        let value = value.as_str().unwrap_or_default();
        for complaint in check_label_value(value) {
            complaints.push(invalid(path, value, &complaint));
        }
    }
}

/// The names of the volumes.
fn volumes<'a>(spec: &'a Value, complaints: &mut Vec<String>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let path = format!("template.spec.volumes[{index}]");
        places::volume(&path, volume, complaints);
        let path = format!("{path}.name");
        let name = text(volume, "name");
        if name.is_empty() {
            complaints.push(required(&path));
            continue;
        }
        for complaint in check_label(name) {
            complaints.push(invalid(&path, name, &complaint));
        }
        if !names.insert(name) {
            complaints.push(duplicate(&path, name));
        }
    }
    names
}

fn check_container(
    path: &str,
    container: &Value,
    volumes: &BTreeSet<&str>,
    complaints: &mut Vec<String>,
) {
    let name = text(container, "name");
    if name.is_empty() {
        complaints.push(required(&format!("{path}.name")));
    } else {
        for complaint in check_label(name) {
            complaints.push(invalid(&format!("{path}.name"), name, &complaint));
        }
    }
    let image = text(container, "image");
    if image.is_empty() {
        complaints.push(required(&format!("{path}.image")));
    } else if image.trim() != image {
        complaints.push(invalid(
            &format!("{path}.image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    let pull = text(container, "imagePullPolicy");
    choice(
        &format!("{path}.imagePullPolicy"),
        pull,
        PULL_POLICIES,
        complaints,
    );
    ports(path, container, complaints);
    for (index, variable) in items(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        places::variable(&path, variable, complaints);
        let path = format!("{path}.name");
        let name = text(variable, "name");
        if name.is_empty() {
            complaints.push(required(&path));
        } else {
            for complaint in check_env_name(name) {
                complaints.push(invalid(&path, name, &complaint));
            }
        }
    }
    mounts(path, container, volumes, complaints);
    amounts(
        &format!("{path}.resources"),
        &container["resources"],
        complaints,
    );
}

fn ports(path: &str, container: &Value, complaints: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for (index, port) in items(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let name_path = format!("{path}.name");
            let faults = check_port_name(name);
            if faults.is_empty() && !names.insert(name) {
                complaints.push(duplicate(&name_path, name));
            }
            for complaint in faults {
                complaints.push(invalid(&name_path, name, &complaint));
            }
        }
        for (field, optional) in [("containerPort", false), ("hostPort", true)] {
            let number = port[field].as_i64().unwrap_or(0);
            if number == 0 {
                if !optional {
                    complaints.push(required(&format!("{path}.{field}")));
                }
            } else if !(1..=65_535).contains(&number) {
                complaints.push(invalid_number(
                    &format!("{path}.{field}"),
                    number,
                    "must be between 1 and 65535, inclusive",
                ));
            }
        }
        choice(
            &format!("{path}.protocol"),
            text(port, "protocol"),
            PROTOCOLS,
            complaints,
        );
    }
}

fn mounts(path: &str, container: &Value, volumes: &BTreeSet<&str>, complaints: &mut Vec<String>) {
    let mut paths = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = text(mount, "name");
        if name.is_empty() {
            complaints.push(required(&format!("{path}.name")));
        } else if !volumes.contains(name) {
            complaints.push(not_found(&format!("{path}.name"), name));
        }
        places::mount(&path, mount, complaints);
        let place = text(mount, "mountPath");
        if place.is_empty() {
            complaints.push(required(&format!("{path}.mountPath")));
        } else if !paths.insert(place) {
            complaints.push(invalid(
                &format!("{path}.mountPath"),
                place,
                "must be unique",
            ));
        }
    }
}

fn amounts(path: &str, resources: &Value, complaints: &mut Vec<String>) {
    let read = match ResourceRequirements::deserialize(resources) {
        Ok(read) => read,
        Err(_) if resources.is_null() => return,
        Err(error) => {
            complaints.push(format!("{path}: {error}"));
            return;
        }
    };
    for (field, list) in [("limits", &read.limits), ("requests", &read.requests)] {
        for (name, amount) in list {
            let path = format!("{path}.{field}[{name}]");
            for complaint in check_qualified(name) {
                complaints.push(invalid(&path, name, &complaint));
            }
            if !name.contains('/')
                && !CONTAINER_RESOURCES.contains(&&**name)
                && !name.starts_with("hugepages-")
            {
                complaints.push(invalid(
                    &path,
                    name,
                    "must be a standard resource type or fully qualified",
                ));
                complaints.push(invalid(
                    &path,
                    name,
                    "must be a standard resource for containers",
                ));
            }
            check_amount(&path, name, amount, complaints);
        }
    }
    for (name, asked) in &read.requests {
        let path = format!("{path}.requests");
        match read.limits.get(name) {
            Some(limit) if is_extended_resource(name) && asked != limit => {
                complaints.push(invalid(
                    &path,
                    &asked.to_string(),
                    &format!("must be equal to {name} limit of {limit}"),
                ));
            }
            Some(limit) if asked > limit => complaints.push(invalid(
                &path,
                &asked.to_string(),
                &format!("must be less than or equal to {name} limit of {limit}"),
            )),
            None if is_extended_resource(name) => complaints.push(format!(
                "{}: Required value: Limit must be set for non overcommitable resources",
                path.replace(".requests", ".limits")
            )),
            _ => {}
        }
    }
}
