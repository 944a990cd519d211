//! The real store, and some real drivers that want one Lease of it, on wires that can be cut.

use std::collections::BTreeMap;

use api::call::{self, Call, WatchLine};
use api::core::ConfigMap;
use api::intent::{Action, Intent, ObjectKey, Part, Propagation, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use controllers::{Controller, Inputs, Step};
use driver::{Driver, ElectionSettings, Request, RequestId};
use mirror::{Change, Mirror};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sim::Random;
use store::{Begin, Response, Store, User, Watch, WatchStep};

use super::history::{Deed, NOBODY, Op, Told};

/// The namespace of the Lease and of the one object, and the names of both.
const NAMESPACE: &str = "kube-system";
const LEASE: &str = "volcano";
const PAGE: &str = "page";
/// Of so many that are asked the last is answered by taking the page away.
const REMOVED_EVERY: u64 = 5;
/// Whoever waits for an answer waits so long.
const PATIENCE_MS: i64 = 3_000;
/// What was taken for lost arrives so long at most after whoever sent it is heard again.
const LATE_MS: i64 = 20_000;

/// A process that answers each question on the page, in its own name, or takes the page away.
const fn scribe<const WHO: usize>() -> Controller {
    Controller {
        name: "scribe",
        component: "vc-controller-manager",
        tells_refused: &[],
        watches: &[Kind::ConfigMap],
        keys,
        step: step::<WHO>,
    }
}

static SCRIBES: [&[Controller]; 3] = [&[scribe::<0>()], &[scribe::<1>()], &[scribe::<2>()]];

fn keys(_: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if &*change.key.name == PAGE {
        keys.push(ObjectKey::clone(&change.key));
    }
}

fn step<const WHO: usize>(inputs: &Inputs<'_>) -> Step {
    let Some(page) = inputs.mirror.get::<ConfigMap>(NAMESPACE, PAGE) else {
        return Step::idle();
    };
    let asked = page.data.get("asked");
    if asked == page.data.get("answered") {
        return Step::idle();
    }
    let uid = page.metadata.uid.clone();
    let resource_version = page.metadata.resource_version.clone();
    let number = asked.and_then(|asked| asked.parse().ok());
    let action = match number.is_some_and(is_removal) {
        true => Action::Delete {
            uid,
            resource_version: Some(resource_version),
            grace_seconds: None,
            propagation: Propagation::Background,
        },
        false => Action::Patch {
            uid,
            resource_version,
            part: Part::Whole,
            patch: json!({ "data": { "answered": asked, "by": WHO.to_string() } }),
        },
    };
    Step::write(vec![Intent {
        target: inputs.key.clone(),
        action,
    }])
}

fn is_removal(asked: u64) -> bool {
    asked.is_multiple_of(REMOVED_EVERY)
}

struct Process {
    driver: Driver,
    life: u32,
    /// The last term that it was told is its own.
    term: i32,
    awake_from: Time,
    mute_until: Time,
    deaf_until: Time,
    skew_ms: i64,
    has_leapt: bool,
    streams: Vec<Stream>,
}

struct Stream {
    id: RequestId,
    watch: Box<Watch>,
    not_before: Time,
    until: Option<Time>,
}

impl Process {
    fn begin(who: usize, life: u32, now: Time) -> Process {
        let identity = format!("driver-{life}");
        let driver = Driver::new(driver::Settings {
            controllers: SCRIBES[who],
            controller_settings: controllers::Settings::default(),
            engine: None,
            unwatched: Vec::new(),
            limits: driver::Limits::default(),
            election: Some(ElectionSettings::new(NAMESPACE, LEASE, &identity)),
            seed: u64::from(life),
        });
        Process {
            driver,
            life,
            term: -1,
            awake_from: now,
            mute_until: now,
            deaf_until: now,
            skew_ms: 0,
            has_leapt: false,
            streams: Vec::new(),
        }
    }

    fn tick(&mut self, now: Time) {
        if now < self.awake_from {
            return;
        }
        let clock = now.plus_ms(self.skew_ms);
        match std::mem::take(&mut self.has_leapt) {
            true => self.driver.handle_leap(clock),
            false => self.driver.handle_time(clock),
        }
    }

    /// When it or one of its watches has something to do.
    fn wake(&self, now: Time) -> Option<Time> {
        if now < self.awake_from {
            return Some(self.awake_from);
        }
        let own = (self.driver.poll_wake()).map(|at| at.plus_ms(-self.skew_ms));
        let streams = self.streams.iter().filter_map(|stream| stream.until);
        own.into_iter().chain(streams).min()
    }
}

enum Event {
    /// A request arrives at the server; where nobody waits any more its answer goes nowhere.
    Arrives(u32, RequestId, Request, bool),
    Answers(u32, RequestId, Answer),
}

enum Answer {
    Page(Result<call::Page, Refusal>),
    Line(WatchLine),
    Closed,
    Got(Result<Option<Box<RawValue>>, Refusal>),
    Written(WriteOutcome),
}

/// What a Lease said from one revision on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The holder's life; [`NOBODY`] where it was let go.
    pub holder: u32,
    pub term: i32,
    pub begins: Time,
}

