//! Messages of protobuf that an expression makes (`google.protobuf.Timestamp{seconds: 1}`): their
//! types, their fields, and the plain values that they are.
//!
//! `Any` and `Empty` can be written down and looked at, but have no value here.

use std::rc::Rc;
use std::sync::Arc;

use chrono::{DateTime, Duration, FixedOffset};
use kube_cel::cel::Value;
use kube_cel::cel::objects::Key;

use super::kinds::Type;
use super::run::{TypeValue, name_of};
use super::value::map_of;

/// What making a message costs beside its fields.
pub(super) const MESSAGE_COST: u64 = 40;
/// The one value of an enumeration that expressions may name.
pub(super) const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";

const PACKAGE: &str = "google.protobuf.";
/// Whole numbers up to here stay themselves in JSON; greater ones become texts.
const JSON_WHOLE_MAX: u64 = (1 << 53) - 1;

/// What a field holds, as the real server's language calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Bool,
    Bytes,
    Double,
    Enum,
    Float,
    Int32,
    Int64,
    List,
    Map,
    Values,
    String,
    Struct,
    Uint32,
    Uint64,
}

impl Holds {
    fn kind(self) -> Type {
        match self {
            Holds::Bool => Type::Bool,
            Holds::Bytes => Type::Bytes,
            Holds::Double | Holds::Float => Type::Double,
            Holds::Enum | Holds::Int32 | Holds::Int64 => Type::Int,
            Holds::List | Holds::Values => Type::list(Type::Dyn),
            Holds::Map | Holds::Struct => Type::map(Type::String, Type::Dyn),
            Holds::String => Type::String,
            Holds::Uint32 | Holds::Uint64 => Type::Uint,
        }
    }

    /// What a field is that nobody has set.
    fn unset(self) -> Value {
        match self {
            Holds::Bool => Value::Bool(false),
            Holds::Bytes => Value::Bytes(Arc::default()),
            Holds::Double | Holds::Float => Value::Float(0.0),
            Holds::Enum | Holds::Int32 | Holds::Int64 => Value::Int(0),
            Holds::List | Holds::Values => Value::List(Arc::default()),
            Holds::Map | Holds::Struct => map_of(std::iter::empty()),
            Holds::String => Value::String(Arc::default()),
            Holds::Uint32 | Holds::Uint64 => Value::UInt(0),
        }
    }

    /// As errors call it.
    fn native(self) -> &'static str {
        match self {
            Holds::Bool => "bool",
            Holds::Bytes => "[]uint8",
            Holds::Double => "float64",
            Holds::Enum => "protoreflect.EnumNumber",
            Holds::Float => "float32",
            Holds::Int32 => "int32",
            Holds::Int64 => "int64",
            Holds::List => "*structpb.ListValue",
            Holds::Map | Holds::Struct => "*structpb.Struct",
            Holds::Values => "*structpb.Value",
            Holds::String => "string",
            Holds::Uint32 => "uint32",
            Holds::Uint64 => "uint64",
        }
    }
}

type Fields = &'static [(&'static str, Holds)];

/// Messages by name, without their package, sorted.
const MESSAGES: &[(&str, Fields)] = &[
    (
        "Any",
        &[("type_url", Holds::String), ("value", Holds::Bytes)],
    ),
    ("BoolValue", &[("value", Holds::Bool)]),
    ("BytesValue", &[("value", Holds::Bytes)]),
    ("DoubleValue", &[("value", Holds::Double)]),
    (
        "Duration",
        &[("seconds", Holds::Int64), ("nanos", Holds::Int32)],
    ),
    ("Empty", &[]),
    ("FloatValue", &[("value", Holds::Float)]),
    ("Int32Value", &[("value", Holds::Int32)]),
    ("Int64Value", &[("value", Holds::Int64)]),
    ("ListValue", &[("values", Holds::Values)]),
    ("StringValue", &[("value", Holds::String)]),
    ("Struct", &[("fields", Holds::Map)]),
    (
        "Timestamp",
        &[("seconds", Holds::Int64), ("nanos", Holds::Int32)],
    ),
    ("UInt32Value", &[("value", Holds::Uint32)]),
    ("UInt64Value", &[("value", Holds::Uint64)]),
    (
        "Value",
        &[
            ("null_value", Holds::Enum),
            ("number_value", Holds::Double),
            ("string_value", Holds::String),
            ("bool_value", Holds::Bool),
            ("struct_value", Holds::Struct),
            ("list_value", Holds::List),
        ],
    ),
];

