//! Leader election: of several candidates one holds the Lease, and only that one may write.
//!
//! The rules are those of client-go's elector, so that candidates of either kind may share a Lease:
//! a candidate reads the Lease every now and then, takes it once it has not changed for as long as
//! its holder said, and renews it while it can. No clock of others is trusted: what counts is for
//! how long *we* have seen a record unchanged, never the times written in it.
//!
//! What is proved: two candidates with steady clocks never may write at one time. A holder stops
//! [`ElectionSettings::renew_ms`] after it *asked* for the last renewal that was granted; another
//! takes the Lease at the earliest `lease_ms` after it *saw* that renewal, which was later. A Lease says
//! whole seconds, so that a part of one counts as a whole.
//! Time that leaps is no proof. A holder stops at once where it goes back or is said to have leapt:
//! only the shell can know that a clock was set back by about as long as the process stood still.
//! Whoever waits counts a leap forward only as far as that leaves the proof intact.
//!
//! What is not proved: a write that was handed out before the end may arrive after it. That is why
//! every write carries a precondition; the Lease is economy.

mod elector;
mod served;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api::core::Lease;
use api::intent::{ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;

use crate::backoff::Draws;
use crate::log::ElectionState;
use crate::request::{Request, RequestId};
pub use elector::LeaseStanding;
use elector::{Ask, Elector};
pub use served::Served;

/// Which Leases must be held before anything is decided, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionSettings {
    /// The namespace of the Leases.
    pub namespace: Box<str>,
    /// Their names: one for each identity that is served. All are held, or none counts.
    pub names: Vec<Box<str>>,
    /// Who we are; no other process, also not an earlier one of ours, has this name.
    pub identity: Box<str>,
    /// What is done with the Leases, for others who want one of them for something else: they are told.
    /// Nobody is where it is empty.
    pub serves: Box<str>,
    /// How long others wait for a sign of life before they take over.
    pub lease_ms: i64,
    /// How long we go on after the last sign of life that was taken.
    pub renew_ms: i64,
    /// How long to wait between two tries.
    pub retry_ms: i64,
}

impl ElectionSettings {
    /// The usual times: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> ElectionSettings {
        ElectionSettings {
            namespace: namespace.into(),
            names: vec![name.into()],
            identity: identity.into(),
            serves: "".into(),
            lease_ms: 15_000,
            renew_ms: 10_000,
            retry_ms: 2_000,
        }
    }

    /// The usual times, and one Lease for each name that is served: its own. Names that are given
    /// twice, or in another order, make no difference. What is done with them is never guessed from the
    /// names, which tell less: a scheduler says [`Served`].
    ///
    /// Upstream's Lease has the built-in name whatever is served, so that schedulers of different names
    /// fight over one.
    pub fn of_names<'a>(
        namespace: &str,
        names: impl IntoIterator<Item = &'a str>,
        serves: &str,
        identity: &str,
    ) -> ElectionSettings {
        let names: BTreeSet<Box<str>> = names.into_iter().map(Into::into).collect();
        ElectionSettings {
            serves: serves.into(),
            names: names.into_iter().collect(),
            ..ElectionSettings::new(namespace, "", identity)
        }
    }

    /// How long a Lease says that others wait, in seconds. Never less than we count on: rounded down, a
    /// renew deadline between the two would let another take the Lease while it is held.
    fn lease_seconds(&self) -> i64 {
        self.lease_ms.saturating_add(999) / 1_000
    }

    /// Why these times cannot work, if they cannot.
    pub fn problem(&self) -> Option<&'static str> {
        if self.names.is_empty() {
            return Some("an election needs the name of a lease");
        }
        if self.identity.is_empty() {
            return Some("an election needs an identity");
        }
        if self.retry_ms < 1 || self.lease_ms < 1_000 {
            return Some("retryPeriod and leaseDuration must be greater than zero");
        }
        if self.lease_ms <= self.renew_ms {
            return Some("leaseDuration must be greater than renewDeadline");
        }
        if self.renew_ms.saturating_mul(10) <= self.retry_ms.saturating_mul(12) {
            return Some("renewDeadline must be greater than retryPeriod*JitterFactor");
        }
        None
    }
}

