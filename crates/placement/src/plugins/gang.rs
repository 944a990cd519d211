//! Gang: enough tasks together, or none (A.4).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{GangId, Phase, Reason, Tables};

use crate::plugin::{Plugin, View};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "gang",
    job_order: Some(job_order),
    job_valid: Some(job_valid),
    job_ready: Some(job_ready),
    ..Plugin::NONE
};

/// Gangs that still lack tasks come first.
fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    job_ready(view, a).cmp(&job_ready(view, b))
}

fn job_valid(view: View<'_>, id: GangId) -> Option<Reason> {
    let gang = view.tables.gang(id);
    let alive = view.tables.ready(id) + gang.count(Phase::Pipelined) + gang.count(Phase::Pending);
    for (role, min) in role_minima(view.tables, id) {
        let have = ready_of(view.tables, id, role, min)
            + count_role(view.tables, id, role, Phase::is_waiting);
        if have < min {
            return Some(Reason::NotEnoughPodsOfTask {
                role: role.clone(),
                have,
                min,
            });
        }
    }
    let min = gang.spec.min_member;
    (alive < min).then_some(Reason::NotEnoughTasks { have: alive, min })
}

fn job_ready(view: View<'_>, id: GangId) -> bool {
    let gang = view.tables.gang(id);
    view.tables.ready(id) + gang.pending_best_effort >= gang.spec.min_member
        && role_minima(view.tables, id).all(|(role, min)| {
            let have = ready_of(view.tables, id, role, min);
            have + pending_best_effort_of(view.tables, id, role) >= min
        })
}

/// Whether the gang is whole without counting tasks that have no place yet.
///
/// Upstream lets pending tasks that request nothing count as ready, and binds the others before
/// those have a node. We place them in the same trial, so that a gang is never bound in part.
pub(crate) fn ready_without_promises(tables: &Tables, id: GangId) -> bool {
    tables.ready(id) >= tables.gang(id).spec.min_member
        && role_minima(tables, id).all(|(role, min)| ready_of(tables, id, role, min) >= min)
}

/// Role minima count only when the gang's minimum is at least their sum.
fn role_minima(tables: &Tables, id: GangId) -> impl Iterator<Item = (&Arc<str>, u32)> {
    let spec = &tables.gang(id).spec;
    let minima: &BTreeMap<Arc<str>, u32> = &spec.min_task_member;
    let sum: u64 = minima.values().map(|min| u64::from(*min)).sum();
    let count = sum <= u64::from(spec.min_member);
    minima
        .iter()
        .filter(move |_| count)
        .map(|(role, min)| (role, *min))
}

/// Tasks of a role that count as started.
fn ready_of(tables: &Tables, id: GangId, role: &str, min: u32) -> u32 {
    let settled = |phase: Phase| phase.is_allocated() || phase == Phase::Succeeded;
    count_role(tables, id, role, settled) + tables.spent(id, min, Some(role))
}

fn count_role(tables: &Tables, id: GangId, role: &str, counts: impl Fn(Phase) -> bool) -> u32 {
    let tasks = tables.gang(id).tasks.iter().map(|task| tables.task(*task));
    let matching = tasks
        .filter(|task| &*task.role == role && counts(task.phase))
        .count();
    u32::try_from(matching).unwrap_or(u32::MAX)
}

fn pending_best_effort_of(tables: &Tables, id: GangId, role: &str) -> u32 {
    let tasks = tables.gang(id).tasks.iter().map(|task| tables.task(*task));
    let matching = tasks
        .filter(|t| &*t.role == role && t.best_effort && !t.gated && t.phase == Phase::Pending)
        .count();
    u32::try_from(matching).unwrap_or(u32::MAX)
}
