//! The work queue: which key of which row is to be looked at, and when.
//!
//! A key stands here once, however many events name it. It is not handed out while a write of its
//! last step is unseen, nor while it backs off; events that come meanwhile are remembered as one. Only news
//! of what it said that it waits for ends a back-off, and that once in a while: however often such an object
//! changes, a write that fails is made again no more often.
//! The failure counter is cleared by success only.

use std::cmp::Ordering;
use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api::intent::ObjectKey;
use api::sum::Sum;
use api::time::Time;
use controllers::{Last, Refused};

use crate::backoff::Backoff;
use crate::settings::Limits;
use crate::timers;

/// A key of a row.
///
/// Keys stand in the order of the sums of their names, which tell nearly all of them apart without a look at the
/// names, that lie elsewhere. Whoever makes names of one sum makes this as slow as a comparison of names.
///
/// So keys that a timer, or news of one object, wakes at one instant are stepped in the order of their sums, not of
/// their names. Nobody depends on which order that is, only on its being the same in every run, so that a log can be
/// played again: each step sees the world as it is then. To sort those that are woken would be to look at the names
/// after all, a thousand of them where as many jobs wait for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkKey {
    /// Index into the driver's rows.
    pub(crate) row: u16,
    pub(crate) key: Arc<ObjectKey>,
    /// Of the object's name.
    sum: u32,
}

impl WorkKey {
    pub(crate) fn new(row: u16, key: Arc<ObjectKey>) -> WorkKey {
        let mut sum = Sum::default();
        sum.bytes(key.name.as_bytes());
        WorkKey {
            row,
            key,
            // The sums of names that end otherwise differ here by little: such keys stand side by side.
            sum: (sum.value() >> 32) as u32,
        }
    }
}

impl Ord for WorkKey {
    fn cmp(&self, other: &WorkKey) -> Ordering {
        let of_key = || match Arc::ptr_eq(&self.key, &other.key) {
            true => Ordering::Equal,
            false => self.key.cmp(&other.key),
        };
        (self.sum, self.row)
            .cmp(&(other.sum, other.row))
            .then_with(of_key)
    }
}

impl PartialOrd for WorkKey {
    fn partial_cmp(&self, other: &WorkKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How a key stood after its last step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    Idle,
    /// News of one of these objects may let it go on.
    Waits {
        waits_for: Vec<ObjectKey>,
    },
    Retry,
    Fatal,
}

impl Standing {
    /// It waits for these, too.
    pub(crate) fn waiting_for(self, more: impl Iterator<Item = ObjectKey>) -> Standing {
        let mut more = more.peekable();
        let known = match self {
            Standing::Idle if more.peek().is_some() => Vec::new(),
            Standing::Waits { waits_for } => waits_for,
            other => return other,
        };
        let waits_for = known.into_iter().chain(more).collect();
        Standing::Waits { waits_for }
    }
}

/// How one write of a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Performed and seen.
    Done,
    /// The world had moved on, or stayed as it was: only a newer event, which may end the back-off early.
    Outdated,
    /// Refused, for a reason that an event does not lift.
    Failed { retry_after_ms: i64 },
}

/// What the last write's end did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) failures: u32,
    /// Whether this was the first failure too many in a row.
    pub(crate) is_stuck_now: bool,
}

impl Round {
    fn failed(failures: u32) -> Round {
        Round {
            failures,
            is_stuck_now: false,
        }
    }
}

/// Refused writes that a key remembers for its next step.
const REFUSED_MAX: usize = 3;
/// A key of which so many alike objects were made at once without a failure makes as many as it likes again.
const PACE_MAX: u32 = 1_000;
/// After so many failures in a row even a refusal that passes by itself is told.
const TOLD_AFTER: u32 = 5;
/// A key that has failed is not tried sooner than this by what happens about it, in milliseconds, if it would
/// not be by itself.
pub(crate) const NEWS_PAUSE_MS: i64 = 1_000;

/// How long a key that has failed rests.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Time,
    /// The same where there is news of what it waits for.
    until_by_news: Time,
}

impl Pause {
    fn end(self, is_let_on: bool) -> Time {
        match is_let_on {
            true => self.until_by_news,
            false => self.until,
        }
    }
}

