//! S7 in process: gangs that must be close together, from rows in the tables to a whole plan.
//!
//! `cargo run --release -p katmai-engine --example topology [ROW…]` prints one JSON object a line; a ROW
//! selects all rows whose name begins with it.
//!
//! 6,144 nodes of 8 GPUs: 24 to a rack (tier 1), 16 racks to a spine (tier 2), 8 spines to a zone (tier 3),
//! 2 zones. 60 % of all GPUs are held, strewn by a seeded generator. Gangs of tasks of one GPU come one
//! after the other; each must be in the lowest tier that could hold it, which is counted apart from the
//! engine, and goes again. The last row is the case of volcano#4899: 100 groups of 10 on 1,000 nodes, each
//! group in one rack.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/shared/dice.rs"]
mod dice;
#[path = "shared/rows.rs"]
mod rows;

use std::time::Instant;

use dice::Dice;
use engine::{Engine, PluginSettings, Settings};
use model::{
    Closeness, Highest, HyperNodeSpec, Key, Kind, Member, NodeId, Plan, Selector, Tables, Time,
    Vector,
};
use rows::{Gang, median, node, print, queue};

const RUNS: u32 = 9;
const GPUS: i64 = 8;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |row: &str| wanted.is_empty() || wanted.iter().any(|word| row.starts_with(word.as_str()));
    let mut network = Network::new([24, 16, 8, 2], 60);
    for (size, tier) in [(8, 1), (64, 1), (64, 2), (512, 2), (512, 3), (2_048, 3)] {
        let row = format!("S7-{size}-tier{tier}-proc");
        if is_wanted(&row) {
            network.gangs(&row, size, tier, None);
        }
    }
    if is_wanted("S7-64x8-tier3-proc") {
        network.gangs("S7-64x8-tier3-proc", 512, 3, Some(8));
    }
    if is_wanted("S7-100x10-tier1-proc") {
        let mut network = Network::new([20, 50, 1, 1], 0);
        network.gangs("S7-100x10-tier1-proc", 1_000, 3, Some(10));
    }
}

/// The cluster, with the nodes of each hyper-node by tier.
struct Network {
    tables: Tables,
    engine: Engine,
    tiers: Vec<Vec<Vec<NodeId>>>,
    gangs: u32,
}

fn gpus(tables: &mut Tables, count: i64) -> Vector {
    let gpu = tables.kind("nvidia.com/gpu");
    Vector::of([(Kind::CPU, 1_000), (gpu, count * 1_000)])
}

impl Network {
    /// So many nodes to a rack, racks to a spine, spines to a zone, zones; so much of it held.
    fn new(widths: [u32; 4], held_percent: u64) -> Network {
        let mut tables = Tables::new();
        queue(&mut tables, "default", None, Vector::ZERO);
        let count: u32 = widths.iter().product();
        (0..count).for_each(|at| node(&mut tables, at, 64, GPUS));
        let mut network = Network {
            engine: engine(),
            tiers: vec![Vec::new(); 4],
            tables,
            gangs: 0,
        };
        network.weave(widths, count);
        network.strew(held_percent, count);
        network
    }

    fn weave(&mut self, widths: [u32; 4], count: u32) {
        let mut size = 1;
        let mut below = 1;
        for (tier, width) in (1_u32..=3).zip(widths) {
            size *= width;
            for at in 0..count / size {
                let names = (at * size / below..(at + 1) * size / below).map(|i| match tier {
                    1 => Member::Nodes(Selector::Name(format!("node-{i:05}").as_str().into())),
                    _ => Member::HyperNodes(Selector::Name(name(tier - 1, i))),
                });
                self.tables.put_hyper_node(HyperNodeSpec {
                    name: name(tier, at),
                    tier,
                    members: names.collect(),
                    ..HyperNodeSpec::default()
                });
                let nodes = (at * size..(at + 1) * size).map(NodeId);
                self.tiers[tier as usize].push(nodes.collect());
            }
            below = size;
        }
    }

