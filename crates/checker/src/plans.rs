//! I4, I5, I20: what a committed plan may not be.

use std::collections::BTreeSet;

use model::{GangId, Phase, Plan, Tables};

use crate::Violation;

/// Everything that is wrong with a plan that was just committed to the tables.
pub fn check_plan(tables: &Tables, plan: &Plan) -> Vec<Violation> {
    let mut found = Vec::new();
    let gangs: BTreeSet<GangId> = plan
        .places
        .iter()
        .filter_map(|place| tables.task(place.task).gang)
        .collect();
    for id in gangs {
        let gang = tables.gang(id);
        let placed = gang.tasks.iter().filter(|task| {
            let phase = tables.task(**task).phase;
            matches!(
                phase,
                Phase::Binding | Phase::Bound | Phase::Running | Phase::Succeeded
            )
        });
        let (placed, min) = (placed.count(), gang.spec.min_member as usize);
        if placed < min {
            let what = format!(
                "gang {} is left with {placed} of {min} tasks placed",
                gang.spec.key
            );
            found.push(Violation {
                invariant: "I4",
                what,
            });
        }
    }
    for place in &plan.places {
        let task = tables.task(place.task);
        if task.phase != Phase::Binding
            || task.node != Some(place.node)
            || task.write != Some(place.write)
        {
            let what = format!("task {} is planned but not pending", task.key);
            found.push(Violation {
                invariant: "I6",
                what,
            });
        }
    }
    for eviction in &plan.evictions {
        if tables.find_gang(eviction.beneficiary).is_none() {
            let what = format!(
                "task {} is evicted for nobody",
                tables.task(eviction.task).key
            );
            found.push(Violation {
                invariant: "I5",
                what,
            });
        }
    }
    found
}

/// I20: whether the plan writes nothing.
pub fn is_quiet(plan: &Plan) -> bool {
    plan.places.is_empty()
        && plan.evictions.is_empty()
        && plan.nominations.is_empty()
        && plan.statuses.is_empty()
        && plan.waits.is_empty()
        && plan.queues.is_empty()
}
