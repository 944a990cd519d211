//! Reads JSON bodies: bounded in depth, and telling of keys that stand twice.
//!
//! `serde_json::Value` keeps the last of two equal keys in silence; a strict write must name them.

mod complaint;
mod order;

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::field::Way;

pub(crate) use order::in_order;

/// Deepest nesting that a body may have.
pub const DEPTH_MAX: usize = 100;
/// Most objects (in braces) that a body may hold. One of three bytes takes some hundred bytes of
/// memory once it is read, and several copies are made on the way.
pub const OBJECTS_MAX: usize = 100_000;
/// Most duplicate fields that are reported.
const DUPLICATES_MAX: usize = 100;

/// A body that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The value; of equal keys the last wins.
    pub value: Value,
    /// Paths of fields that stood more than once, in the order of the text.
    pub duplicates: Vec<String>,
    /// Keys of a YAML text that stood more than once, each with its line.
    pub lines: Vec<String>,
}

impl Body {
    /// A value that was written in a language without keys.
    pub fn of(value: Value) -> Body {
        Body {
            value,
            duplicates: Vec::new(),
            lines: Vec::new(),
        }
    }
}

/// The lines of a YAML text, as a strict reader tells of them.
pub fn unmarshal_errors(lines: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Yaml,
}

/// Reads a JSON text.
///
/// # Errors
/// A sentence that says what is wrong and where, if the text is not JSON or too deep.
pub fn read(bytes: &[u8]) -> Result<Body, String> {
    read_as(bytes, Twice::LastWins)
}

/// As [`read`], in one of the ways in which Go reads.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_as(bytes: &[u8], twice: Twice) -> Result<Body, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    read_with(Language::Json, twice, |place| {
        place
            .deserialize(&mut reader)
            .and_then(|value| reader.end().map(|()| value))
            .map_err(|cause| complaint::complaint(bytes).unwrap_or_else(|| cause.to_string()))
    })
}

/// Reads a YAML text, which JSON is too.
///
/// # Errors
/// A sentence that says what is wrong and where, if the text is not YAML, too deep or too large
/// once its aliases are written out.
pub fn read_yaml(bytes: &[u8]) -> Result<Body, String> {
    // Most bodies are JSON whatever they call themselves, and that is read faster.
    if let Ok(body) = read(bytes)
        && body.duplicates.is_empty()
    {
        return Ok(body);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        legacy_octal_numbers: true,
    };
    read_with(Language::Yaml, Twice::LastWins, |place| {
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
            place.deserialize(reader)
        })
        .map_err(|cause| format!("error converting YAML to JSON: yaml: {cause}"))
    })
}

fn read_with(
    language: Language,
    twice: Twice,
    read: impl FnOnce(Place<'_>) -> Result<Value, String>,
) -> Result<Body, String> {
    let duplicates = RefCell::new(Vec::new());
    let objects = Cell::new(0);
    let value = read(Place {
        way: Way::Root,
        depth: 0,
        language,
        duplicates: &duplicates,
        objects: &objects,
        twice,
    })?;
    let found = duplicates.into_inner();
    Ok(match language {
        Language::Json => Body {
            duplicates: found,
            ..Body::of(value)
        },
        Language::Yaml => Body {
            lines: found,
            ..Body::of(value)
        },
    })
}

/// Said of a body with too many objects.
const TOO_MANY: &str = "exceeded max number of objects of 100000";

/// Checks that a value read elsewhere holds no more than [`OBJECTS_MAX`] objects.
///
/// # Errors
/// A sentence, if it does.
pub fn check_objects(value: &Value) -> Result<(), String> {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(count).sum(),
            Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
            _ => 0,
        }
    }
    if count(value) > OBJECTS_MAX {
        return Err(TOO_MANY.to_owned());
    }
    Ok(())
}

/// What becomes of two objects under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    /// As Go reads into a map.
    LastWins,
    /// As Go reads into a struct: the second is laid over the first.
    Together,
}

/// A body that is no object, in the words of Go's decoder.
pub(crate) fn not_an_object(value: &Value) -> String {
    let found = match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        _ => "array",
    };
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// Lays an object over another, part by part.
fn lay_over(first: &mut Value, second: Value) {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            for (key, value) in second {
                match first.get_mut(&key) {
                    Some(known) => lay_over(known, value),
                    None => {
                        first.insert(key, value);
                    }
                }
            }
        }
        (first, second) => *first = second,
    }
}

#[derive(Clone, Copy)]
struct Place<'a> {
    way: Way<'a>,
    depth: usize,
    language: Language,
    duplicates: &'a RefCell<Vec<String>>,
    objects: &'a Cell<usize>,
    twice: Twice,
}

impl<'a> Place<'a> {
    fn inner(&'a self, way: Way<'a>) -> Place<'a> {
        Place {
            way,
            depth: self.depth + 1,
            language: self.language,
            duplicates: self.duplicates,
            objects: self.objects,
            twice: self.twice,
        }
    }

    fn path(&self) -> String {
        self.way.text()
    }

    /// The next key, and how it was written where that matters.
    fn key<'de, A: MapAccess<'de>>(
        &self,
        entries: &mut A,
    ) -> Result<Option<(String, Option<Written>)>, A::Error> {
        if self.language == Language::Json {
            return Ok(entries.next_key::<String>()?.map(|key| (key, None)));
        }
        let next = entries.next_key::<Spanned<Key>>()?;
        Ok(next.map(|key| {
            let line = key.referenced.line();
            let Key { text, shown } = key.value;
            (text, Some(Written { line, shown }))
        }))
    }

    fn too_deep<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format!("exceeded max depth of {DEPTH_MAX}")));
        }
        Ok(())
    }
}

