//! All actions, sorted by name. The configuration says in which order they run.

pub(crate) mod allocate;
mod attempt;
mod backfill;
mod beyond;
pub(crate) mod bundles;
mod close;
mod drain;
mod enqueue;
pub(crate) mod extras;
mod gangpreempt;
mod gangreclaim;
mod gates;
mod pack;
pub(crate) mod preempt;
mod promises;
pub(crate) mod recall;
mod reclaim;
mod shuffle;
pub(crate) mod waiting;

use crate::plugin::Action;

/// All actions, sorted by name.
pub const ACTIONS: &[Action] = &[
    allocate::ACTION,
    backfill::ACTION,
    enqueue::ACTION,
    gangpreempt::ACTION,
    gangreclaim::ACTION,
    preempt::ACTION,
    reclaim::ACTION,
    shuffle::ACTION,
];

#[cfg(test)]
mod tests {
    #[test]
    fn actions_are_sorted() {
        assert!(super::ACTIONS.is_sorted_by_key(|action| action.name));
    }
}
