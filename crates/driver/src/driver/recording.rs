//! What is kept of what happens, and how a segment of the log begins: with a driver that goes on from
//! what a checkpoint holds, and from nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::intent::ObjectKey;
use api::time::Time;
use api::volcano::scheduler_conf::MetricsConf;
use controllers::{Outcome, Step};
use engine::Engine;
use mirror::Mirror;

use super::{Driver, Named};
use crate::cycle::Cycles;
use crate::election::Election;
use crate::log::{Checkpoint, Learnt, Record};
use crate::metrics::Level;
use crate::reflector::Reflector;

/// Records that wait to be taken. Whoever does not take them loses the log up to the next checkpoint.
const RECORDS_MAX: usize = 100_000;
/// How long a checkpoint waits for a moment at which nothing is on its way, before nothing new is
/// decided until there is one.
const PATIENCE_MS: i64 = 60_000;

/// Records, and whether a new segment is wanted.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    records: Vec<Record>,
    /// Records were lost: none is worth anything before a segment begins.
    is_lost: bool,
    /// How many since the last segment began.
    lost: u64,
    /// Whose steps are told.
    explained: Option<ObjectKey>,
    steps: Vec<String>,
}

/// A beginning from a checkpoint, as soon as nothing is on its way.
#[derive(Default)]
pub(super) struct Anew {
    due_since: Option<Time>,
    /// Decides from then on, by what these tell of nodes.
    engine: Option<Box<(Engine, MetricsConf)>>,
}

