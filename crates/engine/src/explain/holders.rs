//! Who holds what a gang waits for.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{GangId, GangPhase, Key, Kind, NodeId, QueueId, Reason, Refusal, Tables, Task};

use super::probe::Asked;
use super::scarce::{self, Scarce};
use super::{Holder, Sums, groups, most, room};

/// The nodes whose tasks are told: those that come closest.
const NEAREST: usize = 3;

/// Who holds it, most first.
pub(super) fn of(
    asked: &Asked<'_>,
    tables: &Tables,
    reason: &Reason,
    able: &[NodeId],
) -> Vec<Holder> {
    let (engine, gang, now) = (asked.engine, asked.gang, asked.now);
    match reason {
        Reason::NoFit(no_fit) => {
            if let Some(kind) = kind_short(tables, reason) {
                let nodes = room::nearest(tables, no_fit, able, NEAREST);
                return on_nodes(tables, gang, &nodes, kind);
            }
            match Scarce::most_common(no_fit) {
                Some(it) => scarce::holders(tables, gang, it, able),
                None if room::refuses(no_fit, |why| *why == Refusal::NodeGroupFull) => {
                    groups::holders(engine, tables, (gang, no_fit, able), now)
                }
                None => Vec::new(),
            }
        }
        Reason::QueueFull { queue, .. }
        | Reason::QueueQuota { queue, .. }
        | Reason::QueueOverused { queue } => {
            let kind = kind_short(tables, reason).unwrap_or(Kind::CPU);
            let Some(queue) = tables.queue_named(queue) else {
                return Vec::new();
            };
            most(in_queues(tables, gang, &below(tables, queue), kind))
        }
        Reason::Overcommitted { .. } => {
            let kind = kind_short(tables, reason).unwrap_or(Kind::CPU);
            let all = within(tables, None);
            let mut sums = in_queues(tables, gang, &all, kind);
            promised(&mut sums, tables, gang, kind);
            most(sums)
        }
        Reason::NamespaceQuota { quota, .. } => {
            let namespace = quota.split('/').next().unwrap_or_default();
            let kind = kind_short(tables, reason).unwrap_or(Kind::CPU);
            in_namespace(tables, gang, namespace, kind)
        }
        Reason::WaitsForDrain { .. } | Reason::WaitsForRelease { .. } => {
            let nodes: BTreeSet<NodeId> = asked.promised.iter().map(|(_, node)| *node).collect();
            let nodes: Vec<NodeId> = nodes.into_iter().collect();
            on_nodes(tables, gang, &nodes, kind_kept(asked, tables))
        }
        _ => Vec::new(),
    }
}

/// Of what too little is left yet where the gang is kept room.
pub(super) fn kind_kept(asked: &Asked<'_>, tables: &Tables) -> Kind {
    let mut short = asked.promised.iter().filter_map(|(task, node)| {
        let node = tables.node(*node);
        let mut wanted = tables.shape_of(*task).held.entries();
        let is_short = |(kind, need): &(Kind, i64)| {
            let allocatable = node.spec.allocatable.get(*kind);
            allocatable.saturating_sub(node.used.get(*kind)) < *need
        };
        wanted.find(is_short).map(|(kind, _)| kind)
    });
    short.next().unwrap_or(Kind::CPU)
}

/// The resource that a reason speaks of.
pub(super) fn kind_short(tables: &Tables, reason: &Reason) -> Option<Kind> {
    match reason {
        Reason::NoFit(no_fit) => match &no_fit.missing {
            model::Missing::Room { need, .. } => Some(need.kind),
            model::Missing::Together { room, .. } => room.as_ref().map(|(need, _)| need.kind),
            _ => None,
        },
        Reason::QueueFull { need, .. } => Some(need.kind),
        Reason::NamespaceQuota { short, .. } => short.first().map(|gap| gap.requested.kind),
        Reason::QueueQuota { short, .. } | Reason::Overcommitted { short, .. } => {
            short.first().and_then(|name| tables.kinds().find(name))
        }
        _ => None,
    }
}

