//! Fields that a request cannot write: whoever sends them does not come to own them.
//!
//! The list is what kube-apiserver's strategies declare per resource and subresource.

use crate::fields::FieldSet;
use crate::registry::{Resource, Source};
use crate::strategy;

/// What a request's fields are cut down to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resets {
    /// Nothing is cut.
    Nothing,
    /// Only what begins with one of these.
    Only(&'static [&'static [&'static str]]),
    /// All but these.
    Without(&'static [&'static [&'static str]]),
}

impl Resets {
    pub(crate) fn filter<'a>(&self, set: FieldSet<'a>) -> FieldSet<'a> {
        match self {
            _ if set.is_empty() => set,
            Resets::Nothing => set,
            Resets::Only(patterns) => set.only(patterns),
            Resets::Without(paths) => set.without(&FieldSet::of_names(paths)),
        }
    }

    /// Fields of the metadata that such a request leaves as they were.
    pub(crate) fn kept_meta(&self) -> Vec<&'static str> {
        let Resets::Without(paths) = self else {
            return Vec::new();
        };
        let all = ["annotations", "finalizers", "labels", "ownerReferences"];
        let of_path = |path: &&'static [&'static str]| match **path {
            ["metadata"] => all.to_vec(),
            ["metadata", one] => vec![one],
            _ => Vec::new(),
        };
        paths.iter().flat_map(of_path).collect()
    }
}

const STATUS: Resets = Resets::Without(&[&["status"]]);
const SPEC: Resets = Resets::Without(&[&["spec"]]);
const META_AND_SPEC: Resets = Resets::Without(&[&["metadata"], &["spec"]]);

/// Built-in resources whose main requests leave the status alone, by `group/plural`, sorted.
const KEEPS_STATUS: &[&str] = &[
    "/namespaces",
    "/nodes",
    "/persistentvolumeclaims",
    "/persistentvolumes",
    "/pods",
    "/replicationcontrollers",
    "/resourcequotas",
    "/services",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "apiextensions.k8s.io/customresourcedefinitions",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "autoscaling/horizontalpodautoscalers",
    "batch/cronjobs",
    "batch/jobs",
    "flowcontrol.apiserver.k8s.io/flowschemas",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/servicecidrs",
    "policy/poddisruptionbudgets",
    "resource.k8s.io/resourceclaims",
    "scheduling.k8s.io/podgroups",
    "storage.k8s.io/volumeattachments",
];

/// What requests to a resource or its subresource cannot write.
pub(crate) fn resets(row: &Resource, subresource: &str) -> Resets {
    match (&*row.shelf, subresource) {
        (_, "") if row.source == Source::Custom => {
            if strategy::has_status(row) {
                STATUS
            } else {
                Resets::Nothing
            }
        }
        (_, "status") if row.source == Source::Custom => META_AND_SPEC,
        ("certificates.k8s.io/certificatesigningrequests", "") => {
            Resets::Without(&[&["spec"], &["status"]])
        }
        ("certificates.k8s.io/certificatesigningrequests", "approval") => {
            Resets::Without(&[&["spec"], &["status", "certificate"]])
        }
        ("certificates.k8s.io/certificatesigningrequests", "status") => {
            Resets::Without(&[&["spec"], &["status", "conditions"]])
        }
        (shelf, "") if KEEPS_STATUS.binary_search(&shelf).is_ok() => STATUS,
        ("/namespaces", "finalize") => STATUS,
        ("/pods", "ephemeralcontainers") => Resets::Only(&[&["spec", "ephemeralContainers"]]),
        ("/pods", "resize") => Resets::Only(&[
            &["spec", "containers", "*", "resources"],
            &["spec", "containers", "*", "resizePolicy"],
            &["spec", "initContainers", "*", "resources"],
            &["spec", "initContainers", "*", "resizePolicy"],
        ]),
        ("/pods", "status") => Resets::Without(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        ("apps/deployments", "status") => Resets::Without(&[&["spec"], &["metadata", "labels"]]),
        (
            "admissionregistration.k8s.io/validatingadmissionpolicies"
            | "flowcontrol.apiserver.k8s.io/flowschemas"
            | "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"
            | "networking.k8s.io/servicecidrs"
            | "resource.k8s.io/resourceclaims"
            | "scheduling.k8s.io/podgroups"
            | "storage.k8s.io/volumeattachments",
            "status",
        ) => META_AND_SPEC,
        (shelf, "status") if KEEPS_STATUS.binary_search(&shelf).is_ok() => SPEC,
        _ => Resets::Nothing,
    }
}
