//! The engine's part of the loop: when a cycle runs, what becomes of its plan, and how the answers
//! come back into the tables.
//!
//! A refused write does not free its row at once: the row stays pending until an event about the
//! object, or its back-off, so that a decision on stale facts is not repeated in a circle.

mod binds;
mod cards;
mod consents;
mod hearing;
mod holds;
mod locks;
mod misfits;
mod news;
mod otherwise;
mod shards;
#[cfg(test)]
mod tests;
mod unsaid;
mod verdicts;
mod victims;

use std::collections::{BTreeMap, BTreeSet};

use api::ask::Subject;
use api::core::{Node, Pod};
use api::intent::{ObjectKey, Refusal};
use api::kind::Kind;
use api::time::Time;
use engine::Engine;
use mirror::{Bind, Change, Events, ExtenderNews, Mirror, Rows, Voice};
use model::{Measured, Opinion, Query, Question, Tables, WriteId};

use crate::backoff::Backoff;
use crate::chronicle::Chronicle;
use crate::explain::{self, Found, Unanswered};
use crate::log::Planned;
use crate::settings::{EngineSettings, Limits};
use crate::timers;
use crate::work::{Ended, Passes};
use crate::writes::{self, Lane, Origin, Writes};
use binds::Binds;
use consents::Consents;
use holds::{Devices, Holds};
use locks::Locks;
use misfits::Misfits;
use news::News;
use otherwise::Other;
use shards::Telling;
use unsaid::Unsaid;
use verdicts::Verdicts;
use victims::Victims;

pub(crate) use holds::HoldId;
pub use otherwise::Otherwise;

/// Cycles that may follow one another without a gap after a calm.
const BURST_MAX: i64 = 8;
/// So many waiting writes make the gap between two cycles longer by one gap.
const WRITES_A_GAP: usize = 16;
/// The most to which the gap grows: with the default gap the thirtieth part of a second.
const GAPS_MAX: usize = 16;

/// The end of a write that told a claim its node.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) hold: HoldId,
    pub(crate) claim: ObjectKey,
    pub(crate) ended: Ended,
}

/// How long what the checker refuses stands in the tables before it is taken back.
const KEPT_BACK_MS: i64 = 10_000;
/// So many statuses, or reasons of tasks, are turned into writes at a time: each takes some kilobytes until it
/// has found its lane, and a first plan may tell tens of thousands.
const PART_MAX: usize = 256;

/// How a write of a plan ended.
#[derive(Debug)]
pub(crate) struct End<'a> {
    pub(crate) target: &'a ObjectKey,
    pub(crate) ended: Ended,
    pub(crate) refusal: Option<&'a Refusal>,
}

/// Counts for the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) cycles: u64,
    pub(crate) cycle_micros: u64,
    pub(crate) places: u64,
    pub(crate) places_refused: u64,
    pub(crate) violations: u64,
}

/// The engine with everything that it decides on.
pub(crate) struct Cycles {
    engine: Engine,
    tables: Tables,
    rows: Rows,
    component: Box<str>,
    events: Events,
    stopwatch: fn() -> u64,
    chronicle: Chronicle,
    limits: Limits,
    last: Option<Time>,
    last_tick: Option<model::Tick>,
    tokens: i64,
    wake_at: Option<Time>,
    binds: Binds,
    holds: Holds,
    locks: Locks,
    victims: Victims,
    /// Refused writes that are not yet undone.
    refusals: BTreeSet<(Time, WriteId)>,
    refusals_by_key: BTreeMap<ObjectKey, Vec<(Time, WriteId)>>,
    failures: BTreeMap<ObjectKey, u32>,
    counts: Counts,
    notices: Vec<String>,
    violations: Vec<String>,
    /// What the last cycle came to.
    planned: Option<Planned>,
    /// What it wants to be asked of somebody outside.
    asks: Vec<(Query, Question)>,
    /// What it is to be told.
    news: News,
    consents: Consents,
    /// Another engine that is asked the same.
    other: Option<Other>,
    /// What cycles find for the gangs of one object, where that is told.
    verdicts: Option<Verdicts>,
    telling: Telling,
    misfits: Misfits,
    unsaid: Unsaid,
}

impl std::fmt::Debug for Cycles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cycles")
            .field("counts", &self.counts)
            .field("holds", &self.holds)
            .field("refusals", &self.refusals)
            .finish_non_exhaustive()
    }
}

