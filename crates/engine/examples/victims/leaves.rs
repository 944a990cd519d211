//! S5's tree of queues, all of it held by half of its leaves, and engines that take room.

use engine::{Engine, PluginSettings, Settings, Switch};
use model::{Kind, Limits, QueueSpec, QueueState, Tables, Time, Vector};

use crate::rows::{Gang, node};

/// How queues share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// By weight (`proportion`).
    ByWeight,
    /// Each gets what it deserves, in a tree (`capacity`).
    Deserved,
}

/// What queues above the leaves say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    /// Nothing.
    Silent,
    /// That they deserve what the leaves below deserve together.
    Deserving,
    /// The same, and that they may have no more.
    Capped,
}

/// The built-in rules with that action beside them.
pub fn engine(action: &str, shares: Shares) -> Engine {
    let settings = settings(action, shares);
    Engine::new(settings).expect("known actions").0
}

/// Its settings.
pub fn settings(action: &str, shares: Shares) -> Settings {
    let mut settings = Settings::default();
    settings.placement.actions.push(action.to_owned());
    for plugin in settings.placement.tiers.iter_mut().flatten() {
        // As Volcano's chart has it.
        if plugin.name == "gang" || plugin.name == "drf" {
            plugin.switch(Switch::Preemptable, false);
        }
        if shares == Shares::Deserved && plugin.name == "proportion" {
            *plugin = PluginSettings::named("capacity");
            plugin.switch(Switch::Hierarchy, true);
        }
        if shares == Shares::Deserved && plugin.name == "gang" {
            plugin.switch(Switch::Reclaimable, false);
        }
    }
    settings
}

/// So many cores, with a GiB each.
pub fn cores(count: i64) -> Vector {
    Vector::of([(Kind::CPU, count * 1_000), (Kind::MEMORY, count << 30)])
}

/// A leaf of the tree.
pub struct Leaf {
    pub name: String,
    /// Whether it holds something at first.
    pub is_busy: bool,
    /// How many cores are its share.
    pub deserved: i64,
}

/// How many cores a busy leaf holds at first.
pub const HELD: u32 = 128;

/// 500 leaves in a tree of 1 × 5 × 10 × 10: half of them deserve 112 cores each, 200 deserve 20, and 50 nothing.
pub fn leaves() -> Vec<Leaf> {
    let leaf = |at: usize| Leaf {
        name: format!("{}-{}", group(at / 10), at % 10),
        is_busy: at.is_multiple_of(2),
        deserved: match at % 2 {
            0 => 112,
            _ if at < 400 => 20,
            _ => 0,
        },
    };
    (0..500).map(leaf).collect()
}

fn group(at: usize) -> String {
    format!("{}-{}", team(at / 10), at % 10)
}

fn team(at: usize) -> String {
    format!("q{at}")
}

/// The busy leaves hold all of 1,000 nodes; each of the others brings 8 gangs of 20 tasks of a core.
pub fn storm(inner: Inner) -> Tables {
    let mut tables = Tables::new();
    let leaves = leaves();
    plant(&mut tables, &leaves, inner);
    (0..1_000).for_each(|at| node(&mut tables, at, 32, 0));
    let mut at = 0;
    for (order, leaf) in leaves.iter().filter(|leaf| leaf.is_busy).enumerate() {
        // Each leaf's tasks are spread over the cluster, each node has one of 32 leaves.
        let first = u32::try_from(order).expect("few leaves") * HELD;
        let nodes: Vec<_> = (0..HELD).map(|i| Some((first + i) % 1_000)).collect();
        for nodes in nodes.chunks(16) {
            gang(at, &leaf.name, 1).put(&mut tables, nodes);
            at += 1;
        }
    }
    let mut engine = engine("allocate", Shares::Deserved);
    while !engine.cycle(&mut tables, Time::from_micros(0)).is_empty() {}
    for leaf in leaves.iter().filter(|leaf| !leaf.is_busy) {
        for _ in 0..8 {
            gang(at, &leaf.name, 20).put(&mut tables, &[None; 20]);
            at += 1;
        }
    }
    tables
}

fn gang(at: u32, queue: &str, min: u32) -> Gang<'_> {
    Gang {
        at,
        queue,
        min,
        requests: cores(1),
        ..Gang::default()
    }
}

fn plant(tables: &mut Tables, leaves: &[Leaf], inner: Inner) {
    let mut put = |name: &str, parent: Option<&str>, below: &[Leaf]| {
        let deserved = cores(below.iter().map(|leaf| leaf.deserved).sum());
        let is_leaf = below.iter().all(|leaf| leaf.name == name);
        let is_capped = inner == Inner::Capped && !is_leaf && parent.is_some();
        tables.put_queue(QueueSpec {
            name: name.into(),
            parent: parent.map(Into::into),
            weight: 1,
            capability: match is_capped {
                true => Limits::of(deserved.entries()),
                false => Limits::default(),
            },
            deserved: match is_leaf || inner != Inner::Silent {
                true => deserved,
                false => Vector::ZERO,
            },
            reclaimable: true,
            state: QueueState::Open,
            ..QueueSpec::default()
        });
    };
    put("root", None, leaves);
    for (at, below) in leaves.chunks(100).enumerate() {
        put(&team(at), Some("root"), below);
    }
    for (at, below) in leaves.chunks(10).enumerate() {
        put(&group(at), Some(&team(at / 10)), below);
    }
    for (at, leaf) in leaves.iter().enumerate() {
        put(
            &leaf.name,
            Some(&group(at / 10)),
            std::slice::from_ref(leaf),
        );
    }
}
