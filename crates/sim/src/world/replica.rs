//! Drivers: their lives, their sleep, and what they want.

use mirror::Mirror;
use std::collections::BTreeSet;

use api::intent::Intent;
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, ElectionSettings, Level, Request, RequestId};
use engine::{Difference, Engine};

use super::mend::Mend;
use super::{Answer, Event, Owner, World};
use crate::fault::Fault;
use crate::judge::Finding;
use crate::logbook::Logbook;
use crate::witness::Witness;
use api::call::WatchLine;

/// A driver that another takes over from stands still for so long.
const STILL_MS: i64 = 60_000;

/// One driver.
pub(super) struct Replica {
    pub(super) driver: Driver,
    /// What it has done, where that is to be played again.
    log: Option<Logbook>,
    /// Which life this is: answers to an earlier one are dropped.
    life: u32,
    /// It does nothing before this.
    awake_from: Time,
    /// Cycles of this life that the checker has looked at.
    checked: u64,
    /// Its clock is so far ahead of the server's.
    skew_ms: i64,
    /// Its clock was set while it stood still: it learns so first of all.
    has_leapt: bool,
    /// It decides by rules of another version.
    is_other_version: bool,
    /// The server does not know it before this: 401.
    pub(super) expired_until: Time,
}

impl Replica {
    pub(super) fn is_awake(&self, now: Time) -> bool {
        self.awake_from <= now
    }

    pub(super) fn wake(&self, now: Time) -> Option<Time> {
        match self.is_awake(now) {
            true => self.driver.poll_wake().map(|at| at.plus_ms(-self.skew_ms)),
            false => Some(self.awake_from),
        }
    }

    /// What its clock shows.
    pub(super) fn clock(&self, now: Time) -> Time {
        now.plus_ms(self.skew_ms)
    }

    /// Whether it has seen a whole list of a kind.
    pub(super) fn has_listed(&self, kind: Kind) -> bool {
        self.driver.mirror().is_listed(kind)
    }

    /// What its log holds since the last checkpoint.
    pub(super) fn last_segment(&mut self, now: Time) -> Option<Vec<u8>> {
        let clock = self.clock(now);
        let log = self.log.as_mut()?;
        log.take(&mut self.driver, clock);
        log.last_segment()
    }

    pub(super) fn may_write(&self, now: Time) -> bool {
        !self.has_leapt && self.driver.may_write(self.clock(now))
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Time) {
        let clock = self.clock(now);
        match std::mem::take(&mut self.has_leapt) {
            true => self.driver.handle_leap(clock),
            false => self.driver.handle_time(clock),
        }
    }

    /// Where its clock was set it learns so before anything else.
    fn notice_leap(&mut self, now: Time) {
        if self.has_leapt && self.is_awake(now) {
            self.tick(now);
        }
    }

    /// Somebody sets its clock.
    pub(super) fn leap(&mut self, skew_ms: i64) {
        self.has_leapt |= self.skew_ms != skew_ms;
        self.skew_ms = skew_ms;
    }
}

impl World {
    pub(super) fn begin_life(&mut self, awake_from: Time) -> Replica {
        let life = self.lives;
        self.lives += 1;
        let mut settings = match self.is_other_version {
            true => other_version(&self.drivers),
            false => self.drivers.clone(),
        };
        if self.settings.replicas > 1 {
            let identity = format!("driver-{life}");
            settings.election = Some(ElectionSettings::new("kube-system", "volcano", &identity));
            settings.seed ^= u64::from(life);
        }
        let mut driver = Driver::new(settings);
        let log = self
            .settings
            .log_every_ms
            .map(|every_ms| Logbook::begin(&mut driver, every_ms, awake_from));
        Replica {
            driver,
            log,
            life,
            awake_from,
            checked: 0,
            skew_ms: 0,
            has_leapt: false,
            is_other_version: self.is_other_version,
            expired_until: self.now,
        }
    }

    /// Which driver decides; the first where none does.
    pub(super) fn deciding(&self) -> usize {
        let mut all = self.replicas.iter();
        all.position(|it| it.driver.metrics().is_leading)
            .unwrap_or(0)
    }

    pub(super) fn living(&self, life: u32) -> Option<usize> {
        self.replicas.iter().position(|it| it.life == life)
    }

    /// Takes out what a driver wants.
    pub(super) fn pump_replica(&mut self, at: usize) {
        self.replicas[at].notice_leap(self.now);
        while self.replicas[at].is_awake(self.now) {
            let clock = self.replicas[at].clock(self.now);
            let replica = &mut self.replicas[at];
            let request = replica.driver.poll_request(clock);
            if let Some(log) = &mut replica.log {
                log.take(&mut replica.driver, clock);
            }
            self.check(at);
            let Some((id, request)) = request else { break };
            self.check_served(at, &request);
            let life = self.replicas[at].life;
            if is_sign_of_life(&request) {
                self.signs_of_life.insert((life, id));
            }
            let at = self.wire_time();
            self.push(at, Event::Asked(life, id, request));
        }
    }

