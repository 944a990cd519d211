//! Gang: enough tasks together, or none (A.4).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Census, GangId, Phase, Reason, Tables, Task, TaskId, Time};

use crate::arguments::Asked;
use crate::parts;
use crate::plugin::{Claimant, Plugin, View};
use crate::rules::Config;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "gang",
    configure: Some(configure),
    wakes_at: Some(wakes_at),
    job_order: Some(job_order),
    job_valid: Some(job_valid),
    job_ready: Some(job_ready),
    job_pipelined: Some(job_pipelined),
    job_starving: Some(job_starving),
    preemptable: Some(keeps_its_minimum),
    reclaimable: Some(keeps_its_minimum),
    ..Plugin::NONE
};

/// How long a gang waits at most while smaller ones pass it, in milliseconds; none, for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound(Option<i64>);

impl Default for Bound {
    fn default() -> Self {
        Bound(Some(6 * 3_600_000))
    }
}

impl Bound {
    /// When a gang's time is over, or was when it was last looked at; it is looked at again each time
    /// that as much has gone by.
    pub(crate) fn due(self, created: Time, now: Time) -> Option<Time> {
        let bound = self.0?.saturating_mul(1_000);
        let waited = now.micros.saturating_sub(created.micros);
        let times = waited.checked_div(bound)?.max(1);
        Some(Time::from_micros(
            created.micros.saturating_add(times.saturating_mul(bound)),
        ))
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let bound = asked.milliseconds_from("starvation-bound", 0, "a duration from 0s on");
    if let Some(bound) = bound {
        config.starvation = Bound((bound > 0).then_some(bound));
    }
}

/// A gang that was let in and lacks its minimum is looked at when its time is over, and each time that as
/// much has gone by.
fn wakes_at(view: View<'_>, id: GangId) -> Option<Time> {
    let gang = view.tables.gang(id);
    let lacks = gang.census.waiting() > 0 && gang.settled() < gang.spec.min_member;
    let bound = view.config.starvation;
    let due = bound
        .due(gang.spec.created, view.state.now)
        .filter(|_| lacks)?;
    if due > view.state.now {
        return Some(due);
    }
    Some(due.plus_millis(bound.0?))
}

/// Gangs that still lack tasks come first.
fn job_order(view: View<'_>, a: GangId, b: GangId) -> Ordering {
    job_ready(view, a).cmp(&job_ready(view, b))
}

fn job_valid(view: View<'_>, id: GangId) -> Option<Reason> {
    let gang = view.tables.gang(id);
    for (role, min) in role_minima(view.tables, id) {
        let have = ready_of(view.tables, id, role, min) + gang.of_role(role).waiting();
        if have < min {
            return Some(Reason::NotEnoughPodsOfTask {
                role: role.clone(),
                have,
                min,
                failed: failed(&gang.of_role(role), view.tables.spent(id, min, Some(role))),
            });
        }
    }
    let is_alive = |task: &Task| task.phase.is_waiting() || has_a_place(task);
    if let Some((name, have, min)) = parts::short_of(view.tables, id, is_alive) {
        return Some(Reason::NotEnoughSubGroups { name, have, min });
    }
    let min = gang.spec.min_member;
    let have = view.tables.ready(id) + gang.census.waiting();
    (have < min).then(|| Reason::NotEnoughTasks {
        have,
        min,
        failed: failed(&gang.census, view.tables.spent(id, min, None)),
    })
}

/// How many tasks have failed and do not count towards a minimum: of those that have, so many had their part in
/// the start.
fn failed(census: &Census, spent: u32) -> u32 {
    census.count(Phase::Failed).saturating_sub(spent)
}

fn job_ready(view: View<'_>, id: GangId) -> bool {
    let gang = view.tables.gang(id);
    view.tables.ready(id) + gang.census.pending_best_effort >= gang.spec.min_member
        && role_minima(view.tables, id).all(|(role, min)| {
            let have = ready_of(view.tables, id, role, min);
            have + gang.of_role(role).pending_best_effort >= min
        })
        && parts::short_of(view.tables, id, |task| {
            has_a_place(task) || task.phase == Phase::Pending && task.best_effort && !task.gated
        })
        .is_none()
}

fn has_a_place(task: &Task) -> bool {
    task.phase.is_allocated() || task.phase == Phase::Succeeded
}

/// As ready, with the tasks that are promised room.
fn job_pipelined(view: View<'_>, id: GangId) -> bool {
    let gang = view.tables.gang(id);
    let promised = gang.count(Phase::Pipelined) + gang.census.pending_best_effort;
    view.tables.ready(id) + promised >= gang.spec.min_member
        && role_minima(view.tables, id).all(|(role, min)| {
            let of_role = gang.of_role(role);
            let promised = of_role.count(Phase::Pipelined) + of_role.pending_best_effort;
            ready_of(view.tables, id, role, min) + promised >= min
        })
        && parts::short_of(view.tables, id, |task| {
            let is_promised = task.phase == Phase::Pending && task.best_effort && !task.gated;
            has_a_place(task) || task.phase == Phase::Pipelined || is_promised
        })
        .is_none()
}

/// As long as places are missing, of whatever role or of a certain one.
fn job_starving(view: View<'_>, id: GangId) -> bool {
    missing(view.tables, id) > 0
}

/// How many more tasks the gang starts with, beside those that have a place or are promised one.
pub(crate) fn missing(tables: &Tables, id: GangId) -> u32 {
    missing_of_any(tables, id).max(missing_of_roles(tables, id))
}

/// The same, whatever their roles.
fn missing_of_any(tables: &Tables, id: GangId) -> u32 {
    let gang = tables.gang(id);
    let served = tables.ready(id) + gang.count(Phase::Pipelined);
    gang.spec.min_member.saturating_sub(served)
}

/// How many of these have to be of roles that lack their minimum.
fn missing_of_roles(tables: &Tables, id: GangId) -> u32 {
    let minima = role_minima(tables, id);
    minima
        .map(|(role, min)| missing_of(tables, id, role, min))
        .sum()
}

fn missing_of(tables: &Tables, id: GangId, role: &str, min: u32) -> u32 {
    let promised = tables.gang(id).of_role(role).count(Phase::Pipelined);
    min.saturating_sub(ready_of(tables, id, role, min) + promised)
}

/// Whether the places that the gang still lacks are all for roles that are short, of which the task is none:
/// a place for it would bring the gang no nearer to its start.
pub(crate) fn is_beyond_the_start(tables: &Tables, id: GangId, task: &Task) -> bool {
    let gang = tables.gang(id);
    if gang.roles.len() < 2 || gang.spec.min_task_member.is_empty() {
        return false;
    }
    let of_roles = missing_of_roles(tables, id);
    let is_of_short_role = || {
        let mut minima = role_minima(tables, id).filter(|(role, _)| **role == task.role);
        minima.any(|(role, min)| missing_of(tables, id, role, min) > 0)
    };
    of_roles > 0 && missing_of_any(tables, id) <= of_roles && !is_of_short_role()
}

/// What a gang lacks, where it matters of which roles that is.
pub(crate) struct OfRoles<'a> {
    /// How many more tasks of roles that are short.
    short: BTreeMap<&'a str, u32>,
    /// How many more of whatever role.
    any: u32,
}

