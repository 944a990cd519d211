//! S3 on clusters that grow: one pod comes to nodes that hold two pods each, again and again. The first of
//! its shape is told apart: it meets every node. S4: what the tables and the engine hold in memory for
//! 10,000 nodes, 200,000 running and 20,000 waiting tasks in 5,000 gangs of 500 queues; and on clusters that
//! grow, with two pods on each node.
//!
//! `cargo run --release -p katmai-engine --example growth [ROW…] [--once]` prints one JSON object a line;
//! a ROW selects all rows whose name begins with it, and how much longer a pod takes on the large cluster
//! than on the small one is printed where all sizes of its kind were measured.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock, and what it holds in memory"
)]

#[path = "shared/rows.rs"]
mod rows;
#[path = "shared/run.rs"]
mod run;

use std::time::Instant;

use engine::{Engine, PluginSettings, Settings};
use model::{
    Inclusion, Kind, PodTerm, Preferred, Requirement, ShapeSpec, Spread, Tables, Time, Vector,
};
use rows::{Gang, median, node, print, queue};
use run::{Asked, confirm, timed};

const SIZES: [(&str, u32); 4] = [
    ("1k", 1_000),
    ("10k", 10_000),
    ("50k", 50_000),
    ("100k", 100_000),
];

/// A kind of pod: its name, what it asks for, from which size on it is compared with the largest, how
/// much longer it may take there, and how often it comes.
struct Way {
    name: &'static str,
    shape: fn() -> ShapeSpec,
    from: &'static str,
    times: f64,
    pods: usize,
}

const WAYS: [Way; 4] = [
    Way {
        name: "affinity",
        shape: near_others,
        from: "10k",
        times: 12.0,
        pods: 15,
    },
    Way {
        name: "alone",
        shape: alone,
        from: "10k",
        times: 12.0,
        pods: 15,
    },
    Way {
        name: "plain",
        shape: ShapeSpec::default,
        from: "1k",
        times: 2.0,
        pods: 401,
    },
    Way {
        name: "spread",
        shape: over_zones,
        from: "10k",
        times: 12.0,
        pods: 15,
    },
];

/// How a process of its own is asked what a cluster of so many nodes takes.
const RESIDENT: &str = "--resident-of";
/// What a node may take with what runs on it: as much as on the cluster of S4.
const OF_A_NODE_MB: f64 = 0.025;
/// How much more a node may take on the largest cluster than on the one that it is compared with.
const LINEAR: f64 = 1.2;

fn main() {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(RESIDENT) {
        let nodes = words.next().and_then(|word| word.parse().ok());
        println!("{}", resident_of(nodes.expect("a number of nodes")));
        return;
    }
    let asked = Asked::read();
    // Before anything else takes memory.
    if asked.has("S4-tables-10k-220k-rss") {
        memory();
    }
    resident(&asked);
    cooling(&asked);
    for way in WAYS {
        let (mut from, mut to) = (None, None);
        for (size, nodes) in SIZES {
            let row = format!("S3-{}-{size}-proc", way.name);
            if !asked.has(&row) {
                continue;
            }
            let (first, time) = one_by_one(nodes, &way, asked.runs(way.pods));
            print(&row, time, "ms", 100.0);
            print(&format!("{row}-first"), first, "ms", 100.0);
            from = from.or((size == way.from).then_some(time));
            to = (nodes == 100_000).then_some(time);
        }
        if let (Some(from), Some(to)) = (from, to) {
            let row = format!("S3-{}-{}-to-100k", way.name, way.from);
            print(&row, to / from, "x", way.times);
        }
    }
}