impl Cycles {
    pub(crate) fn new(settings: EngineSettings, limits: Limits) -> Cycles {
        let serves_agents = !settings.agent_scheduler_names.is_empty();
        let chronicle = Chronicle::new(settings.stopwatch, serves_agents);
        let claims_count = settings.features.device_claims;
        let gives_devices = claims_count && settings.engine.gives_devices();
        let counted = settings.engine.counted_claims().filter(|_| claims_count);
        let rows = Rows::new(settings.scheduler_names)
            .with_lone(settings.lone_scheduler_names)
            .with_agents(settings.agent_scheduler_names)
            .with_cards(settings.engine.card_families())
            .with_counted(counted)
            .with_features(settings.features)
            .within(settings.reach);
        let rows = match settings.native_groups {
            true => rows.with_native(),
            false => rows,
        };
        let rows = match settings.queue_gates {
            true => rows.with_queue_gates(),
            false => rows,
        };
        let rows = match settings.engine.wants_numa() {
            true => rows.with_numa(),
            false => rows,
        };
        let rows = match settings.engine.wants_images() {
            true => rows.with_images(),
            false => rows,
        };
        let rows = match gives_devices {
            true => rows,
            false => rows.without_devices(),
        };
        let teller = settings.engine.chip_teller();
        let rows = match teller.is_some_and(|it| !it.hears_nodes) {
            true => rows.with_listed_chips(),
            false => rows,
        };
        let rows = match settings.engine.wants_limits() {
            true => rows.with_limits(),
            false => rows,
        };
        let wait_ms = settings.engine.volumes_wait_ms();
        let mut tables = Tables::new();
        rows.begin(&mut tables);
        Cycles {
            chronicle,
            news: News::of(settings.engine.extender()),
            consents: Consents::of(settings.engine.extender()),
            engine: settings.engine,
            tables,
            rows,
            component: settings.component,
            events: settings.events,
            stopwatch: settings.stopwatch,
            limits: Limits {
                volumes_wait_max_ms: wait_ms.unwrap_or(limits.volumes_wait_max_ms),
                ..limits
            },
            last: None,
            last_tick: None,
            tokens: BURST_MAX,
            wake_at: None,
            binds: Binds::default(),
            holds: Holds::new(match claims_count {
                true => Devices::Awaited,
                false => Devices::Ignored,
            }),
            locks: Locks::default(),
            victims: Victims::default(),
            refusals: BTreeSet::new(),
            refusals_by_key: BTreeMap::new(),
            failures: BTreeMap::new(),
            counts: Counts::default(),
            notices: Vec::new(),
            violations: Vec::new(),
            planned: None,
            asks: Vec::new(),
            other: settings.other.map(Other::new),
            verdicts: None,
            telling: Telling::default(),
            misfits: Misfits::default(),
            unsaid: Unsaid::default(),
        }
    }

    /// Answers a question; see [`crate::explain`].
    pub(crate) fn ask(
        &mut self,
        mirror: &Mirror,
        subject: &Subject,
        now: Time,
    ) -> Result<Found, Unanswered> {
        let found = explain::explain((mirror, &mut self.tables, &self.engine), subject, now)?;
        let gang = self.tables.gang_keyed(found.gang());
        let awaited = gang.and_then(|gang| self.holds.awaited(gang, (mirror, &self.tables), now));
        Ok(found.awaiting(awaited))
    }

    /// What another engine would have decided otherwise since the last call.
    pub(crate) fn take_otherwise(&mut self) -> Vec<Otherwise> {
        let other = self.other.as_mut();
        other.map_or_else(Vec::new, |other| std::mem::take(&mut other.found))
    }

    /// What the last cycle came to, once.
    pub(crate) fn take_planned(&mut self) -> Option<Planned> {
        self.planned.take()
    }

    /// What is to be asked of somebody outside, once.
    pub(crate) fn take_asks(&mut self) -> Vec<(Query, Question)> {
        std::mem::take(&mut self.asks)
    }

    /// What somebody outside is to be told, once, with the write that may wait for the answer.
    pub(crate) fn take_news(&mut self) -> Vec<(ExtenderNews, Option<WriteId>)> {
        self.news.take()
    }

    /// What somebody outside has said, and how long it counts.
    pub(crate) fn heard(&mut self, opinions: Vec<(Query, Opinion)>, now: Time) {
        let until = model::Time::from_micros(now.micros()).plus_millis(engine::COUNTS_MS);
        self.tables.put_opinions(opinions, until);
    }

    /// Whether a plan is carried out whose binds are not all on their way.
    pub(crate) fn has_binds_waiting(&self) -> bool {
        !self.holds.is_empty()
            || !self.locks.is_empty()
            || !self.consents.is_empty()
            || self.binds.is_waiting()
    }

