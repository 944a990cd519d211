//! What pods use of a quota.

use api::core::{Pod, ResourceList, ResourceQuota, limits_held, requests_held};
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
        if !is_charged(pod, inputs.now, wake_at) || !quota.is_meant(pod) {
            continue;
        }
        add(&mut used, "pods", &number(1));
        for (name, amount) in requests_held(pod) {
            add(&mut used, &name, &amount);
            add(&mut used, &format!("requests.{name}"), &amount);
        }
        for (name, amount) in limits_held(pod) {
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
