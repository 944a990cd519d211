//! S10 in process: 10,000 vcjobs of a pod each, with the plugins env and svc, before a driver with every
//! controller and no engine. Somebody else lets each group in, and runs each pod to its end at once.
//!
//! `cargo run --release -p katmai-sim --example jobs` prints one JSON object a line: jobs a second until
//! all pods are created, and until all jobs have ended, by the time spent in the driver alone. What shells do
//! beside it, on as many threads as there are streams, is to read what these bring: jobs a second that one
//! thread reads. What the imitation of an API costs does not count.
//!
//! S0.4 in process: 10,000 vcjobs wait, each for a claim of its own that it names. From a claim's arrival to
//! the create of what its job makes thereafter, by the time spent in the driver and on reading.
//!
//! A word behind `--` chooses the rows whose names begin so.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/patch.rs"]
mod patch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::call::{Page, WatchLine};
use api::intent::{Action, Intent, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, Limits, ReadLine, Request, RequestId, Settings};
use patch::merge;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// As the binary's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const JOBS: usize = 10_000;
const NAMESPACE: &str = "bench";
/// Jobs a second that are to be reached.
const REACH: f64 = 10_000.0;
/// Every so many-th of the jobs that wait gets its claim.
const STRIDE: usize = 10;
/// Milliseconds that a wake-up may take.
const WAKE_REACH_MS: f64 = 1_000.0;

type Key = (Kind, String, String);

/// An API that keeps what it is told as text, as a server does, so that what a driver hands over is given back
/// to it; and others who use it.
struct Api {
    driver: Driver,
    now: Time,
    objects: BTreeMap<Key, Box<RawValue>>,
    revision: u64,
    watches: BTreeMap<Kind, RequestId>,
    /// What the watches have yet to hear.
    news: Vec<(Kind, WatchLine)>,
    pods: usize,
    /// Time in the driver, and on reading, until the last pod was created.
    until_pods: Option<(Duration, Duration)>,
    ended: usize,
    /// Claims that jobs have made.
    claims: usize,
    /// Time spent in the driver.
    spent: Duration,
    /// Time spent on reading what streams bring, which shells do beside the driver.
    reading: Duration,
}

fn main() {
    let chosen = std::env::args().nth(1).unwrap_or_default();
    let is_chosen = |name: &str| name.starts_with(&chosen) || chosen.starts_with(name);
    if is_chosen("S10-10000x1-") {
        reconcile();
    }
    if is_chosen("S0.4-wake-p99") {
        wake();
    }
}

/// Jobs of a pod each, to their end.
fn reconcile() {
    let mut api = Api::with_a_queue();
    for at in 0..JOBS {
        let name = format!("job-{at}");
        let job = job(&name);
        api.put((Kind::VcJob, NAMESPACE.into(), name), job);
    }
    while api.turn() {}
    assert_eq!(api.ended, JOBS, "all of them end");
    let (spent, reading) = api.until_pods.expect("each has had its pod");
    print("S10-10000x1-pods-proc", spent);
    print("S10-10000x1-pods-read-proc", reading);
    print("S10-10000x1-ended-proc", api.spent);
    print("S10-10000x1-ended-read-proc", api.reading);
}

