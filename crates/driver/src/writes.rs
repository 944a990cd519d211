//! Writes on their way: handed out within a budget, answered, read back where the answer was lost,
//! and over only when their effect has been seen in the mirror.

mod effect;
mod packed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::intent::{Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::{KINDS, Kind};
use api::time::Time;
use mirror::{Mirror, Object};

use crate::backoff::Backoff;
use crate::correlator::Correlator;
use crate::cycle::HoldId;
use crate::request::{Request, RequestId};
use crate::timers;
use crate::work::{Ended, Passes, WorkKey};
use effect::{
    Effect, ReadBack, changed_nothing, has_controller, is_based_on, is_seen, is_version, read_back,
};
use packed::Packed;

/// Who waits for a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A key of a row: it is not stepped before the write is over.
    Work(WorkKey),
    /// The tables: the row stays pending until the write is over.
    Plan(model::WriteId),
    /// A victim, which is told why before it is deleted.
    Mark(model::WriteId),
    /// Binds that wait for their volumes: a claim is told its node.
    Hold(HoldId),
    /// The node, which is locked for a bind.
    Lock,
    /// The shard, which is told which nodes are in use.
    Shard,
    /// A pod, which says why it waits: it is to say so once it can.
    Said,
    /// Nobody: a note for people.
    Note,
}

/// Which writes go first, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub(crate) enum Lane {
    /// Binds: somebody's pods start.
    Bind,
    /// What controllers want, and phases.
    Write,
    /// Conditions, shares and notes: for people.
    Low,
}

/// Limits on writes; see `Limits` in the settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) in_flight_max: usize,
    pub(crate) notes_max: usize,
    /// A write whose effect is not seen after this time is read back.
    pub(crate) unseen_max_ms: i64,
}

/// A write that is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Over {
    pub(crate) origin: Origin,
    pub(crate) ended: Ended,
    pub(crate) target: ObjectKey,
    pub(crate) verb: &'static str,
    /// What the server said, if it refused.
    pub(crate) refusal: Option<Refusal>,
    /// The mirror should show what was made, and does not: a line of its watch was lost.
    pub(crate) is_missing: bool,
}

/// What Kubernetes says of what a ResourceQuota has no room for.
const EXCEEDED_QUOTA: &str = "exceeded quota: ";

/// Whether the same write may well be taken later: the server was busy or broken, or a quota is used up.
pub(crate) fn passes(refusal: &Refusal) -> Passes {
    match refusal.code {
        0 | 429 | 500.. => Passes::ByItself,
        403 if refusal.message.contains(EXCEEDED_QUOTA) => Passes::WithOthers,
        _ => Passes::Never,
    }
}

/// A pod that nobody has bound, although a bind of it met a conflict, is read so often at most.
const READS_MAX: u32 = 5;
/// Where so many notes wait no pod is told anything more.
const WORDS_MAX: usize = 1_024;
/// Writes that have so many before them are packed.
const PACKED_FROM: usize = 1_024;

/// Counts for the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) unknown: u64,
    pub(crate) read_back: u64,
    pub(crate) notes_dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FlightId(u64);

#[derive(Debug)]
struct Flight {
    /// Taken out when it is handed to the shell.
    intent: Option<Packed>,
    target: ObjectKey,
    effect: Effect,
    origin: Origin,
    reads: u32,
    /// What a bind was told whose pod is read back to see whose it is, or a patch or deletion that waits for
    /// news of its object.
    conflict: Option<Refusal>,
    unseen: Option<Unseen>,
}

/// Performed, and waited for in the mirror; or refused, since there is news that the mirror lacks.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    revision: u64,
    until: Time,
}