/// A message that expressions may make.
#[derive(Clone, Copy)]
pub(super) struct Message {
    name: &'static str,
    fields: Fields,
}

impl Message {
    /// The message of that name, with its package.
    pub(super) fn find(name: &str) -> Option<Message> {
        let name = name.strip_prefix(PACKAGE)?;
        let at = MESSAGES.binary_search_by_key(&name, |(known, _)| known);
        let (name, fields) = MESSAGES[at.ok()?];
        Some(Message { name, fields })
    }

    /// The message whose fields a type's literal has, whatever it was called.
    pub(super) fn of(kind: &Type) -> Option<Message> {
        let name = match kind {
            Type::Duration => "Duration",
            Type::Timestamp => "Timestamp",
            _ => return None,
        };
        Message::find(&format!("{PACKAGE}{name}"))
    }

    /// The type of what is made.
    pub(super) fn kind(self) -> Type {
        match self.name {
            "Any" | "Value" => Type::Dyn,
            "Duration" => Type::Duration,
            "Empty" => Type::Named("google.protobuf.Empty"),
            "ListValue" => Type::list(Type::Dyn),
            "Struct" => Type::map(Type::String, Type::Dyn),
            "Timestamp" => Type::Timestamp,
            _ => Type::Wrapper(Rc::new(self.fields[0].1.kind())),
        }
    }

    /// The type of a field.
    pub(super) fn field(self, name: &str) -> Option<Type> {
        let field = self.fields.iter().find(|(known, _)| *known == name);
        field.map(|(_, holds)| holds.kind())
    }

    /// The value of a message with these fields set, in this order.
    ///
    /// # Errors
    /// In the words of the real server.
    pub(super) fn value(self, set: Vec<(&str, Value)>) -> Result<Value, String> {
        let mut fields: Vec<(&str, Value)> = Vec::with_capacity(set.len());
        for (name, value) in set {
            let known = self.fields.iter().find(|(known, _)| *known == name);
            let Some((name, holds)) = known else {
                return Err(format!("no such field: {name}"));
            };
            let about = format!("{PACKAGE}{}.{name}", self.name);
            fields.push((name, taken(*holds, value, &about)?));
        }
        let found = |name: &str| {
            let mut set = fields.iter().rev();
            let set = set.find(|(known, _)| *known == name);
            set.map(|(_, value)| value.clone())
        };
        let number = |name: &str| match found(name) {
            Some(Value::Int(number)) => number,
            _ => 0,
        };
        match self.name {
            "Any" => Err("unsupported conversion to ref.Val: (*dynamicpb.Message)".to_owned()),
            "Duration" => {
                let nanos = number("seconds").saturating_mul(1_000_000_000);
                let nanos = nanos.saturating_add(number("nanos"));
                Ok(Value::Duration(Duration::nanoseconds(nanos)))
            }
            "Empty" => Err("unsupported conversion to ref.Val: (*emptypb.Empty)".to_owned()),
            "Timestamp" => instant(number("seconds"), number("nanos")),
            // The one of them that was set last counts.
            "Value" => Ok(fields.pop().map_or(Value::Null, |(name, value)| {
                if name == "null_value" {
                    Value::Null
                } else {
                    value
                }
            })),
            _ => {
                let (name, holds) = self.fields[0];
                Ok(found(name).unwrap_or_else(|| holds.unset()))
            }
        }
    }
}

/// A time so many seconds and nanoseconds after 1970.
///
/// # Errors
/// That it lies too far away.
pub(super) fn instant(seconds: i64, nanos: i64) -> Result<Value, String> {
    let seconds = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
    let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default();
    let time = DateTime::from_timestamp(seconds, nanos);
    let time = time.ok_or("timestamp overflow")?;
    let zone = FixedOffset::east_opt(0).ok_or("timestamp overflow")?;
    Ok(Value::Timestamp(time.with_timezone(&zone)))
}

