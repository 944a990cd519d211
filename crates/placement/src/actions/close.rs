//! Allocate for gangs whose tasks must be close together, and for gangs within gangs: the lowest tier of
//! hyper-nodes that holds them, and in it the one that suits best.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Closeness, GangId, NodeId, QueueId, Reason, ShapeId, TaskId};

use crate::actions::allocate::{fail, finding, start, started};
use crate::actions::attempt::Attempt;
use crate::actions::promises::{promise_again, take_promises_back};
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::arguments::Switched;
use crate::cycle::{Cycle, Lacks, Outcome, Turn};
use crate::domains::{self, Scope};
use crate::parts::{Part, parts};

/// Places enough of the gang for it to start, or nothing of it.
pub(super) fn whole(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let promises = take_promises_back(cycle, gang);
    match in_some_domain(cycle, queue, gang, &promises) {
        Ok(turn) => turn,
        Err(reason) => {
            let outcome = Outcome::WaitsForObjects(Arc::new(reason));
            cycle.outcomes.insert(gang, outcome);
            Turn::Done
        }
    }
}

fn in_some_domain(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    promises: &[(TaskId, NodeId)],
) -> Result<Turn, Reason> {
    let mut tasks = waiting_tasks(cycle, gang, Asking::Something);
    tasks.extend(waiting_tasks(cycle, gang, Asking::Nothing));
    let row = cycle.trial.tables().gang(gang);
    let ready = cycle.trial.tables().ready(gang);
    let needed = row.spec.min_member.saturating_sub(ready);
    let whole_gang: Vec<TaskId> = row.tasks.iter().copied().collect();
    let closeness = row.spec.closeness.clone();
    let scopes = scopes(cycle, closeness.as_ref(), &whole_gang, &tasks, needed)?;
    let mark = cycle.trial.mark();
    let last = scopes.len() - 1;
    for (at, scope) in scopes.into_iter().enumerate() {
        // Where too few of them find room each for itself there is nothing to try, but for the last
        // one: what it lacks is told.
        if scope.is_hopeless && at < last {
            continue;
        }
        let has_started = cycle.within(scope.scope, |cycle| {
            let found = match cycle.trial.tables().gang(gang).spec.sub_groups.is_empty() {
                true => start(cycle, queue, gang, mark),
                false => start_in_parts(cycle, queue, gang),
            };
            match found {
                Ok(()) => return true,
                Err(attempt) if at == last => fail(cycle, gang, mark, *attempt, promises),
                Err(_) => cycle.trial.rewind(mark),
            }
            false
        });
        if has_started {
            return Ok(started(cycle, gang));
        }
    }
    if last > 0 {
        lacks_anywhere(cycle, gang, &tasks);
    }
    Ok(Turn::Done)
}

/// What is told of a gang is what it lacks in the last place of several. In another one it may lack something
/// else: room for any of its tasks may help.
fn lacks_anywhere(cycle: &mut Cycle<'_, '_>, gang: GangId, tasks: &[TaskId]) {
    let all = shapes(cycle, tasks);
    let Some(outcome) = cycle.outcomes.get_mut(&gang) else {
        return;
    };
    match outcome {
        Outcome::WaitsForRoom(_, lacks) => lacks.shapes.extend(all),
        Outcome::WaitsForShares(reason) => {
            let lacks = Lacks {
                shapes: all,
                shares: true,
                ..Lacks::default()
            };
            *outcome = Outcome::WaitsForRoom(reason.clone(), lacks);
        }
        _ => {}
    }
}

/// What the tasks ask for.
fn shapes(cycle: &Cycle<'_, '_>, tasks: &[TaskId]) -> BTreeSet<ShapeId> {
    let tables = cycle.trial.tables();
    tasks.iter().map(|task| tables.task(*task).shape).collect()
}

/// Places the next task, or the next part, of a gang that is whole already.
pub(super) fn one_more(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let promises = take_promises_back(cycle, gang);
    let found = next_in_some_domain(cycle, queue, gang);
    let promised = promise_again(cycle, &promises);
    let outcome = match found {
        Ok(attempt) if !attempt.places.is_empty() => {
            cycle.moved();
            return Turn::Again;
        }
        _ if promised > 0 => cycle.kept_for(gang, promised),
        Ok(attempt) => match attempt.said.or(attempt.shares.clone()) {
            Some(reason) => {
                let lacks = Lacks {
                    shapes: attempt.shapes,
                    shares: attempt.shares.is_some(),
                    ..Lacks::default()
                };
                Outcome::Extras(Arc::new(reason), lacks)
            }
            None => Outcome::Whole,
        },
        Err(reason) => Outcome::WaitsForObjects(Arc::new(reason)),
    };
    cycle.outcomes.insert(gang, outcome);
    Turn::Done
}

