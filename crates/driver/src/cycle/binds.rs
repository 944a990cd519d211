//! Binds that were handed out, so that one which a busy or broken server did not take is sent again.
//!
//! A gang's plan is carried out wholly or it is no plan: were one bind of it given back for a new
//! decision because the server was busy, its peers would run meanwhile without it.

use std::collections::{BTreeMap, BTreeSet};

use api::time::Time;
use mirror::Bind;
use model::WriteId;

use crate::backoff::Backoff;
use crate::timers;

#[derive(Debug, Default)]
pub(super) struct Binds {
    sent: BTreeMap<WriteId, (Bind, u32)>,
    again: BTreeSet<(Time, WriteId)>,
}

impl Binds {
    /// A bind is on its way.
    pub(super) fn sent(&mut self, bind: Bind) {
        self.sent.insert(bind.write, (bind, 0));
    }

    /// A bind has ended for good.
    pub(super) fn ended(&mut self, write: WriteId) -> Option<Bind> {
        self.sent.remove(&write).map(|(bind, _)| bind)
    }

    /// A bind was not taken, for a reason that passes: it will be sent again.
    pub(super) fn put_off(&mut self, write: WriteId, retry_after_ms: i64, now: Time) -> bool {
        let Some((_, failures)) = self.sent.get_mut(&write) else {
            return false;
        };
        *failures = failures.saturating_add(1);
        let delay = Backoff::BIND.delay_ms(*failures).max(retry_after_ms);
        self.again.insert((now.plus_ms(delay), write));
        true
    }

    /// The next bind whose time to be sent again has come.
    pub(super) fn due(&mut self, now: Time) -> Option<Bind> {
        loop {
            let (at, write) = *self.again.first()?;
            if at > now {
                return None;
            }
            self.again.pop_first();
            if let Some((bind, _)) = self.sent.get(&write) {
                return Some(bind.clone());
            }
        }
    }

    /// Those that wait are due now.
    pub(super) fn hurry(&mut self, now: Time) {
        timers::hurry(&mut self.again, now);
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.again.first().map(|(at, _)| *at)
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.again.is_empty()
    }
}
