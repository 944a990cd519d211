//! Extras: tasks beyond those with which a gang starts, one in each of its turns.

use std::sync::Arc;

use model::{GangId, Phase, QueueId, Reason, TaskId};

use super::allocate::{Obstacle, finding, try_task};
use super::attempt::Hopeless;
use super::promises::{promise_again, take_promises_back};
use super::waiting::{Asking, waiting_tasks};
use crate::cycle::{Cycle, Lacks, Outcome, Turn};

/// What is told of the first task that was not placed.
enum First {
    Said(Reason),
    /// What nodes say, who are asked when nobody else was placed.
    NoRoom(TaskId),
}

/// Places the next task of a gang that is whole already.
pub(super) fn one_more(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Turn {
    let mut lacks = Lacks::default();
    let mut first: Option<First> = None;
    let promises = take_promises_back(cycle, gang);
    let mut hopeless = Hopeless::default();
    let mut line = match cycle.lines.remove(&gang) {
        Some(line) => line,
        None => waiting_tasks(cycle, gang, Asking::Something).into(),
    };
    for at in 0..line.len() {
        let task = line[at];
        let waits = cycle.trial.tables().task(task).phase == Phase::Pending;
        if !waits || hopeless.has(cycle, task) {
            continue;
        }
        match try_task(cycle, queue, task) {
            Ok(_) => {
                line.remove(at);
                cycle.lines.insert(gang, line);
                cycle.moved();
                promise_again(cycle, &promises);
                return Turn::Again;
            }
            Err(Obstacle::Share(reason)) => {
                lacks.shares = true;
                first = first.or(Some(First::Said(*reason)));
            }
            Err(Obstacle::Room(shape)) => {
                lacks.shapes.insert(shape);
                hopeless.add(cycle, task);
                first = first.or(Some(First::NoRoom(task)));
            }
        }
    }
    let first = first.map(|first| match first {
        First::Said(reason) => reason,
        First::NoRoom(task) => Reason::NoFit(finding(cycle, gang, task)),
    });
    let first = match promise_again(cycle, &promises) {
        0 => first,
        tasks => Some(Reason::WaitsForRelease { tasks }),
    };
    let outcome = match first {
        Some(reason) => Outcome::Extras(Arc::new(reason), lacks),
        None => Outcome::Whole,
    };
    cycle.outcomes.insert(gang, outcome);
    Turn::Done
}
