//! How one object becomes another, as a JSON patch (RFC 6902).

use serde_json::{Value, json};

/// Operations that make `old` into `new`, in order. Lists of equal length are changed item by item,
/// others are replaced.
pub fn patch(old: &Value, new: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(&mut String::new(), old, new, &mut operations);
    operations
}

fn compare(path: &mut String, old: &Value, new: &Value, operations: &mut Vec<Value>) {
    match (old, new) {
        (Value::Object(had), Value::Object(has)) => {
            for key in had.keys().filter(|key| !has.contains_key(*key)) {
                let path = format!("{path}/{}", escaped(key));
                operations.push(json!({ "op": "remove", "path": path }));
            }
            for (key, value) in has {
                let length = path.len();
                path.push('/');
                path.push_str(&escaped(key));
                match had.get(key) {
                    Some(old) => compare(path, old, value, operations),
                    None => operations.push(json!({ "op": "add", "path": path, "value": value })),
                }
                path.truncate(length);
            }
        }
        (Value::Array(had), Value::Array(has)) if had.len() == has.len() => {
            for (index, (old, new)) in had.iter().zip(has).enumerate() {
                let length = path.len();
                path.push_str(&format!("/{index}"));
                compare(path, old, new, operations);
                path.truncate(length);
            }
        }
        _ if old == new => {}
        _ => operations.push(json!({ "op": "replace", "path": path, "value": new })),
    }
}

/// A key as a part of a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_go_and_change_where_they_stand() {
        let old =
            json!({ "a": { "b/c": 1, "gone": 2 }, "list": [{ "x": 1 }, { "x": 2 }], "same": [] });
        let new = json!({ "a": { "b/c": 3, "~new": null }, "list": [{ "x": 1 }, { "x": 5 }], "same": [] });
        assert_eq!(
            Value::from(patch(&old, &new)),
            json!([
                { "op": "remove", "path": "/a/gone" },
                { "op": "replace", "path": "/a/b~1c", "value": 3 },
                { "op": "add", "path": "/a/~0new", "value": null },
                { "op": "replace", "path": "/list/1/x", "value": 5 },
            ])
        );
    }

    #[test]
    fn lists_of_other_lengths_are_replaced_and_equal_ones_left_alone() {
        let old = json!({ "list": [1] });
        assert_eq!(patch(&old, &old), Vec::<Value>::new());
        let new = json!({ "list": [1, 2] });
        let replaced = json!([{ "op": "replace", "path": "/list", "value": [1, 2] }]);
        assert_eq!(Value::from(patch(&old, &new)), replaced);
    }
}
