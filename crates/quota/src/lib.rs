//! Kueue's rule book: who is let in, from which flavor, on whose account.
//!
//! What will be here: pools and cohorts with their borrowing and lending limits, flavor choice,
//! preemption within and between pools, fair sharing, and topology requests, all on the same
//! [`model::Trial`] that places tasks.
//!
//! What this room refuses to know: the placement rules (`engine` composes the two), the API, the
//! clock.
//!
//! Its list is empty: no quota rule exists yet, so every gang is let in by Volcano's queues alone.
//!
//! Its door: [`admit`], which `engine` calls on each cycle's trial before the placement actions.
//!
//! Invariants:
//! - a charge is made on a trial, and never outlives one that is dropped;
//! - a gang that is not admitted counts in no queue's demand.

use std::collections::BTreeSet;

use model::{GangId, Trial};

/// Lets gangs in that belong to a pool, on the trial, and returns those that may be placed.
///
/// There are no pools yet, so all of them may.
pub fn admit(_trial: &mut Trial<'_>, gangs: BTreeSet<GangId>) -> BTreeSet<GangId> {
    gangs
}
