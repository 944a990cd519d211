//! The fields that a new object sets, as `fieldsV1`, in one walk and without a set in between:
//! every creation asks for them.
//!
//! The text is the one that comparing with the unset object gives; a law holds it to that.

use serde_json::{Map, Value};

use super::{DEPTH_MAX, is_same, item};
use crate::fields::Element;
use crate::schema::{ListShape, Share, Spot, Way};

/// What is not told of a new object.
pub(crate) struct Hidden<'a> {
    /// Fields of everybody: nobody owns them, whoever owns what is in them.
    pub(crate) common: &'a [&'a [&'a str]],
    /// Fields of which nothing counts.
    pub(crate) without: &'a [&'a [&'a str]],
}

/// The fields in which `new` is other than `unset`; `None` where one walk cannot tell.
pub(crate) fn written(
    unset: &Value,
    new: &Value,
    spot: Spot<'_>,
    hidden: &Hidden<'_>,
) -> Option<String> {
    let is_granular = spot.way(Some(new)) == Way::Map(Share::Granular);
    let is_plain = is_granular && spot.way(Some(unset)) == Way::Map(Share::Granular);
    let is_shallow = hidden.without.iter().all(|path| path.len() == 1);
    let (true, true, Value::Object(new)) = (is_plain, is_shallow, new) else {
        return None;
    };
    let mut walk = Walk {
        out: String::with_capacity(1_024),
        hidden,
        depth: 0,
    };
    walk.out.push('{');
    walk.fields(unset.as_object(), new, spot, Place::Top)?;
    walk.out.push('}');
    Some(walk.out)
}

/// Where the walk is, as far as it matters to what is hidden.
#[derive(Clone, Copy)]
enum Place<'n> {
    Top,
    /// Inside of this field at the top.
    Field(&'n str),
    Deeper,
}

/// Whether a value itself is owned, where it differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Author,
    Everybody,
}

struct Walk<'h> {
    out: String,
    hidden: &'h Hidden<'h>,
    depth: usize,
}

impl Walk<'_> {
    /// Writes the fields of a map that differ, each after what stands there already.
    fn fields(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: &Map<String, Value>,
        spot: Spot<'_>,
        place: Place<'_>,
    ) -> Option<()> {
        for (name, after) in new {
            let before = old.and_then(|old| old.get(name));
            if before == Some(after) || self.is_hidden(place, name) {
                continue;
            }
            let whose = self.whose(place, name);
            let inside = match place {
                Place::Top => Place::Field(name),
                Place::Field(_) | Place::Deeper => Place::Deeper,
            };
            let below = spot.field(name).unwrap_or_else(Spot::free);
            let element = Element::field(name.as_str());
            self.entry(&element, (before, after), below, (whose, inside))?;
        }
        Some(())
    }

    fn items(
        &mut self,
        old: &[Value],
        new: &[Value],
        shape: ListShape<'_>,
        spot: Spot<'_>,
    ) -> Option<()> {
        // What is unset has no items: those that it has are for the whole comparison.
        if !old.is_empty() {
            return None;
        }
        for (element, one) in item::apart(new, shape, spot)? {
            self.entry(&element, (None, one), spot, (Whose::Author, Place::Deeper))?;
        }
        Some(())
    }

    /// Writes one element and what is to be told of its value, if anything is.
    fn entry(
        &mut self,
        element: &Element<'_>,
        (old, new): (Option<&Value>, &Value),
        spot: Spot<'_>,
        (whose, place): (Whose, Place<'_>),
    ) -> Option<()> {
        if old == Some(new) {
            return Some(());
        }
        let start = self.out.len();
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        element.write(&mut self.out);
        self.out.push(':');
        self.depth += 1;
        let is_told = self.depth <= DEPTH_MAX && self.value(old, new, spot, (whose, place))?;
        self.depth -= 1;
        if !is_told {
            self.out.truncate(start);
        }
        Some(())
    }

    /// Writes what is to be told of a value; whether anything is.
    fn value(
        &mut self,
        old: Option<&Value>,
        new: &Value,
        spot: Spot<'_>,
        (whose, place): (Whose, Place<'_>),
    ) -> Option<bool> {
        let way = spot.way(Some(new));
        // Another form than before is told by comparing twice.
        if old.is_some_and(|old| spot.way(Some(old)) != way) {
            return None;
        }
        let old_map = old.and_then(Value::as_object);
        let old_list = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let has_inside = match (&way, new) {
            (Way::Map(Share::Granular), Value::Object(map)) => {
                !map.is_empty() || old_map.is_some_and(|old| !old.is_empty())
            }
            (Way::Map(Share::Granular), _) => old_map.is_some_and(|old| !old.is_empty()),
            (Way::List(ListShape::Atomic), _) => false,
            (Way::List(_), Value::Array(list)) => !list.is_empty() || !old_list.is_empty(),
            (Way::List(_), _) => !old_list.is_empty(),
            _ => false,
        };
        let is_leaf_told = old.is_none_or(|old| has_inside || !is_same(old, new));
        let is_member = whose == Whose::Author && is_leaf_told && (old.is_none() || !has_inside);
        self.out.push('{');
        if !has_inside {
            self.out.push('}');
            return Some(is_member);
        }
        let open = self.out.len();
        if is_member {
            self.out.push_str("\".\":{}");
        }
        let start = self.out.len();
        match (way, new) {
            (Way::Map(_), Value::Object(map)) => self.fields(old_map, map, spot, place)?,
            (Way::List(shape), Value::Array(list)) => {
                self.items(old_list, list, shape, spot.item())?;
            }
            _ => {}
        }
        let is_empty = self.out.len() == start;
        if is_empty {
            self.out.truncate(open);
        }
        self.out.push('}');
        Some(is_member || !is_empty)
    }

    fn is_hidden(&self, place: Place<'_>, name: &str) -> bool {
        let mut hidden = self.hidden.without.iter();
        matches!(place, Place::Top) && hidden.any(|path| **path == [name])
    }

    fn whose(&self, place: Place<'_>, name: &str) -> Whose {
        let mut common = self.hidden.common.iter();
        let is_common = match place {
            Place::Top => common.any(|path| **path == [name]),
            Place::Field(above) => common.any(|path| **path == [above, name]),
            Place::Deeper => false,
        };
        match is_common {
            true => Whose::Everybody,
            false => Whose::Author,
        }
    }
}
