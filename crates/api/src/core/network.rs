//! Services, endpoints and network policies.

use super::TextMap;
use crate::int_or_string::IntOrString;
use crate::meta::ObjectMeta;
use serde_json::Value;

read_only! {
    /// `v1` Service.
    pub struct Service {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ServiceSpec,
    }

    /// What a Service wants.
    pub struct ServiceSpec {
        /// `ClusterIP` (also when empty), `NodePort`, `LoadBalancer` or `ExternalName`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Whom it stands for; an empty one has hand-made endpoints.
        pub selector: TextMap,
        /// `None` makes it headless.
        #[serde(rename = "clusterIP")]
        pub cluster_ip: Box<str>,
        /// All its addresses.
        #[serde(rename = "clusterIPs")]
        pub cluster_ips: Vec<Box<str>>,
        /// `IPv4`, `IPv6`.
        pub ip_families: Vec<Box<str>>,
        /// Ports.
        pub ports: Vec<ServicePort>,
        /// Pods are found before they are ready.
        pub publish_not_ready_addresses: bool,
        /// The outside name of an `ExternalName`.
        pub external_name: Box<str>,
        /// `None` (also when empty) or `ClientIP`.
        pub session_affinity: Box<str>,
    }

    /// One port of a Service.
    pub struct ServicePort {
        /// Name; may be empty if it is the only one.
        pub name: Box<str>,
        /// `TCP` (also when empty), `UDP` or `SCTP`.
        pub protocol: Box<str>,
        /// On the Service's address.
        pub port: i32,
        /// On the pod; 0 means the same as `port`.
        pub target_port: IntOrString,
        /// On every node.
        pub node_port: i32,
        /// What is spoken.
        pub app_protocol: Option<Box<str>>,
    }

    /// `discovery.k8s.io/v1` EndpointSlice.
    pub struct EndpointSlice {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// `IPv4`, `IPv6` or `FQDN`.
        pub address_type: Box<str>,
        /// Who can be reached.
        pub endpoints: Vec<Endpoint>,
        /// At which ports.
        pub ports: Vec<EndpointPort>,
    }

    /// One who can be reached.
    pub struct Endpoint {
        /// Addresses.
        pub addresses: Vec<Box<str>>,
        /// State.
        pub conditions: EndpointConditions,
        /// Its name under the Service's.
        pub hostname: Option<Box<str>>,
        /// Its node.
        pub node_name: Option<Box<str>>,
        /// The node's zone.
        pub zone: Option<Box<str>>,
        /// Its pod.
        pub target_ref: Option<super::ObjectReference>,
    }

    /// State of an endpoint; absent counts as true, except `terminating`.
    pub struct EndpointConditions {
        /// May be sent work.
        pub ready: Option<bool>,
        /// Answers, even while terminating.
        pub serving: Option<bool>,
        /// Going away.
        pub terminating: Option<bool>,
    }

    /// One port of an EndpointSlice.
    pub struct EndpointPort {
        /// Name.
        pub name: Option<Box<str>>,
        /// `TCP` by default.
        pub protocol: Option<Box<str>>,
        /// Number; `None` means any.
        pub port: Option<i32>,
        /// What is spoken.
        pub app_protocol: Option<Box<str>>,
    }

    /// `networking.k8s.io/v1` NetworkPolicy.
    pub struct NetworkPolicy {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// The rules, read by nobody here.
        pub spec: Value,
    }
}

impl Service {
    /// Whether names lead straight to its pods.
    pub fn is_headless(&self) -> bool {
        &*self.spec.cluster_ip == "None"
    }
}

impl EndpointPort {
    /// The protocol, `TCP` by default.
    pub fn protocol(&self) -> &str {
        self.protocol.as_deref().unwrap_or("TCP")
    }
}
