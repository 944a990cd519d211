//! Labels and the requirements that are put to them, parsed at the wall.

use std::cmp::Ordering;
use std::sync::Arc;

/// Labels, sorted by key.
///
/// Those of the tasks of one gang differ in a value or two, so they can share a list of all labels of one
/// of them, and have those values besides: see [`Labels::share`].
#[derive(Clone, Default)]
pub struct Labels {
    list: Option<Arc<[Pair]>>,
    /// Values that hold instead of those of the list, by their place in it, in order.
    own: Box<[(u32, Arc<str>)]>,
}

type Pair = (Arc<str>, Arc<str>);

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
            list: (!list.is_empty()).then(|| list.into()),
            own: Box::default(),
        }
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&str> {
        let list = self.list.as_deref()?;
        let at = list.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        let own = self.own.binary_search_by_key(&at, |(at, _)| *at as usize);
        Some(own.map_or(&list[at].1, |own| &self.own[own].1))
    }

    /// All labels in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut own = self.own.iter().peekable();
        let list = self.list.iter().flat_map(|list| &**list);
        (0..).zip(list).map(move |(at, (key, value))| {
            let own = own.next_if(|(place, _)| *place == at);
            (&**key, &**own.map_or(value, |(_, value)| value))
        })
    }

    /// Takes over the other's list where both have the same keys and mostly the same values. What they
    /// say stays the same.
    pub fn share(&mut self, other: &Labels) {
        let (Some(mine), Some(its)) = (&self.list, &other.list) else {
            return;
        };
        let mut pairs = mine.iter().zip(&**its);
        let is_alike = mine.len() == its.len() && pairs.all(|(mine, its)| mine.0 == its.0);
        if Arc::ptr_eq(mine, its) || !is_alike || !self.own.is_empty() {
            return;
        }
        let pairs = (0..).zip(mine.iter().zip(&**its));
        let differing = pairs.filter(|(_, (mine, its))| mine.1 != its.1);
        let own: Box<[_]> = differing
            .map(|(at, (mine, _))| (at, Arc::clone(&mine.1)))
            .collect();
        if 2 * own.len() <= its.len() {
            (self.list, self.own) = (Some(Arc::clone(its)), own);
        }
    }
}

impl std::fmt::Debug for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Labels) -> bool {
        match (&self.list, &other.list) {
            (Some(mine), Some(its)) if Arc::ptr_eq(mine, its) => self.own == other.own,
            _ => self.iter().eq(other.iter()),
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
        let (first, mut second) = (of("0"), of("1"));
        second.share(&first);
        assert!(second.list.is_some() && second.own.len() == 1);
        assert_eq!(
            (second.get("index"), second.get("team")),
            (Some("1"), Some("a"))
        );
        assert_eq!(second.get("zone"), None);
        assert_eq!(second, of("1"));
        assert_eq!(second.cmp(&first), of("1").cmp(&of("0")));
        let all: Vec<(&str, &str)> = second.iter().collect();
        assert_eq!(all, [("app", "train"), ("index", "1"), ("team", "a")]);
        let mut third = Labels::of([("app", "serve"), ("index", "1"), ("team", "b")]);
        third.share(&first);
        assert!(third.own.is_empty(), "it is too different");
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
