//! Whether a fault strikes, and what is remembered of it.

use api::time::Time;

use super::World;
use crate::coverage::{Phase, Phases};
use crate::fault::Fault;
use crate::random::Random;

/// What is slow takes so long at most.
const SLOW_MS: i64 = 60_000;
/// So many times as often faults strike in the phase that a story is keen on.
pub(super) const KEEN: u64 = 10;

impl World {
    /// Whether faults may happen now.
    pub(super) fn is_stormy(&self) -> bool {
        let begins = self.settings.begins;
        let faults = &self.settings.faults;
        (begins.plus_ms(faults.from_ms)..begins.plus_ms(faults.until_ms)).contains(&self.now)
    }

    /// Whether a fault that happens once in so many times is to happen now. Where it then does,
    /// [`World::struck`] says so.
    pub(super) fn is_due(&mut self, fault: Fault) -> bool {
        let rate = self.settings.faults.rate(fault);
        if rate == 0 || !self.is_stormy() {
            return false;
        }
        let is_keen = self.is_keen() == Some(true);
        let rate = if is_keen { rate / KEEN } else { rate };
        self.chance(fault).once_in(rate.max(1))
    }

    /// Whether a fault that can happen at any time happens now.
    pub(super) fn strikes(&mut self, fault: Fault, what: &str) -> bool {
        let is_due = self.is_due(fault);
        if is_due {
            self.struck(fault, what);
        }
        is_due
    }

    /// Whether the system is in the phase in which more goes wrong; `None` where there is none.
    pub(super) fn is_keen(&self) -> Option<bool> {
        let phase = self.settings.faults.keen_on?;
        Some(self.phases().holds(phase))
    }

    fn phases(&self) -> Phases {
        let has_leader = self.replicas.iter().any(|it| it.may_write(self.now));
        let phases = self.witness.phases();
        phases.with(Phase::LeaderChange, (!has_leader).into())
    }

    /// A fault has happened.
    pub(super) fn struck(&mut self, fault: Fault, what: &str) {
        self.coverage.struck(fault, self.phases());
        self.note(&format!("FAULT {} {what}", fault.name()));
    }

    /// When something arrives that a fault may make take up to a minute longer.
    pub(super) fn later_or_slow(&mut self, fault: Fault) -> Time {
        let at = self.later();
        match self.strikes(fault, "") {
            true => at.plus_ms(self.draw_ms(fault, 1, SLOW_MS)),
            false => at,
        }
    }

    /// The generator of one fault.
    pub(super) fn chance(&mut self, fault: Fault) -> &mut Random {
        &mut self.chances[fault as usize]
    }

    /// One of so many, drawn for one fault: its number, counted from 0.
    pub(super) fn pick(&mut self, fault: Fault, count: usize) -> usize {
        let last = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1);
        usize::try_from(self.chance(fault).between(0, last)).unwrap_or(0)
    }

    /// So many milliseconds, drawn for one fault.
    pub(super) fn draw_ms(&mut self, fault: Fault, low: i64, high: i64) -> i64 {
        self.chance(fault).between(low, high)
    }
}
