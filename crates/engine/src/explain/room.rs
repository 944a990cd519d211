//! Remedies for tasks that find no node: nodes opened, emptied or added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Change, Device, Dimension, Key, Kind, Labels, NoFit, Node, NodeId, NodeSpec, Phase, Reason,
    Refusal, Shape, ShapeId, Standing, Tables, Taint, TaintEffect, TaskId, Toleration, Vector,
};

use super::probe::{Asked, Case};
use super::scarce::{self, Scarce};
use super::{Remedy, queues};

/// A remedy that is not proved yet.
pub(super) struct Draft {
    pub(super) remedy: Remedy,
    pub(super) size: i64,
    pub(super) changes: Vec<Change>,
}

/// The most nodes that are opened or added by one remedy.
const NODES_MAX: usize = 256;
/// The most nodes on which tasks to end are sought: those with the most room left.
const CLOSE: usize = 512;

/// The taint that Kubernetes keeps on a node as long as it is cordoned.
const CORDONED: &str = "node.kubernetes.io/unschedulable";
/// Taints that Kubernetes keeps on a node as long as it is so: who takes them off finds them there again.
const KEPT: &[&str] = &[
    CORDONED,
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",
];

const HOSTNAME: &str = "kubernetes.io/hostname";

/// The nodes that would do if nobody held anything; where something is short that is no amount, those
/// come first of which most is left. Of another reason none.
pub(super) fn able(asked: &mut Asked<'_>, tables: &Tables, reason: &Reason) -> Vec<NodeId> {
    let Reason::NoFit(no_fit) = reason.of_gang() else {
        return Vec::new();
    };
    let Some(task) = task_of(tables, no_fit) else {
        return Vec::new();
    };
    let able = asked.able(tables, task);
    match Scarce::most_common(no_fit) {
        Some(scarce) => nearest_by(tables, &able, |node| scarce.left(tables, node)),
        None => able,
    }
}

/// Those of the able nodes that have the most room left, best first.
pub(super) fn nearest(
    tables: &Tables,
    no_fit: &NoFit,
    able: &[NodeId],
    most: usize,
) -> Vec<NodeId> {
    let kind = match &no_fit.missing {
        model::Missing::Room { need, .. } => need.kind,
        _ => Kind::CPU,
    };
    let mut nodes = nearest_by(tables, able, |node| node.free(kind));
    nodes.truncate(most);
    nodes
}

/// Those first of which most is left.
fn nearest_by(tables: &Tables, able: &[NodeId], left: impl Fn(&Node) -> i64) -> Vec<NodeId> {
    let nodes = able.iter();
    let mut nodes: Vec<(i64, NodeId)> = nodes.map(|id| (-left(tables.node(*id)), *id)).collect();
    nodes.sort_unstable();
    nodes.into_iter().map(|(_, id)| id).collect()
}

/// The task of which it is told what it lacks.
pub(super) fn task_of(tables: &Tables, no_fit: &NoFit) -> Option<TaskId> {
    let (namespace, name) = no_fit.pod.split_once('/')?;
    tables.task_keyed(&Key::new(namespace, name))
}

pub(super) fn shape_of<'t>(tables: &'t Tables, no_fit: &NoFit) -> Option<&'t Shape> {
    Some(tables.shape_of(task_of(tables, no_fit)?))
}

/// How many tasks of the shape would have a place where so much is free.
pub(super) fn places(shape: &Shape, free: impl Fn(Kind) -> i64) -> i64 {
    let each = shape.held.entries().filter(|(_, need)| *need > 0);
    each.map(|(kind, need)| (free(kind) / need).max(0))
        .min()
        .unwrap_or(0)
}

/// Nodes that are cordoned, or that bear one taint, are opened: as few as give enough places.
pub(super) fn opened(case: &Case<'_, '_>, no_fit: &NoFit) -> Vec<Draft> {
    let tables = &*case.tables;
    let Some(shape) = shape_of(tables, no_fit) else {
        return Vec::new();
    };
    let missing = case.missing(no_fit);
    let mut drafts = Vec::new();
    let cordoned = |_, node: &Node| node.spec.unschedulable;
    if refuses(no_fit, |refusal| *refusal == Refusal::Unschedulable) {
        let nodes = roomiest(tables, shape, missing, cordoned);
        let changes = changed(tables, &nodes, |spec| {
            spec.unschedulable = false;
            spec.taints.retain(|taint| &*taint.key != CORDONED);
        });
        drafts.push(Draft {
            size: size(&nodes),
            remedy: Remedy::Uncordon {
                nodes: names(tables, &nodes),
            },
            changes,
        });
    }
    for (key, value) in taints(no_fit) {
        if is_kept(&key) {
            continue;
        }
        let is = |taint: &Taint| {
            taint.key == key
                && taint.value == value
                && taint.effect != TaintEffect::PreferNoSchedule
        };
        let bears = |_, node: &Node| node.spec.taints.iter().any(is);
        let nodes = roomiest(tables, shape, missing, bears);
        let changes = changed(tables, &nodes, |spec| {
            spec.taints.retain(|taint| !is(taint))
        });
        drafts.push(Draft {
            size: size(&nodes),
            remedy: Remedy::Untaint {
                key: key.clone(),
                value: value.clone(),
                nodes: names(tables, &nodes),
            },
            changes,
        });
    }
    drafts.retain(|draft| !draft.changes.is_empty());
    drafts
}

