//! Every order of events of a few candidates in a few ticks: each may stand still, be cut off or lose
//! an answer, its requests may arrive long after they were sent, and its clock may leap. At no
//! moment may two write.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use api::core::{Lease, LeaseSpec};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use serde_json::Value;

use super::super::ElectionSettings;
use super::{Ask, Elector, Record, State};
use crate::request::RequestId;

/// A tick of the model, in milliseconds.
const TICK_MS: i64 = 1_000;

/// It is always now: as time passes, what was moves away. What is further away than this stays
/// there, so that there is an end to all states.
const NOW: Time = Time::from_seconds(1_000);
const PAST_TICKS_MAX: i64 = 9;

/// What the server holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stored {
    record: Record,
    version: u64,
}

impl Stored {
    fn lease(&self) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.uid = "lease".into();
        lease.metadata.resource_version = self.version.to_string().into();
        lease.spec = LeaseSpec {
            holder_identity: self.record.holder.clone(),
            lease_duration_seconds: i32::try_from(self.record.duration_seconds).ok(),
            acquire_time: self.record.acquired,
            renew_time: self.record.renewed,
            lease_transitions: Some(self.record.transitions),
        };
        lease
    }
}

fn read(spec: &Value) -> Record {
    let time = |field: &str| Time::parse(spec[field].as_str().unwrap_or(""));
    let transitions = spec["leaseTransitions"].as_i64().unwrap_or(0);
    Record {
        holder: spec["holderIdentity"].as_str().unwrap_or("").into(),
        duration_seconds: spec["leaseDurationSeconds"].as_i64().unwrap_or(0),
        acquired: time("acquireTime"),
        renewed: time("renewTime"),
        transitions: i32::try_from(transitions).expect("few transitions"),
    }
}

/// A request on its way, as text where it has no order of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sent {
    Read,
    Create(Record),
    Update(u64, Record),
    /// Not a request any more: the answer to one that was taken.
    Done(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Candidate {
    elector: Elector,
    asked: u64,
    /// A request that is late.
    late: Option<(u64, Sent)>,
    /// So many ticks its clock is ahead.
    ahead: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    faults: u32,
    leaps: u32,
    stored: Option<Stored>,
    candidates: Vec<Candidate>,
}

/// What becomes of a candidate in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It stands still.
    Pauses,
    /// Everything it asks is answered.
    Runs,
    /// It reads, and then stands still.
    Reads,
    /// What it asks first is lost on its way.
    CutOff,
    /// Its write is done and the answer is lost.
    Unanswered,
    /// Its write is done in a later tick, and answered then.
    Late,
    /// Its write is done, and answered in a later tick.
    AnsweredLate,
}

const FATES: [Fate; 7] = [
    Fate::Pauses,
    Fate::Runs,
    Fate::Reads,
    Fate::CutOff,
    Fate::Unanswered,
    Fate::Late,
    Fate::AnsweredLate,
];

enum Answer {
    Got(Option<Box<Lease>>),
    Written(WriteOutcome),
}

impl World {
    fn new(count: usize, times: [i64; 3], faults: u32, leaps: u32) -> World {
        let candidates = (0..count).map(|at| {
            let mut settings = ElectionSettings::new("ns", "lease", &format!("c{at}"));
            [settings.lease_ms, settings.renew_ms, settings.retry_ms] =
                times.map(|ticks| ticks * TICK_MS);
            assert_eq!(settings.problem(), None);
            Candidate {
                elector: Elector::new(
                    ObjectKey::new(Kind::Lease, "ns", "lease"),
                    Arc::new(settings),
                ),
                asked: 0,
                late: None,
                ahead: 0,
            }
        });
        World {
            faults,
            leaps,
            stored: None,
            candidates: candidates.collect(),
        }
    }

    /// The first candidate holds the Lease and all others know it.
    fn led(self) -> World {
        let fates =
            (0..self.candidates.len()).map(|at| if at == 0 { Fate::Runs } else { Fate::Reads });
        fates.enumerate().fold(self, |world, (at, fate)| {
            world.turn(at, fate).expect("nothing goes wrong yet")
        })
    }

    fn now(&self, at: usize) -> Time {
        NOW.plus_ms(self.candidates[at].ahead * TICK_MS)
    }

    fn writers(&self) -> Vec<usize> {
        let all = 0..self.candidates.len();
        all.filter(|at| self.candidates[*at].elector.holds(self.now(*at)))
            .collect()
    }