#[derive(Debug)]
struct Entry {
    is_queued: bool,
    /// Something happened while the key could not be handed out.
    is_dirty: bool,
    writes_open: u32,
    failures: u32,
    /// How many alike objects it makes at once, after a failure.
    pace: Option<u32>,
    /// What was refused in this round.
    refused: Vec<Refused>,
    /// Verbs whose refusal was told since the last success.
    told: BTreeSet<&'static str>,
    /// Worst end among this round's writes.
    round: Ended,
    backs_off: Option<Pause>,
    /// There was news of what it waits for while it could not be handed out.
    is_let_on: bool,
    /// An event ends the back-off.
    is_outdated: bool,
    /// Too many failures: it waits for long, and an event ends that soon.
    is_stuck: bool,
    /// Whether something of this round failed that will not pass by itself.
    is_lasting: bool,
    timer: Option<Time>,
    /// Since when it lets rest what there is to tell.
    rests_since: Option<Time>,
    standing: Standing,
}

impl Entry {
    fn new() -> Entry {
        Entry {
            is_queued: false,
            is_dirty: false,
            writes_open: 0,
            failures: 0,
            pace: None,
            refused: Vec::new(),
            told: BTreeSet::new(),
            round: Ended::Done,
            backs_off: None,
            is_let_on: false,
            is_outdated: false,
            is_stuck: false,
            is_lasting: false,
            timer: None,
            rests_since: None,
            standing: Standing::Idle,
        }
    }

    /// Whether an event ends its pause: what it knew was old, and it has not failed too often by that.
    fn is_hasty(&self) -> bool {
        self.is_outdated && !self.is_stuck
    }

    fn is_forgettable(&self) -> bool {
        !self.is_queued
            && !self.is_dirty
            && self.writes_open == 0
            && self.failures == 0
            && self.timer.is_none()
            && matches!(self.standing, Standing::Idle | Standing::Fatal)
    }
}

/// The queue. See the module's page.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// Each by itself: they come and go all the time, and those beside one are moved then.
    entries: BTreeMap<WorkKey, Box<Entry>>,
    due: Due,
    waits: Waits,
}

/// How often a key is tried that fails again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// After so many failures in a row it is stuck.
    pub(crate) failures_max: Option<u32>,
    /// Whether a key that is stuck is not tried by itself any more.
    pub(crate) gives_up: bool,
}

impl Patience {
    pub(crate) fn of(limits: &Limits) -> Patience {
        Patience {
            failures_max: limits.failures_max,
            gives_up: limits.gives_up,
        }
    }
}

/// What is to be stepped, now or later.
#[derive(Debug)]
struct Due {
    ready: VecDeque<WorkKey>,
    timers: BTreeSet<(Time, WorkKey)>,
    backoff: Backoff,
    patience: Patience,
    /// Rows whose keys are never given up.
    tried_on: BTreeSet<u16>,
    /// Keys that are stuck, by row.
    stuck: BTreeMap<u16, usize>,
}

/// Who waits for which object.
#[derive(Debug, Default)]
struct Waits(BTreeMap<ObjectKey, BTreeSet<WorkKey>>);

impl WorkQueue {
    pub(crate) fn new(backoff: Backoff, patience: Patience) -> WorkQueue {
        WorkQueue {
            entries: BTreeMap::new(),
            due: Due {
                ready: VecDeque::new(),
                timers: BTreeSet::new(),
                backoff,
                patience,
                tried_on: BTreeSet::new(),
                stuck: BTreeMap::new(),
            },
            waits: Waits::default(),
        }
    }

    /// Keys of these rows are never given up.
    pub(crate) fn trying_on(mut self, rows: impl IntoIterator<Item = u16>) -> WorkQueue {
        self.due.tried_on.extend(rows);
        self
    }

    /// Whether a key of this row that is stuck is not tried by itself any more.
    pub(crate) fn gives_up(&self, row: u16) -> bool {
        self.due.gives_up(row)
    }

    /// An event concerns this key.
    pub(crate) fn wake(&mut self, work: WorkKey, now: Time) {
        self.heard(work, News::Any, now);
    }

