//! What must hold of the objects themselves, whoever wrote them. It reads stored JSON and shares no
//! code with the rooms that decide.

use std::collections::{BTreeMap, BTreeSet};

use api::volcano::{GROUP_NAME, PARTITION_ID, TASK_SPEC};
use serde_json::Value;

use crate::stored::{is_over, list, map, milli, text};

/// A law that was broken, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `I1`, `I4` … of the invariants' list.
    pub law: &'static str,
    /// Which object, and how.
    pub text: String,
}

/// I1: what is bound to a node fits its allocatable, per resource.
pub(crate) fn capacity<'a>(
    nodes: impl Iterator<Item = &'a Value>,
    pods: impl Iterator<Item = &'a Value>,
) -> Vec<Finding> {
    let mut used: BTreeMap<&str, BTreeMap<&str, i128>> = BTreeMap::new();
    for pod in pods.filter(|pod| !is_over(pod)) {
        let Some(node) = pod["spec"]["nodeName"].as_str() else {
            continue;
        };
        let sums = used.entry(node).or_default();
        *sums.entry("pods").or_default() += 1_000;
        for container in list(&pod["spec"]["containers"]) {
            for (resource, amount) in map(&container["resources"]["requests"]) {
                *sums.entry(&**resource).or_default() += milli(amount);
            }
        }
    }
    let mut findings = Vec::new();
    for node in nodes {
        let name = text(&node["metadata"]["name"]);
        let Some(sums) = used.get(name) else { continue };
        for (resource, sum) in sums {
            let room = milli(&node["status"]["allocatable"][*resource]);
            if *sum > room {
                findings.push(Finding {
                    law: "I1",
                    text: format!("{name} has {room}m {resource} and {sum}m are bound to it"),
                });
            }
        }
    }
    findings
}

/// I4: of a gang that has settled, either nothing is bound or at least the minimum is.
pub(crate) fn wholeness(groups: &[Value], pods: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in groups {
        let (space, name) = (
            text(&group["metadata"]["namespace"]),
            text(&group["metadata"]["name"]),
        );
        let min = group["spec"]["minMember"].as_u64().unwrap_or(0);
        let bound = pods
            .iter()
            .filter(|pod| {
                text(&pod["metadata"]["namespace"]) == space
                    && text(&pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]) == name
                    && pod["spec"]["nodeName"].is_string()
            })
            .count() as u64;
        if bound > 0 && bound < min {
            findings.push(Finding {
                law: "I4",
                text: format!("{space}/{name} has {bound} of {min} tasks bound"),
            });
        }
    }
    findings
}

/// I23: of a gang within a gang, by the labels that divide them, either nothing is bound or as much as it
/// has to be. Of those that have not begun, as gangs that have may lose some.
pub(crate) fn partitions(groups: &[Value], pods: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in groups
        .iter()
        .filter(|it| it["status"]["phase"] != "Running")
    {
        let [space, name] = ["namespace", "name"].map(|it| text(&group["metadata"][it]));
        let of_group = |pod: &&Value| {
            text(&pod["metadata"]["namespace"]) == space
                && text(&pod["metadata"]["annotations"][GROUP_NAME]) == name
                && pod["spec"]["nodeName"].is_string()
        };
        for rule in list(&group["spec"]["subGroupPolicy"]) {
            let task = text(&rule["name"]);
            let size = rule["subGroupSize"].as_u64().unwrap_or(1);
            let mut bound: BTreeMap<&str, u64> = BTreeMap::new();
            for pod in pods.iter().filter(of_group) {
                let labels = &pod["metadata"]["labels"];
                if text(&labels[TASK_SPEC]) == task {
                    *bound.entry(text(&labels[PARTITION_ID])).or_default() += 1;
                }
            }
            for (part, count) in bound.into_iter().filter(|(_, count)| *count < size) {
                findings.push(Finding {
                    law: "I23",
                    text: format!(
                        "partition {part} of task {task} of {space}/{name} has {count} of {size} bound"
                    ),
                });
            }
        }
    }
    findings
}

/// I21: nothing is left half deleted.
pub(crate) fn leftovers(objects: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in objects {
        let meta = &object["metadata"];
        if meta["deletionTimestamp"].is_string() {
            findings.push(Finding {
                law: "I21",
                text: format!(
                    "{} {}/{} is being deleted and still there, held by {}",
                    text(&object["kind"]),
                    text(&meta["namespace"]),
                    text(&meta["name"]),
                    meta["finalizers"],
                ),
            });
        }
    }
    findings
}

/// No orphan: every controller that an object names is there, with that uid.
pub(crate) fn ownership(objects: &[Value]) -> Vec<Finding> {
    let uids: BTreeSet<&str> = objects
        .iter()
        .map(|object| text(&object["metadata"]["uid"]))
        .collect();
    let mut findings = Vec::new();
    for object in objects {
        for owner in list(&object["metadata"]["ownerReferences"]) {
            if !uids.contains(text(&owner["uid"])) {
                findings.push(Finding {
                    law: "I6",
                    text: format!(
                        "{} {}/{} belongs to {} {}, which is not there",
                        text(&object["kind"]),
                        text(&object["metadata"]["namespace"]),
                        text(&object["metadata"]["name"]),
                        text(&owner["kind"]),
                        text(&owner["name"]),
                    ),
                });
            }
        }
    }
    findings
}
