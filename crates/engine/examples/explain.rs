//! How long one explanation takes where 100,000 pods wait for 10,000 nodes.
//!
//! `cargo run --release -p katmai-engine --example explain` prints one JSON object a line.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;

use std::time::Instant;

use engine::{Argument, Engine, PluginSettings, Settings};
use model::{
    Card, CardAsk, Grant, Key, Kind, Limits, Memory, NodeSpec, Part, QueueSpec, QueueState,
    ShapeSpec, Tables, Time, Vector,
};
use rows::{Gang, median, node, print, queue};

const NODES: u32 = 10_000;
const GANGS: u32 = 5_000;
const TASKS: u32 = 20;
const ASKED: u32 = 21;

fn main() {
    ask("explain-no-fit-100k", "all", Short::Room);
    ask("explain-queue-full-100k", "small", Short::Room);
    ask("explain-cards-taken-100k", "all", Short::Cards);
}

/// What others hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Short {
    /// The nodes' cores, where it is not the queue that is full.
    Room,
    /// Their cards, of which each has eight.
    Cards,
}

/// How many cards each task has, or wants.
const CARDS: usize = 4;

fn with_cards(tables: &mut Tables, at: u32) {
    let id = tables.nodes().last().expect("a node was just put").0;
    let spec = tables.node(id).spec.clone();
    let card = |card: usize| Card {
        id: format!("{at}-{card}").into(),
        memory: 16_000,
        users_max: 10,
        is_healthy: true,
        ..Card::default()
    };
    let mut cards = spec.cards.clone();
    cards.list = (0..2 * CARDS).map(card).collect();
    tables.put_node(NodeSpec { cards, ..spec });
}

/// The tasks of a gang have their cards: of two on a node the one the first, the other the last ones.
fn grant(tables: &mut Tables, gang: u32) {
    for index in 0..TASKS {
        let key = Key::new("bench", format!("gang-{gang:05}-{index}"));
        let id = tables.task_keyed(&key).expect("it was just put");
        let mut spec = tables.task_spec(id);
        let node = tables.task(id).node.expect("it runs");
        let held = tables.node(node).cards.iter().count();
        let cards = tables.node(node).spec.cards.list.iter();
        let grant = |card: &Card| Grant {
            card: card.id.clone(),
            memory: card.memory,
            cores: 100,
            is_whole: true,
            ..Grant::default()
        };
        spec.grants = cards.skip(held).take(CARDS).map(grant).collect();
        tables.put_task(spec);
    }
}

fn engine(short: Short) -> Engine {
    let mut settings = Settings::default();
    if short == Short::Cards {
        let mut cards = PluginSettings::named("deviceshare");
        let key = "deviceshare.VGPUEnable".to_owned();
        cards.arguments.0.insert(key, Argument::Flag(true));
        settings.placement.tiers[1].push(cards);
    }
    Engine::new(settings).expect("the actions are known").0
}

/// Every node is full; so many gangs wait, in the queue that is asked about or all over.
fn ask(row: &str, of: &str, short: Short) {
    let mut tables = Tables::new();
    for at in 0..NODES {
        match short {
            Short::Room => node(&mut tables, at, 8, 0),
            Short::Cards => {
                node(&mut tables, at, 16, 0);
                with_cards(&mut tables, at);
            }
        }
    }
    let ask = CardAsk {
        parts: vec![Part::of_gpus(CARDS as i64, Memory::Mib(16_000), 100)],
        ..CardAsk::default()
    };
    let shape = ShapeSpec {
        cards: (short == Short::Cards).then(|| ask.into()),
        ..ShapeSpec::default()
    };
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
            shape: shape.clone(),
            ..Gang::default()
        };
        gang.put(&mut tables, &nodes);
        if holds.is_some() && short == Short::Cards {
            grant(&mut tables, at);
        }
    }
    let mut engine = engine(short);
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
