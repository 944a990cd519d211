//! S2 in process: gangs of pods on 1,000 nodes, from rows in the tables to a whole plan.
//!
//! `cargo run --release -p katmai-engine --example s2 [ROW…]` prints one JSON object a line; a ROW
//! selects all rows whose name begins with it.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use engine::Engine;
use model::{
    GangPhase, GangSpec, GangStatus, Key, Kind, Labels, NodeSpec, Phase, QueueSpec, QueueState,
    ShapeSpec, Tables, TaskSpec, Time, Vector,
};

/// Name, nodes, gangs, tasks a gang, most milliseconds.
const ROWS: &[(&str, u32, u32, u32, f64)] = &[
    ("S2-10000x1-proc", 1_000, 10_000, 1, 100.0),
    ("S2-1x10000-proc", 1_000, 1, 10_000, 100.0),
    ("S2-20x500-proc", 1_000, 20, 500, 50.0),
    ("S2-500x20-proc", 1_000, 500, 20, 50.0),
];

const RUNS: usize = 7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, nodes, gangs, tasks, reach) in ROWS {
        if wanted.is_empty() || wanted.iter().any(|w| name.starts_with(w.as_str())) {
            let runs = (0..RUNS).map(|_| place(*nodes, *gangs, *tasks));
            let (times, checks): (Vec<f64>, Vec<f64>) = runs.unzip();
            print(name, median(times), *reach);
            // What production pays for having every plan checked.
            print(&format!("{name}-checked"), median(checks), *reach / 5.0);
        }
    }
    if wanted.is_empty()
        || wanted
            .iter()
            .any(|w| "S3".starts_with(w.as_str()) || w.starts_with("S3"))
    {
        large_cluster();
    }
}

/// One new pod on 10,000 nodes with 100,000 running, and a cycle with nothing to do there.
fn large_cluster() {
    let mut tables = Tables::new();
    fill(&mut tables, 10_000, 5_000, 20);
    let mut engine = Engine::with_defaults();
    let plan = engine.cycle(&mut tables, Time::from_micros(0));
    assert_eq!(plan.places.len(), 100_000, "the cluster takes all of them");
    confirm(&mut tables, &plan);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let (mut times, mut checks) = (Vec::new(), Vec::new());
    for at in 0..201 {
        gang(&mut tables, 1_000_000 + at, 1);
        let start = Instant::now();
        let plan = engine.cycle(&mut tables, Time::from_micros(0));
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
        assert_eq!(plan.places.len(), 1, "one pod comes, one pod is placed");
        checks.push(checked(&tables, &plan));
    }
    times.sort_by(f64::total_cmp);
    print("S3-one-pod-10k-100k-proc", times[100], 1.0);
    print("S3-one-pod-10k-100k-proc-max", times[200], 5.0);
    print("S3-one-pod-10k-100k-proc-checked", median(checks), 0.2);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let start = Instant::now();
    for _ in 0..1_000 {
        engine.cycle(&mut tables, Time::from_micros(0));
    }
    print(
        "S3-idle-cycle-10k-100k-proc",
        start.elapsed().as_secs_f64(),
        1.0,
    );
}

fn confirm(tables: &mut Tables, plan: &model::Plan) {
    for place in &plan.places {
        tables.confirm(place.write);
    }
    for row in &plan.statuses {
        tables.confirm(row.write);
    }
    for row in &plan.queues {
        tables.confirm(row.write);
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn print(row: &str, value: f64, reach: f64) {
    let ok = value <= reach;
    println!(r#"{{"row":"{row}","value":{value:.4},"unit":"ms","reach":{reach},"ok":{ok}}}"#);
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// How many milliseconds it takes to check a plan.
fn checked(tables: &Tables, plan: &model::Plan) -> f64 {
    let start = Instant::now();
    let found = checker::check_plan(tables, plan);
    let spent = start.elapsed().as_secs_f64() * 1_000.0;
    assert!(found.is_empty(), "{found:?}");
    spent
}

/// How many milliseconds it takes to place all, and to check the plan.
fn place(nodes: u32, gangs: u32, tasks: u32) -> (f64, f64) {
    let mut tables = Tables::new();
    fill(&mut tables, nodes, gangs, tasks);
    let mut engine = Engine::with_defaults();
    let start = Instant::now();
    let plan = engine.cycle(&mut tables, Time::from_micros(0));
    let spent = start.elapsed().as_secs_f64() * 1_000.0;
    assert_eq!(
        plan.places.len(),
        (gangs * tasks) as usize,
        "all of them fit"
    );
    (spent, checked(&tables, &plan))
}

fn fill(tables: &mut Tables, nodes: u32, gangs: u32, tasks: u32) {
    tables.put_queue(QueueSpec {
        name: "default".into(),
        weight: 1,
        state: QueueState::Open,
        ..QueueSpec::default()
    });
    for at in 0..nodes {
        let name = format!("node-{at:05}");
        tables.put_node(NodeSpec {
            name: name.as_str().into(),
            labels: Labels::of([("kubernetes.io/hostname", name.as_str())]),
            allocatable: Vector::of([
                (Kind::CPU, 32_000),
                (Kind::MEMORY, 256 << 30),
                (Kind::PODS, 110),
            ]),
            ..NodeSpec::default()
        });
    }
    for at in 0..gangs {
        gang(tables, at, tasks);
    }
}

fn gang(tables: &mut Tables, at: u32, tasks: u32) {
    let requests = Vector::of([(Kind::CPU, 1_000), (Kind::MEMORY, 1 << 30)]);
    let key = Key::new("bench", format!("gang-{at:05}"));
    tables.put_gang(GangSpec {
        key: key.clone(),
        uid: format!("gang-{at:05}").into(),
        queue: "default".into(),
        min_member: tasks,
        created: Time::from_micros(i64::from(at)),
        status: GangStatus {
            phase: GangPhase::Inqueue,
            ..GangStatus::default()
        },
        ..GangSpec::default()
    });
    for index in 0..tasks {
        let name = format!("gang-{at:05}-{index}");
        tables.put_task(TaskSpec {
            key: Key::new("bench", name.as_str()),
            uid: name.as_str().into(),
            gang: Some(key.clone()),
            role: "".into(),
            index,
            shape: ShapeSpec {
                requests: requests.clone(),
                ..ShapeSpec::default()
            },
            claims: Vec::new(),
            labels: Arc::new(Labels::default()),
            priority: 1,
            phase: Phase::Pending,
            node: None,
            gated: false,
            preemptable: true,
            preempts: true,
            cooldown_ms: 0,
            created: Time::from_micros(0),
            started: None,
        });
    }
}
