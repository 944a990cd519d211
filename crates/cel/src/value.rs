//! JSON as CEL sees it: the schema says which strings are times, which numbers are whole, and which
//! fields there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

/// What a schema says about the form of values.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) kind: Kind,
    pub(super) fields: BTreeMap<Box<str>, Form>,
    /// Of a map's values.
    pub(super) values: Option<Box<Form>>,
    pub(super) items: Option<Box<Form>>,
}

/// The sorts of value that CEL tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// As JSON says.
    #[default]
    Dyn,
    Bytes,
    Date,
    Double,
    Duration,
    Int,
    List,
    Map,
    Object,
    String,
    Bool,
    /// Everything below is opaque: `x-kubernetes-preserve-unknown-fields` without a type.
    Unknown,
}

/// Names that cannot stand in an expression as they are.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

impl Form {
    /// The form of a schema; `depth` bounds it.
    pub(super) fn of(schema: &Value, depth: usize) -> Form {
        if depth > 60 {
            return Form::default();
        }
        let inner = |schema: &Value| Box::new(Form::of(schema, depth + 1));
        let flag = |key: &str| schema[key] == true;
        let kind = if flag("x-kubernetes-int-or-string") || schema["$kubernetes"].is_string() {
            Kind::Dyn
        } else {
            kind_of(schema)
        };
        let mut form = Form {
            kind,
            ..Form::default()
        };
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            form.fields.insert(name.as_str().into(), *inner(schema));
        }
        if kind == Kind::Map {
            let values = &schema["additionalProperties"];
            form.values = Some(match values.is_object() {
                true => inner(values),
                false => Box::default(),
            });
        }
        if kind == Kind::List && schema["items"].is_object() {
            form.items = Some(inner(&schema["items"]));
        }
        if kind == Kind::Object && (depth == 0 || flag("x-kubernetes-embedded-resource")) {
            form.embed();
        }
        form
    }

    /// Every object has a type and metadata, of which rules see the names.
    fn embed(&mut self) {
        let text = || Form {
            kind: Kind::String,
            ..Form::default()
        };
        for name in ["apiVersion", "kind"] {
            self.fields.insert(name.into(), text());
        }
        let mut meta = Form {
            kind: Kind::Object,
            ..Form::default()
        };
        for name in ["name", "generateName"] {
            meta.fields.insert(name.into(), text());
        }
        self.fields.insert("metadata".into(), meta);
    }
}

fn kind_of(schema: &Value) -> Kind {
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => Kind::List,
        (Some("boolean"), _) => Kind::Bool,
        (Some("integer"), _) => Kind::Int,
        (Some("number"), _) => Kind::Double,
        (Some("object"), _) => {
            let values = &schema["additionalProperties"];
            let is_map = values.is_object() || *values == true;
            match is_map && !schema["properties"].is_object() {
                true => Kind::Map,
                false => Kind::Object,
            }
        }
        (Some("string"), Some("byte")) => Kind::Bytes,
        (Some("string"), Some("date" | "date-time")) => Kind::Date,
        (Some("string"), Some("duration")) => Kind::Duration,
        (Some("string"), _) => Kind::String,
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => Kind::Unknown,
        _ => Kind::Dyn,
    }
}

/// Turns JSON into CEL.
pub(super) struct Converter {
    context: Context<'static>,
    timestamp: Option<Program>,
    duration: Option<Program>,
}

impl Converter {
    pub(super) fn new() -> Converter {
        Converter {
            context: Context::default().with_all(),
            timestamp: Program::compile("timestamp(x)").ok(),
            duration: Program::compile("duration(x)").ok(),
        }
    }

    /// Functions and nothing else.
    pub(super) fn context(&self) -> &Context<'static> {
        &self.context
    }

    pub(super) fn value(&self, value: &Value, form: &Form) -> Cel {
        match value {
            Value::Null => Cel::Null,
            Value::Bool(truth) => Cel::Bool(*truth),
            Value::Number(number) => match (form.kind, number.as_i64()) {
                (Kind::Double, _) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
                (_, Some(whole)) => Cel::Int(whole),
                _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => self.text(text, form.kind),
            Value::Array(list) => {
                let dynamic = Form::default();
                let items = form.items.as_deref().unwrap_or(&dynamic);
                Cel::List(Arc::new(
                    list.iter().map(|item| self.value(item, items)).collect(),
                ))
            }
            Value::Object(map) => {
                let dynamic = Form::default();
                let entries = map.iter().filter_map(|(name, value)| {
                    let (name, inner) = match form.kind {
                        Kind::Map => (name.clone(), form.values.as_deref().unwrap_or(&dynamic)),
                        // What the schema does not name, rules do not see.
                        Kind::Object => (escaped(name), form.fields.get(name.as_str())?),
                        _ => (escaped(name), &dynamic),
                    };
                    Some((Key::String(Arc::new(name)), self.value(value, inner)))
                });
                map_of(entries)
            }
        }
    }

    fn text(&self, text: &str, kind: Kind) -> Cel {
        let program = match kind {
            Kind::Date => &self.timestamp,
            Kind::Duration => &self.duration,
            Kind::Bytes => {
                use base64::Engine;
                let engine = base64::engine::general_purpose::STANDARD;
                return match engine.decode(text) {
                    Ok(bytes) => Cel::Bytes(Arc::new(bytes)),
                    Err(_) => Cel::String(Arc::new(text.to_owned())),
                };
            }
            _ => &None,
        };
        let plain = Cel::String(Arc::new(text.to_owned()));
        let Some(program) = program else { return plain };
        let full = match kind {
            Kind::Date if text.len() == 10 => format!("{text}T00:00:00Z"),
            _ => text.to_owned(),
        };
        let mut inner = self.context.new_inner_scope();
        inner.add_variable_from_value("x", Cel::String(Arc::new(full)));
        program.execute(&inner).unwrap_or(plain)
    }
}

/// `oldSelf` of a rule that also runs where there was nothing before.
pub(super) fn optional(value: Option<Cel>) -> Cel {
    Cel::Opaque(Arc::new(match value {
        Some(value) => OptionalValue::of(value),
        None => OptionalValue::none(),
    }))
}

pub(super) fn map_of(entries: impl Iterator<Item = (Key, Cel)>) -> Cel {
    Cel::Map(Map {
        map: Arc::new(entries.collect()),
    })
}

/// Whether a name cannot stand in an expression as it is.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// A field's name as an expression spells it.
pub(super) fn escaped(name: &str) -> String {
    if is_reserved(name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// A JSON value without a schema, as Kubernetes decodes it: a whole number is an `int`, never a
/// `uint`, which no number in an expression would be equal to.
pub(super) fn dynamic(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(dynamic).collect())),
        Value::Object(fields) => map_of(fields.iter().map(|(name, value)| {
            let name = Key::String(Arc::new(name.clone()));
            (name, dynamic(value))
        })),
    }
}
