//! One Lease: what is known of it, and what to do about it next.

use std::sync::Arc;

use api::core::Lease;
use api::intent::{Action, Intent, ObjectKey, Part, Refusal, WriteOutcome};
use api::shared::Word;
use api::time::Time;
use serde_json::{Value, json};

use super::ElectionSettings;
use crate::log::{LeaseState, SeenState};
use crate::request::RequestId;

/// The annotation by which a holder says what it does with its lease.
const SERVES: &str = "katmai.dev/serves";
/// A candidate waits up to so many per cent of the retry period less, so that several do not ask at once.
/// Never more, as client-go does: a lease that was let go is taken within one period.
const JITTER_PERCENT: i64 = 50;

/// What is to be asked.
#[derive(Debug)]
pub(super) enum Ask {
    Read(ObjectKey),
    Write(Intent),
}

/// What a Lease says. Its times are compared for change only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    holder: Box<str>,
    duration_seconds: i64,
    acquired: Option<Time>,
    renewed: Option<Time>,
    transitions: i32,
}

/// A record, and for how long it has been seen unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    record: Record,
    age_micros: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Version {
    uid: Box<str>,
    resource_version: Word,
}

/// Whether a write rests on what is remembered, or on what was just read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Basis {
    Remembered,
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The next try is due then. What was asked before is not waited for any more.
    Due(Time),
    /// The Lease is being read.
    Reading { id: RequestId, since: Time },
    /// The Lease was read and is free, or ours: it is to be written at once.
    Free,
    /// This record is being written.
    Writing {
        id: RequestId,
        since: Time,
        record: Record,
        basis: Basis,
    },
    /// We want it no more. It is read once at most, so as to let it go as it is.
    Over { was_read: bool },
}

/// See the module's page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Elector {
    key: ObjectKey,
    settings: Arc<ElectionSettings>,
    state: State,
    seen: Option<Seen>,
    /// What an update is based on; none before it was read, after a doubtful write and where there
    /// is no Lease.
    version: Option<Version>,
    /// When the last renewal that was granted was asked for.
    proved: Option<Time>,
    last: Option<Time>,
    /// What the Lease's last holder said it does, as far as it was read.
    serves: Box<str>,
}

impl Elector {
    pub(super) fn new(key: ObjectKey, settings: Arc<ElectionSettings>) -> Elector {
        Elector {
            key,
            settings,
            state: State::Due(Time(i64::MIN)),
            seen: None,
            version: None,
            proved: None,
            last: None,
            serves: "".into(),
        }
    }

    /// How it stands between two requests.
    pub(super) fn state(&self) -> Option<LeaseState> {
        let State::Due(due) = self.state else {
            return None;
        };
        let version = self.version.as_ref();
        let seen = self
            .seen
            .as_ref()
            .map(|Seen { record, age_micros }| SeenState {
                holder: record.holder.clone(),
                duration_seconds: record.duration_seconds,
                acquired: record.acquired,
                renewed: record.renewed,
                transitions: record.transitions,
                age_micros: *age_micros,
            });
        Some(LeaseState {
            due,
            last: self.last,
            proved: self.proved,
            version: version.map(|it| (it.uid.clone(), it.resource_version.clone())),
            seen,
        })
    }

