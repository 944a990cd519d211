//! What the definition of JobFlows fills into a patch where nothing was said: over a template it means nothing.
//!
//! Whoever writes such a value down is not told apart from whoever does not, so the template's counts. Where
//! the template says nothing either, the definition of jobs fills in the same.

use api::volcano::DEFAULT_QUEUE;
use serde_json::Value;

/// What a field is by default.
enum Filling {
    Flag(bool),
    Number(i64),
    Text(&'static str),
}

use Filling::{Flag, Number, Text};

/// Fields with a default, each with the places below `jobSpec` where it stands: `*` is any item of a list,
/// `(containers)` each of the three lists of containers.
const FILLED: &[(&str, Filling, &[&str])] = &[
    // Volcano's own.
    ("maxRetry", Number(3), &[""]),
    ("queue", Text(DEFAULT_QUEUE), &[""]),
    ("minPartitions", Number(0), &["tasks/*/partitionPolicy"]),
    (
        "mode",
        Text("hard"),
        &["networkTopology", "tasks/*/partitionPolicy/networkTopology"],
    ),
    // Kubernetes', of containers.
    (
        "name",
        Text(""),
        &[
            "tasks/*/template/spec/(containers)/*/env/*/valueFrom/configMapKeyRef",
            "tasks/*/template/spec/(containers)/*/env/*/valueFrom/secretKeyRef",
            "tasks/*/template/spec/(containers)/*/envFrom/*/configMapRef",
            "tasks/*/template/spec/(containers)/*/envFrom/*/secretRef",
        ],
    ),
    (
        "optional",
        Flag(false),
        &["tasks/*/template/spec/(containers)/*/env/*/valueFrom/fileKeyRef"],
    ),
    (
        "protocol",
        Text("TCP"),
        &["tasks/*/template/spec/(containers)/*/ports/*"],
    ),
    (
        "service",
        Text(""),
        &[
            "tasks/*/template/spec/(containers)/*/livenessProbe/grpc",
            "tasks/*/template/spec/(containers)/*/readinessProbe/grpc",
            "tasks/*/template/spec/(containers)/*/startupProbe/grpc",
        ],
    ),
    // Kubernetes', of pods and their volumes.
    (
        "name",
        Text(""),
        &[
            "tasks/*/template/spec/imagePullSecrets/*",
            "tasks/*/template/spec/volumes/*/cephfs/secretRef",
            "tasks/*/template/spec/volumes/*/cinder/secretRef",
            "tasks/*/template/spec/volumes/*/configMap",
            "tasks/*/template/spec/volumes/*/csi/nodePublishSecretRef",
            "tasks/*/template/spec/volumes/*/flexVolume/secretRef",
            "tasks/*/template/spec/volumes/*/iscsi/secretRef",
            "tasks/*/template/spec/volumes/*/projected/sources/*/configMap",
            "tasks/*/template/spec/volumes/*/projected/sources/*/secret",
            "tasks/*/template/spec/volumes/*/rbd/secretRef",
            "tasks/*/template/spec/volumes/*/scaleIO/secretRef",
            "tasks/*/template/spec/volumes/*/storageos/secretRef",
        ],
    ),
    ("cachingMode", Text("ReadWrite"), &[AZURE_DISK]),
    ("fsType", Text("ext4"), &[AZURE_DISK]),
    ("kind", Text("Shared"), &[AZURE_DISK]),
    ("readOnly", Flag(false), &[AZURE_DISK]),
    (
        "iscsiInterface",
        Text("default"),
        &["tasks/*/template/spec/volumes/*/iscsi"],
    ),
    ("keyring", Text("/etc/ceph/keyring"), &[RBD]),
    ("pool", Text("rbd"), &[RBD]),
    ("user", Text("admin"), &[RBD]),
    ("fsType", Text("xfs"), &[SCALE_IO]),
    ("storageMode", Text("ThinProvisioned"), &[SCALE_IO]),
];

const AZURE_DISK: &str = "tasks/*/template/spec/volumes/*/azureDisk";
const RBD: &str = "tasks/*/template/spec/volumes/*/rbd";
const SCALE_IO: &str = "tasks/*/template/spec/volumes/*/scaleIO";

const CONTAINERS: &[&str] = &["containers", "ephemeralContainers", "initContainers"];

/// Takes from a patch what stands in it by default.
pub(super) fn take_away(patch: &mut Value) {
    for (field, default, places) in FILLED {
        for place in *places {
            let steps: Vec<&str> = place.split('/').filter(|step| !step.is_empty()).collect();
            take_at(patch, &steps, field, default);
        }
    }
}

fn take_at(value: &mut Value, steps: &[&str], field: &str, default: &Filling) {
    match (steps, value) {
        ([], Value::Object(fields)) if fields.get(field).is_some_and(|value| default.is(value)) => {
            fields.remove(field);
        }
        (["*", rest @ ..], Value::Array(items)) => {
            for item in items {
                take_at(item, rest, field, default);
            }
        }
        ([step, rest @ ..], Value::Object(fields)) => {
            for (_, inner) in fields.iter_mut().filter(|(name, _)| is_at(step, name)) {
                take_at(inner, rest, field, default);
            }
        }
        _ => {}
    }
}

fn is_at(step: &str, name: &str) -> bool {
    match step {
        "(containers)" => CONTAINERS.contains(&name),
        step => step == name,
    }
}

impl Filling {
    fn is(&self, value: &Value) -> bool {
        match *self {
            Flag(flag) => *value == flag,
            Number(number) => *value == number,
            Text(text) => *value == text,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::json;

    use super::*;

    const DEFINITION: &str =
        include_str!("../../../store/wire/volcano/flow.volcano.sh_jobflows.yaml");
    /// Kubernetes' own types, one a line.
    const TYPES: &str = include_str!("../../../store/wire/kubernetes/schemas.jsonl");
    const PATCH: &str = "/versions/0/schema/properties/spec/properties/flows/items/properties/patch/properties/jobSpec";

    /// Path and default of every field that is filled in.
    #[derive(Default)]
    struct Found {
        types: BTreeMap<String, Value>,
        all: BTreeSet<(String, String)>,
    }

    impl Found {
        /// `is_own`: Volcano's, not a type of Kubernetes, whose defaults are also what Go prints for nothing.
        fn look(&mut self, schema: &Value, path: &str, is_own: bool) {
            if let Some(name) = schema["$kubernetes"].as_str() {
                return self.look_named(&format!("io.k8s.api.core.v1.{name}"), path);
            }
            if let Some(name) = schema["$ref"].as_str() {
                return self.look_named(name, path);
            }
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}/{name}");
                let default = &field["default"];
                let mut required = schema["required"].as_array().into_iter().flatten();
                let is_required = required.any(|it| it == name);
                let is_nothing = [json!(0), json!(""), json!(false)].contains(default);
                let is_meant = is_own || !is_nothing || !is_required;
                if !default.is_null() && *default != json!({}) && is_meant {
                    self.all.insert((path.clone(), default.to_string()));
                }
                self.look(field, &path, is_own);
            }
            for part in schema["allOf"].as_array().into_iter().flatten() {
                self.look(part, path, is_own);
            }
            if schema["items"].is_object() {
                self.look(&schema["items"], &format!("{path}/*"), is_own);
            }
        }

        fn look_named(&mut self, name: &str, path: &str) {
            let schema = self.types.get(name).cloned();
            self.look(&schema.expect("a type that is there"), path, false);
        }
    }

    #[test]
    fn what_the_definition_fills_into_a_patch_is_known() {
        let definition: Value = serde_saphyr::from_str(DEFINITION).expect("YAML");
        let types = TYPES
            .lines()
            .flat_map(|line| serde_json::from_str::<BTreeMap<String, Value>>(line).expect("JSON"));
        let mut found = Found {
            types: types.collect(),
            ..Found::default()
        };
        let patch = definition.pointer(PATCH).expect("the schema of a patch");
        found.look(patch, "", true);
        let mut known = BTreeSet::new();
        for (field, default, places) in FILLED {
            let default = match *default {
                Flag(flag) => json!(flag),
                Number(number) => json!(number),
                Text(text) => json!(text),
            };
            for place in *places {
                let lists = match place.contains("(containers)") {
                    true => CONTAINERS,
                    false => &[""],
                };
                for list in lists {
                    let place = place.replace("(containers)", list);
                    let path = format!("/{place}/{field}").replace("//", "/");
                    known.insert((path, default.to_string()));
                }
            }
        }
        assert_eq!(found.all, known);
    }
}
