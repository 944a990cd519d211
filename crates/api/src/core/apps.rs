//! Kinds that keep a number of pods: DaemonSets, Deployments, ReplicaSets, StatefulSets and their
//! revisions.

use super::DatedCondition;
use crate::int_or_string::IntOrString;
use crate::meta::ObjectMeta;
use crate::raw::RawJson;
use crate::selector::LabelSelector;

read_only! {
    /// `apps/v1` ReplicaSet.
    pub struct ReplicaSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: ReplicaSetSpec,
        /// What is.
        pub status: ReplicaSetStatus,
    }

    /// What a ReplicaSet wants.
    pub struct ReplicaSetSpec {
        /// Pods; 1 by default.
        pub replicas: Option<i32>,
        /// Ready for so long counts as available.
        pub min_ready_seconds: i32,
        /// Its pods.
        pub selector: LabelSelector,
        /// What a pod is made from.
        pub template: RawJson,
    }

    /// What a ReplicaSet is.
    pub struct ReplicaSetStatus {
        /// Pods.
        pub replicas: i32,
        /// Pods with all labels of the template.
        pub fully_labeled_replicas: i32,
        /// Pods that are ready.
        pub ready_replicas: i32,
        /// Pods that have been ready for long enough.
        pub available_replicas: i32,
        /// Pods under deletion.
        pub terminating_replicas: Option<i32>,
        /// The generation that this is about.
        pub observed_generation: i64,
        /// `ReplicaFailure`.
        pub conditions: Vec<DatedCondition>,
    }

    /// `apps/v1` DaemonSet: what it wants and is concerns its own controller only.
    pub struct DaemonSet {
        /// Metadata.
        pub metadata: ObjectMeta,
    }

    /// `apps/v1` Deployment.
    pub struct Deployment {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: DeploymentSpec,
        /// What is.
        pub status: DeploymentStatus,
    }

    /// What a Deployment wants.
    pub struct DeploymentSpec {
        /// Pods; 1 by default.
        pub replicas: Option<i32>,
        /// Its ReplicaSets and their pods.
        pub selector: LabelSelector,
        /// What a pod is made from.
        pub template: RawJson,
        /// How pods are replaced.
        pub strategy: DeploymentStrategy,
        /// Ready for so long counts as available.
        pub min_ready_seconds: i32,
        /// Old ReplicaSets that are kept; 10 by default.
        pub revision_history_limit: Option<i32>,
        /// No roll-out while true.
        pub paused: bool,
        /// A roll-out without progress for so long has failed; 600 by default.
        pub progress_deadline_seconds: Option<i32>,
    }

    /// How pods are replaced.
    pub struct DeploymentStrategy {
        /// `RollingUpdate` (also when empty) or `Recreate`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Bounds of a rolling update.
        pub rolling_update: Option<RollingDeployment>,
    }

    /// Bounds of a rolling update.
    pub struct RollingDeployment {
        /// Pods that may be missing; 25% by default.
        pub max_unavailable: Option<IntOrString>,
        /// Pods beyond those wanted; 25% by default.
        pub max_surge: Option<IntOrString>,
    }

    /// What a Deployment is.
    pub struct DeploymentStatus {
        /// The generation that this is about.
        pub observed_generation: i64,
        /// Pods.
        pub replicas: i32,
        /// Pods of the newest template.
        pub updated_replicas: i32,
        /// Pods that are ready.
        pub ready_replicas: i32,
        /// Pods that have been ready for long enough.
        pub available_replicas: i32,
        /// Pods that are missing.
        pub unavailable_replicas: i32,
        /// Pods under deletion.
        pub terminating_replicas: Option<i32>,
        /// `Available`, `Progressing`, `ReplicaFailure`.
        pub conditions: Vec<DatedCondition>,
        /// How often the name of a new ReplicaSet was taken.
        pub collision_count: Option<i32>,
    }

    /// `apps/v1` StatefulSet.
    pub struct StatefulSet {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: StatefulSetSpec,
        /// What is.
        pub status: StatefulSetStatus,
    }

    /// What a StatefulSet wants.
    pub struct StatefulSetSpec {
        /// Pods; 1 by default.
        pub replicas: Option<i32>,
        /// Its pods.
        pub selector: LabelSelector,
        /// What a pod is made from.
        pub template: RawJson,
        /// What the claims of a pod are made from.
        pub volume_claim_templates: Vec<RawJson>,
        /// The headless Service that names its pods.
        pub service_name: Box<str>,
        /// `OrderedReady` (also when empty) or `Parallel`.
        pub pod_management_policy: Box<str>,
        /// How pods are replaced.
        pub update_strategy: StatefulSetStrategy,
        /// Old revisions that are kept; 10 by default.
        pub revision_history_limit: Option<i32>,
        /// Ready for so long counts as available.
        pub min_ready_seconds: i32,
        /// What becomes of claims.
        pub persistent_volume_claim_retention_policy: Option<ClaimRetention>,
        /// How pods are numbered.
        pub ordinals: Option<Ordinals>,
    }

    /// How pods of a StatefulSet are replaced.
    pub struct StatefulSetStrategy {
        /// `RollingUpdate` (also when empty) or `OnDelete`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Bounds of a rolling update.
        pub rolling_update: Option<RollingStatefulSet>,
    }

    /// Bounds of a rolling update.
    pub struct RollingStatefulSet {
        /// Pods below this number keep the old template.
        pub partition: Option<i32>,
    }

    /// What becomes of claims: `Retain` (also when empty) or `Delete`.
    pub struct ClaimRetention {
        /// When the StatefulSet is deleted.
        pub when_deleted: Box<str>,
        /// When the claim's pod is no longer wanted.
        pub when_scaled: Box<str>,
    }

    /// How pods are numbered.
    pub struct Ordinals {
        /// From here.
        pub start: i32,
    }

    /// What a StatefulSet is.
    pub struct StatefulSetStatus {
        /// The generation that this is about.
        pub observed_generation: i64,
        /// Pods.
        pub replicas: i32,
        /// Pods that are ready.
        pub ready_replicas: i32,
        /// Pods of the current revision.
        pub current_replicas: i32,
        /// Pods of the update revision.
        pub updated_replicas: i32,
        /// Pods that have been ready for long enough.
        pub available_replicas: i32,
        /// The revision before the update.
        pub current_revision: Box<str>,
        /// The revision after it.
        pub update_revision: Box<str>,
        /// How often the name of a new revision was taken.
        pub collision_count: Option<i32>,
    }

    /// `apps/v1` ControllerRevision.
    pub struct ControllerRevision {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What was wanted at that revision.
        pub data: RawJson,
        /// Its number.
        pub revision: i64,
    }
}

impl StatefulSetSpec {
    /// The first number.
    pub fn start(&self) -> i32 {
        self.ordinals.as_ref().map_or(0, |ordinals| ordinals.start)
    }
}
