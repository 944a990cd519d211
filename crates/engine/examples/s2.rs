//! S2 in process: gangs of pods on 1,000 nodes, from rows in the tables to a whole plan. S3: one pod, nothing,
//! and a thousand gangs of sixteen tasks on clusters with ten tasks on each node, and 100,000 pods at once.
//!
//! `cargo run --release -p katmai-engine --example s2 [ROW…] [--once]` prints one JSON object a line; a
//! ROW selects all rows whose name begins with it.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;
#[path = "shared/run.rs"]
mod run;

use std::time::Instant;

use engine::Engine;
use model::{Kind, Limits, QueueSpec, Tables, Time, Vector};
use rows::{Gang, median, node, queue};
use run::{Asked, confirm, timed};

/// Name, nodes, gangs, tasks a gang, most milliseconds.
const ROWS: &[(&str, u32, u32, u32, f64)] = &[
    ("S2-10000x1-proc", 1_000, 10_000, 1, 100.0),
    ("S2-1x10000-proc", 1_000, 1, 10_000, 100.0),
    ("S2-20x500-proc", 1_000, 20, 500, 30.0),
    ("S2-500x20-proc", 1_000, 500, 20, 30.0),
];

/// S3: sizes of clusters of which each node has ten tasks.
const LADDER: [(&str, u32); 4] = [
    ("1k", 1_000),
    ("5k", 5_000),
    ("10k", 10_000),
    ("50k", 50_000),
];

/// The most milliseconds for a task of many: 3 µs.
const OF_A_TASK: f64 = 0.003;
/// How much longer the same gangs may take on the largest cluster than on the smallest.
const FLAT: f64 = 2.0;

const RUNS: usize = 7;

fn main() {
    let asked = Asked::read();
    for (name, nodes, gangs, tasks, reach) in ROWS {
        if asked.has(name) {
            let runs = (0..asked.runs(RUNS)).map(|_| place(*nodes, *gangs, *tasks));
            let (times, checks): (Vec<f64>, Vec<f64>) = runs.unzip();
            print_ms(name, median(times), *reach);
            // What production pays for having every plan checked.
            print_ms(&format!("{name}-checked"), median(checks), *reach / 5.0);
        }
    }
    if asked.has("S3-one-pod-10k-100k-proc")
        || asked.has("S3-idle-cycle-10k-100k-proc")
        || asked.has("S3-forced-cycle-10k-100k-proc")
    {
        large_cluster();
    }
    many_gangs(&asked);
}

