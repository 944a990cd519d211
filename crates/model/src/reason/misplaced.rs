//! Why a queue is not where work can be done.

use std::sync::Arc;

/// What is wrong with a queue's place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Work is in a queue that has children.
    AboveOthers,
    /// The queue, or one above it, names a parent that does not exist or that is below it.
    Astray {
        /// Which queue names it: the one itself, or one above it.
        at: Arc<str>,
        /// The parent that is named.
        parent: Arc<str>,
    },
}

impl Misplaced {
    /// The same in plain words, of this queue.
    pub(super) fn sentence(&self, queue: &Arc<str>) -> String {
        match self {
            Misplaced::AboveOthers => {
                format!("queue {queue} has queues below it, and only leaves take work")
            }
            Misplaced::Astray { at, parent } if at == queue => format!(
                "queue {queue} does not hang on the tree: its parent {parent} is missing or below it"
            ),
            Misplaced::Astray { at, parent } => format!(
                "queue {queue} does not hang on the tree: {at} above it names the parent {parent}, which is missing or below it"
            ),
        }
    }
}
