//! How long one explanation takes where 100,000 pods wait for 10,000 nodes.
//!
//! `cargo run --release -p katmai-engine --example explain [ROW…]` prints one JSON object a line.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
mod rows;

use std::sync::Arc;
use std::time::Instant;

use engine::{Argument, Engine, PluginSettings, Settings, Switch};
use model::{
    Card, CardAsk, Closeness, Device, DeviceAsk, DeviceClaim, DeviceRequest, Grant, Highest,
    HyperNodeSpec, Key, Kind, Limits, Member, Memory, Node, NumaAsk, NumaLayout, NumaPart,
    NumaPolicy, NumaResource, Part, PodTerm, QueueSpec, QueueState, Requirement, Selector,
    ShapeSpec, Tables, Time, Units, Vector, Wanted, Way,
};
use rows::{Gang, median, node, print, queue};

const NODES: u32 = 10_000;
const GANGS: u32 = 5_000;
const TASKS: u32 = 20;
const ASKED: u32 = 21;

const ROWS: [(&str, &str, Short); 12] = [
    ("explain-no-fit-100k", "all", Short::Room),
    ("explain-queue-full-100k", "small", Short::Room),
    ("explain-cards-taken-100k", "all", Short::Cards),
    ("explain-devices-taken-100k", "all", Short::Devices),
    ("explain-cpus-taken-100k", "all", Short::Cpus),
    ("explain-close-100k", "all", Short::Racks),
    ("explain-parts-close-100k", "all", Short::RacksOfParts),
    ("explain-apart-100k", "all", Short::Company),
    ("explain-evicting-100k", "all", Short::RoomOfOthers),
    (
        "explain-evicting-queue-full-100k",
        "small",
        Short::RoomOfOthers,
    ),
    ("explain-evicting-by-share-100k", "all", Short::RoomOfRicher),
    (
        "explain-evicting-by-share-queue-full-100k",
        "small",
        Short::RoomOfRicher,
    ),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (row, of, short) in ROWS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == row) {
            ask(row, of, short);
        }
    }
}

/// What others hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Short {
    /// The nodes' cores, where it is not the queue that is full.
    Room,
    /// Their cards, of which each has eight.
    Cards,
    /// Their devices, of which each has eight.
    Devices,
    /// Their cpus, sixteen on two NUMA nodes.
    Cpus,
    /// The nodes' cores, for gangs that must lie in a rack of twenty nodes.
    Racks,
    /// The same, for gangs of which each five must.
    RacksOfParts,
    /// The nodes, by pods of the same name that nobody may lie beside.
    Company,
    /// The nodes' cores, where `preempt` and `reclaim` look for room, too.
    RoomOfOthers,
    /// The same, where `drf` lets whoever has less take from who has more.
    RoomOfRicher,
}

/// So many nodes are a rack.
const RACK: u32 = 20;

/// How many cards or devices each task has, or wants.
const CARDS: usize = 4;
/// How many cpus.
const CPUS: u32 = 8;

impl Short {
    /// What a waiting task asks for.
    fn shape(self) -> ShapeSpec {
        let mut shape = ShapeSpec::default();
        match self {
            Short::Room
            | Short::RoomOfOthers
            | Short::RoomOfRicher
            | Short::Racks
            | Short::RacksOfParts => {}
            Short::Company => {
                shape.pod_anti_affinity = vec![PodTerm {
                    topology_key: "kubernetes.io/hostname".into(),
                    selector: vec![Requirement::equals("app", "bench")],
                    namespaces: None,
                }]
            }
            Short::Cards => {
                let part = Part::of_gpus(CARDS as i64, Memory::Mib(16_000), 100);
                let ask = CardAsk {
                    parts: vec![part],
                    ..CardAsk::default()
                };
                shape.cards = Some(ask.into());
            }
            Short::Devices => {
                let way = Way {
                    name: "".into(),
                    selectors: Vec::new(),
                    wanted: Wanted::Count(CARDS as u32),
                    is_admin: false,
                    tolerations: Vec::new(),
                    amounts: Vec::new(),
                };
                let request = DeviceRequest {
                    name: "r".into(),
                    ways: vec![way],
                    resource: None,
                };
                let claim = DeviceClaim {
                    name: "c".into(),
                    requests: vec![request],
                    ..DeviceClaim::default()
                };
                let claims = vec![claim];
                shape.devices = Some(DeviceAsk { claims }.into());
            }
            Short::Cpus => {
                let part = NumaPart {
                    container: "c".into(),
                    units: vec![(NumaLayout::CPU.into(), CPUS)],
                };
                let ask = NumaAsk {
                    policy: NumaPolicy::SingleNumaNode.word().into(),
                    parts: vec![part],
                };
                shape.numa = Some(ask.into());
            }
        }
        shape
    }

    /// The last node has what is short.
    fn equip(self, tables: &mut Tables) {
        let id = tables.nodes().last().expect("a node was just put").0;
        let mut spec = tables.node(id).spec.clone();
        match self {
            Short::Cards => {
                let card = |at: usize| Card {
                    id: format!("{}-{at}", spec.name).into(),
                    memory: 16_000,
                    users_max: 10,
                    is_healthy: true,
                    ..Card::default()
                };
                spec.cards.list = (0..2 * CARDS).map(card).collect();
            }
            Short::Devices => {
                let device = |at: usize| Device {
                    id: format!("{}-{at}", spec.name).into(),
                    ..Device::default()
                };
                spec.devices.list = (0..2 * CARDS).map(device).collect();
            }
            Short::Cpus => spec.numa = Some(layout().into()),
            _ => return,
        }
        tables.put_node(spec);
    }

