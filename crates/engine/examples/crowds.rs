//! Crowds: very many tasks or gangs of one kind that are looked at in one cycle, whose number must not count
//! twice.
//!
//! `cargo run --release -p katmai-engine --example crowds [ROW…]` prints one JSON object a line: what a cycle
//! takes for such a crowd.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "shared/rows.rs"]
#[expect(dead_code, reason = "each benchmark uses another part of it")]
mod rows;
#[path = "shared/run.rs"]
#[expect(dead_code, reason = "each benchmark uses another part of it")]
mod run;

use engine::{Engine, PluginSettings, Settings, Switch};
use model::{
    Branch, Charge, GangPhase, GangSpec, GangStatus, Key, Kind, Limits, Phase, Priority, QueueSpec,
    QueueState, Quota, ShapeSpec, Tables, TaskSpec, Time, Vector,
};
use rows::{Gang, node, print};
use run::{Asked, timed};

/// How many gangs there are, or tasks.
const CROWD: u32 = 10_000;
/// How many queues share them.
const QUEUES: u32 = 100;

/// One crowd: its row, what its cycle may take in milliseconds, the plugins in tiers, those that take queues for
/// a tree marked, and the actions.
struct Crowd {
    row: &'static str,
    reach: f64,
    tiers: &'static str,
    actions: &'static [&'static str],
    make: fn(&mut Tables),
    /// How many gangs are let in or wait for more, and how many tasks are placed or evicted.
    decided: (usize, usize),
}

const CROWDS: [Crowd; 7] = [
    Crowd {
        row: "crowd-elastic",
        reach: 100.0,
        tiers: "priority gang / drf predicates nodeorder",
        actions: &["allocate"],
        make: elastic,
        decided: (0, 5_000),
    },
    Crowd {
        row: "crowd-quota",
        reach: 500.0,
        tiers: "priority gang / resourcequota",
        actions: &["enqueue"],
        make: namespace_quota,
        decided: (10_000, 0),
    },
    Crowd {
        row: "crowd-claims",
        reach: 1_000.0,
        tiers: "priority gang / capacity* predicates",
        actions: &["enqueue"],
        make: claims,
        decided: (10_000, 0),
    },
    Crowd {
        row: "crowd-tree-enters",
        reach: 500.0,
        tiers: "priority gang / drf* predicates",
        actions: &["enqueue"],
        make: tree_without_pods,
        decided: (10_000, 0),
    },
    Crowd {
        row: "crowd-tree-starts",
        reach: 3_000.0,
        tiers: "priority gang / drf* predicates",
        actions: &["allocate"],
        make: tree,
        decided: (0, 10_000),
    },
    Crowd {
        row: "crowd-closed",
        reach: 20.0,
        tiers: "priority gang conformance / capacity predicates",
        actions: &["preempt"],
        make: closed,
        decided: (0, 0),
    },
    Crowd {
        row: "crowd-full",
        reach: 1_000.0,
        tiers: "priority gang conformance / capacity predicates",
        actions: &["preempt"],
        make: full,
        decided: (1, 50),
    },
];

fn main() {
    let asked = Asked::read();
    for crowd in CROWDS {
        if !asked.has(crowd.row) {
            continue;
        }
        let mut settings = Settings::default();
        let plugin = |name: &str| {
            let mut plugin = PluginSettings::named(name.trim_end_matches('*'));
            plugin.switch(Switch::Hierarchy, name.ends_with('*'));
            plugin
        };
        let tiers = crowd.tiers.split('/');
        let tiers = tiers.map(|tier| tier.split_whitespace().map(plugin).collect());
        settings.placement.tiers = tiers.collect();
        settings.placement.actions = crowd.actions.iter().map(|it| (*it).to_owned()).collect();
        let (mut engine, _) = Engine::new(settings).expect("known actions");
        let mut tables = Tables::new();
        (0..CROWD / 50).for_each(|at| node(&mut tables, at, 64, 0));
        (crowd.make)(&mut tables);
        let (time, plan) = timed(&mut engine, &mut tables);
        print(crowd.row, time, "ms", crowd.reach);
        let entered = plan.statuses.iter();
        let entered = entered.filter(|it| it.status.phase == GangPhase::Inqueue);
        let moved = plan.places.len() + plan.evictions.len();
        assert_eq!((entered.count(), moved), crowd.decided, "{}", crowd.row);
    }
}

fn queue(tables: &mut Tables, name: &str, spec: QueueSpec) {
    tables.put_queue(QueueSpec {
        name: name.into(),
        weight: 1,
        state: match spec.state {
            QueueState::Closed => QueueState::Closed,
            _ => QueueState::Open,
        },
        reclaimable: true,
        ..spec
    });
}

fn core() -> Vector {
    Vector::of([(Kind::CPU, 1_000), (Kind::MEMORY, 1 << 30)])
}

