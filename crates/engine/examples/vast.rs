//! Objects that are larger than anybody means: what they cost, and what they cost whoever waits beside them.
//!
//! `cargo run --release -p katmai-engine --example vast [ROW…]` prints one JSON object a line.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
#[expect(dead_code, reason = "each benchmark uses another part of it")]
mod rows;
#[path = "shared/run.rs"]
#[expect(dead_code, reason = "each benchmark uses another part of it")]
mod run;

use engine::Engine;
use model::{Kind, NodeTerm, Operator, PodTerm, Requirement, ShapeSpec, Tables, Vector};
use rows::{Gang, node, print, queue};
use run::{Asked, confirm, timed};

/// How many nodes there are.
const NODES: u32 = 10_000;
/// A pod of an object of 1.5 MiB, the most that a server stores, has about so many terms …
const TERMS: usize = 20_000;
/// … or values.
const VALUES: usize = 100_000;
/// Terms about other pods are longer.
const POD_TERMS: usize = 8_000;

/// Makes what a pod asks for.
type Make = fn() -> ShapeSpec;

/// What may be asked, by the name of its row.
const SHAPES: [(&str, Make); 4] = [
    ("node-terms", node_terms),
    ("node-values", node_values),
    ("pod-terms", pod_terms),
    ("pod-values", pod_values),
];

fn main() {
    let asked = Asked::read();
    for (name, shape) in SHAPES {
        let row = format!("vast-{name}");
        if asked.has(&row) {
            beside(&row, shape());
        }
    }
    if asked.has("vast-gang") {
        gang();
    }
}

fn plane() -> (Engine, Tables) {
    let mut tables = Tables::new();
    queue(&mut tables, "default", None, Vector::ZERO);
    (0..NODES).for_each(|at| node(&mut tables, at, 32, 0));
    let mut engine = Engine::with_defaults();
    settle(&mut engine, &mut tables);
    (engine, tables)
}

/// Cycles until nothing is decided any more; how long the longest took, in milliseconds.
fn settle(engine: &mut Engine, tables: &mut Tables) -> f64 {
    let mut longest: f64 = 0.0;
    loop {
        let (time, plan) = timed(engine, tables);
        longest = longest.max(time);
        confirm(tables, &plan);
        if plan.is_empty() {
            return longest;
        }
    }
}

fn one(at: u32, shape: ShapeSpec) -> Gang<'static> {
    Gang {
        at,
        queue: "default",
        min: 1,
        requests: Vector::of([(Kind::CPU, 1_000), (Kind::MEMORY, 1 << 30)]),
        shape,
        ..Gang::default()
    }
}

/// The longest cycle while such a pod is decided, and a plain pod's afterwards.
fn beside(row: &str, shape: ShapeSpec) {
    let (mut engine, mut tables) = plane();
    one(1, shape).put(&mut tables, &[None]);
    print(row, settle(&mut engine, &mut tables), "ms", 1_000.0);
    one(2, ShapeSpec::default()).put(&mut tables, &[None]);
    let after = settle(&mut engine, &mut tables);
    print(&format!("{row}-after"), after, "ms", 10.0);
}

/// A gang of a million tasks, of which no more than a third fit; a pod beside it; and a node that gets more
/// room.
fn gang() {
    let (mut engine, mut tables) = plane();
    let size = 1_000_000;
    let vast = Gang {
        min: size,
        ..one(1, ShapeSpec::default())
    };
    vast.put(&mut tables, &vec![None; size as usize]);
    print(
        "vast-gang",
        settle(&mut engine, &mut tables),
        "ms",
        10_000.0,
    );
    one(2, ShapeSpec::default()).put(&mut tables, &[None]);
    let after = settle(&mut engine, &mut tables);
    print("vast-gang-after", after, "ms", 20.0);
    node(&mut tables, 0, 64, 0);
    let freed = settle(&mut engine, &mut tables);
    print("vast-gang-freed", freed, "ms", 20.0);
}

fn node_terms() -> ShapeSpec {
    let term = |at: usize| NodeTerm {
        labels: vec![Requirement::equals("zone", format!("nowhere-{at}"))],
        ..NodeTerm::default()
    };
    ShapeSpec {
        node_affinity: Some((0..TERMS).map(term).collect()),
        ..ShapeSpec::default()
    }
}

fn many_values(key: &str) -> Requirement {
    Requirement {
        key: key.into(),
        operator: Operator::NotIn,
        values: (0..VALUES).map(|at| format!("no-{at}")).collect(),
    }
}

fn node_values() -> ShapeSpec {
    ShapeSpec {
        node_selector: vec![many_values("zone")],
        ..ShapeSpec::default()
    }
}

fn pod_terms() -> ShapeSpec {
    let term = |at: usize| PodTerm {
        topology_key: "zone".into(),
        selector: vec![Requirement::equals("app", format!("nobody-{at}"))],
        namespaces: None,
    };
    ShapeSpec {
        pod_anti_affinity: (0..POD_TERMS).map(term).collect(),
        ..ShapeSpec::default()
    }
}

fn pod_values() -> ShapeSpec {
    let term = PodTerm {
        topology_key: "zone".into(),
        selector: vec![many_values("app")],
        namespaces: None,
    };
    ShapeSpec {
        pod_anti_affinity: vec![term],
        ..ShapeSpec::default()
    }
}