/// A value as a field holds it.
fn taken(holds: Holds, value: Value, about: &str) -> Result<Value, String> {
    let wrong = |why: String| format!("field type conversion error for {about} value type: {why}");
    let unsupported =
        |value: &Value| format!("unsupported field type for {about}: {}", name_of(value));
    let small = |fits: bool, value: Value, why: &str| match fits {
        true => Ok(value),
        false => Err(wrong(why.to_owned())),
    };
    match (holds, value) {
        (Holds::Bool, value @ Value::Bool(_))
        | (Holds::Bytes, value @ Value::Bytes(_))
        | (Holds::Double, value @ Value::Float(_))
        | (Holds::Int64, value @ Value::Int(_))
        | (Holds::String, value @ Value::String(_))
        | (Holds::Uint64, value @ Value::UInt(_)) => Ok(value),
        (Holds::Enum | Holds::Int32, Value::Int(number)) => {
            let fits = i32::try_from(number).is_ok();
            small(fits, Value::Int(number), "integer overflow")
        }
        (Holds::Uint32, Value::UInt(number)) => {
            let fits = u32::try_from(number).is_ok();
            small(fits, Value::UInt(number), "unsigned integer overflow")
        }
        // The field has not room for more.
        (Holds::Float, Value::Float(number)) => Ok(Value::Float(f64::from(number as f32))),
        (Holds::List | Holds::Values, value @ Value::List(_))
        | (Holds::Map | Holds::Struct, value @ Value::Map(_)) => plain(value).map_err(wrong),
        (Holds::Map | Holds::Values, value) => Err(unsupported(&value)),
        (holds, value) => Err(wrong(unfit(&value, holds.native()))),
    }
}

/// A time or a length of time as text.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Duration(length) => {
            let seconds = length.num_seconds() as f64 + f64::from(length.subsec_nanos()) / 1e9;
            Some(format!("{seconds}s"))
        }
        Value::Timestamp(time) => {
            let time = time.to_utc();
            let fraction = format!(".{:09}", time.timestamp_subsec_nanos());
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            let whole = time.format("%Y-%m-%dT%H:%M:%S");
            Some(format!("{whole}{fraction}Z"))
        }
        _ => None,
    }
}

/// A value as JSON has it: numbers are fractions, and what JSON has not is text.
fn plain(value: Value) -> Result<Value, String> {
    let text = |text: String| Value::String(Arc::new(text));
    Ok(match value {
        Value::Int(number) if number.unsigned_abs() <= JSON_WHOLE_MAX => {
            Value::Float(number as f64)
        }
        Value::Int(number) => text(number.to_string()),
        Value::UInt(number) if number <= JSON_WHOLE_MAX => Value::Float(number as f64),
        Value::UInt(number) => text(number.to_string()),
        Value::Bytes(bytes) => {
            use base64::Engine;
            text(base64::engine::general_purpose::STANDARD.encode(&*bytes))
        }
        Value::Duration(_) | Value::Timestamp(_) => {
            text(plain_text(&value).expect("times have a text"))
        }
        Value::List(list) => {
            let items: Result<Vec<Value>, String> = list.iter().cloned().map(plain).collect();
            Value::List(Arc::new(items?))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.map.len());
            for (key, value) in map.map.iter() {
                let Key::String(_) = key else {
                    return Err(unfit(&Value::from(key), "string"));
                };
                entries.push((key.clone(), plain(value.clone())?));
            }
            map_of(entries.into_iter())
        }
        Value::Opaque(_) | Value::Function(..) => return Err(unfit(&value, "*structpb.Value")),
        other => other,
    })
}

/// That a value is not what is wanted, in the words of its kind.
fn unfit(value: &Value, wanted: &str) -> String {
    match value {
        Value::Bool(_) => format!("type conversion error from bool to '{wanted}'"),
        Value::Bytes(_) => format!("type conversion error from Bytes to '{wanted}'"),
        Value::Duration(_) => format!("type conversion error from 'Duration' to '{wanted}'"),
        Value::Float(_) => format!("type conversion error from Double to '{wanted}'"),
        Value::Int(_) => format!("unsupported type conversion from 'int' to {wanted}"),
        Value::List(_) => format!("type conversion error from list to '{wanted}'"),
        Value::Map(_) => format!("type conversion error from map to '{wanted}'"),
        Value::Null => format!("type conversion error from 'null_type' to '{wanted}'"),
        Value::String(_) => format!("unsupported native conversion from string to '{wanted}'"),
        Value::Timestamp(_) => format!("type conversion error from 'Timestamp' to '{wanted}'"),
        Value::UInt(_) => format!("unsupported type conversion from 'uint' to {wanted}"),
        Value::Opaque(opaque) if opaque.downcast_ref::<TypeValue>().is_some() => {
            "type conversion not supported for 'type'".to_owned()
        }
        Value::Function(..) | Value::Opaque(_) => {
            let name = name_of(value);
            let name = name.rsplit('.').next().unwrap_or(name);
            format!("type conversion error from '{name}' to '{wanted}'")
        }
    }
}
