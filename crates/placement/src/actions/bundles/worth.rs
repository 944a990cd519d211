//! What the end of a gang is worth to those who want its room: how much of what they need it frees, for all
//! that is lost by it.
//!
//! Source: chapter 3.4, gangpreempt and gangreclaim: freed for the need by what it costs altogether.

use std::cmp::Ordering;

use model::{GangId, Tables, TaskId, Vector};

use super::Progress;
use crate::plugins::millionths;

/// A fraction; the greater, the more is freed for what is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    freed: u128,
    lost: u128,
}

impl Worth {
    /// Of a gang that goes with all that it holds, for who wants room in that place.
    pub(super) fn of(tables: &Tables, gang: GangId, here: &Progress) -> Worth {
        let held = |task: &TaskId| &tables.shape_of(*task).held;
        let sum = |tasks: &[TaskId]| {
            let mut sum = Vector::ZERO;
            tasks.iter().for_each(|task| sum.add(held(task)));
            sum
        };
        let need = sum(here.wanted.first());
        let tasks = tables.gang(gang).tasks.iter().copied();
        let all: Vec<TaskId> = tasks
            .filter(|task| tables.task(*task).phase.is_allocated())
            .collect();
        let is_here = |task: &TaskId| {
            let node = tables.task(*task).node;
            node.is_some_and(|node| here.place.order.contains_key(&node))
        };
        let inside: Vec<TaskId> = all.iter().copied().filter(is_here).collect();
        let freed = sum(&inside).lower(&need);
        Worth {
            freed: parts_of(&freed, &need),
            lost: parts_of(&sum(&all), &need).max(1),
        }
    }

    pub(super) fn cmp(&self, other: &Worth) -> Ordering {
        let ours = self.freed.saturating_mul(other.lost);
        let theirs = other.freed.saturating_mul(self.lost);
        ours.cmp(&theirs)
    }
}

/// The sum, over all kinds of which some is needed, of how often the need goes into the amounts, in millionths.
fn parts_of(amounts: &Vector, need: &Vector) -> u128 {
    let kinds = need.entries().filter(|(_, need)| *need > 0);
    let parts = kinds.filter_map(|(kind, need)| millionths(amounts.get(kind).max(0), need));
    parts.filter_map(|part| u128::try_from(part).ok()).sum()
}
