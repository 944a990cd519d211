//! One stored object: its bytes, and the little of it that selectors and preconditions read.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::glance::Glance;
use crate::owners::{Memo, Owners};

/// A stored object at one revision. Never changed, only replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its resourceVersion.
    pub revision: u64,
    /// Its JSON, in the storage version, resourceVersion included, `managedFields` not.
    pub bytes: Box<[u8]>,
    /// Who owns its fields.
    pub owners: Owners,
    /// Where in the bytes `managedFields` is put when the object is shown.
    gap: u32,
    /// What selectors and preconditions read of it.
    glance: Glance,
}

impl Entry {
    /// Reads what the store needs to know of an object's bytes.
    pub(crate) fn parse(
        revision: u64,
        mut bytes: Vec<u8>,
        selectable: &[Box<str>],
        memo: &mut Memo,
    ) -> Result<Entry, serde_json::Error> {
        let peek: Peek<'_> = serde_json::from_slice(&bytes)?;
        let PeekMeta {
            uid,
            labels,
            managed_fields,
        } = peek.metadata;
        let (owners, place) = match managed_fields {
            None => (Owners::default(), None),
            Some(raw) => {
                let start = (raw.get().as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
                let owners = Owners::load(raw.get(), memo)?;
                (owners, Some(start..start + raw.get().len()))
            }
        };
        let gap = match place {
            None => 0,
            Some(place) => cut_owners(&mut bytes, place)?,
        };
        let fields = if selectable.is_empty() {
            Box::default()
        } else {
            crate::pick::fields(&bytes, selectable)?
        };
        let glance = Glance::of(&uid, &fields, &mut labels.unwrap_or_default().0);
        Ok(Entry {
            revision,
            glance,
            bytes: snug(&bytes),
            owners,
            gap,
        })
    }

    /// Whether its `spec` is written just so.
    pub(crate) fn has_spec(&self, spec: &str) -> bool {
        #[derive(Deserialize)]
        struct Peek<'a> {
            #[serde(borrow)]
            spec: Option<&'a RawValue>,
        }
        serde_json::from_slice::<Peek<'_>>(&self.bytes)
            .is_ok_and(|peek| peek.spec.is_some_and(|found| found.get() == spec))
    }

    /// Whether a text stands in its JSON: an object that lacks it is not worth reading whole.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        memchr::memmem::find(&self.bytes, text.as_bytes()).is_some()
    }

    /// The entry of an object at hand, which carries no `managedFields` itself.
    pub(crate) fn of(
        revision: u64,
        object: &Value,
        selectable: &[Box<str>],
        owners: Owners,
    ) -> Entry {
        let (bytes, gap) = written(object);
        let meta = &object["metadata"];
        let mut labels: Vec<(&str, &str)> = meta["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
            .collect();
        let uid = meta["uid"].as_str().unwrap_or_default();
        let glance = Glance::of(uid, &selected(object, selectable), &mut labels);
        Entry {
            revision,
            bytes: snug(&bytes),
            owners,
            gap,
            glance,
        }
    }

    /// The same object as a later revision tells of it.
    pub(crate) fn at_revision(&self, revision: u64) -> Entry {
        let mut object = self.value();
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let (bytes, gap) = written(&object);
        Entry {
            revision,
            bytes: snug(&bytes),
            gap,
            ..self.clone()
        }
    }

    /// The whole JSON, `managedFields` included.
    pub fn shown(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.shown_size());
        self.show(&mut out);
        out
    }

    /// Appends the whole JSON, `managedFields` included.
    pub fn show(&self, out: &mut Vec<u8>) {
        if self.owners.is_empty() || self.gap == 0 {
            out.extend_from_slice(&self.bytes);
            return;
        }
        let (before, after) = self.bytes.split_at(self.gap as usize);
        out.extend_from_slice(before);
        out.extend_from_slice(b"\"managedFields\":");
        self.owners.write(out);
        out.push(b',');
        out.extend_from_slice(after);
    }

    /// Puts `managedFields` into a form of this object.
    pub(crate) fn name_owners(&self, object: &mut Value) {
        if let Some(Value::Object(meta)) = object.get_mut("metadata")
            && !self.owners.is_empty()
        {
            meta.insert("managedFields".to_owned(), self.owners.to_value());
        }
    }

    /// Bytes of the whole JSON, roughly.
    pub fn shown_size(&self) -> usize {
        self.bytes.len() + self.owners.size() + 24
    }

    /// The object without its `managedFields`.
    pub fn value(&self) -> Value {
        // The bytes were written by this store from a value, or read whole by `parse`.
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// What `T` names of the object; nothing where that is of another type than it should be.
    pub(crate) fn read<T: serde::de::DeserializeOwned + Default>(&self) -> T {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.glance.label(key)
    }

    /// The value of the selectable field of that place in its resource's list; empty where it has
    /// none.
    pub fn field(&self, index: usize) -> &str {
        self.glance.field(index).unwrap_or_default()
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        self.glance.uid()
    }
}

