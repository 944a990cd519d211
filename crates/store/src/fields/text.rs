//! `fieldsV1`: sets of fields as JSON, and back.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{Element, FieldSet, Sort, Step, algebra};

/// Deepest set that is read.
const DEPTH_MAX: usize = 130;

impl<'a> FieldSet<'a> {
    /// Reads what [`FieldSet::to_text`] wrote.
    pub(crate) fn read(text: &'a str) -> Result<FieldSet<'a>, serde_json::Error> {
        let mut steps = Vec::new();
        let mut reader = serde_json::Deserializer::from_str(text);
        Below {
            steps: &mut steps,
            depth: 0,
        }
        .deserialize(&mut reader)?;
        Ok(FieldSet(algebra::sorted(steps)))
    }

    /// Reads what a client wrote; `None` if it is no set of fields.
    pub fn from_value(value: &Value) -> Option<FieldSet<'static>> {
        let mut steps = Vec::new();
        from_value(value, &mut steps, 0)?;
        Some(FieldSet(algebra::sorted(steps)))
    }

    /// The set as `fieldsV1`.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.0.len() * 24 + 2);
        write(&self.0, false, &mut out);
        out
    }
}

impl Element<'_> {
    /// The element as `fieldsV1` writes it: `"f:spec"`.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str(match self.sort {
            Sort::Field => "\"f:",
            Sort::Key => "\"k:",
            Sort::Value => "\"v:",
            Sort::Index => "\"i:",
        });
        escape(&self.text, out);
        out.push('"');
    }
}

/// Writes what stands below one place; `is_member` says whether the place itself is in the set.
fn write(mut steps: &[Step<'_>], is_member: bool, out: &mut String) {
    out.push('{');
    let mut is_first = true;
    if is_member && !steps.is_empty() {
        out.push_str("\".\":{}");
        is_first = false;
    }
    while let Some((step, after)) = steps.split_first() {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        step.element.write(out);
        out.push(':');
        let (below, after) = after.split_at(step.below as usize);
        write(below, step.is_member, out);
        steps = after;
    }
    out.push('}');
}

/// Writes a text as it stands between the quotes of JSON.
pub(crate) fn escape(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < 0x20) {
        let quoted = Value::from(text).to_string();
        out.push_str(&quoted[1..quoted.len() - 1]);
        return;
    }
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        out.push_str(&rest[..at]);
        out.push('\\');
        out.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// The element that a name stands for, its text as it came; `None` for `.`.
fn parse(name: Cow<'_, str>) -> Result<Option<Element<'_>>, &'static str> {
    if name == "." {
        return Ok(None);
    }
    let sort = match name.get(..2) {
        Some("f:") => Sort::Field,
        Some("k:") => Sort::Key,
        Some("v:") => Sort::Value,
        Some("i:") => Sort::Index,
        _ => return Err("a field name needs f:, k:, v: or i: before it"),
    };
    let text = match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[2..]),
        Cow::Owned(mut name) => {
            name.drain(..2);
            Cow::Owned(name)
        }
    };
    Ok(Some(Element { sort, text }))
}

/// The element in the one form that this program writes.
fn canonical(element: Element<'_>) -> Option<Element<'static>> {
    let text = match element.sort {
        Sort::Field => element.text.into_owned(),
        Sort::Index => element.text.parse::<i64>().ok()?.to_string(),
        // Reading a map sorts its names.
        Sort::Key => {
            let keys: Value = serde_json::from_str(&element.text).ok()?;
            keys.as_object()?;
            keys.to_string()
        }
        Sort::Value => {
            let value: Value = serde_json::from_str(&element.text).ok()?;
            value.to_string()
        }
    };
    Some(Element {
        sort: element.sort,
        text: text.into(),
    })
}

/// Whether the place above is a member: `.` stands here, or nothing at all.
fn from_value(value: &Value, steps: &mut Vec<Step<'static>>, depth: usize) -> Option<bool> {
    let map = value.as_object()?;
    if depth > DEPTH_MAX {
        return None;
    }
    let mut is_member = map.is_empty();
    for (name, below) in map {
        let Some(element) = parse(Cow::Borrowed(name.as_str())).ok()? else {
            is_member = true;
            continue;
        };
        let at = steps.len();
        steps.push(Step {
            element: canonical(element)?,
            is_member: false,
            below: 0,
        });
        steps[at].is_member = from_value(below, steps, depth + 1)?;
        steps[at].below = (steps.len() - at - 1) as u32;
    }
    Some(is_member)
}

/// Reads the map below one element and says whether the element is a member.
struct Below<'s, 'a> {
    steps: &'s mut Vec<Step<'a>>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Below<'_, 'de> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Below<'_, 'de> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        use serde::de::Error;
        if self.depth > DEPTH_MAX {
            return Err(A::Error::custom("the set of fields is nested too deeply"));
        }
        let mut is_member = true;
        let mut is_first = true;
        while let Some(Name(name)) = map.next_key()? {
            is_member &= !is_first;
            is_first = false;
            let Some(element) = parse(name).map_err(A::Error::custom)? else {
                map.next_value::<serde::de::IgnoredAny>()?;
                is_member = true;
                continue;
            };
            let at = self.steps.len();
            self.steps.push(Step {
                element,
                is_member: false,
                below: 0,
            });
            let below = Below {
                steps: self.steps,
                depth: self.depth + 1,
            };
            let is_inner_member = map.next_value_seed(below)?;
            self.steps[at].is_member = is_inner_member;
            self.steps[at].below = (self.steps.len() - at - 1) as u32;
        }
        Ok(is_member)
    }
}

/// A name that borrows from the text where it can.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Name<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        reader.deserialize_str(Read)
    }
}