    /// When a request or an answer arrives.
    pub(super) fn wire_time(&mut self) -> Time {
        self.later_or_slow(Fault::SlowApi)
    }

    /// An answer reaches its driver, once that is awake.
    pub(super) fn hand_in(&mut self, life: u32, id: RequestId, answer: Answer) {
        let Some(at) = self.living(life) else {
            self.signs_of_life.remove(&(life, id));
            return;
        };
        let replica = &self.replicas[at];
        if !replica.is_awake(self.now) {
            let awake_from = replica.awake_from;
            self.push(awake_from, Event::Answer(life, id, answer));
            return;
        }
        self.signs_of_life.remove(&(life, id));
        self.replicas[at].notice_leap(self.now);
        self.answer(at, id, answer);
    }

    /// The driver dies and is started again. What it had on its way either arrives now or never: a
    /// successor starts only once its predecessor's requests are over (they end with the process, or
    /// with the lease), else the two would fill one node twice.
    pub(super) fn restart(&mut self, at: usize) {
        for intent in self.writes_on_their_way(at) {
            if self.random.once_in(2) {
                self.perform("driver", &intent);
            }
        }
        self.start_again(at, "driver starts again");
    }

    /// The driver that decides ends, and one of another version takes its place, for some minutes. Of several
    /// the others stay what they are, as they do while a cluster is brought to a new version.
    pub(super) fn change_version(&mut self) {
        if self.is_other_version {
            return;
        }
        let ms = self.draw_ms(Fault::TwoVersions, 10_000, 300_000);
        self.struck(Fault::TwoVersions, &format!("for {ms} ms"));
        self.is_other_version = true;
        self.restart(self.deciding());
        self.mend_at(self.now.plus_ms(ms), Mend::Version);
    }

    /// Drivers of another version are replaced.
    pub(super) fn end_other_version(&mut self) {
        self.is_other_version = false;
        for at in 0..self.replicas.len() {
            if self.replicas[at].is_other_version {
                self.restart(at);
            }
        }
    }

    /// What a driver has on its way arrives late, under another: one that begins now, or, of several, the
    /// one that is granted the Lease while it stands still for a minute.
    pub(super) fn take_over(&mut self, at: usize, late_ms: i64) {
        for intent in self.writes_on_their_way(at) {
            self.push(self.now.plus_ms(late_ms), Event::Late(intent));
        }
        if self.replicas.len() < 2 {
            self.start_again(at, "another driver takes over");
            return;
        }
        self.stand_still(at, STILL_MS);
        for name in self.node_names() {
            self.excuse(&name, STILL_MS);
        }
    }

    /// The driver does nothing for so long, and does not know. One that stands still already goes on
    /// when it was to: what waits for it would come out of order if that moved.
    pub(super) fn stand_still(&mut self, at: usize, for_ms: i64) {
        if !self.replicas[at].is_awake(self.now) {
            return;
        }
        self.replicas[at].awake_from = self.now.plus_ms(for_ms);
        self.note(&format!("a driver stands still for {for_ms} ms"));
    }

