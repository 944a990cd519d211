//! Stored objects as who only looks at them reads them: JSON, where what is missing is empty, and
//! without the record of who owns which field, which is half of it.

use std::fmt;

use api::quantity::Quantity;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The uid of an object's controller.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    list(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
        .map(|owner| text(&owner["uid"]))
}

/// Whether a pod has ended.
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Namespace and name.
pub(crate) fn key(object: &Value) -> String {
    let meta = &object["metadata"];
    format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// An amount in thousandths.
pub(crate) fn milli(amount: &Value) -> i128 {
    let written = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return 0,
    };
    written
        .parse::<Quantity>()
        .map_or(0, |quantity| i128::from(quantity.milli_value()))
}

/// An object that the store has written; `null` for what is no object.
pub(crate) fn object(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    Slim { within: "" }
        .deserialize(&mut reader)
        .unwrap_or_default()
}

/// Reads an object without its `metadata.managedFields`.
struct Slim {
    /// The field that it stands in; empty for the object itself.
    within: &'static str,
}

impl<'de> DeserializeSeed<'de> for Slim {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Slim {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = match (self.within, &*key) {
                ("", "metadata") => access.next_value_seed(Slim { within: "metadata" })?,
                ("metadata", "managedFields") => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => access.next_value()?,
            };
            if map.insert(key, value).is_some() {
                return Err(Error::custom("a field stands there twice"));
            }
        }
        Ok(Value::Object(map))
    }
}

/// What tells one version of an object from the others, read without the rest.
#[derive(Deserialize)]
pub(crate) struct Version<'a> {
    #[serde(borrow)]
    pub(crate) metadata: VersionMeta<'a>,
}

impl Version<'_> {
    /// As [`key`].
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionMeta<'a> {
    /// Names have nothing in them that JSON would write in another way.
    #[serde(default)]
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) resource_version: &'a str,
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}
