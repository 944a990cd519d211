//! Resource lists ↔ vectors, in the units of the tables: cpu in thousandths of a core, memory in
//! bytes, pods in pieces, everything else in thousandths.

use std::collections::BTreeMap;

use api::core::{QUOTA_LIMITS, ResourceList};
use api::quantity::{Format, Quantity};
use model::resource::ResourceKinds;
use model::{Kind, Limits, Tables, Vector};

pub(super) fn vector(list: &ResourceList, tables: &mut Tables) -> Vector {
    Vector::of(amounts(list, tables))
}

pub(super) fn limits(list: &ResourceList, tables: &mut Tables) -> Limits {
    Limits::of(amounts(list, tables))
}

fn amounts(list: &ResourceList, tables: &mut Tables) -> impl Iterator<Item = (Kind, i64)> {
    let resources = list.iter().filter(|(name, _)| is_resource(name));
    resources.map(|(name, quantity)| {
        let kind = tables.kind(name);
        (kind, amount(kind, quantity))
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
    Vector::of(named.map(|(name, quantity)| {
        let kind = tables.kind(name);
        (kind, amount(kind, quantity))
    }))
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