    /// Tasks of one to eight GPUs on random nodes, until so much of all is held.
    fn strew(&mut self, percent: u64, count: u32) {
        let mut dice = Dice(7);
        let mut left: Vec<i64> = vec![GPUS; count as usize];
        let whole = u64::from(count) * GPUS as u64;
        let mut held = 0;
        while held * 100 < whole * percent {
            let at = u32::try_from(dice.roll(u64::from(count))).expect("few nodes");
            let wanted = i64::try_from(dice.roll(8) + 1).expect("a few");
            let free = &mut left[at as usize];
            if *free < wanted {
                continue;
            }
            *free -= wanted;
            held += wanted as u64;
            let requests = gpus(&mut self.tables, wanted);
            let gang = Gang {
                at: self.gangs,
                queue: "default",
                min: 1,
                requests,
                ..Gang::default()
            };
            gang.put(&mut self.tables, &[Some(at)]);
            self.gangs += 1;
        }
        while !self.decide().is_empty() {}
    }

    fn decide(&mut self) -> Plan {
        self.engine.cycle(&mut self.tables, Time::from_micros(0))
    }

    /// Gangs of so many tasks, one after the other; the median time of a decision.
    fn gangs(&mut self, row: &str, size: u32, tier: u32, part: Option<u32>) {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let gang = Gang {
                at: self.gangs,
                queue: "default",
                min: size,
                requests: gpus(&mut self.tables, 1),
                closeness: Some(Closeness::HyperNode(Highest::Tier(tier))),
                parts: part.map(|size| (size, Closeness::HyperNode(Highest::Tier(1)))),
                ..Gang::default()
            };
            self.gangs += 1;
            let lowest = self.lowest_tier(size, tier);
            gang.put(&mut self.tables, &vec![None; size as usize]);
            let start = Instant::now();
            let plan = self.decide();
            times.push(start.elapsed().as_secs_f64() * 1_000.0);
            let nodes: Vec<NodeId> = plan.places.iter().map(|place| place.node).collect();
            let key = Key::new("bench", format!("gang-{:05}", gang.at));
            assert_eq!(nodes.len(), size as usize, "the gang is placed whole");
            assert_eq!(
                self.tier_of(&nodes),
                lowest,
                "in the lowest tier that holds it"
            );
            self.take_away(&key, size);
        }
        print(row, median(times), "ms", 50.0);
    }

    /// The lowest tier with a hyper-node in which so many GPUs are free.
    fn lowest_tier(&mut self, size: u32, most: u32) -> u32 {
        let gpu = self.tables.kind("nvidia.com/gpu");
        let free = |nodes: &Vec<NodeId>| {
            let left = nodes.iter().map(|id| self.tables.node(*id).free(gpu));
            left.sum::<i64>() >= i64::from(size) * 1_000
        };
        let mut tiers = 1..=most;
        let found = tiers.find(|tier| self.tiers[*tier as usize].iter().any(free));
        found.expect("some hyper-node holds it")
    }

    /// The lowest tier of which one hyper-node has all the nodes.
    fn tier_of(&self, nodes: &[NodeId]) -> u32 {
        let holds = |all: &Vec<NodeId>| nodes.iter().all(|node| all.binary_search(node).is_ok());
        let mut tiers = 1..=3;
        let found = tiers.find(|tier| self.tiers[*tier as usize].iter().any(holds));
        found.expect("one zone has them all")
    }

    fn take_away(&mut self, key: &Key, size: u32) {
        for at in 0..size {
            let pod = Key::new("bench", format!("{}-{at}", key.name));
            self.tables.remove_task(&pod);
        }
        self.tables.remove_gang(key);
        while !self.decide().is_empty() {}
    }
}

fn name(tier: u32, at: u32) -> std::sync::Arc<str> {
    format!("tier{tier}-{at}").as_str().into()
}

fn engine() -> Engine {
    let mut settings = Settings::default();
    let plugin = PluginSettings::named("network-topology-aware");
    settings.placement.tiers[1].push(plugin);
    Engine::new(settings).expect("known actions").0
}
