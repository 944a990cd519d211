//! What a node may say of a pod.

use std::collections::BTreeSet;

use api::names;
use serde_json::Value;

use crate::validation::spot::{Faults, Spot};
use crate::validation::{format, list, meta, text};

/// Conditions whose names belong to Kubernetes.
const CONDITIONS: &[&str] = &["Initialized", "PodScheduled", "Ready"];

/// Checks a pod's changed status.
pub(crate) fn check(pod: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(pod, old, faults);
    super::annotations(&pod.at("metadata").at("annotations"), faults);
    let (status, was) = (pod.at("status"), &old["status"]);
    for condition in status.at("conditions").items() {
        let at = condition.at("type");
        if !CONDITIONS.contains(&at.text()) {
            faults.name_as(&condition.at("Type"), at.text(), names::check_qualified);
        }
    }
    let nominated = status.at("nominatedNodeName");
    if !nominated.is_empty() && *nominated.value != was["nominatedNodeName"] {
        faults.name(&nominated, names::check_subdomain);
        if !text(&old["spec"]["nodeName"]).is_empty() {
            let detail = "may not be set on pods that are already bound to a node";
            faults.forbidden(&nominated, detail);
        }
    }
    faults.unchanged(&status.at("qosClass"), &was["qosClass"]);
    let spec = &old["spec"];
    for (statuses, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let (new, old) = (status.at(statuses), list(&was[statuses]));
        transitions(&new, old, spec, containers, faults);
    }
    let claims = status.at("resourceClaimStatuses");
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.at("name");
        if !list(&spec["resourceClaims"])
            .iter()
            .any(|one| one["name"] == *name.value)
        {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            faults.invalid_text(&name, detail);
        }
        if !seen.insert(name.text()) {
            faults.duplicate(&name, name.text());
        }
    }
    addresses(&status, "podIPs", faults);
    let hosts = status.at("hostIPs");
    let first = hosts.item(0);
    let first = first.at("ip");
    if !hosts.is_empty() && first.value != status.at("hostIP").value {
        faults.invalid_text(&first, "must be equal to `hostIP`");
    }
    addresses(&status, "hostIPs", faults);
}

fn addresses(status: &Spot<'_, '_>, field: &str, faults: &mut Faults) {
    let list = status.at(field);
    for one in list.items() {
        faults.name_as(&one, one.at("ip").text(), format::address);
    }
    let sixes = list
        .items()
        .filter(|one| one.at("ip").text().contains(':'))
        .count();
    if list.len() > 2 || (list.len() == 2 && sixes != 1) {
        let detail = "may specify no more than one IP for each IP family";
        faults.invalid(&list, detail);
    }
}

/// A container that has ended comes back only where it would be restarted.
fn transitions(
    new: &Spot<'_, '_>,
    old: &[Value],
    spec: &Value,
    containers: &str,
    faults: &mut Faults,
) {
    for (index, was) in old.iter().enumerate() {
        let ended = &was["state"]["terminated"];
        if ended.is_null() {
            continue;
        }
        let now = list(new.value)
            .iter()
            .find(|one| one["name"] == was["name"]);
        let Some(now) = now.filter(|now| now["state"]["terminated"].is_null()) else {
            continue;
        };
        let _ = now;
        let container = list(&spec[containers])
            .iter()
            .find(|one| one["name"] == was["name"]);
        let code = ended["exitCode"].as_i64().unwrap_or(0);
        if !container.is_some_and(|container| restarts(container, spec, code)) {
            let at = new.item(index);
            let detail = "may not be transitioned to non-terminated state";
            faults.forbidden(&at.at("state"), detail);
        }
    }
}

/// Whether a container that ended with this code is started again.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    for rule in list(&container["restartPolicyRules"]) {
        let codes = &rule["exitCodes"];
        let listed = list(&codes["values"])
            .iter()
            .any(|value| value.as_i64() == Some(code));
        let applies = if codes["operator"] == "NotIn" {
            !listed
        } else {
            listed
        };
        if applies {
            return true;
        }
    }
    let policy = match text(&container["restartPolicy"]) {
        "" => text(&spec["restartPolicy"]),
        own => own,
    };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}