/// S3: a thousand gangs of sixteen come at once to clusters of all sizes; and 100,000 pods to an empty one.
fn many_gangs(asked: &Asked) {
    let (mut least, mut most) = (None, None);
    let from_empty = "S3-100k-from-empty-proc";
    for (size, nodes) in LADDER {
        let row = format!("S3-1000x16-{size}-proc");
        let is_10k = nodes == 10_000;
        if !(asked.has(&row) || is_10k && asked.has(from_empty)) {
            continue;
        }
        let mut tables = Tables::new();
        fill(&mut tables, nodes, nodes / 2, 20);
        let mut engine = Engine::with_defaults();
        let (time, plan) = timed(&mut engine, &mut tables);
        assert_eq!(plan.places.len(), nodes as usize * 10, "all of them fit");
        if is_10k && asked.has(from_empty) {
            print_ms(from_empty, time, 100_000.0 * OF_A_TASK);
        }
        confirm(&mut tables, &plan);
        while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
        if !asked.has(&row) {
            continue;
        }
        (0..1_000).for_each(|at| gang(&mut tables, 1_000_000 + at, 16));
        let times = (0..asked.runs(RUNS)).map(|_| {
            let (time, plan) = timed(&mut engine.clone(), &mut tables.clone());
            assert_eq!(plan.places.len(), 16_000, "all gangs are placed whole");
            time
        });
        let time = median(times.collect());
        print_ms(&row, time, 16_000.0 * OF_A_TASK);
        least = least.or((size == LADDER[0].0).then_some(time));
        most = (size == LADDER[3].0).then_some(time);
    }
    if let (Some(least), Some(most)) = (least, most) {
        rows::print("S3-1000x16-1k-to-50k", most / least, "x", FLAT);
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
        let (time, plan) = timed(&mut engine, &mut tables);
        times.push(time);
        assert_eq!(plan.places.len(), 1, "one pod comes, one pod is placed");
        checks.push(checked(&tables, &plan));
    }
    times.sort_by(f64::total_cmp);
    print_ms("S3-one-pod-10k-100k-proc", times[100], 1.0);
    print_ms("S3-one-pod-10k-100k-proc-max", times[200], 5.0);
    print_ms("S3-one-pod-10k-100k-proc-checked", median(checks), 0.2);
    below_a_ceiling(&mut engine, &mut tables);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let start = Instant::now();
    for _ in 0..1_000 {
        engine.cycle(&mut tables, Time::from_micros(0));
    }
    print_ms(
        "S3-idle-cycle-10k-100k-proc",
        start.elapsed().as_secs_f64(),
        0.3,
    );
    // The same where each cycle is forced, by news that concerns nobody.
    let mut forced = Vec::new();
    for at in 1..=201 {
        let id = tables.queue_named("default").expect("it is there");
        let mut spec = tables.queue(id).spec.clone();
        spec.published = Vector::of([(Kind::CPU, at)]);
        tables.put_queue(spec);
        let (time, plan) = timed(&mut engine, &mut tables);
        assert!(plan.places.is_empty(), "there is nothing to do");
        confirm(&mut tables, &plan);
        forced.push(time);
    }
    print_ms("S3-forced-cycle-10k-100k-proc", median(forced), 0.3);
}

/// What checking costs where the queue is below one with a ceiling: all that is used there is added up.
fn below_a_ceiling(engine: &mut Engine, tables: &mut Tables) {
    let top = QueueSpec {
        name: "top".into(),
        capability: Limits::of([(Kind::CPU, 1_000_000_000)]),
        ..QueueSpec::default()
    };
    let own = tables.queue_named("default").expect("it is there");
    let own = tables.queue(own).spec.clone();
    tables.put_queue(top);
    tables.put_queue(QueueSpec {
        parent: Some("top".into()),
        ..own
    });
    while !engine.cycle(tables, Time::from_micros(0)).is_empty() {}
    let checks = (0..21).map(|at| {
        gang(tables, 2_000_000 + at, 1);
        let (_, plan) = timed(engine, tables);
        let time = checked(tables, &plan);
        confirm(tables, &plan);
        time
    });
    let checks: Vec<f64> = checks.collect();
    let row = "S3-one-pod-10k-100k-proc-checked-below-a-ceiling";
    print_ms(row, median(checks), 5.0);
}

fn print_ms(row: &str, value: f64, reach: f64) {
    rows::print(row, value, "ms", reach);
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
    let (spent, plan) = timed(&mut engine, &mut tables);
    assert_eq!(
        plan.places.len(),
        (gangs * tasks) as usize,
        "all of them fit"
    );
    (spent, checked(&tables, &plan))
}

fn fill(tables: &mut Tables, nodes: u32, gangs: u32, tasks: u32) {
    queue(tables, "default", None, Vector::ZERO);
    (0..nodes).for_each(|at| node(tables, at, 32, 0));
    (0..gangs).for_each(|at| gang(tables, at, tasks));
}

fn gang(tables: &mut Tables, at: u32, tasks: u32) {
    let gang = Gang {
        at,
        queue: "default",
        class: None,
        min: tasks,
        requests: Vector::of([(Kind::CPU, 1_000), (Kind::MEMORY, 1 << 30)]),
        ..Gang::default()
    };
    gang.put(tables, &vec![None; tasks as usize]);
}
