//! Gangs whose tasks have their cpus to themselves, on 1,000 nodes of two sockets of 64 cpus each.
//!
//! `cargo run --release -p katmai-engine --example numa [ROW…] [--once]` prints one JSON object a line; a
//! ROW selects all rows whose name begins with it.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;
#[path = "shared/run.rs"]
#[expect(dead_code, reason = "each benchmark uses another part of it")]
mod run;

use std::sync::Arc;

use engine::{Engine, Settings};
use model::{
    Kind, NodeId, NodeSpec, NumaAsk, NumaLayout, NumaPart, NumaResource, ShapeSpec, Tables, Units,
    Vector,
};
use placement::{Argument, PluginSettings};
use rows::{Gang, median, node, queue};
use run::{Asked, timed};

/// Name, policy of the tasks, weight of the points, most milliseconds.
const ROWS: &[(&str, &str, i64, f64)] = &[
    ("N1-500x20-of-their-nodes", "", 1, 500.0),
    (
        "N1-500x20-single-without-points",
        "single-numa-node",
        0,
        500.0,
    ),
    ("N1-500x20-single", "single-numa-node", 1, 500.0),
];

const NODES: u32 = 1_000;
const RUNS: usize = 3;

fn main() {
    let asked = Asked::read();
    for (name, policy, weight, reach) in ROWS {
        if asked.has(name) {
            let runs = (0..asked.runs(RUNS)).map(|_| place(policy, *weight));
            rows::print(name, median(runs.collect()), "ms", *reach);
        }
    }
}

/// How many milliseconds it takes to place 500 gangs of 20 tasks of four cpus each.
fn place(policy: &str, weight: i64) -> f64 {
    let mut tables = Tables::new();
    queue(&mut tables, "default", None, Vector::ZERO);
    let layout = Arc::new(layout());
    for at in 0..NODES {
        node(&mut tables, at, 128, 0);
        let spec = tables.node(NodeId(at)).spec.clone();
        tables.put_node(NodeSpec {
            numa: Some(Arc::clone(&layout)),
            ..spec
        });
    }
    let ask = NumaAsk {
        policy: policy.into(),
        parts: vec![NumaPart {
            container: "main".into(),
            units: vec![(NumaLayout::CPU.into(), 4)],
        }],
    };
    for at in 0..500 {
        let gang = Gang {
            at,
            queue: "default",
            min: 20,
            requests: Vector::of([(Kind::CPU, 4_000), (Kind::MEMORY, 1 << 30)]),
            shape: ShapeSpec {
                numa: Some(Arc::new(ask.clone())),
                ..ShapeSpec::default()
            },
            ..Gang::default()
        };
        gang.put(&mut tables, &[None; 20]);
    }
    let (spent, plan) = timed(&mut engine(weight), &mut tables);
    assert_eq!(plan.places.len(), 10_000, "all of them fit");
    spent
}

fn engine(weight: i64) -> Engine {
    let mut settings = Settings::default();
    let mut plugin = PluginSettings::named("numa-aware");
    let weight = Argument::Whole(weight);
    plugin.arguments.0.insert("weight".to_owned(), weight);
    let tier = settings.placement.tiers.last_mut();
    tier.expect("there are tiers by default").push(plugin);
    let (engine, problems) = Engine::new(settings).expect("its actions are known");
    assert!(problems.is_empty(), "{problems:?}");
    engine
}

/// Two sockets of 32 cores of two threads, each a NUMA node.
fn layout() -> NumaLayout {
    let by_node: Vec<Units> = vec![(0..64).collect(), (64..128).collect()];
    let core = |core: u32| {
        let socket = (core / 32) as usize;
        (socket, (core * 2..core * 2 + 2).collect::<Units>())
    };
    NumaLayout {
        pins_cpus: true,
        policy: "single-numa-node".into(),
        nodes: vec![0, 1],
        sockets: by_node.clone(),
        cores: (0..64).map(core).collect(),
        reserved_cpus: 2,
        resources: vec![NumaResource {
            name: NumaLayout::CPU.into(),
            open: (0..128).collect(),
            by_node,
        }],
        is_garbled: false,
    }
}
