//! Amounts per resource name.

use std::ops::{Deref, DerefMut};

use litemap::LiteMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::Quantity;

type Amounts = LiteMap<Box<str>, Quantity>;

/// Amounts per resource name, sorted by name; side by side, for as a rule there are two or three.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct ResourceList(Amounts);

impl ResourceList {
    /// No amounts.
    pub fn new() -> ResourceList {
        ResourceList::default()
    }

    /// Whether two lists have the same in them, written the same.
    pub(super) fn is_alike(&self, other: &ResourceList) -> bool {
        let mut amounts = self.values().zip(other.values());
        self == other && amounts.all(|(mine, its)| mine.is_written_like(its))
    }
}

impl Deref for ResourceList {
    type Target = Amounts;

    fn deref(&self) -> &Amounts {
        &self.0
    }
}

impl DerefMut for ResourceList {
    fn deref_mut(&mut self) -> &mut Amounts {
        &mut self.0
    }
}

/// The map's own way is to write an empty one as a list.
impl Serialize for ResourceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl FromIterator<(Box<str>, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Quantity)>>(amounts: I) -> ResourceList {
        ResourceList(amounts.into_iter().collect())
    }
}

impl<const N: usize> From<[(Box<str>, Quantity); N]> for ResourceList {
    fn from(amounts: [(Box<str>, Quantity); N]) -> ResourceList {
        amounts.into_iter().collect()
    }
}

impl IntoIterator for ResourceList {
    type Item = (Box<str>, Quantity);
    type IntoIter = std::vec::IntoIter<(Box<str>, Quantity)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ResourceList {
    type Item = (&'a Box<str>, &'a Quantity);
    type IntoIter = <&'a Amounts as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.0).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceList;

    #[test]
    fn a_list_is_read_in_any_order_and_written_sorted_and_an_empty_one_as_a_map() {
        let text = r#"{"memory":"1Gi","cpu":"2","memory":"2Gi"}"#;
        let list: ResourceList = serde_json::from_str(text).expect("it is a list");
        let written = |list: &ResourceList| serde_json::to_string(list).expect("it is written");
        assert_eq!(written(&list), r#"{"cpu":"2","memory":"2Gi"}"#);
        assert_eq!(written(&ResourceList::new()), "{}");
    }
}