/// What clusters of all sizes take in memory, each in a process of its own: a part that is measured after
/// another one would have the room that it left.
fn resident(asked: &Asked) {
    let (mut from, mut to) = (None, None);
    for (size, nodes) in SIZES {
        let row = format!("S4-tables-{size}-rss");
        if !asked.has(&row) {
            continue;
        }
        let own = std::env::current_exe().expect("the program knows where it lies");
        let told = std::process::Command::new(own)
            .args([RESIDENT, &nodes.to_string()])
            .output()
            .expect("the program can be run");
        let text = String::from_utf8_lossy(&told.stdout);
        let held: f64 = text.trim().parse().expect("it says a number");
        print(&row, held, "MB", f64::from(nodes) * OF_A_NODE_MB);
        let of_a_node = held / f64::from(nodes);
        from = from.or((nodes == 10_000).then_some(of_a_node));
        to = (nodes == 100_000).then_some(of_a_node);
    }
    if let (Some(from), Some(to)) = (from, to) {
        print("S4-tables-10k-to-100k-rss", to / from, "x", LINEAR);
    }
}

/// A gang whose tasks take a core each.
fn small(at: u32) -> Gang<'static> {
    Gang {
        at,
        queue: "default",
        min: 1,
        requests: Vector::of([(Kind::CPU, 1_000), (Kind::MEMORY, 1 << 30)]),
        ..Gang::default()
    }
}

/// So many nodes, on each of which two tasks run, of such gangs of twenty.
fn two_on_each(nodes: u32, gang: impl Fn(u32) -> Gang<'static>) -> Tables {
    let mut tables = Tables::new();
    queue(&mut tables, "default", None, Vector::ZERO);
    (0..nodes).for_each(|at| node(&mut tables, at, 32, 0));
    for at in 0..nodes / 10 {
        let places: Vec<_> = (0..20).map(|i| Some(at * 10 + i % 10)).collect();
        gang(at).put(&mut tables, &places);
    }
    tables
}

/// How many megabytes the tables and the engine of a cluster hold in which two pods run on each node.
fn resident_of(nodes: u32) -> f64 {
    let before = resident_mb();
    let mut tables = two_on_each(nodes, small);
    let mut engine = Engine::with_defaults();
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    resident_mb() - before
}

/// How many milliseconds it takes to place the first pod of its shape, and one more, the median of so many.
fn one_by_one(nodes: u32, way: &Way, pods: usize) -> (f64, f64) {
    let mut tables = two_on_each(nodes, small);
    let gang = |at, shape| Gang { shape, ..small(at) };
    let mut engine = Engine::with_defaults();
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    gang(1_000_000, (way.shape)()).put(&mut tables, &[None]);
    let start = Instant::now();
    let plan = engine.cycle(&mut tables, Time::from_micros(0));
    let first = start.elapsed().as_secs_f64() * 1_000.0;
    confirm(&mut tables, &plan);
    let mut times = Vec::new();
    for at in 0..pods {
        let at = 1_000_001 + u32::try_from(at).expect("few pods");
        gang(at, (way.shape)()).put(&mut tables, &[None]);
        let (time, plan) = timed(&mut engine, &mut tables);
        assert_eq!(plan.places.len(), 1, "one pod comes, one pod is placed");
        times.push(time);
        confirm(&mut tables, &plan);
    }
    (first, median(times))
}

/// How many gangs come at once to a cluster of which all pods have just started.
const NEWCOMERS: u32 = 200;

/// Gangs that fit nowhere come to clusters of which all pods have a cooldown: each wakes when the first of
/// these may be evicted.
fn cooling(asked: &Asked) {
    for (size, nodes) in [SIZES[0], SIZES[1]] {
        let row = format!("S3-cooling-{size}-proc");
        if asked.has(&row) {
            let time = newcomers(nodes, asked.runs(5));
            print(&row, time, "ms", 20.0);
        }
    }
}

/// How many milliseconds the cycle takes that looks at all who came, the median of so many.
fn newcomers(nodes: u32, times: usize) -> f64 {
    let mut tables = two_on_each(nodes, |at| Gang {
        cooldown_ms: 600_000,
        ..small(at)
    });
    let mut settings = Settings::default();
    let first = &mut settings.placement.tiers[0];
    first.push(PluginSettings::named("cdp"));
    let (mut engine, problems) = Engine::new(settings).expect("its actions are known");
    assert_eq!(problems, [], "all of it is known");
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    let mut measured = Vec::new();
    for round in 0..times {
        let round = u32::try_from(round).expect("few rounds");
        for at in 0..NEWCOMERS {
            let gang = Gang {
                at: 1_000_000 + round * NEWCOMERS + at,
                queue: "default",
                min: 1,
                requests: Vector::of([(Kind::CPU, 64_000)]),
                ..Gang::default()
            };
            gang.put(&mut tables, &[None]);
        }
        let (time, plan) = timed(&mut engine, &mut tables);
        assert!(plan.places.is_empty(), "nobody has a place");
        measured.push(time);
        confirm(&mut tables, &plan);
    }
    median(measured)
}

