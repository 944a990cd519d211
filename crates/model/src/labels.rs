//! Labels and the requirements that are put to them, parsed at the wall.

use std::cmp::Ordering;
use std::sync::Arc;

/// Labels, sorted by key.
///
/// Those of the tasks of one gang differ in a value or two, so they can share a list of all labels of one
/// of them, and have those values besides: see [`Labels::varied`].
#[derive(Clone, Default)]
pub struct Labels {
    /// Behind one pointer, which is all that those who share it have of it.
    list: Option<Arc<Box<[Pair]>>>,
    own: Own,
}

type Pair = (Arc<str>, Arc<str>);

/// Values that hold instead of those of the list, by their place in it, in order. A single one, as most
/// tasks have (their index), takes no memory elsewhere.
#[derive(Clone, PartialEq)]
enum Own {
    One(u32, Arc<str>),
    Others(Box<[(u32, Arc<str>)]>),
}

impl Own {
    fn of(mut values: Vec<(u32, Arc<str>)>) -> Own {
        match (values.pop(), values.is_empty()) {
            (Some((at, value)), true) => Own::One(at, value),
            (last, _) => {
                values.extend(last);
                Own::Others(values.into())
            }
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Option<&Arc<str>> {
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

impl Labels {
    /// Labels of the given pairs; the last value wins where a key occurs twice.
    pub fn of<K: Into<Arc<str>>, V: Into<Arc<str>>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Labels {
        let mut list: Vec<Pair> = Vec::new();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            match list.binary_search_by(|(k, _)| k.cmp(&key)) {
                Ok(at) => list[at].1 = value,
                Err(at) => list.insert(at, (key, value)),
            }
        }
        Labels {
            list: (!list.is_empty()).then(|| Arc::new(list.into())),
            own: Own::default(),
        }
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&str> {
        let list = self.list.as_deref()?;
        let at = list.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(self.own.get(at).unwrap_or(&list[at].1))
    }

    /// Whether both have one list.
    pub fn shares_with(&self, other: &Labels) -> bool {
        match (&self.list, &other.list) {
            (Some(mine), Some(its)) => Arc::ptr_eq(mine, its),
            (None, None) => true,
            _ => false,
        }
    }

    /// All labels in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let list = self.list.iter().flat_map(|list| list.iter());
        let all = list.enumerate();
        all.map(|(at, (key, value))| (&**key, &**self.own.get(at).unwrap_or(value)))
    }

    /// Labels that share this one's list: of the same keys, in their order, and with mostly the same
    /// values. `None` where they have too little in common. A value of its own is held as `word` gives it.
    pub fn varied<'a>(
        &self,
        pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
        mut word: impl FnMut(&str) -> Arc<str>,
    ) -> Option<Labels> {
        let list = self.list.as_ref()?;
        if pairs.len() != list.len() {
            return None;
        }
        let (mut own, mut apart) = (Vec::new(), 0);
        for (at, ((key, value), (its, shared))) in pairs.zip(list.iter()).enumerate() {
            if *key != **its {
                return None;
            }
            if *value != **shared {
                own.push((u32::try_from(at).ok()?, value));
            }
            apart += usize::from(*value != **self.own.get(at).unwrap_or(shared));
        }
        // This one may have less in common with its list than both have with each other: the first pod of
        // the next job is such a one. Those that follow it share the list of the second. A value of its own
        // takes as much as one in a list.
        (2 * own.len() <= list.len() && own.len() <= apart.max(1)).then(|| Labels {
            list: Some(Arc::clone(list)),
            own: Own::of(
                own.into_iter()
                    .map(|(at, value)| (at, word(value)))
                    .collect(),
            ),
        })
    }
}

impl std::fmt::Debug for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Labels) -> bool {
        match self.shares_with(other) {
            true => self.own == other.own,
            false => self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Labels {}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Labels) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Labels) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// There is no such key.
    DoesNotExist,
    /// There is such a key.
    Exists,
    /// The value is an integer above the given one.
    Gt,
    /// The value is one of the given ones.
    In,
    /// The value is an integer below the given one.
    Lt,
    /// There is no such key, or its value is none of the given ones.
    NotIn,
}

/// Values that a requirement lists: each once, sorted, so that one is found among a hundred thousand.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Values(Vec<Arc<str>>);

impl Values {
    /// Whether it is one of them.
    pub fn contains(&self, value: &str) -> bool {
        self.0
            .binary_search_by(|listed| (**listed).cmp(value))
            .is_ok()
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }

