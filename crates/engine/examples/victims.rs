//! S5 and S6 in process: room that has to be taken from others, from rows in the tables to a whole plan.
//!
//! `cargo run --release -p katmai-engine --example victims [ROW…] [--once]` prints one JSON object a
//! line; a ROW selects all rows whose name begins with it.
//!
//! S5: a tree of 500 leaves (1 × 5 × 10 × 10) on 1,000 nodes of 32 cores, all of it held by 250 leaves.
//! The other 250 bring 8 gangs of 20 each; what they deserve is enough for 200 of these gangs. `S5-fair` plays it
//! on until every leaf has its share, and a minute beyond; below ceilings, with queues above the leaves that may
//! have no more than they deserve.
//! S6: 2,000 nodes of 8 GPUs, held by 16,000 tasks of a low class in gangs of 8; 100 gangs of a high class
//! come, each of 8 tasks of 8 GPUs, all at once or one after the other, that also where nodes are compared by
//! dry runs. `S6-gangpreempt-256`: of 200 such nodes a gang of 256 tasks of one GPU gets room from 32 gangs,
//! which go whole. `S6-planted` fills the same nodes
//! at random with tasks of 1 to 8 GPUs, some of whom may not be evicted, and leaves some GPUs free: what
//! the fewest victims are for 100 gangs of 8 tasks is then found exactly, and compared.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/shared/dice.rs"]
mod dice;
#[path = "victims/fair.rs"]
mod fair;
#[path = "victims/leaves.rs"]
mod leaves;
#[path = "shared/rows.rs"]
mod rows;
#[path = "shared/run.rs"]
mod run;

use std::collections::{BTreeMap, BTreeSet};

use dice::Dice;
use engine::{Argument, Engine};
use leaves::{Inner, Shares, cores, engine, settings};
use model::{Kind, Plan, Priority, Tables, Time, Vector};
use rows::{Gang, median, node, print, queue};
use run::{Asked, confirm, timed};

const RUNS: usize = 5;

/// Nodes, and the most milliseconds: 1/200 of the 9 s, and 1/10,000 of the 40 minutes, that KAI-Scheduler takes
/// for so many; for the most nodes nobody has a figure, and twice as much counts.
const LARGE_JOBS: [(u32, f64); 3] = [(500, 45.0), (1_000, 240.0), (2_000, 480.0)];

fn main() {
    let asked = Asked::read();
    if asked.has("S5-reclaim-4000-proc") {
        reclaim_storm(asked.runs(RUNS));
    }
    for (row, inner) in [
        ("S5-fair", Inner::Deserving),
        ("S5-fair-below-ceilings", Inner::Capped),
    ] {
        if asked.has(row) {
            fair::storm(row, inner);
        }
    }
    if asked.has("S6-preempt") {
        preemption_storm(asked.runs(100));
    }
    if asked.has("S6-gangpreempt-256-proc") {
        bundles(asked.runs(RUNS));
    }
    for (nodes, reach) in LARGE_JOBS {
        let row = format!("S6-reclaim-large-{nodes}-proc");
        if asked.has(&row) {
            large_job(&row, nodes, reach, asked.runs(RUNS));
        }
    }
    for gpus in [8, 4] {
        let row = format!("S6-planted-{gpus}-gpus");
        if asked.has(&row) {
            planted(&row, gpus);
        }
    }
}

/// The same as `engine("preempt", Shares::ByWeight)`, which compares nodes by dry runs.
fn dry_running() -> Engine {
    let mut settings = settings("preempt", Shares::ByWeight);
    let rows = &mut settings.placement.action_arguments;
    let arguments = &mut rows.entry("preempt".to_owned()).or_default().0;
    let key = "enableTopologyAwarePreemption".to_owned();
    arguments.insert(key, Argument::Flag(true));
    Engine::new(settings).expect("known actions").0
}

fn reclaim_storm(runs: usize) {
    let mut times = Vec::new();
    for _ in 0..runs {
        let mut tables = leaves::storm(Inner::Silent);
        let mut engine = engine("reclaim", Shares::Deserved);
        let (time, plan) = timed(&mut engine, &mut tables);
        times.push(time);
        let served: BTreeSet<_> = plan
            .nominations
            .iter()
            .map(|row| tables.task(row.task).gang)
            .collect();
        assert_eq!(served.len(), 200, "as many gangs as their queues deserve");
        assert_eq!(plan.evictions.len(), 4_000, "no more victims than tasks");
    }
    print("S5-reclaim-4000-proc", median(times), "ms", 50.0);
}

