//! S1.10 in process: single pods under the agent scheduler's name and gangs under Volcano's, 5,000 pods
//! each on 1,000 nodes, before one driver that serves both names and before two that serve one each.
//!
//! `cargo run --release -p katmai-sim --example unified` prints one JSON object a line: pods a second of
//! the one and of the two, all on one core, and on two. What streams bring is read beside the driver, so that
//! of the one on two cores the longer counts, reading or the driver; of two with a core each the one that
//! takes longer for both. They come in a hundred waves; a wave's time is the least of some runs, so that
//! other work on the machine does not count. What the imitation of an API costs does not count either; each
//! process hears of all pods, as one beside a cluster does.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/patch.rs"]
mod patch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::call::{Page, WatchLine};
use api::intent::{Action, Intent, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, EngineSettings, Limits, ReadLine, Request, RequestId, Settings};
use engine::Engine;
use patch::merge;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// As the binary's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 1_000;
const WAVES: usize = 100;
/// Single pods of a wave, and its gangs with their pods.
const LONE: usize = 50;
const GANGS: usize = 5;
const MEMBERS: usize = 10;
const RUNS: usize = 5;
const NAMESPACE: &str = "bench";
const AGENT: &str = "agent-scheduler";
const VOLCANO: &str = "volcano";

type Key = (Kind, String);

/// One process: whom it serves, and what it was given time for.
struct Process {
    driver: Driver,
    watches: BTreeMap<Kind, RequestId>,
    driving: Duration,
    reading: Duration,
}

/// An API that keeps what it is told, and those beside it.
struct Api {
    processes: Vec<Process>,
    now: Time,
    objects: BTreeMap<Key, Value>,
    revision: u64,
    news: Vec<(Kind, WatchLine)>,
    /// How many pods there are, and how many are bound.
    pods: usize,
    bound: usize,
}

fn main() {
    let unified = &least(&[&[AGENT, VOLCANO]])[0];
    let apart = least(&[&[AGENT], &[VOLCANO]]);
    let pods = (WAVES * (LONE + GANGS * MEMBERS)) as f64;
    let of_each: Vec<f64> = apart.iter().map(Spent::on_one_core).collect();
    let two_on_one = pods / of_each.iter().sum::<f64>();
    let two_on_two = pods / of_each.iter().copied().fold(0.0, f64::max);
    let one_on_one = pods / unified.on_one_core();
    let one_on_two = pods / unified.driving.max(unified.reading);
    print("S1.10-two-on-one-core-proc", two_on_one, "pods/s", 0.0);
    print("S1.10-two-on-two-cores-proc", two_on_two, "pods/s", 0.0);
    print(
        "S1.10-unified-on-one-core-proc",
        one_on_one,
        "pods/s",
        two_on_one,
    );
    print(
        "S1.10-unified-on-two-cores-proc",
        one_on_two,
        "pods/s",
        two_on_two,
    );
    let times = |row, one: f64, two: f64| print(row, one / two, "x", 1.0);
    times("S1.10-unified-times-one-core", one_on_one, two_on_one);
    times("S1.10-unified-times-two-cores", one_on_two, two_on_two);
}

/// Seconds that a process needs for its driver, and for reading what streams bring.
#[derive(Clone, Copy, Debug)]
struct Spent {
    driving: f64,
    reading: f64,
}

impl Spent {
    fn on_one_core(&self) -> f64 {
        self.driving + self.reading
    }
}

