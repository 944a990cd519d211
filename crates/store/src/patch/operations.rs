//! JSON patch (RFC 6902) as the real server's library reads it.
//!
//! Where it differs from the document: a missing field of an object reads as null, so that
//! `replace`, `copy` and `test` may name one; indexes may count from the end; the first letter of
//! a path is not looked at.

use serde_json::{Map, Value};

use super::{PatchError, size};

/// Most operations of one JSON patch.
pub const OPERATIONS_MAX: usize = 10_000;
/// Most bytes that the copies of one JSON patch may add.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies a patch. On an error the object may be half changed: patch a copy.
///
/// # Errors
/// [`PatchError::Malformed`] where the patch is no list of operations,
/// [`PatchError::Unprocessable`] where one does not fit the object.
pub fn json(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().map(Vec::as_slice);
    let operations = operations.ok_or_else(|| malformed("the patch is not a list"))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut copied = 0;
    for operation in operations {
        match operation {
            Value::Object(operation) => apply(object, operation, &mut copied)?,
            Value::Null => return Err(unfit("Unexpected kind")),
            _ => return Err(malformed("an operation is an object")),
        }
    }
    Ok(())
}

fn malformed(why: &str) -> PatchError {
    PatchError::Malformed(format!("error decoding patch: {why}"))
}

fn unfit(why: impl Into<String>) -> PatchError {
    PatchError::Unprocessable(why.into())
}

fn apply(
    object: &mut Value,
    operation: &Map<String, Value>,
    copied: &mut usize,
) -> Result<(), PatchError> {
    let text = |name: &str| {
        let text = operation.get(name).and_then(Value::as_str);
        text.ok_or_else(|| unfit(format!("operation missing {name} field")))
    };
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match operation.get("op").and_then(Value::as_str) {
        Some("add") => Place::find(object, text("path")?)?.add(value()),
        Some("remove") => Place::find(object, text("path")?)?.remove().map(drop),
        Some("replace") if text("path")?.is_empty() => {
            *object = value();
            match object {
                Value::Array(_) | Value::Object(_) => Ok(()),
                _ => Err(unfit("a whole is replaced by an object or a list")),
            }
        }
        Some("replace") => Place::find(object, text("path")?)?.replace(value()),
        Some("move") => {
            let moved = Place::find(object, text("from")?)?.remove()?;
            Place::find(object, text("path")?)?.add(moved)
        }
        Some("copy") => {
            let copy = Place::find(object, text("from")?)?.get()?;
            let place = Place::find(object, text("path")?)?;
            *copied += size(&copy, COPIED_BYTES_MAX + 1);
            if *copied > COPIED_BYTES_MAX {
                return Err(unfit(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPIED_BYTES_MAX}"
                )));
            }
            place.add(copy)
        }
        Some("test") => {
            let path = text("path")?;
            let found = match path {
                "" => object.clone(),
                _ => Place::find(object, path)?.get()?,
            };
            match found == value() {
                true => Ok(()),
                false => Err(unfit(format!("testing value {path} failed"))),
            }
        }
        _ => Err(unfit("Unexpected kind")),
    }
}

/// A name or an index in an object or a list that is there.
struct Place<'v> {
    holder: Holder<'v>,
    key: String,
}

enum Holder<'v> {
    Object(&'v mut Map<String, Value>),
    List(&'v mut Vec<Value>),
}

impl<'v> Place<'v> {
    fn find(object: &'v mut Value, path: &str) -> Result<Place<'v>, PatchError> {
        let missing = || unfit(format!("doc is missing path: {path:?}"));
        let (_, rest) = path.split_once('/').ok_or_else(missing)?;
        let mut parts: Vec<&str> = rest.split('/').collect();
        let key = parts.pop().map(decoded).unwrap_or_default();
        let mut at = object;
        for part in parts {
            let part = decoded(part);
            at = match at {
                Value::Object(map) => map.get_mut(&part).ok_or_else(missing)?,
                Value::Array(list) => {
                    let index = index(&part, list.len())?;
                    list.get_mut(index).ok_or_else(missing)?
                }
                _ => return Err(missing()),
            };
        }
        let holder = match at {
            Value::Object(map) => Holder::Object(map),
            Value::Array(list) => Holder::List(list),
            _ => return Err(missing()),
        };
        Ok(Place { holder, key })
    }

    /// What is there; null where an object has nothing.
    fn get(&self) -> Result<Value, PatchError> {
        match &self.holder {
            Holder::Object(map) => Ok(map.get(&self.key).cloned().unwrap_or(Value::Null)),
            Holder::List(list) => Ok(list[index(&self.key, list.len())?].clone()),
        }
    }

    fn add(self, value: Value) -> Result<(), PatchError> {
        match self.holder {
            Holder::Object(map) => {
                map.insert(self.key, value);
            }
            Holder::List(list) if self.key == "-" => list.push(value),
            // One more place than there are items.
            Holder::List(list) => list.insert(index(&self.key, list.len() + 1)?, value),
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), PatchError> {
        match self.holder {
            Holder::Object(map) => {
                map.insert(self.key, value);
            }
            Holder::List(list) => {
                let at = index(&self.key, list.len())?;
                list[at] = value;
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, PatchError> {
        match self.holder {
            Holder::Object(map) => map
                .remove(&self.key)
                .ok_or_else(|| unfit(format!("Unable to remove nonexistent key: {}", self.key))),
            Holder::List(list) => Ok(list.remove(index(&self.key, list.len())?)),
        }
    }
}

/// A place in a list of so many; negative ones count from the end.
fn index(key: &str, count: usize) -> Result<usize, PatchError> {
    let wrong = || unfit(format!("Unable to access invalid index: {key}"));
    let number: i64 = key.parse().map_err(|_| wrong())?;
    let count = i64::try_from(count).map_err(|_| wrong())?;
    let at = if number < 0 { number + count } else { number };
    match (0..count).contains(&at) {
        true => usize::try_from(at).map_err(|_| wrong()),
        false => Err(wrong()),
    }
}

fn decoded(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