    /// The candidate's part of a tick; `None` where that is the same as another, or once too often.
    fn turn(&self, at: usize, fate: Fate) -> Option<World> {
        let mut next = self.clone();
        if !matches!(fate, Fate::Pauses | Fate::Runs | Fate::Reads) {
            next.faults = next.faults.checked_sub(1)?;
        }
        if fate == Fate::Pauses {
            return Some(next);
        }
        let now = self.now(at);
        for round in 0..4 {
            let candidate = &mut next.candidates[at];
            // At most one earlier request is under way.
            let id = (candidate.asked + 1) % 3;
            let Some(ask) = candidate.elector.poll(RequestId(id), now) else {
                return (round > 0 && fate == Fate::Runs).then_some(next);
            };
            candidate.asked = id;
            let sent = sent(ask);
            match (fate, sent == Sent::Read) {
                (Fate::CutOff, _) => return Some(next),
                (Fate::Reads, false) => return None,
                (Fate::Unanswered, false) => {
                    drop(next.commit(&sent));
                    return Some(next);
                }
                (Fate::AnsweredLate, false) => {
                    let Answer::Written(WriteOutcome::Done { revision, .. }) = next.commit(&sent)
                    else {
                        return None;
                    };
                    let late = &mut next.candidates[at].late;
                    let is_first = late.replace((id, Sent::Done(revision))).is_none();
                    return is_first.then_some(next);
                }
                (Fate::Late, false) => {
                    let is_first = candidate.late.replace((id, sent)).is_none();
                    return is_first.then_some(next);
                }
                _ => {
                    let answer = next.commit(&sent);
                    next.answer(at, id, answer);
                    if fate == Fate::Reads {
                        return Some(next);
                    }
                }
            }
        }
        panic!("a candidate asks again and again: {next:#?}")
    }

    /// What is late arrives and is answered.
    fn arrive(&self, at: usize) -> Option<World> {
        let mut next = self.clone();
        let (id, sent) = next.candidates[at].late.take()?;
        let answer = next.commit(&sent);
        next.answer(at, id, answer);
        Some(next)
    }

    fn answer(&mut self, at: usize, id: u64, answer: Answer) {
        let now = self.now(at);
        let elector = &mut self.candidates[at].elector;
        elector.tick(now);
        match answer {
            Answer::Got(lease) => elector.got(RequestId(id), Ok(lease.as_deref()), 0, now),
            Answer::Written(outcome) => elector.written(RequestId(id), &outcome, 0, now),
        }
    }

    fn commit(&mut self, sent: &Sent) -> Answer {
        let conflict = || {
            Answer::Written(WriteOutcome::Refused(Refusal {
                code: 409,
                reason: "Conflict".into(),
                message: "".into(),
                retry_after_seconds: None,
            }))
        };
        let (record, version) = match sent {
            Sent::Read => {
                return Answer::Got(self.stored.as_ref().map(|stored| Box::new(stored.lease())));
            }
            Sent::Create(record) => (record, None),
            Sent::Update(version, record) => (record, Some(version)),
            Sent::Done(revision) => {
                return Answer::Written(WriteOutcome::Done {
                    revision: *revision,
                    uid: "lease".into(),
                });
            }
        };
        let is_current = match (&self.stored, version) {
            (None, None) => true,
            (Some(stored), Some(version)) => stored.version == *version,
            _ => false,
        };
        if !is_current {
            return conflict();
        }
        let revision = self.stored.as_ref().map_or(0, |stored| stored.version) + 1;
        self.stored = Some(Stored {
            record: record.clone(),
            version: revision,
        });
        Answer::Written(WriteOutcome::Done {
            revision,
            uid: "lease".into(),
        })
    }

    fn leap(&self, at: usize, ticks: i64) -> Option<World> {
        let mut next = self.clone();
        next.leaps = next.leaps.checked_sub(1)?;
        next.candidates[at].ahead += ticks;
        let now = next.now(at);
        next.candidates[at].elector.leapt(now);
        Some(next)
    }

