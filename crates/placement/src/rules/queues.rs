//! What rules say of nodes for the sake of a task's queue, put together.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, Tables, TaskId, Time};

use super::{Rules, State};
use crate::cycle::Milestone;
use crate::footing::{Asker, Footing};
use crate::plugin::View;
use crate::plugins;

impl Rules {
    /// Opens the plugins in their order, and says so of each that has something to compute.
    pub(crate) fn open_heard(
        &self,
        tables: &Tables,
        now: Time,
        passed: &mut dyn FnMut(Milestone),
    ) -> State {
        let mut state = State::at(now);
        for plugin in &self.flat {
            if let Some(open) = plugin.open {
                open(tables, &self.config, &mut state);
                passed(Milestone::Opened {
                    plugin: plugin.name,
                });
            }
        }
        state
    }

    /// Whether queues are ordered as a tree: those of a branch together, by what the branch has.
    pub(crate) fn has_tree(&self) -> bool {
        self.config.capacity.is_tree
    }

    /// Whether a queue's turn can change the order of others.
    pub(crate) fn queues_move_others(&self) -> bool {
        self.rows().any(|row| row.refresh.is_some())
    }

    /// Computes again what moved with the trial, which are these gangs.
    pub(crate) fn refresh(&self, tables: &Tables, state: &mut State, moved: &BTreeSet<GangId>) {
        for refresh in self.rows().filter_map(|row| row.refresh) {
            refresh(tables, state, moved);
        }
    }

    /// Whether what is said of nodes for queues' sake differs from queue to queue.
    pub fn looks_at_queues(&self) -> bool {
        let mut rows = self.flat.iter();
        rows.any(|row| row.footing.is_some() || row.footing_points.is_some())
    }

    /// For whom nodes are judged when one is sought for the task.
    pub(crate) fn asker(&self, view: View<'_>, task: TaskId) -> Asker {
        (view.tables.task(task).shape, self.footing(view, task))
    }

    /// What is said of nodes for the sake of the task's queue, if rules look at it.
    pub(crate) fn footing(&self, view: View<'_>, task: TaskId) -> Option<Arc<Footing>> {
        if !self.looks_at_queues() {
            return None;
        }
        let queue = plugins::queue_of(view.tables, task)?;
        let shape = view.tables.shape_of(task);
        let mut footing = Footing::ANYWHERE;
        for rule in self.flat.iter().filter_map(|row| row.footing) {
            rule(view, queue, shape, &mut footing);
        }
        for rule in self.flat.iter().filter_map(|row| row.footing_points) {
            rule(view, queue, shape, &mut footing);
        }
        Some(Arc::new(footing))
    }
}
