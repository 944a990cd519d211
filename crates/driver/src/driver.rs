//! The loop itself: what happened comes in through `handle_*`, what is to be done goes out through
//! `poll_request`, and when to come back is `poll_wake`.

mod answering;
mod counting;
mod heralding;
mod leading;
mod leaping;
mod looking;
mod naming;
mod recording;
mod streaming;
mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use api::call::{Page, WatchLine};
use api::intent::{Intent, Refusal, WriteOutcome};
use api::kind::{KINDS, Kind};
use api::time::Time;
use controllers::{Inputs, Last, Outcome};
use mirror::{Change, Mirror};
use serde_json::value::RawValue;

use crate::backoff::Backoff;
use crate::cycle::{Cycles, End, Told};
use crate::election::Election;
use crate::inquiries::Inquiries;
use crate::log::{Asked, LineHeard, PageTaken, Record};
use crate::looks::Looks;
use crate::metrics::{Level, Metrics, Notice};
use crate::notes::Notes;
use crate::read::{ReadLine, ReadPage};
use crate::reflector::{Reflected, Reflector};
use crate::request::{Request, RequestId, decoded};
use crate::settings::Settings;
use crate::tallies::Tallies;
use crate::work::{Ended, Patience, Standing, WorkKey, WorkQueue};
use crate::writes::{Budget, Lane, Origin, Over, Writes};
use answering::Asking;
use naming::Named;
use recording::{Anew, Recorder};
use streaming::Streaming;

/// Where so many keys and writes wait for their turn, what only tells how things stand rests.
const BUSY_FROM: usize = 256;

/// The event loop as a value. See the crate's page for the order of calls.
#[derive(Debug)]
pub struct Driver {
    settings: Settings,
    mirror: Mirror,
    reflectors: BTreeMap<Kind, Reflector>,
    /// Lists and watches that are open.
    streams: BTreeMap<RequestId, Kind>,
    streaming: Streaming,
    /// Rows that watch a kind, by kind.
    rows_by_kind: Vec<Vec<u16>>,
    work: WorkQueue,
    writes: Writes,
    looks: Looks,
    inquiries: Inquiries,
    /// Notes about writes that are on their way.
    notes: Notes,
    asking: Asking,
    cycles: Option<Cycles>,
    election: Option<Election>,
    metrics: Metrics,
    tallies: Tallies,
    notices: VecDeque<Notice>,
    last_request: u64,
    /// Steps may be left although the last poll returned nothing.
    has_more: bool,
    /// Nothing new is decided until what is on its way is over.
    is_held_back: bool,
    /// A new beginning that is due.
    anew: Anew,
    /// What has happened since it was taken last, where that is wanted.
    recorder: Option<Recorder>,
}

impl Driver {
    /// A driver that has seen nothing yet. Its first requests are lists.
    pub fn new(settings: Settings) -> Driver {
        let watched = settings.watched_kinds();
        let limits = settings.limits;
        let budget = Budget {
            in_flight_max: limits.writes_in_flight_max.max(1),
            notes_max: limits.notes_queued_max,
            unseen_max_ms: limits.unseen_max_ms,
        };
        Driver {
            mirror: Mirror::new(),
            reflectors: watched
                .iter()
                .map(|kind| (*kind, Reflector::new(*kind, settings.seed)))
                .collect(),
            streams: BTreeMap::new(),
            streaming: Streaming::default(),
            rows_by_kind: rows_by_kind(&settings),
            work: WorkQueue::new(Backoff::KEY, Patience::of(&limits))
                .trying_on(settings.tried_on()),
            writes: Writes::new(&watched, budget),
            looks: Looks::default(),
            inquiries: Inquiries::default(),
            notes: Notes::default(),
            asking: Asking::of(&settings),
            cycles: settings
                .engine
                .clone()
                .map(|engine| Cycles::new(engine, limits)),
            election: (settings.election.as_ref())
                .map(|election| Election::new(election, settings.seed)),
            metrics: Metrics {
                parts: Driver::parts(&settings),
                ..Metrics::default()
            },
            tallies: Tallies::default(),
            notices: VecDeque::new(),
            last_request: 0,
            has_more: false,
            is_held_back: false,
            anew: Anew::default(),
            recorder: None,
            settings,
        }
    }

    // What there is to do.

    /// The next thing to be done, or `None` until something happens or [`Driver::poll_wake`] says.
    /// Hand in all events that are there before polling: a cycle looks at all of them once.
    pub fn poll_request(&mut self, now: Time) -> Option<(RequestId, Request)> {
        self.begin_anew_if_due(now);
        self.advance(now);
        let id = RequestId(self.last_request + 1);
        let request = self.next_request(id, now);
        self.note(|| Record::Asked {
            now,
            asked: request.as_ref().map(Asked::of),
        });
        let request = request?;
        self.last_request += 1;
        Some((id, request))
    }

