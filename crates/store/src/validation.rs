//! Defaults and checks of built-in kinds, with the real server's texts.
//!
//! Functions of one object (and, on an update, its stored form). Custom resources are checked by
//! their schemas instead; what needs other objects (quota, classes, addresses) is admission.
//! [`KINDS`] is the list: one row a kind. Kinds without a row get the rules of metadata alone.
//! A rule walks the object with a [`spot::Spot`], which spells its path only where it finds a fault,
//! and collects faults in the real server's order.

mod access;
mod addresses;
mod apps;
mod autoscaler;
mod certificate;
mod core;
mod defaults;
mod device;
mod driver;
mod event;
mod flow;
mod format;
mod job;
mod meta;
mod network;
mod pod;
mod policies;
mod quota;
mod schedule;
mod service;
mod spot;
mod storage;
mod template;
mod warnings;

use api::names;
use serde_json::Value;

use crate::field::FieldError;
use spot::{Faults, Spot};

pub use defaults::{as_labelled, default, label_job, share_labels};
pub use event::Shape as EventShape;
pub use template::template_faults;
pub use warnings::warnings;

/// What checks a new object.
type Create = fn(&Spot<'_, '_>, &mut Faults);
/// What checks a changed object against its stored form.
type Update = fn(&Spot<'_, '_>, &Value, &mut Faults);

/// The rules of a kind, metadata included.
struct Rules {
    group: &'static str,
    kind: &'static str,
    create: Create,
    update: Update,
    status: Update,
}

