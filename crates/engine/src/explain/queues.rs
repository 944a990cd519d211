//! Remedies for gangs whose queue, or namespace, may not have more.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Amount, Change, Gang, GangSpec, Key, Kind, Limits, Misplaced, Phase, Queue, QueueId, QueueSpec,
    QueueState, Quota, Tables, TaskId, Vector,
};

use super::probe::Case;
use super::room::{Draft, end, may_end};
use super::{Limit, Remedy, holders, tree};

/// How often an amount is halved in search of the least that helps.
const HALVINGS: u32 = 24;
/// The queue above all others.
pub(super) const ROOT: &str = "root";
/// The most queues on the way up to a root.
pub(super) const DEPTH_MAX: usize = 32;

/// What the gang would have if all of its waiting tasks were placed, beyond what it has: with what their
/// claims of devices count for, each claim once.
fn wanted(case: &Case<'_, '_>) -> Vector {
    let tables = &*case.tables;
    let gang = tables.gang(case.asked.gang);
    let mut sum = Vector::ZERO;
    let mut claims = BTreeMap::new();
    for task in gang.tasks.iter().map(|task| tables.task(*task)) {
        if task.phase.is_waiting() {
            sum.add(&tables.shape(task.shape).held);
            claims.extend(task.charges.iter().map(|charge| (&charge.claim, charge)));
        }
    }
    for charge in claims.into_values() {
        sum.add(&Vector::of(charge.amounts.iter().copied()));
    }
    match &gang.spec.min_resources {
        Some(least) => sum.higher(least),
        None => sum,
    }
}

/// Its queue and those above it that have a limit which the gang would exceed are raised, by the
/// least that helps, with those further above that would have less then.
pub(super) fn raised(case: &mut Case<'_, '_>, limit: Limit) -> Vec<Draft> {
    let wanted = wanted(case);
    let mut drafts = Vec::new();
    for queue in upwards(case) {
        let row = case.tables.queue(queue);
        let raise = within(&row.spec, limit, enough(case.tables, queue, limit, &wanted));
        if raise.is_zero() {
            continue;
        }
        let spec = case.tables.queue(queue).spec.clone();
        let change = |tables: &Tables, by: &Vector| put(tree::raised(tables, queue, (limit, by)));
        let near = within(&spec, limit, lacking(case.tables, queue, limit, &wanted));
        let Some(least) = least(case, raise, &near, &change) else {
            continue;
        };
        let least = within(&spec, limit, least);
        drafts.extend(draft(case.tables, queue, limit, &least));
    }
    drafts
}

/// None where the API would not take it, whatever those above have.
fn draft(tables: &Tables, queue: QueueId, limit: Limit, by: &Vector) -> Option<Draft> {
    let specs = tree::raised(tables, queue, (limit, by));
    if !tree::takes(tables, &specs) {
        return None;
    }
    let mut above = tree::differences(tables, limit, &specs);
    let (queue, by) = above.pop()?;
    let all = above.iter().flat_map(|(_, by)| by).chain(&by);
    Some(Draft {
        size: all.fold(0, |sum, it| sum.saturating_add(it.value)),
        remedy: Remedy::RaiseQueue {
            queue,
            limit,
            by,
            above,
        },
        changes: put(specs),
    })
}

fn put(specs: Vec<QueueSpec>) -> Vec<Change> {
    let all = specs.into_iter();
    all.map(|spec| Change::PutQueue(Box::new(spec))).collect()
}

pub(super) fn amounts(tables: &Tables, by: &Vector) -> (Vec<Amount>, i64) {
    let by: Vec<Amount> = by
        .entries()
        .map(|(kind, value)| tables.kinds().amount(kind, value))
        .collect();
    let size = by
        .iter()
        .fold(0_i64, |sum, it| sum.saturating_add(it.value));
    (by, size)
}

fn upwards(case: &Case<'_, '_>) -> Vec<QueueId> {
    let first = case.tables.gang(case.asked.gang).queue;
    let above = |queue: &QueueId| case.tables.queue(*queue).parent;
    // What the one above all has may not be changed.
    let may_change = |queue: &QueueId| *case.tables.queue(*queue).spec.name != *ROOT;
    std::iter::successors(first, above)
        .take(DEPTH_MAX)
        .filter(may_change)
        .collect()
}

/// Those above a queue that are closed, topmost first.
pub(super) fn closed_above<'t>(tables: &'t Tables, queue: &'t Queue) -> Vec<&'t QueueSpec> {
    let above = |queue: &&'t Queue| queue.parent.map(|id| tables.queue(id));
    let all = std::iter::successors(above(&queue), above).take(DEPTH_MAX);
    let is_closed =
        |queue: &&Queue| matches!(queue.spec.state, QueueState::Closed | QueueState::Closing);
    let closed = all.filter(|queue| queue.known).filter(is_closed);
    let mut closed: Vec<&QueueSpec> = closed.map(|queue| &queue.spec).collect();
    closed.reverse();
    closed
}