/// 2,000 nodes of 8 GPUs, and three classes.
fn gpu_nodes(count: u32) -> (Tables, Kind) {
    let mut tables = Tables::new();
    queue(&mut tables, "default", None, Vector::ZERO);
    for (name, value) in [("low", 10), ("high", 1_000), ("kept", 2_000)] {
        tables.put_priority(Priority {
            name: name.into(),
            value,
            global_default: false,
        });
    }
    (0..count).for_each(|at| node(&mut tables, at, 64, 8));
    let gpu = tables.kind("nvidia.com/gpu");
    (tables, gpu)
}

/// As KAI-Scheduler's `BenchmarkReclaimLargeJobs` has it: on N nodes of 8 GPUs run 8 N jobs of a GPU each,
/// whose queue deserves nothing; a job of N / 10 tasks that take a node each comes to one that deserves all.
fn large_job(row: &str, nodes: u32, reach: f64, runs: usize) {
    let (mut tables, gpu) = gpu_nodes(0);
    queue(&mut tables, "lender", None, Vector::ZERO);
    let all = Vector::of([(gpu, i64::from(nodes) * 8_000)]);
    queue(&mut tables, "owner", None, all);
    (0..nodes).for_each(|at| node(&mut tables, at, 64, 8));
    let of_gpus = |count: i64| Vector::of([(gpu, count * 1_000)]);
    for at in 0..nodes * 8 {
        let gang = Gang {
            at,
            queue: "lender",
            min: 1,
            requests: of_gpus(1),
            ..Gang::default()
        };
        gang.put(&mut tables, &[Some(at % nodes)]);
    }
    let mut quiet = engine("reclaim", Shares::Deserved);
    while !quiet.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let large = Gang {
        at: 999_999,
        queue: "owner",
        min: nodes / 10,
        requests: of_gpus(8),
        ..Gang::default()
    };
    large.put(&mut tables, &vec![None; nodes as usize / 10]);
    let mut times = Vec::new();
    for _ in 0..runs {
        let mut tables = tables.clone();
        let (time, plan) = timed(&mut quiet.clone(), &mut tables);
        let served = plan.nominations.len();
        assert_eq!(served, nodes as usize / 10, "the whole job has room");
        assert_eq!(plan.evictions.len(), served * 8, "eight jobs for each task");
        times.push(time);
    }
    print(row, median(times), "ms", reach);
}

fn with_gpus(gpu: Kind, count: i64) -> Vector {
    cores(count).plus(&Vector::of([(gpu, count * 1_000)]))
}

/// A gang of a low class, of eight tasks of one GPU each.
fn holder(at: u32, gpu: Kind) -> Gang<'static> {
    Gang {
        at,
        queue: "default",
        class: Some("low"),
        min: 8,
        requests: with_gpus(gpu, 1),
        ..Gang::default()
    }
}

/// Gangs that lose all of their tasks for one that is larger than each of them.
fn bundles(runs: usize) {
    let (mut tables, gpu) = gpu_nodes(200);
    for at in 0..200_u32 {
        holder(at, gpu).put(&mut tables, &[Some(at); 8]);
    }
    let mut quiet = engine("gangpreempt", Shares::ByWeight);
    while !quiet.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let large = Gang {
        at: 999,
        queue: "default",
        class: Some("high"),
        min: 256,
        requests: with_gpus(gpu, 1),
        ..Gang::default()
    };
    large.put(&mut tables, &[None; 256]);
    let mut times = Vec::new();
    for _ in 0..runs {
        let (time, plan) = timed(&mut quiet.clone(), &mut tables.clone());
        assert_eq!(plan.evictions.len(), 256, "nobody goes in vain or in part");
        times.push(time);
    }
    print("S6-gangpreempt-256-proc", median(times), "ms", 100.0);
}

fn preemption_storm(runs: usize) {
    let (mut tables, gpu) = gpu_nodes(2_000);
    for at in 0..2_000_u32 {
        // Every other gang fills a node, the others lie across eight.
        let nodes: Vec<_> = (0..8)
            .map(|i| {
                Some(if at % 2 == 0 {
                    at
                } else {
                    2 * ((at / 2 + i * 125) % 1_000) + 1
                })
            })
            .collect();
        holder(at, gpu).put(&mut tables, &nodes);
    }
    let mut quiet = engine("preempt", Shares::ByWeight);
    while !quiet.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let mut at_once = tables.clone();
    let mut engine = quiet.clone();
    (0..100).for_each(|at| high(&mut at_once, at, with_gpus(gpu, 8)));
    let (time, plan) = timed(&mut engine, &mut at_once);
    judge(&at_once, &plan, 100);
    print(
        "S6-preempt-100-at-once-proc",
        time / 100.0,
        "ms a gang",
        100.0,
    );
    let mut dry = dry_running();
    let mut again = tables.clone();
    while !dry.cycle(&mut again, Time::from_micros(0)).is_empty() {}
    let gangs = (gpu, runs);
    one_by_one("S6-preempt-one-proc", gangs, &mut quiet, &mut tables);
    one_by_one("S6-preempt-dry-runs-proc", gangs, &mut dry, &mut again);
}

