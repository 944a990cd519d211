//! Pods and pod templates.

use std::collections::BTreeSet;

use api::names;
use serde_json::{Value, json};

use super::container::{check_container, check_path};
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
    for source in ["configMap", "downwardAPI", "secret"] {
        let at = field::child(&field::child(path, source), "items");
        check_items(&volume[source]["items"], &at, errors);
    }
    let projected = field::child(path, "projected.sources");
    for (position, source) in list(&volume["projected"]["sources"]).iter().enumerate() {
        let at = field::index(&projected, position);
        for name in ["configMap", "downwardAPI", "secret"] {
            let at = field::child(&field::child(&at, name), "items");
            check_items(&source[name]["items"], &at, errors);
        }
    }
}

/// Checks where a volume's files are to be put.
fn check_items(items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (position, item) in list(items).iter().enumerate() {
        let at = field::child(&field::index(path, position), "path");
        match text(&item["path"]) {
            "" => errors.push(FieldError::required(&at, "")),
            place => check_path(place, &at, errors),
        }
    }
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
    let tolerations: BTreeSet<String> = list(&new["tolerations"])
        .iter()
        .map(Value::to_string)
        .collect();
    if !kept
        .iter()
        .all(|one| tolerations.contains(&one.to_string()))
    {
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
