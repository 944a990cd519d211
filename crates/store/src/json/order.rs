//! The order in which fields stand in a text: complaints are told in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::DEPTH_MAX;

/// Sorts complaints by where the fields that they are about stand in a JSON text; a field that
/// stands twice is told of at its second place. Those about fields that are not found come last.
pub(crate) fn in_order(text: &[u8], complaints: &mut [(String, String)]) {
    if complaints.len() < 2 {
        return;
    }
    let mut places: BTreeMap<String, usize> = complaints
        .iter()
        .map(|(path, _)| (path.clone(), usize::MAX))
        .collect();
    let mut count = 0;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let walk = Walk {
        path: String::new(),
        depth: 0,
        places: &mut places,
        count: &mut count,
    };
    // The text was read before; what cannot be read leaves the order as it is.
    if walk.deserialize(&mut reader).is_ok() {
        complaints.sort_by_key(|(path, _)| places.get(path).copied());
    }
}

struct Walk<'a> {
    path: String,
    depth: usize,
    places: &'a mut BTreeMap<String, usize>,
    count: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.depth > DEPTH_MAX {
            return IgnoredAny::deserialize(reader).map(|_| ());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let inner = Walk {
                path: format!("{}[{index}]", self.path),
                depth: self.depth + 1,
                places: &mut *self.places,
                count: &mut *self.count,
            };
            if items.next_element_seed(inner)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = entries.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => key,
                path => format!("{path}.{key}"),
            };
            *self.count += 1;
            if let Some(place) = self.places.get_mut(&path) {
                *place = *self.count;
            }
            entries.next_value_seed(Walk {
                path,
                depth: self.depth + 1,
                places: &mut *self.places,
                count: &mut *self.count,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn complaints_come_in_the_order_of_the_text() {
        let text = br#"{"z": {"y": [{}, {"b": 1, "a": 2}]}, "c": 1, "d": 1, "c": 2}"#;
        let about = |path: &str| (path.to_owned(), format!("about {path}"));
        let mut complaints = ["c", "d", "q", "z.y[1].a", "z.y[1].b"].map(about);
        in_order(text, &mut complaints);
        let paths = complaints.map(|(path, _)| path);
        assert_eq!(paths, ["z.y[1].b", "z.y[1].a", "d", "c", "q"]);
    }
}
