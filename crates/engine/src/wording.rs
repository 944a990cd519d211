//! When a gang that waits, and its tasks, are told the same in other words.
//!
//! What is said of a reason has numbers in it, which move with everything that happens in a cluster, and two
//! reasons may well take turns: a gang of a thousand tasks that waits for a busy one would cost a thousand
//! writes for each change. A reason that the gang has not had since it began to wait is told at once;
//! whatever else there is to tell waits, a second at first and twice as long each time, up to five minutes,
//! or half a minute where it is a reason of another kind than the last.

use std::collections::BTreeMap;

use model::{GangId, Reason, Time};

/// Before the first other words, in milliseconds.
const FIRST_MS: i64 = 1_000;
/// Never longer than this, in milliseconds.
const MOST_MS: i64 = 300_000;
/// Nor is a reason of another kind told later than this after the last.
const OTHER_KIND_MS: i64 = 30_000;
/// Fewer gangs than these are not swept for such as have gone.
const SWEEP_MIN: usize = 1_024;

/// What gangs that wait were told, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wordings {
    told: BTreeMap<GangId, Told>,
    /// Gangs of which other words for their tasks wait.
    due: BTreeMap<GangId, Time>,
    /// Of how many gangs the last sweep knew.
    swept: usize,
}

#[derive(Clone, Debug)]
struct Told {
    at: Time,
    wait_ms: i64,
    /// Kinds of reasons that were told since the gang began to wait; the one of the last is the last.
    codes: Vec<&'static str>,
}

impl Told {
    /// Until when a reason waits that is not new.
    fn until(&self, reason: &Reason) -> Time {
        let wait_ms = match self.codes.last() {
            Some(last) if *last == reason.code() => self.wait_ms,
            _ => self.wait_ms.min(OTHER_KIND_MS),
        };
        self.at.plus_millis(wait_ms)
    }
}

impl Wordings {
    /// Whether a gang that waits has not been told of this kind of reason yet.
    pub(crate) fn is_new(&self, gang: GangId, reason: &Reason) -> bool {
        let told = self.told.get(&gang);
        told.is_none_or(|told| !told.codes.contains(&reason.code()))
    }

    /// Until when a reason that is not new waits, if it does.
    pub(crate) fn rests_until(&self, gang: GangId, reason: &Reason, now: Time) -> Option<Time> {
        let told = self.told.get(&gang)?;
        let until = told.until(reason);
        // What was told in a time to come was told before the clock was set back.
        (told.at <= now && until > now).then_some(until)
    }

    /// A gang or its tasks were told a reason: a new one, or other words for what they knew.
    pub(crate) fn told(&mut self, gang: GangId, reason: &Reason, now: Time) {
        let code = reason.code();
        let Some(told) = self.told.get_mut(&gang) else {
            let (at, wait_ms, codes) = (now, FIRST_MS, vec![code]);
            self.told.insert(gang, Told { at, wait_ms, codes });
            return;
        };
        let known = told.codes.iter().position(|it| *it == code);
        if known.is_some() && told.at != now {
            told.wait_ms = told.wait_ms.saturating_mul(2).min(MOST_MS);
        }
        if let Some(at) = known {
            told.codes.remove(at);
        }
        told.codes.push(code);
        told.at = now;
    }

    /// The gang waits no more: what it is told next is new.
    pub(crate) fn forget(&mut self, gang: GangId) {
        self.told.remove(&gang);
        self.due.remove(&gang);
    }

    /// Other words for tasks wait, or none do.
    pub(crate) fn wait(&mut self, gang: GangId, reason: &Reason, waits: Waits) {
        let told = self.told.get(&gang);
        match told.filter(|_| waits == Waits::Yes) {
            Some(told) => self.due.insert(gang, told.until(reason)),
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