/// Jobs that wait, some of which get what they wait for.
fn wake() {
    let mut api = Api::with_a_queue();
    for at in 0..JOBS {
        let name = format!("job-{at}");
        let mut job = job(&name);
        let own =
            json!({ "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } });
        job["spec"]["volumes"] = json!([
            { "mountPath": "/own", "volumeClaim": own },
            { "mountPath": "/data", "volumeClaimName": format!("data-{at}") },
        ]);
        api.put((Kind::VcJob, NAMESPACE.into(), name), job);
    }
    api.settle();
    let jobs = api
        .objects
        .iter()
        .filter(|((kind, ..), _)| *kind == Kind::VcJob);
    let reason = |job: &RawValue| read(job)["status"]["state"]["reason"].clone();
    let waiting = jobs.filter(|(_, job)| reason(job) == "PersistentVolumeClaimNotFound");
    assert_eq!(
        (waiting.count(), api.claims, api.pods),
        (JOBS, 0, 0),
        "all of them wait"
    );
    let mut took = Vec::new();
    for at in (0..JOBS).step_by(STRIDE) {
        let (before, name) = (api.claims, format!("data-{at}"));
        (api.spent, api.reading) = Default::default();
        let claim = json!({
            "metadata": { "name": name, "namespace": NAMESPACE }, "status": { "phase": "Bound" },
        });
        let kind = Kind::PersistentVolumeClaim;
        api.put((kind, NAMESPACE.into(), name), claim);
        // What waits for its time has it at once, and counts as waited for.
        let began = api.now;
        while api.claims == before {
            if !api.turn() {
                let at = api.driver.poll_wake().expect("its job is woken");
                api.now = api.now.max(at);
                api.timed(Driver::handle_time);
            }
        }
        let waited = u64::try_from(api.now.micros() - began.micros()).unwrap_or(0);
        took.push(api.spent + api.reading + Duration::from_micros(waited));
        api.settle();
        assert_eq!(api.claims, before + 1, "its job, and no other");
    }
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100].as_secs_f64() * 1_000.0;
    let ok = p99 <= WAKE_REACH_MS;
    println!(
        r#"{{"row":"S0.4-wake-p99","value":{p99:.3},"unit":"ms","reach":{WAKE_REACH_MS},"ok":{ok}}}"#
    );
}

fn job(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "creationTimestamp": "2026-11-01T08:00:00Z",
        },
        "spec": {
            "minAvailable": 1, "schedulerName": "volcano", "queue": "default",
            "plugins": { "env": [], "svc": [] },
            "tasks": [{ "name": "task", "replicas": 1, "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "busybox", "command": ["true"],
                    "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
                }],
            } } }],
        },
    })
}

impl Api {
    fn new() -> Api {
        Api {
            driver: Driver::new(Settings {
                controllers: controllers::CONTROLLERS,
                controller_settings: controllers::Settings::default(),
                engine: None,
                unwatched: Vec::new(),
                limits: Limits::default(),
                election: None,
                seed: 1,
            }),
            now: Time::from_seconds(1_793_520_000),
            objects: BTreeMap::new(),
            revision: 1,
            watches: BTreeMap::new(),
            news: Vec::new(),
            pods: 0,
            until_pods: None,
            ended: 0,
            claims: 0,
            spent: Duration::ZERO,
            reading: Duration::ZERO,
        }
    }

    /// One that has a queue, and a driver that knows it.
    fn with_a_queue() -> Api {
        let mut api = Api::new();
        while api.turn() {}
        let default = json!({
            "metadata": { "name": "default" }, "spec": { "weight": 1 }, "status": { "state": "Open" },
        });
        api.put((Kind::Queue, String::new(), "default".into()), default);
        while api.turn() {}
        (api.spent, api.reading) = Default::default();
        api
    }

    /// Time that the driver takes for it.
    fn timed<T>(&mut self, act: impl FnOnce(&mut Driver, Time) -> T) -> T {
        let start = Instant::now();
        let outcome = act(&mut self.driver, self.now);
        self.spent += start.elapsed();
        outcome
    }

    /// Takes every request, answers it, and tells the watches; whether anything was done.
    fn turn(&mut self) -> bool {
        let mut is_busy = false;
        while let Some((id, request)) = self.timed(Driver::poll_request) {
            is_busy = true;
            self.answer(id, request);
        }
        for (kind, line) in std::mem::take(&mut self.news) {
            if let Some(id) = self.watches.get(&kind).copied() {
                is_busy = true;
                let start = Instant::now();
                let line = ReadLine::of(kind, line);
                self.reading += start.elapsed();
                self.timed(|driver, now| driver.handle_read_line(id, line, now));
            }
        }
        // What waits for its time has it at once, until nobody is left who could.
        match self.driver.poll_wake() {
            Some(at) if !is_busy && self.pods > 0 && self.ended < JOBS => {
                self.now = self.now.max(at);
                self.timed(Driver::handle_time);
                true
            }
            _ => is_busy,
        }
    }

    /// Until nobody has anything to do at this instant.
    fn settle(&mut self) {
        loop {
            if self.turn() {
                continue;
            }
            if self.driver.poll_wake().is_none_or(|at| at > self.now) {
                return;
            }
            self.timed(Driver::handle_time);
        }
    }

