//! Reads a few fields out of JSON bytes without building the object: loading a hundred thousand
//! objects must not take seconds.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The texts of these fields as selectors see them (see [`crate::entry::field_text`]).
pub(crate) fn fields(
    bytes: &[u8],
    paths: &[Box<str>],
) -> Result<Box<[Box<str>]>, serde_json::Error> {
    let mut found = vec![Box::default(); paths.len()];
    let wanted: Vec<(usize, &str)> = paths
        .iter()
        .enumerate()
        .map(|(index, path)| (index, &**path))
        .collect();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Pick {
        wanted: &wanted,
        found: &mut found,
    }
    .deserialize(&mut reader)?;
    Ok(found.into())
}

/// One object on the way: which paths lead through it.
struct Pick<'a> {
    wanted: &'a [(usize, &'a str)],
    found: &'a mut [Box<str>],
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let mut leaf = None;
            let mut deeper = Vec::new();
            for (index, path) in self.wanted {
                match path.split_once('.') {
                    None if *path == key => leaf = Some(*index),
                    Some((first, rest)) if first == key => deeper.push((*index, rest)),
                    _ => {}
                }
            }
            if let Some(index) = leaf {
                self.found[index] = text(map.next_value()?);
            } else if deeper.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Pick {
                    wanted: &deeper,
                    found: &mut *self.found,
                })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn text(value: Value) -> Box<str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => Box::default(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::field_text;

    #[test]
    fn picked_fields_are_those_of_the_whole_object() {
        let object = json!({
            "a": { "b": "x\n", "c": { "d": 5 }, "e": [1, { "b": 2 }] },
            "b": null, "c": true, "f": "text",
        });
        let paths: Vec<Box<str>> = ["a.b", "a.c.d", "a.e", "b", "c", "f", "f.g", "none"]
            .map(Into::into)
            .into();
        let bytes = object.to_string();
        let picked = fields(bytes.as_bytes(), &paths).expect("JSON");
        for (path, text) in paths.iter().zip(&picked) {
            assert_eq!(**text, *field_text(&object, path), "{path}");
        }
    }
}
