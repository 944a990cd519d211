//! OpenAPI v2: every schema that is served in one document, as JSON or in the protobuf that clients
//! of Kubernetes ask for. kubectl looks here for what no single version of a group can tell it:
//! lists of anything, kinds that are not there.
//!
//! Paths are not told; the documents of version 3 have them.

use serde_json::{Map, Value, json};

/// What clients call the protobuf form.
pub const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What it is called when it is sent.
pub const PROTOBUF_SENT: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// One document of the schemas of several documents of version 3; `version` is that of Kubernetes.
pub fn whole(documents: impl IntoIterator<Item = Value>, version: &str) -> Value {
    let mut definitions = Map::new();
    let minor: Vec<&str> = version.split('.').take(2).collect();
    for mut document in documents {
        let schemas = document["components"]["schemas"].take();
        let Value::Object(schemas) = schemas else {
            continue;
        };
        for (name, schema) in schemas {
            definitions.entry(name).or_insert_with(|| older(schema));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": minor.join(".")},
        "paths": {},
        "definitions": definitions,
    })
}

/// A schema of version 3 as version 2 says it: references beside their texts, and only what that
/// version knows.
fn older(schema: Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema;
    };
    let mut out = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                let name = reference.rsplit('/').next().unwrap_or_default();
                out.insert(key, json!(format!("#/definitions/{name}")));
            }
            // The only one is a reference that has neighbours.
            ("allOf", Value::Array(mut parts)) if parts.len() == 1 => {
                if let Value::Object(part) = older(parts.remove(0)) {
                    out.extend(part);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "not" | "nullable", _) => {}
            ("properties", Value::Object(properties)) => {
                let properties = properties
                    .into_iter()
                    .map(|(name, schema)| (name, older(schema)));
                out.insert(key, properties.collect::<Map<_, _>>().into());
            }
            ("items" | "additionalProperties", value) => {
                out.insert(key, older(value));
            }
            (_, value) => {
                out.insert(key, value);
            }
        }
    }
    Value::Object(out)
}

/// The document in protobuf: `openapi.v2.Document` of gnostic's `OpenAPIv2.proto`, whose field
/// numbers these are.
pub fn protobuf(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    out.message(2, &info);
    out.message(8, &Message::default());
    out.message(9, &named_schemas(&document["definitions"]));
    out.0
}

fn named_schemas(schemas: &Value) -> Message {
    let mut out = Message::default();
    for (name, inner) in schemas.as_object().into_iter().flatten() {
        let mut named = Message::default();
        named.bytes(1, name.as_bytes());
        named.message(2, &schema(inner));
        out.message(1, &named);
    }
    out
}

fn schema(schema: &Value) -> Message {
    let mut out = Message::default();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "$ref" => out.text(1, value),
            "format" => out.text(2, value),
            "title" => out.text(3, value),
            "description" => out.text(4, value),
            "default" => out.message(5, &any(value)),
            "multipleOf" => out.double(6, value),
            "maximum" => out.double(7, value),
            "exclusiveMaximum" => out.flag(8, value),
            "minimum" => out.double(9, value),
            "exclusiveMinimum" => out.flag(10, value),
            "maxLength" => out.count(11, value),
            "minLength" => out.count(12, value),
            "pattern" => out.text(13, value),
            "maxItems" => out.count(14, value),
            "minItems" => out.count(15, value),
            "uniqueItems" => out.flag(16, value),
            "maxProperties" => out.count(17, value),
            "minProperties" => out.count(18, value),
            "required" => out.texts(19, value),
            "enum" => {
                for one in value.as_array().into_iter().flatten() {
                    out.message(20, &any(one));
                }
            }
            "additionalProperties" => out.message(21, &additional(value)),
            "type" => {
                let mut kind = Message::default();
                kind.text(1, value);
                out.message(22, &kind);
            }
            "items" => {
                let mut items = Message::default();
                items.message(1, &self::schema(value));
                out.message(23, &items);
            }
            "properties" => out.message(25, &named_schemas(value)),
            _ if key.starts_with("x-") => {
                let mut named = Message::default();
                named.bytes(1, key.as_bytes());
                named.message(2, &any(value));
                out.message(31, &named);
            }
            _ => {}
        }
    }
    out
}

/// What a map's further values are: a schema, or whether there may be any.
fn additional(value: &Value) -> Message {
    let mut out = Message::default();
    match value {
        Value::Bool(_) => out.flag(2, value),
        _ => out.message(1, &schema(value)),
    }
    out
}

/// A value in YAML, of which JSON is a part.
fn any(value: &Value) -> Message {
    let mut out = Message::default();
    out.bytes(2, value.to_string().as_bytes());
    out
}

/// A protobuf message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number as u8) | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn text(&mut self, field: u64, value: &Value) {
        if let Some(text) = value.as_str() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u64, value: &Value) {
        for one in value.as_array().into_iter().flatten() {
            self.text(field, one);
        }
    }

    fn flag(&mut self, field: u64, value: &Value) {
        if let Some(flag) = value.as_bool() {
            self.varint(field << 3);
            self.varint(flag.into());
        }
    }

    fn count(&mut self, field: u64, value: &Value) {
        if let Some(count) = value.as_u64() {
            self.varint(field << 3);
            self.varint(count);
        }
    }

    fn double(&mut self, field: u64, value: &Value) {
        if let Some(number) = value.as_f64() {
            self.varint(field << 3 | 1);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stand_beside_their_texts() {
        let document = json!({"components": {"schemas": {
            "a.Pod": {"type": "object", "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/a.Spec"}], "description": "Wish.", "default": {}},
                "old": {"type": "string", "nullable": true},
            }},
            "a.Spec": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/a.Pod"}},
        }}});
        assert_eq!(
            whole([document], "1.2.3")["definitions"],
            json!({
                "a.Pod": {"type": "object", "properties": {
                    "spec": {"$ref": "#/definitions/a.Spec", "description": "Wish.", "default": {}},
                    "old": {"type": "string"},
                }},
                "a.Spec": {"type": "object", "additionalProperties": {"$ref": "#/definitions/a.Pod"}},
            })
        );
    }

    #[test]
    fn protobuf_says_what_json_says() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "K", "version": "v1"},
            "definitions": {"A": {"type": "object", "maxItems": 300, "minimum": 1, "x-y": true}},
        });
        let wanted = [
            &b"\x0a\x032.0"[..],
            b"\x12\x07\x0a\x01K\x12\x02v1",
            b"\x42\x00",
            // The definitions, the one definition, its name, its schema.
            b"\x4a\x2e\x0a\x2c\x0a\x01A\x12\x27",
            b"\x70\xac\x02",
            b"\x49\0\0\0\0\0\0\xf0\x3f",
            b"\xb2\x01\x08\x0a\x06object",
            b"\xfa\x01\x0d\x0a\x03x-y\x12\x06\x12\x04true",
        ];
        let wanted = wanted.concat();
        let got = protobuf(&document);
        assert_eq!(got, wanted, "\n{got:02x?}\n{wanted:02x?}");
    }
}
