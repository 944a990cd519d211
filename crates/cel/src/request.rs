//! What the conditions of a webhook may speak of.

use std::rc::Rc;

use serde_json::{Value, json};

use super::check::check;
use super::declared::{Declared, Whole};
use super::kinds::Type;
use super::literals;
use super::parse::{parse, told};
use super::signatures::thing;

/// Looks at a condition before it is believed.
///
/// # Errors
/// Why it is none, in the words of the real server.
pub fn check_condition(text: &str) -> Result<(), String> {
    let failed = |why: String| format!("compilation failed: {why}");
    let tree = parse(text).map_err(failed)?;
    let authorizer = |name: &str| thing(name).unwrap_or(Type::Dyn);
    let names = [
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        (
            "namespaceObject",
            kind("kubernetes.Namespace", &namespace()),
        ),
        ("request", kind("kubernetes.AdmissionRequest", &request())),
        (
            "authorizer",
            authorizer("kubernetes.authorization.Authorizer"),
        ),
        (
            "authorizer.requestResource",
            authorizer("kubernetes.authorization.ResourceCheck"),
        ),
    ];
    let told = |mistakes: &[_], more| failed(told(text, mistakes, more));
    let checked = check(&tree, &names).map_err(|(mistakes, more)| told(&mistakes, more))?;
    let mistakes = literals::look(&tree, &checked);
    if !mistakes.is_empty() {
        return Err(told(&mistakes, 0));
    }
    match checked.kind(&tree) {
        Type::Bool => Ok(()),
        other => Err(format!(
            "must evaluate to bool but got {}",
            other.full_name()
        )),
    }
}

fn kind(name: &str, schema: &Value) -> Type {
    Declared::named(schema, Whole::No, name)
        .map_or(Type::Dyn, |declared: Rc<Declared>| declared.kind.clone())
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

fn object(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn map_of(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

fn request() -> Value {
    let kind = object(json!({"group": text(), "version": text(), "kind": text()}));
    let resource = object(json!({"group": text(), "version": text(), "resource": text()}));
    object(json!({
        "kind": kind,
        "resource": resource,
        "subResource": text(),
        "requestKind": kind,
        "requestResource": resource,
        "requestSubResource": text(),
        "name": text(),
        "namespace": text(),
        "operation": text(),
        "userInfo": object(json!({
            "username": text(), "uid": text(), "groups": texts(), "extra": map_of(texts()),
        })),
        "dryRun": {"type": "boolean"},
        "options": {"x-kubernetes-int-or-string": true},
    }))
}

fn namespace() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer"});
    let condition = object(json!({
        "status": text(), "type": text(), "lastTransitionTime": time, "message": text(), "reason": text(),
    }));
    object(json!({
        "metadata": object(json!({
            "name": text(), "generateName": text(), "namespace": text(),
            "labels": map_of(text()), "annotations": map_of(text()), "UID": text(),
            "creationTimestamp": time, "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
            "generation": number, "resourceVersion": text(), "finalizers": texts(),
        })),
        "spec": object(json!({"finalizers": texts()})),
        "status": object(json!({"conditions": {"type": "array", "items": condition}, "phase": text()})),
    }))
}
