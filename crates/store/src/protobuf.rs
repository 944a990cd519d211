//! Protobuf request bodies → JSON, by table. Decoding only: answers are always JSON.
//!
//! `kubectl create configmap` and Go controllers send built-in kinds as protobuf: the four bytes
//! `k8s\0`, then a `runtime.Unknown` that holds type and raw message. The table
//! `wire/kubernetes/protobuf.jsonl` names every field; `zeroes.jsonl` says which fields Go leaves
//! out of JSON when they are zero, and which it writes into their parent.

use std::collections::BTreeMap;

use api::time::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The first bytes of a protobuf body.
pub const MAGIC: &[u8; 4] = b"k8s\0";
/// Deepest nesting of messages.
const DEPTH_MAX: usize = 60;
/// Most fields of one body: a wire field costs two bytes, its JSON form up to a hundred.
const FIELDS_MAX: usize = 2_000_000;

/// A decoded body.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `Pod`.
    pub kind: String,
    /// The object in JSON, with `apiVersion` and `kind`.
    pub value: Value,
}

/// Every message that a client may send.
#[derive(Debug)]
pub struct Messages {
    messages: Vec<Message>,
    by_name: BTreeMap<&'static str, usize>,
}

#[derive(Debug, Default)]
struct Message {
    fields: Vec<Field>,
    special: Special,
}

#[derive(Debug)]
struct Field {
    number: u64,
    name: &'static str,
    kind: Kind,
    repeated: bool,
    /// Go leaves it out of JSON when it is zero.
    drops_zero: bool,
    /// Its fields stand in the parent's JSON.
    is_inline: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Bool,
    Bytes,
    Double,
    Int,
    String,
    Message(usize),
    Map(Box<Kind>),
}

/// Messages whose JSON is not an object of their fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Special {
    #[default]
    None,
    /// Seconds and nanoseconds.
    Time,
    MicroTime,
    /// Nanoseconds, printed as a Go duration.
    Duration,
    /// A string inside a message.
    Quantity,
    IntOrString,
    /// JSON text in a bytes field.
    RawJson,
    /// A list that has a message of its own (`ExtraValue`, `Verbs`).
    List,
    /// A schema, or a list of them, or a flag, or a list of names.
    SchemaOr,
}

#[derive(Default, Deserialize)]
struct Zeroes<'a> {
    #[serde(default, borrow)]
    zero: Vec<&'a str>,
    #[serde(default, borrow)]
    inline: Vec<&'a str>,
}