#[derive(Debug)]
pub(crate) struct Writes {
    /// Each by itself: they come and go one after the other, and those beside one are moved then.
    flights: BTreeMap<FlightId, Box<Flight>>,
    next_flight: u64,
    lanes: [VecDeque<FlightId>; 3],
    reads_ready: VecDeque<FlightId>,
    sent: BTreeMap<RequestId, FlightId>,
    by_revision: BTreeSet<(Kind, u64, FlightId)>,
    by_key: BTreeMap<ObjectKey, BTreeSet<FlightId>>,
    timers: BTreeSet<(Time, FlightId)>,
    watched: Vec<bool>,
    budget: Budget,
    counts: Counts,
    correlator: Correlator,
}

impl Writes {
    pub(crate) fn new(watched: &BTreeSet<Kind>, budget: Budget) -> Writes {
        Writes {
            flights: BTreeMap::new(),
            next_flight: 0,
            lanes: Default::default(),
            reads_ready: VecDeque::new(),
            sent: BTreeMap::new(),
            by_revision: BTreeSet::new(),
            by_key: BTreeMap::new(),
            timers: BTreeSet::new(),
            watched: KINDS
                .iter()
                .map(|row| watched.contains(&row.kind))
                .collect(),
            budget,
            counts: Counts::default(),
            correlator: Correlator::new(),
        }
    }

    /// Takes a note for people, unless they were told enough of its object. Those beyond the limit are
    /// dropped and counted.
    pub(crate) fn note(&mut self, note: Intent, now: Time) {
        if !self.has_room_for_notes() {
            self.counts.notes_dropped += 1;
        } else if note.target.kind != Kind::Event || self.correlator.takes(&note, now) {
            self.submit(note, Origin::Note, Lane::Low);
        }
    }

    /// Takes a write into its lane.
    pub(crate) fn submit(&mut self, intent: Intent, origin: Origin, lane: Lane) {
        self.next_flight += 1;
        let id = FlightId(self.next_flight);
        let lane = &mut self.lanes[lane as usize];
        let (target, effect) = (intent.target.clone(), Effect::of(&intent));
        let intent = match lane.len() < PACKED_FROM {
            true => Packed::loosely(intent),
            false => Packed::tightly(intent),
        };
        let flight = Flight {
            target,
            effect,
            intent: Some(intent),
            origin,
            reads: 0,
            conflict: None,
            unseen: None,
        };
        self.flights.insert(id, Box::new(flight));
        lane.push_back(id);
    }

    /// Whether a note would be taken.
    pub(crate) fn has_room_for_notes(&self) -> bool {
        self.lanes[Lane::Low as usize].len() < self.budget.notes_max
    }

    /// Whether what a pod says of itself would be taken: it can be said later as well.
    pub(crate) fn has_room_for_words(&self) -> bool {
        self.lanes[Lane::Low as usize].len() < self.budget.notes_max.min(WORDS_MAX)
    }

    /// The next request, if the budget has room; `id` is what it will be called.
    pub(crate) fn poll(&mut self, id: RequestId) -> Option<Request> {
        let room = self.budget.in_flight_max.saturating_sub(self.sent.len());
        if room == 0 {
            return None;
        }
        if let Some(flight_id) = self.reads_ready.pop_front() {
            let flight = self.flights.get(&flight_id)?;
            self.counts.read_back += 1;
            self.sent.insert(id, flight_id);
            return Some(Request::Get {
                key: flight.target.clone(),
            });
        }
        // Notes for people never take the last half of the budget.
        let lanes = if room > self.budget.in_flight_max / 2 {
            3
        } else {
            2
        };
        for lane in &mut self.lanes[..lanes] {
            if let Some(flight_id) = lane.pop_front() {
                let intent = self.flights.get_mut(&flight_id)?.intent.take()?;
                self.sent.insert(id, flight_id);
                return Some(Request::Write(intent.unpacked()));
            }
        }
        None
    }

    /// The answer to a write. `None` while it is not over, or if no such request is open.
    pub(crate) fn written(
        &mut self,
        id: RequestId,
        outcome: WriteOutcome,
        mirror: &Mirror,
        now: Time,
    ) -> Option<Over> {
        let flight_id = self.sent.remove(&id)?;
        match outcome {
            WriteOutcome::Done { revision, .. } => self.done(flight_id, revision, mirror, now),
            WriteOutcome::Unknown { .. } => self.unknown(flight_id),
            WriteOutcome::Refused(refusal) => self.refused(flight_id, refusal, mirror, now),
        }
    }

