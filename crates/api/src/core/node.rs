//! Nodes.

use super::{DatedCondition, Images, ResourceList, Taint};
use crate::meta::ObjectMeta;
use crate::shared::List;

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

    /// One address.
    pub struct NodeAddress {
        /// `InternalIP`, `Hostname` …
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// The address.
        pub address: Box<str>,
    }
}

parted! {
    /// What a node is.
    pub struct NodeStatus {
        /// Conditions; `Ready` among them.
        pub conditions: List<DatedCondition>,
        /// Addresses.
        pub addresses: List<NodeAddress>,
        /// Images that it has, as far as it tells (a kubelet tells of the fifty largest).
        pub images: Images,
    }

    /// What machines of one make have.
    pub struct NodeRoom {
        /// All it has.
        pub capacity: ResourceList,
        /// What pods may use of it.
        pub allocatable: ResourceList,
    }
}

impl NodeRoom {
    fn is_alike(&self, other: &NodeRoom) -> bool {
        let lists = [
            (&self.capacity, &other.capacity),
            (&self.allocatable, &other.allocatable),
        ];
        lists.into_iter().all(|(mine, its)| mine.is_alike(its))
    }
}

impl Node {
    /// Shares with another node what both have alike: room, images, the names of their labels.
    pub fn share(&mut self, other: &Node) {
        self.metadata.share(&other.metadata);
        let (status, its) = (&mut self.status, &other.status);
        status.conditions.share(&its.conditions);
        status.images.share(&its.images);
        status.common.share(&its.common, NodeRoom::is_alike);
    }

    /// Whether its condition `Ready` is `True`.
    pub fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| &*condition.kind == "Ready" && &*condition.status == "True")
    }
}
