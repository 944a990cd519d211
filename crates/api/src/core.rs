//! Kubernetes' built-in kinds, as much of them as our rooms read.
//!
//! They are only read: what a room writes is a patch (lists of conditions are whole in it), and whole
//! objects stay JSON.

mod affinity;
mod apps;
mod conditions;
mod images;
mod network;
mod node;
mod objects;
mod pod;
mod pod_sizes;
mod pod_status;
mod policy;
mod requests;
mod resource_list;
mod scopes;
mod storage;
mod text_map;

pub use affinity::*;
pub use apps::*;
pub use conditions::{DISRUPTION_TARGET, disruption_target};
pub use images::{Images, image_name};
pub use network::*;
pub use node::*;
pub use objects::*;
pub use pod::*;
pub use pod_sizes::{ContainerSize, PodSizes};
pub use pod_status::*;
pub use policy::*;
pub use requests::{
    QUOTA_LIMITS, claims_named, limits_held, limits_of, makes_claim, requests_held, requests_of,
    stand_ins,
};
pub use resource_list::ResourceList;
pub use storage::*;
pub use text_map::TextMap;

read_only! {
    /// A condition in a status: of a pod, node, claim, volume, namespace or batch job.
    pub struct Condition {
        /// What it is about.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// `True`, `False` or `Unknown`.
        pub status: Box<str>,
        /// One word for machines.
        pub reason: Box<str>,
        /// A sentence for people.
        pub message: Box<str>,
        /// When the status last changed.
        pub last_transition_time: Option<crate::time::Time>,
    }

    /// A condition with all its times, for statuses that are written back.
    pub struct DatedCondition {
        /// What it is about.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// `True`, `False` or `Unknown`.
        pub status: Box<str>,
        /// One word for machines.
        pub reason: Box<str>,
        /// A sentence for people.
        pub message: Box<str>,
        /// When the status last changed.
        pub last_transition_time: Option<crate::time::Time>,
        /// When it was last looked at (batch jobs).
        pub last_probe_time: Option<crate::time::Time>,
        /// When it was last reported (nodes).
        pub last_heartbeat_time: Option<crate::time::Time>,
        /// When anything about it last changed (Deployments).
        pub last_update_time: Option<crate::time::Time>,
        /// The generation that it is about.
        pub observed_generation: i64,
    }

    /// A pointer to another object.
    pub struct ObjectReference {
        /// Group and version.
        pub api_version: Box<str>,
        /// Kind.
        pub kind: Box<str>,
        /// Empty for cluster-scoped kinds.
        pub namespace: Box<str>,
        /// Name.
        pub name: Box<str>,
        /// Identity.
        pub uid: Box<str>,
        /// Version that was seen.
        pub resource_version: Box<str>,
        /// A part of the object, such as `spec.containers{main}`.
        pub field_path: Box<str>,
    }
}

/// The condition of this type, if there is one.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.kind == kind)
}

#[cfg(test)]
mod tests;
