//! What imitations of an API in several examples do alike.

use serde_json::Value;

/// What an object is after a merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    for (name, value) in fields {
        match value {
            Value::Null => {
                target.as_object_mut().map(|held| held.remove(name));
            }
            value => merge(&mut target[name.as_str()], value),
        }
    }
}
