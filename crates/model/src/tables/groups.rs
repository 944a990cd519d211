//! What queues hold in groups of nodes, kept up to date with every task that comes and goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{NodeId, QueueId, Tables, TaskId, Vector};
use crate::task::Phase;

/// Requests by queue and group; no row is zero.
pub(super) type GroupUse = BTreeMap<(QueueId, Arc<str>), Vector>;

impl Tables {
    /// What the queue's own tasks hold or are promised on nodes of the group; nothing if there is none.
    pub fn group_use(&self, queue: QueueId, group: &Arc<str>) -> Option<&Vector> {
        self.group_use.get(&(queue, group.clone()))
    }

    /// Every row of what queues hold in groups of nodes.
    pub fn group_uses(&self) -> impl Iterator<Item = (QueueId, &str, &Vector)> {
        let rows = self.group_use.iter();
        rows.map(|((queue, group), sum)| (*queue, &**group, sum))
    }

    /// A task came to its node, or goes. Without groups of nodes it costs a look at the node.
    pub(super) fn add_to_group(&mut self, id: TaskId, at: NodeId) {
        self.alter_group(id, at, Vector::add);
    }

    /// The other way round.
    pub(super) fn take_from_group(&mut self, id: TaskId, at: NodeId) {
        self.alter_group(id, at, Vector::sub);
    }

    fn alter_group(&mut self, id: TaskId, at: NodeId, alter: fn(&mut Vector, &Vector)) {
        let Some(group) = &self.nodes.rows().row(at.index()).spec.group else {
            return;
        };
        let task = self.tasks.row(id.index());
        let gang = task.gang.map(|gang| self.gangs.row(gang.index()));
        let Some(queue) = gang.and_then(|gang| gang.queue) else {
            return;
        };
        let requests = &self.shapes.row(task.shape.index()).spec.requests;
        let key = (queue, group.clone());
        let sum = self.group_use.entry(key.clone()).or_default();
        alter(sum, requests);
        if sum.is_zero() {
            self.group_use.remove(&key);
        }
    }

    /// A node comes into another group, with all that its tasks hold.
    pub(super) fn move_node(&mut self, at: NodeId, to: Option<Arc<str>>) {
        if self.node(at).spec.group == to {
            return;
        }
        let row = self.node(at);
        let tasks: Vec<TaskId> = row.tasks.iter().chain(&row.promised).copied().collect();
        let counts = |tables: &Tables, id: TaskId| {
            let phase = tables.task(id).phase;
            phase.is_allocated() || phase == Phase::Pipelined
        };
        let tasks: Vec<TaskId> = tasks.into_iter().filter(|id| counts(self, *id)).collect();
        for task in &tasks {
            self.take_from_group(*task, at);
        }
        self.nodes.change(at.index(), |node| node.spec.group = to);
        for task in &tasks {
            self.add_to_group(*task, at);
        }
        // What a queue holds in the old group is less now, which others of its tasks may want.
        self.mark_shares();
    }
}
