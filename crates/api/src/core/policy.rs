//! Disruption budgets, quotas and leases.

use std::collections::BTreeMap;

use super::{DatedCondition, ResourceList};
use crate::int_or_string::IntOrString;
use crate::meta::ObjectMeta;
use crate::selector::LabelSelector;
use crate::time::Time;

read_only! {
    /// `policy/v1` PodDisruptionBudget.
    pub struct PodDisruptionBudget {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: BudgetSpec,
        /// What is.
        pub status: BudgetStatus,
    }

    /// What a disruption budget wants.
    pub struct BudgetSpec {
        /// Pods that must stay healthy.
        pub min_available: Option<IntOrString>,
        /// Its pods; none matches nothing, an empty one everything.
        pub selector: Option<LabelSelector>,
        /// Pods that may be missing.
        pub max_unavailable: Option<IntOrString>,
    }

    /// What a disruption budget is.
    pub struct BudgetStatus {
        /// The generation that this is about.
        pub observed_generation: i64,
        /// Pods whose eviction was granted and that are not gone yet, with the time of the grant.
        pub disrupted_pods: BTreeMap<Box<str>, Time>,
        /// Evictions that are allowed now.
        pub disruptions_allowed: i32,
        /// Pods that are healthy.
        pub current_healthy: i32,
        /// Pods that must be.
        pub desired_healthy: i32,
        /// Pods that there should be.
        pub expected_pods: i32,
        /// `DisruptionAllowed`.
        pub conditions: Vec<DatedCondition>,
    }

    /// `v1` ResourceQuota.
    pub struct ResourceQuota {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: QuotaSpec,
        /// What is.
        pub status: QuotaStatus,
    }

    /// What a quota wants.
    pub struct QuotaSpec {
        /// Limits by resource.
        pub hard: ResourceList,
        /// Which objects: all of these must match.
        pub scopes: Vec<Box<str>>,
        /// More on which objects.
        pub scope_selector: Option<ScopeSelector>,
    }

    /// More on which objects a quota counts.
    pub struct ScopeSelector {
        /// All of these must match.
        pub match_expressions: Vec<ScopeRequirement>,
    }

    /// One requirement of a quota.
    pub struct ScopeRequirement {
        /// `PriorityClass`, `Terminating` …
        pub scope_name: Box<str>,
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        pub operator: Box<str>,
        /// What it is compared with.
        pub values: Vec<Box<str>>,
    }

    /// What a quota is.
    pub struct QuotaStatus {
        /// Limits as they are enforced.
        pub hard: ResourceList,
        /// What is used.
        pub used: ResourceList,
    }

    /// `coordination.k8s.io/v1` Lease.
    pub struct Lease {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// Who holds it.
        pub spec: LeaseSpec,
    }

    /// Who holds a lease.
    pub struct LeaseSpec {
        /// The holder; empty once it has let go.
        pub holder_identity: Box<str>,
        /// For how long after the last renewal.
        pub lease_duration_seconds: Option<i32>,
        /// Since when this holder has it.
        #[serde(serialize_with = "crate::time::as_micro")]
        pub acquire_time: Option<Time>,
        /// The last renewal.
        #[serde(serialize_with = "crate::time::as_micro")]
        pub renew_time: Option<Time>,
        /// How often it went from one holder to another.
        pub lease_transitions: Option<i32>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_lease_are_put_down_to_the_microsecond() {
        let text = r#"{"renewTime":"2026-11-22T12:31:39.036331Z"}"#;
        let spec: LeaseSpec = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    }
}