/// All of it.
pub struct Plane {
    store: Store,
    random: Random,
    pub now: Time,
    begins: Time,
    order: u64,
    queue: BTreeMap<(Time, u64), Event>,
    processes: Vec<Process>,
    lives: u32,
    /// Deeds, and where each stands.
    pub ops: Vec<Op>,
    sent: BTreeMap<(u32, RequestId), usize>,
    /// The Lease as the server has it, one after another.
    pub holdings: Vec<Holding>,
    /// The revision of the page when it was made.
    pub first: u64,
    asked: u64,
    /// Writes of a former leader that came when its successor had written.
    pub overdue: u64,
    /// At which revision the page was taken away by which writes.
    removed: BTreeMap<(u32, RequestId), u64>,
    /// How often that was.
    pub removals: u64,
}

impl Plane {
    pub fn new(seed: u64) -> Plane {
        let mut random = Random::new(seed);
        let begins = Time::from_seconds(1_700_000_000);
        let mut store = Store::new(store::Settings::default(), Box::new(random.fork()));
        if let Some(commit) = store.start(begins) {
            store.finish(commit.ticket, begins);
        }
        let count = u32::try_from(SCRIBES.len()).expect("they are few");
        let mut plane = Plane {
            store,
            random,
            now: begins,
            begins,
            order: 0,
            queue: BTreeMap::new(),
            processes: (0..count)
                .map(|life| Process::begin(life as usize, life, begins))
                .collect(),
            lives: count,
            ops: Vec::new(),
            sent: BTreeMap::new(),
            holdings: Vec::new(),
            first: 0,
            asked: 0,
            overdue: 0,
            removed: BTreeMap::new(),
            removals: 0,
        };
        plane.first = revision(&plane.lay(&json!({})));
        plane
    }

    pub fn draw(&mut self, low: i64, high: i64) -> i64 {
        self.random.between(low, high)
    }

    pub fn age_ms(&self) -> i64 {
        (self.now.micros() - self.begins.micros()) / 1_000
    }

    /// The process that leads, by what the server says, or else any.
    pub fn leader(&mut self) -> usize {
        let holder = self.holdings.last().map(|it| it.holder);
        let leader = (self.processes.iter()).position(|it| Some(it.life) == holder);
        leader.unwrap_or_else(|| self.anybody())
    }

    pub fn anybody(&mut self) -> usize {
        let last = i64::try_from(self.processes.len()).expect("they are few") - 1;
        usize::try_from(self.draw(0, last)).expect("it is one of them")
    }

    pub fn pause(&mut self, who: usize, ms: i64) {
        let process = &mut self.processes[who];
        process.awake_from = process.awake_from.max(self.now.plus_ms(ms));
    }

