//! Parts of objects that those alike have in common, held once.
//!
//! They are read like what they hold. To change one makes a copy of its own where others have it, too.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that takes no memory elsewhere where it is short, as versions, addresses and names of nodes are:
/// up to 15 bytes. A longer one is held once by all its copies.
pub type Word = ecow::EcoString;

/// A name, held once by all its copies: the object's, its row's, and a pod's host name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Takes over the other's text where both say the same.
    pub fn share(&mut self, other: &Name) {
        if self == other {
            self.0 = Arc::clone(&other.0);
        }
    }

    /// Whether both have one text.
    pub fn shares_with(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The text, which whoever keeps it shares.
    pub fn text(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text.into())
    }
}

impl From<Box<str>> for Name {
    fn from(text: Box<str>) -> Name {
        Name(text.into())
    }
}

impl From<&Name> for Box<str> {
    fn from(name: &Name) -> Box<str> {
        (**name).into()
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, text: &str) -> bool {
        **self == *text
    }
}

impl PartialEq<Box<str>> for Name {
    fn eq(&self, text: &Box<str>) -> bool {
        **self == **text
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A part of an object that others may have, too.
#[derive(Clone, Debug, Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// A part that nobody else has yet.
    pub fn new(part: T) -> Shared<T> {
        Shared(Arc::new(part))
    }

    /// Takes over the other's part where `is_alike` finds no difference: nobody could tell them apart.
    pub fn share(&mut self, other: &Shared<T>, is_alike: impl FnOnce(&T, &T) -> bool) {
        if !Arc::ptr_eq(&self.0, &other.0) && is_alike(&self.0, &other.0) {
            self.0 = Arc::clone(&other.0);
        }
    }

    /// The part, to change it, where nobody else has it.
    pub fn own(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)
    }

    /// Whether both have one part.
    pub fn shares_with(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.shares_with(other) || self.0 == other.0
    }
}

/// A list that others may have, too; as long as what is in it. Behind one pointer, which is all that those
/// who share it have of it.
#[derive(Clone, Debug)]
pub struct List<T>(Option<Arc<Box<[T]>>>);

impl<T: PartialEq> List<T> {
    /// Takes over the other's list where both have the same in it.
    pub fn share(&mut self, other: &List<T>) {
        if !self.shares_with(other) && **self == **other {
            self.0.clone_from(&other.0);
        }
    }
}

impl<T> List<T> {
    /// Whether both have one list, or nothing.
    pub fn shares_with(&self, other: &List<T>) -> bool {
        match (&self.0, &other.0) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (None, None) => true,
            _ => false,
        }
    }
}

impl<T> List<T> {
    /// Whether somebody else has it, too.
    pub fn is_shared(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|list| Arc::strong_count(list) > 1)
    }
}

impl<T: std::hash::Hash> std::hash::Hash for List<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(None)
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], |list| list)
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &List<T>) -> bool {
        self.shares_with(other) || **self == **other
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> List<T> {
        List((!items.is_empty()).then(|| Arc::new(items.into())))
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> List<T> {
        List::from(items.into_iter().collect::<Vec<T>>())
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        Vec::deserialize(deserializer).map(List::from)
    }
}

#[cfg(test)]
mod tests {
    use super::{List, Name, Shared};

    #[test]
    fn a_name_that_is_another_one_is_held_with_it() {
        let first = Name::from("train-worker-0");
        let mut second: Name = serde_json::from_str(r#""train-worker-0""#).expect("a text");
        assert!(second == first && !second.shares_with(&first));
        second.share(&first);
        assert!(second.shares_with(&first));
        let mut third = Name::from("train-worker-1");
        third.share(&first);
        assert_eq!(
            (&*third, third.to_string()),
            ("train-worker-1", third.to_string())
        );
        assert!(serde_json::from_str::<Name>("1").is_err());
    }

    #[test]
    fn what_is_alike_is_shared_until_one_is_changed() {
        let first = Shared::new(vec![1, 2]);
        let mut second = Shared::new(vec![1, 2]);
        second.share(&first, PartialEq::eq);
        assert!(second.shares_with(&first));
        second.push(3);
        assert_eq!((&*first, &*second), (&vec![1, 2], &vec![1, 2, 3]));
        second.share(&first, PartialEq::eq);
        assert!(!second.shares_with(&first));
    }

    #[test]
    fn lists_that_are_alike_are_shared_and_empty_ones_take_nothing() {
        let first: List<u8> = vec![1, 2].into();
        let mut second: List<u8> = serde_json::from_str("[1,2]").expect("it is a list");
        second.share(&first);
        assert!(second.shares_with(&first));
        let mut third: List<u8> = vec![1, 3].into();
        third.share(&first);
        assert!(!third.shares_with(&first) && third[1] == 3);
        assert!(List::<u8>::from(Vec::new()).shares_with(&List::default()));
    }
}
