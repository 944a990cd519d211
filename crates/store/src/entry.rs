//! One stored object: its bytes, and the little of it that selectors and preconditions read.

use serde::Deserialize;
use serde_json::Value;

/// A stored object at one revision. Never changed, only replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its resourceVersion.
    pub revision: u64,
    /// Its JSON, in the storage version, resourceVersion included.
    pub bytes: Box<[u8]>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of its resource's selectable fields, in their order.
    pub fields: Box<[Box<str>]>,
}

impl Entry {
    /// Reads what the store needs to know of an object's bytes.
    pub fn parse(
        revision: u64,
        bytes: Vec<u8>,
        selectable: &[Box<str>],
    ) -> Result<Entry, serde_json::Error> {
        let peek: Peek = serde_json::from_slice(&bytes)?;
        let fields = if selectable.is_empty() {
            Box::default()
        } else {
            crate::pick::fields(&bytes, selectable)?
        };
        let mut labels: Vec<_> = peek.metadata.labels.unwrap_or_default().0;
        labels.sort();
        Ok(Entry {
            revision,
            uid: peek.metadata.uid,
            labels: labels.into(),
            fields,
            bytes: bytes.into(),
        })
    }

    /// The entry of an object at hand.
    pub fn of(revision: u64, object: &Value, selectable: &[Box<str>]) -> Entry {
        let meta = &object["metadata"];
        let mut labels: Vec<(Box<str>, Box<str>)> = meta["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or("").into()))
            .collect();
        labels.sort();
        Entry {
            revision,
            bytes: object.to_string().into_bytes().into(),
            uid: meta["uid"].as_str().unwrap_or_default().into(),
            labels: labels.into(),
            fields: selected(object, selectable),
        }
    }

    /// The object.
    pub fn value(&self) -> Value {
        // The bytes were written by this store from a value, or read whole by `parse`.
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .binary_search_by(|(label, _)| (**label).cmp(key))
            .ok()
            .map(|index| &*self.labels[index].1)
    }
}

fn selected(object: &Value, selectable: &[Box<str>]) -> Box<[Box<str>]> {
    selectable
        .iter()
        .map(|path| field_text(object, path).into())
        .collect()
}

/// The text by which a field selector sees a field: `spec.nodeName`. Absent is empty.
pub fn field_text(object: &Value, path: &str) -> String {
    let mut at = object;
    for part in path.split('.') {
        match at.get(part) {
            Some(next) => at = next,
            None => return String::new(),
        }
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Peek {
    metadata: PeekMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PeekMeta {
    uid: Box<str>,
    labels: Option<Pairs>,
}

/// A map of strings, read as pairs.
#[derive(Default)]
struct Pairs(Vec<(Box<str>, Box<str>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
