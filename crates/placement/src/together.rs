//! Tasks that share a claim which waits for its first consumer. The volume will be where the first
//! of them goes, and until it is bound nobody knows from where else it can be reached: all of them
//! go to one node, as in Kubernetes, where the claim names that node from then on.
//!
//! Tasks that share a claim of devices which has none yet meet on one node, too, if one takes them. Once the
//! first has them, the others go wherever these can be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Key, NodeId, Phase, Refusal, Tables, TaskId, Vector};

use crate::cycle::Cycle;
use crate::plugin::Room;

/// How many nodes are tried for a group that no node can take whole.
const TRIES_MAX: usize = 16;

/// Where a task may go for the sake of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// No claim of it goes anywhere yet.
    Anywhere,
    /// To this node.
    At {
        /// The node.
        node: NodeId,
        /// The claim that goes there.
        claim: Arc<str>,
    },
    /// To none while another task uses a claim that one may use at a time.
    InUse,
    /// Its claims go to different nodes.
    Nowhere {
        /// One of them.
        node: NodeId,
        /// The claim that goes there.
        claim: Arc<str>,
    },
}

impl Home {
    /// Why the node is out of the question, if it is.
    pub(crate) fn refuses(&self, other: NodeId) -> Option<Refusal> {
        let is_open = match self {
            Home::Anywhere => true,
            Home::At { node, .. } => *node == other,
            Home::InUse => return Some(Refusal::VolumeInUse),
            Home::Nowhere { .. } => false,
        };
        (!is_open).then_some(Refusal::VolumeElsewhere)
    }
}

/// Where the claims of a task go, now or once those on their way out are gone.
pub(crate) fn home(tables: &Tables, task: TaskId, room: Room) -> Home {
    let row = tables.task(task);
    let is_used = match room {
        Room::Now => sole_users(tables, task).next().is_some(),
        Room::Later => staying_users(tables, task).next().is_some(),
    };
    if is_used {
        return Home::InUse;
    }
    let claim_of = |name: &Arc<str>| Key::new(row.key.namespace.clone(), name.clone());
    let mut found = Home::Anywhere;
    for name in &row.claims {
        let claim = claim_of(name);
        // Devices that somebody has are reached from where they are reached: each node says it.
        let home = tables.claim_home(&claim);
        let Some(node) = home.filter(|_| tables.device_holder(&claim).is_none()) else {
            continue;
        };
        let claim = name.clone();
        match found {
            Home::Anywhere => found = Home::At { node, claim },
            Home::At { node: other, .. } if other != node => return Home::Nowhere { node, claim },
            Home::At { .. } | Home::InUse | Home::Nowhere { .. } => {}
        }
    }
    found
}

/// Who uses claims of the task that one may use at a time; who uses several of them is named for each.
fn sole_users(tables: &Tables, task: TaskId) -> impl Iterator<Item = TaskId> {
    let row = tables.task(task);
    let claims = row.sole.iter();
    claims.flat_map(|name| {
        let claim = Key::new(row.key.namespace.clone(), name.clone());
        tables.sole_users(&claim)
    })
}

/// Those of them that are not on their way out.
fn staying_users(tables: &Tables, task: TaskId) -> impl Iterator<Item = TaskId> {
    sole_users(tables, task).filter(|user| tables.task(*user).phase != Phase::Releasing)
}

/// The others that have to go before the task can have its claims, each of them once.
pub(crate) fn rivals(tables: &Tables, task: TaskId) -> BTreeSet<TaskId> {
    let users = staying_users(tables, task);
    users.filter(|user| *user != task).collect()
}

/// Those of the waiting tasks that are tied to one another by claims which go nowhere yet, the
/// largest group first, each in the order given. Tasks that share nothing are in no group.
pub(crate) fn groups(tables: &Tables, waiting: &[TaskId]) -> Vec<Vec<TaskId>> {
    let claims = |at: usize| &tables.task(waiting[at]).claims;
    let is_loose = |at: &usize| {
        !claims(*at).is_empty() && home(tables, waiting[*at], Room::Now) == Home::Anywhere
    };
    let loose: Vec<usize> = (0..waiting.len()).filter(is_loose).collect();
    let mut by_claim: BTreeMap<(&Arc<str>, &Arc<str>), Vec<usize>> = BTreeMap::new();
    let named = |at: usize| {
        let namespace = &tables.task(waiting[at]).key.namespace;
        claims(at).iter().map(move |claim| (namespace, claim))
    };
    for at in &loose {
        for claim in named(*at) {
            by_claim.entry(claim).or_default().push(*at);
        }
    }
    let mut groups: Vec<Vec<TaskId>> = Vec::new();
    let mut seen = BTreeSet::new();
    for first in loose {
        let mut group = BTreeSet::new();
        let mut next = vec![first];
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            group.insert(at);
            // A claim's list is walked once: taking it out keeps a large group linear.
            for claim in named(at) {
                next.extend(by_claim.remove(&claim).unwrap_or_default());
            }
        }
        if group.len() > 1 {
            groups.push(group.into_iter().map(|at| waiting[at]).collect());
        }
    }
    // Stable: among equals the one whose first task comes first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// The best node that takes the whole group; else the one that takes most of it. `None` where no
/// node takes even the first.
pub(crate) fn meet(cycle: &mut Cycle<'_, '_>, group: &[TaskId]) -> Option<NodeId> {
    let first = group.first()?;
    let candidates = cycle.candidates(*first);
    let mut roomy: Vec<(usize, NodeId)> = candidates
        .into_iter()
        .map(|node| (room_for(cycle.trial.tables(), group, node), node))
        .collect();
    let whole = roomy.iter().filter(|(count, _)| *count == group.len());
    for (_, node) in whole.copied().collect::<Vec<_>>() {
        if taken(cycle, group, node, Stop::AtTheFirst) == group.len() {
            return Some(node);
        }
    }
    // Stable: among equals the better node stays in front.
    roomy.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut most: Option<(usize, NodeId)> = None;
    for (_, node) in roomy.into_iter().take(TRIES_MAX) {
        let count = taken(cycle, group, node, Stop::Never);
        if count > 0 && most.is_none_or(|(before, _)| count > before) {
            most = Some((count, node));
        }
    }
    most.map(|(_, node)| node)
}

/// How many tasks of the group the node has room for by its sums alone, the first ones first.
fn room_for(tables: &Tables, group: &[TaskId], node: NodeId) -> usize {
    let row = tables.node(node);
    let mut used = Vector::ZERO;
    let mut count = 0;
    for task in group {
        let held = &tables.shape_of(*task).held;
        let mut kinds = held.entries();
        if kinds.all(|(kind, need)| used.get(kind).saturating_add(need) <= row.free(kind)) {
            used.add(held);
            count += 1;
        }
    }
    count
}

/// When a try ends.
#[derive(PartialEq, Eq)]
enum Stop {
    AtTheFirst,
    Never,
}

/// How many tasks of the group the node really takes; none if it does not take the first.
fn taken(cycle: &mut Cycle<'_, '_>, group: &[TaskId], node: NodeId, stop: Stop) -> usize {
    let mark = cycle.trial.mark();
    let mut count = 0;
    for task in group {
        if cycle.takes(*task, node) {
            cycle.place(*task, node);
            count += 1;
        } else if count == 0 || stop == Stop::AtTheFirst {
            break;
        }
    }
    cycle.trial.rewind(mark);
    count
}
