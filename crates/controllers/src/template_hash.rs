//! Words for templates: the same template gives the same word, whatever the order of its fields.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::names::SUFFIX_ALPHABET;
use serde_json::{Value, json};

use crate::{deployment, stateful_set, write};

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

/// The word in the name of a ReplicaSet or ControllerRevision that is made, and what it would be if
/// the template were as `body` shows it. The two differ where `body` shows tokens. `before` is how
/// many were made of the same template before it.
pub fn word_of(kind: Kind, body: &Value, before: i32) -> Option<(String, Vec<String>)> {
    let labels = &body["metadata"]["labels"];
    match kind {
        Kind::ReplicaSet => {
            let template = &body["spec"]["template"];
            let hash = |collisions| deployment::revisions::hash(template, collisions);
            let mut shown = vec![hash(Some(before))];
            if before == 0 {
                shown.push(hash(None));
            }
            let word = labels[deployment::revisions::HASH].as_str()?;
            Some((word.to_owned(), shown))
        }
        Kind::ControllerRevision => {
            let shown = stateful_set::revisions::hash(&body["data"], before);
            let word = labels[stateful_set::revisions::HASH].as_str()?;
            Some((word.to_owned(), vec![shown]))
        }
        _ => None,
    }
}
