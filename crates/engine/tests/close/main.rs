//! Gangs that must be close together, against brute force on small random networks: a gang starts exactly if
//! some hyper-node of an allowed tier has room for it, in the lowest tier that has; and a gang of gangs
//! leaves none of them in part. What the checker says of a plan (I23) must be nothing.

#[path = "../shared/dice.rs"]
mod dice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dice::Dice;
use engine::{Engine, PluginSettings, Settings};
use model::{
    Closeness, GangPhase, GangSpec, GangStatus, Highest, HyperNodeSpec, Key, Kind, Labels, Member,
    NodeId, NodeSpec, Plan, QueueSpec, QueueState, Selector, ShapeSpec, SubGroups, Tables,
    TaskSpec, Time, Vector,
};

const SEEDS: u64 = 2_000;
const CPU: i64 = 1_000;

/// A hyper-node: its tier, its nodes and those that it names as its children.
#[derive(Debug)]
struct Drawn {
    tier: u32,
    nodes: BTreeSet<u32>,
    children: BTreeSet<usize>,
}

#[derive(Debug)]
struct Instance {
    free: Vec<i64>,
    hyper_nodes: Vec<Drawn>,
    dice: DiceSeed,
}

#[derive(Debug)]
struct DiceSeed(u64);

fn draw(seed: u64) -> Instance {
    let mut dice = Dice(seed.wrapping_mul(0x9e6c_63d0_876a_3f6b));
    let mut roll = |sides: u64| dice.roll(sides);
    let nodes = 2 + roll(7);
    let free = (0..nodes)
        .map(|_| i64::try_from(roll(5)).expect("few"))
        .collect();
    let count = usize::try_from(1 + roll(6)).expect("few");
    let hyper_nodes = (0..count).map(|_| Drawn {
        // Tiers, members and children as they come: circles and second parents among them.
        tier: u32::try_from(roll(4)).expect("few"),
        nodes: (0..roll(4))
            .map(|_| u32::try_from(roll(nodes)).expect("few"))
            .collect(),
        children: (0..roll(3))
            .map(|_| usize::try_from(roll(count as u64)).expect("few"))
            .collect(),
    });
    let hyper_nodes = hyper_nodes.collect();
    Instance {
        free,
        hyper_nodes,
        dice: DiceSeed(dice.0),
    }
}

fn node_name(at: u32) -> Arc<str> {
    format!("n{at}").as_str().into()
}

fn hyper_name(at: usize) -> Arc<str> {
    format!("h{at}").as_str().into()
}

impl Instance {
    fn tables(&self) -> Tables {
        let mut tables = Tables::new();
        tables.put_queue(QueueSpec {
            name: "default".into(),
            weight: 1,
            state: QueueState::Open,
            ..QueueSpec::default()
        });
        for (at, free) in (0_u32..).zip(&self.free) {
            tables.put_node(NodeSpec {
                name: node_name(at),
                allocatable: Vector::of([
                    (Kind::CPU, free * CPU),
                    (Kind::MEMORY, 1 << 40),
                    (Kind::PODS, 110),
                ]),
                ..NodeSpec::default()
            });
        }
        for (at, drawn) in self.hyper_nodes.iter().enumerate() {
            let nodes = drawn
                .nodes
                .iter()
                .map(|at| Member::Nodes(Selector::Name(node_name(*at))));
            let below = drawn.children.iter();
            let below = below.map(|at| Member::HyperNodes(Selector::Name(hyper_name(*at))));
            tables.put_hyper_node(HyperNodeSpec {
                name: hyper_name(at),
                tier: drawn.tier,
                members: nodes.chain(below).collect(),
                ..HyperNodeSpec::default()
            });
        }
        tables
    }

    /// The sets of nodes in which a gang may be, by tier: the rule of the tree written down once more.
    fn domains(&self, limit: Option<u32>) -> BTreeMap<u32, Vec<BTreeSet<u32>>> {
        let mut order: Vec<usize> = (0..self.hyper_nodes.len()).collect();
        order.sort_by_key(|at| (self.hyper_nodes[*at].tier, hyper_name(*at)));
        let mut parent: BTreeMap<usize, usize> = BTreeMap::new();
        for above in &order {
            let mut wanted: Vec<usize> =
                self.hyper_nodes[*above].children.iter().copied().collect();
            wanted.sort_by_key(|at| hyper_name(*at));
            for child in wanted {
                if self.hyper_nodes[child].tier < self.hyper_nodes[*above].tier {
                    parent.entry(child).or_insert(*above);
                }
            }
        }
        let mut domains: BTreeMap<u32, Vec<BTreeSet<u32>>> = BTreeMap::new();
        for (at, drawn) in self.hyper_nodes.iter().enumerate() {
            let mut nodes = drawn.nodes.clone();
            for (other, below) in self.hyper_nodes.iter().enumerate() {
                let mut up = std::iter::successors(Some(other), |at| parent.get(at).copied());
                if up.any(|up| up == at) {
                    nodes.extend(&below.nodes);
                }
            }
            domains.entry(drawn.tier).or_default().push(nodes);
        }
        let highest = self
            .hyper_nodes
            .iter()
            .map(|drawn| drawn.tier)
            .max()
            .unwrap_or(0);
        let all = (0..u32::try_from(self.free.len()).expect("few")).collect();
        domains.entry(highest + 1).or_default().push(all);
        domains.retain(|tier, _| limit.is_none_or(|limit| *tier <= limit));
        domains
    }

