//! Who need not go after all: when a gang has its room, everybody is spared without whom it has as well.

use std::collections::BTreeSet;

use model::{Mark, NodeId, ShapeId, Tables, TaskId};

use super::grounds::{Grounds, is_about_amounts, will_take};
use super::{Clearing, First, put_first, speaks_for_others};
use crate::cycle::Cycle;
use crate::footing;
use crate::settings::Difference;
use crate::victims;

/// How many tasks that differ are tried in other ways for the sake of one victim.
const REFIT_TASKS_MAX: usize = 64;

/// How many nodes that cost nobody anything are tried for each shape then.
const REFIT_NODES_MAX: usize = 16;

/// How often at most a node is looked at for a task then.
const REFIT_LOOKS_MAX: u32 = 2_000;

impl Clearing<'_> {
    /// Lets everybody go on without whom the gang has room as well, the last chosen first. Upstream spares
    /// nobody.
    pub(super) fn spare(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, mark: Mark) {
        if cycle.rules.is_as_upstream(Difference::MinimalVictims) {
            return;
        }
        let mut victims = cycle.trial.evicted_since(mark);
        let tables = cycle.trial.tables();
        victims.reverse();
        victims.sort_by_key(|task| std::cmp::Reverse(victims::priority_of(tables, *task)));
        let shapes = self.shapes(cycle);
        let may_refit = shapes.len() > 1 && self.promised.len() <= REFIT_TASKS_MAX;
        for victim in victims {
            let here = cycle.trial.mark();
            let before = self.promised.clone();
            let node = cycle.trial.tables().task(victim).node;
            cycle.trial.spare(victim);
            let is_stuck =
                shapes.len() == 1 && node.is_some_and(|node| self.is_stuck(cycle, grounds, node));
            let holds = !is_stuck
                && self.has_its_claims(cycle)
                && self.is_within_share(cycle)
                && footing::holds(cycle, &self.promised);
            if !holds {
                cycle.trial.rewind(here);
                continue;
            }
            if node.is_some_and(|node| self.resettle(cycle, grounds, node)) {
                continue;
            }
            cycle.trial.rewind(here);
            self.promised = before;
            if !may_refit {
                continue;
            }
            let before = self.promised.clone();
            cycle.trial.spare(victim);
            if !self.refit(cycle, grounds) {
                cycle.trial.rewind(here);
                self.promised = before;
            }
        }
    }

    /// What those that were promised room ask for. Where they differ, and are not too many, other ways are
    /// tried for them; of those that are alike one is as good as the other.
    fn shapes(&self, cycle: &Cycle<'_, '_>) -> BTreeSet<ShapeId> {
        let tables = cycle.trial.tables();
        let tasks = self.promised.iter();
        tasks.map(|(task, _)| tables.task(*task).shape).collect()
    }

    /// Whether tasks that are all alike cannot have the room that they were promised on the node, and who
    /// leaves it finds none elsewhere: what is seen at once need not be tried.
    fn is_stuck(&self, cycle: &Cycle<'_, '_>, grounds: &mut Grounds, node: NodeId) -> bool {
        let mut here = self.promised.iter().filter(|(_, at)| *at == node);
        let Some((task, _)) = here.next().copied() else {
            return false;
        };
        if has_amounts(cycle.trial.tables(), node, task) || !is_about_amounts(cycle, task) {
            return false;
        }
        let field = grounds.field(self.ground(cycle, task));
        field.meet_again(cycle, &self.search(cycle, task), &self.likeness);
        !field.costs_nothing()
    }

    /// Whether tasks that differ find room in another way among the nodes that they were promised and
    /// some that cost nobody anything.
    fn refit(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds) -> bool {
        let mut tasks: Vec<TaskId> = self.promised.iter().map(|(task, _)| *task).collect();
        let mut shapes: Vec<TaskId> = tasks.clone();
        let tables = cycle.trial.tables();
        shapes.sort_by_key(|task| tables.task(*task).shape);
        shapes.dedup_by_key(|task| tables.task(*task).shape);
        put_first(tables, &mut tasks, First::Largest);
        let mut nodes: BTreeSet<NodeId> = self.promised.iter().map(|(_, node)| *node).collect();
        for task in &tasks {
            cycle.trial.unpromise(*task);
        }
        for task in shapes {
            let field = grounds.field(self.ground(cycle, task));
            field.meet(cycle, &self.search(cycle, task), &self.likeness);
            nodes.extend(field.costing_nothing().take(REFIT_NODES_MAX));
        }
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        let mut looks = REFIT_LOOKS_MAX;
        self.promised.clear();
        fit(cycle, &tasks, &nodes, &mut looks, &mut self.promised)
    }

    /// Whether the gang's tasks that were promised room on the node have it still, or find some
    /// elsewhere that costs nobody anything.
    fn resettle(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, node: NodeId) -> bool {
        let here = |(_, at): &(TaskId, NodeId)| *at == node;
        let mut moved = Vec::new();
        while let Some(at) = self.promised.iter().rposition(here) {
            if self.suffices(cycle, node) {
                break;
            }
            let (task, _) = self.promised.remove(at);
            cycle.trial.unpromise(task);
            moved.push(task);
        }
        if !self.suffices(cycle, node) {
            return false;
        }
        moved.into_iter().all(|task| {
            if !speaks_for_others(cycle, task) {
                return false;
            }
            let search = self.search(cycle, task);
            let field = grounds.field(self.ground(cycle, task));
            field.meet_again(cycle, &search, &self.likeness);
            if !field.costs_nothing() {
                return false;
            }
            match field.cheapest(cycle, &search) {
                Some((node, offer)) if offer.victims.is_empty() => {
                    cycle.promise(task, node);
                    self.promised.push((task, node));
                    true
                }
                _ => false,
            }
        })
    }

    /// Whether the gang's tasks on the node will have the room that they were promised.
    fn suffices(&self, cycle: &mut Cycle<'_, '_>, node: NodeId) -> bool {
        let promised = self.promised.iter().filter(|(_, at)| *at == node);
        let tasks: Vec<TaskId> = promised.map(|(task, _)| *task).collect();
        keep_their_room(cycle, node, &tasks)
    }
}