    fn heard(&mut self, work: WorkKey, news: News, now: Time) {
        let is_let_on = news == News::WaitedFor;
        let entry = self.entries.entry(work.clone());
        let entry = entry.or_insert_with(|| Box::new(Entry::new()));
        if entry.is_queued {
            return;
        }
        if entry.writes_open > 0 {
            entry.is_dirty = true;
            entry.is_let_on |= is_let_on;
            return;
        }
        let until = entry.backs_off.map(|pause| pause.end(is_let_on));
        if let Some(until) = until.filter(|until| *until > now)
            && !entry.is_hasty()
        {
            entry.is_dirty = true;
            if entry.is_stuck || is_let_on {
                self.due.set_timer(entry, &work, Some(until));
            }
            return;
        }
        self.due.queue(entry, &work);
    }

    /// An object has changed in a way that keys may wait for: those that said so are woken.
    pub(crate) fn appeared(&mut self, key: &ObjectKey, now: Time) {
        let Some(waiting) = self.waits.0.get(key) else {
            return;
        };
        for work in waiting.clone() {
            self.heard(work, News::WaitedFor, now);
        }
    }

    /// Time has passed.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some((at, _)) = self.due.timers.first() {
            if *at > now {
                return;
            }
            let Some((_, work)) = self.due.timers.pop_first() else {
                return;
            };
            if let Some(entry) = self.entries.get_mut(&work) {
                entry.timer = None;
                if entry.writes_open == 0 {
                    self.due.queue(entry, &work);
                } else {
                    entry.is_dirty = true;
                }
            }
        }
    }

    /// Whatever a key waits for is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        for entry in self.entries.values_mut() {
            entry.backs_off = entry.backs_off.map(|pause| Pause {
                until: pause.until.min(now),
                until_by_news: pause.until_by_news.min(now),
            });
            entry.timer = entry.timer.map(|at| at.min(now));
        }
        timers::hurry(&mut self.due.timers, now);
    }

    /// The next key to be stepped, and what became of its last step.
    pub(crate) fn next(&mut self) -> Option<(WorkKey, Last)> {
        let work = self.due.ready.pop_front()?;
        let entry = self.entries.get_mut(&work)?;
        entry.is_queued = false;
        entry.is_dirty = false;
        entry.backs_off = None;
        entry.is_let_on = false;
        entry.is_outdated = false;
        let last = Last {
            failures: entry.failures,
            refused: std::mem::take(&mut entry.refused),
            pace: entry.pace,
            rests_since: entry.rests_since,
        };
        self.due.set_timer(entry, &work, None);
        self.waits.stand(entry, &work, Standing::Idle);
        Some((work, last))
    }

    /// The key has been stepped: it stands so, wants to be woken then, and has that many writes
    /// to be performed and seen before the next step.
    pub(crate) fn stepped(
        &mut self,
        work: &WorkKey,
        standing: Standing,
        wake_at: Option<Time>,
        writes: u32,
        now: Time,
    ) -> Round {
        let nothing = Round::failed(0);
        let Place::Occupied(mut held) = self.entries.entry(work.clone()) else {
            return nothing;
        };
        let entry = held.get_mut();
        entry.writes_open = writes;
        entry.is_lasting = standing == Standing::Retry;
        entry.round = match standing {
            Standing::Retry => Ended::Failed { retry_after_ms: 0 },
            _ => Ended::Done,
        };
        self.waits.stand(entry, work, standing);
        self.due.set_timer(entry, work, wake_at);
        if writes > 0 {
            return nothing;
        }
        let round = self.due.end_round(entry, work, now, After::Step);
        if entry.is_forgettable() {
            held.remove();
        }
        round
    }

    /// The step that begins now lets rest what there is to tell, or has told it.
    pub(crate) fn rests(&mut self, work: &WorkKey, rests: bool, now: Time) {
        if let Some(entry) = self.entries.get_mut(work) {
            let since = entry.rests_since.unwrap_or(now);
            entry.rests_since = rests.then_some(since);
        }
    }

    /// The key has been stepped and waits for so many look-ups. It has not decided: the step that does
    /// knows of its last writes as this one did.
    pub(crate) fn asked(&mut self, work: &WorkKey, last: &Last, count: u32) {
        if let Some(entry) = self.entries.get_mut(work) {
            entry.refused.clone_from(&last.refused);
            entry.writes_open = count;
            entry.is_lasting = false;
            entry.round = Ended::Done;
            if count == 0 {
                self.due.queue(entry, work);
            }
        }
    }

    /// One look-up of the key was answered, or failed and may be tried again after so many
    /// milliseconds. Answers are no success: they leave the failure counter as it is.
    pub(crate) fn look_ended(
        &mut self,
        work: &WorkKey,
        ended: Result<(), i64>,
        now: Time,
    ) -> Option<Round> {
        let entry = self.entries.get_mut(work)?;
        entry.writes_open = entry.writes_open.saturating_sub(1);
        if let Err(retry_after_ms) = ended {
            entry.round = worse(entry.round, Ended::Failed { retry_after_ms });
        }
        if entry.writes_open > 0 {
            return None;
        }
        if entry.round == Ended::Done {
            self.due.queue(entry, work);
            return None;
        }
        Some(self.due.end_round(entry, work, now, After::Writes))
    }

    /// A write of the key's last step was refused. Whether that is to be told to people: once for
    /// each verb, until the key succeeds.
    pub(crate) fn refused(&mut self, work: &WorkKey, refused: &Refused, passes: Passes) -> bool {
        let Some(entry) = self.entries.get_mut(work) else {
            return false;
        };
        entry.is_lasting |= passes == Passes::Never;
        if passes == Passes::ByItself && entry.failures < TOLD_AFTER {
            return false;
        }
        if entry.refused.len() < REFUSED_MAX {
            entry.refused.push(refused.clone());
        }
        entry.told.insert(refused.verb)
    }

    /// One write of the key's last step has ended. `None` while others are open.
    pub(crate) fn write_ended(&mut self, work: &WorkKey, ended: Ended, now: Time) -> Option<Round> {
        let entry = self.entries.get_mut(work)?;
        entry.writes_open = entry.writes_open.saturating_sub(1);
        entry.round = worse(entry.round, ended);
        if entry.writes_open > 0 {
            return None;
        }
        Some(self.due.end_round(entry, work, now, After::Writes))
    }

    /// When [`WorkQueue::advance`] will have something to do.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.due.timers.first().map(|(at, _)| *at)
    }

    /// Whether a key is ready to be stepped.
    pub(crate) fn is_ready(&self) -> bool {
        !self.due.ready.is_empty()
    }

    /// Keys ready to be stepped.
    pub(crate) fn ready_count(&self) -> usize {
        self.due.ready.len()
    }

    /// The same, row by row.
    pub(crate) fn ready_by_row(&self) -> BTreeMap<u16, usize> {
        let mut counts = BTreeMap::new();
        for work in &self.due.ready {
            *counts.entry(work.row).or_default() += 1;
        }
        counts
    }

    /// Keys of a row that have failed more often in a row than the limit.
    pub(crate) fn stuck_count(&self, row: u16) -> usize {
        self.due.stuck.get(&row).copied().unwrap_or(0)
    }

    /// Keys known at all: ready, busy, waiting or backing off.
    pub(crate) fn known_count(&self) -> usize {
        self.entries.len()
    }
}

