//! Schemas of objects, compiled once: what a field may hold, what it defaults to, how lists merge.
//!
//! One engine serves both kinds of schema. Built-ins follow Go's decoding rules ([`Schema::coerce`]):
//! wrong types are a decoding error, unknown fields fall away, zero values that Go would print are
//! filled in. Custom resources follow structural schemas: [`Schema::prune`], [`Schema::default`],
//! [`Schema::validate`]. Unknown fields are told for both by [`Schema::unknown_fields`].

mod coerce;
mod compile;
mod default;
mod fields;
mod format;
mod golang;
mod prune;
mod spot;
mod structural;
mod validate;

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::field::FieldError;

use fields::Fields;

pub use compile::Compiler;
pub(crate) use format::base64_error;
pub(crate) use format::is_known as is_known_format;
pub(crate) use spot::{ListShape, Scalar, Spot, Way};
pub(crate) use structural::expand;
pub use validate::Checked;

/// Deepest object that a schema follows; below it everything is opaque.
const DEPTH_MAX: usize = 120;

/// A compiled schema. Cheap to clone: it shares its nodes.
#[derive(Clone, Debug)]
pub struct Schema {
    nodes: Arc<Vec<Node>>,
    root: NodeId,
    rules: Option<Arc<cel::Rules>>,
    /// An object of which nothing is set, where that is kept.
    zero: Option<Arc<Value>>,
}

impl Schema {
    /// The place in the schema where an object begins.
    pub fn root(&self) -> Place<'_> {
        Place {
            schema: self,
            id: self.root,
            site: None,
        }
    }

    /// Checks every default against the schema that it stands in; `at` is the schema's own place.
    pub(crate) fn check_defaults(&self, at: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.defaults_at(self.root, at, 0, &mut errors);
        errors
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

type NodeId = u32;

/// A field or item as its parent sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edge {
    to: NodeId,
    default: Option<Box<Value>>,
    merge: Option<Box<MergeRule>>,
    /// How owners share the object here, where it differs from what its type says.
    share: Option<Share>,
    blank: Blank,
}

/// What becomes of a built-in field that is unset or zero when Go prints its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Blank {
    /// It stays as it came.
    #[default]
    Kept,
    /// It is left out.
    Dropped,
    /// It is printed as null.
    Null,
}

/// How owners share a map or object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Share {
    /// It has one owner as a whole.
    Atomic,
    /// Each field has its own.
    #[default]
    Granular,
}

/// How a strategic merge patch treats the field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeRule {
    /// Lists are merged, not replaced.
    pub merge: bool,
    /// Objects are replaced, not merged.
    pub replace: bool,
    /// Fields of the object that the patch does not name fall away (`retainKeys`).
    pub retain_keys: bool,
    /// The field that identifies an item; `None` for lists of scalars.
    pub key: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Type {
    #[default]
    Any,
    Array,
    Boolean,
    IntOrString,
    Integer,
    Number,
    Object,
    /// A resource quantity: number or string, kept in its canonical form.
    Quantity,
    String,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Each(Edge),
}

#[derive(Clone, Debug, Default)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Map(Vec<Box<str>>),
    Set,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    kind: Type,
    /// `PodSpec`, for Go's decoding errors.
    go_name: Option<Box<str>>,
    format: Option<Box<str>>,
    nullable: bool,
    preserve_unknown: bool,
    embedded: bool,
    properties: Fields,
    additional: Additional,
    items: Option<Box<Edge>>,
    required: Vec<Box<str>>,
    list: ListType,
    share: Share,
    limits: Option<Box<Limits>>,
}

/// Value rules beyond the shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    maximum: Option<f64>,
    minimum: Option<f64>,
    exclusive_maximum: bool,
    exclusive_minimum: bool,
    multiple_of: Option<f64>,
    max_length: Option<u64>,
    min_length: Option<u64>,
    pattern: Option<Arc<Regex>>,
    one_value_of: Vec<Value>,
    max_items: Option<u64>,
    min_items: Option<u64>,
    max_properties: Option<u64>,
    min_properties: Option<u64>,
    unique_items: bool,
    all_of: Vec<NodeId>,
    any_of: Vec<NodeId>,
    /// Whether an int-or-string also has the `anyOf` that says so.
    says_type_again: bool,
    one_of: Vec<NodeId>,
    not: Option<NodeId>,
}

/// A place in a schema, for walks that follow an object (strategic merge, columns).
#[derive(Clone, Copy)]
pub struct Place<'a> {
    schema: &'a Schema,
    id: NodeId,
    site: Option<&'a Edge>,
}

impl<'a> Place<'a> {
    /// The place of a field or map entry, if the schema knows it.
    pub fn field(&self, name: &str) -> Option<Place<'a>> {
        let node = self.schema.node(self.id);
        let edge = match (node.properties.get(name), &node.additional) {
            (Some(edge), _) => edge,
            (None, Additional::Each(edge)) => edge,
            _ => return None,
        };
        Some(self.at(edge))
    }

    /// The place of a list's items.
    pub fn items(&self) -> Option<Place<'a>> {
        let node = self.schema.node(self.id);
        node.items.as_deref().map(|edge| self.at(edge))
    }

    /// How a strategic merge patch treats this field.
    pub fn merge_rule(&self) -> Option<&'a MergeRule> {
        self.site.and_then(|edge| edge.merge.as_deref())
    }

    fn at(&self, edge: &'a Edge) -> Place<'a> {
        Place {
            schema: self.schema,
            id: edge.to,
            site: Some(edge),
        }
    }
}

#[cfg(test)]
mod tests;
