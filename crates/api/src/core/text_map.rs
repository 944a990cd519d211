//! Texts per key, held so that objects of one template share them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::shared::Word;

type Pair = (Box<str>, Word);

/// Texts per key, sorted by key: labels, annotations, selectors.
///
/// A list that is as long as what is in it. Whoever holds many objects lets those with the same keys
/// [share](TextMap::share) one list, and each then holds only the values in which it differs: of the labels
/// of a job's pods that is the number of the pod. To change such a map makes a list of its own.
#[derive(Clone, Default)]
pub struct TextMap {
    /// Sorted by key; none where nothing is in it. Behind one pointer, which is all that those who share
    /// it have of it.
    list: Option<Arc<Box<[Pair]>>>,
    own: Own,
}

/// Values that hold instead of those of the list, by their place in it, in order. A single one, as most
/// pods have (their number), takes no memory elsewhere, and a short value in no case.
#[derive(Clone, Debug, PartialEq)]
enum Own {
    One(u32, Word),
    Others(Box<[(u32, Word)]>),
}

impl Own {
    fn of(mut values: Vec<(u32, Word)>) -> Own {
        match (values.pop(), values.is_empty()) {
            (Some((at, value)), true) => Own::One(at, value),
            (last, _) => {
                values.extend(last);
                Own::Others(values.into())
            }
        }
    }

    fn get(&self, at: usize) -> Option<&Word> {
        match self {
            Own::One(place, value) => (*place as usize == at).then_some(value),
            Own::Others(all) if all.is_empty() => None,
            Own::Others(all) => {
                let found = all.binary_search_by_key(&at, |(place, _)| *place as usize);
                found.ok().map(|found| &all[found].1)
            }
        }
    }
}

impl Default for Own {
    fn default() -> Own {
        Own::Others(Box::default())
    }
}

impl TextMap {
    /// A map with nothing in it.
    pub fn new() -> TextMap {
        TextMap::default()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Word> {
        let list = self.list();
        let at = list
            .binary_search_by(|(known, _)| (**known).cmp(key))
            .ok()?;
        Some(self.own.get(at).unwrap_or(&list[at].1))
    }

    /// Whether the key is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// Keys with their values, in order of key.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            at: 0,
            list: self.list(),
            own: &self.own,
        }
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Box<str>> {
        self.list().iter().map(|(key, _)| key)
    }

    /// The values, in order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Word> {
        self.iter().map(|(_, value)| value)
    }

    /// Sets a value; the one that stood there before.
    pub fn insert(&mut self, key: Box<str>, value: Word) -> Option<Word> {
        let mut pairs = self.pairs();
        let place = pairs.binary_search_by(|(known, _)| known.cmp(&key));
        let before = match place {
            Ok(at) => Some(std::mem::replace(&mut pairs[at].1, value)),
            Err(at) => {
                pairs.insert(at, (key, value));
                None
            }
        };
        *self = TextMap::sorted(pairs);
        before
    }

    /// Takes a key away; the value that stood there.
    pub fn remove(&mut self, key: &str) -> Option<Word> {
        let mut pairs = self.pairs();
        let place = pairs.binary_search_by(|(known, _)| (**known).cmp(key));
        let (_, value) = pairs.remove(place.ok()?);
        *self = TextMap::sorted(pairs);
        Some(value)
    }

    /// Keeps only the keys for which this holds.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str, &str) -> bool) {
        let mut pairs = self.pairs();
        pairs.retain(|(key, value)| is_kept(key, value));
        *self = TextMap::sorted(pairs);
    }

    /// Takes over the other's list where both have the same keys and mostly the same values. What is in
    /// it stays the same.
    pub fn share(&mut self, other: &TextMap) {
        let (Some(mine), Some(theirs)) = (&self.list, &other.list) else {
            return;
        };
        let has_its_keys = || {
            let both = mine.iter().zip(theirs.iter());
            mine.len() == theirs.len() && both.into_iter().all(|(mine, its)| mine.0 == its.0)
        };
        if Arc::ptr_eq(mine, theirs) || !has_its_keys() {
            return;
        }
        let both = (0..).zip(self.values()).zip(theirs.iter());
        let differing = both.filter(|((_, value), (_, its))| *value != its);
        let own: Vec<_> = differing
            .map(|((at, value), _)| (at, value.clone()))
            .collect();
        // The other may have less in common with its list than both have with each other: the first pod of
        // the next job is such a one. Those that follow it share the list of the second.
        let both = self.values().zip(other.values());
        let apart = both.filter(|(mine, its)| mine != its).count();
        // A value of its own takes as much as one in a list.
        if 2 * own.len() <= theirs.len() && own.len() <= apart.max(1) {
            (self.list, self.own) = (Some(Arc::clone(theirs)), Own::of(own));
        }
    }

    /// Whether both have one list.
    pub fn shares_with(&self, other: &TextMap) -> bool {
        match (&self.list, &other.list) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            _ => false,
        }
    }

    fn list(&self) -> &[Pair] {
        self.list.as_deref().map_or(&[], |list| list)
    }

    fn pairs(&self) -> Vec<Pair> {
        let pairs = self.iter();
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Of pairs that are in order, each key once.
    fn sorted(pairs: Vec<Pair>) -> TextMap {
        TextMap {
            list: (!pairs.is_empty()).then(|| Arc::new(pairs.into())),
            own: Own::default(),
        }
    }
}

/// The value of a key that is there.
impl std::ops::Index<&str> for TextMap {
    type Output = Word;

    fn index(&self, key: &str) -> &Word {
        self.get(key).expect("the key is there")
    }
}

