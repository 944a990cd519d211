//! Built-in objects as Go's decoder leaves them: typed, pruned, with zero values that Go prints.

use std::borrow::Cow;

use api::quantity::Quantity;
use api::time::Time;
use serde_json::{Map, Value};

use super::structural::is_zero;
use super::{Additional, Blank, DEPTH_MAX, Edge, Node, NodeId, Schema, Type, format, golang};
use crate::field;

/// Where the decoder is: the innermost Go struct, and the way there without indexes and keys.
/// The way is spelled only in an error.
#[derive(Clone, Copy)]
struct Place<'a> {
    in_struct: &'a str,
    /// The struct whose field this is.
    outer: &'a str,
    parent: Option<&'a Place<'a>>,
    name: &'a str,
}

impl<'a> Place<'a> {
    const ROOT: Place<'static> = Place {
        in_struct: "",
        outer: "",
        parent: None,
        name: "",
    };

    fn inner(&'a self, name: &'a str) -> Place<'a> {
        Place {
            in_struct: self.in_struct,
            outer: self.in_struct,
            parent: Some(self),
            name,
        }
    }

    fn path(&self) -> String {
        let parent = self.parent.map(Place::path).unwrap_or_default();
        if self.name.is_empty() {
            return parent;
        }
        let parent = match golang::embedded(self.outer, self.name) {
            Some(between) => field::child(&parent, between),
            None => parent,
        };
        field::child(&parent, self.name)
    }
}

impl Schema {
    /// Brings a built-in object into the form that a Go server would store: unknown fields and
    /// nulls fall away, quantities and times become canonical, zero values that Go prints appear.
    ///
    /// # Errors
    /// Go's decoding error, if a value is of the wrong type.
    pub fn coerce(&self, value: &mut Value) -> Result<(), String> {
        self.coerce_at(self.root, value, &Place::ROOT, 0)
    }

    /// [`Schema::coerce`] for the metadata alone: the part of a custom resource that is built in.
    ///
    /// # Errors
    /// Go's decoding error, if a value is of the wrong type.
    pub fn coerce_metadata(&self, object: &mut Value) -> Result<(), String> {
        let edge = self.node(self.root).properties.get("metadata");
        let (Some(edge), Some(meta)) = (edge, object.get_mut("metadata")) else {
            return Ok(());
        };
        let place = Place {
            in_struct: "ObjectMeta",
            outer: "",
            parent: None,
            name: "metadata",
        };
        self.coerce_at(edge.to, meta, &place, 0)
    }

