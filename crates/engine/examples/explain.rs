//! How long one explanation takes where 100,000 pods wait for 10,000 nodes.
//!
//! `cargo run --release -p katmai-engine --example explain` prints one JSON object a line.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;

use std::time::Instant;

use engine::Engine;
use model::{Kind, Limits, QueueSpec, QueueState, Tables, Time, Vector};
use rows::{Gang, median, node, print, queue};

const NODES: u32 = 10_000;
const GANGS: u32 = 5_000;
const TASKS: u32 = 20;
const ASKED: u32 = 21;

fn main() {
    ask("explain-no-fit-100k", "all");
    ask("explain-queue-full-100k", "small");
}

/// Every node is full; so many gangs wait, in the queue that is asked about or all over.
fn ask(row: &str, of: &str) {
    let mut tables = Tables::new();
    for at in 0..NODES {
        node(&mut tables, at, 8, 0);
    }
    queue(&mut tables, "all", None, Vector::ZERO);
    tables.put_queue(QueueSpec {
        name: "small".into(),
        weight: 1,
        capability: Limits::of([(Kind::CPU, 100_000)]),
        reclaimable: true,
        state: QueueState::Open,
        ..QueueSpec::default()
    });
    // Half a node is left of each where it is not room that lacks.
    let fill = if of == "small" { 1 } else { 2 };
    for at in 0..GANGS + NODES / TASKS * fill {
        let holds = at.checked_sub(GANGS).map(|at| at % (NODES / TASKS));
        let on = |task: u32| holds.map(|block| block * TASKS + task);
        let nodes: Vec<Option<u32>> = (0..TASKS).map(on).collect();
        let held = at == GANGS;
        let gang = Gang {
            at,
            queue: if holds.is_some() && !held { "all" } else { of },
            class: None,
            min: TASKS,
            requests: Vector::of([(Kind::CPU, 4_000), (Kind::MEMORY, 1 << 30)]),
            ..Gang::default()
        };
        gang.put(&mut tables, &nodes);
    }
    let mut engine = Engine::with_defaults();
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let (mut times, mut fixes) = (Vec::new(), 0);
    let waiting: Vec<_> = tables.gangs().map(|(id, _)| id).collect();
    for at in 0..ASKED {
        let gang = waiting[(at * (GANGS / ASKED)) as usize];
        let start = Instant::now();
        let found = engine::explain(&engine, &mut tables, gang, Time::from_micros(0));
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
        assert!(found.reason.is_some(), "it waits");
        fixes += found.fixes.len();
        if at == 0 {
            let said = found.reason.map(|it| it.sentence());
            eprintln!("{}; {} fixes", said.unwrap_or_default(), found.fixes.len());
        }
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    eprintln!("{fixes} fixes for {ASKED} gangs");
    print(row, median(times), "ms", 50.0);
    print(&format!("{row}-max"), slowest, "ms", 50.0);
}