/// What each process needs for all waves: of each wave, what it needs in its best run.
fn least(names: &[&[&str]]) -> Vec<Spent> {
    let worst = Spent {
        driving: f64::MAX,
        reading: f64::MAX,
    };
    let mut best = vec![vec![worst; WAVES]; names.len()];
    for _ in 0..RUNS {
        let mut api = Api::new(names);
        for wave in 0..WAVES {
            for process in &mut api.processes {
                (process.driving, process.reading) = Default::default();
            }
            api.submit(wave);
            while api.turn() {}
            for (best, process) in best.iter_mut().zip(&api.processes) {
                let best = &mut best[wave];
                best.driving = best.driving.min(process.driving.as_secs_f64());
                best.reading = best.reading.min(process.reading.as_secs_f64());
            }
        }
        assert_eq!(api.bound, WAVES * (LONE + GANGS * MEMBERS), "all are bound");
    }
    let whole = |waves: &Vec<Spent>| Spent {
        driving: waves.iter().map(|it| it.driving).sum(),
        reading: waves.iter().map(|it| it.reading).sum(),
    };
    best.iter().map(whole).collect()
}

impl Process {
    fn new(names: &[&str]) -> Process {
        let serves = |name: &str| -> Vec<Box<str>> {
            names
                .iter()
                .filter(|it| **it == name)
                .map(|it| (*it).into())
                .collect()
        };
        let engine = EngineSettings {
            scheduler_names: serves(VOLCANO),
            agent_scheduler_names: serves(AGENT),
            ..EngineSettings::new(Engine::with_defaults())
        };
        Process {
            driver: Driver::new(Settings {
                controllers: &[],
                controller_settings: controllers::Settings::default(),
                engine: Some(engine),
                unwatched: Vec::new(),
                limits: Limits::default(),
                election: None,
                seed: 1,
            }),
            watches: BTreeMap::new(),
            driving: Duration::ZERO,
            reading: Duration::ZERO,
        }
    }

    /// Time that the driver takes for it.
    fn timed<T>(&mut self, act: impl FnOnce(&mut Driver) -> T) -> T {
        let start = Instant::now();
        let outcome = act(&mut self.driver);
        self.driving += start.elapsed();
        outcome
    }
}

impl Api {
    /// A cluster that all have seen.
    fn new(names: &[&[&str]]) -> Api {
        let mut api = Api {
            processes: names.iter().map(|names| Process::new(names)).collect(),
            now: Time::from_seconds(1_793_520_000),
            objects: BTreeMap::new(),
            revision: 1,
            news: Vec::new(),
            pods: 0,
            bound: 0,
        };
        for (name, parent) in [("root", ""), ("default", "root")] {
            let spec = json!({ "weight": 1, "parent": parent });
            let queue = json!({ "spec": spec, "status": { "state": "Open" } });
            api.put(Kind::Queue, name, queue);
        }
        for at in 0..NODES {
            let room = json!({ "cpu": "32", "memory": "256Gi", "pods": "110" });
            let node = json!({ "status": { "allocatable": room } });
            api.put(Kind::Node, &format!("node-{at}"), node);
        }
        while api.turn() {}
        api
    }

    fn submit(&mut self, wave: usize) {
        self.pods += LONE + GANGS * MEMBERS;
        for at in 0..LONE {
            self.put(Kind::Pod, &format!("lone-{wave}-{at}"), pod(AGENT, None));
        }
        for at in 0..GANGS {
            let name = format!("gang-{wave}-{at}");
            let group = json!({
                "spec": { "minMember": MEMBERS, "queue": "default" },
                "status": { "phase": "Inqueue" },
            });
            self.put(Kind::PodGroup, &name, group);
            for member in 0..MEMBERS {
                let pod = pod(VOLCANO, Some(&name));
                self.put(Kind::Pod, &format!("{name}-{member}"), pod);
            }
        }
    }

    /// Tells everybody what is new and does what they ask; whether there was anything.
    fn turn(&mut self) -> bool {
        let news = std::mem::take(&mut self.news);
        let mut is_busy = !news.is_empty();
        for at in 0..self.processes.len() {
            let (process, now) = (&mut self.processes[at], self.now);
            for (kind, line) in &news {
                if let Some(id) = process.watches.get(kind).copied() {
                    let line = copy(line);
                    let start = Instant::now();
                    let line = ReadLine::of(*kind, line);
                    process.reading += start.elapsed();
                    process.timed(|driver| driver.handle_read_line(id, line, now));
                }
            }
            while let Some((id, request)) =
                self.processes[at].timed(|driver| driver.poll_request(now))
            {
                is_busy = true;
                self.answer(at, id, request);
            }
        }
        let wake = self
            .processes
            .iter()
            .filter_map(|it| it.driver.poll_wake())
            .min();
        let is_open = self.bound < self.pods;
        if let Some(wake) = wake.filter(|_| !is_busy && is_open) {
            self.now = self.now.max(wake);
            let now = self.now;
            for process in &mut self.processes {
                process.timed(|driver| driver.handle_time(now));
            }
            return true;
        }
        is_busy
    }

