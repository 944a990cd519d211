//! Allocate: places tasks of gangs that were let in. A gang below its minimum is placed whole or not
//! at all; beyond it, gangs take turns one task at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    GangId, GangPhase, Mark, NoFit, NodeId, Phase, QueueId, Reason, ShapeId, Tables, TaskId,
};

use crate::actions::attempt::Attempt;
use crate::actions::extras::one_more;
use crate::actions::promises::{
    give_back, keep_promises, promise, promise_again, take_promises_back,
};
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::actions::{beyond, close, drain, enqueue, gates, pack};
use crate::coupling;
use crate::cycle::{Cycle, Lacks, Outcome, Placed, Refused, Turn};
use crate::diagnosis;
use crate::parts;
use crate::plugin::Action;
use crate::plugins::{OfRoles, is_beyond_the_start, missing, ready_without_promises};
use crate::rules::is_free;
use crate::settings::Difference;

/// The row.
pub const ACTION: Action = Action {
    name: "allocate",
    evicts: false,
    configure: None,
    run,
};

fn run(cycle: &mut Cycle<'_, '_>) {
    let mut eligible = eligible(cycle);
    if cycle.rules.is_as_upstream(Difference::KeptPromises) {
        let_go(cycle, &eligible);
    }
    // A gang that is bound in part, because a bind of it was refused or whoever bound it died, holds
    // room for nothing: the rest of it comes before anybody else's start.
    let mut begun = match cycle.rules.is_as_upstream(Difference::UsableRoom) {
        true => Vec::new(),
        false => eligible.clone(),
    };
    begun.retain(|(_, gang)| is_begun(cycle.trial.tables(), *gang));
    let mut starved = drain::first(cycle, &eligible);
    starved.retain(|row| !begun.contains(row));
    drain::give_way(cycle, &eligible, &starved);
    cycle.take_turns(begun.iter().copied(), |cycle, queue, gang| {
        turn(cycle, queue, gang);
        Turn::Done
    });
    cycle.take_turns(starved.iter().copied(), |cycle, queue, gang| {
        turn(cycle, queue, gang);
        Turn::Done
    });
    begun.extend(starved);
    eligible.retain(|row| !begun.contains(row) || cycle.is_enough(row.1));
    cycle.take_turns(eligible, turn);
}

/// What was promised is anybody's again, as with the end of upstream's session; but for room that is kept
/// for those who waited too long, which upstream does not know.
fn let_go(cycle: &mut Cycle<'_, '_>, eligible: &[(QueueId, GangId)]) {
    for (_, gang) in eligible {
        if !cycle.view().tables.is_kept_room(*gang) {
            take_promises_back(cycle, *gang);
        }
    }
}

fn is_begun(tables: &Tables, gang: GangId) -> bool {
    tables.gang(gang).allocated_count() > 0 && !ready_without_promises(tables, gang)
}

fn turn(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let closed = gates::open(cycle, queue, gang);
    let next = place(cycle, queue, gang);
    if let (Some(reason), Turn::Done) = (closed, next) {
        gates::tell(cycle, gang, reason);
    }
    next
}

fn place(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let overused = overused(cycle, queue, gang);
    let view = cycle.view();
    let passed_over =
        overused.filter(|_| !drain::is_overdue(view, gang) && has_requests(view.tables, gang));
    if let Some(reason) = passed_over {
        let reason = Arc::new(reason);
        give_back(cycle, gang);
        // A gang that had turns before keeps what they brought.
        let outcome = if cycle.is_enough(gang) {
            Outcome::Extras(reason, Lacks::default())
        } else {
            Outcome::WaitsForShares(reason)
        };
        cycle.outcomes.insert(gang, outcome);
        return Turn::Done;
    }
    // Tasks that request nothing are placed here, too, where they must be close together.
    if parts::are_asked_for(view.tables, gang) {
        return match cycle.is_enough(gang) {
            true => close::one_more(cycle, queue, gang),
            false => close::whole(cycle, queue, gang),
        };
    }
    // Tasks that request nothing and have no place yet start nobody: while others wait as well, all that it
    // takes is placed together. Alone they are backfill's.
    let may_start = ready_without_promises(view.tables, gang) || !has_requests(view.tables, gang);
    match may_start && cycle.rules.job_ready(view, gang) {
        true => one_more(cycle, queue, gang),
        false => whole(cycle, queue, gang),
    }
}

