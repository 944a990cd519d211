//! Who is left alone for a while, and who is on his way out: kept up to date with every task, so that
//! nobody who asks has to look at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Tables, TaskId};
use crate::task::{Phase, Task};
use crate::time::Time;

/// See the module's page. No namespace is without tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    /// Tasks that have a place and a cooldown, by its end.
    cooling: BTreeSet<(Time, TaskId)>,
    leaving: BTreeMap<Arc<str>, BTreeSet<TaskId>>,
}

/// Until when a task that may be evicted otherwise is left alone where it is.
fn cools_until(task: &Task) -> Option<Time> {
    let is_there = task.phase.is_allocated();
    task.left_alone_until().filter(|_| is_there)
}

impl Ends {
    pub(super) fn add(&mut self, id: TaskId, task: &Task) {
        if let Some(until) = cools_until(task) {
            self.cooling.insert((until, id));
        }
        if task.phase == Phase::Releasing {
            let leaving = self.leaving.entry(task.key.namespace.clone());
            leaving.or_default().insert(id);
        }
    }

    pub(super) fn take(&mut self, id: TaskId, task: &Task) {
        if let Some(until) = cools_until(task) {
            self.cooling.remove(&(until, id));
        }
        if task.phase == Phase::Releasing
            && let Some(leaving) = self.leaving.get_mut(&task.key.namespace)
        {
            leaving.remove(&id);
            if leaving.is_empty() {
                self.leaving.remove(&task.key.namespace);
            }
        }
    }
}

impl Tables {
    /// When the next task that has a place may be evicted that may not be now, because it has not been
    /// there for long enough.
    pub fn next_cooled(&self, now: Time) -> Option<Time> {
        let later = self.ends.cooling.range((now, TaskId(u32::MAX))..);
        later.map(|(at, _)| *at).find(|at| *at > now)
    }

    /// The tasks of a namespace that are on their way out.
    pub fn leaving(&self, namespace: &str) -> impl Iterator<Item = &Task> {
        let tasks = self.ends.leaving.get(namespace).into_iter().flatten();
        tasks.map(|id| self.task(*id))
    }
}
