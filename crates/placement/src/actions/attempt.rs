//! One try at tasks of a gang: what found a place, what did not and why.

use std::collections::BTreeSet;

use model::{GangId, NodeId, QueueId, Reason, ShapeId, TaskId};

use super::allocate::{Obstacle, try_task};
use super::waiting::{Asking, waiting_tasks};
use crate::coupling::{self, Lot};
use crate::cycle::{Cycle, Lacks, Placed};
use crate::plugin::Room;
use crate::together::{self, Home};

/// Lots of which one task found no room, so that the others need not be tried. A task whose claim is at
/// home on a node says nothing about others, nor they about it: it goes there or nowhere.
#[derive(Default)]
pub(super) struct Hopeless(BTreeSet<Lot>);

impl Hopeless {
    pub(super) fn has(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
        let tables = cycle.trial.tables();
        !self.0.is_empty()
            && self.0.contains(&coupling::lot(tables, task))
            && together::home(tables, task, Room::Now) == Home::Anywhere
    }

    pub(super) fn add(&mut self, cycle: &Cycle<'_, '_>, task: TaskId) {
        let tables = cycle.trial.tables();
        if together::home(tables, task, Room::Now) == Home::Anywhere {
            self.0.insert(coupling::lot(tables, task));
        }
    }
}

/// One try at a whole gang.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) places: Vec<(TaskId, NodeId)>,
    pub(super) homeless: Vec<TaskId>,
    pub(super) shapes: BTreeSet<ShapeId>,
    pub(super) hopeless: Hopeless,
    pub(super) shares: Option<Reason>,
    /// What is to be told, where it is known already.
    pub(super) said: Option<Reason>,
    /// How many tasks would have a place once those on their way out are gone.
    pub(super) later: u32,
}

impl Attempt {
    /// What it says of the gang's tasks: which lack what, and which do not.
    pub(super) fn into_lacks(self) -> Lacks {
        let placed = self.places.into_iter().map(|(task, _)| task);
        Lacks {
            shapes: self.shapes,
            shares: self.shares.is_some(),
            placed: Placed::These(placed.collect()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
            && self.homeless.is_empty()
            && self.shares.is_none()
            && self.said.is_none()
    }

    /// Sends the first task of each group that shares a claim to the node where most of the group
    /// finds room; the others have to follow.
    pub(super) fn gather(&mut self, cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) {
        let tables = cycle.trial.tables();
        let has_claims = |task: &TaskId| !tables.task(*task).claims.is_empty();
        if !tables.gang(gang).tasks.iter().any(has_claims) {
            return;
        }
        let mut waiting = waiting_tasks(cycle, gang, Asking::Something);
        if waiting.is_empty() {
            // A gang of which nothing requests anything is backfill's.
            return;
        }
        waiting.extend(waiting_tasks(cycle, gang, Asking::Nothing));
        for group in together::groups(cycle.trial.tables(), &waiting) {
            if cycle.is_enough(gang) {
                return;
            }
            let (Some(task), Some(node)) = (group.first(), together::meet(cycle, &group)) else {
                continue;
            };
            match cycle.rules.allocatable(cycle.view(), queue, *task) {
                Some(reason) => self.shares = self.shares.take().or(Some(reason)),
                None => {
                    cycle.place(*task, node);
                    self.places.push((*task, node));
                }
            }
        }
    }

    pub(super) fn place(&mut self, cycle: &mut Cycle<'_, '_>, queue: QueueId, task: TaskId) {
        if self.hopeless.has(cycle, task) {
            self.homeless.push(task);
            return;
        }
        match try_task(cycle, queue, task) {
            Ok(node) => self.places.push((task, node)),
            Err(Obstacle::Share(reason)) => self.shares = self.shares.take().or(Some(*reason)),
            Err(Obstacle::Room(shape)) => {
                self.shapes.insert(shape);
                self.hopeless.add(cycle, task);
                self.homeless.push(task);
            }
        }
    }
}
