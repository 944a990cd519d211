//! Rescheduling: tasks leave nodes of which too much is used, where others have room for them (A.6).
//!
//! Upstream sends away whoever comes first, though no other node may take it, and though the rest of its
//! gang is worth nothing without it. Here a task goes only if a node that is used little would take it
//! now, if it uses what its node lacks, and if its gang can spare it or is nothing but this task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Kind, Node, NodeId, Reason, TaskId, Time};

use crate::arguments::{Asked, Switched};
use crate::plugin::{Leaver, Plugin, View};
use crate::plugins::{gang, millionths};
use crate::rules::Config;
use crate::shuffling::Protection;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "rescheduling",
    looks_at_measures: true,
    configure: Some(configure),
    victim_tasks: Some(victim_tasks),
    victims_at: Some(victims_at),
    ..Plugin::NONE
};

/// A whole, in millionths.
const WHOLE: i64 = 1_000_000;

/// What is looked at of a node: its cpu, its memory and its slots for pods.
const KINDS: [Kind; 3] = [Kind::CPU, Kind::MEMORY, Kind::PODS];

/// How they are called in the arguments.
const NAMES: [&str; 3] = ["cpu", "memory", "pods"];

/// Kubernetes' own priorities, where no object tells them.
const SYSTEM: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// How often, and by which strategies.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    interval_ms: i64,
    strategies: Vec<Balance>,
}

/// The strategy `lowNodeUtilization`. Shares are in millionths.
#[derive(Clone, Debug)]
struct Balance {
    /// A node that uses less of everything has room for others.
    low: [i64; 3],
    /// A node that uses more of anything has to give.
    target: [i64; 3],
    /// Tasks of this priority and above stay.
    class: String,
    /// Whether the rules of placing are asked whether another node takes the task.
    fits: Switched,
}

impl Default for Balance {
    fn default() -> Self {
        Balance {
            low: [WHOLE; 3],
            target: [WHOLE; 3],
            class: SYSTEM[0].0.to_owned(),
            fits: Switched::On,
        }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            interval_ms: 300_000,
            strategies: vec![Balance::default()],
        }
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    let default = Setup::default();
    let interval = asked.lasting_ms("interval");
    // There is one measurement of a node, and its source says over which time.
    asked.without_effect(&["metricsPeriod"]);
    let strategies = asked.maps("strategies", strategy);
    let strategies = strategies.map(|all| all.into_iter().flatten().collect());
    config.rescheduling = Setup {
        interval_ms: interval.unwrap_or(default.interval_ms),
        strategies: strategies.unwrap_or(default.strategies),
    };
}

fn strategy(asked: &mut Asked<'_>) -> Option<Balance> {
    let is_it = |text: &str| (text == "lowNodeUtilization").then_some(());
    let name = asked.read("name", "lowNodeUtilization", is_it);
    let balance = asked.map("params", balance);
    name.map(|()| balance.unwrap_or_default())
}

fn balance(asked: &mut Asked<'_>) -> Balance {
    let default = Balance::default();
    let class = asked.text("thresholdPriorityClassName");
    Balance {
        low: (asked.map("thresholds", shares)).unwrap_or(default.low),
        target: (asked.map("targetThresholds", shares)).unwrap_or(default.target),
        class: match class {
            "" => default.class,
            name => name.to_owned(),
        },
        fits: asked.flag("nodeFit", Switched::On),
    }
}

fn shares(asked: &mut Asked<'_>) -> [i64; 3] {
    NAMES.map(|name| asked.millionths(name, 100 * WHOLE, 0, 100 * WHOLE) / 100)
}

/// How much of a node is used, in millionths; `None` where that is not known.
fn used(view: View<'_>, node: &Node) -> Option<[i64; 3]> {
    let measured = node.measured_at(view.state.now)?;
    let pods = node.used.get(Kind::PODS);
    let pods = millionths(pods, node.spec.allocatable.get(Kind::PODS)).unwrap_or(0);
    Some([measured.cpu, measured.memory, pods])
}

