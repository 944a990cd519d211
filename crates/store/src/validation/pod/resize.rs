//! What of a running pod may change in size.

use serde_json::Value;

use super::whole;
use crate::strategy::quality;
use crate::validation::spot::{Faults, Spot};
use crate::validation::{list, meta, same};

/// What a container may be given more or less of while it runs.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Checks a pod whose containers are to have other resources.
pub(crate) fn check(pod: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(pod, old, faults);
    whole(pod, faults);
    let (spec, was) = (pod.at("spec"), &old["spec"]);
    let had = old["status"]["qosClass"].as_str();
    if had.unwrap_or_else(|| quality(Some(was))) != quality(Some(spec.value)) {
        let shown = pod.at("status").at("qosClass").value.clone();
        let detail = "Pod QOS Class may not change as a result of resizing";
        faults.invalid_as(&spec, shown, detail);
    }
    if !is_supported(old) {
        faults.forbidden(&spec, "Pod running on node without support for resize");
    }
    let before = faults.len();
    for kind in ["containers", "initContainers"] {
        in_place(&spec.at(kind), kind, &was[kind], faults);
    }
    if faults.len() > before {
        return;
    }
    for kind in ["initContainers", "containers"] {
        for (new, old) in spec.at(kind).items().zip(list(&was[kind])) {
            keeps_amounts(&new.at("resources"), &old["resources"], faults);
        }
    }
    for kind in ["containers", "initContainers"] {
        for (new, old) in spec.at(kind).items().zip(list(&was[kind])) {
            only_resizable(&spec, kind, &new, old, faults);
        }
    }
}

/// The first container that runs tells whether its node knows of resources in its status.
fn is_supported(pod: &Value) -> bool {
    let running = list(&pod["status"]["containerStatuses"])
        .iter()
        .find(|status| !status["state"]["running"].is_null());
    running.is_none_or(|status| !status["resources"].is_null())
}

fn in_place(new: &Spot<'_, '_>, kind: &str, old: &Value, faults: &mut Faults) {
    if new.len() != list(old).len() {
        let detail = format!("{kind} may not be added or removed on resize");
        return faults.forbidden(new, &detail);
    }
    for (container, old) in new.items().zip(list(old)) {
        let name = container.at("name");
        if *name.value != old["name"] {
            let detail = format!("{kind} may not be renamed or reordered on resize");
            faults.forbidden(&name, &detail);
        }
    }
}

fn keeps_amounts(new: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    for part in ["requests", "limits"] {
        let at = new.at(part);
        let mut had = old[part].as_object().into_iter().flatten();
        if had.any(|(name, _)| at.value.get(name).is_none()) {
            faults.forbidden(&at, &format!("resource {part} cannot be removed"));
        }
    }
}

fn only_resizable(
    spec: &Spot<'_, '_>,
    kind: &str,
    new: &Spot<'_, '_>,
    old: &Value,
    faults: &mut Faults,
) {
    let mut rest = new.value.clone();
    for part in ["requests", "limits"] {
        let had = &old["resources"][part];
        let Some(amounts) = rest["resources"][part].as_object_mut() else {
            continue;
        };
        for name in RESIZABLE {
            match had.get(name) {
                Some(amount) => amounts.insert(name.to_owned(), amount.clone()),
                None => amounts.remove(name),
            };
        }
        if amounts.is_empty() && had.is_null() {
            rest["resources"][part] = Value::Null;
        }
    }
    if same(&rest, old) {
        return;
    }
    if kind == "containers" {
        return faults.forbidden(spec, "only cpu and memory resources are mutable");
    }
    let detail = "only cpu and memory resources for init or sidecar containers are mutable";
    faults.forbidden(new, detail);
}