/// By how much the limit falls short, at most, of all that is held, asked for and wanted.
fn enough(tables: &Tables, queue: QueueId, limit: Limit, wanted: &Vector) -> Vector {
    let row = tables.queue(queue);
    let mut goal = row.used.plus(&row.tree.promised);
    goal.add(tables.classes_taken(queue).unwrap_or(&Vector::ZERO));
    goal.add(&row.tree.inqueue);
    goal.add(wanted);
    short(wanted, &goal, &|kind| {
        limit_of(&row.spec, limit, kind).filter(|_| kind != Kind::PODS)
    })
}

/// By how much the limit falls short of what is held and wanted, if nobody else was let in.
fn lacking(tables: &Tables, queue: QueueId, limit: Limit, wanted: &Vector) -> Vector {
    let row = tables.queue(queue);
    let mut goal = row.used.plus(wanted);
    goal.add(tables.classes_taken(queue).unwrap_or(&Vector::ZERO));
    short(wanted, &goal, &|kind| limit_of(&row.spec, limit, kind))
}

/// A queue's limit of a kind; `None` where there is none.
fn limit_of(spec: &QueueSpec, limit: Limit, kind: Kind) -> Option<i64> {
    match limit {
        Limit::Capability => spec.capability.get(kind),
        Limit::Deserved => Some(spec.deserved.get(kind)),
    }
}

/// By how much limits fall short of a goal, of each kind that is wanted.
pub(super) fn short(wanted: &Vector, goal: &Vector, limit: &dyn Fn(Kind) -> Option<i64>) -> Vector {
    let beyond = wanted.entries().filter_map(|(kind, _)| {
        let beyond = goal.get(kind).saturating_sub(limit(kind)?);
        (beyond > 0).then_some((kind, beyond))
    });
    Vector::of(beyond)
}

pub(super) fn raised_limits(limits: &Limits, by: &Vector) -> Limits {
    let raise = |(kind, value): (Kind, i64)| (kind, value.saturating_add(by.get(kind)));
    Limits::of(limits.entries().map(raise))
}

/// As much of a raise as a queue takes: what it should get may not be beyond what it may have.
fn within(spec: &QueueSpec, limit: Limit, by: Vector) -> Vector {
    if limit == Limit::Capability {
        return by;
    }
    let room = |kind| match spec.capability.get(kind) {
        Some(most) => most.saturating_sub(spec.deserved.get(kind)).max(0),
        None => i64::MAX,
    };
    Vector::of(
        by.entries()
            .map(|(kind, value)| (kind, value.min(room(kind)))),
    )
}

/// The least raise that helps, kind by kind; `None` if even all of it does not. It is looked for at
/// `near` first: each try is a decision, and there it is mostly found by two of them.
pub(super) fn least(
    case: &mut Case<'_, '_>,
    most: Vector,
    near: &Vector,
    change: &dyn Fn(&Tables, &Vector) -> Vec<Change>,
) -> Option<Vector> {
    let helps = |case: &mut Case<'_, '_>, by: &Vector| {
        let changes = change(case.tables, by);
        case.helps(&changes)
    };
    if !helps(case, &most) {
        return None;
    }
    let mut best = most.clone();
    for (kind, amount) in most.entries() {
        // What helps is above `low` and at most `high`.
        let (mut low, mut high) = (-1, amount);
        let near = near.get(kind);
        let mut guesses = [near, near.saturating_sub(step(kind))].into_iter();
        for _ in 0..HALVINGS {
            if high - low <= step(kind) {
                break;
            }
            let within = |guess: &i64| (low + 1..high).contains(guess);
            let middle = guesses.find(within).unwrap_or(low + (high - low) / 2);
            let mut tried = best.clone();
            tried.set(kind, middle);
            match helps(case, &tried) {
                true => high = middle,
                false => low = middle,
            }
        }
        best.set(kind, high);
    }
    // It is told in words, and whoever follows them must not give less than what helps.
    let whole = |(kind, value)| (kind, whole_steps(kind, value));
    let best = Vector::of(best.entries().map(whole));
    (!best.is_zero()).then_some(best)
}

/// As much, or the least more that is a whole number of steps.
fn whole_steps(kind: Kind, value: i64) -> i64 {
    let step = step(kind);
    let over = value % step;
    match over {
        0 => value,
        _ => value.saturating_add(step - over),
    }
}