fn next_in_some_domain(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
) -> Result<Attempt, Reason> {
    let row = cycle.trial.tables().gang(gang);
    let all: Vec<TaskId> = row.tasks.iter().copied().collect();
    let closeness = row.spec.closeness.clone();
    let waiting = waiting_of(cycle, gang, &all);
    let mut attempt = Attempt::default();
    let scopes = scopes(cycle, closeness.as_ref(), &all, &waiting, 1)?;
    let is_choice = scopes.len() > 1;
    for outer in scopes {
        attempt = Attempt::default();
        for group in next_parts(cycle, gang) {
            cycle.within(outer.scope.clone(), |cycle| {
                group.place(cycle, queue, gang, &mut attempt);
            });
            if !attempt.places.is_empty() {
                return Ok(attempt);
            }
        }
    }
    if is_choice {
        attempt.shapes.extend(shapes(cycle, &waiting));
    }
    Ok(attempt)
}

/// Where to try, in order.
struct Place {
    scope: Option<Scope>,
    /// Whether fewer of the tasks find room there than are needed.
    is_hopeless: bool,
}

/// Where tasks that must be close together, some of which may have places, can be tried: at least one.
fn scopes(
    cycle: &mut Cycle<'_, '_>,
    closeness: Option<&Closeness>,
    all: &[TaskId],
    waiting: &[TaskId],
    needed: u32,
) -> Result<Vec<Place>, Reason> {
    let outer = cycle.scope.clone();
    let anywhere = |outer| {
        vec![Place {
            scope: outer,
            is_hopeless: false,
        }]
    };
    let Some(closeness) = closeness else {
        return Ok(anywhere(outer));
    };
    let view = cycle.view();
    let placed = domains::places(view, all.iter().copied());
    let allowed = domains::allowed(view, closeness, &placed, outer.as_ref())?;
    if allowed.is_empty() {
        return Ok(anywhere(outer));
    }
    let ranked = domains::ranked(cycle, allowed, waiting, needed);
    let place = |row: domains::Ranked| Place {
        is_hopeless: row.slots < needed,
        scope: Some(row.scope),
    };
    Ok(ranked.into_iter().map(place).collect())
}

/// Tries to place enough of a gang that is made of gangs: those that must start first, then the tasks
/// that belong to none, then the others, each of them whole.
fn start_in_parts(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
) -> Result<(), Box<Attempt>> {
    let mut attempt = Attempt::default();
    for part in in_order(cycle, gang) {
        if cycle.is_enough(gang) {
            break;
        }
        match part.is_loose {
            true => {
                for task in waiting_of(cycle, gang, &part.tasks) {
                    if cycle.is_enough(gang) {
                        break;
                    }
                    attempt.place(cycle, queue, task);
                }
            }
            false => part.place(cycle, queue, gang, &mut attempt),
        }
    }
    match cycle.is_enough(gang) {
        true => Ok(()),
        false => Err(Box::new(attempt)),
    }
}

/// A part that is to be placed, apart from the tables that it was read from.
pub(super) struct Group {
    /// Its tasks are placed one by one.
    pub(super) is_loose: bool,
    /// How many more of its tasks are placed together.
    pub(super) needed: u32,
    /// How many of these at least.
    least: u32,
    /// The highest priority of its tasks.
    priority: i32,
    /// How close together they must be.
    pub(super) closeness: Option<Closeness>,
    /// All of them.
    pub(super) tasks: Vec<TaskId>,
}

impl Group {
    fn of(cycle: &Cycle<'_, '_>, part: &Part<'_>) -> Group {
        let tables = cycle.trial.tables();
        let needed = match part.rules {
            Some(_) => part.size().saturating_sub(part.begun(tables)),
            None => 0,
        };
        let priorities = part.tasks.iter().map(|task| tables.task(*task).priority);
        Group {
            is_loose: part.rules.is_none(),
            needed,
            least: match cycle.view().config.bonds.parts {
                Switched::On => needed,
                Switched::Off => 1,
            },
            priority: priorities.max().unwrap_or(0),
            closeness: part.rules.and_then(|rules| rules.closeness.clone()),
            tasks: part.tasks.clone(),
        }
    }