fn is_kept(key: &str) -> bool {
    KEPT.contains(&key)
}

pub(super) fn refuses(no_fit: &NoFit, is: impl Fn(&Refusal) -> bool) -> bool {
    no_fit.refusals.iter().any(|(refusal, _)| is(refusal))
}

fn taints(no_fit: &NoFit) -> BTreeSet<(Arc<str>, Arc<str>)> {
    let all = no_fit.refusals.iter();
    all.filter_map(|(refusal, _)| match refusal {
        Refusal::Taint { key, value } => Some((key.clone(), value.clone())),
        _ => None,
    })
    .collect()
}

pub(super) fn size(nodes: &[NodeId]) -> i64 {
    i64::try_from(nodes.len()).unwrap_or(i64::MAX)
}

pub(super) fn names(tables: &Tables, nodes: &[NodeId]) -> Vec<Arc<str>> {
    let name = |node: &NodeId| tables.node(*node).spec.name.clone();
    nodes.iter().map(name).collect()
}

pub(super) fn changed(
    tables: &Tables,
    nodes: &[NodeId],
    edit: impl Fn(&mut NodeSpec),
) -> Vec<Change> {
    let change = |node: &NodeId| {
        let mut spec = tables.node(*node).spec.clone();
        edit(&mut spec);
        Change::PutNode(Box::new(spec))
    };
    nodes.iter().map(change).collect()
}

/// Those with the most places first, until there are enough; a node without a place is left out.
pub(super) fn roomiest(
    tables: &Tables,
    shape: &Shape,
    missing: i64,
    is_one: impl Fn(NodeId, &Node) -> bool,
) -> Vec<NodeId> {
    let mut nodes: Vec<(i64, NodeId)> = tables
        .nodes()
        .filter(|(id, node)| is_one(*id, node))
        .map(|(id, node)| (places(shape, |kind| node.free(kind)), id))
        .filter(|(places, _)| *places > 0)
        .collect();
    nodes.sort_by_key(|(places, id)| (-places, *id));
    let mut left = missing;
    let mut taken = Vec::new();
    for (places, id) in nodes {
        if left <= 0 || taken.len() == NODES_MAX {
            break;
        }
        left -= places;
        taken.push(id);
    }
    taken
}

/// Tasks of others are over: as few as give so many more places.
pub(super) fn ended(case: &Case<'_, '_>, no_fit: &NoFit, missing: i64) -> Option<Draft> {
    let tables = &*case.tables;
    let shape = shape_of(tables, no_fit)?;
    let mut steps: BTreeMap<(usize, NodeId), Vec<Vec<TaskId>>> = BTreeMap::new();
    for node in nearest(tables, no_fit, &case.able, CLOSE) {
        let mut of_node = steps_on(case, shape, node, missing);
        // The last one is taken first.
        of_node.reverse();
        if let Some(next) = of_node.last() {
            steps.insert((next.len(), node), of_node);
        }
    }
    let steps = cheapest(steps, missing);
    (size_of(&steps) == missing).then(|| end(tables, &steps.concat()))
}

/// So many steps, or as many as there are, each time the smallest of those that are next on their nodes;
/// of a node the last one is next.
pub(super) fn cheapest(
    mut of_nodes: BTreeMap<(usize, NodeId), Vec<Vec<TaskId>>>,
    most: i64,
) -> Vec<Vec<TaskId>> {
    let mut steps = Vec::new();
    while size_of(&steps) < most
        && let Some(((_, node), mut rest)) = of_nodes.pop_first()
    {
        steps.extend(rest.pop());
        if let Some(next) = rest.last() {
            of_nodes.insert((next.len(), node), rest);
        }
    }
    steps
}

/// The remedy that these tasks are over.
pub(super) fn end(tables: &Tables, tasks: &[TaskId]) -> Draft {
    let over = |task: &TaskId| {
        let mut spec = tables.task_spec(*task);
        spec.phase = Phase::Succeeded;
        Change::PutTask(Box::new(spec))
    };
    Draft {
        size: i64::try_from(tasks.len()).unwrap_or(i64::MAX),
        remedy: Remedy::EndTasks {
            tasks: (tasks.iter().map(|task| tables.task(*task).key.clone())).collect(),
        },
        changes: tasks.iter().map(over).collect(),
    }
}

