//! What the binds of one plan may not do to the nodes and queues that they touch: the part of I1, I3
//! and I14 that is cheap enough to be asked after every cycle.

use std::collections::{BTreeMap, BTreeSet};

use model::{Kind, NodeId, Phase, Plan, QueueId, Tables, TaskId, WriteId};

use crate::Violation;
use crate::plans::writes_of;

/// Amounts by kind, added up from tasks.
type Amounts = BTreeMap<Kind, i128>;

fn add(sum: &mut Amounts, tables: &Tables, task: TaskId) {
    for (kind, value) in tables.shape_of(task).spec.requests.entries() {
        *sum.entry(kind).or_default() += i128::from(value);
    }
}

fn add_pods(tables: &Tables, tasks: impl Iterator<Item = TaskId>) -> Amounts {
    let mut sum = Amounts::new();
    for task in tasks {
        add(&mut sum, tables, task);
        *sum.entry(Kind::PODS).or_default() += 1;
    }
    sum
}

/// All binds of the gangs whose binds these are: a gang is kept back whole.
pub(crate) fn with_their_gangs<'a>(
    tables: &Tables,
    plan: &Plan,
    places: impl Iterator<Item = &'a model::Place>,
) -> Vec<WriteId> {
    let gangs: BTreeSet<_> = places
        .filter_map(|place| tables.task(place.task).gang)
        .collect();
    let writes = gangs
        .into_iter()
        .flat_map(|gang| writes_of(tables, plan, gang));
    writes.collect()
}

/// Room that is kept for a gang because it has waited for long is used by others still, and the more
/// important may take it.
fn is_of_one_that_gives_way(tables: &Tables, task: TaskId) -> bool {
    let gang = tables.task(task).gang;
    gang.is_some_and(|gang| tables.is_kept_room(gang))
}

/// I1, I14: no bind takes more than its node has, nor what is kept there for others.
pub(crate) fn rooms(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut by_node: BTreeMap<NodeId, Vec<&model::Place>> = BTreeMap::new();
    for place in &plan.places {
        by_node.entry(place.node).or_default().push(place);
    }
    for (id, places) in by_node {
        let Some(node) = tables.find_node(id).filter(|node| node.known) else {
            continue;
        };
        let used = add_pods(tables, node.tasks.iter().copied());
        let promised = node.promised.iter().copied();
        let promised = promised.filter(|task| !is_of_one_that_gives_way(tables, *task));
        let promised = add_pods(tables, promised);
        let leaving = node.tasks.iter().copied();
        let leaving = leaving.filter(|task| tables.task(*task).phase == Phase::Releasing);
        let leaving = add_pods(tables, leaving);
        for (kind, used) in &used {
            let at = |sum: &Amounts| sum.get(kind).copied().unwrap_or(0);
            let asks = |place: &&&model::Place| {
                let requests = &tables.shape_of(place.task).spec.requests;
                *kind == Kind::PODS || requests.get(*kind) > 0
            };
            let askers = || places.iter().copied().filter(|place| asks(&place));
            if askers().next().is_none() {
                continue;
            }
            let all = i128::from(node.spec.allocatable.get(*kind));
            let (name, kind_name) = (&node.spec.name, tables.kinds().name(*kind));
            let kept = (at(&promised) - at(&leaving)).max(0);
            let (invariant, what) = if *used > all {
                (
                    "I1",
                    format!("node {name} has {used} of {all} {kind_name} bound"),
                )
            } else if used + kept > all {
                let what = format!(
                    "node {name} has {used} of {all} {kind_name} bound and keeps {kept} for others"
                );
                ("I14", what)
            } else {
                continue;
            };
            found.push(Violation {
                invariant,
                what,
                writes: with_their_gangs(tables, plan, askers()),
            });
        }
    }
}

/// I3: no bind takes its queue beyond its ceiling. What is guaranteed to it is its own all the same.
pub(crate) fn ceilings(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let queue_of = |task: TaskId| tables.gang(tables.task(task).gang?).queue;
    let mut by_queue: BTreeMap<QueueId, Vec<&model::Place>> = BTreeMap::new();
    for place in &plan.places {
        if let Some(queue) = queue_of(place.task) {
            by_queue.entry(queue).or_default().push(place);
        }
    }
    for (id, places) in by_queue {
        let queue = tables.queue(id);
        if queue.spec.capability.is_empty() {
            continue;
        }
        let mut used = Amounts::new();
        for gang in queue.gangs.iter().map(|gang| tables.gang(*gang)) {
            for task in &gang.tasks {
                let phase = tables.task(*task).phase;
                if matches!(phase, Phase::Binding | Phase::Bound | Phase::Running) {
                    add(&mut used, tables, *task);
                }
            }
        }
        for (kind, ceiling) in queue.spec.capability.entries() {
            let asks =
                |place: &&&model::Place| tables.shape_of(place.task).spec.requests.get(kind) > 0;
            let askers = || places.iter().copied().filter(|place| asks(&place));
            let ceiling = i128::from(ceiling.max(queue.spec.guarantee.get(kind)));
            let used = used.get(&kind).copied().unwrap_or(0);
            // Upstream: a ceiling of zero or less on cpu or memory means none.
            let is_none = ceiling <= 0 && (kind == Kind::CPU || kind == Kind::MEMORY);
            if used <= ceiling || is_none || askers().next().is_none() {
                continue;
            }
            let (name, kind_name) = (&queue.spec.name, tables.kinds().name(kind));
            found.push(Violation {
                invariant: "I3",
                what: format!("queue {name} uses {used} {kind_name} with a ceiling of {ceiling}"),
                writes: with_their_gangs(tables, plan, askers()),
            });
        }
    }
}