    /// When each plugin last sent tasks away.
    pub(crate) fn shuffles(&self) -> Vec<(String, Time)> {
        let all = self.tables.shuffles();
        all.map(|(plugin, at)| (plugin.to_owned(), Time(at.micros)))
            .collect()
    }

    /// Says so, at the beginning.
    pub(crate) fn remember(&mut self, shuffles: &[(String, Time)]) {
        for (plugin, at) in shuffles {
            let at = model::Time::from_micros(at.micros());
            self.tables.set_shuffled_at(plugin, Some(at));
        }
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was measured of nodes.
    pub(crate) fn measured<'a>(&mut self, rows: impl Iterator<Item = (&'a str, Measured)>) {
        for (node, measured) in rows {
            self.tables.put_measured(node, measured);
        }
    }

    /// How much cpu and memory a node has, if it is here.
    pub(crate) fn room_of(&self, node: &str) -> Option<[i64; 2]> {
        let node = self.tables.node(self.tables.node_named(node)?);
        let has = |kind| node.spec.allocatable.get(kind);
        node.known
            .then(|| [has(model::Kind::CPU), has(model::Kind::MEMORY)])
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Broken invariants that were found since the last call.
    pub(crate) fn take_violations(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// Whether nothing of a plan waits inside.
    pub(crate) fn is_quiet(&self) -> bool {
        self.holds.is_empty()
            && self.consents.is_empty()
            && !self.locks.is_waiting()
            && self.refusals.is_empty()
            && !self.binds.is_waiting()
            && self.unsaid.is_empty()
            && !self.has_news()
    }

    /// One change of the mirror.
    pub(crate) fn changed(
        &mut self,
        mirror: &Mirror,
        change: &Change,
        writes: &mut Writes,
        now: Time,
    ) {
        self.feed(mirror, change, now);
        self.misfits.changed(change);
        self.disruption_seen(mirror, change, now);
        if let Some(refusals) = self.refusals_by_key.remove(&change.key) {
            for (at, write) in refusals {
                if self.refusals.remove(&(at, write)) {
                    self.take_back(write);
                }
            }
        }
        if change.after.is_none() {
            self.failures.remove(&*change.key);
        }
        let holds = self.holds.of_change(mirror, change);
        for hold in holds {
            self.try_hold(hold, mirror, writes, now);
        }
        self.try_doubted(mirror, writes, now);
        self.lock_changed(&change.key, mirror, writes, now);
    }

    /// Time has passed.
    pub(crate) fn advance(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        while let Some(&(at, write)) = self.refusals.first() {
            if at > now {
                break;
            }
            self.refusals.pop_first();
            self.take_back(write);
        }
        self.refusals_by_key.retain(|_, refusals| {
            refusals.retain(|(at, _)| *at > now);
            !refusals.is_empty()
        });
        while let Some(bind) = self.binds.due(now) {
            self.send_again(&bind, mirror, writes);
        }
        while let Some(hold) = self.holds.due(now) {
            self.try_hold(hold, mirror, writes, now);
        }
        self.try_doubted(mirror, writes, now);
        self.advance_locks(mirror, writes, now);
        self.say_again(mirror, writes, now);
        self.tell_shard_again(mirror, writes, now);
    }

    /// Whatever is waited for is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.last = self.last.map(|last| last.min(now));
        self.wake_at = self.wake_at.map(|at| at.min(now));
        self.engine.hurry(model::Time::from_micros(now.micros()));
        timers::hurry(&mut self.refusals, now);
        for (at, _) in self.refusals_by_key.values_mut().flatten() {
            *at = now.min(*at);
        }
        self.binds.hurry(now);
        let until = now.plus_ms(self.limits.volumes_wait_max_ms);
        self.holds.hurry(now, until);
        self.locks.hurry(now);
        self.telling.hurry(now);
        self.unsaid.hurry(now);
    }

    pub(crate) fn wake(&self, writes: &Writes) -> Option<Time> {
        let earliest = self.earliest_cycle(writes);
        let cycle = self.has_news().then_some(earliest);
        // A time that is near still has to wait for the gap: to wake before would be for nothing.
        let woken = self.wake_at.map(|at| at.max(earliest));
        let refusal = self.refusals.first().map(|(at, _)| *at);
        let hold = self.holds.next_timer();
        cycle
            .into_iter()
            .chain(refusal)
            .chain(hold)
            .chain(self.binds.next_timer())
            .chain(self.locks.next_timer())
            .chain(woken)
            .chain(self.telling.next_timer())
            .chain(self.unsaid.next_timer())
            .min()
    }

    /// Whether there is something to look at and the last cycle is long enough ago.
    pub(crate) fn is_due(&self, writes: &Writes, now: Time) -> bool {
        let is_woken = self.wake_at.is_some_and(|at| at <= now);
        (is_woken || self.has_news()) && now >= self.earliest_cycle(writes)
    }

    /// Runs a cycle if it is due.
    pub(crate) fn run_if_due(
        &mut self,
        mirror: &Mirror,
        writes: &mut Writes,
        is_busy: bool,
        now: Time,
    ) {
        if !self.is_due(writes, now) {
            return;
        }
        self.engine.rest(is_busy);
        self.spend_token(now);
        let before = self.other.as_ref().map(|_| Other::fork(&self.tables));
        let at = model::Time::from_micros(now.micros());
        let mut plan = self.decide(mirror, now);
        self.last_tick = Some(self.tables.tick());
        self.wake_at = plan.wake_at.map(|at| Time(at.micros));
        self.planned = Some(Planned::of(&plan));
        self.asks = std::mem::take(&mut plan.asks);
        if let (Some(other), Some(before)) = (&mut self.other, before) {
            other.compare(before, &plan, &self.tables, at);
        }
        let kept_back = self.doubt(&plan, now);
        self.news.decided(&self.tables, &plan, &kept_back);
        for part in plan.into_parts(PART_MAX) {
            self.carry_out(&part, &kept_back, (mirror, writes), now);
        }
        self.say_again(mirror, writes, now);
        self.tell_shard(mirror, writes, now);
        self.tell_misfits(mirror, writes, now);
    }

    /// Hands out what a part of a plan comes to.
    fn carry_out(
        &mut self,
        plan: &model::Plan,
        kept_back: &BTreeSet<WriteId>,
        (mirror, writes): (&Mirror, &mut Writes),
        now: Time,
    ) {
        let voice = Voice {
            component: &self.component,
            now,
            events: self.events,
        };
        let lowered = mirror.lower(&self.tables, plan, voice);
        let mut binds = lowered.binds;
        binds.retain(|bind| !kept_back.contains(&bind.write));
        let binds = self.consents.keep_back(binds, &self.tables, plan);
        self.bind_or_hold(binds, mirror, writes, now);
        for mut evict in lowered.evictions {
            if !kept_back.contains(&evict.write) {
                let disruption = evict.disruption.take();
                disruption
                    .into_iter()
                    .for_each(|it| self.unsaid.disrupted(it, now));
                self.victims.begin(evict, writes);
            }
        }
        for (write, intent) in lowered.writes {
            if kept_back.contains(&write) {
                continue;
            }
            let lane = match intent.target.kind {
                Kind::Queue => Lane::Low,
                _ => Lane::Write,
            };
            writes.submit(intent, Origin::Plan(write), lane);
        }
        for write in lowered.settled {
            self.stands(write);
        }
        for write in lowered.lost {
            if kept_back.contains(&write) {
                continue;
            }
            let at = now.plus_ms(Backoff::KEY.delay_ms(1));
            self.refusals.insert((at, write));
        }
        for note in lowered.releases.into_iter().chain(lowered.notes) {
            self.unsaid.note(note, writes, now);
        }
    }

    /// The checker looks at the plan. What breaks an invariant is told and not carried out: it is
    /// taken back after a while, for a decision that was wrong once would be so again at once.
    fn doubt(&mut self, plan: &model::Plan, now: Time) -> BTreeSet<WriteId> {
        let mut kept_back = BTreeSet::new();
        let waived = checker::Waived {
            ceilings: !self.engine.keeps_ceilings(),
            ceilings_above: !self.engine.keeps_ceilings_above(),
            hyper_nodes: !self.engine.keeps_hyper_nodes(),
            parts: !self.engine.keeps_parts(),
            budgets: !self.engine.keeps_budgets(),
        };
        for violation in checker::check_plan_by(waived, &self.tables, plan) {
            self.counts.violations += 1;
            self.violations.push(violation.to_string());
            kept_back.extend(violation.writes);
        }
        let at = now.plus_ms(KEPT_BACK_MS);
        self.refusals
            .extend(kept_back.iter().map(|write| (at, *write)));
        kept_back
    }

    /// What a write stood for is undone.
    fn take_back(&mut self, write: WriteId) {
        self.tables.refuse(write);
        self.news.refused(&self.tables, write);
        self.holds.doubt();
        self.chronicle.failed(write);
    }

    /// A write is done, or there was nothing to do.
    fn stands(&mut self, write: WriteId) {
        self.tables.confirm(write);
        self.news.confirmed(write);
    }

    /// A write of a plan is over.
    pub(crate) fn over(
        &mut self,
        write: WriteId,
        end: &End<'_>,
        (mirror, writes): (&Mirror, &mut Writes),
        now: Time,
    ) {
        let End {
            target,
            ended,
            refusal,
        } = *end;
        let retry_after_ms = match ended {
            Ended::Done => {
                self.victims.ended(write);
                self.binds.ended(write);
                self.failures.remove(target);
                self.chronicle.bound(write, now);
                self.stands(write);
                return;
            }
            Ended::Outdated if self.victims.go_again(write, mirror, writes) => return,
            Ended::Outdated => 0,
            Ended::Failed { retry_after_ms } => {
                if refusal.is_none() {
                    self.binds.lost(write, now);
                }
                let passes = refusal.map_or(Passes::ByItself, writes::passes);
                let is_again = passes == Passes::ByItself || self.binds.may_come(write, now);
                if is_again && self.binds.put_off(write, retry_after_ms, now) {
                    return;
                }
                retry_after_ms
            }
        };
        self.victims.ended(write);
        let bind = self.binds.ended(write);
        if target.kind == Kind::Pod {
            self.counts.places_refused += 1;
            self.unlock(target, mirror, writes, now);
        }
        // One that lost a race is decided again on newer facts, and nothing is wrong with it.
        let told = bind.zip(refusal).filter(|(_, it)| it.code != 409);
        if let Some((bind, it)) = told {
            self.tell_refused(&[(bind, it.message.to_string())], mirror, writes, now);
        }
        let at = self.take_back_later(target, write, retry_after_ms, now);
        if ended == Ended::Outdated {
            let waiting = self.refusals_by_key.entry(target.clone()).or_default();
            waiting.push((at, write));
        }
    }

    /// What a write stood for is undone after a while, ever later while the same comes to nothing; until then
    /// nobody knows what became of it.
    fn take_back_later(
        &mut self,
        target: &ObjectKey,
        write: WriteId,
        at_least_ms: i64,
        now: Time,
    ) -> Time {
        self.tables.unknown(write);
        let failures = self.failures.entry(target.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = Backoff::KEY.delay_ms(*failures).max(at_least_ms);
        let at = now.plus_ms(delay);
        self.refusals.insert((at, write));
        at
    }

    fn has_news(&self) -> bool {
        let has_news = self.tables.has_news() && self.last_tick != Some(self.tables.tick());
        has_news || self.misfits.is_due
    }

    /// When the next cycle may run. While decided writes still wait for their turn, another cycle
    /// would only make more of them wait: the gap grows with their number. Where nothing can be
    /// placed, what there is to tell waits for more of its kind.
    fn earliest_cycle(&self, writes: &Writes) -> Time {
        let backlog = (writes.queued_urgent() / WRITES_A_GAP).min(GAPS_MAX - 1);
        let gaps = match self.tables.has_pressing_news() {
            true => 1 + backlog,
            false => GAPS_MAX,
        };
        let gaps = i64::try_from(gaps).unwrap_or(1);
        match self.last {
            Some(last) if self.tokens <= 0 || gaps > 1 => {
                last.plus_ms(self.limits.cycle_gap_ms.saturating_mul(gaps))
            }
            _ => Time(i64::MIN),
        }
    }

    fn spend_token(&mut self, now: Time) {
        if let Some(last) = self.last {
            let gap_micros = self.limits.cycle_gap_ms.max(1).saturating_mul(1_000);
            let earned = now.micros().saturating_sub(last.micros()) / gap_micros;
            self.tokens = self.tokens.saturating_add(earned).clamp(0, BURST_MAX);
        }
        self.tokens -= 1;
        self.last = Some(now);
    }

    /// A victim was told, or cannot be.
    pub(crate) fn marked(&mut self, write: WriteId, mirror: &Mirror, writes: &mut Writes) {
        self.victims.marked(write, mirror, writes);
    }

    /// Sends a bind again, unless its pod or its node has gone meanwhile.
    fn send_again(&mut self, bind: &Bind, mirror: &Mirror, writes: &mut Writes) {
        let pod = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name);
        let is_wanted = pod
            .is_some_and(|pod| pod.metadata.uid == bind.uid && !pod.is_terminating())
            && mirror.get::<Node>("", &bind.node).is_some();
        if is_wanted {
            writes.submit(bind.intent(), Origin::Plan(bind.write), Lane::Bind);
        } else {
            self.binds.ended(bind.write);
            self.take_back(bind.write);
        }
    }
}
