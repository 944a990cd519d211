//! Decision log records: enough to find a decision again, and to see that a replay agrees.

use model::{Plan, Tick, Time};

/// One cycle in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The tables' revision at which it was decided.
    pub tick: Tick,
    /// The time that it was told.
    pub now: Time,
    /// What was decided.
    pub plan: Plan,
}

impl Record {
    /// The record of a cycle.
    pub fn of(plan: &Plan, now: Time) -> Record {
        Record {
            tick: plan.tick,
            now,
            plan: plan.clone(),
        }
    }

    /// Whether a replay came to the same decision.
    pub fn agrees(&self, other: &Record) -> bool {
        self == other
    }
}
