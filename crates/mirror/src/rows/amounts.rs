//! Resource lists ↔ vectors, in the units of the tables: cpu in thousandths of a core, memory in
//! bytes, pods in pieces, everything else in thousandths.

use std::collections::BTreeMap;

use api::core::ResourceList;
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
    let resources = list.iter().filter(|(name, _)| !is_number_of_objects(name));
    resources.map(|(name, quantity)| {
        let kind = tables.kind(name);
        (kind, amount(kind, quantity))
    })
}

/// Whether the name is one by which a quota counts objects. Whoever writes a quota's names into a gang's needs
/// asks no node for them (chapter 3.2: ignored scalars).
pub(super) fn is_number_of_objects(name: &str) -> bool {
    name.starts_with("count/")
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