fn one_by_one(row: &str, (gpu, runs): (Kind, usize), engine: &mut Engine, tables: &mut Tables) {
    let mut times = Vec::new();
    for at in 0..runs {
        let at = u32::try_from(at).expect("few gangs");
        high(tables, at, with_gpus(gpu, 8));
        let (time, plan) = timed(engine, tables);
        judge(tables, &plan, 1);
        times.push(time);
        confirm(tables, &plan);
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    print(row, median(times), "ms a gang", 100.0);
    print(&format!("{row}-max"), most, "ms a gang", 100.0);
}

/// A gang of the high class, of 8 tasks.
fn high(tables: &mut Tables, at: u32, requests: Vector) {
    let gang = Gang {
        at: 100_000 + at,
        queue: "default",
        class: Some("high"),
        min: 8,
        requests,
        ..Gang::default()
    };
    gang.put(tables, &[None; 8]);
}

/// Every gang has all its room, and took it from as few as there could be.
fn judge(tables: &Tables, plan: &Plan, gangs: usize) {
    assert_eq!(
        plan.nominations.len(),
        gangs * 8,
        "each task is promised room"
    );
    assert_eq!(
        plan.evictions.len(),
        gangs * 64,
        "a node of eight for each task"
    );
    let mut by_node: BTreeMap<_, u32> = BTreeMap::new();
    for row in &plan.evictions {
        *by_node.entry(tables.task(row.task).node).or_default() += 1;
    }
    assert!(
        by_node.values().all(|count| *count == 8),
        "no node is cleared in part"
    );
}

/// A node's part of the plant: GPUs that are free, and the sizes of those who may be evicted.
#[derive(Default)]
struct Bed {
    free: i64,
    victims: Vec<i64>,
}

impl Bed {
    /// How many victims it takes at least until there are so many GPUs: the largest give the most.
    fn cost(&self, gpus: i64) -> Option<usize> {
        let mut sizes = self.victims.clone();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut room = self.free;
        let mut count = 0;
        for size in sizes {
            if room >= gpus {
                break;
            }
            room += size;
            count += 1;
        }
        (room >= gpus).then_some(count)
    }
}

/// The fewest victims for so many tasks of one size, over all ways to spread them over the beds.
fn fewest(beds: &[Bed], gpus: i64, tasks: usize) -> usize {
    let mut best = vec![usize::MAX; tasks + 1];
    best[0] = 0;
    for bed in beds {
        let ways = (1..).map_while(|count| Some((count, bed.cost(gpus * count as i64)?)));
        let ways: Vec<(usize, usize)> = ways.collect();
        for at in (1..=tasks).rev() {
            for (count, cost) in ways.iter().filter(|(count, _)| *count <= at) {
                best[at] = best[at].min(best[at - count].saturating_add(*cost));
            }
        }
    }
    best[tasks]
}

/// 100 gangs of 8 tasks take room where what the best is, is known.
fn planted(row: &str, gpus: i64) {
    let (mut tables, gpu) = gpu_nodes(2_000);
    let mut dice = Dice(7);
    let mut beds = Vec::new();
    for at in 0..2_000_u32 {
        let mut bed = Bed::default();
        let mut left = 8;
        while left > 0 {
            let size = [1, 1, 2, 4, 8][dice.roll(5) as usize].min(left);
            left -= size;
            let class = match dice.roll(20) {
                0 => "kept",
                1 => {
                    bed.free += size;
                    continue;
                }
                _ => "low",
            };
            if class == "low" {
                bed.victims.push(size);
            }
            let gang = Gang {
                at: at * 8 + u32::try_from(left).expect("at most eight"),
                queue: "default",
                class: Some(class),
                min: 1,
                requests: with_gpus(gpu, size),
                ..Gang::default()
            };
            gang.put(&mut tables, &[Some(at)]);
        }
        beds.push(bed);
    }
    let mut engine = engine("preempt", Shares::ByWeight);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    (0..100).for_each(|at| high(&mut tables, at, with_gpus(gpu, gpus)));
    let before = tables.clone();
    let (_, plan) = timed(&mut engine, &mut tables);
    let found = checker::check_plan(&tables, &plan);
    assert!(found.is_empty(), "{found:?}");
    let served = plan.places.len() + plan.nominations.len();
    assert_eq!(served, 800, "each task has room, or is promised some");
    let mut evicted = plan.evictions.iter().map(|row| before.task(row.task));
    assert!(
        evicted.all(|task| task.priority < 1_000),
        "nobody goes who is more important"
    );
    let best = fewest(&beds, gpus, 800);
    print(row, plan.evictions.len() as f64 / best as f64, "x", 1.05);
}
