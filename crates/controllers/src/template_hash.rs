//! Words for templates: the same template gives the same word, whatever the order of its fields.

use std::collections::BTreeMap;

use api::names::SUFFIX_ALPHABET;
use serde_json::{Value, json};

use crate::write;

/// JSON with its fields in order.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, String> = map
                .iter()
                .map(|(key, value)| (key, canonical(value)))
                .collect();
            let parts: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{value}", json!(key)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        other => other.to_string(),
    }
}

/// A word of the parts in the form that upstream gives its hashes: the digits of a number of 32
/// bits, spelt without vowels.
pub(crate) fn word(parts: &[&str]) -> String {
    let sum = write::stable_sum(parts);
    let sum = (sum ^ (sum >> 32)) & u64::from(u32::MAX);
    let letters = SUFFIX_ALPHABET;
    sum.to_string()
        .bytes()
        .map(|digit| letters[usize::from(digit) % letters.len()] as char)
        .collect()
}