    /// When to call [`Driver::handle_time`] although nothing has happened. In the past or now: at
    /// once, after events that are there have been handed in.
    pub fn poll_wake(&self) -> Option<Time> {
        let election = self.election.as_ref().and_then(Election::wake);
        if self.is_standby() {
            return election;
        }
        if self.has_more {
            return Some(Time(i64::MIN));
        }
        let reflectors = self.reflectors.values().filter_map(Reflector::wake);
        // Before everything is listed no cycle runs, so that its time must wake nobody: the last
        // page does.
        let may_run = self.is_informed() && !self.is_held_back;
        let cycles = self.cycles.as_ref().filter(|_| may_run);
        reflectors
            .chain(self.work.next_timer())
            .chain(self.writes.next_timer())
            .chain(cycles.and_then(|cycles| cycles.wake(&self.writes)))
            .chain(self.asking_wake())
            .chain(election)
            .min()
    }

    // What has happened.

    /// Time has passed.
    pub fn handle_time(&mut self, now: Time) {
        self.note(|| Record::Passed { now });
        self.advance(now);
    }

    /// Answers [`Request::List`].
    pub fn handle_page(&mut self, id: RequestId, answer: Result<Page, Refusal>, now: Time) {
        if let Some(kind) = self.streams.get(&id) {
            let answer = answer.map(|page| ReadPage::of(*kind, page));
            self.handle_read_page(id, answer, now);
        }
    }

    /// The same with objects that were read already, as of the kind that was asked for.
    pub fn handle_read_page(
        &mut self,
        id: RequestId,
        answer: Result<ReadPage, Refusal>,
        now: Time,
    ) {
        let Some(kind) = self.streams.remove(&id) else {
            return;
        };
        let Some(reflector) = self.reflectors.get_mut(&kind) else {
            return;
        };
        let heard = (self.recorder.is_some()).then(|| match &answer {
            Ok(page) => Ok((page.revision, page.continue_token.clone())),
            Err(refusal) => Err(refusal.clone()),
        });
        let reflected = reflector.page(&mut self.mirror, id, answer, now);
        if let Some(heard) = heard {
            let changes = &reflected.changes;
            self.note(|| Record::Page {
                now,
                id,
                kind,
                page: heard.map(|(revision, continue_token)| PageTaken {
                    revision,
                    continue_token,
                    changes: changes.clone(),
                }),
            });
        }
        self.reflected(kind, reflected, now);
    }

    /// One line of an open watch.
    pub fn handle_watch(&mut self, id: RequestId, line: WatchLine, now: Time) {
        if let Some(kind) = self.streams.get(&id) {
            let line = ReadLine::of(*kind, line);
            self.handle_read_line(id, line, now);
        }
    }

    /// The same with an object that was read already, as of the kind that is watched.
    pub fn handle_read_line(&mut self, id: RequestId, line: ReadLine, now: Time) {
        let Some(&kind) = self.streams.get(&id) else {
            return;
        };
        let Some(reflector) = self.reflectors.get_mut(&kind) else {
            return;
        };
        let is_end = matches!(line, ReadLine::Failed(_));
        let heard = (self.recorder.is_some()).then(|| LineHeard::of(&line));
        let reflected = reflector.line(&mut self.mirror, id, line, now);
        if let Some(heard) = heard {
            let line = heard.taken(&reflected, self.mirror.seen(kind));
            self.note(|| Record::Line {
                now,
                id,
                kind,
                line,
            });
        }
        if is_end || reflected.is_relist {
            self.streams.remove(&id);
        }
        self.metrics.events += 1;
        self.reflected(kind, reflected, now);
    }

    /// An open watch has ended, or could not be opened.
    pub fn handle_closed(&mut self, id: RequestId, refusal: Option<Refusal>, now: Time) {
        let Some(kind) = self.streams.remove(&id) else {
            return;
        };
        let Some(reflector) = self.reflectors.get_mut(&kind) else {
            return;
        };
        let why = refusal.clone();
        let reflected = reflector.closed(id, refusal, now);
        self.note(|| Record::Closed {
            now,
            id,
            refusal: why,
        });
        self.reflected(kind, reflected, now);
    }

    /// Answers [`Request::Write`].
    pub fn handle_written(&mut self, id: RequestId, outcome: WriteOutcome, now: Time) {
        self.note(|| Record::Written {
            now,
            id,
            outcome: outcome.clone(),
        });
        if self.election_written(id, &outcome, now) {
            return;
        }
        if let Some(over) = self.writes.written(id, outcome, &self.mirror, now) {
            self.over(over, now);
        }
    }