/// Promises each task room on one of the nodes, if there is a way that is found in time.
fn fit(
    cycle: &mut Cycle<'_, '_>,
    tasks: &[TaskId],
    nodes: &[NodeId],
    looks: &mut u32,
    promised: &mut Vec<(TaskId, NodeId)>,
) -> bool {
    let [task, rest @ ..] = tasks else {
        return true;
    };
    for node in nodes {
        if *looks == 0 {
            return false;
        }
        *looks -= 1;
        if !will_take(cycle, *task, *node) {
            continue;
        }
        let mark = cycle.trial.mark();
        cycle.promise(*task, *node);
        promised.push((*task, *node));
        if fit(cycle, rest, nodes, looks, promised) {
            return true;
        }
        promised.pop();
        cycle.trial.rewind(mark);
    }
    false
}

/// Whether the node will have the room that the tasks were promised there.
fn keep_their_room(cycle: &mut Cycle<'_, '_>, node: NodeId, tasks: &[TaskId]) -> bool {
    let tables = cycle.trial.tables();
    let have_amounts = || tasks.iter().all(|task| has_amounts(tables, node, *task));
    if !tables.node(node).known || !have_amounts() {
        return false;
    }
    // Rules that look at who else is there are asked as if the task came anew.
    tasks.iter().all(|task| {
        if is_about_amounts(cycle, *task) {
            return true;
        }
        let mark = cycle.trial.mark();
        cycle.trial.unpromise(*task);
        let takes = will_take(cycle, *task, node);
        cycle.trial.rewind(mark);
        takes
    })
}

/// Whether the node will have enough of what the task, and others that were promised room there, ask for.
fn has_amounts(tables: &Tables, node: NodeId, task: TaskId) -> bool {
    let row = tables.node(node);
    let mut held = tables.shape_of(task).held.entries();
    held.all(|(kind, need)| need <= 0 || row.free_later(kind) >= 0)
}
