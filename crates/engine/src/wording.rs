//! When tasks of a gang that wait are told the same reason in other words.
//!
//! What is said of a reason has numbers in it, which move with everything that happens in a cluster: a gang
//! of a thousand tasks that waits for a busy one would cost a thousand writes for each. A new reason is told
//! at once; mere words wait for each other, a second at first and twice as long each time, up to a minute.

use std::collections::BTreeMap;

use model::{GangId, Time};

/// Before the first other words, in milliseconds.
const FIRST_MS: i64 = 1_000;
/// Never longer than this, in milliseconds.
const MOST_MS: i64 = 60_000;
/// Fewer gangs than these are not swept for such as have gone.
const SWEEP_MIN: usize = 1_024;

/// When tasks of each gang were last told why they wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wordings {
    told: BTreeMap<GangId, Told>,
    /// Gangs of which other words wait.
    due: BTreeMap<GangId, Time>,
    /// Of how many gangs the last sweep knew.
    swept: usize,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    at: Time,
    wait_ms: i64,
}

impl Wordings {
    /// Whether other words may be told now.
    pub(crate) fn may_tell(&self, gang: GangId, now: Time) -> bool {
        let Some(told) = self.told.get(&gang) else {
            return true;
        };
        // What was told in a time to come was told before the clock was set back.
        told.at > now || told.at.plus_millis(told.wait_ms) <= now
    }

    /// Tasks were told a new reason.
    pub(crate) fn told(&mut self, gang: GangId, now: Time) {
        let wait_ms = self.told.get(&gang).map_or(FIRST_MS, |told| told.wait_ms);
        self.told.insert(gang, Told { at: now, wait_ms });
    }

    /// Tasks were told other words.
    pub(crate) fn reworded(&mut self, gang: GangId, now: Time) {
        let wait_ms = self
            .told
            .get(&gang)
            .map_or(FIRST_MS, |told| told.wait_ms.saturating_mul(2).min(MOST_MS));
        self.told.insert(gang, Told { at: now, wait_ms });
    }

    /// Other words wait, or none do.
    pub(crate) fn wait(&mut self, gang: GangId, waits: Waits) {
        let told = self.told.get(&gang);
        match told.filter(|_| waits == Waits::Yes) {
            Some(told) => self.due.insert(gang, told.at.plus_millis(told.wait_ms)),
            None => self.due.remove(&gang),
        };
    }

    /// Gangs whose words have waited long enough.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = GangId> {
        let due = self.due.iter().filter(move |(_, at)| **at <= now);
        due.map(|(gang, _)| *gang)
    }

    /// Forgets those whose time has come, and all gangs but some; those that were told something only
    /// now and then, for they may be many.
    pub(crate) fn keep(&mut self, now: Time, is_kept: impl Fn(GangId) -> bool) {
        self.due.retain(|gang, at| *at > now && is_kept(*gang));
        if self.told.len() > self.swept.saturating_mul(2).max(SWEEP_MIN) {
            self.told.retain(|gang, _| is_kept(*gang));
            self.swept = self.told.len();
        }
    }

    /// Whatever waits for its time is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        for at in self.due.values_mut() {
            *at = now.min(*at);
        }
        for told in self.told.values_mut() {
            told.at = told.at.min(now.plus_millis(-told.wait_ms));
        }
    }

    /// When the next words have waited long enough.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.due.values().min().copied()
    }
}

/// Whether other words wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Some do.
    Yes,
    /// None do.
    No,
}
