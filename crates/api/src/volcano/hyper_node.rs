//! `topology.volcano.sh/v1alpha1` HyperNode.

use serde_json::Value;

use crate::meta::ObjectMeta;
use crate::selector::LabelSelector;

round_trip! {
    /// Nodes that reach one another at the same cost, or hyper-nodes that do.
    pub struct HyperNode {
        /// `topology.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `HyperNode`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What it is.
        pub spec: HyperNodeSpec,
        /// What was counted.
        pub status: HyperNodeStatus,
    }

    /// What a hyper-node is.
    pub struct HyperNodeSpec {
        /// How far its nodes are from one another: the lower the closer.
        pub tier: Option<i64>,
        /// What the tier is called.
        pub tier_name: Box<str>,
        /// What it is made of.
        pub members: Vec<HyperNodeMember>,
    }

    /// One member.
    pub struct HyperNodeMember {
        /// `Node` or `HyperNode`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Which ones; by schema exactly one of its ways.
        pub selector: Option<HyperNodeSelector>,
    }

    /// Which nodes or hyper-nodes.
    pub struct HyperNodeSelector {
        /// The one of this name.
        pub exact_match: Option<ExactMatch>,
        /// Those whose name matches.
        pub regex_match: Option<RegexMatch>,
        /// Nodes with these labels.
        pub label_match: Option<LabelSelector>,
    }

    /// One by name.
    pub struct ExactMatch {
        /// The name.
        pub name: Box<str>,
    }

    /// Those whose name matches.
    pub struct RegexMatch {
        /// A pattern in Go's syntax, which may match anywhere in the name: [`super::member_pattern`].
        pub pattern: Box<str>,
    }

    /// What was counted.
    pub struct HyperNodeStatus {
        /// Conditions.
        pub conditions: Vec<Value>,
        /// How many names its members select.
        pub node_count: Option<i64>,
    }
}
