//! A cluster in a box: time passes only from event to event.

mod answerer;
mod guest;
mod hostile;
mod kubelet;
mod mend;
mod names;
mod patience;
mod replica;
mod rest;
mod serve;
mod sidecar;
mod streams;
mod strike;
mod trouble;
mod unserved;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use api::call::{self, Call, WatchLine};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::{KINDS, Kind};
use api::time::Time;
use driver::{Driver, Request, RequestId};
use nodes::Fleet;
use serde_json::Value;
use serde_json::value::RawValue;
use store::Watch;

use crate::counts::Counts;
use crate::coverage::Coverage;
use crate::disk::Disk;
use crate::fault::{FAULTS, Fault};
use crate::judge::{self, Finding};
use crate::ledger::Ledger;
use crate::names::{Names, News};
use crate::random::Random;
use crate::settings::Settings;
use crate::transcript::Transcript;
use crate::wire::{Server, Shape};
use crate::witness::Witness;
use mend::Mend;
pub use names::Meeting;
pub(crate) use patience::Patience;
use replica::Replica;

/// Rounds in one run; a world that needs more is taken to run for ever.
const ROUNDS_MAX: u64 = 5_000_000;

/// Rounds in which time stands still; a world that needs more has a loop in it.
const STILL_MAX: u64 = 20_000;

/// The whole system.
pub struct World {
    settings: Settings,
    drivers: driver::Settings,
    now: Time,
    order: u64,
    random: Random,
    /// A generator for each fault, so that one more or less shifts no other.
    chances: Vec<Random>,
    coverage: Coverage,
    server: Server,
    /// Nobody reaches the server before this.
    down_until: Time,
    replicas: Vec<Replica>,
    /// Lives of drivers that have begun so far.
    lives: u32,
    /// Requests about Leases that are not answered yet.
    signs_of_life: BTreeSet<(u32, RequestId)>,
    /// Changes of Leases.
    lease_writes: u64,
    disk: Disk,
    names: Names,
    /// Pods that wait, or waited, for their peers.
    peers: names::Peers,
    fleet: Fleet,
    /// The newest revision that the nodes have seen of the pods; 0 before they have listed them.
    fleet_seen: u64,
    queue: BTreeMap<(Time, u64), Event>,
    streams: Vec<Stream>,
    pub(crate) transcript: Transcript,
    counts: Counts,
    /// Writes of the driver that were performed.
    driver_writes: u64,
    witness: Witness,
    /// What became of each workload, where somebody wants to know.
    ledger: Option<Ledger>,
    /// Calls of the user that were refused for good.
    turned_away: Vec<guest::Refused>,
    findings: Vec<Finding>,
    /// Nodes that something is wrong with, which is still to be mended.
    troubled: BTreeSet<String>,
    /// Nodes that nobody hears, until then.
    dark: BTreeMap<String, Time>,
    /// Kinds that the drivers are not served, until then.
    withdrawn: BTreeMap<Kind, Time>,
    /// Drivers that begin are of another version than the world's.
    is_other_version: bool,
    /// What the world itself has made or changed so far: a number for names.
    deeds: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing was left to do.
    Quiet,
    /// The time was up, or more than the greatest number of rounds had passed.
    TimeUp,
    /// Time stood still: somebody asks again and again without waiting.
    Spinning,
}

/// Who asked for a write: a life of a driver, and which of its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    life: u32,
    term: u64,
}