    /// Answers [`Request::Get`]: the object, or `None` where there is none, which a refusal may say, too.
    pub fn handle_got(
        &mut self,
        id: RequestId,
        answer: Result<Option<Box<RawValue>>, Refusal>,
        now: Time,
    ) {
        let answer = match answer {
            Err(refusal) if refusal.is_absence() => Ok(None),
            other => other,
        };
        let Some(answer) = self.election_got(id, answer, now) else {
            return;
        };
        let answer = self.looked_got(id, answer, now);
        let Some(answer) = answer.and_then(|it| self.devices_got(id, it, now)) else {
            return;
        };
        let Some(kind) = self.writes.kind_of(id) else {
            return;
        };
        let decoded = decoded(kind, answer);
        self.note(|| Record::Got {
            now,
            id,
            kind,
            object: decoded.clone(),
        });
        if let Some(over) = self.writes.got(id, decoded, &self.mirror, now) {
            self.over(over, now);
        }
    }

    // What can be looked at.

    /// The world as far as it has been seen.
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// The engine's tables, where it runs here.
    pub fn tables(&self) -> Option<&model::Tables> {
        self.cycles.as_ref().map(Cycles::tables)
    }

    /// Whether the answer to a write makes a difference: not, if it was asked for in an earlier
    /// leadership.
    pub fn awaits_write(&self, id: RequestId) -> bool {
        self.writes.kind_of(id).is_some()
    }

    /// How many cycles have run.
    pub fn cycles(&self) -> u64 {
        let now = self.cycles.as_ref().map(|cycles| cycles.counts().cycles);
        self.metrics.cycles + now.unwrap_or(0)
    }

    /// Whether all is known that decisions are made on: what is watched, and what is read by itself.
    pub fn is_informed(&self) -> bool {
        self.is_synced() && self.asking.is_ready()
    }

    /// Whether nothing is left to do until an event or a timer: everything is listed, no key is
    /// ready, no write is open and the engine has looked at everything.
    pub fn is_quiet(&self) -> bool {
        self.is_standby() || self.is_at_rest()
    }

    fn is_at_rest(&self) -> bool {
        self.is_synced()
            && !self.has_more
            && !self.work.is_ready()
            && self.writes.open() == 0
            && self.looks.open() == 0
            && self.inquiries.open() == 0
            && self.asking.is_quiet()
            && self.cycles.as_ref().is_none_or(Cycles::is_quiet)
    }

    /// What has happened so far, as numbers.
    pub fn metrics(&self) -> Metrics {
        let counts = self.writes.counts();
        let cycles = self.cycles.as_ref().map(Cycles::counts).unwrap_or_default();
        let asks = self.asking.counts();
        Metrics {
            cycles: self.metrics.cycles + cycles.cycles,
            cycle_micros: self.metrics.cycle_micros + cycles.cycle_micros,
            places: self.metrics.places + cycles.places,
            places_refused: self.metrics.places_refused + cycles.places_refused,
            violations: self.metrics.violations + cycles.violations,
            writes_unknown: self.metrics.writes_unknown + counts.unknown,
            read_backs: self.metrics.read_backs + counts.read_back,
            notes_dropped: self.metrics.notes_dropped + counts.notes_dropped,
            asks: self.metrics.asks + asks.asked + self.inquiries.asked_count(),
            asks_failed: self.metrics.asks_failed + asks.failed,
            values_refused: self.metrics.values_refused + asks.refused,
            controllers: self.controller_counts(),
            is_leading: !self.is_standby(),
            keys_ready: self.work.ready_count(),
            keys_known: self.work.known_count(),
            writes_queued: self.writes.queued(),
            writes_in_flight: self.writes.in_flight(),
            writes_open: self.writes.open(),
            ..self.metrics.clone()
        }
    }

    fn advance(&mut self, now: Time) {
        self.elect(now);
        if self.is_standby() {
            return;
        }
        self.work.advance(now);
        self.writes.advance(now);
        self.advance_asking(now);
        if let Some(cycles) = &mut self.cycles {
            cycles.advance(&self.mirror, &mut self.writes, now);
        }
        self.say_cycle_notices();
    }

