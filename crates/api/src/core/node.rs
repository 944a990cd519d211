//! Nodes.

use super::{DatedCondition, Images, ResourceList, Taint};
use crate::meta::ObjectMeta;

read_only! {
    /// `v1` Node.
    pub struct Node {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: NodeSpec,
        /// What is.
        pub status: NodeStatus,
    }

    /// What is wanted of a node.
    pub struct NodeSpec {
        /// Takes no new pods.
        pub unschedulable: bool,
        /// Keeps pods off.
        pub taints: Vec<Taint>,
        /// The cloud's name for it.
        #[serde(rename = "providerID")]
        pub provider_id: Box<str>,
        /// Addresses of its pods.
        #[serde(rename = "podCIDR")]
        pub pod_cidr: Box<str>,
    }

    /// What a node is.
    pub struct NodeStatus {
        /// All it has.
        pub capacity: ResourceList,
        /// What pods may use of it.
        pub allocatable: ResourceList,
        /// Conditions; `Ready` among them.
        pub conditions: Vec<DatedCondition>,
        /// Addresses.
        pub addresses: Vec<NodeAddress>,
        /// Images that it has, as far as it tells (a kubelet tells of the fifty largest).
        pub images: Images,
    }

    /// One address.
    pub struct NodeAddress {
        /// `InternalIP`, `Hostname` …
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// The address.
        pub address: Box<str>,
    }
}

impl Node {
    /// Whether its condition `Ready` is `True`.
    pub fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| &*condition.kind == "Ready" && &*condition.status == "True")
    }
}