const fn rules(
    group: &'static str,
    kind: &'static str,
    create: Create,
    update: Update,
    status: Update,
) -> Rules {
    Rules {
        group,
        kind,
        create,
        update,
        status,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// The rules of built-in kinds, by group and kind.
const KINDS: &[Rules] = &[
    rules(
        "",
        "ConfigMap",
        core::config_map,
        core::config_map_update,
        meta::update,
    ),
    rules(
        "",
        "Endpoints",
        service::endpoints,
        service::endpoints_update,
        meta::update,
    ),
    rules(
        "",
        "LimitRange",
        quota::limit_range,
        quota::limit_range_update,
        meta::update,
    ),
    rules(
        "",
        "Namespace",
        core::namespace,
        core::namespace_update,
        core::namespace_status,
    ),
    rules("", "Node", core::node, core::node_update, core::node_status),
    rules(
        "",
        "PersistentVolume",
        storage::volume,
        storage::volume_update,
        meta::update,
    ),
    rules(
        "",
        "PersistentVolumeClaim",
        storage::claim,
        storage::claim_update,
        storage::claim_status,
    ),
    rules(
        "",
        "Pod",
        pod::create,
        pod::update::check,
        pod::status::check,
    ),
    rules(
        "",
        "PodTemplate",
        pod_template,
        pod_template_update,
        meta::update,
    ),
    rules(
        "",
        "ReplicationController",
        apps::controller,
        apps::controller_update,
        apps::status,
    ),
    rules(
        "",
        "ResourceQuota",
        quota::quota,
        quota::quota_update,
        quota::quota_status,
    ),
    rules(
        "",
        "Secret",
        core::secret,
        core::secret_update,
        meta::update,
    ),
    rules(
        "",
        "Service",
        service::create,
        service::update,
        service::status,
    ),
    rules(
        "",
        "ServiceAccount",
        core::plain,
        core::plain_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "MutatingAdmissionPolicy",
        policies::mutating,
        policies::mutating_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "MutatingAdmissionPolicyBinding",
        policies::mutating_binding,
        policies::mutating_binding_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "MutatingWebhookConfiguration",
        hooks,
        hooks_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "ValidatingAdmissionPolicy",
        policies::validating,
        policies::validating_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "ValidatingAdmissionPolicyBinding",
        policies::validating_binding,
        policies::validating_binding_update,
        meta::update,
    ),
    rules(
        WEBHOOKS,
        "ValidatingWebhookConfiguration",
        hooks,
        hooks_update,
        meta::update,
    ),
    rules(
        "apiregistration.k8s.io",
        "APIService",
        flow::service,
        flow::service_update,
        flow::service_status,
    ),
    rules(
        "apps",
        "ControllerRevision",
        core::revision,
        core::revision_update,
        meta::update,
    ),
    rules(
        "apps",
        "DaemonSet",
        apps::daemon_set,
        apps::daemon_set_update,
        apps::status,
    ),
    rules(
        "apps",
        "Deployment",
        apps::deployment,
        apps::deployment_update,
        apps::status,
    ),
    rules(
        "apps",
        "ReplicaSet",
        apps::replica_set,
        apps::replica_set_update,
        apps::status,
    ),
    rules(
        "apps",
        "StatefulSet",
        apps::stateful_set,
        apps::stateful_set_update,
        apps::status,
    ),
    rules(
        "autoscaling",
        "HorizontalPodAutoscaler",
        autoscaler::create,
        autoscaler::update,
        autoscaler::status,
    ),
    rules(
        "batch",
        "CronJob",
        job::cron,
        job::cron_update,
        |_, _, _| {},
    ),
    rules("batch", "Job", job::create, job::update, job::status::check),
    rules(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        certificate::create,
        certificate::update,
        certificate::status,
    ),
    rules(
        "coordination.k8s.io",
        "Lease",
        core::lease,
        core::lease_update,
        meta::update,
    ),
    rules(
        "discovery.k8s.io",
        "EndpointSlice",
        service::slice,
        service::slice_update,
        meta::update,
    ),
    rules(
        "flowcontrol.apiserver.k8s.io",
        "FlowSchema",
        flow::schema,
        flow::schema_update,
        flow::level_status,
    ),
    rules(
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        flow::level,
        flow::level_update,
        flow::level_status,
    ),
    rules(
        "networking.k8s.io",
        "IPAddress",
        addresses::address,
        addresses::address_update,
        meta::update,
    ),
    rules(
        "networking.k8s.io",
        "Ingress",
        network::ingress,
        network::ingress_update,
        network::ingress_status,
    ),
    rules(
        "networking.k8s.io",
        "IngressClass",
        network::class,
        network::class_update,
        meta::update,
    ),
    rules(
        "networking.k8s.io",
        "NetworkPolicy",
        network::policy,
        network::policy_update,
        meta::update,
    ),
    rules(
        "networking.k8s.io",
        "ServiceCIDR",
        addresses::networks,
        addresses::networks_update,
        meta::update,
    ),
    rules(
        "node.k8s.io",
        "RuntimeClass",
        core::runtime_class,
        core::runtime_class_update,
        meta::update,
    ),
    rules(
        "policy",
        "PodDisruptionBudget",
        apps::budget,
        apps::budget_update,
        apps::budget_status,
    ),
    rules(
        RBAC,
        "ClusterRole",
        access::role,
        access::role_update,
        meta::update,
    ),
    rules(
        RBAC,
        "ClusterRoleBinding",
        access::binding,
        access::binding_update,
        meta::update,
    ),
    rules(
        RBAC,
        "Role",
        access::role,
        access::role_update,
        meta::update,
    ),
    rules(
        RBAC,
        "RoleBinding",
        access::binding,
        access::binding_update,
        meta::update,
    ),
    rules(
        "resource.k8s.io",
        "DeviceClass",
        device::class,
        device::class_update,
        meta::update,
    ),
    rules(
        "resource.k8s.io",
        "ResourceClaim",
        device::claim,
        device::claim_update,
        device::claim_status,
    ),
    rules(
        "resource.k8s.io",
        "ResourceClaimTemplate",
        device::template,
        device::template_update,
        meta::update,
    ),
    rules(
        "resource.k8s.io",
        "ResourceSlice",
        device::slice,
        device::slice_update,
        meta::update,
    ),
    rules(
        "scheduling.k8s.io",
        "PriorityClass",
        core::priority_class,
        core::priority_class_update,
        meta::update,
    ),
    rules(
        "storage.k8s.io",
        "CSIDriver",
        driver::create,
        driver::update,
        meta::update,
    ),
    rules(
        "storage.k8s.io",
        "CSINode",
        storage::csi_node,
        storage::csi_node_update,
        meta::update,
    ),
    rules(
        "storage.k8s.io",
        "CSIStorageCapacity",
        storage::capacity,
        storage::capacity_update,
        meta::update,
    ),
    rules(
        "storage.k8s.io",
        "StorageClass",
        storage::class,
        storage::class_update,
        meta::update,
    ),
    rules(
        "storage.k8s.io",
        "VolumeAttachment",
        driver::attachment,
        driver::attachment_update,
        driver::attachment_update,
    ),
    rules(
        "storage.k8s.io",
        "VolumeAttributesClass",
        storage::attributes,
        storage::attributes_update,
        meta::update,
    ),
];

/// Webhook configurations are checked where they are read.
fn hooks(object: &Spot<'_, '_>, faults: &mut Faults) {
    meta::generic(object, names::check_subdomain, faults);
    let kind = object.at("kind").text();
    faults.0.extend(crate::hook::validate(kind, object.value));
}

fn hooks_update(object: &Spot<'_, '_>, _old: &Value, faults: &mut Faults) {
    hooks(object, faults);
}

fn pod_template(object: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(object, names::check_subdomain, faults);
    pod::template(&object.at("template"), faults);
}

fn pod_template_update(object: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(object, old, faults);
    pod::template(&object.at("template"), faults);
}

fn rules_of(group: &str, kind: &str) -> Option<&'static Rules> {
    KINDS
        .iter()
        .find(|row| row.kind == kind && row.group == group)
}

/// Checks the metadata of an object whose kind has no rules of its own, new or changed.
pub fn metadata(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(old) = old else {
        let mut faults = Faults::default();
        meta::generic(&Spot::new(object, ""), names::check_subdomain, &mut faults);
        return faults.0;
    };
    changed(object, old, None)
}

/// Checks a new object of a built-in kind.
pub fn validate(group: &str, kind: &str, object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let root = Spot::new(object, "");
    match rules_of(group, kind) {
        Some(rules) => (rules.create)(&root, &mut faults),
        None => meta::generic(&root, names::check_subdomain, &mut faults),
    }
    created(&root, faults)
}

/// Whatever the rules of its kind: an object has metadata, and no name has a slash in it.
fn created(root: &Spot<'_, '_>, mut faults: Faults) -> Vec<FieldError> {
    if faults.is_empty() {
        meta::generic(root, names::check_path_segment, &mut faults);
    }
    faults.0
}

/// Checks a changed object of a built-in kind: the rules for new ones, and what may not change.
pub fn validate_update(group: &str, kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let of_kind = rules_of(group, kind).map(|rules| rules.update);
    changed(object, old, of_kind)
}

/// Checks an object whose status changed.
pub fn validate_status(group: &str, kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let of_kind = rules_of(group, kind).map(|rules| rules.status);
    changed(object, old, of_kind)
}

/// Checks a namespace whose finalizers changed.
pub fn validate_finalize(object: &Value, old: &Value) -> Vec<FieldError> {
    changed(object, old, Some(core::namespace_finalize))
}

/// Checks a request for a certificate that is approved or denied.
pub fn validate_approval(object: &Value, old: &Value) -> Vec<FieldError> {
    changed(object, old, Some(certificate::approval))
}

/// Checks a pod to which containers were added for a while.
pub fn validate_ephemeral(object: &Value, old: &Value) -> Vec<FieldError> {
    changed(object, old, Some(pod::update::ephemeral))
}

/// Checks whether the address fields of a service fit each other.
pub fn validate_addresses(service: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let root = Spot::new(service, "");
    service::cluster_addresses(&root.at("spec"), &mut faults);
    faults.0
}

/// Checks a pod whose containers are to have other resources.
pub fn validate_resize(object: &Value, old: &Value) -> Vec<FieldError> {
    changed(object, old, Some(pod::resize::check))
}

/// Checks an event, new or changed, in the shape in which it came.
pub fn validate_event(shape: EventShape, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let root = Spot::new(object, "");
    match old {
        None => {
            event::create(&root, shape, &mut faults);
            created(&root, faults)
        }
        Some(old) => {
            event::update(&root, old, shape, &mut faults);
            faults.0
        }
    }
}

/// Every changed object is looked at as such first, then by the rules of its kind.
fn changed(object: &Value, old: &Value, of_kind: Option<Update>) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let root = Spot::new(object, "");
    meta::generic(&root, names::check_path_segment, &mut faults);
    meta::update(&root, old, &mut faults);
    match of_kind {
        Some(rule) => rule(&root, old, &mut faults),
        None => meta::update(&root, old, &mut faults),
    }
    faults.0
}

/// `FieldImmutableErrorMsg` of the real server.
const IMMUTABLE: &str = "field is immutable";

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether two values mean the same: an empty list is none, a missing field is null.
fn same(a: &Value, b: &Value) -> bool {
    let is_none = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter()
                .all(|(key, value)| same(value, b.get(key).unwrap_or(&Value::Null)))
                && b.iter()
                    .all(|(key, value)| a.contains_key(key) || is_none(value))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        _ => a == b || (is_none(a) && is_none(b)),
    }
}

#[cfg(test)]
mod tests;
