//! PDB: nobody is evicted whom a disruption budget protects.
//!
//! Upstream decrements a budget for candidates that are rejected in the end, and drops pods without
//! labels; here a budget is used up by victims, and who has no labels matches no selector of labels.

use std::collections::BTreeMap;

use model::{Budget, Key, Task, TaskId};

use crate::plugin::{Claimant, Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "pdb",
    preemptable: Some(within_budgets),
    reclaimable: Some(within_budgets),
    // Upstream: a tier further down decides where this one finds nobody, and knows of no budget.
    spares_preempted: Some(within_budgets),
    spares_reclaimed: Some(within_budgets),
    // Upstream names as victims of a shuffle everybody whom a budget lets go; a budget wants nobody away.
    spares_shuffled: Some(all_within_budgets),
    ..Plugin::NONE
};

fn covers(budget: &Budget, task: &Task) -> bool {
    let selector = budget.selector.as_ref();
    selector.is_some_and(|selector| model::matches_all(selector, &task.labels))
        && !budget.disrupted.contains(&task.key.name)
}

/// How many more pods a budget lets go: those on their way out already may not be counted in it yet, so
/// they are counted here, if need be for a second time.
fn left(view: View<'_>, budget: &Budget) -> i32 {
    let leaving = view.tables.leaving(&budget.key.namespace);
    let leaving = leaving.filter(|task| covers(budget, task));
    let leaving = i32::try_from(leaving.count()).unwrap_or(i32::MAX);
    budget.allowed.saturating_sub(leaving)
}

fn within_budgets(view: View<'_>, _: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    all_within_budgets(view, tasks, allowed);
}

fn all_within_budgets(view: View<'_>, tasks: &[TaskId], allowed: &mut [bool]) {
    let mut rest: BTreeMap<&Key, i32> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let task = view.tables.task(*task);
        let budgets = view.tables.budgets(&task.key.namespace);
        let budgets: Vec<&Budget> = budgets.filter(|budget| covers(budget, task)).collect();
        for budget in &budgets {
            rest.entry(&budget.key)
                .or_insert_with(|| left(view, budget));
        }
        if budgets.iter().all(|budget| rest[&budget.key] > 0) {
            for budget in budgets {
                rest.entry(&budget.key).and_modify(|left| *left -= 1);
            }
        } else {
            *allowed = false;
        }
    }
}

/// Of whom a budget would keep some were they all to go, who they are: the last ones.
pub(crate) fn beyond_budgets(view: View<'_>, tasks: &[TaskId]) -> Vec<bool> {
    let mut allowed = vec![true; tasks.len()];
    all_within_budgets(view, tasks, &mut allowed);
    allowed.into_iter().map(|allowed| !allowed).collect()
}
