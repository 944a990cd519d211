//! What waits, by the time at which it is due.

use std::collections::BTreeSet;

use api::time::Time;

/// Whatever waits longer is due now.
pub(crate) fn hurry<T: Ord>(timers: &mut BTreeSet<(Time, T)>, now: Time) {
    let all = std::mem::take(timers).into_iter();
    *timers = all.map(|(at, what)| (at.min(now), what)).collect();
}
