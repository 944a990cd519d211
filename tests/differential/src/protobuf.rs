//! Protobuf bodies written by field number.

use anyhow::{Context, bail};
use serde_json::Value;

/// What a Kubernetes body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// An object in its envelope. `fields` has field numbers for keys; texts are strings, maps are
/// messages, lists repeat, numbers and truth values are varints.
pub fn envelope(version: &str, kind: &str, fields: &Value) -> anyhow::Result<Vec<u8>> {
    let mut type_meta = Vec::new();
    bytes(1, version.as_bytes(), &mut type_meta);
    bytes(2, kind.as_bytes(), &mut type_meta);
    let mut raw = Vec::new();
    message(fields, &mut raw)?;
    let mut unknown = MAGIC.to_vec();
    bytes(1, &type_meta, &mut unknown);
    bytes(2, &raw, &mut unknown);
    Ok(unknown)
}

fn message(fields: &Value, to: &mut Vec<u8>) -> anyhow::Result<()> {
    let fields = fields.as_object().context("a message is a map")?;
    for (number, value) in fields {
        let number: u64 = number
            .parse()
            .with_context(|| format!("{number} is no number"))?;
        match value {
            Value::Array(items) => {
                for item in items {
                    field(number, item, to)?;
                }
            }
            one => field(number, one, to)?,
        }
    }
    Ok(())
}

fn field(number: u64, value: &Value, to: &mut Vec<u8>) -> anyhow::Result<()> {
    match value {
        Value::String(text) => bytes(number, text.as_bytes(), to),
        Value::Object(_) => {
            let mut inner = Vec::new();
            message(value, &mut inner)?;
            bytes(number, &inner, to);
        }
        Value::Bool(truth) => {
            varint(number << 3, to);
            varint(u64::from(*truth), to);
        }
        Value::Number(count) => {
            varint(number << 3, to);
            let count = count.as_i64().context("only whole numbers")?;
            varint(count.cast_unsigned(), to);
        }
        _ => bail!("{value} cannot be written"),
    }
    Ok(())
}

fn bytes(number: u64, content: &[u8], to: &mut Vec<u8>) {
    varint(number << 3 | 2, to);
    varint(content.len() as u64, to);
    to.extend_from_slice(content);
}

fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_by_number() {
        let fields = serde_json::json!({"1": {"1": "a"}, "2": [300, true]});
        let body = envelope("v1", "X", &fields).unwrap();
        assert_eq!(
            body,
            b"k8s\0\x0a\x07\x0a\x02v1\x12\x01X\x12\x0a\x0a\x03\x0a\x01a\x10\xac\x02\x10\x01"
        );
    }
}
