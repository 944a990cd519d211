//! Which fields one object has that another has not, or has otherwise.

use serde_json::{Map, Value};

use super::{DEPTH_MAX, is_same, item};
use crate::fields::{Builder, Element, FieldSet};
use crate::schema::{ListShape, Share, Spot, Way};

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison<'a> {
    pub(crate) added: FieldSet<'a>,
    pub(crate) modified: FieldSet<'a>,
    pub(crate) removed: FieldSet<'a>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// What the new object says that the old one did not.
    pub(crate) fn written(&self) -> FieldSet<'a> {
        self.modified.union(&self.added)
    }
}

/// Compares two objects of one type.
pub(crate) fn compare<'a>(old: &'a Value, new: &'a Value, spot: Spot<'_>) -> Comparison<'a> {
    let mut walk = Walk::default();
    walk.at(Some(old), Some(new), spot);
    Comparison {
        added: walk.added.finish(),
        modified: walk.modified.finish(),
        removed: walk.removed.finish(),
    }
}

#[derive(Default)]
struct Walk<'a> {
    path: Vec<Element<'a>>,
    added: Builder<'a>,
    modified: Builder<'a>,
    removed: Builder<'a>,
}

/// Whether a value was one leaf, with nothing below it to tell of.
#[derive(PartialEq)]
enum Seen {
    Leaf,
    Inside,
}

impl<'a> Walk<'a> {
    fn at(&mut self, old: Option<&'a Value>, new: Option<&'a Value>, spot: Spot<'_>) {
        // Most of most objects is as it was.
        if old == new || self.path.len() > DEPTH_MAX {
            return;
        }
        let (before, after) = (spot.way(old), spot.way(new));
        let seen = match (old, new) {
            (_, None) => self.follow(before, old, new, spot),
            (None, Some(_)) => self.follow(after, old, new, spot),
            _ if before == after => self.follow(after, old, new, spot),
            // Another form than before: what was inside is gone, what is inside is new.
            _ => {
                self.follow(before, old, new, spot);
                self.follow(after, old, new, spot)
            }
        };
        if seen == Seen::Inside {
            if old.is_none() {
                self.added.mark(&self.path);
            } else if new.is_none() {
                self.removed.mark(&self.path);
            }
        }
    }

    fn follow(
        &mut self,
        way: Way<'_>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        spot: Spot<'_>,
    ) -> Seen {
        match way {
            Way::Scalar(_) | Way::Map(Share::Atomic) | Way::List(ListShape::Atomic) => {
                self.leaf(old, new)
            }
            Way::Map(Share::Granular) => {
                let old_map = old.and_then(Value::as_object);
                let new_map = new.and_then(Value::as_object);
                if old_map.is_none_or(Map::is_empty) && new_map.is_none_or(Map::is_empty) {
                    return self.leaf(old, new);
                }
                self.fields(old_map, new_map, spot);
                Seen::Inside
            }
            Way::List(shape) => {
                let old_list = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let new_list = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                if old_list.is_empty() && new_list.is_empty() {
                    return self.leaf(old, new);
                }
                self.items(old_list, new_list, shape, spot.item());
                Seen::Inside
            }
        }
    }

    fn leaf(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) -> Seen {
        match (old, new) {
            (None, _) => self.added.mark(&self.path),
            (_, None) => self.removed.mark(&self.path),
            (Some(old), Some(new)) if !is_same(old, new) => self.modified.mark(&self.path),
            _ => {}
        }
        Seen::Leaf
    }

    fn fields(
        &mut self,
        old: Option<&'a Map<String, Value>>,
        new: Option<&'a Map<String, Value>>,
        spot: Spot<'_>,
    ) {
        let mut old_fields = old.into_iter().flatten().peekable();
        let mut new_fields = new.into_iter().flatten().peekable();
        loop {
            let name = match (old_fields.peek(), new_fields.peek()) {
                (Some((a, _)), Some((b, _))) => a.min(b).as_str(),
                (Some((name, _)), None) | (None, Some((name, _))) => name.as_str(),
                (None, None) => return,
            };
            let before = old_fields.next_if(|(other, _)| *other == name);
            let after = new_fields.next_if(|(other, _)| *other == name);
            let (before, after) = (
                before.map(|(_, value)| value),
                after.map(|(_, value)| value),
            );
            if before == after {
                continue;
            }
            let below = spot.field(name).unwrap_or_else(Spot::free);
            self.path.push(Element::field(name));
            self.at(before, after, below);
            self.leave();
        }
    }

    fn items(&mut self, old: &'a [Value], new: &'a [Value], shape: ListShape<'_>, spot: Spot<'_>) {
        let mut before = item::by_element(old, shape, spot);
        let after = item::by_element(new, shape, spot);
        for (element, new) in after {
            let old = before.remove(&element).unwrap_or_default();
            self.path.push(element);
            match (&old[..], &new[..]) {
                (old @ ([] | [_]), [new]) => self.at(old.first().copied(), Some(new), spot),
                ([_, _, ..], [_, _, ..]) => {
                    if old != new {
                        self.modified.mark(&self.path);
                    }
                }
                // One of twins is left: they are no longer owned together.
                ([_, _, ..], [new, ..]) => {
                    self.at(None, Some(new), spot);
                    self.removed.mark(&self.path);
                }
                (old, _) => {
                    if let [old] = old {
                        self.at(Some(old), None, spot);
                    }
                    self.added.mark(&self.path);
                }
            }
            self.leave();
        }
        for (element, old) in before {
            self.path.push(element);
            if let [old] = old[..] {
                self.at(Some(old), None, spot);
            } else {
                self.removed.mark(&self.path);
            }
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        let depth = self.path.len();
        self.added.back_to(depth);
        self.modified.back_to(depth);
        self.removed.back_to(depth);
    }
}