    /// What the task has of its node beside what others have.
    fn grants(self, node: &Node) -> Vec<Grant> {
        let held = node.cards.iter().count();
        let whole = |id: &Arc<str>| Grant {
            card: id.clone(),
            memory: 16_000,
            is_whole: true,
            ..Grant::default()
        };
        match self {
            Short::Cards => {
                let cards = node.spec.cards.list.iter().skip(held).take(CARDS);
                cards.map(|card| whole(&card.id)).collect()
            }
            Short::Devices => {
                let devices = node.spec.devices.list.iter().skip(held).take(CARDS);
                devices.map(|device| whole(&device.id)).collect()
            }
            Short::Cpus => {
                let held = node.cards.of(NumaLayout::CPU);
                let first = held.map_or(0, |load| load.units.held().len());
                vec![Grant {
                    card: NumaLayout::CPU.into(),
                    units: (first..first + CPUS).collect(),
                    ..Grant::default()
                }]
            }
            _ => Vec::new(),
        }
    }

    /// The plugin that looks at it, where the built-in configuration has none.
    fn plugin(self) -> Option<PluginSettings> {
        match self {
            Short::Racks | Short::RacksOfParts => {
                Some(PluginSettings::named("network-topology-aware"))
            }
            Short::Room
            | Short::Devices
            | Short::Company
            | Short::RoomOfOthers
            | Short::RoomOfRicher => None,
            Short::Cards => {
                let mut cards = PluginSettings::named("deviceshare");
                let key = "deviceshare.VGPUEnable".to_owned();
                cards.arguments.0.insert(key, Argument::Flag(true));
                Some(cards)
            }
            Short::Cpus => Some(PluginSettings::named("numa-aware")),
        }
    }
}

/// Two sockets of a NUMA node each.
fn layout() -> NumaLayout {
    let all = |from: u32, to: u32| (from..to).collect::<Units>();
    let by_node = vec![all(0, CPUS), all(CPUS, 2 * CPUS)];
    NumaLayout {
        pins_cpus: true,
        policy: NumaPolicy::SingleNumaNode.word().into(),
        nodes: vec![0, 1],
        cores: (0..2 * CPUS)
            .map(|cpu| ((cpu / CPUS) as usize, all(cpu, cpu + 1)))
            .collect(),
        sockets: by_node.clone(),
        resources: vec![NumaResource {
            name: NumaLayout::CPU.into(),
            by_node,
            open: all(0, 2 * CPUS),
        }],
        ..NumaLayout::default()
    }
}

/// The tasks of a gang have theirs.
fn grant(tables: &mut Tables, gang: u32, short: Short) {
    for index in 0..TASKS {
        let key = Key::new("bench", format!("gang-{gang:05}-{index}"));
        let id = tables.task_keyed(&key).expect("it was just put");
        let mut spec = tables.task_spec(id);
        let node = tables.task(id).node.expect("it runs");
        spec.grants = short.grants(tables.node(node));
        tables.put_task(spec);
    }
}

fn engine(short: Short) -> Engine {
    let mut settings = Settings::default();
    settings.placement.tiers[1].extend(short.plugin());
    if matches!(short, Short::RoomOfOthers | Short::RoomOfRicher) {
        let actions = ["preempt", "reclaim"].map(str::to_owned);
        settings.placement.actions.extend(actions);
        // As Volcano's chart has it.
        for plugin in settings.placement.tiers.iter_mut().flatten() {
            let is_off = match &*plugin.name {
                "gang" => true,
                "drf" => short == Short::RoomOfOthers,
                _ => false,
            };
            if is_off {
                plugin.switch(Switch::Preemptable, false);
            }
        }
    }
    Engine::new(settings).expect("the actions are known").0
}

/// Each twenty nodes are a rack.
fn racks(tables: &mut Tables) {
    for at in 0..NODES / RACK {
        let nodes = at * RACK..(at + 1) * RACK;
        let member = |at| Member::Nodes(Selector::Name(format!("node-{at:05}").as_str().into()));
        tables.put_hyper_node(HyperNodeSpec {
            name: format!("rack-{at}").as_str().into(),
            tier: 1,
            members: nodes.map(member).collect(),
            ..HyperNodeSpec::default()
        });
    }
}

/// Every node is full; so many gangs wait, in the queue that is asked about or all over.
fn ask(row: &str, of: &str, short: Short) {
    let mut tables = Tables::new();
    let lacks_cores = !matches!(
        short,
        Short::Cards | Short::Devices | Short::Cpus | Short::Company
    );
    for at in 0..NODES {
        node(&mut tables, at, if lacks_cores { 8 } else { 24 }, 0);
        short.equip(&mut tables);
    }
    if matches!(short, Short::Racks | Short::RacksOfParts) {
        racks(&mut tables);
    }
    let in_a_rack = || Closeness::HyperNode(Highest::Tier(1));
    let shape = short.shape();
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
            shape: if holds.is_some() && short == Short::Company {
                ShapeSpec::default()
            } else {
                shape.clone()
            },
            closeness: (short == Short::Racks).then(in_a_rack),
            parts: (short == Short::RacksOfParts).then(|| (5, in_a_rack())),
            ..Gang::default()
        };
        gang.put(&mut tables, &nodes);
        if holds.is_some() {
            grant(&mut tables, at, short);
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