impl<'a> OfRoles<'a> {
    /// `None` where roles make no difference.
    pub(crate) fn of(tables: &'a Tables, id: GangId) -> Option<OfRoles<'a>> {
        if tables.gang(id).roles.len() < 2 {
            return None;
        }
        let of_roles = Some(missing_of_roles(tables, id)).filter(|of_roles| *of_roles > 0)?;
        let short = |(role, min): (&'a Arc<str>, u32)| {
            let role: &str = role;
            (role, missing_of(tables, id, role, min))
        };
        Some(OfRoles {
            short: role_minima(tables, id).map(short).collect(),
            any: missing(tables, id) - of_roles,
        })
    }

    /// The most tasks of the role with which the gang may start.
    pub(crate) fn most(&self, role: &str) -> u32 {
        self.any + self.short.get(role).copied().unwrap_or(0)
    }

    /// Of the tasks those with which the gang starts come first, and then the others, each in their order.
    pub(crate) fn put_first(mut self, tables: &Tables, tasks: &mut Vec<TaskId>) {
        let is_needed = |task: &TaskId| {
            let short = self.short.get_mut(&*tables.task(*task).role);
            let left = short.filter(|left| **left > 0).unwrap_or(&mut self.any);
            let is_needed = *left > 0;
            *left -= u32::from(is_needed);
            is_needed
        };
        let (first, others): (Vec<TaskId>, Vec<TaskId>) =
            tasks.iter().copied().partition(is_needed);
        *tasks = first;
        tasks.extend(others);
    }
}

/// Whether the task's gang keeps its minimum without it.
pub(crate) fn can_be_spared(view: View<'_>, claimant: Claimant, task: TaskId) -> bool {
    let mut allowed = [true];
    keeps_its_minimum(view, claimant, &[task], &mut allowed);
    allowed[0]
}

/// A gang gives tasks only as long as more than its minimum are left. Beyond upstream the minimum of
/// the task's role counts, too.
fn keeps_its_minimum(view: View<'_>, _: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    spares(view, tasks, allowed);
}

/// Tasks of a gang that go.
#[derive(Default)]
struct Gone<'a> {
    tasks: Vec<TaskId>,
    of_roles: BTreeMap<&'a str, usize>,
}

