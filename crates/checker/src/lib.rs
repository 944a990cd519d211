//! The independent invariants: everything that must hold whatever was decided.
//!
//! What is here: each invariant recomputed from rows alone, slowly and plainly.
//!
//! What this room refuses to know: how anything is decided. It shares no code with the deciders and
//! trusts no sum that the tables keep.
//!
//! Its list: [`INVARIANTS`], I1 to I25, with those that cannot be asked yet marked as such.
//!
//! Its door: [`check`] for the tables at any moment between cycles, [`check_plan`] for a plan that was
//! just committed, [`digest`] for comparing two states.
//!
//! [`check_plan`] is always on: `driver` asks it after every cycle, counts what it finds
//! (`katmai_checker_violations_total`), says it as an error, and keeps back the writes that a
//! violation names. It looks at what the plan touches and at nothing else. [`check`] looks at
//! everything; tests and the simulator ask it after every cycle.
//!
//! Invariants:
//! - it changes nothing;
//! - a violation names the row and both numbers.

mod cards;
mod claims;
mod close;
mod counters;
mod digest;
mod invariants;
mod joint;
mod npus;
mod plans;
#[cfg(test)]
mod planted;
mod rooms;
mod rows;
mod sums;
mod volumes;

pub use digest::{describe, digest};
pub use invariants::{Applies, INVARIANTS, Invariant, not_yet};
pub use plans::{Waived, check_plan, check_plan_by, is_quiet};

use model::{Tables, WriteId};

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one: `I1` …
    pub invariant: &'static str,
    /// What is wrong, naming the row and both numbers.
    pub what: String,
    /// Writes of the plan that would carry it into the world; none where it is about the tables.
    pub writes: Vec<WriteId>,
}

impl Violation {
    fn of(invariant: &'static str, what: String) -> Violation {
        Violation {
            invariant,
            what,
            writes: Vec::new(),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// Everything that is wrong with the tables between two cycles.
pub fn check(tables: &Tables) -> Vec<Violation> {
    let mut found = Vec::new();
    sums::nodes(tables, &mut found);
    cards::nodes(tables, &mut found);
    counters::nodes(tables, &mut found);
    sums::queues(tables, &mut found);
    sums::groups(tables, &mut found);
    sums::classes(tables, &mut found);
    volumes::tasks(tables, &mut found);
    rows::tasks(tables, &mut found);
    rows::gangs(tables, &mut found);
    found
}