/// Where a key of YAML stands, and its value as Go shows it.
struct Written {
    line: u64,
    shown: String,
}

impl Written {
    fn told(&self) -> String {
        format!("line {}: key {} already set in map", self.line, self.shown)
    }
}

/// A key of YAML, which may be a truth or a number before it becomes a text.
struct Key {
    text: String,
    shown: String,
}

impl Key {
    fn plain(value: impl ToString) -> Key {
        Key {
            text: value.to_string(),
            shown: value.to_string(),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Key, D::Error> {
        struct Keys;

        impl Visitor<'_> for Keys {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Key, E> {
                Ok(Key::plain(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Key, E> {
                Ok(Key::plain(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Key, E> {
                Ok(Key::plain(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Key, E> {
                Ok(Key::plain(value))
            }

            fn visit_unit<E>(self) -> Result<Key, E> {
                Ok(Key::plain("null"))
            }

            fn visit_str<E>(self, value: &str) -> Result<Key, E> {
                Ok(Key {
                    text: value.to_owned(),
                    shown: crate::field::go_quoted(value),
                })
            }
        }

        reader.deserialize_any(Keys)
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.too_deep()?;
        let mut list = Vec::new();
        while let Some(item) =
            items.next_element_seed(self.inner(Way::Item(&self.way, list.len())))?
        {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.too_deep()?;
        self.objects.set(self.objects.get() + 1);
        if self.objects.get() > OBJECTS_MAX {
            return Err(serde::de::Error::custom(TOO_MANY));
        }
        let mut map = Map::new();
        while let Some((key, written)) = self.key(&mut entries)? {
            let inner = self.inner(Way::Field(&self.way, &key));
            if map.contains_key(&key) {
                let mut duplicates = self.duplicates.borrow_mut();
                let found = match written {
                    Some(written) => written.told(),
                    None => inner.path(),
                };
                if duplicates.len() < DUPLICATES_MAX && !duplicates.contains(&found) {
                    duplicates.push(found);
                }
            }
            let value = entries.next_value_seed(inner)?;
            match (self.twice, map.get_mut(&key)) {
                (Twice::Together, Some(known)) => lay_over(known, value),
                _ => {
                    map.insert(key, value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_that_stand_twice_are_named_by_their_path() {
        let body = read(br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":1,"d":3}]}"#).unwrap();
        assert_eq!(body.value, json!({"a": {"b": 2}, "c": [{"d": 3}]}));
        assert_eq!(body.duplicates, ["a.b", "c[0].d"]);
    }

    #[test]
    fn keys_of_yaml_are_truths_and_numbers_before_they_are_texts() {
        let text = "a: {b: 1, b: 2}\ny: yes\non: Off\n1: x\n'y': n\n2.5: ~\n\"q\": 'yes'\n1: z\n";
        let body = read_yaml(text.as_bytes()).unwrap();
        let value =
            json!({"a": {"b": 2}, "true": false, "1": "z", "y": false, "2.5": null, "q": "yes"});
        assert_eq!(body.value, value);
        let lines = ["line 1: key \"b\"", "line 3: key true", "line 8: key 1"];
        assert_eq!(
            body.lines,
            lines.map(|line| format!("{line} already set in map"))
        );
        assert!(body.duplicates.is_empty());
    }

    #[test]
    fn json_that_calls_itself_yaml_is_told_of_as_yaml() {
        let body = read_yaml(b"{\"a\": 1,\n \"a\": 2}").unwrap();
        assert_eq!(body.value, json!({"a": 2}));
        assert_eq!(body.lines, ["line 2: key \"a\" already set in map"]);
    }

    #[test]
    fn objects_that_stand_twice_are_laid_over_one_another_where_go_has_a_struct() {
        let text = br#"{"a":{"b":1,"c":{"d":1}},"a":{"c":{"e":2},"b":3}}"#;
        let last = json!({"a": {"b": 3, "c": {"e": 2}}});
        assert_eq!(read(text).unwrap().value, last);
        let both = json!({"a": {"b": 3, "c": {"d": 1, "e": 2}}});
        assert_eq!(read_as(text, Twice::Together).unwrap().value, both);
    }

    #[test]
    fn a_deep_body_is_refused_in_words() {
        let deep = "[".repeat(100_000);
        assert!(
            read(deep.as_bytes())
                .unwrap_err()
                .contains("exceeded max depth")
        );
        let objects = r#"{"a":"#.repeat(100_000);
        assert!(
            read(objects.as_bytes())
                .unwrap_err()
                .contains("exceeded max depth")
        );
    }

    #[test]
    fn a_body_of_very_many_objects_is_refused_in_words() {
        let many = |count: usize| format!("[{}{{}}]", "{},".repeat(count - 1));
        let most = read(many(OBJECTS_MAX).as_bytes()).expect("not too many");
        assert_eq!(check_objects(&most.value), Ok(()));
        let text = read(many(OBJECTS_MAX + 1).as_bytes()).unwrap_err();
        assert!(text.starts_with(TOO_MANY), "{text}");
        assert!(TOO_MANY.ends_with(&OBJECTS_MAX.to_string()));
        let more = json!([most.value, {}]);
        assert_eq!(check_objects(&more), Err(TOO_MANY.to_owned()));
    }

    #[test]
    fn broken_and_trailing_text_is_refused() {
        for text in ["", "{", "{\"a\":}", "{} {}", "nul", "\"\\ud800\"", "1e999"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
