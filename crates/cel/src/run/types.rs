//! Types as values: `type(x) == int`.

use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::{Opaque, OptionalValue};

use crate::kinds::Type;
use crate::signatures::type_named;

/// A type, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeValue(pub(crate) Box<str>);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &str {
        "type"
    }
}

fn named(name: &str) -> Value {
    Value::Opaque(Arc::new(TypeValue(name.into())))
}

/// The type that a name stands for.
pub(super) fn of_name(name: &str) -> Option<Value> {
    let kind = match type_named(name)? {
        Type::Wrapper(inner) => (*inner).clone(),
        other => other,
    };
    let full = kind.full_name();
    // What it is made of is nothing that values know.
    let name = full.split_once('(').map_or(&*full, |(name, _)| name);
    Some(named(name))
}

/// The type of a value.
pub(super) fn of_value(value: &Value) -> Value {
    match value {
        Value::Opaque(opaque) if opaque.downcast_ref::<OptionalValue>().is_some() => {
            named("optional_type")
        }
        value => named(name_of(value)),
    }
}

/// What the type of a value is called.
pub(crate) fn name_of(value: &Value) -> &str {
    match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Float(_) => "double",
        Value::Function(..) => "function",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::String(_) => "string",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::UInt(_) => "uint",
    }
}
