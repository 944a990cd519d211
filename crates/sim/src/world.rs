//! A cluster in a box: time passes only from event to event.

use std::collections::BTreeMap;

use api::call::{self, Call, WatchLine};
use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, Request, RequestId};
use nodes::Fleet;
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Response, Watch};

use crate::judge::{self, Finding};
use crate::random::Random;
use crate::settings::Settings;
use crate::transcript::Transcript;
use crate::wire::{Answered, Next, Server};

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
    server: Server,
    driver: Driver,
    /// Counts lives of the driver: answers to an earlier life are dropped.
    life: u32,
    fleet: Fleet,
    queue: BTreeMap<(Time, u64), Event>,
    streams: Vec<Stream>,
    transcript: Transcript,
    findings: Vec<Finding>,
    judged: u64,
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

/// Something that happens at its time.
enum Event {
    /// A call of the user reaches the server.
    User(Call),
    /// A request of the driver reaches the server.
    Asked(u32, RequestId, Request),
    /// An answer reaches the driver.
    Answer(u32, RequestId, Answer),
    /// An intent of the nodes reaches the server.
    Node(Intent),
    /// A pod event reaches the nodes.
    Pod(WatchLine),
    /// The driver dies and is started again with nothing in its memory.
    Crash,
}

enum Answer {
    Page(Result<call::Page, Refusal>),
    Line(WatchLine),
    Closed(Option<Refusal>),
    Got(Result<Option<Box<RawValue>>, Refusal>),
    Written(WriteOutcome),
}

