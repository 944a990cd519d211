//! Resource lists ↔ vectors, in the units of the tables: cpu in thousandths of a core, memory in
//! bytes, pods in pieces, everything else in thousandths.

use std::collections::BTreeMap;

use api::core::ResourceList;
use api::quantity::{Format, Quantity};
use model::resource::ResourceKinds;
use model::{Kind, Limits, Tables, Vector};

pub(super) fn vector(list: &ResourceList, tables: &mut Tables) -> Vector {
    Vector::of(list.iter().map(|(name, quantity)| {
        let kind = tables.kind(name);
        (kind, amount(kind, quantity))
    }))
}

pub(super) fn limits(list: &ResourceList, tables: &mut Tables) -> Limits {
    Limits::of(list.iter().map(|(name, quantity)| {
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
