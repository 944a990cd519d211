//! Every field of an object with something in it that its author did not think of. Rooms that take
//! objects from outside include this file in their tests.

use serde_json::{Value, json};

/// What a field may hold.
pub fn values() -> [Value; 10] {
    [
        Value::Null,
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(1.5),
        json!("ä\u{0}"),
        json!([]),
        json!([5]),
        json!({}),
        json!({ "a": {} }),
    ]
}

/// The paths (JSON pointers) of all fields, and of the object itself, deepest first.
pub fn paths(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(object, String::new(), &mut found);
    found
}

/// The object with that value at that path.
pub fn with(object: &Value, path: &str, odd: Value) -> Value {
    let mut changed = object.clone();
    *changed
        .pointer_mut(path)
        .expect("the path is the object's own") = odd;
    changed
}

fn walk(value: &Value, path: String, found: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                walk(inner, format!("{path}/{}", escape(key)), found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                walk(inner, format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(path);
}