    /// Nothing that it sends is answered, and what arrives may do so much later; it hears what is new.
    pub fn mute(&mut self, who: usize, ms: i64) {
        let process = &mut self.processes[who];
        process.mute_until = process.mute_until.max(self.now.plus_ms(ms));
    }

    /// And it hears nothing.
    pub fn cut(&mut self, who: usize, ms: i64) {
        self.mute(who, ms);
        let process = &mut self.processes[who];
        process.deaf_until = process.mute_until;
    }

    pub fn set_clock(&mut self, who: usize, skew_ms: i64) {
        let process = &mut self.processes[who];
        process.has_leapt |= process.skew_ms != skew_ms;
        process.skew_ms = skew_ms;
    }

    /// It dies, and another begins in its place.
    pub fn kill(&mut self, who: usize) {
        self.processes[who] = Process::begin(who, self.lives, self.now);
        self.lives += 1;
    }

    /// It ends in order, and another begins in its place.
    pub fn end(&mut self, who: usize) {
        if self.now >= self.processes[who].awake_from {
            let clock = self.now.plus_ms(self.processes[who].skew_ms);
            self.processes[who].driver.release(clock);
            self.pump(who);
        }
        self.kill(who);
    }

    /// Nothing is wrong with anybody any more.
    pub fn heal(&mut self) {
        for process in &mut self.processes {
            process.mute_until = self.now;
            process.deaf_until = self.now;
            process.awake_from = process.awake_from.min(self.now);
        }
    }

    /// Lays a new page.
    fn lay(&mut self, data: &Value) -> Response {
        let meta = json!({ "name": PAGE, "namespace": NAMESPACE });
        let body = json!({ "metadata": meta, "data": data });
        self.call(&Call {
            method: "POST",
            target: Kind::ConfigMap.path(NAMESPACE, ""),
            content_type: "application/json",
            body: body.to_string().into_bytes(),
        })
    }

    /// A user asks something on the page, or on a new one where it was taken away.
    pub fn ask(&mut self) {
        self.asked += 1;
        let data = json!({ "asked": self.asked.to_string() });
        let mut response = self.call(&Call {
            method: "PATCH",
            target: Kind::ConfigMap.path(NAMESPACE, PAGE),
            content_type: "application/merge-patch+json",
            body: json!({ "data": data }).to_string().into_bytes(),
        });
        if response.code == 404 {
            response = self.lay(&data);
        }
        self.witnessed(Deed::Edit, revision(&response));
    }

    /// A user asks something that is answered on the page.
    pub fn ask_for_an_answer(&mut self) {
        self.ask();
        if is_removal(self.asked) {
            self.ask();
        }
    }

    /// Reads the page: what is answered of what was asked.
    pub fn read(&mut self) -> (Value, Value) {
        let response = self.call(&call::get(Kind::ConfigMap, NAMESPACE, PAGE));
        self.witnessed(Deed::Read, revision(&response));
        let page: Value = serde_json::from_slice(&response.body).expect("it is there");
        (
            page["data"]["answered"].clone(),
            json!(self.asked.to_string()),
        )
    }

    fn witnessed(&mut self, deed: Deed, revision: u64) {
        self.order += 2;
        self.ops.push(Op {
            who: NOBODY,
            deed,
            sent: self.order - 1,
            told_at: self.order,
            told: Told::Done(revision),
        });
    }