/// What an amount is told to: a megabyte more or less is no matter.
fn step(kind: Kind) -> i64 {
    match kind {
        Kind::MEMORY => 1 << 20,
        _ => 1,
    }
}

/// What the limits of the gang come to, as a quota counts them.
fn wanted_limits(case: &Case<'_, '_>) -> Vector {
    let tables = &*case.tables;
    let gang = tables.gang(case.asked.gang);
    let tasks = gang.tasks.iter().map(|task| tables.task(*task));
    let mut sum = Vector::ZERO;
    for task in tasks.filter(|task| task.phase.is_waiting()) {
        sum.add(&tables.shape(task.shape).spec.limits);
    }
    sum.higher(&gang.spec.min_limits)
}

/// The quota is raised by the least that helps.
pub(super) fn quota_raised(case: &mut Case<'_, '_>, named: &str) -> Option<Draft> {
    let (namespace, name) = named.split_once('/')?;
    let key = Key::new(namespace, name);
    let quota = case.tables.quotas(namespace).find(|it| it.key == key)?;
    let quota = quota.clone();
    // Pods that are there are among what is used.
    let unmade = |gang: &Gang| {
        let made = u32::try_from(gang.tasks.len()).unwrap_or(u32::MAX);
        let made = i64::from(made) - i64::from(gang.count(Phase::Failed));
        (i64::from(gang.spec.min_member) - made).max(0)
    };
    let mut wanted = wanted(case).plus(&wanted_limits(case));
    wanted.set(Kind::PODS, unmade(case.tables.gang(case.asked.gang)));
    let held = quota.used.plus(&wanted);
    let mut goal = held.clone();
    // What was let in and has no pods yet counts too.
    for (_, gang) in case.tables.gangs() {
        if *gang.spec.key.namespace == *namespace
            && let Some(least) = &gang.spec.min_resources
        {
            goal.add(least);
            goal.add(&gang.spec.min_limits);
            goal.set(Kind::PODS, goal.get(Kind::PODS) + unmade(gang));
        }
    }
    let hard = |kind: Kind| quota.hard.get(kind);
    let near = short(&wanted, &held, &hard);
    let most = short(&wanted, &goal, &hard);
    let change = |_: &Tables, by: &Vector| {
        let hard = raised_limits(&quota.hard, by);
        let at_least = |it: &Amount| Amount {
            value: it.value.max(hard.get(it.kind).unwrap_or(it.value)),
            ..it.clone()
        };
        vec![Change::PutQuota(Box::new(Quota {
            written: quota.written.iter().map(at_least).collect(),
            hard,
            ..quota.clone()
        }))]
    };
    let least = least(case, most, &near, &change)?;
    let (by, size) = amounts(case.tables, &least);
    let by = by.into_iter();
    let by = by.flat_map(|by| by_names(&quota, &by)).collect();
    Some(Draft {
        remedy: Remedy::RaiseQuota { quota: key, by },
        size,
        changes: change(case.tables, &least),
    })
}

/// A raise of what a quota limits, by each name that it gives to that: by what that one lacks.
fn by_names(quota: &Quota, by: &Amount) -> Vec<Amount> {
    let names = quota.written.iter().filter(|it| it.kind == by.kind);
    let Some(hard) = quota.hard.get(by.kind) else {
        return Vec::new();
    };
    let goal = hard.saturating_add(by.value);
    let raised = names.clone().map(|it| Amount {
        value: goal.saturating_sub(it.value),
        ..it.clone()
    });
    match names.count() {
        0 => vec![by.clone()],
        _ => raised.filter(|it| it.value > 0).collect(),
    }
}

/// Tasks of the queue are over, and of those that share it, or of all queues: as few as help.
pub(super) fn ended(
    case: &mut Case<'_, '_>,
    queue: Option<&str>,
    kind: Option<Kind>,
) -> Option<Draft> {
    let queue = match queue {
        Some(name) => Some(case.tables.queue_named(name)?),
        None => None,
    };
    let tasks = of_queues(case, queue);
    let tasks = least_important(case, tasks, kind);
    let near = kind.map_or(1, |kind| as_much(case, &tasks, kind));
    fewest_near(case, near, tasks.len(), &|tables, count| {
        end(tables, &tasks[..count])
    })
}

/// How many of the tasks, the first ones, hold as much of a kind as the gang wants.
fn as_much(case: &Case<'_, '_>, tasks: &[TaskId], kind: Kind) -> usize {
    let mut left = wanted(case).get(kind);
    let held = |task: &TaskId| case.tables.shape_of(*task).held.get(kind);
    let needed = tasks.iter().take_while(|task| {
        let is_needed = left > 0;
        left = left.saturating_sub(held(task));
        is_needed
    });
    needed.count()
}