/// Of a key that is there twice the last value counts.
impl FromIterator<Pair> for TextMap {
    fn from_iter<I: IntoIterator<Item = Pair>>(pairs: I) -> TextMap {
        let mut pairs: Vec<Pair> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|one, next| one.0 < next.0) {
            pairs.sort_by(|one, next| one.0.cmp(&next.0));
            pairs.dedup_by(|later, kept| {
                let is_again = later.0 == kept.0;
                if is_again {
                    std::mem::swap(later, kept);
                }
                is_again
            });
        }
        TextMap::sorted(pairs)
    }
}

impl<const N: usize> From<[Pair; N]> for TextMap {
    fn from(pairs: [Pair; N]) -> TextMap {
        pairs.into_iter().collect()
    }
}

impl Extend<Pair> for TextMap {
    fn extend<I: IntoIterator<Item = Pair>>(&mut self, more: I) {
        let pairs = self.pairs();
        *self = pairs.into_iter().chain(more).collect();
    }
}

/// See [`TextMap::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    at: usize,
    list: &'a [Pair],
    own: &'a Own,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Box<str>, &'a Word);

    fn next(&mut self) -> Option<Self::Item> {
        let ((key, shared), rest) = self.list.split_first()?;
        let value = self.own.get(self.at).unwrap_or(shared);
        (self.at, self.list) = (self.at + 1, rest);
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.list.len(), Some(self.list.len()))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a TextMap {
    type Item = (&'a Box<str>, &'a Word);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for TextMap {
    type Item = Pair;
    type IntoIter = std::vec::IntoIter<Pair>;

    fn into_iter(self) -> Self::IntoIter {
        self.pairs().into_iter()
    }
}

impl fmt::Debug for TextMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl PartialEq for TextMap {
    fn eq(&self, other: &TextMap) -> bool {
        match self.shares_with(other) {
            true => self.own == other.own,
            false => self.iter().eq(other.iter()),
        }
    }
}

impl Eq for TextMap {}

impl PartialOrd for TextMap {
    fn partial_cmp(&self, other: &TextMap) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TextMap {
    fn cmp(&self, other: &TextMap) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl Serialize for TextMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for TextMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextMap, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = TextMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextMap, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(0).min(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Texts)
    }
}

#[cfg(test)]
mod tests {
    use super::TextMap;

    fn map(texts: &[(&str, &str)]) -> TextMap {
        let pairs = texts.iter();
        pairs
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn maps_that_share_a_list_keep_what_is_their_own() {
        let first = map(&[("app", "train"), ("index", "0"), ("team", "vision")]);
        let mut second = map(&[("app", "train"), ("index", "1"), ("team", "vision")]);
        let before = second.clone();
        second.share(&first);
        assert!(second.shares_with(&first));
        assert_eq!(second, before);
        assert_ne!(second, first);
        assert_eq!(second.get("index").map(|it| &**it), Some("1"));
        assert_eq!(second.get("team").map(|it| &**it), Some("vision"));
        let text = serde_json::to_string(&second).expect("texts can be written");
        assert_eq!(text, r#"{"app":"train","index":"1","team":"vision"}"#);
        // It is the first one's list, not the second one's values, that a third one shares.
        let mut third = map(&[("app", "train"), ("index", "0"), ("team", "vision")]);
        third.share(&second);
        assert!(third.shares_with(&first) && third == first);
    }

    #[test]
    fn those_of_the_next_job_share_a_list_of_their_own() {
        let of = |job, index| {
            map(&[
                ("app", "train"),
                ("index", index),
                ("job", job),
                ("team", "a"),
            ])
        };
        let mut last = of("a", "0");
        let mut pods = Vec::new();
        for (job, index) in [("a", "1"), ("b", "0"), ("b", "1"), ("b", "2"), ("b", "3")] {
            let mut next = of(job, index);
            next.share(&last);
            assert_eq!(next, of(job, index));
            last = next.clone();
            pods.push(next);
        }
        assert!(pods[1].shares_with(&pods[0]));
        assert!(!pods[2].shares_with(&pods[1]));
        assert!(pods[3].shares_with(&pods[2]) && pods[4].shares_with(&pods[2]));
    }

    #[test]
    fn maps_that_have_little_in_common_share_nothing() {
        let first = map(&[("app", "train"), ("index", "0")]);
        for other in [
            &[("app", "train")][..],
            &[("app", "serve"), ("index", "1")],
            &[("app", "train"), ("at", "0")],
        ] {
            let mut other = map(other);
            other.share(&first);
            assert!(!other.shares_with(&first), "{other:?}");
        }
    }

    #[test]
    fn a_change_of_one_changes_no_other() {
        let first = map(&[("a", "1"), ("b", "2")]);
        let mut second = map(&[("a", "1"), ("b", "3")]);
        second.share(&first);
        assert_eq!(second.insert("b".into(), "4".into()).as_deref(), Some("3"));
        assert_eq!(second.insert("c".into(), "5".into()), None);
        assert_eq!(second.remove("a").as_deref(), Some("1"));
        assert_eq!(second.remove("z"), None);
        assert_eq!(second, map(&[("b", "4"), ("c", "5")]));
        assert_eq!(first, map(&[("a", "1"), ("b", "2")]));
        second.retain(|key, _| key == "c");
        second.extend([("b".into(), "6".into()), ("c".into(), "7".into())]);
        assert_eq!(second, map(&[("b", "6"), ("c", "7")]));
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_value_counts() {
        let texts = r#"{"b":"1","a":"2","b":"3","a":"4","b":"5"}"#;
        let read: TextMap = serde_json::from_str(texts).expect("it is a map");
        assert_eq!(read, map(&[("a", "4"), ("b", "5")]));
        assert_eq!(read.len(), 2);
    }
}