    /// Lets so much time pass.
    pub fn run(&mut self, ms: i64) {
        let end = self.now.plus_ms(ms);
        loop {
            for who in 0..self.processes.len() {
                self.processes[who].tick(self.now);
                self.pump(who);
                self.poll_streams(who);
            }
            let first = self.queue.keys().next().map(|(at, _)| *at);
            let wakes = self.processes.iter().filter_map(|it| it.wake(self.now));
            let next = first.into_iter().chain(wakes).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.queue.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                match entry.remove() {
                    Event::Arrives(life, id, request, is_awaited) => {
                        self.arrive(life, id, request, is_awaited);
                    }
                    Event::Answers(life, id, answer) => self.answer(life, id, answer),
                }
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), event);
    }

    fn living(&self, life: u32) -> Option<usize> {
        self.processes.iter().position(|it| it.life == life)
    }

    fn wire_ms(&mut self) -> i64 {
        match self.random.once_in(30) {
            true => self.draw(1, 8_000),
            false => self.draw(1, 200),
        }
    }

    /// Takes out what a process wants, and lets it get there, late, or never.
    fn pump(&mut self, who: usize) {
        while self.now >= self.processes[who].awake_from {
            let process = &mut self.processes[who];
            let clock = self.now.plus_ms(process.skew_ms);
            let Some((id, request)) = process.driver.poll_request(clock) else {
                break;
            };
            let life = process.life;
            let mute_until = process.mute_until;
            if let Request::Write(intent) = &request {
                self.note_sent(who, id, intent);
            }
            let later = self.now.plus_ms(self.wire_ms());
            if self.now >= mute_until && !self.random.once_in(12) {
                self.push(later, Event::Arrives(life, id, request, true));
                continue;
            }
            let given_up = self.now.plus_ms(PATIENCE_MS);
            self.push(given_up, Event::Answers(life, id, unanswered(&request)));
            let much_later = given_up.max(mute_until).plus_ms(self.draw(0, LATE_MS));
            match self.draw(0, 3) {
                0 => {}
                1 => self.push(later, Event::Arrives(life, id, request, false)),
                _ => self.push(much_later, Event::Arrives(life, id, request, false)),
            }
        }
    }

    fn note_sent(&mut self, who: usize, id: RequestId, intent: &Intent) {
        let Process { life, term, .. } = self.processes[who];
        let deed = match (intent.target.kind, &intent.action) {
            (Kind::Lease, Action::Patch { patch, .. }) => hold(patch, life),
            (Kind::Lease, Action::Create { body }) => hold(body, life),
            (
                Kind::ConfigMap,
                Action::Patch {
                    resource_version, ..
                }
                | Action::Delete {
                    resource_version: Some(resource_version),
                    ..
                },
            ) => Deed::Write {
                term,
                basis: resource_version.parse().expect("it is a number"),
            },
            // Events and whatever else nobody fights over.
            _ => return,
        };
        self.order += 1;
        self.sent.insert((life, id), self.ops.len());
        self.ops.push(Op {
            who: life,
            deed,
            sent: self.order,
            told_at: u64::MAX,
            told: Told::Nothing,
        });
    }

    fn arrive(&mut self, life: u32, id: RequestId, request: Request, is_awaited: bool) {
        let answer = match request {
            Request::Ask(_) => unreachable!("nobody else is asked"),
            Request::Get { key } => {
                let response = self.call(&call::get(key.kind, &key.namespace, &key.name));
                Answer::Got(match response.code {
                    200 => Ok(raw(response.body)),
                    404 => Ok(None),
                    _ => Err(call::refusal(response.code, None, &response.body)),
                })
            }
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let response = self.call(&call::list(kind, limit, &continue_token));
                Answer::Page(call::page(&response.body).map_err(|_| gone()))
            }
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => return self.open_watch(life, id, &call::watch(kind, revision, timeout_seconds)),
            Request::Write(intent) => Answer::Written(self.write(life, id, &intent)),
        };
        let Some(who) = self.living(life).filter(|_| is_awaited) else {
            return;
        };
        let is_mute = self.now < self.processes[who].mute_until;
        let (ms, answer) = match is_mute {
            true => (PATIENCE_MS, answer.lost()),
            false => (self.wire_ms(), answer),
        };
        self.push(self.now.plus_ms(ms), Event::Answers(life, id, answer));
    }

    fn write(&mut self, life: u32, id: RequestId, intent: &Intent) -> WriteOutcome {
        let written = |ops: &[Op]| {
            let done = ops.iter().filter(|op| matches!(op.told, Told::Done(_)));
            let terms = done.filter_map(|op| match op.deed {
                Deed::Write { term, .. } => Some(term),
                _ => None,
            });
            terms.max().unwrap_or(-1)
        };
        if let Some(at) = self.sent.get(&(life, id))
            && let Deed::Write { term, .. } = self.ops[*at].deed
            && term < written(&self.ops)
        {
            self.overdue += 1;
        }
        let response = self.call(&call::write(intent));
        if intent.target.kind == Kind::Lease {
            self.note_lease();
        }
        let outcome = call::outcome(response.code, None, &response.body);
        let is_deletion = matches!(intent.action, Action::Delete { .. });
        if is_deletion && matches!(outcome, WriteOutcome::Done { .. }) {
            self.removals += 1;
            self.removed.insert((life, id), self.store.revision());
        }
        outcome
    }

    /// What the Lease says now.
    fn note_lease(&mut self) {
        let response = self.call(&call::get(Kind::Lease, NAMESPACE, LEASE));
        let lease: Value = serde_json::from_slice(&response.body).expect("it is JSON");
        let Deed::Hold { holder, term } = hold(&lease, NOBODY) else {
            return;
        };
        let is_new =
            (self.holdings.last()).is_none_or(|last| (last.holder, last.term) != (holder, term));
        if is_new && lease["spec"].is_object() {
            self.holdings.push(Holding {
                holder,
                term,
                begins: self.now,
            });
        }
    }

    fn open_watch(&mut self, life: u32, id: RequestId, call: &Call) {
        let request = store::Request::from_call(call, User::admin());
        let begin = self.store.begin(&request, self.now, &mut review::review);
        let Some(who) = self.living(life) else { return };
        match begin {
            Begin::Watch(watch) if self.now >= self.processes[who].mute_until => {
                self.processes[who].streams.push(Stream {
                    id,
                    watch,
                    not_before: self.now,
                    until: None,
                });
            }
            _ => self.push(
                self.now.plus_ms(PATIENCE_MS),
                Event::Answers(life, id, Answer::Closed),
            ),
        }
    }

    /// Sends what open watches have to say; whoever is cut off hears it later.
    fn poll_streams(&mut self, who: usize) {
        let mut streams = std::mem::take(&mut self.processes[who].streams);
        let (life, deaf_until) = (self.processes[who].life, self.processes[who].deaf_until);
        streams.retain_mut(|stream| {
            let mut bytes = Vec::new();
            let (is_open, until) = loop {
                match self
                    .store
                    .poll_watch(&mut stream.watch, self.now, &mut bytes)
                {
                    WatchStep::More => {}
                    WatchStep::Wait { until } => break (true, until),
                    WatchStep::Call | WatchStep::End => break (false, None),
                }
            };
            stream.until = until;
            let lines = bytes.split(|byte| *byte == b'\n');
            for line in lines.filter(|line| !line.is_empty()) {
                let line = call::watch_line(line).expect("the store writes watch lines");
                let later = self.now.plus_ms(self.wire_ms());
                stream.not_before = later.max(deaf_until).max(stream.not_before);
                self.push(
                    stream.not_before,
                    Event::Answers(life, stream.id, Answer::Line(line)),
                );
            }
            if !is_open {
                self.push(
                    stream.not_before,
                    Event::Answers(life, stream.id, Answer::Closed),
                );
            }
            is_open
        });
        self.processes[who].streams = streams;
    }

    fn answer(&mut self, life: u32, id: RequestId, answer: Answer) {
        let Some(who) = self.living(life) else { return };
        let awake_from = self.processes[who].awake_from;
        if self.now < awake_from {
            self.push(awake_from, Event::Answers(life, id, answer));
            return;
        }
        if self.processes[who].has_leapt {
            self.processes[who].tick(self.now);
        }
        let process = &mut self.processes[who];
        let clock = self.now.plus_ms(process.skew_ms);
        match answer {
            Answer::Page(page) => process.driver.handle_page(id, page, clock),
            Answer::Line(line) => process.driver.handle_watch(id, line, clock),
            Answer::Closed => process.driver.handle_closed(id, None, clock),
            Answer::Got(got) => process.driver.handle_got(id, got, clock),
            Answer::Written(outcome) => {
                process.driver.handle_written(id, outcome.clone(), clock);
                self.note_told(who, id, &outcome);
            }
        }
        self.pump(who);
    }

    fn note_told(&mut self, who: usize, id: RequestId, outcome: &WriteOutcome) {
        let Some(at) = self.sent.get(&(self.processes[who].life, id)) else {
            return;
        };
        let op = &mut self.ops[*at];
        op.told = match outcome {
            // The answer to a deletion bears no revision.
            WriteOutcome::Done { revision, .. } => {
                let life = self.processes[who].life;
                let removed = self.removed.get(&(life, id)).copied();
                Told::Done(removed.unwrap_or(*revision))
            }
            WriteOutcome::Refused(refusal) => {
                assert!([404, 409].contains(&refusal.code), "{refusal:?}");
                Told::Conflict
            }
            WriteOutcome::Unknown { .. } => return,
        };
        self.order += 1;
        op.told_at = self.order;
        if let (Deed::Hold { term, .. }, Told::Done(_)) = (op.deed, op.told) {
            self.processes[who].term = term;
        }
    }

    fn call(&mut self, call: &Call) -> Response {
        let request = store::Request::from_call(call, User::admin());
        match self.store.begin(&request, self.now, &mut review::review) {
            Begin::Done(response) => response,
            Begin::Commit(commit) => self.store.finish(commit.ticket, self.now),
            _ => unreachable!("it is neither a watch nor of a pod"),
        }
    }
}

