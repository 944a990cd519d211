//! I1, I3, I14: sums, added up again from the tasks.

use std::collections::BTreeMap;

use model::{Gate, Key, Kind, Node, NodeId, Phase, Queue, QueueId, Tables, TaskId};

use crate::Violation;

/// As a row reads it: the greatest number that fits where the sum does not.
fn read(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}

type Sums<Id> = BTreeMap<Id, BTreeMap<u16, i128>>;

fn add<Id: Ord + Copy>(sums: &mut Sums<Id>, id: Id, tables: &Tables, task: TaskId) {
    let row = sums.entry(id).or_default();
    for (kind, value) in tables.shape_of(task).spec.requests.entries() {
        *row.entry(kind.0).or_default() += i128::from(value);
    }
}

/// What tasks hold, are promised, are about to leave, and who is being bound, by node.
#[derive(Default)]
struct Held {
    used: Sums<NodeId>,
    promised: Sums<NodeId>,
    leaving: Sums<NodeId>,
    binding: BTreeMap<NodeId, Vec<TaskId>>,
}

fn add_pod(sums: &mut Sums<NodeId>, node: NodeId, tables: &Tables, task: TaskId) {
    add(sums, node, tables, task);
    *sums
        .entry(node)
        .or_default()
        .entry(Kind::PODS.0)
        .or_default() += 1;
}

fn held(tables: &Tables) -> Held {
    let mut held = Held::default();
    for (id, task) in tables.tasks() {
        let Some(node) = task.node else { continue };
        match task.phase {
            Phase::Pending | Phase::Succeeded | Phase::Failed => continue,
            Phase::Pipelined => add_pod(&mut held.promised, node, tables, id),
            _ => add_pod(&mut held.used, node, tables, id),
        }
        if task.phase == Phase::Releasing {
            add_pod(&mut held.leaving, node, tables, id);
        }
        if task.phase == Phase::Binding {
            held.binding.entry(node).or_default().push(id);
        }
    }
    held
}

/// I1: nothing that we bind overfills a node; and the node's own sums are right. I14: with promises.
pub(crate) fn nodes(tables: &Tables, found: &mut Vec<Violation>) {
    let held = held(tables);
    for (id, node) in tables.all_nodes() {
        node_row(tables, id, node, &held, found);
    }
}

