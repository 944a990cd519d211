//! Stored objects as who only looks at them reads them: JSON, where what is missing is empty.

use api::quantity::Quantity;
use serde_json::Value;

/// The uid of an object's controller.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    list(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
        .map(|owner| text(&owner["uid"]))
}

/// Whether a pod has ended.
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Namespace and name.
pub(crate) fn key(object: &Value) -> String {
    let meta = &object["metadata"];
    format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// An amount in thousandths.
pub(crate) fn milli(amount: &Value) -> i128 {
    let written = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return 0,
    };
    written
        .parse::<Quantity>()
        .map_or(0, |quantity| i128::from(quantity.milli_value()))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}
