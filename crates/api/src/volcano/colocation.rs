//! `config.volcano.sh/v1alpha1` ColocationConfiguration.

use serde_json::Value;

use crate::meta::ObjectMeta;
use crate::selector::LabelSelector;

/// Annotation of a pod: the configuration that holds for it.
pub const COLOCATION_CONFIG_NAME: &str = "volcano.sh/colocation-config-name";
/// Annotation of a pod: what that configuration says, as JSON, for the agent of its node.
pub const COLOCATION_CONFIG: &str = "volcano.sh/colocation-config";

round_trip! {
    /// What pods of a namespace may use beside others on a node.
    pub struct ColocationConfiguration {
        /// `config.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `ColocationConfiguration`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ColocationSpec,
        /// What is.
        pub status: ColocationStatus,
    }

    /// For whom, and what.
    pub struct ColocationSpec {
        /// For these pods; absent for none.
        pub selector: Option<LabelSelector>,
        /// Bounds of memory.
        pub memory_qos: Option<MemoryQos>,
    }

    /// Bounds of memory in percent of a pod's own limits and requests.
    pub struct MemoryQos {
        /// From where on it is slowed down, of its limit.
        pub high_ratio: Option<i64>,
        /// What is taken last, of its request.
        pub low_ratio: Option<i64>,
        /// What is never taken, of its request.
        pub min_ratio: Option<i64>,
    }

    /// How it stands.
    pub struct ColocationStatus {
        /// Conditions.
        pub conditions: Vec<Value>,
    }
}