/// Nodes with room, and nodes that have to give, those of which most is used first.
struct Sides {
    low: Vec<(NodeId, [i64; 3])>,
    high: Vec<(NodeId, [i64; 3])>,
}

/// Nothing where there is nobody to give, or nobody to take.
fn sides(view: View<'_>, balance: &Balance) -> Option<Sides> {
    let mut sides = Sides {
        low: Vec::new(),
        high: Vec::new(),
    };
    let ours = view.tables.nodes().filter(|(_, node)| !node.spec.foreign);
    for (id, node) in ours {
        let Some(used) = used(view, node) else {
            continue;
        };
        let beyond = |limits: &[i64; 3]| used.iter().zip(limits).any(|(used, it)| used > it);
        let is_below = used.iter().zip(&balance.low).all(|(used, it)| used < it);
        match beyond(&balance.target) {
            true => sides.high.push((id, used)),
            false if is_below && !node.spec.unschedulable => sides.low.push((id, used)),
            false => {}
        }
    }
    let sum = |used: &[i64; 3]| used.iter().sum::<i64>();
    sides.high.sort_by_key(|(id, used)| (-sum(used), *id));
    (!sides.low.is_empty() && !sides.high.is_empty()).then_some(sides)
}

/// Who has gone so far, in thought, and where to.
#[derive(Default)]
struct Moves {
    leaving: Vec<Leaver>,
    gone: BTreeSet<TaskId>,
    /// What those need who go to a node.
    coming: BTreeMap<(NodeId, Kind), i64>,
}

fn last(view: View<'_>) -> Option<Time> {
    let at = view.tables.shuffled_at(PLUGIN.name);
    // Unless that was before the clock was set back.
    at.filter(|at| *at <= view.state.now)
}

fn victim_tasks(view: View<'_>, protection: &Protection<'_>) -> Vec<Leaver> {
    let setup = &view.config.rescheduling;
    if last(view).is_some_and(|at| view.state.now < at.plus_millis(setup.interval_ms)) {
        return Vec::new();
    }
    let mut moves = Moves::default();
    for balance in &setup.strategies {
        if let Some(sides) = sides(view, balance) {
            even_out(view, protection, balance, sides, &mut moves);
        }
    }
    moves.leaving
}

fn even_out(
    view: View<'_>,
    protection: &Protection<'_>,
    balance: &Balance,
    mut sides: Sides,
    moves: &mut Moves,
) {
    for (id, mut used) in std::mem::take(&mut sides.high) {
        let node = view.tables.node(id);
        for task in movable(view, protection, balance, node) {
            let over = (0..KINDS.len()).find(|at| used[*at] > balance.target[*at]);
            let Some(over) = over else {
                break;
            };
            let needs = needs(view, task);
            if needs[over] == 0 || moves.gone.contains(&task) || !is_spared(view, task, moves) {
                continue;
            }
            if !goes_somewhere(view, protection, balance, &sides.low, task, moves) {
                continue;
            }
            let reason = Reason::NodeOverused {
                node: node.spec.name.clone(),
                resource: NAMES[over].into(),
                percent: u32::try_from(used[over] / 10_000).unwrap_or(u32::MAX),
                most: u32::try_from(balance.target[over] / 10_000).unwrap_or(u32::MAX),
            };
            moves.leaving.push((task, Arc::new(reason)));
            moves.gone.insert(task);
            for ((used, kind), need) in used.iter_mut().zip(KINDS).zip(needs) {
                *used -= millionths(need, node.spec.allocatable.get(kind)).unwrap_or(0);
            }
        }
    }
}

/// What a task is taken to use: what it requests, and a slot.
fn needs(view: View<'_>, task: TaskId) -> [i64; 3] {
    let held = &view.tables.shape_of(task).held;
    KINDS.map(|kind| held.get(kind))
}