impl Due {
    fn gives_up(&self, row: u16) -> bool {
        self.patience.gives_up && !self.tried_on.contains(&row)
    }

    fn queue(&mut self, entry: &mut Entry, work: &WorkKey) {
        self.set_timer(entry, work, None);
        if !entry.is_queued {
            entry.is_queued = true;
            self.ready.push_back(work.clone());
        }
    }

    fn set_timer(&mut self, entry: &mut Entry, work: &WorkKey, at: Option<Time>) {
        if let Some(old) = std::mem::replace(&mut entry.timer, at) {
            self.timers.remove(&(old, work.clone()));
        }
        if let Some(at) = at {
            self.timers.insert((at, work.clone()));
        }
    }

    /// Nothing of a key's step is open any more.
    fn end_round(&mut self, entry: &mut Entry, work: &WorkKey, now: Time, after: After) -> Round {
        let retry_after_ms = match entry.round {
            Ended::Done => {
                entry.failures = 0;
                if after == After::Writes {
                    let faster = entry.pace.map(|pace| pace.saturating_mul(2));
                    entry.pace = faster.filter(|pace| *pace < PACE_MAX);
                }
                if std::mem::take(&mut entry.is_stuck)
                    && let Some(count) = self.stuck.get_mut(&work.row)
                {
                    *count -= 1;
                }
                entry.refused.clear();
                entry.told.clear();
                // Its own writes have changed the world: the next stage may be due.
                if after == After::Writes || entry.is_dirty {
                    self.queue(entry, work);
                }
                return Round::failed(0);
            }
            Ended::Outdated => 0,
            Ended::Failed { retry_after_ms } => {
                entry.pace = Some(1);
                retry_after_ms
            }
        };
        entry.failures = entry.failures.saturating_add(1);
        entry.is_outdated = entry.round == Ended::Outdated;
        let failures = entry.failures;
        if entry.is_hasty() && entry.is_dirty {
            self.queue(entry, work);
            return Round::failed(failures);
        }
        if self.patience.failures_max.is_some_and(|max| failures > max) {
            return self.rest(entry, work, retry_after_ms, now);
        }
        let delay = self.backoff.delay_ms(failures).max(retry_after_ms);
        let by_news = delay.min(retry_after_ms.max(NEWS_PAUSE_MS));
        let pause = Pause {
            until: now.plus_ms(delay),
            until_by_news: now.plus_ms(by_news),
        };
        entry.backs_off = Some(pause);
        self.set_timer(entry, work, Some(pause.end(entry.is_let_on)));
        Round::failed(failures)
    }