/// Tasks of others are over where the gang is kept room: as few as it takes for that room to be free.
pub(super) fn drained(case: &mut Case<'_, '_>) -> Option<Draft> {
    let tables = &*case.tables;
    let mut promised: BTreeMap<(NodeId, ShapeId), Vec<TaskId>> = BTreeMap::new();
    for (task, node) in &case.asked.promised {
        let shape = tables.task(*task).shape;
        promised.entry((*node, shape)).or_default().push(*task);
    }
    let mut ended: Vec<TaskId> = Vec::new();
    for ((node, _), tasks) in promised {
        let most = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
        let steps = scarce::steps_on(case, (&tasks, None), node, most);
        let fresh = steps.concat().into_iter();
        let fresh: Vec<TaskId> = fresh.filter(|task| !ended.contains(task)).collect();
        ended.extend(fresh);
    }
    (!ended.is_empty()).then(|| end(case.tables, &ended))
}

/// Which tasks make one more place each time, the least important first.
fn steps_on(case: &Case<'_, '_>, shape: &Shape, id: NodeId, most: i64) -> Vec<Vec<TaskId>> {
    let tables = &*case.tables;
    let node = tables.node(id);
    let mut tasks: Vec<TaskId> = node.tasks.iter().copied().collect();
    tasks.retain(|task| may_end(case, *task));
    let leaves = |task: &TaskId| tables.task(*task).phase != Phase::Releasing;
    tasks.sort_by_key(|task| (leaves(task), tables.task(*task).priority, *task));
    let mut free = node.spec.allocatable.clone();
    for (kind, _) in shape.held.entries() {
        free.set(kind, node.free(kind));
    }
    let (mut steps, mut step) = (Vec::new(), Vec::new());
    let mut before = places(shape, |kind| free.get(kind));
    for task in tasks {
        if size_of(&steps) >= most {
            break;
        }
        free.add(&tables.shape_of(task).held);
        step.push(task);
        let now = places(shape, |kind| free.get(kind));
        if now > before {
            steps.push(std::mem::take(&mut step));
            // A large task may make several places; those after the first cost nothing.
            for _ in before + 1..now.min(before + most) {
                steps.push(Vec::new());
            }
            before = now;
        }
    }
    steps
}

fn size_of(steps: &[Vec<TaskId>]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// Whether it is somebody else's, holds room, would not be there again, and no write about it is on its way.
pub(super) fn may_end(case: &Case<'_, '_>, task: TaskId) -> bool {
    let row = case.tables.task(task);
    let holds = matches!(row.phase, Phase::Bound | Phase::Running | Phase::Releasing);
    row.gang != Some(case.asked.gang) && holds && !row.of_node && row.write.is_none()
}

/// Nodes like the one that takes most tasks of the shape when it is empty: as many as give enough
/// places.
pub(super) fn added(case: &mut Case<'_, '_>, no_fit: &NoFit) -> Option<Draft> {
    let tables = &*case.tables;
    let task = task_of(tables, no_fit)?;
    let shape = tables.shape_of(task);
    let missing = case.missing(no_fit);
    let able = case.able.iter().map(|id| (*id, tables.node(*id)));
    let suited = able.filter(|(_, node)| is_open_to(shape, node));
    let each = |node: &Node| {
        let left = left_on_another(tables, node);
        places(shape, |kind| left.get(kind))
    };
    let best = suited
        .map(|(id, node)| (each(node), std::cmp::Reverse(id)))
        .max()?;
    let (each, std::cmp::Reverse(like)) = best;
    if each == 0 {
        return None;
    }
    let like = model_of(tables, tables.node(like));
    let spec = &shape.spec;
    if spec.cards.is_some() || spec.devices.is_some() || spec.numa.is_some() {
        // Amounts alone do not say how many of them a node takes, but one it does.
        let most = usize::try_from(missing).ok()?.min(NODES_MAX);
        return queues::fewest(case, most, &|tables, count| copies(tables, &like, count));
    }
    let count = (missing + each - 1) / each;
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count <= NODES_MAX)?;
    Some(copies(tables, &like, count))
}