    /// Places as many of its tasks as it needs, at least one, or none; what is lacking is added to the attempt.
    /// Where nobody looks at whether it is whole, fewer will do in the last place that is tried.
    fn place(
        &self,
        cycle: &mut Cycle<'_, '_>,
        queue: QueueId,
        gang: GangId,
        attempt: &mut Attempt,
    ) {
        let waiting = waiting_of(cycle, gang, &self.tasks);
        let closeness = self.closeness.as_ref();
        let scopes = match scopes(cycle, closeness, &self.tasks, &waiting, self.needed) {
            Ok(scopes) => scopes,
            Err(reason) => {
                attempt.said = attempt.said.take().or(Some(reason));
                return;
            }
        };
        let last = scopes.len() - 1;
        let needed = self.needed.max(1) as usize;
        let least = self.least.max(1) as usize;
        for (at, place) in scopes.into_iter().enumerate() {
            if place.is_hopeless && at < last {
                continue;
            }
            let mark = cycle.trial.mark();
            let places = cycle.within(place.scope, |cycle| {
                let mut one = Attempt::default();
                for task in &waiting {
                    if one.places.len() == needed {
                        break;
                    }
                    one.place(cycle, queue, *task);
                }
                let places = std::mem::take(&mut one.places);
                if at == last && places.len() < needed {
                    if last > 0 {
                        // In another place it may lack something else.
                        one.shapes.extend(shapes(cycle, &waiting));
                    }
                    attempt.lacks(cycle, gang, one, closeness.is_some());
                }
                places
            });
            if places.len() == needed || at == last && places.len() >= least {
                attempt.places.extend(places);
                break;
            }
            cycle.trial.rewind(mark);
        }
    }
}

impl Attempt {
    /// Takes over what a part of the gang lacked, which may have to be closer together than all of it, while it
    /// is still placed as far as it fits.
    fn lacks(&mut self, cycle: &mut Cycle<'_, '_>, gang: GangId, one: Attempt, is_closer: bool) {
        if let (Some(task), None) = (one.homeless.first(), &self.said) {
            let mut no_fit = finding(cycle, gang, *task);
            no_fit.is_of_part = is_closer;
            self.said = Some(Reason::NoFit(no_fit));
        }
        self.shapes.extend(one.shapes);
        self.homeless.extend(one.homeless);
        self.shares = self.shares.take().or(one.shares);
    }
}

/// Tasks of the list that wait for room, in order.
pub(super) fn waiting_of(cycle: &Cycle<'_, '_>, gang: GangId, tasks: &[TaskId]) -> Vec<TaskId> {
    let mut waiting = waiting_tasks(cycle, gang, Asking::Something);
    waiting.extend(waiting_tasks(cycle, gang, Asking::Nothing));
    waiting.retain(|task| tasks.binary_search(task).is_ok());
    waiting
}

/// The parts with tasks that wait, those first that only lack another task.
fn next_parts(cycle: &Cycle<'_, '_>, gang: GangId) -> Vec<Group> {
    let parts = parts(cycle.trial.tables(), gang);
    let mut groups: Vec<Group> = parts.iter().map(|part| Group::of(cycle, part)).collect();
    groups.retain(|group| !waiting_of(cycle, gang, &group.tasks).is_empty());
    sort_by_importance(cycle, &mut groups);
    groups.sort_by_key(|group| !group.is_loose && group.needed > 0);
    groups
}

/// Where the more important part comes first, those with a task of the highest priority do.
fn sort_by_importance(cycle: &Cycle<'_, '_>, groups: &mut [Group]) {
    if cycle.view().config.bonds.order == Switched::On {
        groups.sort_by_key(|group| std::cmp::Reverse(group.priority));
    }
}

/// The parts that are not whole yet: first as many of each rule as must start with the gang, then the
/// tasks of none, then the others; of each of these the more important first.
pub(super) fn in_order(cycle: &Cycle<'_, '_>, gang: GangId) -> Vec<Group> {
    let tables = cycle.trial.tables();
    let (mut first, mut loose, mut later) = (Vec::new(), Vec::new(), Vec::new());
    let parts = parts(tables, gang);
    for rule in &tables.gang(gang).spec.sub_groups {
        let is_of = |part: &&Part<'_>| part.rules.is_some_and(|other| std::ptr::eq(other, rule));
        let of_rule = || parts.iter().filter(is_of);
        let whole = of_rule().filter(|part| part.is_whole(tables)).count();
        let missing = (rule.min as usize).saturating_sub(whole);
        let open = of_rule().filter(|part| !part.is_whole(tables));
        let mut open: Vec<Group> = open.map(|part| Group::of(cycle, part)).collect();
        sort_by_importance(cycle, &mut open);
        let rest = open.split_off(missing.min(open.len()));
        first.extend(open);
        later.extend(rest);
    }
    sort_by_importance(cycle, &mut first);
    sort_by_importance(cycle, &mut later);
    for part in parts.iter().filter(|part| part.rules.is_none()) {
        loose.push(Group::of(cycle, part));
    }
    first.into_iter().chain(loose).chain(later).collect()
}
