//! Complaints about fields, in the form of Kubernetes' `field.Error`, and reading of loose JSON.

use std::collections::BTreeSet;

use api::core::ResourceList;
use api::names::go_quote;
use serde_json::{Map, Value};

use crate::MESSAGE_BYTES_MAX;
use crate::denials::queues;

/// `path: Invalid value: "text": detail`
pub(crate) fn invalid(path: &str, text: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {}: {detail}", go_quote(text))
}

/// One complaint as it is, several in brackets, doubles left out.
pub(crate) fn aggregate(mut complaints: Vec<String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    complaints.retain(|complaint| seen.insert(complaint.clone()));
    match complaints.len() {
        0 => Ok(()),
        1 => Err(complaints.remove(0)),
        _ => Err(format!("[{}]", complaints.join(", "))),
    }
}

/// The text, cut where it is longer than any message may be.
pub(crate) fn bounded(text: &str) -> String {
    if text.len() <= MESSAGE_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = MESSAGE_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} …", &text[..end])
}

/// The text in a field, empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The number in a field, 0 where there is none.
pub(crate) fn number(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or(0)
}

/// The items of a list field, none where there is no list.
pub(crate) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// The object in a field, made where it is absent; `None` where something else is in its place.
pub(crate) fn inside<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let map = value.as_object_mut()?;
    let inner = map.entry(field).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    inner.as_object_mut()
}

/// Whether a field is absent, null, zero or the empty text: what Go decodes to the zero value.
pub(crate) fn is_unset(map: &Map<String, Value>, field: &str) -> bool {
    match map.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(_) => false,
    }
}

/// Kubernetes' rules on one amount: not negative, and whole where only whole amounts exist.
pub(crate) fn check_amounts(path: &str, amounts: &ResourceList, complaints: &mut Vec<String>) {
    for (name, amount) in amounts {
        let path = format!("{path}.{name}");
        check_amount(&path, name, amount, complaints);
    }
}

pub(crate) fn check_amount(
    path: &str,
    name: &str,
    amount: &api::quantity::Quantity,
    complaints: &mut Vec<String>,
) {
    if amount.is_negative() {
        complaints.push(invalid(path, &amount.to_string(), queues::NEGATIVE.text));
    }
    if is_integer_resource(name) && amount.milli_value() % 1_000 != 0 {
        complaints.push(invalid(path, &amount.to_string(), queues::NOT_WHOLE.text));
    }
}

pub(crate) const INTEGER_RESOURCES: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

fn is_integer_resource(name: &str) -> bool {
    INTEGER_RESOURCES.contains(&name) || is_extended_resource(name)
}

/// A resource of somebody else's domain: `nvidia.com/gpu`.
pub(crate) fn is_extended_resource(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, _)) => !domain.ends_with("kubernetes.io") && !name.starts_with("requests."),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_stand_alone_or_in_brackets_and_never_twice() {
        assert_eq!(aggregate(vec![]), Ok(()));
        assert_eq!(aggregate(vec!["a".into(), "a".into()]), Err("a".into()));
        assert_eq!(
            aggregate(vec!["a".into(), "b".into(), "a".into()]),
            Err("[a, b]".into())
        );
    }

    #[test]
    fn a_long_message_is_cut_at_a_whole_character() {
        let cut = bounded(&"ä".repeat(MESSAGE_BYTES_MAX));
        assert!(cut.len() < MESSAGE_BYTES_MAX + 8);
    }
}
