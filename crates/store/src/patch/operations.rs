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
            Value::Null => return Err(unfit("Unexpected kind: unknown")),
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

/// One operation; its failures are told in the words of the real server's library.
fn apply(
    object: &mut Value,
    operation: &Map<String, Value>,
    copied: &mut usize,
) -> Result<(), PatchError> {
    let kind = operation.get("op").and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let unnamed = |kind: &str, name: &str| {
        // Some of them say which field, some do not.
        let cause = match (kind, name) {
            ("add" | "remove", _) | ("copy", "path") => String::new(),
            _ => format!("operation missing {name} field: "),
        };
        unfit(format!(
            "{kind} operation failed to decode {name}: {cause}missing value"
        ))
    };
    let path = |kind: &str| text("path").ok_or_else(|| unnamed(kind, "path"));
    let from = |kind: &str| text("from").ok_or_else(|| unnamed(kind, "from"));
    let missing = |what: &str, path: &str| unfit(format!("{what}: {path}: missing value"));
    match kind {
        Some(kind @ ("add" | "remove")) => {
            let path = path(kind)?;
            let what = format!("{kind} operation does not apply: doc is missing path");
            let place = Place::find(object, path);
            let place = place.ok_or_else(|| missing(&what, &format!("\"{path}\"")))?;
            let done = match kind {
                "add" => place.add(value()),
                _ => place.remove().map(drop),
            };
            done.map_err(|why| unfit(format!("error in {kind} for path: '{path}': {why}")))
        }
        Some("replace") => replace(object, path("replace")?, value()),
        Some("move") => {
            let from = from("move")?;
            let what = "move operation does not apply: doc is missing from path";
            let place = Place::find(object, from).ok_or_else(|| missing(what, from))?;
            let key = place.key.clone();
            let moved = place.remove();
            let moved =
                moved.map_err(|why| unfit(format!("error in move for path: '{key}': {why}")))?;
            let path = path("move")?;
            let what = "move operation does not apply: doc is missing destination path";
            let place = Place::find(object, path).ok_or_else(|| missing(what, path))?;
            let added = place.add(moved);
            added.map_err(|why| unfit(format!("error in move for path: '{path}': {why}")))
        }
        Some("copy") => {
            let from = from("copy")?;
            let what = "copy operation does not apply: doc is missing from path";
            let place = Place::find(object, from).ok_or_else(|| missing(what, from))?;
            let copy = place.get();
            let copy =
                copy.map_err(|why| unfit(format!("error in copy for from: '{from}': {why}")))?;
            let path = path("copy")?;
            let what = "copy operation does not apply: doc is missing destination path";
            let place = Place::find(object, path).ok_or_else(|| missing(what, path))?;
            *copied += size(&copy, COPIED_BYTES_MAX + 1);
            if *copied > COPIED_BYTES_MAX {
                return Err(unfit(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPIED_BYTES_MAX}"
                )));
            }
            let added = place.add(copy);
            added.map_err(|why| unfit(format!("error while adding value during copy: {why}")))
        }
        Some("test") => test(object, path("test")?, &value()),
        other => {
            let kind = other.unwrap_or("unknown");
            Err(unfit(format!("Unexpected kind: {kind}")))
        }
    }
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        if !matches!(value, Value::Array(_) | Value::Object(_)) {
            // The library has no cause to name, and names it.
            let what = "replace operation value must be object or array: %!w(<nil>)";
            return Err(unfit(what));
        }
        *object = value;
        return Ok(());
    }
    let missing = |what: &str| {
        unfit(format!(
            "replace operation does not apply: doc is missing {what}: {path}: missing value"
        ))
    };
    let place = Place::find(object, path).ok_or_else(|| missing("path"))?;
    place.get().map_err(|_| missing("key"))?;
    let replaced = place.replace(value);
    // This is what it says of a replacement, too.
    replaced.map_err(|why| unfit(format!("error in remove for path: '{path}': {why}")))
}

fn test(object: &mut Value, path: &str, value: &Value) -> Result<(), PatchError> {
    let found = match path {
        "" => object.clone(),
        _ => {
            let place = Place::find(object, path).ok_or_else(|| {
                unfit(format!(
                    "test operation does not apply: is missing path: {path}: missing value"
                ))
            })?;
            let found = place.get();
            found.map_err(|why| unfit(format!("error in test for path: '{path}': {why}")))?
        }
    };
    match found == *value {
        true => Ok(()),
        false => Err(unfit(format!("testing value {path} failed: test failed"))),
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
    /// The place of a path whose parts but the last are there.
    fn find(object: &'v mut Value, path: &str) -> Option<Place<'v>> {
        let (_, rest) = path.split_once('/')?;
        let mut parts: Vec<&str> = rest.split('/').collect();
        let key = parts.pop().map(decoded).unwrap_or_default();
        let mut at = object;
        for part in parts {
            let part = decoded(part);
            at = match at {
                Value::Object(map) => map.get_mut(&part)?,
                Value::Array(list) => {
                    let index = index(&part, list.len()).ok()?;
                    list.get_mut(index)?
                }
                _ => return None,
            };
        }
        let holder = match at {
            Value::Object(map) => Holder::Object(map),
            Value::Array(list) => Holder::List(list),
            _ => return None,
        };
        Some(Place { holder, key })
    }

    /// What is there; null where an object has nothing.
    fn get(&self) -> Result<Value, String> {
        match &self.holder {
            Holder::Object(map) => Ok(map.get(&self.key).cloned().unwrap_or(Value::Null)),
            Holder::List(list) => Ok(list[index(&self.key, list.len())?].clone()),
        }
    }

    fn add(self, value: Value) -> Result<(), String> {
        match self.holder {
            Holder::Object(map) => {
                map.insert(self.key, value);
            }
            Holder::List(list) if self.key == "-" => list.push(value),
            Holder::List(list) => {
                number(&self.key).map_err(|why| {
                    format!("value was not a proper array index: '{}': {why}", self.key)
                })?;
                // One more place than there are items.
                list.insert(index(&self.key, list.len() + 1)?, value);
            }
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), String> {
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

    fn remove(self) -> Result<Value, String> {
        match self.holder {
            Holder::Object(map) => map.remove(&self.key).ok_or_else(|| {
                format!(
                    "Unable to remove nonexistent key: {}: missing value",
                    self.key
                )
            }),
            Holder::List(list) => Ok(list.remove(index(&self.key, list.len())?)),
        }
    }
}

fn number(key: &str) -> Result<i64, String> {
    let why = |why: &str| format!("strconv.Atoi: parsing {key:?}: {why}");
    key.parse()
        .map_err(|error: std::num::ParseIntError| match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                why("value out of range")
            }
            _ => why("invalid syntax"),
        })
}

/// A place in a list of so many; negative ones count from the end.
fn index(key: &str, count: usize) -> Result<usize, String> {
    let number = number(key)?;
    let at = match number < 0 {
        true => usize::try_from(number.unsigned_abs())
            .ok()
            .and_then(|back| count.checked_sub(back)),
        false => usize::try_from(number).ok(),
    };
    at.filter(|at| *at < count).ok_or_else(|| {
        format!("Unable to access invalid index: {number}: invalid index referenced")
    })
}

fn decoded(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
