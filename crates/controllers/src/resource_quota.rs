//! ResourceQuotas: what of their limits is used.
//!
//! Everything is counted anew from what is there, as a check on what admission adds up. What is
//! not seen here stays as admission has written it.

use api::core::{PersistentVolumeClaim, Pod, QuotaStatus, ResourceList, ResourceQuota, Service};
use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};
use api::quantity::Quantity;
use api::time::Time;
use mirror::{Change, Mirror};
use serde_json::{Value, json};

mod pods;

use crate::ownership_gc::WATCHED;
use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "resource_quota",
    component: "resourcequota-controller",
    tells_refused: &[],
    watches: &WATCHED,
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.key.namespace.is_empty() || change.kind() == Kind::Lease {
        return;
    }
    if change.kind() == Kind::ResourceQuota {
        keys.push((*change.key).clone());
    }
    let is_same_amount = match (&change.before, &change.after) {
        (Some(_), Some(_)) => !is_news(change),
        _ => false,
    };
    if is_same_amount {
        return;
    }
    for quota in mirror.list_in::<ResourceQuota>(&change.key.namespace) {
        let meta = &quota.metadata;
        keys.push(ObjectKey::new(
            Kind::ResourceQuota,
            &meta.namespace,
            &meta.name,
        ));
    }
}

/// Whether a change of an object changes what it uses.
fn is_news(change: &Change) -> bool {
    match change.kind() {
        Kind::Pod => {
            let (before, after) = (change.before::<Pod>(), change.after::<Pod>());
            before.zip(after).is_some_and(|(before, after)| {
                before.is_finished() != after.is_finished()
                    || before.is_terminating() != after.is_terminating()
                    || before.metadata.generation != after.metadata.generation
            })
        }
        Kind::PersistentVolumeClaim => {
            let before = change.before::<PersistentVolumeClaim>();
            let after = change.after::<PersistentVolumeClaim>();
            before.map(|it| &it.spec) != after.map(|it| &it.spec)
        }
        Kind::Service => {
            let (before, after) = (change.before::<Service>(), change.after::<Service>());
            before.map(|it| &it.spec) != after.map(|it| &it.spec)
        }
        _ => false,
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(quota) = inputs.mirror.get::<ResourceQuota>(namespace, name) else {
        return Step::idle();
    };
    let mut wake_at = None;
    let used = used(inputs, quota, &mut wake_at);
    let status = QuotaStatus {
        hard: quota.spec.hard.clone(),
        used,
    };
    let (old, new) = (wire(&quota.status), wire(&status));
    let patch = write::status_difference(Kind::ResourceQuota, &quota.metadata, &old, &new);
    Step::write(patch.into_iter().collect()).or_wake_at(wake_at)
}

fn used(inputs: &Inputs<'_>, quota: &ResourceQuota, wake_at: &mut Option<Time>) -> ResourceList {
    let mirror = inputs.mirror;
    let namespace = &quota.metadata.namespace;
    let charged = pods::charged(inputs, quota, wake_at);
    let mut used = ResourceList::new();
    for name in quota.spec.hard.keys() {
        let amount = match pods::is_of_pods(name) {
            true => Some(charged.get(name).cloned().unwrap_or_default()),
            false => of_objects(mirror, namespace, name),
        };
        let known = || quota.status.used.get(name).cloned();
        used.insert(name.clone(), amount.or_else(known).unwrap_or_default());
    }
    used
}

/// The use of a resource that is not pods'; `None` if its objects are not seen here.
fn of_objects(mirror: &Mirror, namespace: &str, name: &str) -> Option<Quantity> {
    if let Some(resource) = name.strip_prefix("count/") {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let row = KINDS
            .iter()
            .find(|row| row.plural == plural && row.group == group && row.namespaced)?;
        return Some(number(count(mirror, namespace, row.kind)));
    }
    let services = || mirror.list_in::<Service>(namespace);
    match name {
        "configmaps" => Some(number(count(mirror, namespace, Kind::ConfigMap))),
        "persistentvolumeclaims" => Some(number(count(
            mirror,
            namespace,
            Kind::PersistentVolumeClaim,
        ))),
        "resourcequotas" => Some(number(count(mirror, namespace, Kind::ResourceQuota))),
        "secrets" => Some(number(count(mirror, namespace, Kind::Secret))),
        "services" => Some(number(count(mirror, namespace, Kind::Service))),
        "services.loadbalancers" => {
            let balancers = services().filter(|it| &*it.spec.kind == "LoadBalancer");
            Some(number(balancers.count()))
        }
        "services.nodeports" => {
            let open = services().map(|it| match &*it.spec.kind {
                "NodePort" => it.spec.ports.len(),
                "LoadBalancer" => it.spec.ports.iter().filter(|it| it.node_port != 0).count(),
                _ => 0,
            });
            Some(number(open.sum()))
        }
        "requests.storage" => Some(storage(mirror, namespace, None)),
        _ => {
            let (class, what) = name.split_once(".storageclass.storage.k8s.io/")?;
            match what {
                "requests.storage" => Some(storage(mirror, namespace, Some(class))),
                "persistentvolumeclaims" => {
                    Some(number(claims(mirror, namespace, Some(class)).count()))
                }
                _ => None,
            }
        }
    }
}

fn count(mirror: &Mirror, namespace: &str, kind: Kind) -> usize {
    let objects = mirror.objects(kind);
    objects
        .filter(|object| object.namespace() == namespace)
        .count()
}

fn claims<'a>(
    mirror: &'a Mirror,
    namespace: &str,
    class: Option<&'a str>,
) -> impl Iterator<Item = &'a std::sync::Arc<PersistentVolumeClaim>> {
    let all = mirror.list_in::<PersistentVolumeClaim>(namespace);
    all.filter(move |claim| class.is_none() || claim.spec.storage_class_name.as_deref() == class)
}

fn storage(mirror: &Mirror, namespace: &str, class: Option<&str>) -> Quantity {
    let mut sum = Quantity::default();
    for claim in claims(mirror, namespace, class) {
        if let Some(amount) = claim.spec.resources.requests.get("storage") {
            match sum == Quantity::default() {
                true => sum = amount.clone(),
                false => sum.add(amount),
            }
        }
    }
    sum
}

fn number(count: usize) -> Quantity {
    Quantity::parse(&count.to_string()).unwrap_or_default()
}

/// A status as JSON; what is empty is left out.
fn wire(status: &QuotaStatus) -> Value {
    let mut value = json!({});
    if !status.hard.is_empty() {
        value["hard"] = json!(status.hard);
    }
    if !status.used.is_empty() {
        value["used"] = json!(status.used);
    }
    value
}
