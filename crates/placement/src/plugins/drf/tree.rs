//! Queues share by a tree of their own (A.5, hierarchical dominant resource fairness): what a branch
//! holds is the sum of what is below it, in which those that still want something count by the
//! smallest share among them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Branch, Gang, GangId, GangPhase, Kind, Phase, QueueId, Tables, TaskId, Vector};

use crate::plugin::{Claimant, Plugin, View};
use crate::plugins::queue_of;
use crate::rules::{Config, State};

use stand::{Below, Stand, Standing};

mod stand;

/// A weight of 1, in the unit of [`Branch`].
const ONE: i64 = 1000;

/// What each branch holds of the cluster, as of when it was computed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// The root first, and parents before children.
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    /// Which of the leaves each gang is.
    places: BTreeMap<GangId, usize>,
    /// What is right below each node.
    below: Vec<Vec<Below>>,
    /// What leaves request.
    kinds: BTreeSet<Kind>,
    /// The way to each queue with work, from below the root down.
    ways: BTreeMap<QueueId, Vec<usize>>,
    now: Stand,
}

#[derive(Clone, Debug)]
struct Node {
    above: usize,
    weight: i64,
}

/// A gang.
#[derive(Clone, Debug)]
struct Leaf {
    gang: GangId,
    above: usize,
    /// What all of its tasks hold and want.
    request: Vector,
}

/// The row where queues are a tree.
pub(super) fn in_tree(row: &mut Plugin, _: &mut Config) {
    row.open = Some(open);
    row.refresh = Some(refresh);
    row.queue_order = Some(queue_order);
    row.reclaimable = Some(reclaimable);
    // Whose leaf grows decides, and no two need have the same.
    row.reclaims_like = Some(|_, gang| u64::from(gang.0));
}

fn open(tables: &Tables, _: &Config, state: &mut State) {
    state.drf = Tree::of(tables);
}

fn refresh(tables: &Tables, state: &mut State, moved: &BTreeSet<GangId>) {
    state.drf.follow(tables, moved);
}

impl Tree {
    fn of(tables: &Tables) -> Tree {
        let root = Node {
            above: 0,
            weight: ONE,
        };
        let mut tree = Tree {
            nodes: vec![root],
            below: vec![Vec::new()],
            ..Tree::default()
        };
        let mut queues: Vec<QueueId> = tables.queues().map(|(id, _)| id).collect();
        // The first queue that names a branch gives it its weight.
        queues.sort_by_key(|id| &tables.queue(*id).spec.name);
        let mut known: BTreeMap<(usize, Arc<str>), usize> = BTreeMap::new();
        for id in queues.into_iter().filter(|id| tables.queue(*id).known) {
            tree.plant(tables, id, &mut known);
        }
        tree.now = tree.stand(tables, &BTreeMap::new());
        tree
    }

    /// Hangs a queue with work where it says it is.
    fn plant(
        &mut self,
        tables: &Tables,
        id: QueueId,
        known: &mut BTreeMap<(usize, Arc<str>), usize>,
    ) {
        let queue = tables.queue(id);
        let gangs = queue.gangs.iter().filter_map(|gang| {
            let request = request(tables, tables.gang(*gang))?;
            Some((*gang, request))
        });
        let gangs: Vec<_> = gangs.collect();
        if gangs.is_empty() {
            return;
        }
        // One that says nothing is by itself right below the root.
        let own = [Branch {
            name: queue.spec.name.clone(),
            weight: i64::from(queue.spec.weight).saturating_mul(ONE),
        }];
        let branches = match queue.spec.branches.as_slice() {
            [] => &own,
            branches => branches,
        };
        let mut above = 0;
        let mut way = Vec::new();
        for branch in branches {
            let next = self.nodes.len();
            let key = (above, branch.name.clone());
            let at = *known.entry(key).or_insert(next);
            if at == next {
                let weight = branch.weight.max(ONE);
                self.nodes.push(Node { above, weight });
                self.below[above].push(Below::Branch(next));
                self.below.push(Vec::new());
            }
            way.push(at);
            above = at;
        }
        self.ways.insert(id, way);
        for (gang, request) in gangs {
            let place = self.leaves.len();
            self.places.insert(gang, place);
            self.below[above].push(Below::Leaf(place));
            self.kinds.extend(request.entries().map(|(kind, _)| kind));
            self.leaves.push(Leaf {
                gang,
                above,
                request,
            });
        }
    }