/// The remedy of the least size that helps, where a larger one helps whenever a smaller one does;
/// `None` where not even that of size `most` does.
pub(super) fn fewest(
    case: &mut Case<'_, '_>,
    most: usize,
    draft: &dyn Fn(&Tables, usize) -> Draft,
) -> Option<Draft> {
    fewest_near(case, 1, most, draft)
}

/// The same, looked for at the size `near` first: each try is a decision, and where the guess is right it
/// takes two of them.
fn fewest_near(
    case: &mut Case<'_, '_>,
    near: usize,
    most: usize,
    draft: &dyn Fn(&Tables, usize) -> Draft,
) -> Option<Draft> {
    let near = near.clamp(1, most.max(1));
    let counts = std::iter::successors(Some(near), |count| Some(count * 2));
    let counts: Vec<usize> = counts.take_while(|count| *count < most).collect();
    let helps = |case: &mut Case<'_, '_>, count: usize| {
        let draft = draft(case.tables, count);
        case.helps(&draft.changes)
    };
    // What helps is above `low`, and at most `high`.
    let mut low = 0;
    let mut high = None;
    for count in counts.into_iter().chain((most > 0).then_some(most)) {
        if helps(case, count) {
            high = Some(count);
            break;
        }
        low = count;
    }
    let mut high = high?;
    let mut guess = Some(near - 1);
    while high - low > 1 {
        let within = |guess: &usize| (low + 1..high).contains(guess);
        let middle = guess.take().filter(within);
        let middle = middle.unwrap_or(low + (high - low) / 2);
        match helps(case, middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(draft(case.tables, high))
}

/// The most tasks of a queue that are thought away.
const TASKS_MAX: usize = 1_024;

/// All tasks of the queue and those below it, or of all queues.
fn of_queues(case: &Case<'_, '_>, queue: Option<QueueId>) -> Vec<TaskId> {
    let tables = &*case.tables;
    let queues = holders::within(tables, queue).into_iter();
    let gangs = queues.flat_map(|queue| &tables.queue(queue).gangs);
    let tasks = gangs.flat_map(|gang| &tables.gang(*gang).tasks);
    tasks.copied().collect()
}

/// Those of others that may end, the least important first, and of them those that hold most.
pub(super) fn least_important(
    case: &Case<'_, '_>,
    mut tasks: Vec<TaskId>,
    kind: Option<Kind>,
) -> Vec<TaskId> {
    let tables = &*case.tables;
    tasks.retain(|task| may_end(case, *task));
    let held = |task: TaskId| kind.map_or(0, |kind| tables.shape_of(task).held.get(kind));
    tasks.sort_by_key(|task| (tables.task(*task).priority, -held(*task), *task));
    tasks.truncate(TASKS_MAX);
    tasks
}

/// The most queues below the gang's own that are tried.
const LEAVES_MAX: usize = 8;

/// What would have to be otherwise of a queue that is not where work can be done.
pub(super) fn replaced(case: &Case<'_, '_>, queue: &str, why: &Misplaced) -> Vec<Draft> {
    let tables = &*case.tables;
    match why {
        Misplaced::AboveOthers => {
            let Some(id) = tables.queue_named(queue) else {
                return Vec::new();
            };
            let below = holders::below(tables, id).into_iter();
            let leaves = below.filter(|id| {
                let row = tables.queue(*id);
                // Below one that is closed none stays open.
                let is_open = row.spec.state == QueueState::Open;
                row.known
                    && row.children.is_empty()
                    && is_open
                    && closed_above(tables, row).is_empty()
            });
            let gang = &tables.gang(case.asked.gang).spec;
            let moved = leaves.take(LEAVES_MAX).map(|id| {
                let queue = tables.queue(id).spec.name.clone();
                let spec = GangSpec {
                    queue: queue.clone(),
                    ..gang.clone()
                };
                Draft {
                    remedy: Remedy::MoveToQueue { queue },
                    size: 1,
                    changes: vec![Change::PutGang(Box::new(spec))],
                }
            });
            moved.collect()
        }
        Misplaced::Astray { at, .. } => {
            let row = tables.queue_named(at).map(|id| tables.queue(id));
            let parent: Arc<str> = ROOT.into();
            let hung = row.filter(|row| row.known).map(|row| Draft {
                remedy: Remedy::HangQueue {
                    queue: at.clone(),
                    parent: parent.clone(),
                },
                size: 1,
                changes: vec![Change::PutQueue(Box::new(QueueSpec {
                    parent: Some(parent),
                    ..row.spec.clone()
                }))],
            });
            hung.into_iter().collect()
        }
    }
}