    /// A tick later, with versions and transitions counted from where they are.
    fn later(&self) -> World {
        let mut next = self.clone();
        let stored = self.stored.as_ref();
        let version = stored.map_or(0, |stored| stored.version);
        let base = stored.map_or(0, |stored| (stored.record.transitions - 1).max(0));
        let renumber = |old: u64| if old == version { 2 } else { 1 };
        if let Some(stored) = &mut next.stored {
            age(&mut stored.record, base);
            stored.version = 2;
        }
        for candidate in &mut next.candidates {
            match &mut candidate.late {
                Some((_, Sent::Create(record))) => age(record, base),
                Some((_, Sent::Update(old, record))) => {
                    *old = renumber(*old);
                    age(record, base);
                }
                Some((_, Sent::Done(revision))) => *revision = renumber(*revision),
                Some((_, Sent::Read)) | None => {}
            }
            let elector = &mut candidate.elector;
            if let Some(known) = &mut elector.version {
                let old = known.resource_version.parse().expect("a number");
                known.resource_version = renumber(old).to_string().into();
            }
            if let Some(seen) = &mut elector.seen {
                age(&mut seen.record, base);
                seen.age_micros = seen.age_micros.min(PAST_TICKS_MAX * TICK_MS * 1_000);
            }
            for time in [&mut elector.proved, &mut elector.last]
                .into_iter()
                .flatten()
            {
                *time = away(*time);
            }
            match &mut elector.state {
                State::Due(at) => *at = away(*at),
                State::Reading { since, .. } => *since = away(*since),
                State::Writing { since, record, .. } => {
                    *since = away(*since);
                    age(record, base);
                }
                State::Free | State::Over { .. } => {}
            }
        }
        for at in 0..next.candidates.len() {
            let now = next.now(at);
            next.candidates[at].elector.tick(now);
        }
        next
    }

    /// Everything that may come of one more tick. `visit` sees each state on the way, too.
    fn tick(&self, visit: &mut dyn FnMut(&World)) -> Vec<World> {
        let mut open = vec![self.later()];
        for at in 0..self.candidates.len() {
            let arrived: Vec<World> = open.iter().filter_map(|world| world.arrive(at)).collect();
            open.extend(arrived);
        }
        for at in 0..self.candidates.len() {
            let leapt = open
                .iter()
                .flat_map(|world| [-50, 2, 50].map(|ticks| world.leap(at, ticks)));
            let leapt: Vec<World> = leapt.flatten().collect();
            open.extend(leapt);
            open = open
                .iter()
                .flat_map(|world| FATES.map(|fate| world.turn(at, fate)))
                .flatten()
                .collect();
            open.iter().for_each(&mut *visit);
        }
        open
    }
}

/// A tick further away.
fn away(time: Time) -> Time {
    time.plus_ms(-TICK_MS)
        .max(NOW.plus_ms(-PAST_TICKS_MAX * TICK_MS))
}

fn age(record: &mut Record, base: i32) {
    record.acquired = record.acquired.map(away);
    record.renewed = record.renewed.map(away);
    record.transitions = (record.transitions - base).max(0);
}

fn sent(ask: Ask) -> Sent {
    let Ask::Write(Intent { action, .. }) = ask else {
        return Sent::Read;
    };
    match action {
        Action::Create { body } => Sent::Create(read(&body["spec"])),
        Action::Patch {
            resource_version,
            patch,
            ..
        } => Sent::Update(
            resource_version.parse().expect("a number"),
            read(&patch["spec"]),
        ),
        other => panic!("an elector does not ask for {other:?}"),
    }
}

/// A number that stands for a state.
fn mark(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Visits everything that can come of `begin` in so many ticks: how many states, how often a
/// candidate may write in one, and how often another than the first did.
fn explore(begin: World, ticks_max: i64) -> [usize; 3] {
    let mut seen = BTreeSet::new();
    let mut open = vec![begin];
    let mut counts = [0; 3];
    let mut visit = |world: &World| {
        let writers = world.writers();
        assert!(writers.len() <= 1, "{writers:?} may write: {world:#?}");
        counts[1] += writers.len();
        let transitions = world
            .stored
            .as_ref()
            .map_or(0, |stored| stored.record.transitions);
        counts[2] += usize::from(!writers.is_empty() && transitions > 0);
    };
    for _ in 0..ticks_max {
        if open.is_empty() {
            break;
        }
        let next = open.iter().flat_map(|world| world.tick(&mut visit));
        open = next.filter(|world| seen.insert(mark(world))).collect();
    }
    counts[0] = seen.len();
    counts
}

/// I9, S1.3
#[test]
fn three_candidates_never_write_at_one_time_however_late_or_cut_off_they_are() {
    let counts = explore(World::new(3, [3, 2, 1], 1, 0).led(), 4);
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
}

/// I9, S1.3
#[test]
fn two_candidates_never_write_at_one_time_from_the_first_moment_on() {
    let counts = explore(World::new(2, [3, 2, 1], 1, 0), 5);
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
}

/// I9, S1.3: with the usual proportions the leap of a clock breaks nothing either.
#[test]
fn two_candidates_never_write_at_one_time_though_a_clock_leaps() {
    let counts = explore(World::new(2, [4, 2, 1], 0, 1).led(), 5);
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
}