    /// Which of two queues is served first, by how the branches stand in which they part.
    fn compare(&self, of: impl Fn(usize) -> Standing, a: QueueId, b: QueueId) -> Ordering {
        let none = Vec::new();
        let way = |id: QueueId| self.ways.get(&id).unwrap_or(&none);
        let (x, y) = (way(a), way(b));
        for at in 0..x.len().min(y.len()) {
            let (p, q) = (of(x[at]), of(y[at]));
            let (v, w) = (self.nodes[x[at]].weight, self.nodes[y[at]].weight);
            let order = p.saturated.cmp(&q.saturated);
            let order = order.then_with(|| p.share.cmp_weighted(v, q.share, w));
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// What a gang holds and still wants, if it is anything. One that has yet to be let in, or whose pods
/// are being made, wants something although nobody knows what.
fn request(tables: &Tables, gang: &Gang) -> Option<Vector> {
    let mut request = gang.allocated.clone();
    for task in &gang.tasks {
        let task = tables.task(*task);
        if matches!(task.phase, Phase::Pending | Phase::Pipelined) {
            request.add(&tables.shape(task.shape).spec.requests);
        }
    }
    let is_to_come = matches!(gang.phase(), GangPhase::Pending | GangPhase::Inqueue);
    (gang.known && (is_to_come || !request.is_zero())).then_some(request)
}

/// Where all is equal as far as both ways go, the shorter way is first, so that the order is one.
fn queue_order(view: View<'_>, a: QueueId, b: QueueId) -> Ordering {
    let tree = &view.state.drf;
    let length = |id: QueueId| tree.ways.get(&id).map_or(0, Vec::len);
    tree.compare(|at| tree.now.of(at), a, b)
        .then_with(|| length(a).cmp(&length(b)))
}

/// A.5: a candidate is a victim if the claimant's queue, with the task, still has less than the
/// candidate's without it. Beyond upstream, only shares count here: a gang whose last task it is wants
/// nothing more afterwards, and would never get it. And it is asked also after those who were allowed
/// before it have gone: a large task does not take more than a fair share by many small ones.
fn reclaimable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    let (tables, tree) = (view.tables, &view.state.drf);
    let wanted = &tables.shape_of(claimant.task).spec.requests;
    let with_it = super::of_tables(tables, claimant.gang).plus(wanted);
    let mut alone = tree.stand(tables, &BTreeMap::from([(claimant.gang, with_it)]));
    // Also without those who were allowed, once there is one.
    let mut together: Option<Stand> = None;
    // Tasks of one gang that request the same are judged alike.
    let mut judged: BTreeMap<(GangId, model::ShapeId), bool> = BTreeMap::new();
    for (task, allowed) in tasks.iter().zip(allowed) {
        let row = tables.task(*task);
        let (Some(gang), Some(queue)) = (row.gang, queue_of(tables, *task)) else {
            *allowed = false;
            continue;
        };
        let given = &tables.shape(row.shape).spec.requests;
        let comes_first = |stand: &Stand| {
            let order = tree.compare(|at| stand.by_shares_alone(at), claimant.queue, queue);
            order.is_lt()
        };
        let is_alone = *judged.entry((gang, row.shape)).or_insert_with(|| {
            tree.give(&mut alone, tables, gang, given);
            let is_first = comes_first(&alone);
            tree.take_back(&mut alone, tables, gang, given);
            is_first
        });
        if !is_alone {
            *allowed = false;
            continue;
        }
        let others = together.get_or_insert_with(|| alone.clone());
        tree.give(others, tables, gang, given);
        if !comes_first(others) {
            *allowed = false;
            tree.take_back(others, tables, gang, given);
        }
    }
}

#[cfg(test)]
mod tests;