    /// Whether an event only keeps a watch open or a Lease alive or looks for a kind, which goes on in a quiet world.
    pub(super) fn is_upkeep(&self, event: &Event) -> bool {
        let is_upkeep = |line: &WatchLine| match line {
            WatchLine::Bookmark(_) => true,
            WatchLine::Applied(object) => object.get().contains(r#""kind":"Lease""#),
            WatchLine::Deleted(_) | WatchLine::Failed(_) => false,
        };
        match event {
            Event::WatchPods
            | Event::Trouble(_)
            | Event::Asked(_, _, Request::Ask(_) | Request::Watch { .. })
            | Event::Answer(_, _, Answer::Told(_))
            | Event::Answer(_, _, Answer::Closed(None)) => true,
            Event::Answer(_, _, Answer::Line(line)) | Event::Pod(line) => is_upkeep(line),
            // A kind that the server does not have is looked for again every minute.
            Event::Asked(life, _, Request::List { kind, .. }) => {
                let lacks = |mirror: &Mirror| mirror.is_listed(*kind) && mirror.seen(*kind) == 0;
                let mut replicas = self.replicas.iter();
                replicas.any(|it| it.life == *life && lacks(it.driver.mirror()))
            }
            Event::Answer(_, _, Answer::Page(Err(why))) => why.code == 404,
            Event::Asked(life, id, _) | Event::Answer(life, id, _) => {
                self.signs_of_life.contains(&(*life, *id))
            }
            _ => false,
        }
    }

    /// I9: however long they stood still, no two drivers may write.
    pub(super) fn check_writers(&mut self) {
        let may_write = |it: &&Replica| it.may_write(self.now);
        let lives: Vec<u32> = self
            .replicas
            .iter()
            .filter(may_write)
            .map(|it| it.life)
            .collect();
        if lives.len() > 1 {
            let text = format!("the drivers of lives {lives:?} may write");
            self.tell(vec![Finding { law: "I9", text }]);
        }
    }

    pub(super) fn writes_on_their_way(&mut self, at: usize) -> Vec<Intent> {
        let life = self.replicas[at].life;
        let is_write =
            |event: &Event| matches!(event, Event::Asked(of, _, Request::Write(_)) if *of == life);
        let taken = self.queue.extract_if(.., |_, event| is_write(event));
        taken
            .filter_map(|(_, event)| match event {
                Event::Asked(_, _, Request::Write(intent)) => Some(intent),
                _ => None,
            })
            .collect()
    }

    /// I19: what a driver has done is what it does again, given the same.
    pub(super) fn replay_log(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let Some(mut log) = replica.log.take() else {
            return;
        };
        log.take(&mut replica.driver, Time(i64::MIN));
        let life = replica.life;
        let found = log.replay().into_iter().map(|text| Finding {
            law: "I19",
            text: format!("life {life}: {text}"),
        });
        self.tell(found.collect());
    }

    fn start_again(&mut self, at: usize, told: &str) {
        let down_ms = self.random.between(0, self.settings.faults.down_ms_max);
        let Replica { life, skew_ms, .. } = self.replicas[at];
        self.replay_log(at);
        self.replicas[at] = self.begin_life(self.now.plus_ms(down_ms));
        self.replicas[at].skew_ms = skew_ms;
        self.signs_of_life.retain(|(of, _)| *of != life);
        self.streams
            .retain(|stream| !matches!(stream.owner, Owner::Driver(of, _) if of == life));
        self.note(told);
    }

    /// The checker looks at the tables after a cycle, and the driver's own alarms are heard.
    fn check(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let mut found = Vec::new();
        while let Some(notice) = replica.driver.poll_notice() {
            if notice.level == Level::Error {
                found.push(Finding {
                    law: "driver",
                    text: notice.text,
                });
            }
        }
        let cycles = replica.driver.cycles();
        if cycles != replica.checked {
            replica.checked = cycles;
            let tables = replica.driver.tables();
            for violation in tables.map(checker::check).into_iter().flatten() {
                if is_excused(&self.witness, &replica.driver, &violation, self.now) {
                    continue;
                }
                found.push(Finding {
                    law: violation.invariant,
                    text: violation.what,
                });
            }
        }
        self.tell(found);
    }
}

/// A driver as another version might be: it keeps promises and chooses victims by other rules.
fn other_version(ours: &driver::Settings) -> driver::Settings {
    let mut other = ours.clone();
    if let Some(settings) = &mut other.engine {
        let mut rules = settings.engine.settings().clone();
        let differences = &mut rules.placement.as_upstream;
        // By that way of upstream's who cannot start keeps others out for ever, and stories are to end.
        let ways = Difference::ALL.into_iter();
        let ways = ways.filter(|way| *way != Difference::UsableRoom);
        *differences = match differences.is_empty() {
            true => ways.collect(),
            false => BTreeSet::new(),
        };
        let (engine, _) = Engine::new(rules).expect("rules that differ in ways of upstream only");
        settings.engine = engine;
    }
    other
}

/// Whether a node holds more than it has since others bound to it while our bind was on its way: its
/// kubelet refuses one of them. Or since the driver is told late of a pod whose end it has read back
/// already, so that its room was given to another one.
fn is_excused(
    witness: &Witness,
    driver: &Driver,
    violation: &checker::Violation,
    now: Time,
) -> bool {
    let node = violation.what.strip_prefix("node ");
    let Some(name) = node.and_then(|rest| rest.split(' ').next()) else {
        return false;
    };
    let holds_the_gone = |tables: &model::Tables| {
        let node = tables.node_named(name);
        let mut held =
            (tables.tasks()).filter(|(_, task)| task.node.is_some() && task.node == node);
        held.any(|(_, task)| witness.pod(&task.key.namespace, &task.key.name).is_none())
    };
    violation.invariant == "I1"
        && violation.what.ends_with(" bound")
        && (witness.is_excused(name, now) || driver.tables().is_some_and(holds_the_gone))
}

fn is_sign_of_life(request: &Request) -> bool {
    match request {
        Request::Get { key } => key.kind == Kind::Lease,
        Request::Write(intent) => intent.target.kind == Kind::Lease,
        Request::Ask(_) | Request::List { .. } | Request::Watch { .. } => false,
    }
}