/// The tasks of a node that may go, the least important first.
fn movable(
    view: View<'_>,
    protection: &Protection<'_>,
    balance: &Balance,
    node: &Node,
) -> Vec<TaskId> {
    let known = SYSTEM.iter().find(|(name, _)| *name == balance.class);
    let class = view.tables.priority_named(&balance.class);
    let limit = class.map(|class| class.value);
    // Who is to stay is not known while there is no such class: then all do.
    let Some(limit) = limit.or(known.map(|(_, value)| *value)) else {
        return Vec::new();
    };
    let priority = |task: &TaskId| view.tables.task(*task).priority;
    let tasks = node.tasks.iter().copied();
    // By the class of the pod: an annotation that says another priority protects nobody.
    let own = |task: &TaskId| view.tables.task(*task).priority_of_pod();
    let mut tasks: Vec<TaskId> = tasks.filter(|task| own(task) < limit).collect();
    tasks.sort_by_key(|task| {
        let gang = view.tables.task(*task).gang;
        let of_gang = gang.map(|gang| view.tables.gang(gang).priority);
        (of_gang, priority(task), *task)
    });
    protection.let_go(&tasks)
}

/// Whether its gang goes on without it, after those that go already, or is nothing but it.
fn is_spared(view: View<'_>, task: TaskId, moves: &Moves) -> bool {
    let Some(id) = view.tables.task(task).gang else {
        return false;
    };
    let row = view.tables.gang(id);
    if row.tasks.len() == 1 {
        return true;
    }
    let theirs = moves.gone.iter().copied();
    let theirs = theirs.filter(|other| view.tables.task(*other).gang == Some(id));
    let mut tasks: Vec<TaskId> = theirs.collect();
    tasks.push(task);
    let mut allowed = vec![true; tasks.len()];
    gang::spares(view, &tasks, &mut allowed);
    allowed.last() == Some(&true)
}

/// Finds the first node with room for the task, and keeps it there.
fn goes_somewhere(
    view: View<'_>,
    protection: &Protection<'_>,
    balance: &Balance,
    low: &[(NodeId, [i64; 3])],
    task: TaskId,
    moves: &mut Moves,
) -> bool {
    let requests = view.tables.shape_of(task).held.clone();
    let has_room = |id: NodeId, used: &[i64; 3]| {
        let node = view.tables.node(id);
        let coming = |kind: Kind| moves.coming.get(&(id, kind)).copied().unwrap_or(0);
        let stays_below =
            KINDS
                .iter()
                .zip(used)
                .zip(&balance.target)
                .all(|((kind, used), target)| {
                    let more = coming(*kind).saturating_add(requests.get(*kind));
                    let more = millionths(more, node.spec.allocatable.get(*kind)).unwrap_or(0);
                    used.saturating_add(more) <= *target
                });
        let mut wanted = requests.entries();
        let is_free = wanted
            .all(|(kind, need)| need == 0 || coming(kind).saturating_add(need) <= node.free(kind));
        stays_below && (balance.fits == Switched::Off || is_free && protection.takes(id, task))
    };
    let found = low.iter().find(|(id, used)| has_room(*id, used));
    let Some((id, _)) = found else {
        return false;
    };
    for (kind, need) in requests.entries() {
        let coming = moves.coming.entry((*id, kind)).or_default();
        *coming = coming.saturating_add(need);
    }
    true
}

/// There is somebody to give and somebody to take: whoever may not go now may later.
fn victims_at(view: View<'_>) -> Option<Time> {
    let setup = &view.config.rescheduling;
    let strategies = &setup.strategies;
    if !strategies.iter().any(|it| sides(view, it).is_some()) {
        return None;
    }
    let next = last(view).map(|at| at.plus_millis(setup.interval_ms));
    let next = next.filter(|next| *next > view.state.now);
    next.or(Some(view.state.now.plus_millis(setup.interval_ms)))
}
