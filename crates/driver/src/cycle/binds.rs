//! Binds that were handed out, so that one which a busy or broken server did not take is sent again.
//!
//! A gang's plan is carried out wholly or it is no plan: were one bind of it given back for a new
//! decision because the server was busy, its peers would run meanwhile without it.

use std::collections::{BTreeMap, BTreeSet};

use api::time::Time;
use mirror::{Bind, Mirror, Voice};
use model::WriteId;

use super::Cycles;
use crate::backoff::Backoff;
use crate::timers;
use crate::writes::Writes;

/// How long a bind whose answer was lost may still come true, in milliseconds: a server works on
/// a request for a minute at most (`--request-timeout` of kube-apiserver).
const LOST_MS: i64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct Binds {
    sent: BTreeMap<WriteId, Sent>,
    again: BTreeSet<(Time, WriteId)>,
}

#[derive(Debug)]
struct Sent {
    bind: Bind,
    failures: u32,
    /// Until when an earlier request for it, whose answer was lost, may still be performed.
    may_come_until: Option<Time>,
}

impl Binds {
    /// A bind is on its way.
    pub(super) fn sent(&mut self, bind: Bind) {
        let sent = Sent {
            bind,
            failures: 0,
            may_come_until: None,
        };
        self.sent.insert(sent.bind.write, sent);
    }

    /// A bind has ended for good.
    pub(super) fn ended(&mut self, write: WriteId) -> Option<Bind> {
        self.sent.remove(&write).map(|sent| sent.bind)
    }

    /// The answer to a bind was lost, and its pod is on no node yet.
    pub(super) fn lost(&mut self, write: WriteId, now: Time) {
        if let Some(sent) = self.sent.get_mut(&write) {
            sent.may_come_until = Some(now.plus_ms(LOST_MS));
        }
    }

    /// Whether a bind may come true although it was refused: a request before that one was lost.
    /// Its room is nobody else's as long as that.
    pub(super) fn may_come(&self, write: WriteId, now: Time) -> bool {
        let until = self.sent.get(&write).and_then(|sent| sent.may_come_until);
        until.is_some_and(|until| now < until)
    }

    /// A bind was not taken, for a reason that passes: it will be sent again.
    pub(super) fn put_off(&mut self, write: WriteId, retry_after_ms: i64, now: Time) -> bool {
        let Some(sent) = self.sent.get_mut(&write) else {
            return false;
        };
        sent.failures = sent.failures.saturating_add(1);
        let delay = Backoff::BIND.delay_ms(sent.failures).max(retry_after_ms);
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
            if let Some(sent) = self.sent.get(&write) {
                return Some(sent.bind.clone());
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

impl Cycles {
    /// Binds of one gang come to nothing, each for a reason: their people are told, unless they were.
    pub(super) fn tell_refused(
        &self,
        refused: &[(Bind, String)],
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        let voice = Voice {
            component: &self.component,
            now,
            events: self.events,
        };
        for note in mirror.binds_refused(&self.tables, refused, voice) {
            writes.note(note, now);
        }
    }
}
