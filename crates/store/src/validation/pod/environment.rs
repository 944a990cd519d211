//! What a container reads into its environment, and fields that files may hold.

use api::names;

use super::volume::no_backsteps;
use crate::validation::spot::{Faults, Spot};

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

/// Fields of a pod that have a name here at all.
const NAMED: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// A container's own resources that it may read.
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What checks a source of a variable.
type Rule = fn(&Spot<'_, '_>, &mut Faults);

/// Checks the variables of a container.
pub(super) fn variables(list: &Spot<'_, '_>, faults: &mut Faults) {
    for variable in list.items() {
        faults.need_name(&variable.at("name"), names::check_env_name);
        let from = variable.at("valueFrom");
        if from.is_there() {
            source(&from, !variable.at("value").is_empty(), faults);
        }
    }
}

fn source(from: &Spot<'_, '_>, has_value: bool, faults: &mut Faults) {
    let mut count = 0;
    let rules: [(&str, Rule); 5] = [
        ("fieldRef", |at, faults| {
            field_reference(at, READABLE, faults)
        }),
        ("resourceFieldRef", resource_reference),
        ("configMapKeyRef", key_reference),
        ("secretKeyRef", key_reference),
        ("fileKeyRef", file_reference),
    ];
    for (kind, rule) in rules {
        let at = from.at(kind);
        if at.is_there() {
            count += 1;
            rule(&at, faults);
        }
    }
    let detail = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    faults.invalid_as(from, "", detail);
}

/// `metadata.labels['key']` as its two parts.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Checks a reference to a field of the pod.
pub(super) fn field_reference(at: &Spot<'_, '_>, allowed: &[&str], faults: &mut Faults) {
    let version = at.at("apiVersion");
    if version.is_empty() {
        return faults.required(&version, "");
    }
    let path = at.at("fieldPath");
    if path.is_empty() {
        return faults.required(&path, "");
    }
    let entry = subscript(path.text());
    let unknown = match (version.text(), entry) {
        ("v1", Some(("metadata.annotations" | "metadata.labels", _))) => None,
        ("v1", Some(_)) => Some(format!(
            "field label does not support subscript: {}",
            path.text()
        )),
        ("v1", None) if NAMED.contains(&path.text()) || path.text() == "spec.host" => None,
        ("v1", None) => Some(format!("field label not supported: {}", path.text())),
        (other, _) => Some(format!("unsupported pod version: {other}")),
    };
    if let Some(why) = unknown {
        let detail = format!("error converting fieldPath: {why}");
        return faults.invalid_as(&path, path.text(), detail);
    }
    match entry {
        Some(("metadata.annotations", key)) => {
            for detail in names::check_qualified(&key.to_lowercase()) {
                faults.invalid_as(at, key.to_lowercase(), detail);
            }
        }
        Some((_, key)) => faults.name_as(at, key, names::check_qualified),
        None if allowed.contains(&path.text()) => {}
        None => faults.not_supported(&path, allowed),
    }
}

/// Checks a reference to a resource of a container.
pub(super) fn resource_reference(at: &Spot<'_, '_>, faults: &mut Faults) {
    let resource = at.at("resource");
    let name = resource.text();
    let is_huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    if name.is_empty() {
        faults.required(&resource, "");
    } else if !RESOURCES.contains(&name) && !is_huge {
        faults.not_supported(&resource, RESOURCES);
    }
    divisor(at, name, is_huge, faults);
}

/// Units of memory.
const UNITS: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

fn divisor(at: &Spot<'_, '_>, name: &str, is_huge: bool, faults: &mut Faults) {
    let divisor = at.at("divisor");
    let Some(unit) = divisor.quantity().filter(|unit| unit.nanos() != 0) else {
        return;
    };
    let unit = unit.canonical();
    let (known, which): (&[&str], &str) = match name.split_once('.') {
        Some((_, "cpu")) => (&["1m", "1"], "cpu"),
        Some((_, "memory")) => (UNITS, "memory"),
        Some((_, "ephemeral-storage")) => (UNITS, "local ephemeral storage"),
        _ if is_huge => (UNITS, "hugepages"),
        _ => return,
    };
    if !known.contains(&unit.as_str()) {
        let values = match which {
            "cpu" => "1m and 1".to_owned(),
            _ => UNITS.join(", "),
        };
        let detail =
            format!("only divisor's values {values} are supported with the {which} resource");
        faults.invalid_as(&divisor, name, detail);
    }
}

fn key_reference(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.name(&at.at("name"), names::check_subdomain);
    faults.need_name(&at.at("key"), names::check_config_key);
}

fn file_reference(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need_name(&at.at("key"), names::check_env_name);
    faults.need_name(&at.at("volumeName"), names::check_label);
    let path = at.at("path");
    if path.is_empty() {
        faults.required(&path, "");
    } else {
        no_backsteps(&path, path.text(), faults);
    }
}

/// Checks whole maps that are read into the environment.
pub(super) fn maps(list: &Spot<'_, '_>, faults: &mut Faults) {
    for map in list.items() {
        faults.name_if(&map.at("prefix"), names::check_env_name);
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let reference = map.at(kind);
            if reference.is_there() {
                count += 1;
                faults.need_name(&reference.at("name"), names::check_subdomain);
            }
        }
        let detail = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        faults.invalid_as(list, "", detail);
    }
}
