//! Labels and the requirements that are put to them, parsed at the wall.

use std::sync::Arc;

/// Labels, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<(Arc<str>, Arc<str>)>);

impl Labels {
    /// Labels of the given pairs; the last value wins where a key occurs twice.
    pub fn of<K: Into<Arc<str>>, V: Into<Arc<str>>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Labels {
        let mut labels = Labels::default();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            match labels.0.binary_search_by(|(k, _)| k.cmp(&key)) {
                Ok(at) => labels.0[at].1 = value,
                Err(at) => labels.0.insert(at, (key, value)),
            }
        }
        labels
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All labels in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
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
        let compared = |wanted: std::cmp::Ordering| {
            let mine = value.and_then(|v| v.parse::<i64>().ok());
            let bound = self.values.only().and_then(|v| v.parse::<i64>().ok());
            matches!((mine, bound), (Some(mine), Some(bound)) if mine.cmp(&bound) == wanted)
        };
        match self.operator {
            Operator::DoesNotExist => value.is_none(),
            Operator::Exists => value.is_some(),
            Operator::Gt => compared(std::cmp::Ordering::Greater),
            Operator::In => value.is_some_and(listed),
            Operator::Lt => compared(std::cmp::Ordering::Less),
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
