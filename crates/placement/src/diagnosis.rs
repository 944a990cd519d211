//! Why a task finds no node: who refuses it for what, and what would help soonest.

use std::collections::BTreeMap;

use model::{Kind, Missing, NoFit, Node, NodeId, Refusal, Shape, TaskId, VolumeNeed};

use crate::cycle::Cycle;
use crate::plugin::{Room, View};
use crate::plugins::predicates::{places_on, unallocated};
use crate::together::{self, Home};

/// The most kinds of refusals before further ones are summed up.
const WORDS_MAX: usize = 12;

/// How full the nodes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    /// As the trial has them now.
    AsTheyAre,
    /// Each with as many tasks of the shape as it has room for by amounts.
    OfTheShape,
}

/// Looks at every node for one task that found none, as the trial has them now.
pub(crate) fn no_fit(
    cycle: &mut Cycle<'_, '_>,
    task: TaskId,
    fits: u32,
    wanted: u32,
) -> Box<NoFit> {
    look(cycle, task, (fits, wanted), Full::AsTheyAre)
}

/// The same once each node has as many tasks of this shape as it has room for, which amounts alone say.
pub(crate) fn no_fit_once_full(
    cycle: &mut Cycle<'_, '_>,
    task: TaskId,
    fits: u32,
    wanted: u32,
) -> Box<NoFit> {
    look(cycle, task, (fits, wanted), Full::OfTheShape)
}

fn look(
    cycle: &mut Cycle<'_, '_>,
    task: TaskId,
    (fits, wanted): (u32, u32),
    full: Full,
) -> Box<NoFit> {
    if !cycle.is_told {
        return untold(cycle.view(), task, (fits, wanted));
    }
    let around = cycle.surroundings(task);
    let suiting = cycle.suiting(task).unwrap_or_default();
    let (rules, view, scope) = (cycle.rules, cycle.view(), cycle.scope.as_ref());
    let shape = view.tables.shape_of(task);
    let footing = rules.footing(view, task);
    let mut home = together::home(view.tables, task, Room::Now);
    let mut refusals: BTreeMap<Refusal, u32> = BTreeMap::new();
    let mut nearest: Option<(Kind, i64, NodeId)> = None;
    let inside = view.tables.nodes();
    let inside = inside.filter(|(id, _)| scope.is_none_or(|scope| scope.contains(*id)));
    let mut nodes = 0;
    for (id, node) in inside {
        nodes += 1;
        let suits = suiting.get(id.index()).copied() == Some(true);
        let nature = || {
            let said = rules.suits_by_itself(view, shape, id);
            said.or_else(|| footing.as_ref()?.refuses(&node.spec))
        };
        let rule = (!suits)
            .then(nature)
            .flatten()
            .or_else(|| rules.has_room(view, shape, id, Room::Now))
            .or_else(|| around.as_ref()?.refuses(view, id))
            .or_else(|| home.refuses(id));
        let refusal = match rule {
            Some(refusal) => refusal,
            None => {
                let left = |kind| left_on(node, shape, kind, full);
                let Some(kind) = scarcest(shape, left) else {
                    let Some(refusal) = rules.consents(view, shape, id) else {
                        continue;
                    };
                    *refusals.entry(few(&refusals, refusal)).or_default() += 1;
                    continue;
                };
                let left = left(kind);
                // A miss is nearer the more of the scarcest resource is left; the first node wins a tie.
                if nearest.is_none_or(|(k, most, _)| (k == kind && left > most) || kind < k) {
                    nearest = Some((kind, left, id));
                }
                refusal_of(view, kind)
            }
        };
        *refusals.entry(refusal).or_default() += 1;
    }
    // Whoever has not answered yet may still help, sooner than any room.
    if refusals.contains_key(&Refusal::Unanswered) {
        nearest = None;
    }
    // Where the claim goes is worth telling only if a node lies elsewhere.
    if !refusals.contains_key(&Refusal::VolumeElsewhere) {
        home = Home::Anywhere;
    }
    let missing = match nodes {
        0 => no_nodes(view),
        _ => missing(view, shape, nearest, &home),
    };
    let others = view.tables.left_nodes();
    if others > 0 && scope.is_none() {
        nodes += others;
        let why = match view.tables.shard() {
            Some(_) => Refusal::OutOfShard,
            None => Refusal::OfOthers,
        };
        refusals.insert(why, others);
    }
    let mut refusals: Vec<(Refusal, u32)> = refusals.into_iter().collect();
    refusals.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let row = view.tables.task(task);
    Box::new(NoFit {
        fits,
        wanted,
        task: row.nickname(),
        pod: row.key.to_string(),
        missing,
        nodes,
        refusals,
        within: scope.map(|scope| scope.name.clone()),
        is_of_part: false,
    })
}