/// One open watch.
struct Stream {
    owner: Owner,
    watch: Box<Watch>,
    /// Lines of one watch arrive in order: none before this.
    not_before: Time,
    until: Option<Time>,
    seen: u64,
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
        let mut world = World {
            server: Server::start(random.fork(), now),
            driver: Driver::new(drivers.clone()),
            fleet: Fleet::new(settings.nodes.clone(), random.next()),
            drivers,
            now,
            order: 0,
            random,
            life: 0,
            queue: BTreeMap::new(),
            streams: Vec::new(),
            transcript: Transcript::default(),
            findings: Vec::new(),
            judged: 0,
            settings,
        };
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
        self.push(self.now.plus_ms(ms), Event::User(call));
    }

    /// The driver dies after `ms` milliseconds from now and starts again with an empty memory.
    pub fn crash(&mut self, ms: i64) {
        self.push(self.now.plus_ms(ms), Event::Crash);
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
                let is_quiet = self.queue.is_empty() && self.driver.is_quiet();
                self.now = end;
                return if is_quiet { End::Quiet } else { End::TimeUp };
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

    /// The driver, to be looked at.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The newest revision: how many writes have changed anything.
    pub fn revision(&self) -> u64 {
        self.server.revision()
    }

    /// Laws that must hold once a world is quiet: gangs are whole, nobody is an orphan.
    pub fn settled(&mut self) -> Vec<Finding> {
        let groups = self.objects(Kind::PodGroup);
        let pods = self.objects(Kind::Pod);
        let mut findings = judge::wholeness(&groups, &pods);
        let kinds = [
            Kind::ConfigMap,
            Kind::Namespace,
            Kind::NetworkPolicy,
            Kind::Node,
            Kind::PersistentVolume,
            Kind::PersistentVolumeClaim,
            Kind::Pod,
            Kind::PodGroup,
            Kind::Service,
            Kind::VcJob,
            Kind::BatchJob,
            Kind::Queue,
            Kind::EndpointSlice,
        ];
        let all: Vec<Value> = kinds
            .into_iter()
            .flat_map(|kind| self.objects(kind))
            .collect();
        findings.extend(judge::ownership(&all));
        findings
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
        while let Some((id, request)) = self.driver.poll_request(self.now) {
            let at = self.later();
            self.push(at, Event::Asked(self.life, id, request));
        }
        while let Some(intent) = self.fleet.poll_intent(self.now) {
            let at = self.later();
            self.push(at, Event::Node(intent));
        }
        self.poll_streams();
    }

    fn next_time(&self) -> Option<Time> {
        let first = self.queue.keys().next().map(|(at, _)| *at);
        let streams = self.streams.iter().filter_map(|stream| stream.until);
        [first, self.driver.poll_wake(), self.fleet.poll_wake()]
            .into_iter()
            .flatten()
            .chain(streams)
            .min()
            .map(|at| at.max(self.now))
    }

    /// Says who does not let time pass.
    fn tell_spin(&mut self) {
        let mut text = "time stands still:".to_owned();
        if self.driver.poll_wake().is_some_and(|at| at <= self.now) {
            text.push_str(" the driver");
        }
        if self.fleet.poll_wake().is_some_and(|at| at <= self.now) {
            text.push_str(" the nodes");
        }
        for stream in &self.streams {
            if stream.until.is_some_and(|at| at <= self.now) {
                text.push_str(&format!(" a watch of {:?}", stream.owner));
            }
        }
        if self
            .queue
            .keys()
            .next()
            .is_some_and(|(at, _)| *at <= self.now)
        {
            text.push_str(" an event");
        }
        self.transcript.note(self.settings.begins, self.now, &text);
    }

    /// Everything that is due now happens before anybody looks again.
    fn happen(&mut self) {
        self.driver.handle_time(self.now);
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
            Event::User(call) => {
                self.written("user", &call);
            }
            Event::Node(intent) => {
                let outcome = self.perform("node", &intent);
                self.fleet.handle_written(&intent, &outcome, self.now);
            }
            Event::Pod(line) => self.fleet_line(line),
            Event::Asked(life, id, request) if life == self.life => self.serve(id, request),
            Event::Answer(life, id, answer) if life == self.life => self.answer(id, answer),
            // A request that was on its way when its sender died still arrives.
            Event::Asked(_, _, Request::Write(intent)) => {
                self.perform("driver", &intent);
            }
            Event::Asked(..) | Event::Answer(..) => {}
            Event::Crash => self.restart(),
        }
    }

    fn restart(&mut self) {
        self.life += 1;
        self.driver = Driver::new(self.drivers.clone());
        self.streams.retain(|stream| stream.owner == Owner::Fleet);
        let (begins, now) = (self.settings.begins, self.now);
        self.transcript.note(begins, now, "driver starts again");
    }

    fn serve(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Get { key } => {
                let response = self.whole(&call::get(key.kind, &key.namespace, &key.name));
                let got = match response.code {
                    200 => Ok(raw(response.body)),
                    404 => Ok(None),
                    code => Err(call::refusal(
                        code,
                        response.retry_after_seconds,
                        &response.body,
                    )),
                };
                self.reply(id, Answer::Got(got));
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let response = self.whole(&call::list(kind, limit, &continue_token));
                let page = match response.code {
                    200 => Ok(call::page(&response.body).expect("the store writes lists")),
                    code => Err(call::refusal(
                        code,
                        response.retry_after_seconds,
                        &response.body,
                    )),
                };
                self.reply(id, Answer::Page(page));
            }
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => {
                let owner = Owner::Driver(self.life, id);
                if let Err(refusal) =
                    self.open(owner, &call::watch(kind, revision, timeout_seconds))
                {
                    self.reply(id, Answer::Closed(Some(refusal)));
                }
            }
            Request::Write(intent) => {
                let mut outcome = self.perform("driver", &intent);
                if self.random.once_in(self.settings.answer_loss_once_in) {
                    outcome = WriteOutcome::Unknown {
                        message: "the answer was lost".into(),
                    };
                }
                self.reply(id, Answer::Written(outcome));
            }
        }
    }

    fn reply(&mut self, id: RequestId, answer: Answer) {
        let at = self.later();
        self.push(at, Event::Answer(self.life, id, answer));
    }

    fn answer(&mut self, id: RequestId, answer: Answer) {
        match answer {
            Answer::Page(page) => self.driver.handle_page(id, page, self.now),
            Answer::Line(line) => self.driver.handle_watch(id, line, self.now),
            Answer::Closed(why) => self.driver.handle_closed(id, why, self.now),
            Answer::Got(object) => self.driver.handle_got(id, object, self.now),
            Answer::Written(outcome) => self.driver.handle_written(id, outcome, self.now),
        }
    }

    /// Performs an intent as a client does: a create that meets its own child is done.
    fn perform(&mut self, who: &str, intent: &Intent) -> WriteOutcome {
        let response = self.written(who, &call::write(intent));
        let outcome = call::outcome(response.code, response.retry_after_seconds, &response.body);
        let (WriteOutcome::Refused(refusal), Action::Create { body }) = (&outcome, &intent.action)
        else {
            return outcome;
        };
        if &*refusal.reason != "AlreadyExists" {
            return outcome;
        }
        let key = &intent.target;
        let found = self.whole(&call::get(key.kind, &key.namespace, &key.name));
        let object: Value = serde_json::from_slice(&found.body).unwrap_or_default();
        if call::controller_uid(&object).is_some()
            && call::controller_uid(&object) == call::controller_uid(body)
        {
            return call::outcome(found.code, None, &found.body);
        }
        outcome
    }

    fn written(&mut self, who: &str, call: &Call) -> Response {
        let response = self.whole(call);
        self.transcript
            .write(self.settings.begins, self.now, who, call, &response);
        response
    }

    fn whole(&mut self, call: &Call) -> Response {
        match self.server.answer(call, self.now) {
            Answered::Whole(response) => response,
            Answered::Stream(_) => Response::text(500, "a watch was answered where none was asked"),
        }
    }

    // Watches.

    fn open(&mut self, owner: Owner, call: &Call) -> Result<(), Refusal> {
        match self.server.answer(call, self.now) {
            Answered::Stream(watch) => {
                let not_before = self.now;
                self.streams.push(Stream {
                    owner,
                    watch,
                    not_before,
                    until: Some(not_before),
                    seen: 0,
                });
                Ok(())
            }
            Answered::Whole(response) => Err(call::refusal(
                response.code,
                response.retry_after_seconds,
                &response.body,
            )),
        }
    }

    fn poll_streams(&mut self) {
        let revision = self.server.revision();
        let mut open = std::mem::take(&mut self.streams);
        open.retain_mut(|stream| {
            let is_due = stream.until.is_some_and(|until| until <= self.now);
            if stream.seen == revision && !is_due {
                return true;
            }
            stream.seen = revision;
            let (lines, next) = self.server.lines(&mut stream.watch, self.now);
            for line in lines {
                stream.not_before = self.later().max(stream.not_before);
                self.deliver(stream.owner, stream.not_before, Answer::Line(line));
                if self.random.once_in(self.settings.watch_drop_once_in) {
                    return self.closed(stream);
                }
            }
            match next {
                Next::At(until) => {
                    stream.until = until;
                    true
                }
                Next::End => self.closed(stream),
            }
        });
        open.append(&mut self.streams);
        self.streams = open;
    }

    /// Tells the owner that its watch has ended; always false, for `retain`.
    fn closed(&mut self, stream: &Stream) -> bool {
        self.deliver(stream.owner, stream.not_before, Answer::Closed(None));
        false
    }

    fn deliver(&mut self, owner: Owner, at: Time, answer: Answer) {
        match (owner, answer) {
            (Owner::Driver(life, id), answer) => self.push(at, Event::Answer(life, id, answer)),
            (Owner::Fleet, Answer::Line(line)) => self.push(at, Event::Pod(line)),
            (Owner::Fleet, _) => self.watch_pods(),
        }
    }

    /// The nodes watch from the first revision on, again and again: their stages are level-triggered.
    fn watch_pods(&mut self) {
        let call = Call {
            method: "GET",
            target: format!("{}?watch=true", Kind::Pod.path("", "")),
            content_type: "",
            body: Vec::new(),
        };
        if let Err(refusal) = self.open(Owner::Fleet, &call) {
            let text = format!("the nodes cannot watch pods: {}", refusal.message);
            self.transcript.note(self.settings.begins, self.now, &text);
        }
    }

    fn fleet_line(&mut self, line: WatchLine) {
        match line {
            WatchLine::Applied(object) => match serde_json::from_str(object.get()) {
                Ok(pod) => self.fleet.handle_pod(&pod, self.now),
                Err(error) => self.transcript.note(
                    self.settings.begins,
                    self.now,
                    &format!("the nodes cannot read a pod: {error}"),
                ),
            },
            WatchLine::Deleted(object) => {
                if let Ok(pod) = serde_json::from_str(object.get()) {
                    self.fleet.handle_deleted(&pod, self.now);
                }
            }
            WatchLine::Bookmark(_) => {}
            WatchLine::Failed(_) => self.watch_pods(),
        }
    }

    fn judge(&mut self) {
        let revision = self.server.revision();
        if revision == self.judged {
            return;
        }
        self.judged = revision;
        let nodes = self.server.objects(Kind::Node, self.now);
        let pods = self.server.objects(Kind::Pod, self.now);
        self.findings.extend(judge::capacity(&nodes, &pods));
    }
}

fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(body).expect("the store writes UTF-8");
    Some(RawValue::from_string(text).expect("the store writes JSON"))
}
