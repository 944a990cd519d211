//! Where files are put and read: paths stay below their directory, variables name one source.

use serde_json::Value;

use crate::fields::{invalid, items, required, text};

/// Files of volumes, and where they come from.
pub(super) fn volume(path: &str, volume: &Value, complaints: &mut Vec<String>) {
    for source in ["configMap", "downwardAPI", "secret"] {
        let path = format!("{path}.{source}.items");
        files(&path, items(&volume[source], "items"), complaints);
    }
    let sources = items(&volume["projected"], "sources");
    for (index, projected) in sources.iter().enumerate() {
        for source in ["configMap", "downwardAPI", "secret"] {
            let path = format!("{path}.projected.sources[{index}].{source}.items");
            files(&path, items(&projected[source], "items"), complaints);
        }
    }
    for (source, needed) in [
        ("hostPath", "path"),
        ("persistentVolumeClaim", "claimName"),
        ("secret", "secretName"),
    ] {
        if volume[source].is_object() && text(&volume[source], needed).is_empty() {
            complaints.push(required(&format!("{path}.{source}.{needed}")));
        }
    }
}

/// The part of a volume that is mounted.
pub(super) fn mount(path: &str, mount: &Value, complaints: &mut Vec<String>) {
    for field in ["subPath", "subPathExpr"] {
        let inner = text(mount, field);
        if !inner.is_empty() {
            below(&format!("{path}.{field}"), inner, complaints);
        }
    }
}

/// Where a variable's value comes from.
pub(super) fn variable(path: &str, variable: &Value, complaints: &mut Vec<String>) {
    let from = &variable["valueFrom"];
    let Some(sources) = from.as_object().map(serde_json::Map::len) else {
        return;
    };
    let path = format!("{path}.valueFrom");
    if sources == 0 {
        let detail = "must specify one of: `configMapKeyRef`, `fieldRef`, `fileKeyRef`, `resourceFieldRef` or `secretKeyRef`";
        complaints.push(invalid(&path, "", detail));
    } else if !text(variable, "value").is_empty() {
        let detail = "may not be specified when `value` is not empty";
        complaints.push(invalid(&path, "", detail));
    } else if sources > 1 {
        let detail = "may not have more than one field specified at a time";
        complaints.push(invalid(&path, "", detail));
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if from[source].is_object() && text(&from[source], "key").is_empty() {
            complaints.push(required(&format!("{path}.{source}.key")));
        }
    }
}

fn files(path: &str, files: &[Value], complaints: &mut Vec<String>) {
    for (index, file) in files.iter().enumerate() {
        let path = format!("{path}[{index}].path");
        match text(file, "path") {
            "" => complaints.push(required(&path)),
            place => below(&path, place, complaints),
        }
    }
}

fn below(path: &str, place: &str, complaints: &mut Vec<String>) {
    if place.starts_with('/') {
        complaints.push(invalid(path, place, "must be a relative path"));
    }
    if place.split('/').any(|part| part == "..") {
        complaints.push(invalid(path, place, "must not contain '..'"));
    }
}
