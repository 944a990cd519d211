//! Who has to leave its node although nobody is given the room, and when to look again.

use std::collections::BTreeSet;

use model::{NodeId, Phase, Tables, TaskId, Time};

use crate::plugin::{Leaver, Plugin, Room, View};
use crate::rules::{Rules, State};
use crate::victims::is_starting;

/// What keeps tasks on their nodes, whoever wants them away.
#[derive(Clone, Copy)]
pub struct Protection<'a> {
    rules: &'a Rules,
    view: View<'a>,
}

impl Protection<'_> {
    /// Those of the tasks that may go, all of them together, in their order.
    pub(crate) fn let_go(&self, tasks: &[TaskId]) -> Vec<TaskId> {
        let going = tasks.iter().copied().filter(|task| self.is_free(*task));
        let mut going: Vec<TaskId> = going.collect();
        for check in self.rules.rows().filter_map(|row| row.spares_shuffled) {
            let mut allowed = vec![true; going.len()];
            check(self.view, &going, &mut allowed);
            let mut allowed = allowed.into_iter();
            going.retain(|_| allowed.next().unwrap_or(false));
        }
        going
    }

    /// Whether a node takes the task for what it is, and has room for it now.
    pub(crate) fn takes(&self, node: NodeId, task: TaskId) -> bool {
        let shape = self.view.tables.shape_of(task);
        let refusal = self.rules.suits(self.view, shape, node);
        let refusal = refusal.or_else(|| self.rules.has_room(self.view, shape, node, Room::Now));
        refusal.is_none()
    }

    /// Whether nothing about the task itself keeps it: it runs, is ours, may be evicted, is none of those
    /// that never are, and its gang is not about to start.
    fn is_free(&self, task: TaskId) -> bool {
        let row = self.view.tables.task(task);
        let tables = self.view.tables;
        let gang = row
            .gang
            .map(|gang| tables.gang(gang))
            .filter(|gang| gang.known);
        // Pods that are in no queue are left alone, as by everybody; so are other schedulers' nodes.
        let queue = gang.and_then(|gang| gang.queue);
        let is_queued = queue.is_some_and(|queue| tables.queue(queue).known);
        let is_ours = is_queued && row.node.is_some_and(|node| !tables.node(node).spec.foreign);
        let never = |plugin: &Plugin| {
            let checks = [plugin.never_preempted, plugin.never_reclaimed];
            checks
                .into_iter()
                .flatten()
                .any(|check| check(self.view, task))
        };
        let is_starting = gang.is_some_and(is_starting);
        let goes_whole = gang.is_some_and(|gang| gang.spec.goes_whole);
        if goes_whole {
            return false;
        }
        row.phase == Phase::Running
            && row.preemptable
            && is_ours
            && !is_starting
            && !self.rules.rows().any(never)
    }
}

impl Rules {
    /// Who has to leave its node: of the first tier in which anybody has to, whoever one of its plugins
    /// names, each of them once. With each plugin that names somebody.
    pub(crate) fn victim_tasks(&self, view: View<'_>) -> Vec<(&'static str, Vec<Leaver>)> {
        let protection = Protection { rules: self, view };
        for tier in self.tiers() {
            let asked = tier
                .iter()
                .filter_map(|row| Some((row.name, row.victim_tasks?)));
            let mut named: Vec<_> = asked
                .map(|(name, ask)| (name, ask(view, &protection)))
                .collect();
            let mut all = Vec::new();
            let mut seen = BTreeSet::new();
            for (_, leavers) in &mut named {
                // Whom several name leaves once, and for what the first of them says.
                leavers.retain(|(task, _)| seen.insert(*task));
                all.extend(leavers.iter().map(|(task, _)| *task));
            }
            let going: BTreeSet<TaskId> = protection.let_go(&all).into_iter().collect();
            for (_, leavers) in &mut named {
                leavers.retain(|(task, _)| going.contains(task));
            }
            named.retain(|(_, leavers)| !leavers.is_empty());
            if !named.is_empty() {
                return named;
            }
        }
        Vec::new()
    }

    /// Whether a rule keeps who has to leave its node within disruption budgets.
    pub fn keeps_budgets(&self) -> bool {
        let mut rows = self.rows();
        rows.any(|row| row.name == "pdb" && row.spares_shuffled.is_some())
    }

    /// The nodes of which rules say something else now than at that time, though nothing happened.
    pub fn turned(&self, tables: &Tables, before: Time, now: Time) -> Vec<NodeId> {
        let state = State::at(now);
        let view = self.view(tables, &state);
        let asked = self.rows().filter_map(|row| row.turned);
        asked.flat_map(|ask| ask(view, before)).collect()
    }

    /// When a cycle has something to do although nothing happens: rules say something else of a node, or
    /// somebody may have to leave one.
    pub fn stirs_at(&self, tables: &Tables, now: Time) -> Option<Time> {
        let is_asked = |row: &Plugin| row.turns_at.is_some() || row.victims_at.is_some();
        if !self.rows().any(is_asked) {
            return None;
        }
        let state = State::at(now);
        let view = self.view(tables, &state);
        let shuffles = self.has_action("shuffle");
        let victims = self.rows().filter_map(|row| row.victims_at);
        let turns = self.rows().filter_map(|row| row.turns_at);
        let asked = turns.chain(victims.filter(|_| shuffles));
        asked
            .filter_map(|ask| ask(view))
            .filter(|at| *at > now)
            .min()
    }
}
