//! Tasks that differ, packed: where each of them in its turn at its best node leaves too little room for
//! the others, other ways are tried, the largest tasks and the fullest nodes first.
//!
//! Upstream knows only the first way, so that a gang can wait for ever for room that there is. The
//! search is exact for small gangs and gives up after a bounded number of looks for others.

use std::sync::Arc;

use model::{GangId, NodeId, Phase, QueueId, Share, TaskId};

use crate::actions::waiting::{Asking, waiting_tasks};
use crate::cycle::Cycle;
use crate::plugin::Room;
use crate::together;

/// Larger gangs are not packed: the search goes one call deeper with each task.
const TASKS_MAX: usize = 128;

/// How often at most a node is looked at for a task.
const LOOKS_MAX: u32 = 20_000;

/// Whether another way may exist: the tasks differ, or rules tie them to one another, and some of
/// them found a place.
pub(super) fn is_worth_a_try(
    cycle: &Cycle<'_, '_>,
    gang: GangId,
    placed: &[(TaskId, NodeId)],
) -> bool {
    let tables = cycle.trial.tables();
    let row = tables.gang(gang);
    if placed.is_empty() || row.tasks.len() > TASKS_MAX {
        return false;
    }
    let is_tried = |task: &&TaskId| {
        let phase = tables.task(**task).phase;
        phase.is_waiting() || phase == Phase::Allocated
    };
    let mut tasks = row.tasks.iter().filter(is_tried).copied();
    let first = placed[0].0;
    tasks.any(|task| !are_alike(cycle, first, task))
}

/// Whether a node that takes one takes the other.
fn are_alike(cycle: &Cycle<'_, '_>, a: TaskId, b: TaskId) -> bool {
    let tables = cycle.trial.tables();
    let (a, b) = (tables.task(a), tables.task(b));
    a.shape == b.shape
        && a.claims == b.claims
        && a.sole == b.sole
        && a.labels == b.labels
        && a.role == b.role
}

/// Places enough of the gang for it to start, or leaves the trial as it was.
pub(super) fn pack(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> bool {
    let mut groups: Vec<Vec<TaskId>> = Vec::new();
    for asking in [Asking::Something, Asking::Nothing] {
        for task in waiting_tasks(cycle, gang, asking) {
            match groups
                .iter_mut()
                .find(|group| are_alike(cycle, group[0], task))
            {
                Some(group) => group.push(task),
                None => groups.push(vec![task]),
            }
        }
    }
    let tables = cycle.trial.tables();
    let size = |group: &Vec<TaskId>| {
        let held = &tables.shape_of(group[0]).held;
        Share::dominant(held, tables.total())
    };
    // Stable: among equals the group whose first task comes first.
    groups.sort_by_key(|group| std::cmp::Reverse(size(group)));
    let mut search = Search {
        queue,
        gang,
        looks: LOOKS_MAX,
    };
    search.place(cycle, &groups, &Group::default())
}

struct Search {
    queue: QueueId,
    gang: GangId,
    looks: u32,
}

/// How far a group of tasks is placed.
#[derive(Clone, Default)]
struct Group {
    /// So many of its tasks have a place.
    placed: usize,
    /// Nodes in the order in which they are tried, and the first that may be.
    nodes: Arc<[NodeId]>,
    from: usize,
}

impl Search {
    /// Places tasks of the first group, then of the others, until there are enough.
    fn place(&mut self, cycle: &mut Cycle<'_, '_>, groups: &[Vec<TaskId>], at: &Group) -> bool {
        if cycle.is_enough(self.gang) {
            return true;
        }
        let [group, others @ ..] = groups else {
            return false;
        };
        let left = group.len() - at.placed + others.iter().map(Vec::len).sum::<usize>();
        let tables = cycle.trial.tables();
        let ready = tables.ready(self.gang) as usize;
        if ready + left < tables.gang(self.gang).spec.min_member as usize {
            return false;
        }
        if let Some(task) = group.get(at.placed).copied()
            && self.place_one(cycle, groups, at, task)
        {
            return true;
        }
        self.looks > 0 && self.place(cycle, others, &Group::default())
    }

    fn place_one(
        &mut self,
        cycle: &mut Cycle<'_, '_>,
        groups: &[Vec<TaskId>],
        at: &Group,
        task: TaskId,
    ) -> bool {
        let view = cycle.view();
        if cycle.rules.allocatable(view, self.queue, task).is_some() {
            return false;
        }
        let nodes = match at.placed {
            0 => tight_first(cycle, task),
            _ => at.nodes.clone(),
        };
        // Of tasks that are alike the earlier one goes to the earlier node.
        for from in at.from..nodes.len() {
            if self.looks == 0 {
                return false;
            }
            self.looks -= 1;
            let node = nodes[from];
            let home = together::home(cycle.trial.tables(), task, Room::Now);
            if home.refuses(node).is_some() || !cycle.takes(task, node) {
                continue;
            }
            let mark = cycle.trial.mark();
            cycle.place(task, node);
            let next = Group {
                placed: at.placed + 1,
                nodes: nodes.clone(),
                from,
            };
            if self.place(cycle, groups, &next) {
                return true;
            }
            cycle.trial.rewind(mark);
        }
        false
    }
}

/// Nodes that take the task, those with the least room left first.
fn tight_first(cycle: &mut Cycle<'_, '_>, task: TaskId) -> Arc<[NodeId]> {
    let mut nodes = cycle.candidates(task);
    let tables = cycle.trial.tables();
    let held = &tables.shape_of(task).held;
    let left = |node: &NodeId| {
        let row = tables.node(*node);
        let parts = held
            .entries()
            .map(|(kind, _)| Share::of(row.free(kind), tables.total().get(kind)));
        parts.max().unwrap_or(Share::NONE)
    };
    let foreign = |node: &NodeId| tables.node(*node).spec.foreign;
    nodes.sort_by(|a, b| {
        let near = foreign(a).cmp(&foreign(b));
        near.then_with(|| left(a).cmp(&left(b))).then(a.cmp(b))
    });
    nodes.into()
}