/// The same, whoever asks.
pub(crate) fn spares(view: View<'_>, tasks: &[TaskId], allowed: &mut [bool]) {
    // By gang: very many tasks may be asked about together, of one gang or of very many.
    let mut gone: BTreeMap<GangId, Gone<'_>> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let row = view.tables.task(*task);
        let Some(id) = row.gang else {
            *allowed = false;
            continue;
        };
        let role: &str = &row.role;
        let of_gang = gone.get(&id);
        let lost: &[TaskId] = of_gang.map_or(&[], |gone| &gone.tasks);
        let lost_of_role = of_gang.and_then(|gone| gone.of_roles.get(role));
        let lost_of_role = lost_of_role.copied().unwrap_or(0);
        let spare = (view.tables.ready(id) as usize).saturating_sub(lost.len());
        let min = view.tables.gang(id).spec.min_member as usize;
        let mut minima = role_minima(view.tables, id).filter(|(role, _)| **role == row.role);
        let role_has_more = minima.all(|(role, min)| {
            ready_of(view.tables, id, role, min) as usize > min as usize + lost_of_role
        });
        if spare > min && role_has_more && part_has_more(view.tables, id, *task, lost) {
            // Mostly it is asked of one alone.
            if tasks.len() > 1 {
                let gone = gone.entry(id).or_default();
                gone.tasks.push(*task);
                *gone.of_roles.entry(role).or_default() += 1;
            }
        } else {
            *allowed = false;
        }
    }
}

/// Whether the part of the gang to which the task belongs stays whole without it and the others.
fn part_has_more(tables: &Tables, gang: GangId, task: TaskId, lost: &[TaskId]) -> bool {
    if tables.gang(gang).spec.sub_groups.is_empty() {
        return true;
    }
    let parts = parts::parts(tables, gang);
    let of_task = parts.iter().find(|part| part.tasks.contains(&task));
    of_task.is_none_or(|part| {
        let lost = lost.iter().filter(|task| part.tasks.contains(task)).count();
        part.rules.is_none() || part.settled(tables) as usize > part.size() as usize + lost
    })
}

/// Whether the gang is whole without counting tasks that have no place yet.
///
/// Upstream lets pending tasks that request nothing count as ready, and binds the others before
/// those have a node. We place them in the same trial, so that a gang is never bound in part.
pub(crate) fn ready_without_promises(tables: &Tables, id: GangId) -> bool {
    tables.ready(id) >= tables.gang(id).spec.min_member
        && role_minima(tables, id).all(|(role, min)| ready_of(tables, id, role, min) >= min)
        && parts::short_of(tables, id, has_a_place).is_none()
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
    tables.gang(id).of_role(role).settled() + tables.spent(id, min, Some(role))
}