    /// The answer to a read-back: the object, or `None` if there is none.
    pub(crate) fn got(
        &mut self,
        id: RequestId,
        answer: Result<Option<Object>, Refusal>,
        mirror: &Mirror,
        now: Time,
    ) -> Option<Over> {
        let flight_id = self.sent.remove(&id)?;
        let object = match answer {
            Ok(object) => object,
            Err(refusal) => {
                let wanted = i64::from(refusal.retry_after_seconds.unwrap_or(0)) * 1_000;
                return self.read_again(flight_id, wanted, now);
            }
        };
        let flight = self.flights.get_mut(&flight_id)?;
        let answer = read_back(&flight.effect, object.as_ref());
        let failed = Ended::Failed { retry_after_ms: 0 };
        let is_gone = matches!(
            (&flight.effect, &answer),
            (Effect::Delete { .. }, ReadBack::Happened { .. })
        );
        if flight.effect.version().is_some()
            && !is_gone
            && let Some(refusal) = flight.conflict.take()
        {
            // The server has news of it, which its watch does not bring.
            let is_missing = !is_version(&flight.effect, object.as_ref())
                && is_based_on(&flight.effect, &flight.target, mirror);
            let over = self.over(flight_id, Ended::Outdated, Some(refusal));
            return over.map(|over| Over { is_missing, ..over });
        }
        match (answer, flight.conflict.is_some()) {
            // It was changed, by this write or by somebody else's: who wanted it finds out on the newer
            // state, as after a conflict.
            (ReadBack::Happened { .. }, _) if matches!(flight.effect, Effect::Patch { .. }) => {
                self.refused(flight_id, in_doubt(), mirror, now)
            }
            (ReadBack::Happened { revision }, _) => self.done(flight_id, revision, mirror, now),
            // Bound to nobody, and yet a conflict: what was read is older than that.
            (ReadBack::DidNot, true) if flight.reads < READS_MAX => {
                self.read_again(flight_id, 0, now)
            }
            (ReadBack::Outdated, _) | (ReadBack::DidNot, true) => {
                let refusal = flight.conflict.take();
                self.over(flight_id, Ended::Outdated, refusal)
            }
            (ReadBack::DidNot, false) => self.over(flight_id, failed, None),
        }
    }

    /// The object is read once more, after a while.
    fn read_again(&mut self, id: FlightId, at_least_ms: i64, now: Time) -> Option<Over> {
        let flight = self.flights.get_mut(&id)?;
        flight.reads = flight.reads.saturating_add(1);
        let delay = Backoff::REFLECTOR.delay_ms(flight.reads).max(at_least_ms);
        self.timers.insert((now.plus_ms(delay), id));
        None
    }

    /// The kind of the object that an open request is about.
    pub(crate) fn kind_of(&self, id: RequestId) -> Option<Kind> {
        let flight = self.flights.get(self.sent.get(&id)?)?;
        Some(flight.target.kind)
    }

    /// A kind's stream has moved on: writes that it now shows are over.
    pub(crate) fn stream_moved(&mut self, kind: Kind, seen: u64) -> Vec<Over> {
        let mut over = Vec::new();
        loop {
            let first = self
                .by_revision
                .range((kind, 0, FlightId(0))..)
                .next()
                .copied();
            match first {
                Some((of, revision, id)) if of == kind && revision <= seen => {
                    over.extend(self.over(id, Ended::Done, None));
                }
                _ => return over,
            }
        }
    }

