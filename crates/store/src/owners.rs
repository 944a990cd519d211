//! Who owns which fields of an object: `metadata.managedFields`.
//!
//! Objects carry their owners beside their bytes, not in them: no rule and no controller reads
//! them, and objects made alike share one text. They are put in place where an object is shown.

mod apply;
mod change;
mod created;
mod memo;
mod resets;
mod scale;

use std::sync::Arc;

use api::time::Time;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fields::FieldSet;

pub(crate) use apply::{
    Applied, ApplyError, Force, apply, beyond, last_applied, refusal, renew_last_applied,
};
pub(crate) use change::{Change, Untold, Versions, update};
pub(crate) use created::created;
pub(crate) use memo::Memo;
pub(crate) use resets::{Resets, resets};
pub(crate) use scale::{Replicas, SCALE_VERSION, to_object, to_scale};

/// How somebody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One who writes an object in one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) operation: Operation,
    pub(crate) manager: String,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Who {
    /// Whether both are one owner: one that applies stays itself in another version.
    fn is_same_owner(&self, other: &Who) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// As messages about conflicts name an owner.
    fn described(&self) -> String {
        let quoted = crate::field::go_quoted;
        let mut text = quoted(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", quoted(&self.subresource)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// An owner as it is kept.
#[derive(Clone, Debug, PartialEq)]
struct Owner {
    who: Arc<Who>,
    /// When it last changed something, in seconds since the epoch.
    seconds: Option<i64>,
    /// Its fields, as `fieldsV1` writes them.
    fields: Arc<str>,
}

/// The owners of one object, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners(Box<[Owner]>);

/// An owner at work: its fields as a set.
#[derive(Clone, Debug)]
pub(crate) struct Held<'a> {
    pub(crate) who: Who,
    pub(crate) seconds: Option<i64>,
    pub(crate) fields: FieldSet<'a>,
}

impl Owners {
    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they say, read for a change.
    pub(crate) fn held(&self) -> Vec<Held<'_>> {
        self.0
            .iter()
            .map(|owner| Held {
                who: (*owner.who).clone(),
                seconds: owner.seconds,
                // The text was written by this program from a set.
                fields: FieldSet::read(&owner.fields).unwrap_or_default(),
            })
            .collect()
    }

    /// The owners after a change.
    pub(crate) fn of(mut held: Vec<Held<'_>>, memo: &mut Memo) -> Owners {
        held.sort_by(|a, b| {
            let key = |held: &Held<'_>| (held.who.operation, held.seconds.unwrap_or(0));
            let rest = |held: &Held<'_>| {
                let who = &held.who;
                [&who.manager, &who.api_version, &who.subresource].map(String::clone)
            };
            key(a).cmp(&key(b)).then_with(|| rest(a).cmp(&rest(b)))
        });
        let owners = held.into_iter().map(|held| Owner {
            seconds: held.seconds,
            fields: memo.text(&held.fields.to_text()),
            who: memo.who(held.who),
        });
        Owners(owners.collect())
    }

    /// Reads what [`Owners::write`] wrote.
    pub(crate) fn load(text: &str, memo: &mut Memo) -> Result<Owners, serde_json::Error> {
        let stored: Vec<Stored<'_>> = serde_json::from_str(text)?;
        let owners = stored.into_iter().map(|one| Owner {
            seconds: one
                .time
                .and_then(|text| Time::parse(&text))
                .map(|time| time.micros() / 1_000_000),
            fields: memo.text(one.fields_v1.map_or("{}", RawValue::get)),
            who: memo.who(Who {
                operation: one.operation,
                manager: one.manager,
                api_version: one.api_version,
                subresource: one.subresource,
            }),
        });
        Ok(Owners(owners.collect()))
    }

    /// Reads `metadata.managedFields` as a client wrote it; `None` if it is malformed.
    pub(crate) fn parse(list: &Value) -> Option<Vec<Held<'static>>> {
        let mut held: Vec<Held<'static>> = Vec::new();
        for entry in list.as_array()? {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let operation = match entry["operation"].as_str() {
                Some("Apply") => Operation::Apply,
                Some("Update") => Operation::Update,
                _ => return None,
            };
            if entry["fieldsType"] != "FieldsV1" || text("apiVersion").is_empty() {
                return None;
            }
            let fields = match &entry["fieldsV1"] {
                Value::Null => FieldSet::default(),
                fields => FieldSet::from_value(fields)?,
            };
            let one = Held {
                who: Who {
                    operation,
                    manager: text("manager"),
                    api_version: text("apiVersion"),
                    subresource: text("subresource"),
                },
                seconds: Time::parse(&text("time")).map(|time| time.micros() / 1_000_000),
                fields,
            };
            // The last of several entries of one owner counts.
            held.retain(|other| !other.who.is_same_owner(&one.who));
            held.push(one);
        }
        Some(held)
    }

    /// The same owners but for their times.
    pub(crate) fn is_same_but_times(&self, other: &Owners) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(a, b)| a.who == b.who && a.fields == b.fields)
    }

    /// Bytes of [`Owners::write`], roughly.
    pub(crate) fn size(&self) -> usize {
        let one = |owner: &Owner| owner.fields.len() + owner.who.manager.len() + 160;
        self.0.iter().map(one).sum()
    }

    /// Writes them as the value of `metadata.managedFields`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let quote = |out: &mut Vec<u8>, key: &str, text: &str| {
            out.extend_from_slice(key.as_bytes());
            serde_json::to_writer(&mut *out, text).expect("a text can be written to memory");
        };
        out.push(b'[');
        for (place, owner) in self.0.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            let who = &owner.who;
            quote(out, "{\"apiVersion\":", &who.api_version);
            out.extend_from_slice(b",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
            out.extend_from_slice(owner.fields.as_bytes());
            if !who.manager.is_empty() {
                quote(out, ",\"manager\":", &who.manager);
            }
            quote(out, ",\"operation\":", who.operation.name());
            if !who.subresource.is_empty() {
                quote(out, ",\"subresource\":", &who.subresource);
            }
            if let Some(seconds) = owner.seconds {
                let time = Time::from_seconds(seconds).seconds_text();
                quote(out, ",\"time\":", &time);
            }
            out.push(b'}');
        }
        out.push(b']');
    }

    /// The value of `metadata.managedFields`.
    pub(crate) fn to_value(&self) -> Value {
        let mut out = Vec::with_capacity(self.size());
        self.write(&mut out);
        serde_json::from_slice(&out).unwrap_or_default()
    }
}

/// One owner in an object's stored JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    operation: Operation,
    #[serde(default)]
    manager: String,
    api_version: String,
    #[serde(default)]
    subresource: String,
    time: Option<String>,
    #[serde(borrow, rename = "fieldsV1")]
    fields_v1: Option<&'a RawValue>,
}