/// How many megabytes the process holds once it has nothing to do.
fn memory() {
    let before = resident_mb();
    let mut tables = Tables::new();
    let names: Vec<String> = (0..500).map(|at| format!("queue-{at}")).collect();
    for name in &names {
        queue(&mut tables, name, None, Vector::ZERO);
    }
    (0..10_000).for_each(|at| node(&mut tables, at, 32, 0));
    for at in 0..5_000_u32 {
        // 40 tasks that run, two to a node, and 4 that do not fit anywhere.
        let gang = |cores: i64| Gang {
            at: at * 2 + u32::from(cores > 1),
            queue: &names[at as usize % 500],
            min: 1,
            requests: Vector::of([(Kind::CPU, cores * 1_000), (Kind::MEMORY, cores << 30)]),
            ..Gang::default()
        };
        let places: Vec<_> = (0..40).map(|i| Some((at * 20 + i / 2) % 10_000)).collect();
        gang(1).put(&mut tables, &places);
        gang(64).put(&mut tables, &[None; 4]);
    }
    let mut engine = Engine::with_defaults();
    loop {
        let plan = engine.cycle(&mut tables, Time::from_micros(0));
        if plan.is_empty() {
            break;
        }
        confirm(&mut tables, &plan);
    }
    let rss = resident_mb() - before;
    assert_eq!(tables.tasks().count(), 220_000);
    print("S4-tables-10k-220k-rss", rss, "MB", 250.0);
    // Each cycle is forced by news that concerns nobody, for which the shares of all 500 queues are found anew.
    let mut forced = Vec::new();
    for at in 1..=200 {
        let id = tables.queue_named(&names[0]).expect("it is there");
        let mut spec = tables.queue(id).spec.clone();
        spec.published = Vector::of([(Kind::CPU, at)]);
        tables.put_queue(spec);
        let (time, plan) = timed(&mut engine, &mut tables);
        confirm(&mut tables, &plan);
        forced.push(time);
    }
    let row = "S4-tables-forced-cycle-10k-220k-proc";
    print(row, median(forced), "ms", 3.0);
}

/// What the process holds in memory.
fn resident_mb() -> f64 {
    let text =
        std::fs::read_to_string("/proc/self/statm").expect("Linux tells what a process holds");
    let pages: Option<f64> = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.expect("the second word is a number") * 4_096.0 / 1e6
}

fn like_it() -> Vec<Requirement> {
    vec![Requirement::equals("app", "bench")]
}

/// Rather where others are.
fn near_others() -> ShapeSpec {
    ShapeSpec {
        preferred_pods: vec![Preferred {
            weight: 100,
            term: PodTerm {
                topology_key: "zone".into(),
                selector: like_it(),
                namespaces: None,
            },
        }],
        ..ShapeSpec::default()
    }
}

/// Rather on a node without others.
fn alone() -> ShapeSpec {
    ShapeSpec {
        preferred_pods: vec![Preferred {
            weight: -100,
            term: PodTerm {
                topology_key: "kubernetes.io/hostname".into(),
                selector: like_it(),
                namespaces: None,
            },
        }],
        ..ShapeSpec::default()
    }
}

/// In each zone as many as in the others.
fn over_zones() -> ShapeSpec {
    ShapeSpec {
        spread: vec![Spread {
            topology_key: "zone".into(),
            max_skew: 1,
            min_domains: 1,
            required: true,
            selector: like_it(),
            namespace: "bench".into(),
            affinity: Inclusion::Honor,
            taints: Inclusion::Ignore,
        }],
        ..ShapeSpec::default()
    }
}