    fn next_request(&mut self, id: RequestId, now: Time) -> Option<Request> {
        self.has_more = false;
        if let Some(request) = self.election.as_mut().and_then(|it| it.poll(id, now)) {
            return Some(request);
        }
        if self.is_standby() {
            return None;
        }
        if let Some(request) = self.next_stream(id, now) {
            return Some(request);
        }
        let is_synced = self.is_synced();
        self.is_held_back = self.holds_back(now);
        if self.is_held_back {
            return self.writes.poll(id);
        }
        if let Some(request) = self.ask(id, now) {
            return Some(request);
        }
        self.open_session(now);
        let is_busy = self.is_busy();
        if let (true, Some(cycles)) = (self.is_informed(), &mut self.cycles) {
            cycles.run_if_due(&self.mirror, &mut self.writes, is_busy, now);
            self.asking.want(cycles.take_asks());
            if let Some(planned) = cycles.take_planned() {
                self.note(|| Record::Planned(planned));
                self.tell_verdicts();
            }
        }
        for _ in 0..self.settings.limits.steps_per_turn_max {
            if let Some(request) = self.writes.poll(id) {
                return Some(request);
            }
            let is_full = self.writes.queued_urgent() >= self.settings.limits.writes_queued_max;
            if !is_synced || is_full {
                return None;
            }
            let Some((work, last)) = self.work.next() else {
                return self.look_or_inquire(id, now);
            };
            self.step(&work, &last, now);
        }
        // Look-ups come last, so that keys that ask for the same share one.
        self.has_more = true;
        self.look_or_inquire(id, now)
    }

    fn reflected(&mut self, kind: Kind, reflected: Reflected, now: Time) {
        let reflector = self.reflectors.get(&kind);
        if reflector.is_some_and(|it| it.wake().is_some()) {
            self.streaming.stirred();
        }
        for problem in reflected.problems {
            self.metrics.unreadable += 1;
            self.notice(Level::Warning, problem.to_string());
        }
        if let Some(trouble) = reflected.trouble {
            self.notice(Level::Warning, trouble);
        }
        if reflected.is_relist {
            self.metrics.relists += 1;
        }
        for change in &reflected.changes {
            self.changed(change, now);
        }
        for over in self.writes.stream_moved(kind, self.mirror.seen(kind)) {
            self.over(over, now);
        }
    }

    fn changed(&mut self, change: &Change, now: Time) {
        if let Some(cycles) = &mut self.cycles {
            cycles.changed(&self.mirror, change, &mut self.writes, now);
        }
        self.tallies.changed(change, &self.mirror, now);
        let mut keys = Vec::new();
        for row in &self.rows_by_kind[change.kind() as usize] {
            keys.clear();
            let controller = &self.settings.controllers[usize::from(*row)];
            (controller.keys)(&self.mirror, change, &mut keys);
            for key in keys.drain(..) {
                let key = Arc::new(key);
                self.work.wake(WorkKey::new(*row, key), now);
            }
        }
        for key in controllers::waits_ended(change) {
            self.work.appeared(&key, now);
        }
        for over in self.writes.object_changed(&change.key, &self.mirror) {
            self.over(over, now);
        }
    }

    fn step(&mut self, work: &WorkKey, last: &Last, now: Time) {
        let looked = self.looks.take(work);
        let heard = self.inquiries.take(work, now);
        let controller = &self.settings.controllers[usize::from(work.row)];
        let step = (controller.step)(&Inputs {
            mirror: &self.mirror,
            key: &work.key,
            now,
            settings: &self.settings.controller_settings,
            last,
            looked: &looked,
            heard: &heard,
            is_busy: self.is_busy(),
        });
        if step.rests || last.rests_since.is_some() {
            self.work.rests(work, step.rests, now);
        }
        let name = controller.name;
        self.tell_step(name, &work.key, &step);
        let controller = &self.settings.controllers[usize::from(work.row)];
        let counts = self.metrics.controllers.entry(controller.name).or_default();
        counts.steps += 1;
        let standing = match step.outcome {
            Outcome::Asks { keys } => {
                debug_assert!(step.intents.is_empty(), "who asks has not decided");
                let count = self.looks.ask(work, keys);
                return self.work.asked(work, last, count);
            }
            Outcome::Inquires { questions } => {
                debug_assert!(step.intents.is_empty(), "who asks has not decided");
                let count = self.inquiries.ask(work, questions);
                return self.work.asked(work, last, count);
            }
            Outcome::Idle => Standing::Idle,
            Outcome::Blocked { waits_for, .. } => {
                counts.blocked += 1;
                Standing::Waits { waits_for }
            }
            Outcome::Retry { reason } => {
                counts.retries += 1;
                let text = format!("{}: {}: {reason}", controller.name, Named(&work.key));
                self.notice(Level::Debug, text);
                Standing::Retry
            }
            Outcome::Fatal { reason } => {
                counts.fatal += 1;
                let text = format!("{}: {}: {reason}", controller.name, Named(&work.key));
                self.notice(Level::Error, text);
                Standing::Fatal
            }
        };
        let is_note = |intent: &Intent| intent.target.kind == Kind::Event;
        let (notes, writes): (Vec<_>, Vec<_>) = step.intents.into_iter().partition(is_note);
        let waited_for = u32::try_from(writes.len()).unwrap_or(u32::MAX);
        let targets: Vec<_> = match notes.is_empty() {
            true => Vec::new(),
            false => writes.iter().map(|intent| intent.target.clone()).collect(),
        };
        let lifting = (writes.iter()).filter_map(|it| controllers::lifted_by(&self.mirror, it));
        let standing = standing.waiting_for(lifting);
        for intent in writes {
            let origin = Origin::Work(work.clone());
            self.writes.submit(intent, origin, Lane::Write);
        }
        for note in notes {
            if let Some(note) = self.notes.hold(work, &targets, note) {
                self.writes.note(note, now);
            }
        }
        let round = self
            .work
            .stepped(work, standing, step.wake_at, waited_for, now);
        self.round_ended(work, round);
    }

