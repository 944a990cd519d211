//! Places in a schema as owners of fields see them: what is one leaf, and what tells items apart.
//!
//! Follows how kube-apiserver turns OpenAPI into the types of structured-merge-diff.

use std::sync::Arc;

use serde_json::Value;

use super::{Additional, Blank, Edge, ListType, NodeId, Schema, Share, Type};

/// A place in an object's type.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a>(Inner<'a>);

#[derive(Clone, Copy)]
enum Inner<'a> {
    Known {
        schema: &'a Schema,
        id: NodeId,
        share: Option<Share>,
        /// Something above keeps fields that the schema does not name.
        keeps: bool,
    },
    /// Anything: maps are shared field by field, lists have one owner.
    Free,
    /// Anything, with one owner.
    Opaque,
}

/// The scalars of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Boolean,
    Numeric,
    String,
    Any,
}

/// What tells the items of a list apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListShape<'a> {
    /// Nothing: the list is one leaf.
    Atomic,
    /// These fields of theirs.
    Keyed(&'a [Box<str>]),
    /// Their values.
    Set,
}

/// What a value at a spot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way<'a> {
    List(ListShape<'a>),
    Map(Share),
    Scalar(Scalar),
}

impl Schema {
    /// The spot where an object begins.
    pub(crate) fn spot(&self) -> Spot<'_> {
        Spot(Inner::Known {
            schema: self,
            id: self.root,
            share: None,
            keeps: self.node(self.root).preserve_unknown,
        })
    }

    /// What Go prints of this kind when nothing of it is set.
    pub(crate) fn zero_object(&self) -> Value {
        if let Some(kept) = &self.zero {
            return Value::clone(kept);
        }
        let mut object = Value::Object(serde_json::Map::new());
        // An empty object has nothing of a wrong type.
        let _ = self.coerce(&mut object);
        self.fill_nulls(self.root, &mut object, 0);
        object
    }

    /// [`Schema::zero_object`], where it is at hand.
    pub(crate) fn kept_zero(&self) -> Option<&Value> {
        self.zero.as_deref()
    }

    /// Keeps [`Schema::zero_object`] at hand: every creation asks for it.
    pub(crate) fn keep_zero(&mut self) {
        if self.zero.is_none() {
            self.zero = Some(Arc::new(self.zero_object()));
        }
    }

    /// Lists and maps that Go prints though they are unset: as null.
    fn fill_nulls(&self, id: NodeId, value: &mut Value, depth: usize) {
        let Value::Object(map) = value else { return };
        if depth > super::DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        for (name, edge) in node.properties.iter() {
            if let Some(inner) = map.get_mut(&**name) {
                self.fill_nulls(edge.to, inner, depth + 1);
            } else if node.required.contains(name) && edge.blank != Blank::Dropped {
                let inner = self.node(edge.to);
                let is_map = matches!(inner.additional, Additional::Each(_) | Additional::Any);
                if inner.kind == Type::Array || is_map {
                    map.insert(name.to_string(), Value::Null);
                }
            }
        }
    }
}

impl<'a> Spot<'a> {
    /// Anything, shared field by field: the type of objects without a schema.
    pub(crate) fn free() -> Spot<'a> {
        Spot(Inner::Free)
    }

    /// What a value here is taken for. `None` and null take the first form that the type has.
    pub(crate) fn way(&self, value: Option<&Value>) -> Way<'a> {
        let (scalar, list, map) = self.forms();
        let fitting = match value {
            None | Some(Value::Null) => None,
            Some(Value::Array(_)) => list.map(Way::List),
            Some(Value::Object(_)) => map.map(Way::Map),
            Some(_) => scalar.map(Way::Scalar),
        };
        fitting
            .or(map.map(Way::Map))
            .or(scalar.map(Way::Scalar))
            .or(list.map(Way::List))
            .unwrap_or(Way::Scalar(Scalar::Any))
    }

    fn forms(&self) -> (Option<Scalar>, Option<ListShape<'a>>, Option<Share>) {
        let (schema, id, share) = match self.0 {
            Inner::Free => {
                let list = Some(ListShape::Atomic);
                return (Some(Scalar::Any), list, Some(Share::Granular));
            }
            Inner::Opaque => {
                let list = Some(ListShape::Atomic);
                return (Some(Scalar::Any), list, Some(Share::Atomic));
            }
            Inner::Known {
                schema, id, share, ..
            } => (schema, id, share),
        };
        let node = schema.node(id);
        let list = match &node.list {
            ListType::Atomic => ListShape::Atomic,
            ListType::Map(keys) => ListShape::Keyed(keys),
            ListType::Set => ListShape::Set,
        };
        let map = share.unwrap_or(node.share);
        match node.kind {
            Type::Any | Type::IntOrString => (Some(Scalar::Any), Some(list), Some(map)),
            Type::Array => (None, Some(list), None),
            Type::Boolean => (Some(Scalar::Boolean), None, None),
            Type::Integer | Type::Number => (Some(Scalar::Numeric), None, None),
            Type::MicroTime | Type::Quantity | Type::Time => (Some(Scalar::Any), None, None),
            Type::Object => (None, None, Some(map)),
            Type::String => match node.format.as_deref() {
                None | Some("" | "byte") => (Some(Scalar::String), None, None),
                Some(_) => (Some(Scalar::Any), None, None),
            },
        }
    }

    /// Whether the type names the field.
    pub(crate) fn declares(&self, name: &str) -> bool {
        match self.0 {
            Inner::Known { schema, id, .. } => schema.node(id).properties.contains_key(name),
            Inner::Free | Inner::Opaque => false,
        }
    }

    /// The spot of a field; `None` where the type has no place for it.
    pub(crate) fn field(&self, name: &str) -> Option<Spot<'a>> {
        let Inner::Known {
            schema, id, keeps, ..
        } = self.0
        else {
            return Some(*self);
        };
        let node = schema.node(id);
        if let Some(edge) = node.properties.get(name) {
            return Some(self.at(edge));
        }
        match &node.additional {
            Additional::Each(edge) => Some(self.at(edge)),
            Additional::Any => Some(Spot::free()),
            Additional::None if node.share == Share::Atomic && node.preserve_unknown => {
                Some(Spot(Inner::Opaque))
            }
            Additional::None if keeps || node.properties.is_empty() => Some(Spot::free()),
            Additional::None => None,
        }
    }

    /// The spot of a list's items.
    pub(crate) fn item(&self) -> Spot<'a> {
        let Inner::Known { schema, id, .. } = self.0 else {
            return Spot(Inner::Opaque);
        };
        match &schema.node(id).items {
            Some(edge) => self.at(edge),
            None => Spot(Inner::Opaque),
        }
    }

    /// What a key of this item is where the item does not say it.
    pub(crate) fn key_default(&self, name: &str) -> Option<&'a Value> {
        let Inner::Known { schema, id, .. } = self.0 else {
            return None;
        };
        schema.node(id).properties.get(name)?.default.as_deref()
    }

    fn at(&self, edge: &'a Edge) -> Spot<'a> {
        let Inner::Known { schema, keeps, .. } = self.0 else {
            return *self;
        };
        let node = schema.node(edge.to);
        // A type by its name stands for itself; what is above it does not reach in.
        let inherited = keeps && node.go_name.is_none();
        Spot(Inner::Known {
            schema,
            id: edge.to,
            share: edge.share,
            keeps: inherited || node.preserve_unknown,
        })
    }
}