impl Messages {
    /// Parses the table.
    pub(crate) fn parse(table: &'static str, zeroes: &'static str) -> Messages {
        let mut drops: BTreeMap<&str, Zeroes<'_>> = BTreeMap::new();
        for line in zeroes.lines().filter(|line| !line.is_empty()) {
            let rows: BTreeMap<&str, Zeroes<'_>> =
                serde_json::from_str(line).expect("the build's table is JSON");
            drops.extend(rows);
        }
        let mut rows: Vec<(&'static str, Vec<Row>)> = Vec::new();
        for line in table.lines().filter(|line| !line.is_empty()) {
            let one: BTreeMap<&'static str, Vec<Row>> =
                serde_json::from_str(line).expect("the build's table is JSON");
            rows.extend(one);
        }
        let by_name: BTreeMap<&'static str, usize> = rows
            .iter()
            .enumerate()
            .map(|(index, (name, _))| (*name, index))
            .collect();
        let messages = rows
            .into_iter()
            .map(|(name, fields)| message(name, fields, &by_name, &drops))
            .collect();
        Messages { messages, by_name }
    }

    /// Decodes a whole body.
    ///
    /// # Errors
    /// A sentence that says what is wrong, for a body that is malformed, too deep, or of a kind
    /// that has no message.
    pub fn decode(&self, body: &[u8]) -> Result<Decoded, String> {
        if body.is_empty() {
            return Err("empty data".to_owned());
        }
        let raw = body.strip_prefix(MAGIC).ok_or_else(|| {
            let prefix = MAGIC.map(|byte| byte.to_string()).join(" ");
            format!(
                "provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
            )
        })?;
        let mut api_version = String::new();
        let mut kind = String::new();
        let mut inner: &[u8] = &[];
        for entry in Entries(raw) {
            match entry? {
                (1, Datum::Bytes(type_meta)) => {
                    for entry in Entries(type_meta) {
                        match entry? {
                            (1, Datum::Bytes(text)) => api_version = utf8(text)?,
                            (2, Datum::Bytes(text)) => kind = utf8(text)?,
                            _ => {}
                        }
                    }
                }
                (2, Datum::Bytes(bytes)) => inner = bytes,
                (3, Datum::Bytes(encoding)) if !encoding.is_empty() => {
                    return Err("a content encoding inside a protobuf body is not supported".into());
                }
                _ => {}
            }
        }
        let name = message_name(&api_version, &kind);
        let index = name
            .and_then(|name| self.by_name.get(name.as_str()))
            .ok_or_else(|| {
                format!("no kind \"{kind}\" is registered for version \"{api_version}\"")
            })?;
        let mut fields_left = FIELDS_MAX;
        let mut value = self.message(*index, inner, 0, &mut fields_left)?;
        if let Some(map) = value.as_object_mut() {
            map.insert("apiVersion".into(), api_version.as_str().into());
            map.insert("kind".into(), kind.as_str().into());
        }
        Ok(Decoded {
            api_version,
            kind,
            value,
        })
    }

    fn message(
        &self,
        index: usize,
        bytes: &[u8],
        depth: usize,
        fields_left: &mut usize,
    ) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(format!("proto: message nested deeper than {DEPTH_MAX}"));
        }
        let message = &self.messages[index];
        let mut out = Map::new();
        for entry in Entries(bytes) {
            let (number, datum) = entry?;
            *fields_left = fields_left
                .checked_sub(1)
                .ok_or("proto: the message has too many fields")?;
            // Fields that newer clients know and we do not are skipped, as Go does.
            let Some(field) = message.fields.iter().find(|field| field.number == number) else {
                continue;
            };
            self.field(field, datum, &mut out, depth, fields_left)?;
        }
        special(message.special, out)
    }

    fn field(
        &self,
        field: &Field,
        datum: Datum<'_>,
        out: &mut Map<String, Value>,
        depth: usize,
        fields_left: &mut usize,
    ) -> Result<(), String> {
        if let Kind::Map(value_kind) = &field.kind {
            let (key, value) = self.map_entry(value_kind, datum, depth, fields_left)?;
            let map = out
                .entry(field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            return Ok(());
        }
        if field.repeated {
            let list = out
                .entry(field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            let Some(list) = list.as_array_mut() else {
                return Ok(());
            };
            // Numbers may come packed.
            if let (Kind::Int | Kind::Bool | Kind::Double, Datum::Bytes(packed)) =
                (&field.kind, datum)
            {
                return unpack(&field.kind, packed, list, fields_left);
            }
            list.push(self.value(&field.kind, datum, depth, fields_left)?);
            return Ok(());
        }
        let value = self.value(&field.kind, datum, depth, fields_left)?;
        if field.is_inline {
            if let Value::Object(inner) = value {
                out.extend(inner);
            }
        } else if value.is_null() || (field.drops_zero && is_zero(&value)) {
            out.remove(field.name);
        } else {
            out.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    fn map_entry(
        &self,
        kind: &Kind,
        datum: Datum<'_>,
        depth: usize,
        fields_left: &mut usize,
    ) -> Result<(String, Value), String> {
        let Datum::Bytes(bytes) = datum else {
            return Err("proto: wrong wireType for a map".into());
        };
        let mut key = String::new();
        let mut value = None;
        for entry in Entries(bytes) {
            match entry? {
                (1, Datum::Bytes(text)) => key = utf8(text)?,
                (2, datum) => value = Some(self.value(kind, datum, depth, fields_left)?),
                _ => {}
            }
        }
        let value = match (value, kind) {
            (Some(value), _) => value,
            (None, Kind::Bytes | Kind::String) => "".into(),
            (None, Kind::Bool) => false.into(),
            (None, Kind::Int | Kind::Double) => 0.into(),
            (None, Kind::Message(index)) => self.message(*index, &[], depth + 1, fields_left)?,
            (None, Kind::Map(_)) => Value::Null,
        };
        Ok((key, value))
    }

    fn value(
        &self,
        kind: &Kind,
        datum: Datum<'_>,
        depth: usize,
        fields_left: &mut usize,
    ) -> Result<Value, String> {
        match (kind, datum) {
            (Kind::Message(index), Datum::Bytes(bytes)) => {
                self.message(*index, bytes, depth + 1, fields_left)
            }
            (Kind::String, Datum::Bytes(bytes)) => utf8(bytes).map(Value::String),
            (Kind::Bytes, Datum::Bytes(bytes)) => Ok(Value::String(STANDARD.encode(bytes))),
            (Kind::Int, Datum::Varint(n)) => Ok((n as i64).into()),
            (Kind::Bool, Datum::Varint(n)) => Ok((n != 0).into()),
            (Kind::Double, Datum::Fixed64(n)) => Ok(json!(f64::from_bits(n))),
            (Kind::Double, Datum::Fixed32(n)) => Ok(json!(f64::from(f32::from_bits(n)))),
            _ => Err("proto: wrong wireType for a field".into()),
        }
    }
}

fn message(
    name: &'static str,
    rows: Vec<Row>,
    by_name: &BTreeMap<&'static str, usize>,
    drops: &BTreeMap<&str, Zeroes<'_>>,
) -> Message {
    let package = name.rsplit_once('.').map_or("", |(package, _)| package);
    let none = Zeroes::default();
    let zeroes = drops.get(name).unwrap_or(&none);
    let special = special_of(name);
    let fields = rows
        .into_iter()
        .map(|row| Field {
            number: row.number,
            kind: kind(row.kind, package, by_name),
            repeated: row.repeated,
            drops_zero: zeroes.zero.contains(&json_name(row.name)),
            is_inline: zeroes.inline.contains(&row.name),
            name: json_name(row.name),
        })
        .collect();
    Message { fields, special }
}

/// One row of the table: `[1, "name", "string"]`, with a fourth entry for repeated fields.
#[derive(Debug)]
struct Row {
    number: u64,
    name: &'static str,
    kind: &'static str,
    repeated: bool,
}

impl<'de: 'static> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Row, D::Error> {
        struct Cells;
        impl<'de: 'static> serde::de::Visitor<'de> for Cells {
            type Value = Row;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a row of the table")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut cells: A,
            ) -> Result<Row, A::Error> {
                let missing = || serde::de::Error::custom("a row has three cells");
                Ok(Row {
                    number: cells.next_element()?.ok_or_else(missing)?,
                    name: cells.next_element()?.ok_or_else(missing)?,
                    kind: cells.next_element()?.ok_or_else(missing)?,
                    repeated: cells.next_element::<&str>()? == Some("rep"),
                })
            }
        }
        reader.deserialize_seq(Cells)
    }
}