    /// Whether so much waits to be stepped or written that what only tells how things stand should rest.
    fn is_busy(&self) -> bool {
        self.work.ready_count() + self.writes.queued_urgent() >= BUSY_FROM
    }

    fn over(&mut self, over: Over, now: Time) {
        let end = match over.ended {
            Ended::Done => "done",
            Ended::Outdated => "outdated",
            Ended::Failed { .. } => "failed",
        };
        *self.metrics.writes.entry((over.verb, end)).or_default() += 1;
        if let (Ended::Failed { .. }, Some(refusal)) = (over.ended, &over.refusal) {
            let text = format!(
                "cannot {} {}: {}",
                over.verb,
                Named(&over.target),
                refusal.message
            );
            self.notice(Level::Warning, text);
        }
        let kind = over.target.kind;
        if over.is_missing
            && let Some(reflector) = self.reflectors.get_mut(&kind)
        {
            let reflected = reflector.doubt("a line was lost", now);
            self.reflected(kind, reflected, now);
        }
        match over.origin {
            Origin::Note => {}
            Origin::Said => (self.cycles.iter_mut()).for_each(|it| it.pod_told(&over, now)),
            Origin::Shard => self
                .cycles
                .iter_mut()
                .for_each(|it| it.shard_told(&over, now)),
            Origin::Lock => {
                if let Some(cycles) = &mut self.cycles {
                    cycles.lock_written(&over, &self.mirror, &mut self.writes, now);
                }
            }
            Origin::Work(ref work) => self.work_over(work, &over, now),
            Origin::Plan(write) => {
                if let Some(cycles) = &mut self.cycles {
                    let end = End {
                        target: &over.target,
                        ended: over.ended,
                        refusal: over.refusal.as_ref(),
                    };
                    cycles.over(write, &end, (&self.mirror, &mut self.writes), now);
                }
            }
            Origin::Mark(write) => {
                if let Some(cycles) = &mut self.cycles {
                    cycles.marked(write, &self.mirror, &mut self.writes);
                }
            }
            Origin::Hold(hold) => {
                if let Some(cycles) = &mut self.cycles {
                    let told = Told {
                        hold,
                        claim: over.target,
                        ended: over.ended,
                    };
                    cycles.told(&told, &self.mirror, &mut self.writes, now);
                }
            }
        }
    }

    fn work_over(&mut self, work: &WorkKey, over: &Over, now: Time) {
        self.tally(work, over, now);
        if let (Ended::Failed { .. }, Some(refusal)) = (over.ended, &over.refusal) {
            self.work_refused(work, over, refusal, now);
        }
        let notes = self.notes.take(work, &over.target);
        if matches!(over.ended, Ended::Done) {
            for note in notes {
                self.writes.note(note, now);
            }
        }
        let Some(round) = self.work.write_ended(work, over.ended, now) else {
            return;
        };
        if round.failures > 0 {
            let name = self.settings.controllers[usize::from(work.row)].name;
            let counts = self.metrics.controllers.entry(name).or_default();
            counts.write_failures += 1;
        }
        self.round_ended(work, round);
    }
}

fn rows_by_kind(settings: &Settings) -> Vec<Vec<u16>> {
    KINDS
        .iter()
        .map(|kind| {
            settings
                .controllers
                .iter()
                .enumerate()
                .filter(|(_, row)| row.watches.contains(&kind.kind))
                .filter_map(|(at, _)| u16::try_from(at).ok())
                .collect()
        })
        .collect()
}
