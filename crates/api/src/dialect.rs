//! Versions in which servers speak of a kind, where there are several: our rooms speak one, that of the
//! kind's row, and what is said and heard is carried over at the wall.
//!
//! Source: `specs/native-groups.md`, section 1: never assume which version is served. What is asked to
//! find out is a value here ([`asked`], [`serves`]); who asks, and remembers, is a shell.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{Call, refusal};
use crate::intent::{Action, Intent, Refusal};
use crate::kind::Kind;
use crate::native;

/// A version of a kind that is another one than our rooms speak.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Of which kind.
    pub kind: Kind,
    /// `v1alpha3`.
    pub version: &'static str,
    /// What differs, and how it is carried over; nothing where only the name of the version does.
    carry: Option<Carry>,
}

/// How objects are carried over.
#[derive(Clone, Copy, Debug)]
struct Carry {
    /// An object in this version becomes one in ours.
    heard: fn(&mut Value),
    /// A part of an object in ours becomes the same in this version.
    said: fn(&mut Value),
}

/// The list. Of one kind, those come first that are preferred where ours is not served.
pub const DIALECTS: &[Dialect] = &[
    Dialect {
        kind: Kind::DeviceTaintRule,
        version: "v1beta2",
        carry: None,
    },
    // Until Kubernetes 1.34 its selector had two more fields, which are read where they are there.
    Dialect {
        kind: Kind::DeviceTaintRule,
        version: "v1alpha3",
        carry: None,
    },
    Dialect {
        kind: Kind::NativeGroup,
        version: "v1alpha3",
        carry: None,
    },
    Dialect {
        kind: Kind::NativeGroup,
        version: "v1alpha2",
        carry: Some(Carry {
            heard: native::from_v1alpha2,
            said: native::to_v1alpha2,
        }),
    },
];

/// Whether servers speak of the kind in several versions.
pub fn has_several(kind: Kind) -> bool {
    DIALECTS.iter().any(|it| it.kind == kind)
}

/// The versions in which the kind is understood, ours first.
pub fn versions(kind: Kind) -> impl Iterator<Item = &'static str> {
    let ours = std::iter::once(kind.row().version);
    ours.chain(of(kind).map(|dialect| dialect.version))
}

/// The dialects of the kind, the preferred one first.
fn of(kind: Kind) -> impl Iterator<Item = &'static Dialect> {
    DIALECTS.iter().filter(move |it| it.kind == kind)
}

/// `v1beta1, v1alpha3 or v1alpha2`.
pub fn versions_text(kind: Kind) -> String {
    let mut versions: Vec<&str> = versions(kind).collect();
    let last = versions.pop().unwrap_or_default();
    match versions.is_empty() {
        true => last.to_owned(),
        false => format!("{} or {last}", versions.join(", ")),
    }
}

/// What tells whether a server serves the kind in that version: the list of what the version has.
pub fn asked(kind: Kind, version: &str) -> Call {
    Call {
        method: "GET",
        target: format!("/apis/{}/{version}", kind.row().group),
        content_type: "",
        body: Vec::new(),
    }
}

/// What the answer to [`asked`] says.
///
/// # Errors
/// It says nothing: the server could not answer, or may not answer us.
pub fn serves(kind: Kind, code: u16, body: &[u8]) -> Result<bool, Refusal> {
    match code {
        404 => Ok(false),
        200..300 => {
            let list: Value = serde_json::from_slice(body).unwrap_or_default();
            let mut resources = list["resources"].as_array().into_iter().flatten();
            Ok(resources.any(|it| it["name"] == kind.row().plural))
        }
        _ => Err(refusal(code, None, body)),
    }
}

/// Whether an answer says that the version in which it was asked is not served (any more): no word of
/// an object that is not there.
pub fn is_unserved(code: u16, body: &[u8]) -> bool {
    code == 404 && !refusal(code, None, body).is_absence()
}