/// Something that happens at its time.
enum Event {
    /// A call of the user reaches the server.
    User(Call, Patience),
    /// The user tells a vcjob to do something.
    Command(Box<str>, &'static str, Patience),
    /// The user tells a queue to open or to close; and how often that was taken already.
    QueueCommand(Box<str>, &'static str, Patience, u32),
    /// A request of the driver reaches the server.
    Asked(u32, RequestId, Request),
    /// An answer reaches the driver.
    Answer(u32, RequestId, Answer),
    /// An intent of the nodes reaches the server.
    Node(Intent),
    /// An intent of whoever tends directories reaches the server.
    Disk(Intent, Patience),
    /// The name server hears of EndpointSlices.
    Named(News),
    /// All pods reach the nodes.
    PodList(Vec<Box<RawValue>>),
    /// A pod event reaches the nodes.
    Pod(WatchLine),
    /// The nodes' wish to watch pods reaches the server.
    WatchPods,
    /// The driver that decides dies and is started again with nothing in its memory.
    Crash,
    /// The driver that decides stands still for so long.
    Pause(i64),
    /// The driver stands still and another takes over; its writes arrive so much later.
    Supplant(i64),
    /// A write of a driver that was supplanted arrives.
    Late(Intent),
    /// A write arrives of which its driver, by the number of its life, was told that it is lost.
    Overdue(Asked, Intent),
    /// A fault that comes by the clock strikes.
    Trouble(Fault),
    /// A fault strikes now, whatever its rate.
    Strike(Fault),
    /// What a fault has done is undone.
    Mend(Mend, Patience),
}

impl Event {
    /// For whoever asks why a world does not come to rest.
    fn told(&self) -> String {
        match self {
            Event::User(call, _) => format!("user {} {}", call.method, call.target),
            Event::Command(name, action, _) | Event::QueueCommand(name, action, _, _) => {
                format!("{action} for {name}")
            }
            Event::Asked(life, id, request) => format!("{id:?} of life {life}: {request:?}"),
            Event::Answer(life, id, answer) => {
                format!("{} to {id:?} of life {life}", answer.told())
            }
            Event::Node(intent) => format!("a node's {:?}", intent.target),
            Event::Disk(intent, _) => format!("a disk's {:?}", intent.target),
            Event::Late(intent) | Event::Overdue(_, intent) => {
                format!("a late {:?}", intent.target)
            }
            Event::Mend(mend, _) => mend.told(),
            Event::Trouble(fault) | Event::Strike(fault) => fault.name().to_owned(),
            Event::Named(_) => "what is new of names".to_owned(),
            Event::PodList(_) => "the nodes' list of pods".to_owned(),
            Event::Pod(_) => "a pod's line".to_owned(),
            Event::WatchPods => "a watch of pods".to_owned(),
            Event::Crash | Event::Pause(_) | Event::Supplant(_) => "a driver's fate".to_owned(),
        }
    }
}

enum Answer {
    Page(Result<call::Page, Refusal>),
    Line(WatchLine),
    Closed(Option<Refusal>),
    Got(Result<Option<Box<RawValue>>, Refusal>),
    Written(WriteOutcome),
    Told(Result<Vec<u8>, String>),
}

impl Answer {
    fn told(&self) -> String {
        match self {
            Answer::Page(Ok(page)) => format!("a list of revision {}", page.revision),
            Answer::Page(Err(why)) | Answer::Got(Err(why)) | Answer::Closed(Some(why)) => {
                format!("refused {} {}", why.code, why.message)
            }
            Answer::Line(_) => "a line".to_owned(),
            Answer::Closed(None) => "the end of a watch".to_owned(),
            Answer::Got(Ok(_)) => "an object".to_owned(),
            Answer::Written(outcome) => format!("{outcome:?}"),
            Answer::Told(Ok(body)) => format!("an answer of {} bytes", body.len()),
            Answer::Told(Err(why)) => format!("no answer: {why}"),
        }
    }
}

/// One open watch.
struct Stream {
    owner: Owner,
    kind: Kind,
    watch: Box<Watch>,
    /// Lines of one watch arrive in order: none before this.
    not_before: Time,
    until: Option<Time>,
    seen: u64,
    /// The last line arrives then: one that was overtaken comes after those behind it.
    last_at: Time,
    /// Its lines are lost from now on; it expires then.
    lossy_until: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Driver(u32, RequestId),
    Fleet,
}

impl World {
    /// A world in which nothing has happened yet: a store that has just started, nodes that
    /// register themselves, a driver that knows nothing.
    pub fn new(settings: Settings, drivers: driver::Settings) -> World {
        let mut random = Random::new(settings.seed);
        let now = settings.begins;
        let shape = Shape::of(&settings, &drivers);
        let mut world = World {
            server: Server::start(random.fork(), shape, now),
            chances: chances(settings.seed),
            coverage: Coverage::default(),
            down_until: now,
            replicas: Vec::new(),
            lives: 0,
            signs_of_life: BTreeSet::new(),
            lease_writes: 0,
            disk: Disk::default(),
            names: Names::default(),
            peers: names::Peers::default(),
            fleet: Fleet::new(settings.nodes.clone(), random.draw()),
            fleet_seen: 0,
            drivers,
            now,
            order: 0,
            random,
            queue: BTreeMap::new(),
            streams: Vec::new(),
            transcript: Transcript::default(),
            counts: Counts::default(),
            driver_writes: 0,
            witness: Witness::default(),
            ledger: None,
            turned_away: Vec::new(),
            findings: Vec::new(),
            troubled: BTreeSet::new(),
            dark: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
            is_other_version: false,
            deeds: 0,
            settings,
        };
        world.expect_trouble();
        for _ in 0..world.settings.replicas.max(1) {
            let replica = world.begin_life(now);
            world.replicas.push(replica);
        }
        world.watch_pods();
        world
    }

    /// The object is created after `ms` milliseconds from now.
    pub fn create(&mut self, ms: i64, kind: Kind, object: Value) {
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let target = ObjectKey::new(kind, &namespace, &name);
        let intent = Intent {
            target,
            action: Action::Create { body: object },
        };
        self.call(ms, call::write(&intent));
    }

    /// A user's call reaches the server after `ms` milliseconds from now.
    pub fn call(&mut self, ms: i64, call: Call) {
        self.push(self.now.plus_ms(ms), Event::User(call, Patience::NONE));
    }

    /// Like [`World::call`] by a user who tries again, for an hour, until it is taken or there
    /// already.
    pub fn insist(&mut self, ms: i64, call: Call) {
        self.push(self.now.plus_ms(ms), Event::User(call, Patience::HOUR));
    }

    /// The user tells a vcjob of the namespace `default` to abort or to resume, after `ms`
    /// milliseconds from now.
    pub fn command(&mut self, ms: i64, job: &str, action: &'static str) {
        // Whoever wakes a job insists; a job that was not put to sleep need not be.
        let patience = match action {
            "ResumeJob" => Patience::HOUR,
            _ => Patience::NONE,
        };
        self.push(
            self.now.plus_ms(ms),
            Event::Command(job.into(), action, patience),
        );
    }

    /// The user tells a queue to open or to close, after `ms` milliseconds from now. Whoever opens one
    /// looks after a minute whether it is open, and tells it again.
    pub fn command_queue(&mut self, ms: i64, queue: &str, action: &'static str) {
        let patience = match action {
            "OpenQueue" => Patience::HOUR,
            _ => Patience::NONE,
        };
        let told = Event::QueueCommand(queue.into(), action, patience, 0);
        self.push(self.now.plus_ms(ms), told);
    }

    /// A line of the story that nobody wrote.
    pub fn note(&mut self, what: &str) {
        self.transcript.note(self.settings.begins, self.now, what);
    }

    /// The driver dies after `ms` milliseconds from now and starts again with an empty memory.
    pub fn crash(&mut self, ms: i64) {
        self.push(self.now.plus_ms(ms), Event::Crash);
    }

    /// The driver stands still after `ms` milliseconds from now and another takes over; what it had
    /// on its way arrives `late_ms` after that. Of several it goes on after a minute.
    pub fn supplant(&mut self, ms: i64, late_ms: i64) {
        self.push(self.now.plus_ms(ms), Event::Supplant(late_ms));
    }

    /// A fault strikes after `ms` milliseconds from now.
    pub fn strike(&mut self, ms: i64, fault: Fault) {
        self.push(self.now.plus_ms(ms), Event::Strike(fault));
    }

    /// The driver that decides stands still after `ms` milliseconds from now, for so long.
    pub fn pause(&mut self, ms: i64, for_ms: i64) {
        self.push(self.now.plus_ms(ms), Event::Pause(for_ms));
    }

    /// Lets time pass until nothing is left to do, or for `ms` milliseconds at most.
    /// Timers further away than that are left alone.
    pub fn run(&mut self, ms: i64) -> End {
        let end = self.now.plus_ms(ms);
        let (mut rounds, mut still) = (0, 0);
        loop {
            self.pump();
            self.judge();
            let Some(next) = self.next_time() else {
                return End::Quiet;
            };
            rounds += 1;
            still = if next > self.now { 0 } else { still + 1 };
            if still > STILL_MAX {
                self.tell_spin();
                return End::Spinning;
            }
            if next > end || rounds > ROUNDS_MAX {
                let is_quiet = self.queue.values().all(|event| self.is_upkeep(event))
                    && self.replicas.iter().all(|it| it.driver.is_quiet());
                self.now = end;
                if is_quiet {
                    return End::Quiet;
                }
                self.tell_busy();
                return End::TimeUp;
            }
            self.now = self.now.max(next);
            self.happen();
        }
    }

    /// What has happened so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Laws that were found broken so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All stored objects of a kind.
    pub fn objects(&mut self, kind: Kind) -> Vec<Value> {
        self.server.objects(kind, self.now)
    }

    /// The driver that decides, or the first of those that wait, to be looked at.
    pub fn driver(&self) -> &Driver {
        &self.replicas[self.deciding()].driver
    }

    /// The log of the driver that decides since its last checkpoint, where it has one.
    pub fn log(&mut self) -> Option<Vec<u8>> {
        let at = self.deciding();
        self.replicas[at].last_segment(self.now)
    }

    /// Which faults struck in which phases.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Jobs and Kubernetes' own Jobs that have ended or were deleted.
    pub fn ended(&self) -> u64 {
        self.witness.ended()
    }

    /// How long it has lived, in milliseconds.
    pub fn age_ms(&self) -> i64 {
        (self.now.micros() - self.settings.begins.micros()) / 1_000
    }

    /// How many writes have changed anything, signs of life apart.
    pub fn revision(&self) -> u64 {
        self.server.revision() - self.lease_writes
    }

    /// What was written so far, by whom.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Writes of the driver that were performed so far, over all its lives.
    pub fn driver_writes(&self) -> u64 {
        self.driver_writes
    }

    /// Everything of a kind that a job ever owned, by the job's uid: names by uid.
    pub fn children_of(&self, job_uid: &str, kind: Kind) -> BTreeMap<String, String> {
        let life = self.witness.jobs.get(job_uid);
        let children = life.and_then(|life| life.children.get(&kind));
        children.cloned().unwrap_or_default()
    }

    /// Whether something was done to a job, by its uid, or to a pod of nobody, by its name, that it
    /// cannot help.
    pub fn is_hurt(&self, id: &str) -> bool {
        self.witness.is_hurt(id)
    }

    /// How many pods of a job have failed in its whole life.
    pub fn failures_of(&self, job_uid: &str) -> usize {
        let life = self.witness.jobs.get(job_uid);
        life.map_or(0, |life| life.failed.len())
    }

    /// Laws that must hold once a world is quiet: gangs are whole, nobody is an orphan, nothing is
    /// half deleted, the driver has seen exactly what is stored, and its log plays again as it was.
    pub fn settled(&mut self) -> Vec<Finding> {
        for at in 0..self.replicas.len() {
            self.replay_log(at);
        }
        let groups = self.objects(Kind::PodGroup);
        let pods = self.objects(Kind::Pod);
        let mut findings = judge::wholeness(&groups, &pods);
        findings.extend(judge::partitions(&groups, &pods));
        let mut all = Vec::new();
        for row in KINDS {
            let mut objects = self.objects(row.kind);
            findings.extend(self.stale(row.kind, &objects));
            for object in &mut objects {
                object["kind"] = row.name.into();
            }
            all.append(&mut objects);
        }
        findings.extend(judge::ownership(&all));
        findings.extend(judge::leftovers(&all));
        findings
    }

    /// I10: the mirror's copies of a kind are the stored objects, each at its newest version.
    fn stale(&self, kind: Kind, stored: &[Value]) -> Option<Finding> {
        let mirror = self.driver().mirror();
        // Leases are never at rest.
        if !mirror.is_listed(kind) || kind == Kind::Lease {
            return None;
        }
        let seen: BTreeSet<(&str, &str)> = mirror
            .objects(kind)
            .map(|object| (object.uid(), &*object.meta().resource_version))
            .collect();
        let there: BTreeSet<(&str, &str)> = stored
            .iter()
            .map(|object| &object["metadata"])
            .filter_map(|meta| Some((meta["uid"].as_str()?, meta["resourceVersion"].as_str()?)))
            .collect();
        (seen != there).then(|| Finding {
            law: "I10",
            text: format!(
                "the mirror's {} are not the store's: only seen {:?}, only there {:?}",
                kind.row().plural,
                seen.difference(&there).collect::<Vec<_>>(),
                there.difference(&seen).collect::<Vec<_>>(),
            ),
        })
    }

    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), event);
    }

    fn later(&mut self) -> Time {
        let wait = self.random.between(
            self.settings.latency_ms_min * 1_000,
            self.settings.latency_ms_max * 1_000,
        );
        Time(self.now.micros() + wait)
    }

    /// Takes out what the driver and the nodes want, and what open watches have to say.
    fn pump(&mut self) {
        for at in 0..self.replicas.len() {
            self.pump_replica(at);
        }
        self.check_writers();
        while let Some(intent) = self.fleet.poll_intent(self.now) {
            let at = self.later();
            self.push(at, Event::Node(intent));
        }
        for intent in self.disk.look(&mut self.server, self.now) {
            let at = self.disk_time();
            self.push(at, Event::Disk(intent, Patience::ENDLESS));
        }
        self.tell_names();
        self.poll_streams();
    }

    fn next_time(&self) -> Option<Time> {
        let first = self.queue.keys().next().map(|(at, _)| *at);
        let streams = self.streams.iter().filter_map(|stream| stream.until);
        let drivers = self.replicas.iter().filter_map(|it| it.wake(self.now));
        [first, self.fleet.poll_wake()]
            .into_iter()
            .flatten()
            .chain(drivers)
            .chain(streams)
            .min()
            .map(|at| at.max(self.now))
    }

    /// Everything that is due now happens before anybody looks again.
    fn happen(&mut self) {
        for replica in self.replicas.iter_mut().filter(|it| it.is_awake(self.now)) {
            replica.tick(self.now);
        }
        self.fleet.handle_time(self.now);
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let event = entry.remove();
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::User(call, patience) => {
                let response = self.written("user", &call);
                let is_taken = (200..400).contains(&response.code) || response.code == 409;
                match patience.again() {
                    _ if is_taken => {}
                    Some((ms, left)) => self.push(self.now.plus_ms(ms), Event::User(call, left)),
                    None => self.turn_away(&call, &response),
                }
            }
            Event::Command(job, action, patience) => {
                if !self.send_command(&job, action)
                    && let Some((ms, left)) = patience.again()
                {
                    self.push(self.now.plus_ms(ms), Event::Command(job, action, left));
                }
            }
            Event::QueueCommand(queue, action, patience, taken) => {
                self.tell_queue(queue, action, patience, taken);
            }
            Event::Node(intent) => self.hear_node(&intent),
            Event::Disk(intent, patience) => self.hear_disk(intent, patience),
            Event::Named(news) => self.hear_names(news),
            Event::PodList(pods) => self.fleet_list(&pods),
            Event::Pod(line) => self.fleet_line(line),
            Event::WatchPods => self.watch_pods(),
            Event::Asked(life, id, request) => {
                if self.living(life).is_some() {
                    self.serve(life, id, request);
                }
            }
            Event::Answer(life, id, answer) => self.hand_in(life, id, answer),
            Event::Crash => self.restart(self.deciding()),
            Event::Pause(ms) => self.stand_still(self.deciding(), ms),
            Event::Supplant(late_ms) => self.take_over(self.deciding(), late_ms),
            Event::Late(intent) => self.perform_late(&intent),
            Event::Overdue(asked, intent) => self.perform_overdue(asked, &intent),
            Event::Trouble(fault) => self.trouble(fault),
            Event::Strike(fault) => self.inflict(fault),
            Event::Mend(mend, patience) => self.mend(mend, patience),
        }
    }

    /// The witness looks at what was written.
    fn judge(&mut self) {
        let found = self.witness.look(&mut self.server, self.now);
        if let Some(ledger) = &mut self.ledger {
            for change in self.witness.news() {
                ledger.take(&change, self.now);
            }
        }
        self.tell(found);
    }

    /// Files findings, each once, and puts them where they belong in the story.
    fn tell(&mut self, found: Vec<Finding>) {
        for finding in found {
            if !self.findings.contains(&finding) {
                self.note(&format!("BROKEN {}: {}", finding.law, finding.text));
                self.findings.push(finding);
            }
        }
    }
}

/// A generator for each fault. What one draws depends on the seed and its name alone.
fn chances(seed: u64) -> Vec<Random> {
    let of = |name: &str| {
        let mixed = name.bytes().fold(seed, |state, byte| {
            Random::new(state ^ u64::from(byte)).draw()
        });
        Random::new(mixed)
    };
    FAULTS.iter().map(|row| of(row.name)).collect()
}
