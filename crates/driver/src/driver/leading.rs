//! What becomes of the loop when it may write, and when it may not any more.
//!
//! A driver that does not hold all its Leases asks for nothing but them. One that has just won lists
//! everything anew: what its predecessor wrote before is in those lists. One that has lost forgets
//! everything, for what it remembers of its own writes on their way is worth nothing any more.

use api::core::Lease;
use api::intent::WriteOutcome;
use api::kind::Kind;
use api::time::Time;
use mirror::Object;

use super::{Driver, Named};
use crate::election::{Deed, Election, LeaseStanding, Turn};
use crate::log::Record;
use crate::metrics::Level;
use crate::request::{Got, RequestId, unreadable};

impl Driver {
    /// Whether writes may be handed out at this instant.
    pub fn may_write(&self, now: Time) -> bool {
        let election = self.election.as_ref();
        election.is_none_or(|election| election.may_write(now))
    }

    /// Lets go of what is held, before a clean end: from now on only what tells others so is handed out.
    /// What was asked before may be done or not; a Lease that was renewed by it is read, and let go as it is.
    pub fn release(&mut self, now: Time) {
        self.note(|| Record::Released { now });
        if let Some(election) = &mut self.election {
            election.release(now);
            self.start_again();
        }
    }

    /// Whether this driver waits until it may write.
    pub(super) fn is_standby(&self) -> bool {
        let election = self.election.as_ref();
        election.is_some_and(|election| !election.leads())
    }

    /// Time has passed, or something was answered.
    pub(super) fn elect(&mut self, now: Time) {
        let Some(election) = &mut self.election else {
            return;
        };
        match election.turn(now) {
            Turn::Same => {}
            Turn::Won => {
                self.metrics.terms += 1;
                self.notice(
                    Level::Debug,
                    "holds its leases and begins to decide".to_owned(),
                );
            }
            Turn::Lost => {
                self.metrics.terms_lost += 1;
                let holder = match election.held_elsewhere(now) {
                    Some((lease, holder)) => format!("{} is held by {holder}", Named(lease)),
                    None => "it could not be renewed in time".to_owned(),
                };
                self.start_again();
                self.notice(
                    Level::Warning,
                    format!("decides nothing any more: {holder}"),
                );
            }
        }
    }

    /// Takes an answer that is the election's.
    pub(super) fn election_written(
        &mut self,
        id: RequestId,
        outcome: &WriteOutcome,
        now: Time,
    ) -> bool {
        let Some(election) = self.election.as_mut().filter(|it| it.asked(id)) else {
            return false;
        };
        election.written(id, outcome, now);
        let refusal = match outcome {
            WriteOutcome::Refused(refusal) => Some(refusal),
            WriteOutcome::Done { .. } | WriteOutcome::Unknown { .. } => None,
        };
        let trouble = election.trouble(Deed::Write, refusal);
        self.tell_of_election(Deed::Write, trouble);
        self.elect(now);
        true
    }

    /// Takes an answer that is the election's; any other is given back.
    pub(super) fn election_got(&mut self, id: RequestId, answer: Got, now: Time) -> Option<Got> {
        let Some(election) = self.election.as_mut().filter(|it| it.asked(id)) else {
            return Some(answer);
        };
        let lease = match &answer {
            Ok(None) => Ok(None),
            Ok(Some(text)) => serde_json::from_str::<Lease>(text.get())
                .map(Some)
                .map_err(|error| unreadable(&error)),
            Err(refusal) => Err(refusal.clone()),
        };
        let read = lease.clone();
        election.got(id, lease.as_ref().map(Option::as_ref), now);
        let trouble = election.trouble(Deed::Read, lease.as_ref().err());
        self.tell_of_election(Deed::Read, trouble);
        self.note(|| Record::Got {
            now,
            id,
            kind: Kind::Lease,
            object: read.map(|lease| lease.map(Object::from)),
        });
        self.elect(now);
        None
    }

    fn tell_of_election(&mut self, deed: Deed, trouble: Option<String>) {
        if let Some(trouble) = trouble {
            let deed = deed.word();
            let text =
                format!("cannot {deed} the lease, and decides nothing before it can: {trouble}");
            self.notice(Level::Warning, text);
        }
    }

    /// How the Leases of an election stand; none without one.
    pub fn leases(&self, now: Time) -> Vec<LeaseStanding> {
        let election = self.election.as_ref();
        election.map_or_else(Vec::new, |election| election.standings(now))
    }

    /// Forgets everything but the election and what was counted.
    fn start_again(&mut self) {
        let election: Option<Election> = self.election.take();
        let counted = self.metrics();
        let fresh = Driver::new(self.settings.clone());
        let before = std::mem::replace(self, fresh);
        if let (Some(cycles), Some(old)) = (&mut self.cycles, before.cycles) {
            cycles.continue_from(old);
        }
        self.tallies = before.tallies;
        self.election = election;
        self.metrics = counted;
        self.notices = before.notices;
        self.last_request = before.last_request;
        self.recorder = before.recorder;
    }
}