/// The code by which a write is told that another was first.
const CONFLICT: u16 = 409;

/// What is done with a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Read,
    Write,
}

impl Deed {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Deed::Read => "read",
            Deed::Write => "write",
        }
    }
}

/// What a look at the election found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// As before.
    Same,
    /// Everything is held now.
    Won,
    /// Something that was held is not any more.
    Lost,
}

/// The candidate: holds all its Leases, or takes them in their order. It watches all of them meanwhile: the
/// holder of several may die, and each of them is to have run out at the same time.
#[derive(Debug)]
pub(crate) struct Election {
    electors: Vec<Elector>,
    asked: BTreeMap<RequestId, usize>,
    draws: Draws,
    leads: bool,
    is_over: bool,
    /// What is still to be asked so that others need not wait, and for which Lease.
    farewells: VecDeque<(usize, Ask)>,
    /// What was said last about a Lease that cannot be read, or written.
    trouble: BTreeMap<Deed, String>,
}

impl Election {
    pub(crate) fn new(settings: &ElectionSettings, seed: u64) -> Election {
        let mut names = settings.names.clone();
        // Two candidates that want several Leases want them in one order, else each could hold
        // what the other waits for.
        names.sort();
        names.dedup();
        let settings = Arc::new(settings.clone());
        let elector = |name: &str| {
            let key = ObjectKey::new(Kind::Lease, &settings.namespace, name);
            Elector::new(key, Arc::clone(&settings))
        };
        Election {
            electors: names.iter().map(|name| elector(name)).collect(),
            asked: BTreeMap::new(),
            draws: Draws::new(seed ^ 0x1ead_e12e_1ec7_1042),
            leads: false,
            is_over: false,
            farewells: VecDeque::new(),
            trouble: BTreeMap::new(),
        }
    }

    /// How it stands; `None` while a Lease is asked about, or after the end.
    pub(crate) fn state(&self) -> Option<ElectionState> {
        let leases: Option<Vec<_>> = self.electors.iter().map(Elector::state).collect();
        Some(ElectionState {
            leads: self.leads,
            draws: self.draws.state(),
            leases: leases.filter(|_| !self.is_over)?,
        })
    }

    /// Goes on from how it stood. Whether it has as many Leases.
    #[must_use]
    pub(crate) fn resume(&mut self, state: &ElectionState) -> bool {
        self.asked.clear();
        self.leads = state.leads;
        self.draws = Draws::new(state.draws);
        for (elector, lease) in self.electors.iter_mut().zip(&state.leases) {
            elector.resume(lease);
        }
        self.electors.len() == state.leases.len()
    }

    /// Whether writes may be handed out now.
    pub(crate) fn may_write(&self, now: Time) -> bool {
        !self.is_over && self.electors.iter().all(|elector| elector.holds(now))
    }

    /// Whether writes might be handed out at the last turn.
    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// Time has passed, or something was answered.
    pub(crate) fn turn(&mut self, now: Time) -> Turn {
        self.tick(now);
        let leads = self.may_write(now);
        let before = std::mem::replace(&mut self.leads, leads);
        match (before, leads) {
            (false, true) => Turn::Won,
            (true, false) => Turn::Lost,
            _ => Turn::Same,
        }
    }

    /// Somebody set the clock.
    pub(crate) fn leapt(&mut self, now: Time) {
        for elector in &mut self.electors {
            elector.leapt(now);
        }
    }

    /// What is to be asked now, under that id.
    pub(crate) fn poll(&mut self, id: RequestId, now: Time) -> Option<Request> {
        let (at, ask) = match self.is_over {
            true => self.farewells.pop_front()?,
            false => self.next(id, now)?,
        };
        self.asked.insert(id, at);
        Some(match ask {
            Ask::Read(key) => Request::Get { key },
            Ask::Write(intent) => Request::Write(intent),
        })
    }

    fn next(&mut self, id: RequestId, now: Time) -> Option<(usize, Ask)> {
        let mut is_in_turn = true;
        for (at, elector) in self.electors.iter_mut().enumerate() {
            let ask = match is_in_turn {
                true => elector.poll(id, now),
                false => elector.watch(id, now),
            };
            if let Some(ask) = ask {
                return Some((at, ask));
            }
            is_in_turn &= elector.holds(now);
        }
        None
    }

