//! `scheduling.k8s.io` PodGroup: Kubernetes' own gangs (KEP-4671), read and told about.
//!
//! Source: `specs/native-groups.md`, sections 1 and 2. v1beta1 is spoken, v1alpha3 and v1alpha2 are
//! carried over ([`crate::dialect`]); a Workload is a template from which others make groups, so no room
//! reads it.

use serde_json::{Value, json};

use crate::core::{DISRUPTION_TARGET, DatedCondition, PodResourceClaim, PodResourceClaimStatus};
use crate::meta::ObjectMeta;

/// The API group.
pub const GROUP: &str = "scheduling.k8s.io";
/// Condition type: the group was placed once. It never goes back to `False`.
pub const INITIALLY_SCHEDULED: &str = "PodGroupInitiallyScheduled";
/// Reason of [`INITIALLY_SCHEDULED`] while it is `False`.
pub const UNSCHEDULABLE_REASON: &str = "Unschedulable";
/// Reason of [`INITIALLY_SCHEDULED`] once it is `True`.
pub const SCHEDULED_REASON: &str = "Scheduled";

/// What v1alpha2 calls [`INITIALLY_SCHEDULED`].
const SCHEDULED_IN_V1ALPHA2: &str = "PodGroupScheduled";

read_only! {
    /// A group of pods.
    pub struct PodGroup {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: PodGroupSpec,
        /// What is.
        pub status: PodGroupStatus,
    }

    /// What a group wants.
    pub struct PodGroupSpec {
        /// Whether its pods start together.
        pub scheduling_policy: SchedulingPolicy,
        /// Where its pods must be.
        pub scheduling_constraints: Option<SchedulingConstraints>,
        /// Whether its pods are evicted one by one or all at once; one by one by schema.
        pub disruption_mode: Option<DisruptionMode>,
        /// The name of its priority.
        pub priority_class_name: Box<str>,
        /// Its priority, as the server resolved it.
        pub priority: Option<i32>,
        /// `Never` or `PreemptLowerPriority` (default).
        pub preemption_policy: Option<Box<str>>,
        /// Claims of devices that its pods share, four at most (KEP-5729).
        pub resource_claims: Vec<PodResourceClaim>,
        /// The group of groups that it is part of.
        pub parent_composite_pod_group_name: Box<str>,
    }

    /// One of two.
    pub struct SchedulingPolicy {
        /// Each pod by itself.
        pub basic: Option<Basic>,
        /// So many together.
        pub gang: Option<Gang>,
    }

    /// Nothing to say.
    pub struct Basic {}

    /// Pods that start together.
    pub struct Gang {
        /// So many.
        pub min_count: i32,
    }

    /// Where pods of a group must be.
    pub struct SchedulingConstraints {
        /// One entry at most.
        pub topology: Vec<TopologyConstraint>,
    }

    /// All pods on nodes with one value of a label.
    pub struct TopologyConstraint {
        /// The label.
        pub key: Box<str>,
    }

    /// One of two.
    pub struct DisruptionMode {
        /// Pods are evicted one by one.
        pub single: Option<Basic>,
        /// All or none.
        pub all: Option<Basic>,
    }

    /// What a group is.
    pub struct PodGroupStatus {
        /// Conditions.
        pub conditions: Vec<DatedCondition>,
        /// The claims that were made for it.
        pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    }
}

impl PodGroup {
    /// The label of which all its pods' nodes must have one value.
    pub fn topology_key(&self) -> Option<&str> {
        let constraints = self.spec.scheduling_constraints.as_ref()?;
        let key = &*constraints.topology.first()?.key;
        (!key.is_empty()).then_some(key)
    }

    /// Whether what one of its pods claims is the group's: every field is the same.
    pub fn shares(&self, claim: &PodResourceClaim) -> bool {
        self.spec.resource_claims.contains(claim)
    }

    /// Whether its pods are evicted all or not at all.
    pub fn is_disrupted_whole(&self) -> bool {
        let mode = self.spec.disruption_mode.as_ref();
        mode.is_some_and(|mode| mode.all.is_some())
    }

    /// Whether its condition says that it was placed once.
    pub fn is_scheduled(&self) -> bool {
        self.says(INITIALLY_SCHEDULED)
    }

    /// Whether its condition says that its pods go.
    pub fn is_disrupted(&self) -> bool {
        self.says(DISRUPTION_TARGET)
    }

    fn says(&self, condition: &str) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|it| &*it.kind == condition && &*it.status == "True")
    }
}

/// A group of v1alpha2 (Kubernetes 1.36): how it is disrupted was a word there, its template had two
/// names within one another, and its condition another one.
pub(crate) fn from_v1alpha2(group: &mut Value) {
    if let Some(mode) = group.pointer_mut("/spec/disruptionMode") {
        match mode.as_str() {
            Some("Pod") => *mode = json!({ "single": {} }),
            Some("PodGroup") => *mode = json!({ "all": {} }),
            _ => {}
        }
    }
    let spec = group.pointer_mut("/spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec
        && let Some(template) = spec.remove("podGroupTemplateRef")
        && let Some(workload) = template.get("workload")
    {
        let reference = json!({
            "workloadName": workload["workloadName"],
            "templateName": workload["podGroupTemplateName"],
        });
        spec.insert("workloadRef".to_owned(), reference);
    }
    rename_condition(group, SCHEDULED_IN_V1ALPHA2, INITIALLY_SCHEDULED);
}

/// What a patch of ours says of a group, for v1alpha2: only statuses are written.
pub(crate) fn to_v1alpha2(patch: &mut Value) {
    rename_condition(patch, INITIALLY_SCHEDULED, SCHEDULED_IN_V1ALPHA2);
}

fn rename_condition(object: &mut Value, before: &str, after: &str) {
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if condition["type"] == before {
            condition["type"] = json!(after);
        }
    }
}