/// The gang of a task, or the task where it is in none.
pub(super) fn who(tables: &Tables, task: &Task) -> Key {
    let gang = task.gang.map(|gang| &tables.gang(gang).spec.key);
    gang.unwrap_or(&task.key).clone()
}

/// Adds what a task holds of a kind.
pub(super) fn add(
    sums: &mut Sums,
    tables: &Tables,
    task: &Task,
    node: Option<Arc<str>>,
    kind: Kind,
) {
    let claims = task.charges.iter().flat_map(|charge| &charge.amounts);
    let claimed = claims.filter(|(of, _)| *of == kind);
    let claimed = claimed
        .map(|(_, amount)| *amount)
        .fold(0, i64::saturating_add);
    let shape = tables.shape(task.shape);
    // A quota's kinds of limits are none of what nodes have.
    let held = shape
        .held
        .get(kind)
        .saturating_add(shape.spec.limits.get(kind));
    let held = held.saturating_add(claimed);
    if held == 0 {
        return;
    }
    let none = || (0, tables.kinds().amount(kind, 0));
    let key = (who(tables, task), node);
    let (tasks, amount) = sums.entry(key).or_insert_with(none);
    *tasks += 1;
    amount.value = amount.value.saturating_add(held);
}

fn on_nodes(tables: &Tables, gang: GangId, nodes: &[NodeId], kind: Kind) -> Vec<Holder> {
    let mut sums = Sums::new();
    for node in nodes {
        let row = tables.node(*node);
        let others = row.tasks.iter().map(|task| tables.task(*task));
        for task in others.filter(|task| task.gang != Some(gang)) {
            add(&mut sums, tables, task, Some(row.spec.name.clone()), kind);
        }
    }
    most(sums)
}

fn in_queues(tables: &Tables, gang: GangId, queues: &[QueueId], kind: Kind) -> Sums {
    let mut sums = Sums::new();
    for other in queues {
        for id in &tables.queue(*other).gangs {
            let row = tables.gang(*id);
            if *id == gang || row.allocated.is_zero() {
                continue;
            }
            for task in row.tasks.iter().map(|task| tables.task(*task)) {
                if task.phase.is_allocated() {
                    add(&mut sums, tables, task, None, kind);
                }
            }
        }
    }
    sums
}

/// What gangs that were let in have been promised beyond what they have.
fn promised(sums: &mut Sums, tables: &Tables, gang: GangId, kind: Kind) {
    for (id, row) in tables.gangs() {
        let Some(least) = row.spec.min_resources.as_ref().filter(|_| row.known) else {
            continue;
        };
        let least = least
            .get(kind)
            .saturating_add(row.spec.min_limits.get(kind));
        let more = least.saturating_sub(row.allocated.get(kind));
        if id == gang || row.phase() != GangPhase::Inqueue || more <= 0 {
            continue;
        }
        let none = || (0, tables.kinds().amount(kind, 0));
        let (_, amount) = sums
            .entry((row.spec.key.clone(), None))
            .or_insert_with(none);
        amount.value = amount.value.saturating_add(more);
    }
}

fn in_namespace(tables: &Tables, gang: GangId, namespace: &str, kind: Kind) -> Vec<Holder> {
    let mut sums = Sums::new();
    for (_, task) in tables.tasks() {
        let holds = task.phase.is_allocated() && task.gang != Some(gang);
        if holds && *task.key.namespace == *namespace {
            add(&mut sums, tables, task, None, kind);
        }
    }
    most(sums)
}

/// The queue and all below it, or all there are.
pub(super) fn within(tables: &Tables, queue: Option<QueueId>) -> Vec<QueueId> {
    match queue {
        Some(queue) => below(tables, queue),
        None => tables.queues().map(|(id, _)| id).collect(),
    }
}

/// The queue and all below it.
pub(super) fn below(tables: &Tables, queue: QueueId) -> Vec<QueueId> {
    let mut all = vec![queue];
    let mut at = 0;
    while at < all.len() {
        all.extend(tables.queue(all[at]).children.iter().copied());
        at += 1;
    }
    all
}
