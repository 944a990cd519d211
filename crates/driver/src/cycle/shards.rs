//! What our shard is told: which nodes are in use. One write at a time, and again when one fails.

use api::intent::Intent;
use api::time::Time;
use mirror::Mirror;

use super::Cycles;
use crate::backoff::Backoff;
use crate::work::Ended;
use crate::writes::{Lane, Origin, Over, Writes};

/// How far the telling is.
#[derive(Debug, Default)]
pub(super) struct Telling {
    is_on_its_way: bool,
    failures: u32,
    again_at: Option<Time>,
}

impl Telling {
    /// When to try again, if a write has failed.
    pub(super) fn next_timer(&self) -> Option<Time> {
        self.again_at
    }

    /// Whatever is waited for is due now.
    pub(super) fn hurry(&mut self, now: Time) {
        self.again_at = self.again_at.map(|at| at.min(now));
    }

    fn may_begin(&mut self, now: Time) -> bool {
        let is_early = self.again_at.is_some_and(|at| at > now);
        if self.is_on_its_way || is_early {
            return false;
        }
        self.again_at = None;
        true
    }
}

impl Cycles {
    /// Tells the shard what it does not say yet.
    pub(super) fn tell_shard(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        if self.tables.shard().is_none() || !self.telling.may_begin(now) {
            return;
        }
        let wanted: Option<Intent> = self.rows.shard_status(mirror, &self.tables, now);
        if let Some(intent) = wanted {
            self.telling.is_on_its_way = true;
            writes.submit(intent, Origin::Shard, Lane::Write);
        }
    }

    /// Tries again what failed, once it is time.
    pub(super) fn tell_shard_again(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        if self.telling.again_at.is_some_and(|at| at <= now) {
            self.tell_shard(mirror, writes, now);
        }
    }

    /// The write is over.
    pub(crate) fn shard_told(&mut self, over: &Over, now: Time) {
        self.telling.is_on_its_way = false;
        let retry_after_ms = match over.ended {
            Ended::Done => {
                self.telling.failures = 0;
                // What has moved meanwhile is told at once.
                self.telling.again_at = Some(now);
                return;
            }
            Ended::Outdated => 0,
            Ended::Failed { retry_after_ms } => retry_after_ms,
        };
        self.telling.failures = self.telling.failures.saturating_add(1);
        let delay = Backoff::KEY.delay_ms(self.telling.failures);
        self.telling.again_at = Some(now.plus_ms(delay.max(retry_after_ms)));
    }
}
