//! Words that one row mostly has like the last one, held once for both.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::TextMap;
use model::Labels;

use super::constraints;

/// Longer values are those of one pod alone: as a rule it is its number that others have, too.
const SHORT_MAX: usize = 8;
/// When so many short values are known, others may be met anew.
const VALUES_MAX: usize = 1_024;

/// What the last pod and the last node said: pods come in order of their names, those of one task after one another.
#[derive(Debug, Default)]
pub(super) struct Words {
    labels: Labels,
    /// Those of the last node.
    node_labels: Labels,
    namespace: Arc<str>,
    role: Arc<str>,
    values: Values,
}

/// Short values of labels.
#[derive(Debug, Default)]
struct Values(BTreeSet<Arc<str>>);

impl Words {
    /// Labels of a pod.
    pub(super) fn labels(&mut self, map: &TextMap) -> Labels {
        like_the_last(&mut self.labels, &mut self.values, map)
    }

    /// Labels of a node: those of one make differ in their names and zones.
    pub(super) fn node_labels(&mut self, map: &TextMap) -> Labels {
        like_the_last(&mut self.node_labels, &mut self.values, map)
    }

    /// The namespace of a pod.
    pub(super) fn namespace(&mut self, text: &str) -> Arc<str> {
        shared(&mut self.namespace, text)
    }

    /// The role of a pod.
    pub(super) fn role(&mut self, text: &str) -> Arc<str> {
        shared(&mut self.role, text)
    }
}

impl Values {
    fn word(&mut self, text: &str) -> Arc<str> {
        if text.len() > SHORT_MAX {
            return text.into();
        }
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        if self.0.len() >= VALUES_MAX {
            self.0.clear();
        }
        let word: Arc<str> = text.into();
        self.0.insert(Arc::clone(&word));
        word
    }
}

fn like_the_last(last: &mut Labels, values: &mut Values, map: &TextMap) -> Labels {
    let pairs = || map.iter().map(|(key, value)| (&**key, &**value));
    if !pairs().eq(last.iter()) {
        let varied = last.varied(pairs(), |value| values.word(value));
        *last = varied.unwrap_or_else(|| constraints::labels(map));
    }
    last.clone()
}

fn shared(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = text.into();
    }
    Arc::clone(last)
}