/// That there is none, where nobody asks why.
fn untold(view: View<'_>, task: TaskId, (fits, wanted): (u32, u32)) -> Box<NoFit> {
    Box::new(NoFit {
        fits,
        wanted,
        task: String::new(),
        pod: view.tables.task(task).key.to_string(),
        missing: Missing::Rules,
        nodes: 0,
        refusals: Vec::new(),
        within: None,
        is_of_part: false,
    })
}

/// A refusal in somebody else's words, who may say something else of each node: so many are told.
fn few(told: &BTreeMap<Refusal, u32>, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Extender { verb, .. }
            if told.len() >= WORDS_MAX && !told.contains_key(&refusal) =>
        {
            Refusal::Extender {
                verb,
                why: "other reasons".into(),
            }
        }
        refusal => refusal,
    }
}

/// The same finding told of another task of the shape, when nothing changed in between.
pub(crate) fn retold(
    view: View<'_>,
    known: &NoFit,
    task: TaskId,
    fits: u32,
    wanted: u32,
) -> Box<NoFit> {
    let row = view.tables.task(task);
    Box::new(NoFit {
        fits,
        wanted,
        task: row.nickname(),
        pod: row.key.to_string(),
        ..known.clone()
    })
}

/// What the node has left of a resource.
fn left_on(node: &Node, shape: &Shape, kind: Kind, full: Full) -> i64 {
    let free = node.free(kind);
    match full {
        Full::AsTheyAre => free,
        Full::OfTheShape => {
            let places = i64::try_from(places_on(node, shape, Room::Now)).unwrap_or(i64::MAX);
            free.saturating_sub(places.saturating_mul(shape.held.get(kind)))
        }
    }
}

/// The first lacking resource in upstream's order: cpu, memory, others; pod slots only if all else
/// would do.
fn scarcest(shape: &Shape, left: impl Fn(Kind) -> i64) -> Option<Kind> {
    let wanted = shape.held.entries().filter(|(_, need)| *need > 0);
    let mut lacking = wanted.filter(|(kind, need)| *need > left(*kind));
    let first = lacking.next().map(|(kind, _)| kind)?;
    match first {
        Kind::PODS => Some(lacking.next().map_or(first, |(kind, _)| kind)),
        _ => Some(first),
    }
}

fn refusal_of(view: View<'_>, kind: Kind) -> Refusal {
    if kind == Kind::PODS {
        return Refusal::TooManyPods;
    }
    Refusal::Insufficient {
        resource: view.tables.kinds().name(kind).clone(),
    }
}

/// Why there is no node to look at.
fn no_nodes(view: View<'_>) -> Missing {
    let tables = view.tables;
    match (tables.shard(), tables.left_nodes()) {
        _ if tables.node_count() > 0 => Missing::Nodes,
        (Some(shard), _) => Missing::Shard {
            shard: shard.name.clone(),
            exists: shard.exists,
        },
        (None, 0) => Missing::Nodes,
        (None, others) => Missing::OwnNodes { others },
    }
}

fn missing(
    view: View<'_>,
    shape: &Shape,
    nearest: Option<(Kind, i64, NodeId)>,
    home: &Home,
) -> Missing {
    for volume in &shape.spec.volumes {
        if let VolumeNeed::Waits { claim, why } = volume {
            return Missing::Volume {
                claim: claim.clone(),
                why: *why,
            };
        }
    }
    if let Some(claim) = unallocated(view, shape) {
        return Missing::Devices {
            claim: claim.clone(),
        };
    }
    let kinds = view.tables.kinds();
    let room = nearest.map(|(kind, left, node)| {
        let need = kinds.amount(kind, shape.held.get(kind));
        (need, kinds.amount(kind, left.max(0)), node)
    });
    let name = |node: NodeId| view.tables.node(node).spec.name.clone();
    match (home, room) {
        (Home::At { node, claim } | Home::Nowhere { node, claim }, room) => Missing::Together {
            claim: claim.clone(),
            node: name(*node),
            room: room.map(|(need, left, _)| (need, left)),
        },
        (Home::Anywhere | Home::InUse, None) => Missing::Rules,
        (Home::Anywhere | Home::InUse, Some((need, left, node))) => Missing::Room {
            need,
            node: name(node),
            left,
        },
    }
}
