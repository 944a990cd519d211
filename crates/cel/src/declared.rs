//! What a schema declares to its rules: types, fields, and how big values may be.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::kinds::Type;
use super::value::escaped;

/// Longest request in bytes: what bounds everything that no schema bounds.
pub(super) const REQUEST_BYTES_MAX: u64 = 3 << 20;
/// Longest text of a request, without its marks.
const TEXT_MAX: u64 = REQUEST_BYTES_MAX - 2;
/// Deepest schema that is read.
const DEPTH_MAX: usize = 60;

/// A place in a schema as rules see it.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) kind: Type,
    /// Of a list or a map.
    pub(super) element: Option<Rc<Declared>>,
    /// Most items, entries or bytes.
    pub(super) most: u64,
    /// Fewest bytes of a value in JSON.
    pub(super) least: u64,
}

/// The fields of an object, and a name by which it is known from others.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) fields: BTreeMap<String, Rc<Declared>>,
}

impl Declared {
    fn simple(kind: Type, least: u64, most: u64) -> Declared {
        Declared {
            kind,
            element: None,
            most,
            least,
        }
    }

    fn around(element: Declared, most: u64, kind: impl FnOnce(Type) -> Type) -> Declared {
        let kind = kind(element.kind.clone());
        Declared {
            element: Some(Rc::new(element)),
            ..Declared::simple(kind, 2, most)
        }
    }

    /// An object whose fields have these types.
    pub(super) fn fields_of(name: &str, fields: &BTreeMap<String, Type>) -> Type {
        let field = |(name, kind): (&String, &Type)| {
            let declared = Declared::simple(kind.clone(), 1, TEXT_MAX);
            (name.clone(), Rc::new(declared))
        };
        Type::Object(Rc::new(Object {
            name: name.to_owned(),
            fields: fields.iter().map(field).collect(),
        }))
    }

    /// A map's key, of whose length the real server thinks nothing.
    pub(super) fn key() -> Declared {
        Declared::simple(Type::String, 2, 0)
    }

    /// The field of an object.
    pub(super) fn field(&self, name: &str) -> Option<&Rc<Declared>> {
        match &self.kind {
            Type::Object(object) => object.fields.get(name),
            _ => None,
        }
    }

    /// What a schema declares; nothing if rules may not see it.
    pub(super) fn of(schema: &Value, is_whole: Whole) -> Option<Rc<Declared>> {
        Declared::named(schema, is_whole, NAME)
    }

    /// The same of an object that has a name.
    pub(super) fn named(schema: &Value, is_whole: Whole, name: &str) -> Option<Rc<Declared>> {
        Declared::read(schema, is_whole, name, 0).map(Rc::new)
    }

    fn read(schema: &Value, is_whole: Whole, name: &str, depth: usize) -> Option<Declared> {
        if depth > DEPTH_MAX || schema["$kubernetes"].is_string() {
            return Some(Declared::simple(Type::Dyn, 1, TEXT_MAX));
        }
        let length = schema["maxLength"].as_u64();
        let letters = length.map(|length| length.saturating_mul(4));
        if schema["x-kubernetes-int-or-string"] == true {
            return Some(Declared::simple(Type::Dyn, 1, letters.unwrap_or(TEXT_MAX)));
        }
        let inner = |schema: &Value, name: String| {
            let is_whole = match schema["x-kubernetes-embedded-resource"] == true {
                true => Whole::Yes,
                false => Whole::No,
            };
            Declared::read(schema, is_whole, &name, depth + 1)
        };
        Some(match schema["type"].as_str()? {
            "array" => {
                let items = inner(schema.get("items")?, format!("{name}.@idx"))?;
                let most = schema["maxItems"].as_u64();
                let most = most.unwrap_or(TEXT_MAX / (items.least + 1));
                Declared::around(items, most, Type::list)
            }
            "boolean" => Declared::simple(Type::Bool, 4, 0),
            "integer" => Declared::simple(Type::Int, 1, 0),
            "number" => Declared::simple(Type::Double, 1, 0),
            "object" if schema["additionalProperties"].is_object() => {
                let values = inner(&schema["additionalProperties"], format!("{name}.@elem"))?;
                let most = schema["maxProperties"].as_u64();
                let most = most.unwrap_or(TEXT_MAX / (values.least + 6));
                Declared::around(values, most, |values| Type::map(Type::String, values))
            }
            "object" => Declared::object(schema, is_whole, name, inner),
            "string" => match schema["format"].as_str() {
                Some("byte") => Declared::simple(Type::Bytes, 2, length.unwrap_or(TEXT_MAX)),
                Some("date") => Declared::simple(Type::Timestamp, 12, 12),
                Some("date-time") => Declared::simple(Type::Timestamp, 21, 32),
                Some("duration") => Declared::simple(Type::Duration, 3, 32),
                _ => {
                    let most = letters.or_else(|| longest(&schema["enum"]));
                    Declared::simple(Type::String, 2, most.unwrap_or(TEXT_MAX))
                }
            },
            _ => return None,
        })
    }

    fn object(
        schema: &Value,
        is_whole: Whole,
        name: &str,
        inner: impl Fn(&Value, String) -> Option<Declared>,
    ) -> Declared {
        let whole = (is_whole == Whole::Yes).then(|| {
            let text = serde_json::json!({"type": "string"});
            let names = serde_json::json!({"name": text, "generateName": text});
            let meta = serde_json::json!({"type": "object", "properties": names});
            [
                ("apiVersion", text.clone()),
                ("kind", text),
                ("metadata", meta),
            ]
        });
        let is_whole = |name: &str| whole.iter().flatten().any(|(known, _)| *known == name);
        let own = schema["properties"].as_object().into_iter().flatten();
        let own = own.map(|(name, inner)| (name.as_str(), inner));
        let own = own.filter(|(name, _)| !is_whole(name));
        let required = schema["required"].as_array();
        let mut fields = BTreeMap::new();
        let mut least = 2u64;
        for (key, schema) in own.chain(whole.iter().flatten().map(|(name, inner)| (*name, inner))) {
            let spelled = match is_of_the_server(name) {
                true => key.to_owned(),
                false => escaped(key),
            };
            let Some(field) = inner(schema, format!("{name}.{spelled}")) else {
                continue;
            };
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == key));
            if is_required && schema["default"].is_null() {
                least = least.saturating_add(key.len() as u64 + field.least + 4);
            }
            if is_speakable(key) {
                fields.insert(spelled, Rc::new(field));
            }
        }
        let name = name.to_owned();
        let kind = Type::Object(Rc::new(Object { name, fields }));
        Declared::simple(kind, least, 0)
    }
}

/// Whether a schema is that of a whole resource, which has a type and metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Yes,
    No,
}

/// What the type of `self` is called; the real server makes up a number for every definition.
const NAME: &str = "selfType";

/// Whether a type is one that the server itself declares, of a request or a namespace, and no schema. Its fields are
/// called as they are: `request.namespace`, though that word is reserved.
fn is_of_the_server(name: &str) -> bool {
    name.starts_with("kubernetes.")
}

/// Whether a field's name can be said in an expression at all.
fn is_speakable(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.-/".contains(letter);
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(is_letter)
}

fn longest(list: &Value) -> Option<u64> {
    let list = list.as_array().filter(|list| !list.is_empty())?;
    let texts = list.iter().filter_map(Value::as_str);
    Some(texts.map(|text| text.len() as u64).max().unwrap_or(0))
}
