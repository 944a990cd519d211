//! Built-in types inside custom resources: `$kubernetes: PodTemplateSpec` and its like.

use serde_json::{Map, Value, json};

use crate::wire::Wire;

/// The metadata of every object.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Types with a JSON form of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    IntOrString,
    MicroTime,
    /// Any JSON: raw extensions, managed fields, default values in schemas.
    Opaque,
    Quantity,
    /// A pod template or claim template, whose metadata is cut down inside custom resources.
    Template,
    Time,
}

/// Which special type a definition is.
pub(crate) fn leaf(name: &str) -> Option<Leaf> {
    let leaf = match name.rsplit('.').next().unwrap_or(name) {
        "IntOrString" => Leaf::IntOrString,
        "MicroTime" => Leaf::MicroTime,
        "FieldsV1"
        | "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray"
        | "RawExtension" => Leaf::Opaque,
        "Quantity" => Leaf::Quantity,
        "PersistentVolumeClaimTemplate" | "PodTemplateSpec" => Leaf::Template,
        "Time" => Leaf::Time,
        _ => return None,
    };
    Some(leaf)
}

/// The definition that `$kubernetes: X` stands for.
pub(crate) fn structural_name(short: &str) -> String {
    match short {
        "Condition" | "LabelSelector" => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{short}"),
        _ => format!("io.k8s.api.core.v1.{short}"),
    }
}

/// The metadata fields that a template inside a custom resource keeps.
pub(crate) fn is_template_meta(name: &str) -> bool {
    matches!(
        name,
        "annotations" | "finalizers" | "labels" | "name" | "namespace"
    )
}

/// Whether Go leaves out a list or map of this type where it is empty, though it is required.
pub(crate) fn leaves_out(short: &str, field: &str) -> bool {
    short == "ValidatingAdmissionPolicyBindingSpec" && field == "validationActions"
}

/// Whether Go prints a time of this type also where it is unset: those that are no pointers.
pub(crate) fn prints_time(short: &str, field: &str) -> bool {
    match short {
        "ContainerStateRunning" | "ContainerStateTerminated" => true,
        "Event" => matches!(
            field,
            "deprecatedFirstTimestamp"
                | "deprecatedLastTimestamp"
                | "eventTime"
                | "firstTimestamp"
                | "lastTimestamp"
        ),
        "EventSeries" => field == "lastObservedTime",
        "TokenRequestStatus" => field == "expirationTimestamp",
        "VolumeError" => field == "time",
        other => other.ends_with("Condition"),
    }
}

/// A value that Go prints for an unset field.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The default of a field of a built-in type, if its author wrote it down. Go's own zero values are
/// defaults of required fields and of parts; an empty text that may be left out is meant.
pub(crate) fn written_default<'a>(
    definition: &Map<String, Value>,
    name: &str,
    field: &'a Value,
) -> Option<&'a Value> {
    let default = field.get("default")?;
    let required = definition.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten();
    let meant = !default.is_object() && !required.any(|one| one == name);
    (meant || !is_zero(default)).then_some(default)
}

/// The whole structural schema as JSON, with every built-in type written out.
pub(crate) fn expand(schema: &Value, wire: &Wire) -> Value {
    expand_at(schema, wire, Inside::Custom, 0)
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Custom,
    Builtin,
    TemplateMeta,
}

fn expand_at(schema: &Value, wire: &Wire, inside: Inside, depth: usize) -> Value {
    if depth > 60 {
        return json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    match schema {
        Value::Array(list) => list
            .iter()
            .map(|inner| expand_at(inner, wire, inside, depth + 1))
            .collect(),
        Value::Object(map) => {
            let short = map.get("$kubernetes").and_then(Value::as_str);
            if let Some(name) = short.map(structural_name) {
                return named(&name, wire, Inside::Builtin, depth);
            }
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                let mut out = named(name, wire, inside, depth);
                copy_default(map, &mut out);
                return out;
            }
            object(map, wire, inside, depth)
        }
        other => other.clone(),
    }
}

fn object(map: &Map<String, Value>, wire: &Wire, inside: Inside, depth: usize) -> Value {
    let mut out = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .filter(|(name, _)| inside != Inside::TemplateMeta || is_template_meta(name))
                    .map(|(name, inner)| {
                        let mut field = expand_at(inner, wire, inside, depth + 1);
                        if inside == Inside::Builtin
                            && let Some(default) = written_default(map, name, inner)
                            && let Some(field) = field.as_object_mut()
                        {
                            field.insert("default".into(), default.clone());
                        }
                        (name.clone(), field)
                    })
                    .collect::<Map<_, _>>()
                    .into()
            }
            "items" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" | "not" => {
                expand_at(value, wire, inside, depth + 1)
            }
            "default" if inside != Inside::Custom && is_zero(value) => continue,
            "x-kubernetes-patch-strategy"
            | "x-kubernetes-patch-merge-key"
            | "x-kubernetes-group-version-kind"
            | "x-kubernetes-unions" => continue,
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    keep_key_defaults(&mut out);
    Value::Object(out)
}

/// A key of a list's items has a value: required, or Go's empty text.
fn keep_key_defaults(schema: &mut Map<String, Value>) {
    let names: Vec<String> = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let Some(items) = schema.get_mut("items").filter(|_| !names.is_empty()) else {
        return;
    };
    for name in names {
        let is_required = items["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| *one == *name));
        let found = &mut items["properties"][&name];
        if !is_required && found["type"] == "string" && found["default"].is_null() {
            found["default"] = json!("");
        }
    }
}

fn named(name: &str, wire: &Wire, inside: Inside, depth: usize) -> Value {
    match leaf(name) {
        Some(Leaf::IntOrString) => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
        }),
        Some(Leaf::Quantity) => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": true,
        }),
        Some(Leaf::Time | Leaf::MicroTime) => json!({"type": "string", "format": "date-time"}),
        Some(Leaf::Opaque) => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Some(Leaf::Template) | None => {
            let inside = match name {
                OBJECT_META => Inside::TemplateMeta,
                _ if inside == Inside::TemplateMeta => Inside::TemplateMeta,
                _ => Inside::Builtin,
            };
            wire.definition(name)
                .map(|schema| expand_at(&schema, wire, inside, depth + 1))
                .unwrap_or_else(|| json!({"type": "object"}))
        }
    }
}

fn copy_default(map: &Map<String, Value>, out: &mut Value) {
    if let (Some(default), Some(out)) = (map.get("default"), out.as_object_mut())
        && !is_zero(default)
    {
        out.insert("default".into(), default.clone());
    }
}