/// The table spells names as the message definitions do; JSON spells a few otherwise.
fn json_name(name: &'static str) -> &'static str {
    match name {
        "Expression" => "expression",
        "Name" => "name",
        "Raw" => "raw",
        "Webhooks" => "webhooks",
        "aPIGroup" => "apiGroup",
        "ref" => "$ref",
        "schema" => "$schema",
        "uID" => "uid",
        "xKubernetesEmbeddedResource" => "x-kubernetes-embedded-resource",
        "xKubernetesIntOrString" => "x-kubernetes-int-or-string",
        "xKubernetesListMapKeys" => "x-kubernetes-list-map-keys",
        "xKubernetesListType" => "x-kubernetes-list-type",
        "xKubernetesMapType" => "x-kubernetes-map-type",
        "xKubernetesPreserveUnknownFields" => "x-kubernetes-preserve-unknown-fields",
        "xKubernetesValidations" => "x-kubernetes-validations",
        other => other,
    }
}

fn kind(text: &str, package: &str, by_name: &BTreeMap<&'static str, usize>) -> Kind {
    match text {
        "bool" => Kind::Bool,
        "bytes" => Kind::Bytes,
        "double" | "float" => Kind::Double,
        "int32" | "int64" | "uint32" | "uint64" => Kind::Int,
        "string" => Kind::String,
        _ => match text
            .strip_prefix("map<string, ")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            Some(value) => Kind::Map(Box::new(kind(value, package, by_name))),
            None => {
                let full = match text.strip_prefix('.') {
                    Some(full) => full.to_owned(),
                    None => format!("{package}.{text}"),
                };
                // A type that the table lacks is kept as its bytes, never an error at start.
                by_name
                    .get(full.as_str())
                    .map_or(Kind::Bytes, |index| Kind::Message(*index))
            }
        },
    }
}

fn special_of(name: &str) -> Special {
    match name.rsplit('.').next().unwrap_or(name) {
        "Duration" => Special::Duration,
        "ExtraValue" | "Verbs" => Special::List,
        "FieldsV1" | "JSON" | "RawExtension" => Special::RawJson,
        "IntOrString" => Special::IntOrString,
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            Special::SchemaOr
        }
        "MicroTime" => Special::MicroTime,
        "Quantity" | "QuantityValue" => Special::Quantity,
        "Time" | "Timestamp" => Special::Time,
        _ => Special::None,
    }
}

