//! A part of an object that is passed on and seldom read: kept as its text, which takes a tenth of
//! the memory of a parsed value.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON text; empty where the part is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// The parsed value; `null` where the part is absent.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// The part read as a type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<&Value> for RawJson {
    fn from(value: &Value) -> RawJson {
        RawJson(value.to_string().into())
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(RawJson(raw.get().into()))
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_as_it_was_written() {
        #[derive(Deserialize)]
        struct Holder {
            part: RawJson,
        }
        let holder: Holder = serde_json::from_str(r#"{"part": {"b": 1,  "a": [2]}}"#).unwrap();
        assert_eq!(holder.part.text(), r#"{"b": 1,  "a": [2]}"#);
        assert_eq!(holder.part.value()["a"][0], 2);
        let of_value: Holder =
            serde_json::from_value(serde_json::json!({"part": {"a": 1}})).unwrap();
        assert_eq!(of_value.part.value()["a"], 1);
        assert_eq!(RawJson::default().value(), Value::Null);
    }
}
