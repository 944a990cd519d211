//! Namespaces, identities, configuration, priorities and events.

use super::{Condition, ObjectReference, TextMap};
use crate::meta::ObjectMeta;
use crate::time::Time;

/// Kubernetes' own priority classes, and their values.
const SYSTEM_PRIORITIES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// The value of a priority class of Kubernetes' own, which every cluster has and nobody changes; `None` for the
/// name of any other.
pub fn system_priority(class: &str) -> Option<i32> {
    let mut all = SYSTEM_PRIORITIES.iter();
    all.find(|(name, _)| *name == class)
        .map(|(_, value)| *value)
}

read_only! {
    /// `v1` Namespace.
    pub struct Namespace {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: NamespaceSpec,
        /// What is.
        pub status: NamespaceStatus,
    }

    /// What a namespace wants.
    pub struct NamespaceSpec {
        /// Who must let go before it may vanish.
        pub finalizers: Vec<Box<str>>,
    }

    /// What a namespace is.
    pub struct NamespaceStatus {
        /// `Active` or `Terminating`.
        pub phase: Box<str>,
        /// Conditions of its deletion.
        pub conditions: Vec<Condition>,
    }

    /// `v1` ServiceAccount.
    pub struct ServiceAccount {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Whether pods get a token; `None` means yes.
        pub automount_service_account_token: Option<bool>,
    }

    /// `v1` ConfigMap.
    pub struct ConfigMap {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Texts.
        pub data: TextMap,
        /// Bytes, in base64.
        pub binary_data: TextMap,
        /// May not change.
        pub immutable: Option<bool>,
    }

    /// `v1` Secret: what is in it is not kept.
    pub struct Secret {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it is for.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// May not change.
        pub immutable: Option<bool>,
    }

    /// `scheduling.k8s.io/v1` PriorityClass.
    pub struct PriorityClass {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Higher goes first.
        pub value: i32,
        /// Pods without a class get this one.
        pub global_default: bool,
        /// `Never` or `PreemptLowerPriority` (default).
        pub preemption_policy: Option<Box<str>>,
    }

    /// `v1` Event.
    pub struct Event {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Whom it is about.
        pub involved_object: ObjectReference,
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
        /// `Normal` or `Warning`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// How often.
        pub count: i32,
        /// First seen.
        pub first_timestamp: Option<Time>,
        /// Last seen.
        pub last_timestamp: Option<Time>,
        /// When, for events of the newer form.
        #[serde(serialize_with = "crate::time::as_micro")]
        pub event_time: Option<Time>,
        /// Who says so.
        pub source: EventSource,
        /// Who says so, in the newer form.
        pub reporting_component: Box<str>,
    }

    /// Who reports an event.
    pub struct EventSource {
        /// The component.
        pub component: Box<str>,
        /// Its node.
        pub host: Box<str>,
    }
}
