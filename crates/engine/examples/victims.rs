//! S5 and S6 in process: room that has to be taken from others, from rows in the tables to a whole plan.
//!
//! `cargo run --release -p katmai-engine --example victims [ROW…]` prints one JSON object a line; a ROW
//! selects all rows whose name begins with it.
//!
//! S5: a tree of 500 leaves (1 × 5 × 10 × 10) on 1,000 nodes of 32 cores, all of it held by 250 leaves.
//! The other 250 bring 8 gangs of 20 each; what they deserve is enough for 200 of these gangs.
//! S6: 2,000 nodes of 8 GPUs, held by 16,000 tasks of a low class in gangs of 8; 100 gangs of a high class
//! come, each of 8 tasks of 8 GPUs, all at once or one after the other.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use engine::{Engine, PluginSettings, Settings, Switch};
use model::{Kind, Plan, Priority, Tables, Time, Vector};
use rows::{Gang, median, node, print, queue};

const RUNS: usize = 5;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |row: &str| wanted.is_empty() || wanted.iter().any(|word| row.starts_with(word.as_str()));
    if is_wanted("S5") {
        reclaim_storm();
    }
    if is_wanted("S6") {
        preemption_storm();
    }
}

fn engine(action: &str, capacity: bool) -> Engine {
    let mut settings = Settings::default();
    settings.placement.actions.push(action.to_owned());
    for plugin in settings.placement.tiers.iter_mut().flatten() {
        // As Volcano's chart has it.
        if plugin.name == "gang" || plugin.name == "drf" {
            plugin.switch(Switch::Preemptable, false);
        }
        if capacity && plugin.name == "proportion" {
            *plugin = PluginSettings::named("capacity");
            plugin.switch(Switch::Hierarchy, true);
        }
        if capacity && plugin.name == "gang" {
            plugin.switch(Switch::Reclaimable, false);
        }
    }
    Engine::new(settings).expect("known actions").0
}

fn cores(count: i64) -> Vector {
    Vector::of([(Kind::CPU, count * 1_000), (Kind::MEMORY, count << 30)])
}

/// Runs a cycle; how many milliseconds it took.
fn timed(engine: &mut Engine, tables: &mut Tables) -> (f64, Plan) {
    let start = Instant::now();
    let plan = engine.cycle(tables, Time::from_micros(0));
    (start.elapsed().as_secs_f64() * 1_000.0, plan)
}

fn reclaim_storm() {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut tables = storm_of_leaves();
        let mut engine = engine("reclaim", true);
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

/// 250 leaves hold everything; of the others 200 deserve one gang.
fn storm_of_leaves() -> Tables {
    let mut tables = Tables::new();
    queue(&mut tables, "root", None, Vector::ZERO);
    let mut leaves = Vec::new();
    for a in 0..5 {
        let team = format!("q{a}");
        queue(&mut tables, &team, Some("root"), Vector::ZERO);
        for b in 0..10 {
            let group = format!("q{a}-{b}");
            queue(&mut tables, &group, Some(&team), Vector::ZERO);
            for c in 0..10 {
                let leaf = format!("q{a}-{b}-{c}");
                let at = (a * 10 + b) * 10 + c;
                let deserved = match at % 2 {
                    0 => 112,
                    _ if at < 400 => 20,
                    _ => 0,
                };
                queue(&mut tables, &leaf, Some(&group), cores(deserved));
                leaves.push((leaf, at % 2 == 0));
            }
        }
    }
    (0..1_000).for_each(|at| node(&mut tables, at, 32, 0));
    let busy = leaves.iter().filter(|(_, busy)| *busy);
    let mut at = 0;
    for (order, (leaf, _)) in busy.enumerate() {
        // Each leaf's 128 tasks are spread over the cluster, each node has one of 32 leaves.
        let first = u32::try_from(order).expect("few leaves") * 128;
        let nodes: Vec<_> = (0..128).map(|i| Some((first + i) % 1_000)).collect();
        for nodes in nodes.chunks(16) {
            let gang = Gang {
                at,
                queue: leaf,
                class: None,
                min: 1,
                requests: cores(1),
                ..Gang::default()
            };
            gang.put(&mut tables, nodes);
            at += 1;
        }
    }
    let mut engine = engine("allocate", true);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    for (leaf, _) in leaves.iter().filter(|(_, busy)| !*busy) {
        for _ in 0..8 {
            let gang = Gang {
                at,
                queue: leaf,
                class: None,
                min: 20,
                requests: cores(1),
                ..Gang::default()
            };
            gang.put(&mut tables, &[None; 20]);
            at += 1;
        }
    }
    tables
}

fn preemption_storm() {
    let mut tables = Tables::new();
    queue(&mut tables, "default", None, Vector::ZERO);
    for (name, value) in [("low", 10), ("high", 1_000)] {
        tables.put_priority(Priority {
            name: name.into(),
            value,
            global_default: false,
        });
    }
    (0..2_000).for_each(|at| node(&mut tables, at, 64, 8));
    let gpu = tables.kind("nvidia.com/gpu");
    let with_gpus = |count: i64| cores(count).plus(&Vector::of([(gpu, count * 1_000)]));
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
        let gang = Gang {
            at,
            queue: "default",
            class: Some("low"),
            min: 8,
            requests: with_gpus(1),
            ..Gang::default()
        };
        gang.put(&mut tables, &nodes);
    }
    let mut quiet = engine("preempt", false);
    while !quiet.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let high = |tables: &mut Tables, at: u32| {
        let gang = Gang {
            at: 10_000 + at,
            queue: "default",
            class: Some("high"),
            min: 8,
            requests: with_gpus(8),
            ..Gang::default()
        };
        gang.put(tables, &[None; 8]);
    };
    let mut at_once = tables.clone();
    let mut engine = quiet.clone();
    (0..100).for_each(|at| high(&mut at_once, at));
    let (time, plan) = timed(&mut engine, &mut at_once);
    judge(&at_once, &plan, 100);
    print(
        "S6-preempt-100-at-once-proc",
        time / 100.0,
        "ms a gang",
        100.0,
    );
    let mut times = Vec::new();
    for at in 0..100 {
        high(&mut tables, at);
        let (time, plan) = timed(&mut quiet, &mut tables);
        judge(&tables, &plan, 1);
        times.push(time);
        plan.evictions
            .iter()
            .for_each(|row| tables.confirm(row.write));
        plan.statuses
            .iter()
            .for_each(|row| tables.confirm(row.write));
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    print("S6-preempt-one-proc", median(times), "ms a gang", 100.0);
    print("S6-preempt-one-proc-max", most, "ms a gang", 100.0);
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