impl Dialect {
    /// The dialect of that name; `None` where it is our own version.
    pub fn find(kind: Kind, version: &str) -> Option<&'static Dialect> {
        of(kind).find(|dialect| dialect.version == version)
    }

    /// The same path, with or without a query, in this version.
    pub fn path(&self, ours: &str) -> String {
        let row = self.kind.row();
        let prefix = format!("/apis/{}/{}/", row.group, row.version);
        match ours.strip_prefix(&prefix) {
            Some(rest) => format!("/apis/{}/{}/{rest}", row.group, self.version),
            None => ours.to_owned(),
        }
    }

    /// The same request in this version.
    pub fn said(&self, call: Call) -> Call {
        let body = match (self.carry, serde_json::from_slice::<Value>(&call.body)) {
            // What is no JSON was not ours to carry.
            (None, _) | (_, Err(_)) => call.body,
            (Some(carry), Ok(mut body)) => {
                (carry.said)(&mut body);
                body.to_string().into_bytes()
            }
        };
        Call {
            target: self.path(&call.target),
            body,
            ..call
        }
    }

    /// An object of this version in ours; what is none stays as it is, and whoever reads it says so.
    pub fn heard(&self, object: Box<RawValue>) -> Box<RawValue> {
        let Some(carry) = self.carry else {
            return object;
        };
        let Ok(mut value) = serde_json::from_str::<Value>(object.get()) else {
            return object;
        };
        (carry.heard)(&mut value);
        serde_json::value::to_raw_value(&value).unwrap_or(object)
    }

    /// The same of an object that was read, which then also says that it is of our version.
    pub fn heard_value(&self, object: &mut Value) {
        if let Some(carry) = self.carry {
            (carry.heard)(object);
        }
        if let Some(version) = object.get_mut("apiVersion") {
            *version = json!(self.kind.api_version());
        }
    }
}

/// An object that says itself of which version it is becomes one of ours, if that is another one.
pub fn hear(object: &mut Value) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind = Kind::find(text("apiVersion"), text("kind"));
    let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
    if let Some(dialect) = kind.and_then(|kind| Dialect::find(kind, version)) {
        dialect.heard_value(object);
    }
}

/// In which versions one server speaks, as far as is known.
#[derive(Clone, Debug, Default)]
pub struct Spoken(BTreeMap<Kind, Option<&'static Dialect>>);

impl Spoken {
    /// In which version it speaks of the kind: `None` where nobody knows, `Some(None)` in ours.
    pub fn of(&self, kind: Kind) -> Option<Option<&'static Dialect>> {
        self.0.get(&kind).copied()
    }

    /// It speaks of the kind in that version.
    pub fn note(&mut self, kind: Kind, dialect: Option<&'static Dialect>) {
        self.0.insert(kind, dialect);
    }

    /// What was known of the kind is not so any more.
    pub fn forget(&mut self, kind: Kind) {
        self.0.remove(&kind);
    }

    /// An intent whose new object names others (its owners, whom an event is about) in the versions in
    /// which the server knows them: its garbage collector looks owners up by these.
    pub fn named<'intent>(&self, intent: &'intent Intent) -> Cow<'intent, Intent> {
        let Action::Create { body } = &intent.action else {
            return Cow::Borrowed(intent);
        };
        if self.0.values().all(Option::is_none) {
            return Cow::Borrowed(intent);
        }
        let mut body = body.clone();
        let owners = body.pointer_mut("/metadata/ownerReferences");
        for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
            self.rename(owner);
        }
        if let Some(about) = body.get_mut("involvedObject") {
            self.rename(about);
        }
        Cow::Owned(Intent {
            target: intent.target.clone(),
            action: Action::Create { body },
        })
    }

    fn rename(&self, reference: &mut Value) {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let kind = Kind::find(text("apiVersion"), text("kind"));
        if let Some(dialect) = kind.and_then(|kind| self.of(kind).flatten()) {
            let group = dialect.kind.row().group;
            reference["apiVersion"] = json!(format!("{group}/{}", dialect.version));
        }
    }
}