    fn coerce_at(
        &self,
        id: NodeId,
        value: &mut Value,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("exceeded max depth of {DEPTH_MAX}"));
        }
        let node = self.node(id);
        let is_right = match (node.kind, &*value) {
            (Type::Any, _) => return Ok(()),
            (Type::Object, Value::Object(_)) | (Type::Array, Value::Array(_)) => {
                return self.coerce_inside(id, value, place, depth);
            }
            (Type::Boolean, Value::Bool(_)) => true,
            (Type::IntOrString, Value::String(_)) => true,
            (Type::IntOrString, Value::Number(number)) => {
                number.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
            }
            (Type::Integer, Value::Number(number)) => fits(node, number),
            (Type::Number, Value::Number(_)) => true,
            (Type::String, Value::String(text)) => {
                if node.format.as_deref() == Some("byte") {
                    format::base64_error(text).map_or(Ok(()), Err)?;
                }
                true
            }
            (Type::Quantity, Value::String(_) | Value::Number(_)) => {
                *value = canonical_quantity(value)?;
                true
            }
            (Type::Time | Type::MicroTime, Value::String(text)) => {
                *value = Value::String(canonical_time(node.kind, text)?);
                true
            }
            _ => false,
        };
        if is_right {
            Ok(())
        } else {
            Err(self.type_error(id, value, place))
        }
    }

    fn coerce_inside(
        &self,
        id: NodeId,
        value: &mut Value,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), String> {
        let node = self.node(id);
        match value {
            Value::Array(list) => {
                let Some(edge) = &node.items else {
                    return Ok(());
                };
                for inner in list {
                    if inner.is_null() {
                        *inner = self.zero(edge);
                    }
                    self.coerce_at(edge.to, inner, place, depth + 1)?;
                }
                Ok(())
            }
            Value::Object(map) => {
                if let Additional::Each(edge) = &node.additional {
                    for inner in map.values_mut() {
                        if inner.is_null() {
                            *inner = self.zero(edge);
                        }
                        self.coerce_at(edge.to, inner, place, depth + 1)?;
                    }
                    return Ok(());
                }
                self.coerce_fields(id, map, place, depth)
            }
            _ => Ok(()),
        }
    }

    fn coerce_fields(
        &self,
        id: NodeId,
        map: &mut Map<String, Value>,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), String> {
        let node = self.node(id);
        if node.preserve_unknown || matches!(node.additional, Additional::Any) {
            return Ok(());
        }
        let in_struct = node.go_name.as_deref().map_or(place.in_struct, short_name);
        let place = Place {
            in_struct,
            ..*place
        };
        let mut wrong = None;
        let mut dropped: Vec<String> = Vec::new();
        map.retain(|name, inner| {
            let Some(edge) = node.properties.get(name) else {
                return false;
            };
            if inner.is_null() || wrong.is_some() {
                return false;
            }
            wrong = self
                .coerce_at(edge.to, inner, &place.inner(name), depth + 1)
                .err();
            let is_dropped = edge.blank == Blank::Dropped && is_zero(inner);
            if is_dropped && edge.default.is_some() {
                dropped.push(name.clone());
            }
            !is_dropped
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        for (name, edge) in node.properties.filled() {
            if map.contains_key(name) || dropped.iter().any(|one| one == name) {
                continue;
            }
            let mut filled = Value::Null;
            if edge.blank != Blank::Null
                && let Some(default) = &edge.default
            {
                filled = (**default).clone();
                self.coerce_at(edge.to, &mut filled, &place.inner(name), depth + 1)?;
            }
            map.insert(name.to_owned(), filled);
        }
        Ok(())
    }

    fn zero(&self, edge: &Edge) -> Value {
        if let Some(default) = &edge.default {
            return (**default).clone();
        }
        match self.node(edge.to).kind {
            Type::Array => Value::Array(Vec::new()),
            Type::Boolean => Value::Bool(false),
            Type::Integer | Type::IntOrString | Type::Number => Value::from(0),
            Type::Object => Value::Object(Map::new()),
            Type::Quantity => "0".into(),
            Type::String => "".into(),
            Type::Any | Type::MicroTime | Type::Time => Value::Null,
        }
    }

    fn type_error(&self, id: NodeId, value: &Value, place: &Place<'_>) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if self.node(id).kind == Type::Integer => {
                format!("number {number}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let kind = self.node(id).kind;
        let wanted = match (kind, golang::named(place.in_struct, place.name)) {
            (Type::Array, Some(named)) => format!("[]{named}"),
            (_, Some(named)) => named.to_owned(),
            // These two read their text themselves.
            (Type::Time | Type::MicroTime, None) => "string".to_owned(),
            (Type::IntOrString, None) if value.is_number() => "int32".to_owned(),
            _ => self.go_type(id, 0),
        };
        let path = place.path();
        if path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        let in_struct = place.in_struct;
        format!(
            "json: cannot unmarshal {found} into Go struct field {in_struct}.{path} of type {wanted}"
        )
    }

    fn go_type(&self, id: NodeId, depth: usize) -> String {
        let node = self.node(id);
        if depth > 5 {
            return "interface {}".to_owned();
        }
        match node.kind {
            Type::Any => "interface {}".to_owned(),
            Type::Array => match &node.items {
                Some(edge) => format!("[]{}", self.go_type(edge.to, depth + 1)),
                None => "[]interface {}".to_owned(),
            },
            Type::Boolean => "bool".to_owned(),
            Type::IntOrString => "intstr.IntOrString".to_owned(),
            Type::Integer => node.format.as_deref().unwrap_or("int64").to_owned(),
            Type::MicroTime => "v1.MicroTime".to_owned(),
            Type::Number => "float64".to_owned(),
            Type::Object => match (&node.additional, &node.go_name) {
                (Additional::Each(edge), _) => {
                    format!("map[string]{}", self.go_type(edge.to, depth + 1))
                }
                (_, Some(name)) => name.to_string(),
                _ => "struct {}".to_owned(),
            },
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::String if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
            Type::String => "string".to_owned(),
            Type::Time => "v1.Time".to_owned(),
        }
    }
}

fn short_name(go_name: &str) -> &str {
    go_name.rsplit('.').next().unwrap_or(go_name)
}

fn fits(node: &Node, number: &serde_json::Number) -> bool {
    match (number.as_i64(), node.format.as_deref()) {
        (Some(n), Some("int32")) => i32::try_from(n).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

fn canonical_quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => Cow::Borrowed(&**text),
        other => Cow::Owned(other.to_string()),
    };
    match Quantity::canonical_text(&text) {
        Ok(text) => Ok(Value::String(text.into_owned())),
        Err(cause) => Err(cause.to_string()),
    }
}

fn canonical_time(kind: Type, text: &str) -> Result<String, String> {
    let time = Time::parse(text)
        .filter(|_| text.contains(['T', 't']))
        .ok_or_else(|| {
            let shown = field::go_quoted(text);
            let layout = match kind {
                Type::MicroTime => "2006-01-02T15:04:05.000000Z07:00",
                _ => "2006-01-02T15:04:05Z07:00",
            };
            format!("parsing time {shown} as \"{layout}\": cannot parse {shown} as \"2006\"")
        })?;
    Ok(match kind {
        Type::MicroTime => time.micro(),
        _ => time.seconds_text(),
    })
}
