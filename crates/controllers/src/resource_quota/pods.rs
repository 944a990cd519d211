//! What pods use of a quota.

use api::core::{Pod, ResourceList, ResourceQuota, ScopeRequirement, limits_of, requests_of};
use api::quantity::Quantity;
use api::time::Time;

use super::number;
use crate::Inputs;

/// Whether a resource is used by pods.
pub(super) fn is_of_pods(name: &str) -> bool {
    let plain = ["cpu", "memory", "ephemeral-storage"];
    let is_plain = |name: &str| plain.contains(&name) || name.starts_with("hugepages-");
    if name == "pods" || is_plain(name) {
        return true;
    }
    match name.split_once('.') {
        Some(("requests", "storage")) => false,
        Some(("requests", _)) => true,
        Some(("limits", rest)) => is_plain(rest),
        _ => false,
    }
}

/// The sums over all pods that are charged, by quota resource; and when one ceases to be.
pub(super) fn charged(
    inputs: &Inputs<'_>,
    quota: &ResourceQuota,
    wake_at: &mut Option<Time>,
) -> ResourceList {
    let mut used = ResourceList::new();
    if !quota.spec.hard.keys().any(|name| is_of_pods(name)) {
        return used;
    }
    for pod in inputs.mirror.list_in::<Pod>(&quota.metadata.namespace) {
        if !is_charged(pod, inputs.now, wake_at) || !is_meant(quota, pod) {
            continue;
        }
        add(&mut used, "pods", &number(1));
        for (name, amount) in requests_of(&pod.spec) {
            add(&mut used, &name, &amount);
            add(&mut used, &format!("requests.{name}"), &amount);
        }
        for (name, amount) in limits_of(&pod.spec) {
            add(&mut used, &format!("limits.{name}"), &amount);
        }
    }
    used
}

fn add(used: &mut ResourceList, name: &str, amount: &Quantity) {
    match used.get_mut(name) {
        Some(sum) => sum.add(amount),
        None => {
            used.insert(name.into(), amount.clone());
        }
    }
}

/// A pod is charged until it has ended, or should have gone.
fn is_charged(pod: &Pod, now: Time, wake_at: &mut Option<Time>) -> bool {
    if pod.is_finished() {
        return false;
    }
    let meta = &pod.metadata;
    let (Some(deleted), Some(grace)) =
        (meta.deletion_timestamp, meta.deletion_grace_period_seconds)
    else {
        return true;
    };
    let due = deleted.plus_ms(grace.saturating_mul(1_000));
    if now > due {
        return false;
    }
    let due = due.plus_ms(1);
    *wake_at = Some(wake_at.map_or(due, |known| known.min(due)));
    true
}

/// Whether all scopes of a quota match a pod.
fn is_meant(quota: &ResourceQuota, pod: &Pod) -> bool {
    let spec = &quota.spec;
    let selector = spec
        .scope_selector
        .iter()
        .flat_map(|it| &it.match_expressions);
    spec.scopes.iter().all(|scope| is_in(scope, pod))
        && selector.into_iter().all(|it| matches(it, pod))
}

fn matches(requirement: &ScopeRequirement, pod: &Pod) -> bool {
    if &*requirement.scope_name != "PriorityClass" {
        return is_in(&requirement.scope_name, pod);
    }
    let class = &pod.spec.priority_class_name;
    let is_listed = requirement.values.contains(class);
    match &*requirement.operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "DoesNotExist" => class.is_empty(),
        _ => !class.is_empty(),
    }
}

fn is_in(scope: &str, pod: &Pod) -> bool {
    let has_end = pod.spec.active_deadline_seconds.is_some_and(|it| it >= 0);
    let is_modest = &*pod.status.qos_class == "BestEffort";
    match scope {
        "Terminating" => has_end,
        "NotTerminating" => !has_end,
        "BestEffort" => is_modest,
        "NotBestEffort" => !is_modest,
        "PriorityClass" => !pod.spec.priority_class_name.is_empty(),
        "CrossNamespacePodAffinity" => reaches_out(pod),
        _ => false,
    }
}

/// Whether a pod has a say about pods of other namespaces.
fn reaches_out(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.iter();
    let sides = affinity.flat_map(|it| it.pod_affinity.iter().chain(&it.pod_anti_affinity));
    sides.into_iter().any(|side| {
        let preferred = side.preferred.iter().map(|it| &it.pod_affinity_term);
        let mut terms = side.required.iter().chain(preferred);
        terms.any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    })
}
