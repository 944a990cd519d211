//! Two objects of one type seen together: which fields differ, what merging them gives, what is
//! left when fields are taken away.
//!
//! The rules are those of structured-merge-diff, by which a real server decides who owns what.

mod check;
mod compare;
mod item;
mod merge;
mod remove;
mod written;

use serde_json::Value;

use crate::fields::{Branch, Builder, Element, FieldSet};
use crate::schema::{Share, Spot, Way};

pub(crate) use check::check;
pub(crate) use compare::{Comparison, compare};
pub(crate) use merge::merge;
pub(crate) use remove::remove;
pub(crate) use written::{Hidden, written};

/// Deepest object that is followed.
const DEPTH_MAX: usize = 130;

/// The fields of an object, as its author would own them.
pub(crate) fn fields_of<'a>(object: &'a Value, spot: Spot<'_>) -> FieldSet<'a> {
    let mut walk = Walk {
        set: Builder::default(),
        path: Vec::new(),
    };
    walk.at(object, spot);
    walk.set.finish()
}

struct Walk<'a> {
    set: Builder<'a>,
    path: Vec<Element<'a>>,
}

impl<'a> Walk<'a> {
    fn at(&mut self, value: &'a Value, spot: Spot<'_>) {
        if self.path.len() > DEPTH_MAX {
            return;
        }
        match spot.way(Some(value)) {
            Way::Scalar(_) | Way::Map(Share::Atomic) => self.set.mark(&self.path),
            Way::Map(Share::Granular) => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let below = spot.field(name).unwrap_or_else(Spot::free);
                    self.path.push(Element::field(name.as_str()));
                    self.at(inner, below);
                    let is_empty = inner.as_object().is_some_and(serde_json::Map::is_empty);
                    if inner.is_null() || is_empty || !spot.declares(name) {
                        self.set.mark(&self.path);
                    }
                    self.leave();
                }
            }
            Way::List(crate::schema::ListShape::Atomic) => self.set.mark(&self.path),
            Way::List(shape) => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for (element, items) in item::by_element(list, shape, spot.item()) {
                    self.path.push(element);
                    // Twins have one owner together.
                    if let [one] = items[..] {
                        self.at(one, spot.item());
                    }
                    self.set.mark(&self.path);
                    self.leave();
                }
            }
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        self.set.back_to(self.path.len());
    }
}

/// The set with every field that the type names a member where only deeper paths were.
pub(crate) fn with_named<'a>(set: &FieldSet<'a>, spot: Spot<'_>) -> FieldSet<'a> {
    fn look(branch: Branch<'_, '_>, spot: Option<Spot<'_>>, also: &mut Vec<bool>) {
        for twig in branch.twigs() {
            let at = also.len();
            also.push(false);
            let below = match (spot, twig.element.name()) {
                (Some(spot), Some(name)) => {
                    also[at] = spot.declares(name) && !twig.below.is_empty();
                    spot.field(name)
                }
                (Some(spot), None) => Some(spot.item()),
                (None, _) => None,
            };
            look(twig.below, below, also);
        }
    }
    let mut also = Vec::new();
    look(set.root(), Some(spot), &mut also);
    set.with_members(&also)
}

/// A set that was written under an older schema: what has become one leaf since is owned whole.
pub(crate) fn with_leaves<'a>(set: &FieldSet<'a>, spot: Spot<'_>) -> Option<FieldSet<'a>> {
    let mut gone = Builder::default();
    let mut path = Vec::new();
    leaves(set.root(), spot, &mut path, &mut gone);
    let gone = gone.finish();
    (!gone.is_empty()).then(|| set.without(&gone).union(&gone))
}

fn leaves<'a>(
    branch: Branch<'_, 'a>,
    spot: Spot<'_>,
    path: &mut Vec<Element<'a>>,
    gone: &mut Builder<'a>,
) {
    for twig in branch.twigs().filter(|twig| !twig.below.is_empty()) {
        let below = match twig.element.name() {
            Some(name) => spot.field(name),
            None => Some(spot.item()),
        };
        let Some(below) = below else { continue };
        path.push(twig.element.clone());
        let is_leaf = matches!(
            below.way(None),
            Way::Map(Share::Atomic) | Way::List(crate::schema::ListShape::Atomic)
        );
        if is_leaf {
            gone.mark(path);
        } else {
            leaves(twig.below, below, path, gone);
        }
        path.pop();
        gone.back_to(path.len());
    }
}

/// Equal as values: 1 and 1.0 are.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((name, a), (other, b))| name == other && is_same(a, b))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
