//! What is left of an object when a set of fields is taken away.

use serde_json::{Map, Value};

use super::{DEPTH_MAX, item};
use crate::fields::{Branch, Element, FieldSet};
use crate::schema::{ListShape, Share, Spot, Way};

/// Takes the fields of a set out of an object.
///
/// A map or list that loses all it has becomes null; a part with one owner cannot lose anything,
/// so a set that names what is inside it takes it whole.
pub(crate) fn remove(object: &Value, gone: &FieldSet<'_>, spot: Spot<'_>) -> Value {
    at(object, gone.root(), spot, 0)
}

fn at(value: &Value, gone: Branch<'_, '_>, spot: Spot<'_>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return value.clone();
    }
    match (spot.way(Some(value)), value) {
        (Way::Scalar(_), _) => value.clone(),
        (Way::Map(Share::Granular), Value::Object(map)) => {
            let gone = gone.index();
            let mut kept = Map::new();
            for (name, inner) in map {
                let twig = gone.find(&Element::field(name.as_str()));
                let left = match twig {
                    Some(twig) if twig.is_member => continue,
                    Some(twig) if !twig.below.is_empty() => {
                        let below = spot.field(name).unwrap_or_else(Spot::free);
                        at(inner, twig.below, below, depth + 1)
                    }
                    _ => inner.clone(),
                };
                kept.insert(name.clone(), left);
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        (Way::List(shape @ (ListShape::Keyed(_) | ListShape::Set)), Value::Array(list)) => {
            let gone = gone.index();
            let mut kept = Vec::new();
            for inner in list {
                let twig = item::element(inner, shape, spot.item())
                    .ok()
                    .and_then(|element| gone.find(&element));
                match twig {
                    Some(twig) if twig.is_member => {}
                    Some(twig) if !twig.below.is_empty() => {
                        kept.push(at(inner, twig.below, spot.item(), depth + 1));
                    }
                    _ => kept.push(inner.clone()),
                }
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        _ => Value::Null,
    }
}
