//! Metadata of every object.

use api::names;
use serde_json::Value;

use super::{list, text, texts};
use crate::field::{self, FieldError};

/// Most bytes of all annotations together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Checks the metadata of a new or changed object; the namespace is the address's business.
pub fn metadata(group: &str, kind: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let meta = &object["metadata"];
    let name = text(&meta["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        texts(
            name_rule(group, kind, name),
            name,
            "metadata.name",
            &mut errors,
        );
    }
    labels(&meta["labels"], "metadata.labels", &mut errors);
    annotations(&meta["annotations"], "metadata.annotations", &mut errors);
    owners(meta, &mut errors);
    for finalizer in list(&meta["finalizers"]) {
        let finalizer = text(finalizer);
        let wrong = names::check_qualified(finalizer);
        texts(wrong, finalizer, "metadata.finalizers", &mut errors);
    }
    errors
}

fn name_rule(group: &str, kind: &str, name: &str) -> Vec<String> {
    match (group, kind) {
        ("", "Namespace") => names::check_label(name),
        ("", "Service") => names::check_label_1035(name),
        ("rbac.authorization.k8s.io", _) => names::check_path_segment(name),
        _ => names::check_subdomain(name),
    }
}

/// Checks a map of labels.
pub(super) fn labels(labels: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        texts(names::check_qualified(key), key, path, errors);
        let value = text(value);
        texts(names::check_label_value(value), value, path, errors);
    }
}

fn annotations(annotations: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // Annotations may be written in capitals.
        texts(
            names::check_qualified(&key.to_lowercase()),
            key,
            path,
            errors,
        );
        bytes += key.len() + text(value).len();
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATION_BYTES_MAX as i64));
    }
}

fn owners(meta: &Value, errors: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let owners = list(&meta["ownerReferences"]);
    for owner in owners {
        let missing = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (part, detail) in missing {
            if text(&owner[part]).is_empty() {
                errors.push(FieldError::invalid(&field::child(path, part), "", detail));
            }
        }
    }
    let controllers: Vec<&str> = owners
        .iter()
        .filter(|owner| owner["controller"] == true)
        .map(|owner| text(&owner["name"]))
        .collect();
    if let [first, second, ..] = controllers[..] {
        errors.push(FieldError::invalid(
            path,
            Value::Array(owners.to_vec()),
            format!("Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"),
        ));
    }
}