impl std::fmt::Debug for Anew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anew")
            .field("due_since", &self.due_since)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Records what happens from now on. To be called before the first poll.
    pub fn record(&mut self, now: Time) {
        self.recorder = Some(Recorder::default());
        self.begin_anew(now);
    }

    /// What has happened since the last call, oldest first.
    pub fn take_records(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        self.take_records_into(&mut records);
        records
    }

    /// The same, for whoever asks after each event: `records` is emptied, and its memory is used for
    /// what happens next.
    pub fn take_records_into(&mut self, records: &mut Vec<Record>) {
        records.clear();
        if let Some(recorder) = &mut self.recorder {
            std::mem::swap(&mut recorder.records, records);
        }
    }

    /// How many records wait to be taken.
    pub fn records_waiting(&self) -> usize {
        self.recorder.as_ref().map_or(0, |it| it.records.len())
    }

    /// What it decides by.
    pub fn settings(&self) -> &crate::Settings {
        &self.settings
    }

    /// A new segment of the log is wanted: it begins at the next moment at which nothing is on its
    /// way.
    pub fn handle_checkpoint(&mut self, now: Time) {
        if self.recorder.is_some() {
            self.note(|| Record::Due { now });
            self.anew.due_since.get_or_insert(now);
        }
    }

    /// Another engine decides, and others are asked what is used of nodes, from the next moment on at which nothing is on its way: the scheduler's
    /// configuration has changed. A log goes on with a segment of its own, whose header names the new
    /// rules. Nothing happens where they are those that hold already, or where no engine runs.
    pub fn handle_rules(&mut self, engine: Engine, metrics: MetricsConf, now: Time) {
        let Some(current) = &self.settings.engine else {
            return;
        };
        let (next, asked) = match self.anew.engine.as_deref() {
            Some((engine, metrics)) => (engine, metrics),
            None => (&current.engine, &current.metrics),
        };
        if next.settings() != engine.settings() || *asked != metrics {
            // What waits in a segment that ends is told like any other wish for a new one.
            self.note(|| Record::Due { now });
            self.anew.due_since.get_or_insert(now);
            self.anew.engine = Some(Box::new((engine, metrics)));
        }
    }

    /// A driver that goes on from a checkpoint; `None` where that is of another kind of driver.
    pub(crate) fn resumed(settings: crate::Settings, checkpoint: &Checkpoint) -> Option<Driver> {
        let mut driver = Driver::new(settings);
        driver.last_request = checkpoint.last_request;
        driver.streams = checkpoint.open.clone();
        for stream in &checkpoint.streams {
            driver.reflectors.get_mut(&stream.kind)?.resume(stream);
        }
        driver.mirror = shelved(checkpoint);
        match (&mut driver.election, &checkpoint.election) {
            (None, None) => {}
            (Some(election), Some(state)) => election.resume(state).then_some(())?,
            _ => return None,
        }
        driver.remember(&checkpoint.shuffles, &checkpoint.learnt, checkpoint.now);
        Some(driver)
    }

    /// Records from now on without a checkpoint, and tells the steps of an object.
    pub(crate) fn record_on(&mut self, explained: Option<ObjectKey>) {
        if let (Some(cycles), Some(key)) = (&mut self.cycles, &explained) {
            cycles.explain(key.clone());
        }
        self.recorder = Some(Recorder {
            explained,
            ..Recorder::default()
        });
    }

    /// What controllers and cycles said about the object whose steps are told, since the last call.
    pub fn take_steps(&mut self) -> Vec<String> {
        let recorder = self.recorder.as_mut();
        recorder.map_or_else(Vec::new, |it| std::mem::take(&mut it.steps))
    }

    /// What another engine would have decided otherwise since the last call.
    pub fn take_otherwise(&mut self) -> Vec<crate::Otherwise> {
        let cycles = self.cycles.as_mut();
        cycles.map_or_else(Vec::new, |cycles| cycles.take_otherwise())
    }

    /// A controller has looked at a key.
    pub(super) fn tell_step(&mut self, controller: &str, key: &ObjectKey, step: &Step) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if recorder.explained.as_ref() != Some(key) {
            return;
        }
        let outcome = match &step.outcome {
            Outcome::Idle => "has nothing more to do".to_owned(),
            Outcome::Asks { keys } => format!("looks up {} objects", keys.len()),
            Outcome::Inquires { questions } => format!("asks {} questions", questions.len()),
            Outcome::Blocked { reason, waits_for } => {
                let names: Vec<String> =
                    waits_for.iter().map(|key| Named(key).to_string()).collect();
                format!("waits: {reason}, for {}", names.join(", "))
            }
            Outcome::Retry { reason } => format!("tries again: {reason}"),
            Outcome::Fatal { reason } => format!("gives up: {reason}"),
        };
        let writes = step.intents.len();
        let wake = step
            .wake_at
            .map(|at| format!(", looks again at {}", at.micro()));
        recorder.steps.push(format!(
            "{controller} wants {writes} writes and {outcome}{}",
            wake.unwrap_or_default()
        ));
    }

    /// A cycle has run.
    pub(super) fn tell_verdicts(&mut self) {
        let (Some(recorder), Some(cycles)) = (&mut self.recorder, &mut self.cycles) else {
            return;
        };
        recorder.steps.extend(cycles.take_verdicts());
    }

    pub(super) fn note(&mut self, record: impl FnOnce() -> Record) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if recorder.is_lost {
            recorder.lost += 1;
            return;
        }
        if recorder.records.len() >= RECORDS_MAX {
            let lost = recorder.records.len() + 1;
            recorder.records = Vec::new();
            recorder.is_lost = true;
            recorder.lost = lost as u64;
            self.anew.due_since.get_or_insert(Time(i64::MIN));
            let text = format!(
                "the decision log falls behind: {lost} records are given up, and those to come until \
                 a new segment begins"
            );
            self.notice(Level::Warning, text);
            return;
        }
        recorder.records.push(record());
    }

    /// Whether nothing new is decided, so that a segment can begin.
    pub(super) fn holds_back(&self, now: Time) -> bool {
        let since = self.anew.due_since;
        since.is_some_and(|since| now >= since.plus_ms(PATIENCE_MS)) && self.writes.open() > 0
    }

    pub(super) fn begin_anew_if_due(&mut self, now: Time) {
        let Some(since) = self.anew.due_since else {
            return;
        };
        let is_patient = now < since.plus_ms(PATIENCE_MS);
        let cycles = self.cycles.as_ref();
        let has_binds = cycles.is_some_and(|cycles| cycles.has_binds_waiting());
        let is_waiting = has_binds || self.asking.untold() > 0;
        if self.writes.open() == 0 && !(is_waiting && is_patient) {
            self.begin_anew(now);
        }
    }

    /// Begins a segment, unless something is in the middle: forgets what is not in a checkpoint.
    fn begin_anew(&mut self, now: Time) {
        let Some(checkpoint) = self.checkpoint(now) else {
            return;
        };
        if let (Some(election), Some(state)) = (&mut self.election, &checkpoint.election) {
            // It is its own state; what was asked and never answered is forgotten.
            let _is_same = election.resume(state);
        }
        let Anew { engine, .. } = std::mem::take(&mut self.anew);
        if let (Some(settings), Some(engine)) = (&mut self.settings.engine, engine) {
            (settings.engine, settings.metrics) = *engine;
        }
        let shuffles = checkpoint.shuffles.clone();
        let learnt = checkpoint.learnt.clone();
        let mut lost = 0;
        if let Some(recorder) = &mut self.recorder {
            recorder.is_lost = false;
            lost = std::mem::take(&mut recorder.lost);
            recorder.records.push(Record::Began {
                checkpoint: Box::new(checkpoint),
                settings: Arc::new(self.settings.clone()),
            });
        }
        if lost > 0 {
            self.metrics.records_lost += lost;
            let text = format!("the decision log goes on; {lost} records before this are lost");
            self.notice(Level::Warning, text);
        }
        let untold = self.asking.untold();
        if untold > 0 {
            let text = format!("the extender is not told {untold} things that were decided");
            self.notice(Level::Warning, text);
        }
        let counted = self.metrics();
        let fresh = Driver::new(self.settings.clone());
        self.work = fresh.work;
        self.writes = fresh.writes;
        self.looks = fresh.looks;
        self.inquiries = fresh.inquiries;
        self.notes = fresh.notes;
        let old = std::mem::replace(&mut self.cycles, fresh.cycles);
        if let (Some(cycles), Some(old)) = (&mut self.cycles, old) {
            cycles.continue_from(old);
        }
        self.asking = fresh.asking;
        self.metrics = counted;
        self.has_more = false;
        self.is_held_back = false;
        self.remember(&shuffles, &learnt, now);
    }

    /// Goes on from what is held, and from what no object tells.
    fn remember(&mut self, shuffles: &[(String, Time)], learnt: &Learnt, now: Time) {
        if let Some(cycles) = &mut self.cycles {
            cycles.remember(shuffles);
        }
        self.asking.resume(learnt);
        // Nodes and pods are read by what is known of cards, and measured are nodes that are here.
        self.put_cards();
        self.take_stock(now);
        self.put_measured();
    }

    /// All there is to go on from; `None` in the middle of a list, or of a renewal.
    fn checkpoint(&self, now: Time) -> Option<Checkpoint> {
        let election = match &self.election {
            Some(election) => Some(Election::state(election)?),
            None => None,
        };
        let streams = self.reflectors.values();
        let streams: Option<Vec<_>> = streams
            .map(|reflector| Reflector::state(reflector, &self.mirror))
            .collect();
        let kinds = self.settings.watched_kinds();
        Some(Checkpoint {
            now,
            last_request: self.last_request,
            streams: streams?,
            open: self.streams.clone(),
            election,
            learnt: self.asking.learnt(),
            shuffles: self.cycles.as_ref().map_or_else(Vec::new, Cycles::shuffles),
            objects: kinds
                .iter()
                .flat_map(|kind| self.mirror.objects(*kind).cloned())
                .collect(),
        })
    }

    /// Everything that is held is news.
    fn take_stock(&mut self, now: Time) {
        for kind in self.settings.watched_kinds() {
            let stock: Vec<_> = self.mirror.stock(kind).collect();
            for change in &stock {
                self.changed(change, now);
            }
        }
    }
}

/// A mirror that holds what a checkpoint does.
fn shelved(checkpoint: &Checkpoint) -> Mirror {
    let mut mirror = Mirror::new();
    let streams = checkpoint.streams.iter();
    let mut listings: BTreeMap<_, _> = streams
        .map(|stream| (stream.kind, mirror.begin_list(stream.kind)))
        .collect();
    for object in &checkpoint.objects {
        if let Some(listing) = listings.get(&object.kind()) {
            mirror.list_object(listing, object.clone());
        }
    }
    for stream in &checkpoint.streams {
        if let Some(listing) = listings.remove(&stream.kind)
            && stream.is_listed
        {
            mirror.end_list(listing, stream.seen);
        }
        mirror.bookmark(stream.kind, stream.seen);
    }
    mirror
}
