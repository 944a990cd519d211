//! Images of nodes, by name, as schedulers look them up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The images that a node has: each of their names, in order and once, with its bytes. A cluster has tens
/// of names on each of thousands of nodes, and mostly the same ones; so who holds many nodes can share them.
///
/// Written, it has an entry for each name, not for each image. Read again, it is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images(Arc<[(Arc<str>, i64)]>);

impl Images {
    /// The names, in order, each with its bytes.
    pub fn names(&self) -> &Arc<[(Arc<str>, i64)]> {
        &self.0
    }

    /// Takes over the other's list where both have the same in it.
    pub fn share(&mut self, other: &Images) {
        if !Arc::ptr_eq(&self.0, &other.0) && self.0 == other.0 {
            self.0 = Arc::clone(&other.0);
        }
    }

    /// The same with names that `shared` gives for them.
    #[must_use]
    pub fn with_names(&self, mut shared: impl FnMut(&Arc<str>) -> Arc<str>) -> Images {
        let names = self.0.iter();
        Images(names.map(|(name, bytes)| (shared(name), *bytes)).collect())
    }
}

/// The name by which a container's image is looked up among those of nodes: with a tag, `latest` if it
/// bears none. Source: kube-scheduler's ImageLocality.
pub fn image_name(image: &str) -> Arc<str> {
    match image.rfind(':') > image.rfind('/') {
        true => image.into(),
        false => format!("{image}:latest").into(),
    }
}

/// One image on the wire.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    #[serde(deserialize_with = "crate::meta::null_as_default")]
    names: Vec<Box<str>>,
    #[serde(deserialize_with = "crate::meta::null_as_default")]
    size_bytes: i64,
}

impl<'de> Deserialize<'de> for Images {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Images, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Images;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of images")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Images, A::Error> {
                let mut all: BTreeMap<Box<str>, i64> = BTreeMap::new();
                while let Some(Wire { names, size_bytes }) = list.next_element()? {
                    all.extend(names.into_iter().map(|name| (name, size_bytes.max(0))));
                }
                let names = all.into_iter();
                Ok(Images(
                    names.map(|(name, bytes)| (name.into(), bytes)).collect(),
                ))
            }
        }
        deserializer.deserialize_seq(Names)
    }
}

impl Serialize for Images {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(name, bytes)| Wire {
            names: vec![(&**name).into()],
            size_bytes: *bytes,
        }))
    }
}
