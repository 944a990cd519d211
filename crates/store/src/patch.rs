//! The three patches: JSON patch, JSON merge patch, and strategic merge for built-in kinds.

mod operations;
mod order;
mod strategic;

use std::fmt;

use serde_json::{Map, Value};

pub use operations::{OPERATIONS_MAX, json};
pub use strategic::strategic;

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// 500: upstream has no better name for what is wrong.
    Failed(String),
    /// 400: the patch itself is malformed.
    Malformed(String),
    /// 413: it has too many operations, or grows the object too far.
    TooLarge(String),
    /// 422: it does not fit the object (a `test` failed, a path is missing).
    Unprocessable(String),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (PatchError::Failed(text)
        | PatchError::Malformed(text)
        | PatchError::TooLarge(text)
        | PatchError::Unprocessable(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for PatchError {}

/// Applies an RFC 7386 patch.
pub fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(map) = object.as_object_mut() else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            map.remove(name);
        } else {
            merge(map.entry(name).or_insert(Value::Null), change);
        }
    }
}

/// Bytes of a value's JSON, counted up to `most`.
fn size(value: &Value, most: usize) -> usize {
    let mut bytes = 2;
    match value {
        Value::String(text) => bytes += text.len(),
        Value::Array(list) => {
            for inner in list {
                bytes += 1 + size(inner, most.saturating_sub(bytes));
                if bytes > most {
                    break;
                }
            }
        }
        Value::Object(map) => {
            for (name, inner) in map {
                bytes += name.len() + 4 + size(inner, most.saturating_sub(bytes));
                if bytes > most {
                    break;
                }
            }
        }
        _ => bytes += 6,
    }
    bytes
}

#[cfg(test)]
mod tests;
