//! A pod made from an owner's template.

use api::kind::Kind;
use api::meta::ObjectMeta;
use api::names::{SUFFIX_ALPHABET, SUFFIX_LENGTH};
use serde_json::{Map, Value, json};

use crate::write::{controller_ref, stable_sum};

/// The longest stem before the suffix, as the API server cuts it.
const STEM_BYTES_MAX: usize = 58;

/// A name that looks as if the API server had drawn it, and follows from the parts.
pub(crate) fn name(stem: &str, parts: &[&str]) -> String {
    let mut sum = stable_sum(parts);
    let mut name = cut(stem, STEM_BYTES_MAX).to_owned();
    for _ in 0..SUFFIX_LENGTH {
        let letters = SUFFIX_ALPHABET.len() as u64;
        name.push(SUFFIX_ALPHABET[(sum % letters) as usize] as char);
        sum /= letters;
    }
    name
}

/// The first `bytes` of a text at most, ending at a whole character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The map at `value`, empty where there is none.
pub(crate) fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A pod of `owner` in the form that its template asks for. `stem` is what its name begins with.
pub(crate) fn pod(template: &Value, owner: (Kind, &ObjectMeta), stem: &str, name: &str) -> Value {
    let (kind, meta) = owner;
    let mut metadata = json!({
        "name": name,
        "generateName": stem,
        "namespace": meta.namespace,
        "ownerReferences": [controller_ref(kind, meta)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            metadata[field] = value.clone();
        }
    }
    json!({ "metadata": metadata, "spec": map(&template["spec"]) })
}