/// Why nothing is placed for the queue now. What the gang itself is promised does not speak against it: it
/// was within the queue's share when it was promised, and is charged already.
fn overused(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Reason> {
    let said = cycle.rules.overused(cycle.view(), queue)?;
    if cycle.trial.tables().gang(gang).count(Phase::Pipelined) == 0 {
        return Some(said);
    }
    let mark = cycle.trial.mark();
    take_promises_back(cycle, gang);
    let said = cycle.rules.overused(cycle.view(), queue);
    cycle.trial.rewind(mark);
    said
}

/// Gangs that were let in and are valid; the others get their reason, and what they were promised is anybody's
/// again. Without the action that lets gangs in each is let in here: its pods may not be made before.
pub(super) fn eligible(cycle: &mut Cycle<'_, '_>) -> Vec<(QueueId, GangId)> {
    let enqueue = cycle.rules.has_action("enqueue");
    if !enqueue {
        enqueue::all_enter(cycle);
    }
    let mut eligible = Vec::new();
    let (mut refused, mut outside) = (Vec::new(), Vec::new());
    let view = cycle.view();
    for id in &cycle.gangs {
        let Some(gang) = view.tables.find_gang(*id).filter(|gang| gang.known) else {
            continue;
        };
        // Enqueue has said why, or whose pods could never have their slots stays out without it.
        let is_refused = cycle.outcomes.contains_key(id);
        if gang.phase() == GangPhase::Pending && (enqueue || is_refused) {
            outside.extend(Some(*id).filter(|_| is_refused && gang.count(Phase::Pipelined) > 0));
            continue;
        }
        let is_idle = enqueue::is_idle(gang);
        let is_there = |queue: &QueueId| view.tables.queue(*queue).known || is_free(view, *queue);
        let Some(queue) = gang.queue.filter(is_there) else {
            // A queue that is gone is no news to tasks that have their places.
            if !is_idle {
                let queue = gang.spec.queue.clone();
                refused.push((*id, Arc::new(Reason::QueueMissing { queue })));
            }
            continue;
        };
        // Nothing wants room, and nothing is missing: also a gang whose tasks are all over.
        if is_idle && cycle.rules.job_ready(view, *id) {
            continue;
        }
        match cycle.rules.job_valid(view, *id) {
            Some(reason) => refused.push((*id, Arc::new(reason))),
            None => eligible.push((queue, *id)),
        }
    }
    for id in outside {
        give_back(cycle, id);
    }
    for (id, reason) in refused {
        // Who has a pod on its way out may lack no more than the one that follows it.
        if cycle.trial.tables().gang(id).count(Phase::Releasing) == 0 {
            give_back(cycle, id);
        }
        // A gang that was let in a moment ago has no tasks yet, which is no news.
        if !matches!(cycle.outcomes.get(&id), Some(Outcome::Entered)) {
            cycle.outcomes.insert(id, Outcome::WaitsForObjects(reason));
        }
    }
    eligible
}

fn has_requests(tables: &Tables, gang: GangId) -> bool {
    tables.gang(gang).tasks.iter().any(|id| {
        let task = tables.task(*id);
        task.phase.is_waiting() && !task.gated && !task.best_effort
    })
}

/// Why a task was not placed.
pub(super) enum Obstacle {
    Room(ShapeId),
    Share(Box<Reason>),
}

pub(super) fn try_task(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    task: TaskId,
) -> Result<NodeId, Obstacle> {
    let view = cycle.view();
    if let Some(reason) = cycle.rules.allocatable(view, queue, task) {
        return Err(Obstacle::Share(Box::new(reason)));
    }
    let shape = view.tables.task(task).shape;
    let node = cycle.best_node(task).ok_or(Obstacle::Room(shape))?;
    cycle.place(task, node);
    Ok(node)
}

pub(super) fn finding(cycle: &mut Cycle<'_, '_>, gang: GangId, task: TaskId) -> Box<NoFit> {
    let row = cycle.trial.tables().gang(gang);
    let all = u32::try_from(row.tasks.len()).unwrap_or(u32::MAX);
    let fits = cycle.trial.tables().ready(gang);
    diagnosis::no_fit(cycle, task, fits, all)
}

/// Places enough of a gang for it to start, or nothing of it.
fn whole(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let holds_in_part = cycle.rules.holds_in_part(cycle.view(), gang);
    let beyond = beyond::outcome(cycle, queue, gang).filter(|_| !holds_in_part);
    if let Some(outcome) = beyond {
        cycle.outcomes.insert(gang, outcome);
        return Turn::Done;
    }
    let promises = take_promises_back(cycle, gang);
    let known = known_to_fail(cycle, queue, gang);
    let tries = holds_in_part || drain::is_overdue(cycle.view(), gang);
    if let Some(reason) = known.filter(|_| !tries) {
        cycle.outcomes.insert(gang, reason);
        return Turn::Done;
    }
    let mark = cycle.trial.mark();
    match start(cycle, queue, gang, mark) {
        Ok(()) => started(cycle, gang),
        Err(attempt) => {
            fail(cycle, gang, mark, *attempt, &promises);
            Turn::Done
        }
    }
}

/// Tries to place enough of a gang for it to start; else what was placed stays, and what was not is
/// told.
pub(super) fn start(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    mark: Mark,
) -> Result<(), Box<Attempt>> {
    let mut attempt = Attempt::default();
    attempt.gather(cycle, queue, gang);
    for asking in [Asking::Something, Asking::Nothing] {
        if cycle.is_enough(gang) {
            break;
        }
        let is_close = parts::are_asked_for(cycle.trial.tables(), gang);
        if asking == Asking::Nothing && attempt.places.is_empty() && !is_close {
            // A gang of which nothing requests anything is backfill's.
            break;
        }
        for task in waiting_tasks(cycle, gang, asking) {
            if cycle.is_enough(gang) {
                break;
            }
            let tables = cycle.trial.tables();
            if !is_beyond_the_start(tables, gang, tables.task(task)) {
                attempt.place(cycle, queue, task);
            }
        }
    }
    if cycle.is_enough(gang) {
        return Ok(());
    }
    if pack::is_worth_a_try(cycle, gang, &attempt.places) {
        cycle.trial.rewind(mark);
        if pack::pack(cycle, queue, gang) {
            return Ok(());
        }
        // What the plain try left tells what is missing. Room for any of its tasks may help: one that
        // found a place may leave it to another.
        for (task, node) in &attempt.places {
            cycle.place(*task, *node);
            let shape = cycle.trial.tables().task(*task).shape;
            attempt.shapes.insert(shape);
        }
    }
    Err(Box::new(attempt))
}

/// Says what a gang waits for that an attempt left without a start, and takes the attempt back.
pub(super) fn fail(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    mark: Mark,
    attempt: Attempt,
    promises: &[(TaskId, NodeId)],
) {
    if attempt.is_empty() && waiting_tasks(cycle, gang, Asking::Something).is_empty() {
        gated_or_backfill(cycle, gang);
        return;
    }
    let outcome = waits(cycle, gang, mark, attempt, promises);
    cycle.outcomes.insert(gang, outcome);
}

/// What a gang that cannot start now waits for: what it was promised before, else what can be promised,
/// else nothing that anybody has.
fn waits(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    mark: Mark,
    attempt: Attempt,
    promises: &[(TaskId, NodeId)],
) -> Outcome {
    let as_tried: Vec<(TaskId, NodeId)> = attempt.places.clone();
    if !promises.is_empty() && !cycle.view().tables.is_kept_room(gang) {
        cycle.trial.rewind(mark);
        if let Some(outcome) = keep_promises(cycle, gang, promises) {
            return outcome;
        }
        for (task, node) in &as_tried {
            cycle.place(*task, *node);
        }
    }
    match promise(cycle, gang, mark, &attempt) {
        Ok(outcome) => outcome,
        Err(later) => {
            let attempt = Attempt { later, ..attempt };
            let outcome = give_up(cycle, gang, attempt);
            cycle.trial.rewind(mark);
            if cycle.rules.holds_in_part(cycle.view(), gang) && promise_again(cycle, &as_tried) > 0
            {
                cycle.moved();
                return outcome;
            }
            match outcome {
                Outcome::WaitsForRoom(..) | Outcome::WaitsForShares(_) => {
                    drain::keep(cycle, gang, outcome)
                }
                other => other,
            }
        }
    }
}

pub(super) fn started(cycle: &mut Cycle<'_, '_>, gang: GangId) -> Turn {
    cycle.moved();
    cycle.outcomes.insert(gang, Outcome::Whole);
    match cycle.trial.tables().gang(gang).count(Phase::Pending) {
        0 => Turn::Done,
        _ => Turn::Again,
    }
}

fn gated_or_backfill(cycle: &mut Cycle<'_, '_>, gang: GangId) {
    let tables = cycle.trial.tables();
    let tasks = tables.gang(gang).tasks.iter().map(|id| tables.task(*id));
    let gated = tasks
        .filter(|task| task.gated && task.phase == Phase::Pending)
        .count();
    if gated > 0 {
        let reason = Reason::Gated {
            tasks: u32::try_from(gated).unwrap_or(u32::MAX),
        };
        cycle
            .outcomes
            .insert(gang, Outcome::WaitsForObjects(Arc::new(reason)));
    }
}

/// Why a gang does not start of which enough is placed.
fn unready(cycle: &Cycle<'_, '_>, gang: GangId) -> Option<Reason> {
    let is_whole = ready_without_promises(cycle.trial.tables(), gang);
    let reason = cycle.rules.unready(cycle.view(), gang);
    reason.filter(|_| is_whole)
}

/// The reason of a gang that cannot start, found while its tasks that fit are still placed.
fn give_up(cycle: &mut Cycle<'_, '_>, gang: GangId, mut attempt: Attempt) -> Outcome {
    if let Some(reason) = attempt.said.take() {
        let reason = Arc::new(reason);
        return match *reason {
            // Another part of it may wait for room all the same.
            Reason::NoHyperNode { .. } if attempt.shapes.is_empty() && attempt.shares.is_none() => {
                Outcome::WaitsForObjects(reason)
            }
            _ => Outcome::WaitsForRoom(reason, attempt.into_lacks()),
        };
    }
    if let Some(reason) = unready(cycle, gang) {
        return match attempt.shapes.is_empty() {
            true => Outcome::WaitsForShares(Arc::new(reason)),
            false => Outcome::WaitsForRoom(Arc::new(reason), attempt.into_lacks()),
        };
    }
    let row = cycle.trial.tables().gang(gang);
    let fits = cycle.trial.tables().ready(gang);
    let all = u32::try_from(row.tasks.len()).unwrap_or(u32::MAX);
    // More tasks than the minimum may fit and the gang still not start, where a role or a part of it is short.
    let tasks = missing(cycle.trial.tables(), gang);
    let wanted = if tasks == 0 { all } else { fits + tasks };
    let Some(task) = attempt.homeless.first().copied() else {
        let reason = attempt.shares.unwrap_or(Reason::Gated { tasks });
        return match reason {
            Reason::Gated { .. } | Reason::QueueNotOpen { .. } => {
                Outcome::WaitsForObjects(Arc::new(reason))
            }
            reason => Outcome::WaitsForShares(Arc::new(reason)),
        };
    };
    let placed = u32::try_from(attempt.places.len()).unwrap_or(u32::MAX);
    let no_fit = diagnosis::no_fit(cycle, task, fits, wanted);
    let tables = cycle.trial.tables();
    let shape = tables.task(task).shape;
    let is_tied = |task: &TaskId| tables.task(*task).is_tied();
    let one_shape = attempt
        .places
        .iter()
        .all(|(t, _)| tables.task(*t).shape == shape)
        && attempt
            .homeless
            .iter()
            .all(|t| tables.task(*t).shape == shape);
    if one_shape
        && !is_tied(&task)
        && attempt.shares.is_none()
        && cycle.scope.is_none()
        && !coupling::concerns(cycle.view(), task)
    {
        let known = Refused {
            fits: placed,
            later: attempt.later.max(placed),
            no_fit: no_fit.clone(),
        };
        let asker = cycle.rules.asker(cycle.view(), task);
        cycle.refused.insert(asker, known);
    }
    let reason = Arc::new(Reason::NoFit(no_fit));
    Outcome::WaitsForRoom(reason, attempt.into_lacks())
}

/// A gang of one shape cannot start where one of the same shape, wanting no more, just failed.
fn known_to_fail(cycle: &Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Outcome> {
    if cycle.refused.is_empty() {
        return None;
    }
    let tasks = waiting_tasks(cycle, gang, Asking::Something);
    let view = cycle.view();
    let shape = view.tables.task(*tasks.first()?).shape;
    let known = cycle
        .refused
        .get(&cycle.rules.asker(view, *tasks.first()?))?;
    let row = view.tables.gang(gang);
    let ready = view.tables.ready(gang);
    let needed = row.spec.min_member.saturating_sub(ready);
    // Where only some of a role are wanted others than the first ones are tried.
    let is_choice = needed as usize != tasks.len() && OfRoles::of(view.tables, gang).is_some();
    let task = *tasks.get(known.fits as usize).filter(|_| !is_choice)?;
    let mut before = None;
    let alike = tasks.iter().all(|id| {
        let row = view.tables.task(*id);
        let is_known = before
            .replace(row)
            .is_some_and(|other| row.counts_like(other));
        row.shape == shape
            && !row.is_tied()
            && (is_known || cycle.rules.allocatable(view, queue, *id).is_none())
    });
    if needed <= known.later || !alike || coupling::concerns(view, task) {
        return None;
    }
    let fits = ready + known.fits;
    let no_fit = diagnosis::retold(view, &known.no_fit, task, fits, row.spec.min_member);
    let lacks = Lacks {
        shapes: BTreeSet::from([shape]),
        shares: false,
        placed: Placed::These(tasks[..known.fits as usize].to_vec()),
    };
    Some(Outcome::WaitsForRoom(
        Arc::new(Reason::NoFit(no_fit)),
        lacks,
    ))
}
