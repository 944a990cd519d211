//! The tree as JSON, as what is sent to an API server, and JSON as a tree.

use serde_json::{Map, Number};

use super::{Entry, Flaw, Meaning, Node, Place, Scalar, Segment, Value, field};

impl Node {
    /// The same as JSON. A key that is given twice, and a number that is none, are refused.
    pub fn json(&self) -> Result<serde_json::Value, Flaw> {
        json(self, &mut Vec::new())
    }

    /// JSON as a tree whose places nobody knows.
    pub fn of_json(value: &serde_json::Value) -> Node {
        let scalar = |text: &str, meaning| {
            Value::Scalar(Scalar {
                text: text.into(),
                meaning,
            })
        };
        let value = match value {
            serde_json::Value::Null => scalar("", Meaning::Nothing),
            serde_json::Value::Bool(flag) => scalar(&flag.to_string(), Meaning::Flag(*flag)),
            serde_json::Value::Number(number) => scalar(&number.to_string(), meaning(number)),
            serde_json::Value::String(text) => scalar(text, Meaning::Text),
            serde_json::Value::Array(items) => {
                Value::List(items.iter().map(Node::of_json).collect())
            }
            serde_json::Value::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| Entry {
                    key: key.clone(),
                    place: Place::default(),
                    node: Node::of_json(value),
                });
                Value::Map(entries.collect())
            }
        };
        Node {
            place: Place::default(),
            value,
        }
    }
}

fn meaning(number: &Number) -> Meaning {
    let signed = number.as_i64().map(i128::from);
    match signed.or_else(|| number.as_u64().map(i128::from)) {
        Some(whole) => Meaning::Whole(whole),
        None => Meaning::Decimal(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn json(node: &Node, path: &mut Vec<Segment>) -> Result<serde_json::Value, Flaw> {
    match &node.value {
        Value::Scalar(scalar) => match scalar_json(scalar) {
            Some(value) => Ok(value),
            None => Err(flaw(
                node.place,
                path,
                "infinity and not-a-number cannot be sent as JSON",
            )),
        },
        Value::List(items) => {
            let mut all = Vec::with_capacity(items.len());
            for item in items {
                path.push(Segment::Index(all.len()));
                all.push(json(item, path)?);
                path.pop();
            }
            Ok(serde_json::Value::Array(all))
        }
        Value::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                path.push(Segment::Field(entry.key.clone()));
                let value = json(&entry.node, path)?;
                if map.insert(entry.key.clone(), value).is_some() {
                    return Err(flaw(entry.place, path, "this field is given twice"));
                }
                path.pop();
            }
            Ok(serde_json::Value::Object(map))
        }
    }
}

fn scalar_json(scalar: &Scalar) -> Option<serde_json::Value> {
    Some(match scalar.meaning {
        Meaning::Nothing => serde_json::Value::Null,
        Meaning::Flag(flag) => serde_json::Value::Bool(flag),
        Meaning::Text => serde_json::Value::String(scalar.text.to_string()),
        Meaning::Decimal(number) => serde_json::Value::Number(Number::from_f64(number)?),
        Meaning::Whole(number) => {
            let signed = i64::try_from(number).map(Number::from);
            let number = signed
                .or_else(|_| u64::try_from(number).map(Number::from))
                .or_else(|_| Number::from_f64(number as f64).ok_or(()))
                .ok()?;
            serde_json::Value::Number(number)
        }
    })
}

fn flaw(place: Place, path: &[Segment], message: &str) -> Flaw {
    Flaw {
        place,
        field: field(path),
        message: message.to_owned(),
    }
}