fn node_row(tables: &Tables, id: NodeId, node: &Node, held: &Held, found: &mut Vec<Violation>) {
    let mut complain = |what: String| found.push(Violation::of("I1", what));
    let name = &node.spec.name;
    for (kind, kind_name) in tables.kinds().iter() {
        let at = |sums: &Sums<NodeId>| {
            let sum = sums.get(&id).and_then(|sum| sum.get(&kind.0));
            sum.map_or(0, |sum| read(*sum))
        };
        for (what, kept, real) in [
            ("used", node.used.get(kind), at(&held.used)),
            ("promised", node.pipelined.get(kind), at(&held.promised)),
            ("leaving", node.releasing.get(kind), at(&held.leaving)),
        ] {
            if kept != real {
                complain(format!(
                    "node {name} has {real} {kind_name} {what}, its row says {kept}"
                ));
            }
        }
        // What others bound, or a node that shrank, is not ours to answer for.
        let asks = |task: &TaskId| {
            kind == Kind::PODS || tables.shape_of(*task).spec.requests.get(kind) > 0
        };
        let ours = held
            .binding
            .get(&id)
            .is_some_and(|tasks| tasks.iter().any(asks));
        let (used, all) = (at(&held.used), node.spec.allocatable.get(kind));
        if used > all && node.known && ours {
            complain(format!("node {name} has {used} of {all} {kind_name} bound"));
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
        queue_row(tables, queue, own.get(&id), found);
    }
}

/// I3: what queues hold in groups of nodes, with what they are promised there.
pub(crate) fn groups(tables: &Tables, found: &mut Vec<Violation>) {
    let mut real: BTreeMap<(QueueId, String), BTreeMap<u16, i128>> = BTreeMap::new();
    for (_, task) in tables.tasks() {
        let is_there = task.phase.is_allocated() || task.phase == Phase::Pipelined;
        let group = task.node.filter(|_| is_there);
        let group = group.and_then(|node| tables.node(node).spec.group.as_deref());
        let queue = task.gang.and_then(|gang| tables.gang(gang).queue);
        let (Some(group), Some(queue)) = (group, queue) else {
            continue;
        };
        let row = real.entry((queue, group.to_owned())).or_default();
        for (kind, value) in tables.shape(task.shape).spec.requests.entries() {
            *row.entry(kind.0).or_default() += i128::from(value);
        }
    }
    let real = real.into_iter().map(|(of, row)| {
        let row = row.into_iter().filter(|(_, value)| *value != 0);
        (of, row.map(|(kind, value)| (kind, read(value))).collect())
    });
    let mut real: BTreeMap<_, BTreeMap<u16, i64>> = real.collect();
    real.retain(|_, row| !row.is_empty());
    let kept = tables.group_uses().map(|(queue, group, sum)| {
        let sum = sum.entries().filter(|(_, value)| *value != 0);
        let sum = sum.map(|(kind, value)| (kind.0, value)).collect();
        ((queue, group.to_owned()), sum)
    });
    let kept: BTreeMap<_, BTreeMap<u16, i64>> = kept.collect();
    if real != kept {
        let what = format!("queues hold {real:?} in groups of nodes, the rows say {kept:?}");
        found.push(Violation::of("I3", what));
    }
}

/// I3: what claims count for in queues: each of them once, however many tasks of the queue, or below it,
/// use it.
pub(crate) fn classes(tables: &Tables, found: &mut Vec<Violation>) {
    let mut claims: BTreeMap<(QueueId, &Key), &[(Kind, i64)]> = BTreeMap::new();
    for (_, task) in tables.tasks() {
        let is_there = task.phase.is_allocated() || task.phase == Phase::Pipelined;
        let is_kept =
            task.phase == Phase::Pending && matches!(task.gate, Gate::Opened | Gate::Opening);
        let mut queue = task.gang.and_then(|gang| tables.gang(gang).queue);
        while let Some(at) = queue.filter(|_| is_there || is_kept) {
            for charge in &task.charges {
                let counts = claims.entry((at, &charge.claim)).or_default();
                *counts = (*counts).max(&charge.amounts);
            }
            queue = tables.queue(at).parent;
        }
    }
    let mut real: BTreeMap<(QueueId, Kind), i128> = BTreeMap::new();
    for ((queue, _), amounts) in claims {
        for (kind, amount) in amounts {
            *real.entry((queue, *kind)).or_default() += i128::from(*amount);
        }
    }
    for (id, queue) in tables.queues() {
        let kept = tables.classes_taken(id);
        for (kind, name) in tables.kinds().iter() {
            let real = real.get(&(id, kind)).map_or(0, |sum| read(*sum));
            let kept = kept.map_or(0, |sum| sum.get(kind));
            if real != kept {
                let queue = &queue.spec.name;
                let what =
                    format!("claims in queue {queue} take {real} {name}, the sum says {kept}");
                found.push(Violation::of("I3", what));
            }
        }
    }
}

fn queue_row(
    tables: &Tables,
    queue: &Queue,
    own: Option<&BTreeMap<u16, i128>>,
    found: &mut Vec<Violation>,
) {
    let name = &queue.spec.name;
    for (kind, kind_name) in tables.kinds().iter() {
        let real = own.and_then(|sum| sum.get(&kind.0));
        let real = real.map_or(0, |sum| read(*sum));
        let kept = queue.used_own.get(kind);
        if real != kept {
            let what = format!("queue {name} uses {real} {kind_name}, its row says {kept}");
            found.push(Violation::of("I3", what));
        }
        let children = queue.children.iter().map(|child| tables.queue(*child));
        let children = children.map(|child| i128::from(child.used.get(kind)));
        let whole = read(i128::from(kept) + children.sum::<i128>());
        if queue.used.get(kind) != whole {
            let what = format!(
                "queue {name} says {} {kind_name}, its own and its children's are {whole}",
                queue.used.get(kind)
            );
            found.push(Violation::of("I3", what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{held, node_row, queue_row};
    use crate::check;
    use crate::planted::{cluster, said, task};
    use model::{Kind, Phase, QueueSpec, TaskSpec, Vector};

    #[test]
    fn i1_a_node_whose_sums_are_wrong_is_found() {
        let tables = cluster();
        let (id, node) = tables.nodes().next().expect("there is a node");
        type Sum = fn(&mut model::Node) -> &mut Vector;
        let sums: [Sum; 3] = [
            |node| &mut node.used,
            |node| &mut node.pipelined,
            |node| &mut node.releasing,
        ];
        for sum in sums {
            let mut row = node.clone();
            sum(&mut row).set(Kind::CPU, 1);
            let mut found = Vec::new();
            node_row(&tables, id, &row, &held(&tables), &mut found);
            assert_eq!(said(&found), ["I1"]);
        }
    }

    #[test]
    fn i3_a_queue_whose_sums_are_wrong_is_found() {
        let tables = cluster();
        let (_, queue) = tables.queues().next().expect("there is a queue");
        let mut found = Vec::new();
        let mut row = queue.clone();
        row.used.set(Kind::CPU, 1);
        queue_row(&tables, &row, None, &mut found);
        assert_eq!(said(&found), ["I3"], "more than it and its children use");
        row.used_own.set(Kind::CPU, 1);
        queue_row(&tables, &row, None, &mut found);
        assert_eq!(said(&found), ["I3", "I3"], "more than its tasks use");
    }

    #[test]
    fn i3_a_parent_that_forgets_its_children_and_one_that_counts_them_twice_are_found() {
        let mut tables = cluster();
        tables.put_queue(QueueSpec {
            name: "above".into(),
            weight: 1,
            ..QueueSpec::default()
        });
        let (_, q) = tables.queues().next().expect("there is a queue");
        let below = QueueSpec {
            parent: Some("above".into()),
            ..q.spec.clone()
        };
        tables.put_queue(below);
        tables.put_task(TaskSpec {
            phase: Phase::Running,
            node: Some("n1".into()),
            ..task("runs", 1_000)
        });
        assert_eq!(
            check(&tables),
            [],
            "the tables count it once at each height"
        );
        let mut queues = tables.queues();
        let above = queues.find(|(_, queue)| &*queue.spec.name == "above");
        let (_, above) = above.expect("it was put there");
        assert_eq!(above.used.get(Kind::CPU), 1_000);
        for wrong in [0, 2_000] {
            let mut row = above.clone();
            row.used.set(Kind::CPU, wrong);
            let mut found = Vec::new();
            queue_row(&tables, &row, None, &mut found);
            assert_eq!(said(&found), ["I3"], "{wrong}");
        }
    }
}