/// The bytes in memory of their own size: a vector that is made shorter in place keeps what it had,
/// up to twice what is needed.
fn snug(bytes: &[u8]) -> Box<[u8]> {
    bytes.into()
}

/// An object's JSON, from which a list can take its kind: see [`unkinded`].
pub(crate) fn kind_first(object: &Value) -> Vec<u8> {
    written(object).0
}

/// An object's JSON, and the place in it where `managedFields` belongs: before the first name in
/// its metadata that comes later in the alphabet. Every object has one: its own name.
fn written(object: &Value) -> (Vec<u8>, u32) {
    let mut out = Vec::with_capacity(1_024);
    let mut gap = 0;
    let Value::Object(map) = object else {
        return (object.to_string().into_bytes(), 0);
    };
    let put = |out: &mut Vec<u8>, name: &str, value: &dyn Fn(&mut Vec<u8>)| {
        if out.last().is_some_and(|last| *last != b'{') {
            out.push(b',');
        }
        write_json(out, &name);
        out.push(b':');
        value(out);
    };
    out.push(b'{');
    // What says which kind it is stands first, so that a list can leave it out: see `unkinded`.
    for name in KIND_NAMES {
        if let Some(value) = map.get(*name) {
            put(&mut out, name, &|out| write_json(out, value));
        }
    }
    for (name, value) in map {
        match (name.as_str(), value) {
            (name, _) if KIND_NAMES.contains(&name) => {}
            ("metadata", Value::Object(meta)) => {
                put(&mut out, name, &|out| out.push(b'{'));
                for (name, value) in meta {
                    if gap == 0 && name.as_str() > "managedFields" {
                        if out.last() != Some(&b'{') {
                            out.push(b',');
                        }
                        gap = out.len();
                        write_json(&mut out, &name);
                        out.push(b':');
                        write_json(&mut out, value);
                        continue;
                    }
                    put(&mut out, name, &|out| write_json(out, value));
                }
                out.push(b'}');
            }
            _ => put(&mut out, name, &|out| write_json(out, value)),
        }
    }
    out.push(b'}');
    (out, u32::try_from(gap).unwrap_or(0))
}

fn write_json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    // A vector takes every byte, and names of a value's maps are texts.
    let _ = serde_json::to_writer(out, value);
}

/// Names of the fields that say which kind an object is of.
const KIND_NAMES: &[&str] = &["apiVersion", "kind"];

/// Takes an object's kind out of JSON that stands in `out` from `start` on. Items of a list of a
/// built-in kind do without.
pub(crate) fn unkinded(out: &mut Vec<u8>, start: usize, api_version: &str, kind: &str) {
    let head = format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",");
    if out[start..].starts_with(head.as_bytes()) {
        out.drain(start + 1..start + head.len());
    }
}

/// What stands before the owners in JSON that this program wrote.
const OWNERS_NAME: &[u8] = b"\"managedFields\":";

/// Cuts `managedFields`, whose value stands at `place`, out of an object's JSON, and says where it
/// is put when the object is shown.
fn cut_owners(bytes: &mut Vec<u8>, place: Range<usize>) -> Result<u32, serde_json::Error> {
    let Range { start, end } = place;
    if bytes[..start].ends_with(OWNERS_NAME) && bytes.get(end) == Some(&b',') {
        let gap = start - OWNERS_NAME.len();
        bytes.drain(gap..=end);
        return Ok(u32::try_from(gap).unwrap_or(0));
    }
    // Somebody else's spelling of the same object.
    let mut object: Value = serde_json::from_slice(bytes)?;
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    let (left, gap) = written(&object);
    *bytes = left;
    Ok(gap)
}

fn selected(object: &Value, selectable: &[Box<str>]) -> Vec<String> {
    let texts = selectable.iter().map(|path| field_text(object, path));
    texts.collect()
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
struct Peek<'a> {
    #[serde(borrow)]
    metadata: PeekMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PeekMeta<'a> {
    uid: Box<str>,
    labels: Option<Pairs>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
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