    fn answer(&mut self, at: usize, id: RequestId, request: Request) {
        let now = self.now;
        match request {
            Request::List { kind, .. } => {
                let objects = self.objects.iter().filter(|((of, _), _)| *of == kind);
                let page = Page {
                    items: objects.map(|(_, object)| raw(object)).collect(),
                    revision: self.revision,
                    continue_token: String::new(),
                };
                self.processes[at].timed(|driver| driver.handle_page(id, Ok(page), now));
            }
            Request::Watch { kind, .. } => {
                self.processes[at].watches.insert(kind, id);
            }
            Request::Get { key } => {
                let found = self.objects.get(&(key.kind, key.name.to_string())).map(raw);
                self.processes[at].timed(|driver| driver.handle_got(id, Ok(found), now));
            }
            Request::Write(intent) => {
                let outcome = self.write(&intent);
                self.processes[at].timed(|driver| driver.handle_written(id, outcome, now));
            }
            Request::Ask(_) => {}
        }
    }

    fn write(&mut self, intent: &Intent) -> WriteOutcome {
        let (kind, name) = (intent.target.kind, &*intent.target.name);
        let held = self.objects.get(&(kind, name.to_owned())).cloned();
        match (&intent.action, held) {
            (Action::Bind { node, .. }, Some(mut pod)) => {
                pod["spec"]["nodeName"] = json!(node);
                self.bound += 1;
                self.put(kind, name, pod)
            }
            (Action::Patch { patch, .. }, Some(mut held)) => {
                merge(&mut held, patch);
                self.put(kind, name, held)
            }
            // Events are nobody's business here.
            _ => WriteOutcome::Done {
                revision: 0,
                uid: "".into(),
            },
        }
    }

    fn put(&mut self, kind: Kind, name: &str, mut object: Value) -> WriteOutcome {
        self.revision += 1;
        let meta = &mut object["metadata"];
        meta["name"] = json!(name);
        if kind.row().namespaced {
            meta["namespace"] = json!(NAMESPACE);
        }
        meta["resourceVersion"] = json!(self.revision.to_string());
        if meta["uid"].is_null() {
            meta["uid"] = json!(format!("{:08x}-5a1c-4d2e-9f00-000000000000", self.revision));
            meta["creationTimestamp"] = json!("2026-11-01T08:00:00Z");
        }
        self.news.push((kind, WatchLine::Applied(raw(&object))));
        self.objects.insert((kind, name.to_owned()), object);
        WriteOutcome::Done {
            revision: self.revision,
            uid: "".into(),
        }
    }
}

fn pod(scheduler: &str, group: Option<&str>) -> Value {
    let annotations = group.map(|name| json!({ "scheduling.k8s.io/group-name": name }));
    json!({
        "metadata": { "annotations": annotations },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{ "name": "c", "image": "busybox", "resources": { "requests": { "cpu": "1" } } }],
        },
        "status": { "phase": "Pending" },
    })
}

fn copy(line: &WatchLine) -> WatchLine {
    match line {
        WatchLine::Applied(object) => WatchLine::Applied(object.clone()),
        _ => unreachable!("nothing else happens here"),
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value prints as JSON")
}

/// One JSON object a line.
fn print(row: &str, value: f64, unit: &str, reach: f64) {
    println!(
        r#"{{"row":"{row}","value":{value:.2},"unit":"{unit}","reach":{reach:.2},"good":"high"}}"#
    );
}
