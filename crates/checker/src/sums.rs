//! I1, I3, I14: sums, added up again from the tasks.

use std::collections::BTreeMap;

use model::{NodeId, Phase, QueueId, Tables};

use crate::Violation;

type Sums<Id> = BTreeMap<Id, BTreeMap<u16, i64>>;

fn add<Id: Ord + Copy>(sums: &mut Sums<Id>, id: Id, tables: &Tables, task: model::TaskId) {
    let row = sums.entry(id).or_default();
    for (kind, value) in tables.shape_of(task).spec.requests.entries() {
        *row.entry(kind.0).or_default() += value;
    }
}

/// I1: nothing that we bind overfills a node; and the node's own sum is right. I14: with promises.
pub(crate) fn nodes(tables: &Tables, found: &mut Vec<Violation>) {
    let mut used: Sums<NodeId> = BTreeMap::new();
    let mut promised: Sums<NodeId> = BTreeMap::new();
    let mut leaving: Sums<NodeId> = BTreeMap::new();
    let mut binding: BTreeMap<NodeId, Vec<model::TaskId>> = BTreeMap::new();
    for (id, task) in tables.tasks() {
        let Some(node) = task.node else { continue };
        match task.phase {
            Phase::Allocated
            | Phase::Binding
            | Phase::Bound
            | Phase::Running
            | Phase::Releasing => {
                add(&mut used, node, tables, id);
                *used
                    .entry(node)
                    .or_default()
                    .entry(model::Kind::PODS.0)
                    .or_default() += 1;
            }
            Phase::Pipelined => {
                add(&mut promised, node, tables, id);
                *promised
                    .entry(node)
                    .or_default()
                    .entry(model::Kind::PODS.0)
                    .or_default() += 1;
            }
            Phase::Pending | Phase::Succeeded | Phase::Failed => {}
        }
        if task.phase == Phase::Releasing {
            add(&mut leaving, node, tables, id);
            *leaving
                .entry(node)
                .or_default()
                .entry(model::Kind::PODS.0)
                .or_default() += 1;
        }
        if task.phase == Phase::Binding {
            binding.entry(node).or_default().push(id);
        }
    }
    let none = BTreeMap::new();
    for (id, node) in tables.all_nodes() {
        let name = &node.spec.name;
        let sum = used.get(&id).unwrap_or(&none);
        for (kind, kind_name) in tables.kinds().iter() {
            let at = |sums: &Sums<NodeId>| {
                sums.get(&id)
                    .and_then(|s| s.get(&kind.0))
                    .copied()
                    .unwrap_or(0)
            };
            let (used, promised, leaving) = (
                sum.get(&kind.0).copied().unwrap_or(0),
                at(&promised),
                at(&leaving),
            );
            for (what, kept, real) in [
                ("used", node.used.get(kind), used),
                ("promised", node.pipelined.get(kind), promised),
                ("leaving", node.releasing.get(kind), leaving),
            ] {
                if kept != real {
                    let what =
                        format!("node {name} has {real} {kind_name} {what}, its row says {kept}");
                    found.push(Violation {
                        invariant: "I1",
                        what,
                    });
                }
            }
            let all = node.spec.allocatable.get(kind);
            let ours = binding.get(&id).into_iter().flatten();
            let asks = |task: &&model::TaskId| {
                kind == model::Kind::PODS || tables.shape_of(**task).spec.requests.get(kind) > 0
            };
            if used > all && node.known && ours.filter(asks).count() > 0 {
                let what = format!("node {name} has {used} of {all} {kind_name} bound");
                found.push(Violation {
                    invariant: "I1",
                    what,
                });
            }
        }
    }
}

/// I3: use is what allocated tasks request, and a parent's is its own and its children's.
pub(crate) fn queues(tables: &Tables, found: &mut Vec<Violation>) {
    let mut own: Sums<QueueId> = BTreeMap::new();
    for (id, task) in tables.tasks() {
        let counts = matches!(
            task.phase,
            Phase::Allocated | Phase::Binding | Phase::Bound | Phase::Running
        );
        let queue = task.gang.and_then(|gang| tables.gang(gang).queue);
        if let Some(queue) = queue.filter(|_| counts) {
            add(&mut own, queue, tables, id);
        }
    }
    for (id, queue) in tables.queues() {
        let name = &queue.spec.name;
        for (kind, kind_name) in tables.kinds().iter() {
            let real = own
                .get(&id)
                .and_then(|sum| sum.get(&kind.0))
                .copied()
                .unwrap_or(0);
            let kept = queue.used_own.get(kind);
            if real != kept {
                let what = format!("queue {name} uses {real} {kind_name}, its row says {kept}");
                found.push(Violation {
                    invariant: "I3",
                    what,
                });
            }
            let children: i64 = queue
                .children
                .iter()
                .map(|c| tables.queue(*c).used.get(kind))
                .sum();
            if queue.used.get(kind) != kept + children {
                let what = format!(
                    "queue {name} says {} {kind_name}, its own and its children's are {}",
                    queue.used.get(kind),
                    kept + children
                );
                found.push(Violation {
                    invariant: "I3",
                    what,
                });
            }
        }
    }
}