impl Answer {
    /// What whoever waited is told instead.
    fn lost(self) -> Answer {
        match self {
            Answer::Page(_) => Answer::Page(Err(gone())),
            Answer::Got(_) => Answer::Got(Err(gone())),
            Answer::Written(_) => Answer::Written(lost()),
            Answer::Line(_) | Answer::Closed => self,
        }
    }
}

/// What whoever asked is told where nothing comes back.
fn unanswered(request: &Request) -> Answer {
    match request {
        Request::Ask(_) => unreachable!("nobody else is asked"),
        Request::Get { .. } => Answer::Got(Err(gone())),
        Request::List { .. } => Answer::Page(Err(gone())),
        Request::Watch { .. } => Answer::Closed,
        Request::Write(_) => Answer::Written(lost()),
    }
}

fn lost() -> WriteOutcome {
    WriteOutcome::Unknown {
        message: "the answer was lost".into(),
    }
}

fn gone() -> Refusal {
    Refusal {
        code: 0,
        reason: "Unreachable".into(),
        message: "connection refused".into(),
        retry_after_seconds: None,
    }
}

fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(body).ok()?;
    RawValue::from_string(text).ok()
}

/// What a Lease says of its holder and term; whoever writes it is `who`.
fn hold(lease: &Value, who: u32) -> Deed {
    let spec = &lease["spec"];
    let identity = spec["holderIdentity"].as_str().unwrap_or_default();
    let life = identity
        .strip_prefix("driver-")
        .and_then(|it| it.parse().ok());
    assert!(who == NOBODY || life.is_none_or(|life: u32| life == who));
    let term = spec["leaseTransitions"].as_i64().unwrap_or(0);
    Deed::Hold {
        holder: life.unwrap_or(NOBODY),
        term: i32::try_from(term).expect("few terms"),
    }
}

fn revision(response: &Response) -> u64 {
    match call::outcome(response.code, None, &response.body) {
        WriteOutcome::Done { revision, .. } => revision,
        other => panic!("the page is refused: {other:?}"),
    }
}
