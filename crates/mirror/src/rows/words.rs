//! Words that one row mostly has like the last one, held once for both.

use std::sync::Arc;

use api::core::TextMap;
use model::Labels;

use super::constraints;

/// What the last pod said: pods come in order of their names, those of one task after one another.
#[derive(Debug, Default)]
pub(super) struct Words {
    labels: Arc<Labels>,
    namespace: Arc<str>,
    role: Arc<str>,
}

impl Words {
    /// Labels of a pod.
    pub(super) fn labels(&mut self, map: &TextMap) -> Arc<Labels> {
        let mut labels = constraints::labels(map);
        if labels != *self.labels {
            labels.share(&self.labels);
            self.labels = Arc::new(labels);
        }
        Arc::clone(&self.labels)
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

fn shared(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = text.into();
    }
    Arc::clone(last)
}
