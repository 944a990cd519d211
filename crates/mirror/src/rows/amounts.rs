//! Resource lists ↔ vectors, in the units of the tables: cpu in thousandths of a core, memory in
//! bytes, pods in pieces, everything else in thousandths.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{Pod, QUOTA_LIMITS, ResourceList, requests_held};
use api::quantity::{Format, Quantity};
use api::volcano::PodGroup;
use model::resource::ResourceKinds;
use model::{Kind, Limits, Tables, Vector};

use super::Rows;
use crate::held::Mirror;

/// What is asked for.
pub(super) fn asked(list: &ResourceList, tables: &mut Tables) -> Vector {
    let mut vector = Vector::ZERO;
    for (name, quantity) in resources(list) {
        let kind = tables.kind(name);
        let (held, value) = (vector.get(kind), amount(kind, quantity));
        // Whatever is beyond the known kinds is of one kind: none of it hides another.
        if held == 0 || value > held {
            vector.set(kind, value);
        }
    }
    vector
}

/// What there is.
pub(super) fn offered(list: &ResourceList, tables: &mut Tables) -> Vector {
    Vector::of(counted(resources(list), tables))
}

/// What there may be.
pub(super) fn limits(list: &ResourceList, tables: &mut Tables) -> Limits {
    Limits::of(counted(resources(list), tables))
}

fn resources(list: &ResourceList) -> impl Iterator<Item = (&str, &Quantity)> {
    let resources = list.iter().map(|(name, quantity)| (&**name, quantity));
    resources.filter(|(name, _)| is_resource(name))
}

fn counted<'a>(
    named: impl Iterator<Item = (&'a str, &'a Quantity)>,
    tables: &mut Tables,
) -> impl Iterator<Item = (Kind, i64)> {
    named.filter_map(|(name, quantity)| {
        let kind = tables.offered_kind(name)?;
        Some((kind, amount(kind, quantity)))
    })
}

/// Whether nodes can have it (chapter 3.2: ignored scalars). Volcano's controllers write what a quota calls the
/// needs of a gang's pods into the gang (`requests.cpu`, `limits.memory`, `count/pods`), and no node is asked for
/// that: what counts is cpu, memory, pods, `ephemeral-storage`, and what Kubernetes takes for a scalar resource.
fn is_resource(name: &str) -> bool {
    if is_number_of_objects(name) {
        return false;
    }
    let is_native = matches!(name, "cpu" | "memory" | "pods" | "ephemeral-storage")
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || name.contains("kubernetes.io/");
    is_native || name.contains('/') && !name.starts_with("requests.")
}

/// Whether the name is one by which a quota counts objects.
pub(super) fn is_number_of_objects(name: &str) -> bool {
    name.starts_with("count/")
}

/// Whether a quota counts limits by this name.
pub(super) fn is_limit(name: &str) -> bool {
    QUOTA_LIMITS.iter().any(|(_, limit)| name == *limit)
}

/// What a list, in which resources have the names of quotas, says of limits.
pub(super) fn limits_named(list: &ResourceList, tables: &mut Tables) -> Vector {
    let named = QUOTA_LIMITS
        .iter()
        .filter_map(|(_, limit)| Some((*limit, list.get(*limit)?)));
    of_limits(named, tables)
}

/// A pod's limits, as a quota counts them.
pub(super) fn quota_limits(limits: &ResourceList, tables: &mut Tables) -> Vector {
    let named = QUOTA_LIMITS
        .iter()
        .filter_map(|(name, limit)| Some((*limit, limits.get(*name)?)));
    of_limits(named, tables)
}

fn of_limits<'a>(
    named: impl Iterator<Item = (&'a str, &'a Quantity)>,
    tables: &mut Tables,
) -> Vector {
    Vector::of(counted(named, tables))
}

impl Rows {
    /// There is something now of which nobody had any: who asks for it is looked at again if it was counted
    /// among what is beyond the known kinds.
    pub(super) fn ask_again(&mut self, mirror: &Mirror, late: &[Arc<str>], tables: &mut Tables) {
        let names = |list: &ResourceList| late.iter().any(|name| list.contains_key(&**name));
        let has_charges = self.counted.is_some();
        let asks = |pod: &Pod| {
            has_charges && !pod.spec.resource_claims.is_empty() || names(&requests_held(pod))
        };
        for pod in mirror.list::<Pod>().filter(|pod| !pod.is_finished()) {
            if asks(pod) {
                self.put_pod(mirror, pod, tables);
            }
        }
        for group in mirror.list::<PodGroup>() {
            if group.spec.min_resources.as_ref().is_some_and(names) {
                let ownership = self.ownership(mirror, group);
                self.put_group(group, ownership, tables);
            }
        }
    }
}

pub(super) fn amount(kind: Kind, quantity: &Quantity) -> i64 {
    match kind {
        Kind::MEMORY | Kind::PODS => quantity.value(),
        _ => quantity.milli_value(),
    }
}

/// A vector as upstream writes it into a status.
pub(crate) fn resource_list(
    vector: &Vector,
    kinds: &ResourceKinds,
) -> BTreeMap<Box<str>, Quantity> {
    vector
        .entries()
        .map(|(kind, value)| {
            let quantity = match kind {
                Kind::MEMORY => Quantity::from_value(value, Format::BinarySi),
                Kind::PODS => Quantity::from_value(value, Format::DecimalSi),
                _ => Quantity::from_milli(value),
            };
            ((&**kinds.name(kind)).into(), quantity)
        })
        .collect()
}
