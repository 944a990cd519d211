//! Defaults and checks of built-in kinds, with the real server's texts.
//!
//! Functions of one object (and, on an update, its stored form). Custom resources are checked by
//! their schemas instead; what needs other objects (quota, classes, addresses) is admission.
//! Kinds without rules of their own get the rules of metadata alone.

mod access;
mod container;
mod core;
mod defaults;
mod meta;
mod pod;
mod storage;
mod workload;

use serde_json::Value;

use crate::field::FieldError;

pub use defaults::{default, label_job};
pub use meta::metadata;

/// Checks a new object of a built-in kind, apart from its metadata.
pub fn validate(group: &str, kind: &str, object: &Value) -> Vec<FieldError> {
    match (group, kind) {
        ("", "ConfigMap") => core::config_map(object),
        ("", "Event") => core::event(object),
        ("", "PersistentVolume") => storage::volume(object),
        ("", "PersistentVolumeClaim") => storage::claim(object),
        ("", "ResourceQuota") => core::quota(object),
        ("", "Pod") => pod::spec(&object["spec"], "spec"),
        ("", "Secret") => core::secret(object),
        ("", "Service") => core::service(object),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => crate::hook::validate(kind, object),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") => {
            let mut errors = workload::replicated(object);
            if kind == "Deployment" {
                errors.extend(workload::strategy(&object["spec"]["strategy"]));
            }
            errors
        }
        ("batch", "CronJob") => workload::cron_job(object),
        ("batch", "Job") => workload::job(object),
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => access::role(object),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            access::binding(object)
        }
        ("scheduling.k8s.io", "PriorityClass") => core::priority_class(object),
        ("storage.k8s.io", "StorageClass") => storage::storage_class(object),
        _ => Vec::new(),
    }
}

/// Checks a changed object of a built-in kind: the rules for new ones, and what may not change.
///
/// Not for status and binding, which change other things.
pub fn validate_update(group: &str, kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = match (group, kind) {
        // A running pod is not held to rules that are newer than itself.
        ("", "Pod") => return pod::update(object, old),
        _ => validate(group, kind, object),
    };
    match (group, kind) {
        ("", "ConfigMap" | "Secret") => core::immutable_data(object, old, &mut errors),
        ("", "PersistentVolume") => storage::volume_update(object, old, &mut errors),
        ("", "PersistentVolumeClaim") => storage::claim_update(object, old, &mut errors),
        ("", "Service") => core::service_update(object, old, &mut errors),
        ("apps", _) => workload::replicated_update(kind, object, old, &mut errors),
        ("batch", "Job") => workload::job_update(object, old, &mut errors),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            access::binding_update(object, old, &mut errors);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            core::priority_class_update(object, old, &mut errors);
        }
        ("storage.k8s.io", "StorageClass") => {
            storage::storage_class_update(object, old, &mut errors);
        }
        _ => {}
    }
    errors
}

/// `FieldImmutableErrorMsg` of the real server.
const IMMUTABLE: &str = "field is immutable";

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An empty or missing text is required; one outside `known` is not supported.
fn one_of(value: &Value, path: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    match text(value) {
        "" => errors.push(FieldError::required(path, "")),
        given if known.contains(&given) => {}
        given => errors.push(FieldError::not_supported(path, given, known)),
    }
}

fn not_negative(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(number) = value.as_i64().filter(|number| *number < 0) {
        errors.push(FieldError::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        ));
    }
}

fn unchanged(new: &Value, old: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if new != old {
        errors.push(FieldError::invalid(path, new.clone(), IMMUTABLE));
    }
}

fn texts(found: Vec<String>, value: &str, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(
        found
            .into_iter()
            .map(|detail| FieldError::invalid(path, value, detail)),
    );
}

#[cfg(test)]
mod tests;