    /// The value, where there is one alone.
    fn only(&self) -> Option<&str> {
        match &*self.0 {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl<V: Into<Arc<str>>> FromIterator<V> for Values {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Values {
        let mut values: Vec<Arc<str>> = values.into_iter().map(Into::into).collect();
        values.sort_unstable();
        values.dedup();
        Values(values)
    }
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The label's key.
    pub key: Arc<str>,
    /// How to compare.
    pub operator: Operator,
    /// What to compare with; with one value alone where it is an integer.
    pub values: Values,
}

impl Requirement {
    /// The requirement that `key` has the value `value`.
    pub fn equals(key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Requirement {
        Requirement {
            key: key.into(),
            operator: Operator::In,
            values: Values::from_iter([value]),
        }
    }

    /// Whether a label with this value (or its absence) meets the requirement.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.contains(value);
        let compared = |wanted: Ordering| {
            let mine = value.and_then(|v| v.parse::<i64>().ok());
            let bound = self.values.only().and_then(|v| v.parse::<i64>().ok());
            matches!((mine, bound), (Some(mine), Some(bound)) if mine.cmp(&bound) == wanted)
        };
        match self.operator {
            Operator::DoesNotExist => value.is_none(),
            Operator::Exists => value.is_some(),
            Operator::Gt => compared(Ordering::Greater),
            Operator::In => value.is_some_and(listed),
            Operator::Lt => compared(Ordering::Less),
            Operator::NotIn => !value.is_some_and(listed),
        }
    }
}

/// Whether the labels meet all requirements.
pub fn matches_all(requirements: &[Requirement], labels: &Labels) -> bool {
    requirements.iter().all(|r| r.accepts(labels.get(&r.key)))
}

/// One term of a node affinity: all its requirements must hold; a term without any holds nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTerm {
    /// On the node's labels.
    pub labels: Vec<Requirement>,
    /// On the node's name (`metadata.name`, the only field that Kubernetes allows).
    pub names: Vec<Requirement>,
}

impl NodeTerm {
    /// Whether a node of this name and these labels meets the term.
    pub fn accepts(&self, name: &str, labels: &Labels) -> bool {
        // Kubernetes: an empty term selects no object.
        if self.labels.is_empty() && self.names.is_empty() {
            return false;
        }
        matches_all(&self.labels, labels) && self.names.iter().all(|r| r.accepts(Some(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_share_a_list_keep_what_is_their_own() {
        let of = |index: &str| Labels::of([("app", "train"), ("index", index), ("team", "a")]);
        let varied = |first: &Labels, pairs: &[(&'static str, &'static str)]| {
            first.varied(pairs.iter().copied(), |value| value.into())
        };
        let first = of("0");
        let second = varied(&first, &[("app", "train"), ("index", "1"), ("team", "a")]);
        let second = second.expect("they have the same keys");
        assert!(second.shares_with(&first));
        assert_eq!(
            (second.get("index"), second.get("team")),
            (Some("1"), Some("a"))
        );
        assert_eq!(second.get("zone"), None);
        assert_eq!(second, of("1"));
        assert_eq!(second.cmp(&first), of("1").cmp(&of("0")));
        let all: Vec<(&str, &str)> = second.iter().collect();
        assert_eq!(all, [("app", "train"), ("index", "1"), ("team", "a")]);
        // It is the first one's list, not the second one's values, that a third one shares.
        let third = varied(&second, &[("app", "train"), ("index", "0"), ("team", "a")]);
        assert!(third.is_some_and(|third| third.shares_with(&first) && third == first));
        for different in [
            &[("app", "serve"), ("index", "1"), ("team", "b")][..],
            &[("app", "train"), ("index", "1")],
            &[("app", "train"), ("at", "1"), ("team", "a")],
        ] {
            assert!(varied(&first, different).is_none(), "{different:?}");
        }
    }

    fn listed(operator: Operator, values: &[&str]) -> Requirement {
        Requirement {
            key: "zone".into(),
            operator,
            values: values.iter().copied().collect(),
        }
    }

    #[test]
    fn a_value_is_found_wherever_it_is_listed() {
        let words = ["d", "b", "e", "a", "c", "b"];
        let (one_of, none_of) = (
            listed(Operator::In, &words),
            listed(Operator::NotIn, &words),
        );
        for word in words {
            assert!(one_of.accepts(Some(word)) && !none_of.accepts(Some(word)));
        }
        for word in [Some("f"), Some("aa"), Some(""), None] {
            assert!(!one_of.accepts(word) && none_of.accepts(word));
        }
    }

    #[test]
    fn only_one_number_is_a_bound() {
        assert!(listed(Operator::Gt, &["3"]).accepts(Some("4")));
        assert!(!listed(Operator::Gt, &["3", "4"]).accepts(Some("9")));
        assert!(!listed(Operator::Lt, &[]).accepts(Some("1")));
    }
}