    /// Whether all Leases before this one are held.
    fn is_in_turn(&self, at: usize, now: Time) -> bool {
        self.electors[..at].iter().all(|elector| elector.holds(now))
    }

    /// When [`Election::poll`] will have something to ask, or what is held ends.
    pub(crate) fn wake(&self) -> Option<Time> {
        if self.is_over {
            return (!self.farewells.is_empty()).then_some(Time(i64::MIN));
        }
        self.electors.iter().filter_map(Elector::wake).min()
    }

    /// Whether the request is the election's.
    pub(crate) fn asked(&self, id: RequestId) -> bool {
        self.asked.contains_key(&id)
    }

    /// The answer to a read.
    pub(crate) fn got(
        &mut self,
        id: RequestId,
        answer: Result<Option<&Lease>, &Refusal>,
        now: Time,
    ) {
        self.tick(now);
        let draw = self.draws.next();
        let Some(at) = self.asked.remove(&id) else {
            return;
        };
        let elector = &mut self.electors[at];
        if self.is_over {
            let again = answer
                .ok()
                .and_then(|lease| elector.release_read(lease, now));
            self.farewells.extend(again.map(|ask| (at, ask)));
            return;
        }
        elector.got(id, answer, draw, now);
        if !self.is_in_turn(at, now) {
            self.electors[at].leave(draw, now);
        }
    }

    /// The answer to a write.
    pub(crate) fn written(&mut self, id: RequestId, outcome: &WriteOutcome, now: Time) {
        self.tick(now);
        let draw = self.draws.next();
        let Some(at) = self.asked.remove(&id) else {
            return;
        };
        let elector = &mut self.electors[at];
        if self.is_over {
            let has_changed = matches!(outcome, WriteOutcome::Refused(it) if it.code == CONFLICT);
            let again = has_changed.then(|| elector.release_met_change()).flatten();
            self.farewells.extend(again.map(|ask| (at, ask)));
            return;
        }
        elector.written(id, outcome, draw, now);
        if self.is_in_turn(at + 1, now)
            && let Some(next) = self.electors.get_mut(at + 1)
        {
            next.hurry(now);
        }
    }

    /// Lets go: nothing is asked from now on but what tells others that they need not wait. Answers to what
    /// was asked before are not waited for.
    pub(crate) fn release(&mut self, now: Time) {
        self.is_over = true;
        self.leads = false;
        self.asked.clear();
        let electors = self.electors.iter_mut().enumerate();
        self.farewells = electors
            .filter_map(|(at, elector)| Some((at, elector.release(now)?)))
            .collect();
    }

    /// How each Lease stands.
    pub(crate) fn standings(&self, now: Time) -> Vec<LeaseStanding> {
        let all = self.electors.iter();
        all.map(|elector| elector.standing(now)).collect()
    }

    /// What is to be said about an answer to a request of ours, if it has not been said last. Who may read and
    /// may not write is granted every other request, which makes the refusals no news.
    pub(crate) fn trouble(&mut self, deed: Deed, refusal: Option<&Refusal>) -> Option<String> {
        // Somebody else was faster.
        let Some(refusal) = refusal.filter(|refusal| refusal.code != CONFLICT) else {
            self.trouble.remove(&deed);
            return None;
        };
        let text = refusal.message.to_string();
        let before = self.trouble.insert(deed, text.clone());
        (before.as_ref() != Some(&text)).then_some(text)
    }

    /// Who holds what we wait for, as far as it is known: the Lease and its holder.
    pub(crate) fn held_elsewhere(&self, now: Time) -> Option<(&ObjectKey, &str)> {
        let waited_for = self.electors.iter().find(|elector| !elector.holds(now))?;
        Some((waited_for.key(), waited_for.holder()?))
    }

    fn tick(&mut self, now: Time) {
        for elector in &mut self.electors {
            elector.tick(now);
        }
    }
}

#[cfg(test)]
mod tests;