    /// An object has changed: writes to it whose answer bears no revision may be over, and so is the
    /// wait of those that met a conflict.
    pub(crate) fn object_changed(&mut self, key: &ObjectKey, mirror: &Mirror) -> Vec<Over> {
        let Some(waiting) = self.by_key.get(key) else {
            return Vec::new();
        };
        let mut ended = Vec::new();
        for id in waiting {
            let Some(flight) = self.flights.get(id) else {
                continue;
            };
            let revision = flight.unseen.map_or(0, |unseen| unseen.revision);
            let is_of_version = flight.effect.version().is_some();
            let conflict = flight.conflict.as_ref().filter(|_| is_of_version);
            let may_be_done = conflict.is_none() || matches!(flight.effect, Effect::Delete { .. });
            if may_be_done && is_seen(&flight.effect, &flight.target, revision, mirror) {
                ended.push((*id, Ended::Done, None));
            } else if let Some(conflict) = conflict
                && !is_based_on(&flight.effect, &flight.target, mirror)
            {
                ended.push((*id, Ended::Outdated, Some(conflict.clone())));
            }
        }
        let ended = ended.into_iter();
        ended
            .filter_map(|(id, end, conflict)| self.over(id, end, conflict))
            .collect()
    }

    /// Time has passed: reads that were put off are due, and writes too long unseen are read back.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            self.stop_waiting(id);
            self.reads_ready.push_back(id);
        }
    }

    /// Whatever is waited for is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        for flight in self.flights.values_mut() {
            if let Some(unseen) = &mut flight.unseen {
                unseen.until = unseen.until.min(now);
            }
        }
        timers::hurry(&mut self.timers, now);
    }

    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.sent.len()
    }

    /// Writes that wait to be handed out.
    pub(crate) fn queued(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    /// Writes that wait to be handed out, without those for people.
    pub(crate) fn queued_urgent(&self) -> usize {
        self.lanes[Lane::Bind as usize].len() + self.lanes[Lane::Write as usize].len()
    }

    /// Writes that are not over.
    pub(crate) fn open(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    fn done(&mut self, id: FlightId, revision: u64, mirror: &Mirror, now: Time) -> Option<Over> {
        let flight = self.flights.get_mut(&id)?;
        let kind = flight.target.kind;
        // A webhook takes it back, or a schema drops it: decided again at once it would be the same, for ever.
        // Who takes the last finalizer of what is going is answered with the former revision, too: it has gone.
        let is_going = || {
            let object = mirror.object(&flight.target);
            object.is_some_and(|it| it.meta().deletion_timestamp.is_some())
        };
        if matches!(flight.origin, Origin::Work(_))
            && changed_nothing(&flight.effect, revision)
            && !is_going()
        {
            return self.over(id, Ended::Outdated, None);
        }
        if flight.origin == Origin::Note || !self.watched[kind as usize] {
            return self.over(id, Ended::Done, None);
        }
        if is_seen(&flight.effect, &flight.target, revision, mirror) {
            // It was on its way out when its deletion was decided, and a finalizer keeps it: decided again at once
            // it would be the same, for as long as the finalizer stays.
            let is_deletion = matches!(flight.effect, Effect::Delete { .. });
            if is_deletion
                && matches!(flight.origin, Origin::Work(_))
                && is_based_on(&flight.effect, &flight.target, mirror)
            {
                return self.over(id, Ended::Outdated, None);
            }
            let is_made = matches!(flight.effect, Effect::Create { .. }) && revision > 0;
            if !is_made || mirror.object(&flight.target).is_some() {
                return self.over(id, Ended::Done, None);
            }
            // Whoever wanted it would want it again at once, and for ever.
            let over = self.over(id, Ended::Failed { retry_after_ms: 0 }, None);
            let is_missing = true;
            return over.map(|over| Over { is_missing, ..over });
        }
        self.wait(id, revision, now);
        None
    }

    /// A write waits until the mirror shows what it did, or what it did not know of.
    fn wait(&mut self, id: FlightId, revision: u64, now: Time) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        let until = now.plus_ms(self.budget.unseen_max_ms);
        flight.unseen = Some(Unseen { revision, until });
        self.timers.insert((until, id));
        match (&flight.effect, &flight.conflict) {
            (Effect::Create { .. } | Effect::Patch { .. }, None) => {
                self.by_revision.insert((flight.target.kind, revision, id));
            }
            _ => {
                let target = flight.target.clone();
                self.by_key.entry(target).or_default().insert(id);
            }
        }
    }

    /// The answer was lost: the object is read back. Nobody waits for a note.
    fn unknown(&mut self, id: FlightId) -> Option<Over> {
        self.counts.unknown += 1;
        if self.flights.get(&id)?.origin == Origin::Note {
            return self.over(id, Ended::Failed { retry_after_ms: 0 }, None);
        }
        self.reads_ready.push_back(id);
        None
    }

    fn refused(
        &mut self,
        id: FlightId,
        refusal: Refusal,
        mirror: &Mirror,
        now: Time,
    ) -> Option<Over> {
        let flight = self.flights.get(&id)?;
        let retry_after_ms = i64::from(refusal.retry_after_seconds.unwrap_or(0)) * 1_000;
        let failed = Ended::Failed { retry_after_ms };
        match (refusal.code, &flight.effect) {
            // The server gave up waiting for itself: the write may still have happened.
            (504, _) => self.unknown(id),
            (404, Effect::Delete { .. }) => self.done(id, 0, mirror, now),
            (409, Effect::Create { controller }) if &*refusal.reason == "AlreadyExists" => {
                match mirror.object(&flight.target) {
                    Some(object) if has_controller(object, controller.as_deref()) => {
                        self.over(id, Ended::Done, None)
                    }
                    Some(_) => self.over(id, failed, Some(refusal)),
                    None if flight.origin == Origin::Note => self.over(id, Ended::Done, None),
                    None => {
                        self.reads_ready.push_back(id);
                        None
                    }
                }
            }
            // It may be an earlier request of ours, whose answer was lost, that has bound the pod:
            // its room is not free before that is known.
            (409, Effect::Bind { .. }) => {
                self.flights.get_mut(&id)?.conflict = Some(refusal);
                self.reads_ready.push_back(id);
                None
            }
            // Whoever decides again before there is news of the object decides the same, and is refused
            // again: the write is over only when there is.
            (409, effect)
                if flight.origin != Origin::Note
                    && self.watched[flight.target.kind as usize]
                    && is_based_on(effect, &flight.target, mirror) =>
            {
                self.flights.get_mut(&id)?.conflict = Some(refusal);
                self.wait(id, 0, now);
                None
            }
            (404 | 409, Effect::Patch { .. } | Effect::Delete { .. } | Effect::Bind { .. }) => {
                self.over(id, Ended::Outdated, Some(refusal))
            }
            _ => self.over(id, failed, Some(refusal)),
        }
    }

    fn over(&mut self, id: FlightId, ended: Ended, refusal: Option<Refusal>) -> Option<Over> {
        self.stop_waiting(id);
        let flight = *self.flights.remove(&id)?;
        let target = &flight.target;
        if target.kind == Kind::Event && ended != Ended::Done {
            self.correlator.lost(&target.namespace, &target.name);
        }
        Some(Over {
            origin: flight.origin,
            ended,
            target: flight.target,
            verb: flight.effect.verb(),
            refusal,
            is_missing: false,
        })
    }

    fn stop_waiting(&mut self, id: FlightId) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        let Some(unseen) = flight.unseen.take() else {
            return;
        };
        self.timers.remove(&(unseen.until, id));
        let by_revision = (flight.target.kind, unseen.revision, id);
        if self.by_revision.remove(&by_revision) {
            return;
        }
        if let Some(waiting) = self.by_key.get_mut(&flight.target) {
            waiting.remove(&id);
            if waiting.is_empty() {
                self.by_key.remove(&flight.target);
            }
        }
    }
}

/// What a write is told of which nobody knows whether it was it that changed its object.
fn in_doubt() -> Refusal {
    Refusal {
        code: 409,
        reason: "Conflict".into(),
        message: "the object has changed, and the answer to this write was lost".into(),
        retry_after_seconds: None,
    }
}
