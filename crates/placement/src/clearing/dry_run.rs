//! Preempting with an eye to everything that is on a node: each node is tried without all who may go,
//! then everybody is taken back without whom the task finds room as well, and of the nodes the one that is
//! disturbed the least is taken.
//!
//! Source: `specs/volcano.md`, section 3.4 (`enableTopologyAwarePreemption`), which follows Kubernetes'
//! default preemption. Upstream tries a sample of nodes from a place drawn by lot; here those come first
//! that cannot cost more than others, and a try ends when no other node can be better.

use std::cmp::Reverse;

use model::{NodeId, TaskId, Time};

use super::grounds::{Field, is_about_amounts, may_be_there, will_take};
use crate::cycle::Cycle;
use crate::plugin::View;
use crate::plugins::beyond_budgets;
use crate::victims::{Against, Cost, Search, priority_of};

/// How much a node is disturbed, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Disturbance {
    /// Victims whom a disruption budget would keep.
    violations: usize,
    /// How important the most important victim is; the lowest number where there is none.
    highest: i32,
    /// The sum of how important they are, each above the least important there could be.
    sum: i64,
    victims: usize,
    /// When the first of the most important victims started: who ran the shortest loses the least.
    started: Reverse<Time>,
}

impl Disturbance {
    fn of(view: View<'_>, search: &Search<'_>, victims: &[TaskId]) -> Disturbance {
        let weights = || victims.iter().map(|task| importance(view, search, *task));
        let highest = weights().max().unwrap_or(i32::MIN);
        let above = |weight: i32| i64::from(weight) - i64::from(i32::MIN);
        let of_highest = victims.iter().zip(weights());
        let of_highest = of_highest.filter(|(_, weight)| *weight == highest);
        let started = of_highest.map(|(task, _)| start(view, *task)).min();
        let kept = beyond_budgets(view, victims);
        Disturbance {
            violations: kept.into_iter().filter(|kept| *kept).count(),
            highest,
            sum: weights().map(above).fold(0, i64::saturating_add),
            victims: victims.len(),
            started: Reverse(started.unwrap_or(LATER)),
        }
    }

    /// Whether no node that costs so much at least can be disturbed less.
    fn is_less_than_any(&self, search: &Search<'_>, bound: Cost) -> bool {
        self.victims == 0
            || self.violations == 0
                && search.against != Against::OwnTasks
                && self.highest < bound.priority()
    }
}

/// When a pod starts that has not started.
const LATER: Time = Time::from_micros(i64::MAX);

fn start(view: View<'_>, task: TaskId) -> Time {
    view.tables.task(task).started.unwrap_or(LATER)
}

/// The priority of the task's gang; among tasks of one gang its own.
fn importance(view: View<'_>, search: &Search<'_>, task: TaskId) -> i32 {
    match search.against {
        Against::OwnTasks => view.tables.task(task).priority,
        Against::OtherGangs | Against::OtherQueues => priority_of(view.tables, task),
    }
}

/// The node that is disturbed the least, and whom the task takes there. So many nodes at most are
/// compared, those first that seem to cost the least.
pub(super) fn least_disturbed(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
    field: &Field,
    most: usize,
) -> Option<(NodeId, Vec<TaskId>)> {
    let mut best: Option<(Disturbance, NodeId, Vec<TaskId>)> = None;
    let mut found = 0;
    for (bound, node) in field.in_order() {
        let beats = |it: &(Disturbance, _, _)| it.0.is_less_than_any(search, bound);
        if found == most || best.as_ref().is_some_and(beats) {
            break;
        }
        let Some(victims) = dry_run(cycle, search, node) else {
            continue;
        };
        found += 1;
        let disturbance = Disturbance::of(cycle.view(), search, &victims);
        let is_better = |it: &(Disturbance, NodeId, _)| (disturbance, node) < (it.0, it.1);
        if best.as_ref().is_none_or(is_better) {
            best = Some((disturbance, node, victims));
        }
    }
    best.map(|(_, node, victims)| (node, victims))
}

/// Without whom the node takes the task and without none of whom it would not, if it does at all. The
/// trial is left as it was.
fn dry_run(cycle: &mut Cycle<'_, '_>, search: &Search<'_>, node: NodeId) -> Option<Vec<TaskId>> {
    let task = search.claimant.task;
    if !may_be_there(cycle, search, node) {
        return None;
    }
    let view = cycle.view();
    let mut victims = search.candidates(view, &search.in_turn(view, node));
    let to_spare = most_needed_first(view, search, &victims);
    let mark = cycle.trial.mark();
    let evict = |cycle: &mut Cycle<'_, '_>, victim: TaskId| {
        let (gang, cause) = (search.claimant.gang, search.against.cause());
        cycle.trial.evict(victim, gang, cause);
    };
    victims.iter().for_each(|victim| evict(cycle, *victim));
    if !will_take(cycle, task, node) && !is_about_amounts(cycle, task) {
        // Somebody may have gone whom the task has to be near.
        cycle.trial.rewind(mark);
        let all = std::mem::take(&mut victims);
        for victim in all {
            if will_take(cycle, task, node) {
                break;
            }
            evict(cycle, victim);
            victims.push(victim);
        }
    }
    let takes = will_take(cycle, task, node);
    for victim in to_spare.into_iter().filter(|_| takes) {
        let Some(at) = victims.iter().position(|other| *other == victim) else {
            continue;
        };
        let here = cycle.trial.mark();
        cycle.trial.spare(victim);
        if will_take(cycle, task, node) {
            victims.remove(at);
        } else {
            cycle.trial.rewind(here);
        }
    }
    cycle.trial.rewind(mark);
    takes.then_some(victims)
}

/// Those whom a budget would keep before the others, then the more important, then who runs for longer,
/// then who would go last.
fn most_needed_first(view: View<'_>, search: &Search<'_>, victims: &[TaskId]) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = victims.iter().rev().copied().collect();
    tasks.sort_by_key(|task| (Reverse(importance(view, search, *task)), start(view, *task)));
    let kept = beyond_budgets(view, &tasks).into_iter();
    let mut tasks: Vec<(bool, TaskId)> = kept.zip(tasks).collect();
    // Stable: what was sorted before holds among equals.
    tasks.sort_by_key(|(kept, _)| !*kept);
    tasks.into_iter().map(|(_, task)| task).collect()
}
