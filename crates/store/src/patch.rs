//! The three patches: JSON patch, JSON merge patch, and strategic merge for built-in kinds.

mod order;
mod strategic;

use std::fmt;

use json_patch::PatchOperation;
use serde_json::{Map, Value};

pub use strategic::strategic;

/// Most operations of one JSON patch.
pub const OPERATIONS_MAX: usize = 10_000;
/// Most bytes that the copies of one JSON patch may add.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

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

/// Applies an RFC 6902 patch. On an error the object may be half changed: patch a copy.
///
/// # Errors
/// [`PatchError::Unprocessable`] where a `test` fails or a path does not exist.
pub fn json(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let count = patch.as_array().map_or(0, Vec::len);
    if count > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
        )));
    }
    let operations: json_patch::Patch = serde_json::from_value(patch.clone())
        .map_err(|cause| PatchError::Malformed(format!("error decoding patch: {cause}")))?;
    let mut copied = 0;
    for operation in operations.0 {
        if let PatchOperation::Copy(copy) = &operation {
            let bytes = object
                .pointer(copy.from.as_str())
                .map_or(0, |value| size(value, COPIED_BYTES_MAX + 1));
            copied += bytes;
            if copied > COPIED_BYTES_MAX {
                return Err(PatchError::TooLarge(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPIED_BYTES_MAX}"
                )));
            }
        }
        json_patch::patch_unsafe(object, std::slice::from_ref(&operation))
            .map_err(|cause| PatchError::Unprocessable(cause.to_string()))?;
    }
    Ok(())
}

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