/// Nodes like the one that has most of what is short: as few as help.
pub(super) fn grown(case: &mut Case<'_, '_>, kind: Option<Kind>) -> Option<Draft> {
    let kind = kind?;
    let open = case
        .tables
        .nodes()
        .filter(|(_, node)| !node.spec.unschedulable);
    let has = |node: &Node| left_on_another(case.tables, node).get(kind);
    let (_, like) = open.max_by_key(|(id, node)| (has(node), std::cmp::Reverse(*id)))?;
    let model = model_of(case.tables, like);
    if model.allocatable.get(kind) <= 0 || !has_place_for(case, &model.allocatable) {
        return None;
    }
    queues::fewest(case, NODES_MAX, &|tables, count| {
        copies(tables, &model, count)
    })
}

/// Whether so many of the gang's tasks as start together would have a place each, on nodes that are there or on one
/// of so much. Where too much was promised nodes count by their sum, which is enough to let in also who has a task
/// that is larger than any.
fn has_place_for(case: &Case<'_, '_>, one: &Vector) -> bool {
    let tables = &*case.tables;
    let gang = tables.gang(case.asked.gang);
    let fits = |need: &Vector| {
        let nodes = tables.nodes().map(|(_, node)| &node.spec.allocatable);
        let mut rooms = nodes.chain([one]);
        rooms.any(|room| need.entries().all(|(kind, need)| need <= room.get(kind)))
    };
    let min = i64::from(gang.spec.min_member.max(1));
    if gang.tasks.is_empty() {
        // One of them at least has as much as all have on average.
        let Some(all) = &gang.spec.min_resources else {
            return true;
        };
        let each = all.entries().map(|(kind, all)| (kind, all / min));
        return fits(&Vector::of(each));
    }
    let mut of_shapes: BTreeMap<ShapeId, i64> = BTreeMap::new();
    for task in gang.tasks.iter().map(|task| tables.task(*task)) {
        if task.phase.is_waiting() || task.phase.is_allocated() {
            *of_shapes.entry(task.shape).or_default() += 1;
        }
    }
    let small = of_shapes.into_iter();
    let small = small.filter(|(shape, _)| fits(&tables.shape(*shape).held));
    let small: i64 = small.map(|(_, count)| count).sum();
    // Those that are still to come may be small.
    let to_come = min.saturating_sub(i64::try_from(gang.tasks.len()).unwrap_or(min));
    small.saturating_add(to_come.max(0)) >= min
}

/// What another node like this one would have for tasks: those that belong to a node come to it as well.
fn left_on_another(tables: &Tables, node: &Node) -> Vector {
    let mut left = node.spec.allocatable.clone();
    let tasks = node.tasks.iter().map(|task| tables.task(*task));
    for task in tasks.filter(|task| task.of_node) {
        left.sub(&tables.shape(task.shape).held);
    }
    left.floor();
    left
}

fn model_of(tables: &Tables, node: &Node) -> NodeSpec {
    NodeSpec {
        allocatable: left_on_another(tables, node),
        ..node.spec.clone()
    }
}

/// So many nodes like one.
fn copies(tables: &Tables, model: &NodeSpec, count: usize) -> Draft {
    let fresh = (0_u32..)
        .map(|at| format!("{}-new-{at}", model.name))
        .filter(|name| tables.node_named(name).is_none())
        .take(count);
    Draft {
        size: i64::try_from(count).unwrap_or(i64::MAX),
        remedy: Remedy::AddNodes {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            like: model.name.clone(),
        },
        changes: fresh.map(|name| like_it(model, &name)).collect(),
    }
}

fn is_open_to(shape: &Shape, node: &Node) -> bool {
    let is_covered = |taint: &Taint| {
        let covers = |toleration: &Toleration| toleration.covers(taint);
        taint.effect == TaintEffect::PreferNoSchedule || shape.spec.tolerations.iter().any(covers)
    };
    !node.spec.unschedulable && node.spec.taints.iter().all(is_covered)
}

fn like_it(model: &NodeSpec, name: &str) -> Change {
    let labels = model.labels.iter().map(|(key, value)| match key {
        HOSTNAME => (key, name),
        _ => (key, value),
    });
    let mut devices = model.devices.clone();
    devices.list = devices.list.iter().map(unused).collect();
    for counter in devices.counters.values_mut() {
        let own = counter.drawers.iter_mut().filter(|it| !it.is_shared);
        own.for_each(|drawer| drawer.standing = Standing::Free);
    }
    Change::PutNode(Box::new(NodeSpec {
        name: name.into(),
        labels: Labels::of(labels),
        devices,
        ..model.clone()
    }))
}

/// The device as nobody has it, unless it is one of which there is no other.
fn unused(device: &Device) -> Device {
    if device.is_shared {
        return device.clone();
    }
    let free = |dimension: &Dimension| Dimension {
        held: 0,
        ..dimension.clone()
    };
    Device {
        standing: Standing::Free,
        dimensions: device.dimensions.iter().map(free).collect(),
        ..device.clone()
    }
}