    /// The lowest tier in which some domain has room for so many tasks of this size.
    fn lowest(&self, limit: Option<u32>, count: i64, cpu: i64) -> Option<u32> {
        let fits = |nodes: &BTreeSet<u32>| {
            let slots = nodes.iter().map(|at| self.free[*at as usize] / cpu);
            slots.sum::<i64>() >= count
        };
        let domains = self.domains(limit);
        let mut tiers = domains.iter();
        tiers
            .find(|(_, sets)| sets.iter().any(fits))
            .map(|(tier, _)| *tier)
    }
}

struct Asked {
    count: u32,
    cpu: i64,
    limit: Option<u32>,
    part: Option<(u32, u32)>,
}

impl Asked {
    fn put(&self, tables: &mut Tables) {
        let key = Key::new("a", "g");
        let tier =
            |limit: Option<u32>| Closeness::HyperNode(limit.map_or(Highest::Any, Highest::Tier));
        let groups = self.part.iter().map(|(size, limit)| SubGroups {
            name: "part".into(),
            closeness: Some(tier(Some(*limit))),
            size: *size,
            min: self.count / size,
            keys: vec!["part".into()],
            ..SubGroups::default()
        });
        tables.put_gang(GangSpec {
            key: key.clone(),
            uid: "g".into(),
            queue: "default".into(),
            min_member: self.count,
            closeness: Some(tier(self.limit)),
            sub_groups: groups.collect(),
            status: GangStatus {
                phase: GangPhase::Inqueue,
                ..GangStatus::default()
            },
            ..GangSpec::default()
        });
        for at in 0..self.count {
            let part = self.part.map_or(0, |(size, _)| at / size).to_string();
            tables.put_task(TaskSpec {
                key: Key::new("a", format!("g-{at}")),
                uid: format!("g-{at}").as_str().into(),
                gang: Some(key.clone()),
                index: at,
                labels: Labels::of([("part", part)]),
                shape: ShapeSpec {
                    requests: Vector::of([(Kind::CPU, self.cpu * CPU)]),
                    ..ShapeSpec::default()
                },
                ..TaskSpec::default()
            });
        }
    }
}

fn engine(aware: bool) -> Engine {
    let mut settings = Settings::default();
    if aware {
        let plugin = PluginSettings::named("network-topology-aware");
        settings.placement.tiers[1].push(plugin);
    }
    Engine::new(settings).expect("known actions").0
}

fn decide(engine: &mut Engine, tables: &mut Tables) -> Plan {
    let plan = engine.cycle(tables, Time::from_micros(0));
    assert_eq!(checker::check_plan(tables, &plan), []);
    assert_eq!(checker::check(tables), []);
    plan
}

fn nodes_of(plan: &Plan) -> BTreeSet<u32> {
    plan.places
        .iter()
        .map(|place| {
            let NodeId(at) = place.node;
            at
        })
        .collect()
}

#[test]
fn a_gang_starts_in_the_lowest_tier_that_has_room_and_nowhere_else() {
    let mut starts = [0; 2];
    for seed in 0..SEEDS {
        let instance = draw(seed);
        let mut dice = Dice(instance.dice.0);
        let asked = Asked {
            count: u32::try_from(1 + dice.roll(6)).expect("few"),
            cpu: i64::try_from(1 + dice.roll(2)).expect("few"),
            limit: match dice.roll(5) {
                0 => None,
                tier => Some(u32::try_from(tier - 1).expect("few")),
            },
            part: None,
        };
        let mut tables = instance.tables();
        asked.put(&mut tables);
        let plan = decide(&mut engine(seed % 2 == 0), &mut tables);
        let lowest = instance.lowest(asked.limit, i64::from(asked.count), asked.cpu);
        starts[usize::from(lowest.is_some())] += 1;
        let placed = plan.places.len();
        let Some(lowest) = lowest else {
            assert_eq!(placed, 0, "seed {seed}: {instance:?}");
            continue;
        };
        assert_eq!(placed, asked.count as usize, "seed {seed}: {instance:?}");
        let nodes = nodes_of(&plan);
        let domains = instance.domains(Some(lowest));
        let holds = domains[&lowest]
            .iter()
            .any(|domain| nodes.is_subset(domain));
        assert!(holds, "seed {seed}: {nodes:?} in {instance:?}");
    }
    assert!(starts.iter().all(|count| *count > SEEDS / 5), "{starts:?}");
}

#[test]
fn of_a_gang_of_gangs_all_start_each_in_one_domain_or_none() {
    let mut starts = [0; 2];
    for seed in 0..SEEDS {
        let instance = draw(seed);
        let mut dice = Dice(instance.dice.0);
        let (size, parts) = (1 + dice.roll(3), 1 + dice.roll(3));
        let limit = u32::try_from(dice.roll(3)).expect("few");
        let asked = Asked {
            count: u32::try_from(size * parts).expect("few"),
            cpu: 1,
            limit: Some(limit + u32::try_from(dice.roll(3)).expect("few")),
            part: Some((u32::try_from(size).expect("few"), limit)),
        };
        let mut tables = instance.tables();
        asked.put(&mut tables);
        let plan = decide(&mut engine(true), &mut tables);
        let placed = plan.places.len();
        starts[usize::from(placed > 0)] += 1;
        assert!(
            placed == 0 || placed == asked.count as usize,
            "seed {seed}: {instance:?}"
        );
        // A gang that cannot start as one of tasks cannot start as one of gangs.
        if instance
            .lowest(asked.limit, i64::from(asked.count), 1)
            .is_none()
        {
            assert_eq!(placed, 0, "seed {seed}: {instance:?}");
        }
        // Where one domain of the lower limit takes all of it, so it does part by part.
        if instance
            .lowest(Some(limit), i64::from(asked.count), 1)
            .is_some()
        {
            assert_eq!(placed, asked.count as usize, "seed {seed}: {instance:?}");
        }
    }
    assert!(starts.iter().all(|count| *count > SEEDS / 10), "{starts:?}");
}
