//! Task-topology: tasks of a gang that like to be on one node go to one, and those that avoid each other
//! go to nodes apart.
//!
//! Source: `specs/volcano.md`, sections 1.14, 3.5 and A.6. The gang's roles are put into buckets when the
//! cycle begins; who of a bucket is on which node is read from the tables, so that a trial that is rewound
//! changes it back. It only gives points: a gang never waits for it.

mod buckets;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{GangId, NodeId, Phase, Reason, Tables, Task, TaskId, Vector};

use crate::arguments::Asked;
use crate::plugin::{NodePoints, Plugin, Score, View};
use crate::plugins::nodeorder::POINT;
use crate::rules::{Config, State};

use buckets::Buckets;

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "task-topology",
    configure: Some(configure),
    open: Some(open),
    task_order: Some(task_order),
    coupled_score: Some(coupled_score),
    remark: Some(remark),
    ..Plugin::NONE
};

/// How much its points count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight(i64);

impl Default for Weight {
    fn default() -> Self {
        Weight(1)
    }
}

fn configure(asked: &mut Asked<'_>, config: &mut Config) {
    config.task_topology = Weight(asked.weight("task-topology.weight", 1));
}

/// The buckets of the gangs that have some, as they were when the cycle began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topologies {
    by_gang: BTreeMap<GangId, Buckets>,
    /// Of each kind the most that a node has in all.
    most: Vector,
}

impl Topologies {
    fn of(&self, tables: &Tables, task: TaskId) -> Option<&Buckets> {
        self.by_gang.get(&tables.task(task).gang?)
    }
}

/// Only gangs of which a task waits are looked at: for the others there is nothing to choose.
fn open(tables: &Tables, _: &Config, state: &mut State) {
    let gangs = tables.task_topologies().iter();
    let waiting = gangs.filter(|id| tables.gang(**id).census.waiting() > 0);
    let buckets = waiting.filter_map(|id| Some((*id, Buckets::of(tables, *id)?)));
    let by_gang: BTreeMap<GangId, Buckets> = buckets.collect();
    let most = match by_gang.is_empty() {
        true => Vector::ZERO,
        false => most_of_a_node(tables),
    };
    state.task_topology = Topologies { by_gang, most };
}

fn most_of_a_node(tables: &Tables) -> Vector {
    let mut most = Vector::ZERO;
    for (_, node) in tables.nodes() {
        for (kind, amount) in node.spec.allocatable.entries() {
            most.set(kind, amount.max(most.get(kind)));
        }
    }
    most
}

/// That what the gang says is ignored. Before its pods are made nobody knows.
fn remark(view: View<'_>, id: GangId) -> Option<Reason> {
    let gang = view.tables.gang(id);
    let topology = gang.spec.task_topology.as_ref()?;
    let is_made = gang.tasks.len() >= gang.spec.min_member as usize && !gang.tasks.is_empty();
    let why = topology.fault(gang).filter(|_| is_made)?;
    Some(Reason::TaskTopologyIgnored { why })
}

/// Tasks in a bucket first, of the buckets the one of which the most tasks wait, in a bucket by the
/// order of the roles; of two that are as large the older one.
fn task_order(view: View<'_>, a: TaskId, b: TaskId) -> Ordering {
    let tables = view.tables;
    if tables.task(a).gang != tables.task(b).gang {
        return Ordering::Equal;
    }
    let Some(all) = view.state.task_topology.of(tables, a) else {
        return Ordering::Equal;
    };
    match (all.seat(a), all.seat(b)) {
        (Some(a), Some(b)) if a.bucket == b.bucket => all.rank(b).cmp(&all.rank(a)),
        (Some(a), Some(b)) => {
            let waiting = |bucket: usize| all.list[bucket].waiting;
            let larger = waiting(b.bucket).cmp(&waiting(a.bucket));
            larger.then(a.bucket.cmp(&b.bucket))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// On which node the task is, or will be.
fn place(task: &Task) -> Option<NodeId> {
    let counts = task.phase.is_allocated() || task.phase == Phase::Pipelined;
    task.node.filter(|_| counts)
}

/// Points of a node: those of the task's bucket who are there, less those of the gang whom it avoids
/// there, and as many of the bucket as the node would take together; times 100, in parts of the largest
/// bucket (A.6).
fn coupled_score<'a>(view: View<'a>, task: TaskId) -> Option<NodePoints<'a>> {
    let tables = view.tables;
    let all = view.state.task_topology.of(tables, task)?;
    let seat = all.seat(task)?;
    let (mut here, mut avoided) = (BTreeMap::new(), BTreeMap::new());
    for (other, theirs) in all.seats() {
        let Some(node) = place(tables.task(other)) else {
            continue;
        };
        if theirs.bucket == seat.bucket {
            *here.entry(node).or_insert(0_i64) += 1;
        }
        if all.avoids(seat.role, theirs.role) {
            *avoided.entry(node).or_insert(0_i64) += 1;
        }
    }
    let bucket = &all.list[seat.bucket].tasks;
    let sums = sums_with(tables, task, (bucket, &view.state.task_topology.most));
    let points = view.config.task_topology.0.saturating_mul(100 * POINT);
    let largest = all.largest.max(1);
    Some(Box::new(move |node| {
        let there = |of: &BTreeMap<NodeId, i64>| of.get(&node).copied().unwrap_or(0);
        let score = there(&here) - there(&avoided) + taken_together(tables, node, &sums);
        points.saturating_mul(score) / largest
    }))
}

/// What the first, the first two, … of those who wait in the bucket request together, beginning with
/// the task itself, as far as there could be a node for so many.
fn sums_with(tables: &Tables, task: TaskId, (bucket, most): (&[TaskId], &Vector)) -> Vec<Vector> {
    let others = bucket.iter().copied();
    let others = others.filter(|it| *it != task && tables.task(*it).phase == Phase::Pending);
    let mut sum = Vector::ZERO;
    let tasks = std::iter::once(task).chain(others);
    tasks
        .map(|task| {
            sum.add(&tables.shape_of(task).spec.requests);
            sum.clone()
        })
        .take_while(|sum| sum.beyond(most).is_zero())
        .collect()
}

/// How many of them the node would take together: upstream leaves tasks away by chance until the others
/// fit, here those go first that come last.
fn taken_together(tables: &Tables, node: NodeId, sums: &[Vector]) -> Score {
    let node = tables.node(node);
    let fits = |sum: &Vector| {
        let mut needs = sum.entries();
        needs.all(|(kind, need)| need <= 0 || need <= node.free_later(kind))
    };
    let count = sums.partition_point(fits).max(1);
    i64::try_from(count).unwrap_or(i64::MAX)
}