fn special(special: Special, mut fields: Map<String, Value>) -> Result<Value, String> {
    let number = |name: &str| fields.get(name).and_then(Value::as_i64).unwrap_or(0);
    let value = match special {
        Special::None => Value::Object(fields),
        Special::Duration => {
            let duration = api::duration::Duration(number("duration"));
            duration.to_string().into()
        }
        Special::IntOrString => match number("type") {
            0 => number("intVal").into(),
            _ => fields.remove("strVal").unwrap_or_else(|| "".into()),
        },
        Special::List => fields.remove("items").unwrap_or_else(|| json!([])),
        Special::MicroTime | Special::Time => {
            // Go writes an unset time as an empty message.
            if fields.is_empty() {
                return Ok(Value::Null);
            }
            let micros = number("seconds")
                .saturating_mul(1_000_000)
                .saturating_add(number("nanos") / 1_000);
            let time = Time(micros);
            match special {
                Special::MicroTime => time.micro().into(),
                _ => time.seconds_text().into(),
            }
        }
        Special::Quantity => fields.remove("string").unwrap_or_else(|| "0".into()),
        Special::RawJson => match fields.remove("raw") {
            Some(Value::String(text)) if !text.is_empty() => {
                let bytes = STANDARD
                    .decode(&text)
                    .map_err(|_| "proto: broken raw value")?;
                crate::json::read(&bytes)?.value
            }
            _ => Value::Null,
        },
        Special::SchemaOr => schema_or(fields),
    };
    Ok(value)
}

fn schema_or(mut fields: Map<String, Value>) -> Value {
    if let Some(schema) = fields.remove("$schema") {
        return schema;
    }
    for list in ["jSONSchemas", "property"] {
        if let Some(list) = fields.remove(list) {
            return list;
        }
    }
    fields.remove("allows").unwrap_or(Value::Bool(false))
}

/// `apps/v1` `Deployment` → `k8s.io.api.apps.v1.Deployment`.
fn message_name(api_version: &str, kind: &str) -> Option<String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
    };
    if !is_word(group) || !is_word(version) || !is_word(kind) {
        return None;
    }
    let name = match group {
        "apiextensions.k8s.io" => {
            format!("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration.k8s.io" => {
            format!("k8s.io.kube_aggregator.pkg.apis.apiregistration.{version}.{kind}")
        }
        // Options travel under many group versions, but are one type.
        _ if matches!(
            kind,
            "CreateOptions"
                | "DeleteOptions"
                | "GetOptions"
                | "ListOptions"
                | "PatchOptions"
                | "UpdateOptions"
        ) =>
        {
            format!("k8s.io.apimachinery.pkg.apis.meta.v1.{kind}")
        }
        "meta.k8s.io" => format!("k8s.io.apimachinery.pkg.apis.meta.{version}.{kind}"),
        // `rbac.authorization.k8s.io` lies in the package `rbac`, `flowcontrol.apiserver…` in
        // `flowcontrol`: the first label names it.
        _ => {
            let package = group.split('.').next().unwrap_or(group);
            format!("k8s.io.api.{package}.{version}.{kind}")
        }
    };
    Some(name)
}

#[derive(Clone, Copy)]
enum Datum<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of one message, in the order of the bytes.
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(u64, Datum<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.0 = &[];
        }
        Some(entry)
    }
}

impl<'a> Entries<'a> {
    fn entry(&mut self) -> Result<(u64, Datum<'a>), String> {
        let tag = self.varint()?;
        let datum = match tag & 7 {
            0 => Datum::Varint(self.varint()?),
            1 => {
                let bytes = self.cut(8)?;
                Datum::Fixed64(u64::from_le_bytes(bytes.try_into().map_err(|_| CUT)?))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Datum::Bytes(self.cut(length)?)
            }
            5 => {
                let bytes = self.cut(4)?;
                Datum::Fixed32(u32::from_le_bytes(bytes.try_into().map_err(|_| CUT)?))
            }
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        match tag >> 3 {
            0 => Err("proto: illegal tag 0".into()),
            number => Ok((number, datum)),
        }
    }

    fn cut(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(head)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut out = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            out |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(out);
            }
        }
        Err("proto: integer overflow".into())
    }
}

const CUT: &str = "unexpected EOF";

fn unpack(
    kind: &Kind,
    packed: &[u8],
    list: &mut Vec<Value>,
    fields_left: &mut usize,
) -> Result<(), String> {
    let mut rest = Entries(packed);
    while !rest.0.is_empty() {
        *fields_left = fields_left
            .checked_sub(1)
            .ok_or("proto: the message has too many fields")?;
        let value = match kind {
            Kind::Bool => (rest.varint()? != 0).into(),
            Kind::Double => {
                let bytes = rest.cut(8)?;
                json!(f64::from_le_bytes(bytes.try_into().map_err(|_| CUT)?))
            }
            _ => (rest.varint()? as i64).into(),
        };
        list.push(value);
    }
    Ok(())
}

fn utf8(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "proto: invalid UTF-8 in a string field".into())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests;