    fn answer(&mut self, id: RequestId, request: Request) {
        match request {
            Request::List { kind, .. } => {
                let objects = self.objects.iter().filter(|((of, ..), _)| *of == kind);
                let page = Page {
                    items: objects.map(|(_, object)| object.clone()).collect(),
                    revision: self.revision,
                    continue_token: String::new(),
                };
                self.timed(|driver, now| driver.handle_page(id, Ok(page), now));
            }
            Request::Watch { kind, .. } => {
                self.watches.insert(kind, id);
            }
            Request::Get { key } => {
                let key = (key.kind, key.namespace.to_string(), key.name.to_string());
                let found = self.objects.get(&key).cloned();
                self.timed(|driver, now| driver.handle_got(id, Ok(found), now));
            }
            Request::Write(intent) => {
                let outcome = self.write(intent);
                self.timed(|driver, now| driver.handle_written(id, outcome, now));
            }
            Request::Ask(_) => {}
        }
    }

    fn write(&mut self, intent: Intent) -> WriteOutcome {
        let target = intent.target;
        let (namespace, name) = (target.namespace.to_string(), target.name.to_string());
        let key = (target.kind, namespace, name);
        match intent.action {
            Action::Create { mut body } | Action::CreateSecret { mut body, .. } => {
                if key.0 == Kind::PodGroup {
                    body["status"] = json!({ "phase": "Inqueue" });
                }
                let written = self.put(key.clone(), body);
                self.claims += usize::from(key.0 == Kind::PersistentVolumeClaim);
                if key.0 == Kind::Pod {
                    self.pods += 1;
                    if self.pods == JOBS {
                        self.until_pods = Some((self.spent, self.reading));
                    }
                    self.run_pod(&key);
                }
                written
            }
            Action::Patch { patch, .. } => {
                let Some(held) = self.objects.get(&key) else {
                    return gone();
                };
                let mut held = read(held);
                merge(&mut held, &patch);
                let is_end = patch["status"]["state"]["phase"] == "Completed";
                self.ended += usize::from(key.0 == Kind::VcJob && is_end);
                self.put(key, held)
            }
            Action::Delete { .. } => {
                let Some(object) = self.objects.remove(&key) else {
                    return gone();
                };
                let mut object = read(&object);
                self.revision += 1;
                object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                self.news.push((key.0, WatchLine::Deleted(raw(&object))));
                done(0)
            }
            Action::Bind { .. } => gone(),
        }
    }

    /// A node takes the pod, which ends well.
    fn run_pod(&mut self, key: &Key) {
        for phase in ["Running", "Succeeded"] {
            let mut pod = read(&self.objects[key]);
            pod["status"] = json!({ "phase": phase });
            self.put(key.clone(), pod);
        }
    }

    fn put(&mut self, key: Key, mut object: Value) -> WriteOutcome {
        self.revision += 1;
        let meta = &mut object["metadata"];
        meta["resourceVersion"] = json!(self.revision.to_string());
        if meta["uid"].is_null() {
            meta["uid"] = json!(format!("{:08x}-5a1c-4d2e-9f00-000000000000", self.revision));
        }
        let object = raw(&object);
        self.news.push((key.0, WatchLine::Applied(object.clone())));
        self.objects.insert(key, object);
        done(self.revision)
    }
}

fn done(revision: u64) -> WriteOutcome {
    WriteOutcome::Done {
        revision,
        uid: "".into(),
    }
}

fn gone() -> WriteOutcome {
    WriteOutcome::Refused(Refusal {
        code: 404,
        reason: "NotFound".into(),
        message: "it is not there".into(),
        retry_after_seconds: None,
    })
}

fn read(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("what was printed is read")
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value prints as JSON")
}

/// One JSON object a line.
fn print(row: &str, spent: Duration) {
    let value = JOBS as f64 / spent.as_secs_f64();
    let ok = value >= REACH;
    println!(
        r#"{{"row":"{row}","value":{value:.0},"unit":"jobs/s","reach":{REACH},"good":"high","ok":{ok}}}"#
    );
}