    /// Goes on from how it stood.
    pub(super) fn resume(&mut self, state: &LeaseState) {
        self.state = State::Due(state.due);
        self.last = state.last;
        self.proved = state.proved;
        let version = state.version.clone();
        self.version = version.map(|(uid, resource_version)| Version {
            uid,
            resource_version,
        });
        self.seen = state.seen.as_ref().map(|seen| Seen {
            record: Record {
                holder: seen.holder.clone(),
                duration_seconds: seen.duration_seconds,
                acquired: seen.acquired,
                renewed: seen.renewed,
                transitions: seen.transitions,
            },
            age_micros: seen.age_micros,
        });
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Who is said to hold it, if that is not us.
    pub(super) fn holder(&self) -> Option<&str> {
        let holder = &*self.seen.as_ref()?.record.holder;
        (!holder.is_empty() && *holder != *self.settings.identity).then_some(holder)
    }

    /// How it stands, for those who watch over it.
    pub(super) fn standing(&self, now: Time) -> LeaseStanding {
        let record = self.seen.as_ref().map(|seen| &seen.record);
        let holder = self.holder().filter(|_| self.is_held_elsewhere());
        let is_foreign = [&self.serves, &self.settings.serves]
            .iter()
            .all(|it| !it.is_empty())
            && self.serves != self.settings.serves;
        LeaseStanding {
            lease: self.key.clone(),
            is_held: self.holds(now),
            holder: holder.unwrap_or_default().into(),
            transitions: record.map_or(0, |record| record.transitions),
            renewed: self.proved,
            foreign: holder.filter(|_| is_foreign).map(|_| self.serves.clone()),
        }
    }

    /// Whether it is proved that nobody else may hold it now.
    pub(super) fn holds(&self, now: Time) -> bool {
        let is_back = self.last.is_some_and(|last| now < last);
        !is_back && self.held_until().is_some_and(|until| now < until)
    }

    /// When there will be something to do.
    pub(super) fn wake(&self) -> Option<Time> {
        let next = match &self.state {
            State::Due(at) => *at,
            State::Free => Time(i64::MIN),
            State::Reading { since, .. } | State::Writing { since, .. } => self.patience(*since),
            State::Over { .. } => return None,
        };
        Some(self.held_until().map_or(next, |until| until.min(next)))
    }

    /// Time has passed; where it went back, nothing is known of what has really passed.
    pub(super) fn tick(&mut self, now: Time) {
        let last = self.last.replace(now).unwrap_or(now);
        if now < last {
            self.leapt(now);
        }
        let passed = now.micros().saturating_sub(last.micros());
        let counted = passed.clamp(0, leap_ms(&self.settings).saturating_mul(1_000));
        if let Some(seen) = &mut self.seen {
            seen.age_micros = seen.age_micros.saturating_add(counted);
        }
        if self.held_until().is_some_and(|until| until <= now) {
            self.proved = None;
        }
        // An answer that does not come must not cost the Lease: it is asked again.
        if let State::Reading { since, .. } | State::Writing { since, .. } = self.state
            && self.patience(since) <= now
        {
            self.version = None;
            self.state = State::Due(now);
        }
    }

    /// Somebody set the clock: what was proved by it is proved no more, and what others have kept
    /// silent is counted on from here.
    pub(super) fn leapt(&mut self, now: Time) {
        self.last = Some(now);
        self.proved = None;
        if !matches!(self.state, State::Over { .. }) {
            self.state = State::Due(now);
        }
    }

    pub(super) fn poll(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        let basis = match self.state {
            State::Free => Basis::Read,
            State::Due(at) if at <= now => Basis::Remembered,
            _ => return None,
        };
        if basis == Basis::Remembered && !(self.holds(now) && self.version.is_some()) {
            self.state = State::Reading { id, since: now };
            return Some(Ask::Read(self.key.clone()));
        }
        let record = self.wanted(now);
        let intent = self.intent(&record);
        self.state = State::Writing {
            id,
            since: now,
            record,
            basis,
        };
        Some(Ask::Write(intent))
    }

    /// Reads the Lease every now and then while it is not its turn: what others keep silent counts from then on.
    pub(super) fn watch(&mut self, id: RequestId, now: Time) -> Option<Ask> {
        match self.state {
            State::Due(at) if at <= now => {}
            State::Free => {}
            _ => return None,
        }
        self.state = State::Reading { id, since: now };
        Some(Ask::Read(self.key.clone()))
    }

    /// It is not its turn: a Lease that is free is left to be taken later.
    pub(super) fn leave(&mut self, draw: u64, now: Time) {
        if self.state == State::Free {
            self.try_again(draw, now);
        }
    }

    /// Its turn has come: a Lease that nobody holds is taken at once.
    pub(super) fn hurry(&mut self, now: Time) {
        let is_free = !self.holds(now) && !self.is_held_elsewhere();
        if let State::Due(at) = &mut self.state
            && is_free
        {
            *at = now.min(*at);
        }
    }

    pub(super) fn got(
        &mut self,
        id: RequestId,
        answer: Result<Option<&Lease>, &Refusal>,
        draw: u64,
        now: Time,
    ) {
        if !matches!(self.state, State::Reading { id: open, .. } if open == id) {
            return;
        }
        let Ok(lease) = answer else {
            self.try_again(draw, now);
            return;
        };
        self.read(lease);
        // A Lease that somebody deleted under its holder is waited out like one that is there:
        // the holder may not know yet.
        if self.is_held_elsewhere() {
            self.proved = None;
            self.try_again(draw, now);
        } else {
            self.state = State::Free;
        }
    }

    pub(super) fn written(&mut self, id: RequestId, outcome: &WriteOutcome, draw: u64, now: Time) {
        let State::Writing {
            id: open,
            since,
            record,
            basis,
        } = &self.state
        else {
            return;
        };
        if *open != id {
            return;
        }
        let (since, record, basis) = (*since, record.clone(), *basis);
        match outcome {
            WriteOutcome::Done { revision, uid } => {
                self.see(record);
                self.serves = self.settings.serves.clone();
                self.proved = Some(since);
                let before = self.version.take().map(|version| version.uid);
                let uid = Some(uid.clone()).filter(|uid| !uid.is_empty()).or(before);
                self.version = uid.filter(|_| *revision > 0).map(|uid| Version {
                    uid,
                    resource_version: revision.to_string().into(),
                });
                self.state = State::Due(now.plus_ms(self.settings.retry_ms));
            }
            WriteOutcome::Refused(_) | WriteOutcome::Unknown { .. } => {
                self.version = None;
                match basis {
                    // The Lease is not what we took it for: it is read at once.
                    Basis::Remembered => self.state = State::Due(now),
                    Basis::Read => self.try_again(draw, now),
                }
            }
        }
    }

    /// Lets go. What is to be asked so that others hear of it, where it is ours: the write that tells them,
    /// or how the Lease stands after a write of which nothing was heard.
    pub(super) fn release(&mut self, now: Time) -> Option<Ask> {
        let is_ours = self.holds(now);
        let is_known = self.version.is_some();
        self.proved = None;
        self.state = State::Over {
            was_read: !is_known,
        };
        is_ours.then(|| match is_known {
            true => Ask::Write(self.farewell(now)),
            false => Ask::Read(self.key.clone()),
        })
    }

    /// Letting go met a Lease that has changed. A renewal that was on its way may have arrived, so it is
    /// read, once.
    pub(super) fn release_met_change(&mut self) -> Option<Ask> {
        match &mut self.state {
            State::Over { was_read } if !*was_read => *was_read = true,
            _ => return None,
        }
        Some(Ask::Read(self.key.clone()))
    }

    /// Lets the Lease go as it was read, if it still is ours. Nobody else is called like us, so that nothing
    /// has to be proved by the clock.
    pub(super) fn release_read(&mut self, lease: Option<&Lease>, now: Time) -> Option<Ask> {
        let is_ours = lease.is_some_and(|it| it.spec.holder_identity == self.settings.identity);
        is_ours.then(|| {
            self.read(lease);
            Ask::Write(self.farewell(now))
        })
    }

    /// The write that tells others that they need not wait.
    fn farewell(&self, now: Time) -> Intent {
        let transitions = self.seen.as_ref().map_or(0, |seen| seen.record.transitions);
        self.intent(&Record {
            holder: "".into(),
            duration_seconds: 1,
            acquired: Some(now),
            renewed: Some(now),
            transitions,
        })
    }

    /// Takes what was read.
    fn read(&mut self, lease: Option<&Lease>) {
        self.version = lease.map(|lease| Version {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        });
        self.serves = lease
            .and_then(|lease| lease.metadata.annotations.get(SERVES))
            .map_or_else(|| "".into(), |serves| (**serves).into());
        if let Some(lease) = lease {
            self.see(record_of(lease));
        }
    }

    fn held_until(&self) -> Option<Time> {
        Some(self.proved?.plus_ms(self.settings.renew_ms))
    }

    fn patience(&self, since: Time) -> Time {
        since.plus_ms(self.settings.renew_ms / 2)
    }

    fn see(&mut self, record: Record) {
        if self.seen.as_ref().is_none_or(|seen| seen.record != record) {
            let age_micros = 0;
            self.seen = Some(Seen { record, age_micros });
        }
    }

    fn is_held_elsewhere(&self) -> bool {
        self.runs_out_ms().is_some()
    }

    /// After how long another's Lease has run out, if nothing is heard of its holder until then; `None` where
    /// nobody else holds it.
    fn runs_out_ms(&self) -> Option<i64> {
        let Seen { record, age_micros } = self.seen.as_ref()?;
        let is_others = !record.holder.is_empty() && record.holder != self.settings.identity;
        let left_micros =
            (record.duration_seconds.saturating_mul(1_000_000)).saturating_sub(*age_micros);
        (is_others && left_micros > 0).then(|| left_micros.saturating_add(999) / 1_000)
    }

    /// The next try, and no later than a Lease runs out: who waited on would take over later than its duration
    /// and one retry after the last sign of life.
    fn try_again(&mut self, draw: u64, now: Time) {
        let retry_ms = self.settings.retry_ms;
        let spread = u64::try_from(retry_ms.saturating_mul(JITTER_PERCENT) / 100).unwrap_or(0);
        let jitter = match self.holds(now) {
            true => 0,
            false => i64::try_from(draw % (spread + 1)).unwrap_or(0),
        };
        let wait_ms = retry_ms.saturating_sub(jitter).max(1);
        let wait_ms = self.runs_out_ms().map_or(wait_ms, |it| it.min(wait_ms));
        self.state = State::Due(now.plus_ms(wait_ms));
    }

    /// The record that we want to be there.
    fn wanted(&self, now: Time) -> Record {
        let before = self.seen.as_ref().map(|seen| &seen.record);
        let ours = before.filter(|record| record.holder == self.settings.identity);
        let taken = |record: &Record| record.transitions.saturating_add(1);
        Record {
            holder: self.settings.identity.clone(),
            duration_seconds: self.settings.lease_seconds(),
            acquired: ours.map_or(Some(now), |record| record.acquired),
            renewed: Some(now),
            transitions: match (ours, before, &self.version) {
                (Some(record), ..) => record.transitions,
                (None, Some(record), Some(_)) => taken(record),
                (None, _, _) => 0,
            },
        }
    }

    /// Those that are ours on the Lease; none where nobody is told what we do.
    fn annotations(&self) -> Value {
        match &*self.settings.serves {
            "" => json!({}),
            serves => json!({ SERVES: serves }),
        }
    }

    fn intent(&self, record: &Record) -> Intent {
        let time = |at: Option<Time>| at.map_or(Value::Null, |at| json!(at.micro()));
        let spec = json!({
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration_seconds,
            "acquireTime": time(record.acquired),
            "renewTime": time(record.renewed),
            "leaseTransitions": record.transitions,
        });
        let action = match &self.version {
            Some(Version {
                uid,
                resource_version,
            }) => Action::Patch {
                uid: uid.clone(),
                resource_version: resource_version.clone(),
                part: Part::Whole,
                patch: match self.serves == self.settings.serves {
                    true => json!({ "spec": spec }),
                    false => {
                        json!({ "metadata": { "annotations": self.annotations() }, "spec": spec })
                    }
                },
            },
            None => Action::Create {
                body: json!({
                    "apiVersion": self.key.kind.api_version(),
                    "kind": self.key.kind.row().name,
                    "metadata": {
                        "namespace": self.key.namespace,
                        "name": self.key.name,
                        "annotations": self.annotations(),
                    },
                    "spec": spec,
                }),
            },
        };
        Intent {
            target: self.key.clone(),
            action,
        }
    }
}

/// How a Lease stands, for those who watch over an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStanding {
    /// Which one.
    pub lease: ObjectKey,
    /// Whether it is ours.
    pub is_held: bool,
    /// Who else has it; empty where nobody has, or nobody knows.
    pub holder: Box<str>,
    /// How often it went from one holder to another, as it says itself.
    pub transitions: i32,
    /// When the last renewal of ours was asked for that was granted.
    pub renewed: Option<Time>,
    /// What its holder does, where that is something else than we do: only one of the two will ever
    /// be done.
    pub foreign: Option<Box<str>>,
}

/// How far a leap of time counts for those who wait: a holder whose clock did not leap has stopped
/// before the rest has passed. Never so little that ordinary waiting would not count.
fn leap_ms(settings: &ElectionSettings) -> i64 {
    (settings.lease_ms - settings.renew_ms).max(settings.retry_ms)
}

fn record_of(lease: &Lease) -> Record {
    let spec = &lease.spec;
    Record {
        holder: spec.holder_identity.clone(),
        duration_seconds: i64::from(spec.lease_duration_seconds.unwrap_or(0)),
        acquired: spec.acquire_time,
        renewed: spec.renew_time,
        transitions: spec.lease_transitions.unwrap_or(0),
    }
}

#[cfg(test)]
mod model;
