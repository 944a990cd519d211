//! `scheduling.volcano.sh/v1beta1` PodGroup.

use std::collections::BTreeMap;

use super::GROUP_NAME;
use crate::core::ResourceList;
use crate::meta::ObjectMeta;
use crate::selector::LabelSelector;
use crate::time::Time;

texts! {
    /// Where a gang is in its life.
    pub enum PodGroupPhase {
        /// Waits to enter.
        Pending = "Pending",
        /// Enough of its pods run.
        Running = "Running",
        /// Some of its pods run, but not enough.
        Unknown = "Unknown",
        /// May have pods.
        Inqueue = "Inqueue",
        /// All its pods ended.
        Completed = "Completed",
    }
}

/// Condition type: the gang cannot be placed.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// Condition type: the gang is placed.
pub const SCHEDULED: &str = "Scheduled";

round_trip! {
    /// Volcano's gang. Its status is written with the whole object.
    pub struct PodGroup {
        /// `scheduling.volcano.sh/v1beta1`.
        pub api_version: Box<str>,
        /// `PodGroup`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodGroupSpec,
        /// What is.
        pub status: PodGroupStatus,
    }

    /// What a gang wants.
    pub struct PodGroupSpec {
        /// So many pods start together.
        pub min_member: Option<i32>,
        /// So many pods of each task start together.
        pub min_task_member: BTreeMap<Box<str>, i32>,
        /// Its queue; `default` by schema.
        pub queue: Box<str>,
        /// Its priority.
        pub priority_class_name: Box<str>,
        /// What it needs at least; `None` lets it enter unmeasured.
        pub min_resources: Option<ResourceList>,
        /// How close together its pods must be.
        pub network_topology: Option<NetworkTopology>,
        /// Gangs within the gang.
        pub sub_group_policy: Vec<SubGroupPolicy>,
    }

    /// How close together pods must be.
    pub struct NetworkTopology {
        /// `hard` (default) or `soft`.
        pub mode: Box<str>,
        /// Greatest tier that may hold them all.
        pub highest_tier_allowed: Option<i64>,
        /// The same by name; not together with the number.
        pub highest_tier_name: Box<str>,
    }

    /// Gangs within a gang.
    pub struct SubGroupPolicy {
        /// Name.
        pub name: Box<str>,
        /// How close together the pods of one must be.
        pub network_topology: Option<NetworkTopology>,
        /// How many pods each; 1 by schema.
        pub sub_group_size: Option<i32>,
        /// So many start together; 0 by schema.
        pub min_sub_groups: Option<i32>,
        /// Which pods.
        pub label_selector: Option<LabelSelector>,
        /// Pods with equal values of these labels belong together.
        pub match_label_keys: Vec<Box<str>>,
    }

    /// What a gang is.
    pub struct PodGroupStatus {
        /// Its phase.
        pub phase: PodGroupPhase,
        /// Conditions.
        pub conditions: Vec<PodGroupCondition>,
        /// Running pods.
        pub running: i32,
        /// Pods that ended well.
        pub succeeded: i32,
        /// Pods that ended badly.
        pub failed: i32,
    }

    /// A condition of a gang.
    pub struct PodGroupCondition {
        /// [`UNSCHEDULABLE`] or [`SCHEDULED`].
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// `True`, `False` or `Unknown`.
        pub status: Box<str>,
        /// Which scheduling round says so.
        #[serde(rename = "transitionID")]
        pub transition_id: Box<str>,
        /// Since when.
        pub last_transition_time: Option<Time>,
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
    }
}

/// The name of the gang of a Volcano job.
pub fn pod_group_of_job(name: &str, uid: &str) -> String {
    format!("{name}-{uid}")
}

/// The gang that a pod names. One of no name is none.
pub fn group_of_pod(pod: &ObjectMeta) -> Option<&str> {
    let name = pod.annotations.get(GROUP_NAME)?;
    (!name.is_empty()).then_some(&**name)
}

/// The name of the gang of plain pods: of their controller, or of the single pod.
pub fn pod_group_of_owner(uid: &str) -> String {
    format!("podgroup-{uid}")
}