/// Gang number `at` of a queue, as large as it says.
fn gang(at: u32, queue: &str, phase: GangPhase) -> GangSpec {
    let key = Key::new("bench", format!("gang-{at:05}"));
    GangSpec {
        uid: key.name.clone(),
        key,
        queue: queue.into(),
        min_member: 1,
        min_resources: Some(core()),
        created: Time::from_micros(i64::from(at)),
        status: GangStatus {
            phase,
            ..GangStatus::default()
        },
        ..GangSpec::default()
    }
}

fn task(gang: &GangSpec, charges: Vec<Charge>) -> TaskSpec {
    TaskSpec {
        key: gang.key.clone(),
        uid: gang.uid.clone().into(),
        gang: Some(gang.key.clone()),
        shape: ShapeSpec {
            requests: core(),
            ..ShapeSpec::default()
        },
        charges,
        phase: Phase::Pending,
        ..TaskSpec::default()
    }
}

/// One gang that starts with one task and takes as many as it can get.
fn elastic(tables: &mut Tables) {
    queue(tables, "default", QueueSpec::default());
    let gang = Gang {
        queue: "default",
        min: 1,
        requests: core(),
        ..Gang::default()
    };
    gang.put(tables, &vec![None; CROWD as usize / 2]);
}

/// Gangs without pods in a namespace with a quota.
fn namespace_quota(tables: &mut Tables) {
    queue(tables, "default", QueueSpec::default());
    tables.put_quota(Quota {
        key: Key::new("bench", "quota"),
        hard: Limits::of([(Kind::CPU, i64::from(CROWD) * 1_000)]),
        ..Quota::default()
    });
    for at in 0..CROWD {
        tables.put_gang(gang(at, "default", GangPhase::Pending));
    }
}

/// Gangs that claim a device each, in queues below one that may have some of them.
fn claims(tables: &mut Tables) {
    let gpu = tables.kind("deviceclass/gpu");
    let most = |count: u32| QueueSpec {
        capability: Limits::of([(gpu, i64::from(count))]),
        ..QueueSpec::default()
    };
    queue(tables, "root", QueueSpec::default());
    let parent = |above: &str| Some(above.into());
    let above = most(CROWD);
    queue(
        tables,
        "all",
        QueueSpec {
            parent: parent("root"),
            ..above
        },
    );
    for at in 0..QUEUES {
        let below = most(CROWD);
        queue(
            tables,
            &format!("queue-{at}"),
            QueueSpec {
                parent: parent("all"),
                ..below
            },
        );
    }
    for at in 0..CROWD {
        let gang = gang(at, &format!("queue-{}", at % QUEUES), GangPhase::Pending);
        let claim = Key::new("bench", format!("claim-{at}"));
        let charge = Charge {
            claim,
            amounts: vec![(gpu, 1)],
            unasked: Vec::new(),
            is_own: false,
        };
        tables.put_task(task(&gang, vec![charge]));
        tables.put_gang(gang);
    }
}

/// Queues in ten branches of a tree of shares.
fn branches(tables: &mut Tables) {
    for at in 0..QUEUES {
        let branch = |name: String| Branch {
            name: name.as_str().into(),
            weight: 1_000,
        };
        let way = [
            branch(format!("branch-{}", at % 10)),
            branch(format!("queue-{at}")),
        ];
        let spec = QueueSpec {
            branches: way.to_vec(),
            ..QueueSpec::default()
        };
        queue(tables, &format!("queue-{at}"), spec);
    }
}

fn tree_without_pods(tables: &mut Tables) {
    branches(tables);
    for at in 0..CROWD {
        let gang = gang(at, &format!("queue-{}", at % QUEUES), GangPhase::Pending);
        tables.put_gang(gang);
    }
}

fn tree(tables: &mut Tables) {
    branches(tables);
    for at in 0..CROWD {
        let gang = gang(at, &format!("queue-{}", at % QUEUES), GangPhase::Inqueue);
        tables.put_task(task(&gang, Vec::new()));
        tables.put_gang(gang);
    }
}

/// A gang that holds all that its queue may have, and one of a higher class that wants some of it.
fn above_a_crowd(tables: &mut Tables, state: QueueState) {
    tables.put_priority(Priority {
        name: "high".into(),
        value: 1_000,
        global_default: false,
    });
    let spec = QueueSpec {
        state,
        capability: Limits::of([(Kind::CPU, i64::from(CROWD) * 1_000)]),
        ..QueueSpec::default()
    };
    queue(tables, "default", spec);
    let low = Gang {
        queue: "default",
        min: 1,
        requests: core(),
        ..Gang::default()
    };
    let nodes: Vec<Option<u32>> = (0..CROWD).map(|at| Some(at % (CROWD / 50))).collect();
    low.put(tables, &nodes);
    let high = Gang {
        at: 1,
        class: Some("high"),
        min: 50,
        ..low
    };
    high.put(tables, &[None; 50]);
}

fn closed(tables: &mut Tables) {
    above_a_crowd(tables, QueueState::Closed);
}

fn full(tables: &mut Tables) {
    above_a_crowd(tables, QueueState::Open);
}