    /// A key has failed too often: whatever is in its way may still be lifted without any event about
    /// it (a quota, a webhook), so it is tried again, but seldom; where the limit is to be kept to the
    /// letter, only when something happens about it, or a time comes that its step named, and that seldom, too.
    fn rest(&mut self, entry: &mut Entry, work: &WorkKey, pause_ms: i64, now: Time) -> Round {
        // What happened meanwhile may have been this step's own writes: it hurries nothing, but it does
        // not wait longer than it would have either.
        let pause_ms = pause_ms.max(NEWS_PAUSE_MS);
        let after = |ms: i64| now.plus_ms(ms.max(pause_ms));
        let seldom = after(self.backoff.max_ms);
        let again = match entry.is_dirty {
            _ if entry.is_let_on => Some(after(0)),
            true => Some(after(self.backoff.delay_ms(entry.failures))),
            false if self.gives_up(work.row) && entry.is_lasting => {
                let named = entry.timer.filter(|at| *at > now);
                named.map(|at| at.max(seldom))
            }
            false => Some(seldom),
        };
        entry.backs_off = Some(Pause {
            until: after(0),
            until_by_news: after(0),
        });
        self.set_timer(entry, work, again);
        let is_stuck_now = !std::mem::replace(&mut entry.is_stuck, true);
        if is_stuck_now {
            *self.stuck.entry(work.row).or_default() += 1;
        }
        Round {
            failures: entry.failures,
            is_stuck_now,
        }
    }
}

impl Waits {
    /// The key stands so from now on.
    fn stand(&mut self, entry: &mut Entry, work: &WorkKey, standing: Standing) {
        if let Standing::Waits { waits_for } = &entry.standing {
            for key in waits_for {
                if let Some(waiting) = self.0.get_mut(key) {
                    waiting.remove(work);
                    if waiting.is_empty() {
                        self.0.remove(key);
                    }
                }
            }
        }
        entry.standing = standing;
        if let Standing::Waits { waits_for } = &entry.standing {
            for key in waits_for {
                let waiting = self.0.entry(key.clone()).or_default();
                waiting.insert(work.clone());
            }
        }
    }
}

/// Whether what was refused may be taken later without any change to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passes {
    /// The server was away or too busy: told of only if that lasts.
    ByItself,
    /// Others hold what it takes, and nothing is heard when they give it back.
    WithOthers,
    Never,
}

/// What an event is to a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    Any,
    /// It is about what the key said that it waits for.
    WaitedFor,
}

#[derive(PartialEq, Eq)]
enum After {
    Step,
    Writes,
}

fn worse(one: Ended, other: Ended) -> Ended {
    match (one, other) {
        (Ended::Failed { retry_after_ms: a }, Ended::Failed { retry_after_ms: b }) => {
            Ended::Failed {
                retry_after_ms: a.max(b),
            }
        }
        (failed @ Ended::Failed { .. }, _) | (_, failed @ Ended::Failed { .. }) => failed,
        (Ended::Outdated, _) | (_, Ended::Outdated) => Ended::Outdated,
        (Ended::Done, Ended::Done) => Ended::Done,
    }
}

#[cfg(test)]
mod tests;
