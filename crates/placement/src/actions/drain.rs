//! Starvation: a gang that has waited for too long, and could start if it waited alone, is kept room
//! although others still use it, so that smaller ones do not pass it for ever. Upstream has no bound.
//!
//! What is kept is a promise like any other: nobody else is placed there, it counts in its queue, and it
//! ends when the gang starts, wherever that is. One gang of a queue is kept room at a time, the first
//! that comes to it; who is more important has its turn before, and takes the room if it is the better.

mod company;
mod in_parts;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Closeness, GangId, GangPhase, Kind, Node, NodeId, Phase, QueueId, Reason, Shape, ShapeId,
    Share, TaskId, Vector,
};

use crate::actions::promises::take_promises_back;
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::clearing::will_take;
use crate::coupling;
use crate::cycle::{Cycle, Outcome};
use crate::domains::{self, Scope};
use crate::footing::Footing;
use crate::plugin::View;
use crate::plugins::predicates::times;
use crate::plugins::{OfRoles, missing};
use crate::rules::Rules;

/// Nodes that are looked at for one gang at most: beyond it nothing is kept.
const LOOKS_MAX: usize = 2_000_000;
/// Nodes on which it is tried for one gang at most what they would take if their gangs went.
const TRIALS_MAX: usize = 2_000;

/// A node for each of some tasks.
type Places = Vec<(TaskId, NodeId)>;

/// What the search for one gang may still cost.
struct Budget {
    /// Nodes that are looked at.
    looks: usize,
    /// Nodes on which it is tried what they would take.
    trials: usize,
}

/// Whether the gang has waited for longer than anybody should.
pub(super) fn is_overdue(view: View<'_>, gang: GangId) -> bool {
    let spec = &view.tables.gang(gang).spec;
    let due = view.config.starvation.due(spec.created, view.state.now);
    due.is_some_and(|at| at <= view.state.now)
}

/// Those that are to have their turn first: nobody that comes to this cycle is more important.
pub(super) fn first(
    cycle: &Cycle<'_, '_>,
    eligible: &[(QueueId, GangId)],
) -> Vec<(QueueId, GangId)> {
    let view = cycle.view();
    let starves = |row: &&(QueueId, GangId)| is_overdue(view, row.1) && !cycle.is_enough(row.1);
    let standing = |(queue, gang): (QueueId, GangId)| {
        let (queue_row, gang_row) = (view.tables.queue(queue), view.tables.gang(gang));
        (queue, queue_row.spec.priority, gang_row.priority)
    };
    let is_above = |a: (QueueId, GangId), b: (QueueId, GangId)| {
        let (a, b) = (standing(a), standing(b));
        a.1 > b.1 || (a.0 == b.0 && a.2 > b.2)
    };
    let overdue = eligible.iter().filter(starves);
    let overdue = overdue.filter(|row| !eligible.iter().any(|other| is_above(*other, **row)));
    overdue.copied().collect()
}

/// Keeps room for the gang that cannot start, if it is its turn and there would be enough for it alone;
/// otherwise it waits for what it waited for.
pub(super) fn keep(cycle: &mut Cycle<'_, '_>, gang: GangId, otherwise: Outcome) -> Outcome {
    let Some(places) = places(cycle, gang) else {
        return otherwise;
    };
    let nodes: BTreeSet<NodeId> = places.iter().map(|(_, node)| *node).collect();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let reason = Reason::WaitsForDrain {
        tasks: number(places.len()),
        nodes: number(nodes.len()),
    };
    for (task, node) in places {
        cycle.promise(task, node);
    }
    cycle.moved();
    cycle.draining.insert(gang, otherwise);
    Outcome::WaitsForPromise(Arc::new(reason))
}

/// Where the gang would start if it waited alone.
fn places(cycle: &mut Cycle<'_, '_>, gang: GangId) -> Option<Places> {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    let queue = row.queue?;
    let lone = lone_kind(view, queue, gang);
    let may = is_overdue(view, gang)
        && lone.is_none_or(|kind| !cycle.undrainable.contains(&kind))
        && row.phase() != GangPhase::Pending
        // Everybody must be able to see it: a gang whose last status is not seen yet waits for that.
        && (row.status_write.is_none() || view.tables.is_kept_room(gang))
        && !is_keeping(cycle, queue)
        && !is_another_kept_room(view, queue, gang)
        && !wants_more_than_there_is(view, gang)
        && !company::looks_at_others(view, gang)
        && company::claims(view, gang) != company::Claims::Shared;
    if !may {
        return None;
    }
    let mark = cycle.trial.mark();
    // Its queue's share is looked at as if it were there alone.
    let others = view.tables.queue(queue).gangs.iter();
    let others = others.filter(|other| **other != gang);
    let held = others.flat_map(|other| &view.tables.gang(*other).tasks);
    let held = held.filter(|task| view.tables.task(**task).phase.is_allocated());
    let held: Vec<TaskId> = held.copied().collect();
    for task in held {
        cycle.trial.evict(task, gang, "");
    }
    let places = match company::send_away(cycle, gang) {
        true => find(cycle, queue, gang),
        false => None,
    };
    cycle.trial.rewind(mark);
    if places.is_none() {
        cycle.undrainable.extend(lone);
    }
    places
}

/// What is known for all pods without a group in one cycle: those of one queue and shape find room or do not.
fn lone_kind(view: View<'_>, queue: QueueId, gang: GangId) -> Option<(QueueId, ShapeId)> {
    let row = view.tables.gang(gang);
    let shape = row.shapes().next().filter(|_| row.spec.lone);
    shape.map(|(shape, _)| (queue, shape))
}

/// Whether this cycle keeps room for a gang of the queue already.
fn is_keeping(cycle: &Cycle<'_, '_>, queue: QueueId) -> bool {
    let tables = cycle.trial.tables();
    let mut kept = cycle.draining.keys();
    kept.any(|other| tables.gang(*other).queue == Some(queue))
}

/// Whether empty nodes would not hold as many of its tasks as it lacks, each shape by itself; said where
/// counting is cheaper than looking at the tasks.
fn wants_more_than_there_is(view: View<'_>, gang: GangId) -> bool {
    let row = view.tables.gang(gang);
    let needed = (row.spec.min_member).saturating_sub(view.tables.ready(gang));
    if needed <= view.tables.node_count() {
        return false;
    }
    let places = |id: ShapeId| {
        let shape = view.tables.shape(id);
        let rows = view.tables.nodes();
        let places = rows.map(|(_, node)| times(shape, |kind| node.spec.allocatable.get(kind)));
        places.fold(0_u64, u64::saturating_add)
    };
    let shapes = row.shapes();
    let room = shapes.map(|(shape, count)| places(shape).min(u64::from(count)));
    let room = room.fold(u64::from(row.others()), u64::saturating_add);
    room < u64::from(needed)
}

/// A node for each of the tasks with which the gang starts, as close together as they must be.
fn find(cycle: &mut Cycle<'_, '_>, queue: QueueId, gang: GangId) -> Option<Places> {
    let view = cycle.view();
    let row = view.tables.gang(gang);
    let mut budget = Budget {
        looks: LOOKS_MAX,
        trials: TRIALS_MAX,
    };
    // Tasks that must be near one another are in one domain, as if the gang had said so.
    let near = company::keys_of_nearness(view, gang).into_iter();
    let near = near.map(Closeness::Label);
    let wishes: Vec<Closeness> = match &row.spec.closeness {
        None => near.collect(),
        Some(closeness) => vec![closeness.clone()],
    };
    let mut allowed = Vec::new();
    for closeness in &wishes {
        let own = domains::places(view, row.tasks.iter().copied());
        allowed.extend(domains::allowed(view, closeness, &own, None).ok()?);
    }
    let is_on_one = company::claims(view, gang) == company::Claims::Together;
    let in_parts = !row.spec.sub_groups.is_empty();
    let inside = |cycle: &mut Cycle<'_, '_>, budget: &mut Budget| match in_parts {
        true => in_parts::find(cycle, queue, gang, budget),
        false => find_inside(cycle, queue, gang, budget),
    };
    let look = |cycle: &mut Cycle<'_, '_>| match allowed.is_empty() {
        // Which domain, or which part of the gang, has the node is not looked for.
        _ if is_on_one && (in_parts || !allowed.is_empty()) => None,
        true if is_on_one => find_on_one(cycle, queue, gang, &mut budget),
        true => inside(cycle, &mut budget),
        false => {
            let scopes = allowed.into_iter().map(|(_, scope)| scope);
            find_together(cycle, scopes, &mut budget, inside)
        }
    };
    cycle.within(None, look)
}

/// What is found in the scope in which the node that would lack most lacks least; the first of equals, of the
/// lowest tier. Nothing is promised yet.
fn find_together(
    cycle: &mut Cycle<'_, '_>,
    scopes: impl Iterator<Item = Scope>,
    budget: &mut Budget,
    inside: impl Fn(&mut Cycle<'_, '_>, &mut Budget) -> Option<Places>,
) -> Option<Places> {
    let mut best: Option<(Share, Places)> = None;
    for scope in scopes {
        let mark = cycle.trial.mark();
        let found = cycle.within(Some(scope), |cycle| inside(cycle, budget));
        let found = found.map(|places| (owed(cycle.view(), &places), places));
        cycle.trial.rewind(mark);
        let is_better =
            |(owed, _): &(Share, Places)| best.as_ref().is_none_or(|(least, _)| owed < least);
        if let Some(found) = found.filter(is_better) {
            best = Some(found);
        }
    }
    best.map(|(_, places)| places)
}

/// How much the node that owes most owes to whom it is promised to.
fn owed(view: View<'_>, places: &Places) -> Share {
    let owed = places.iter().flat_map(|(task, id)| {
        let node = view.tables.node(*id);
        let kinds = view.tables.shape_of(*task).held.entries();
        kinds.map(|(kind, _)| {
            let owed = unused(node, kind).min(0).saturating_neg();
            Share::of(owed, node.spec.allocatable.get(kind))
        })
    });
    owed.max().unwrap_or(Share::NONE)
}

fn is_another_kept_room(view: View<'_>, queue: QueueId, gang: GangId) -> bool {
    // Nodes are few beside the pods that may wait in a queue.
    let promised = view.tables.nodes().flat_map(|(_, node)| &node.promised);
    let mut gangs = promised.filter_map(|task| view.tables.task(*task).gang);
    let priority = view.tables.gang(gang).priority;
    gangs.any(|other| {
        let row = view.tables.gang(other);
        // Who has waited as long and waits for no more than an end that is near keeps what it is promised:
        // the two would take it from each other for ever.
        let is_as_good = row.priority >= priority && is_overdue(view, other);
        let is_kept = view.tables.is_kept_room(other) || is_as_good;
        other != gang && row.queue == Some(queue) && is_kept
    })
}

/// Who is kept room and does not have the first turn leaves it to the more important until it has its own.
pub(super) fn give_way(
    cycle: &mut Cycle<'_, '_>,
    eligible: &[(QueueId, GangId)],
    first: &[(QueueId, GangId)],
) {
    for row in eligible.iter().filter(|row| !first.contains(row)) {
        if cycle.view().tables.is_kept_room(row.1) {
            take_promises_back(cycle, row.1);
        }
    }
}

/// A node of the scope for each of the tasks with which the gang starts.
fn find_inside(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    budget: &mut Budget,
) -> Option<Places> {
    fill(cycle, queue, gang, |cycle, task, last| {
        here_or_nearest(cycle, task, last, budget)
    })
}

/// One node for all tasks with which the gang starts: of those that would do the one that lacks least.
fn find_on_one(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    budget: &mut Budget,
) -> Option<Places> {
    let view = cycle.view();
    let tables = view.tables;
    let mut needs = Vector::ZERO;
    let tasks = starters_first(cycle, gang);
    for task in tasks.into_iter().take(missing(tables, gang) as usize) {
        needs.add(&tables.shape_of(task).held);
    }
    budget.looks = budget.looks.checked_sub(tables.node_count() as usize)?;
    let able = tables
        .nodes()
        .filter(|(_, node)| node.known && has_when_left(view, node, &needs));
    let mut able: Vec<(Share, NodeId)> = able.map(|(id, node)| (lack(node, &needs), id)).collect();
    able.sort_unstable();
    for (_, id) in able {
        budget.trials = budget.trials.checked_sub(1)?;
        let mark = cycle.trial.mark();
        let found = fill(cycle, queue, gang, |cycle, task, _| {
            would_do(cycle, task, id).then_some(id)
        });
        cycle.trial.rewind(mark);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// A node for each of the tasks with which the gang starts. `choose` is told the node of the one before.
fn fill(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    gang: GangId,
    choose: impl FnMut(&mut Cycle<'_, '_>, TaskId, Option<NodeId>) -> Option<NodeId>,
) -> Option<Places> {
    let tasks = starters_first(cycle, gang);
    let is_enough = |cycle: &Cycle<'_, '_>| cycle.rules.job_pipelined(cycle.view(), gang);
    let places = fill_until(cycle, queue, tasks, is_enough, choose)?;
    (is_enough(cycle) && !places.is_empty()).then_some(places)
}

/// Its tasks that wait, those with which it starts before the others.
fn starters_first(cycle: &Cycle<'_, '_>, gang: GangId) -> Vec<TaskId> {
    let mut tasks = waiting_tasks(cycle, gang, Asking::Something);
    let tables = cycle.trial.tables();
    if let Some(of_roles) = OfRoles::of(tables, gang) {
        of_roles.put_first(tables, &mut tasks);
    }
    tasks
}

/// A node for each of these tasks, which are promised them, until it is enough.
fn fill_until(
    cycle: &mut Cycle<'_, '_>,
    queue: QueueId,
    tasks: Vec<TaskId>,
    is_enough: impl Fn(&Cycle<'_, '_>) -> bool,
    mut choose: impl FnMut(&mut Cycle<'_, '_>, TaskId, Option<NodeId>) -> Option<NodeId>,
) -> Option<Places> {
    let mut places = Places::new();
    for task in tasks {
        if is_enough(cycle) {
            break;
        }
        if cycle.rules.allocatable(cycle.view(), queue, task).is_some()
            || company::is_unforeseeable(cycle.view(), task)
        {
            return None;
        }
        let last = places.last().map(|(_, node)| *node);
        let node = choose(cycle, task, last)?;
        cycle.promise(task, node);
        places.push((task, node));
    }
    Some(places)
}

/// The node of the one before where that would do, else the nearest to being free.
fn here_or_nearest(
    cycle: &mut Cycle<'_, '_>,
    task: TaskId,
    last: Option<NodeId>,
    budget: &mut Budget,
) -> Option<NodeId> {
    match last.filter(|node| would_do(cycle, task, *node)) {
        Some(node) => Some(node),
        None => nearest(cycle, task, budget),
    }
}

/// Whether amounts alone decide whether a node that suits the task has room for it: it does not look at others
/// either.
fn is_plain(view: View<'_>, task: TaskId) -> bool {
    view.tables.shape_of(task).spec.is_about_amounts() && !coupling::concerns(view, task)
}

/// The node of those that would do once its gangs have gone that lacks least now; the first of equals.
/// What a node lacks that is kept never grows, so that a choice which changes is always for the better.
fn nearest(cycle: &mut Cycle<'_, '_>, task: TaskId, budget: &mut Budget) -> Option<NodeId> {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    let nodes: Vec<NodeId> = match &cycle.scope {
        Some(scope) => scope.nodes().to_vec(),
        None => view.tables.nodes().map(|(id, _)| id).collect(),
    };
    budget.looks = budget.looks.checked_sub(nodes.len())?;
    let footing = cycle.rules.footing(view, task);
    let able = nodes
        .into_iter()
        .filter(|id| would_be_enough(view, cycle.rules, shape, *id))
        .filter(|id| may_stand(view, footing.as_deref(), *id));
    let ranked = able.map(|id| {
        (
            has_taken_port(view, shape, id),
            lack(view.tables.node(id), &shape.held),
            id,
        )
    });
    if is_plain(view, task) {
        return ranked.min().map(|(.., id)| id);
    }
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable();
    for (.., id) in ranked {
        budget.trials = budget.trials.checked_sub(1)?;
        if takes_when_left(cycle, task, id) {
            return Some(id);
        }
    }
    None
}

fn has_taken_port(view: View<'_>, shape: &Shape, id: NodeId) -> bool {
    let taken = &view.tables.node(id).ports;
    let mut wanted = shape.spec.ports.iter();
    wanted.any(|port| taken.keys().any(|other| other.conflicts(port)))
}

fn lack(node: &Node, needs: &Vector) -> Share {
    let lacks = needs.entries().map(|(kind, need)| {
        let lack = need.saturating_sub(unused(node, kind)).max(0);
        Share::of(lack, node.spec.allocatable.get(kind))
    });
    lacks.max().unwrap_or(Share::NONE)
}

/// What of a node nobody holds and nobody is promised. Who is on the way out holds it still: for the sake
/// of its queue's share the gang's rivals count as such here.
fn unused(node: &Node, kind: Kind) -> i64 {
    let spoken_for = node.used.get(kind).saturating_add(node.pipelined.get(kind));
    node.spec.allocatable.get(kind).saturating_sub(spoken_for)
}

/// Whether the node takes the task once all gangs on it have gone. Pods of no gang may stay for ever.
fn would_do(cycle: &mut Cycle<'_, '_>, task: TaskId, id: NodeId) -> bool {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    let footing = cycle.rules.footing(view, task);
    would_be_enough(view, cycle.rules, shape, id)
        && may_stand(view, footing.as_deref(), id)
        && (is_plain(view, task) || takes_when_left(cycle, task, id))
}

/// The same, as far as amounts and the node's own nature decide.
fn would_be_enough(view: View<'_>, rules: &Rules, shape: &Shape, id: NodeId) -> bool {
    let node = view.tables.node(id);
    node.known && has_when_left(view, node, &shape.held) && rules.suits(view, shape, id).is_none()
}

/// Whether the node has so much once all gangs on it have gone.
fn has_when_left(view: View<'_>, node: &Node, needs: &Vector) -> bool {
    let mut needs = needs.entries();
    needs.all(|(kind, need)| {
        let stay = node
            .tasks
            .iter()
            .filter(|task| view.tables.task(**task).gang.is_none());
        let stay = stay.map(|task| view.tables.shape_of(*task).held.get(kind));
        let stay = stay.fold(0_i64, i64::saturating_add);
        let all = node.spec.allocatable.get(kind);
        let left = all
            .saturating_sub(stay)
            .saturating_sub(node.pipelined.get(kind));
        need <= left
    })
}

/// Whether the node is one for the gang's queue: a limit of the queue there counts what it would hold if the
/// gang were alone in it.
fn may_stand(view: View<'_>, footing: Option<&Footing>, id: NodeId) -> bool {
    footing.is_none_or(|footing| footing.of(&view.tables.node(id).spec).is_ok())
}

/// The same, as far as ports, volumes, cards, devices and NUMA nodes decide: found by sending all gangs away.
fn takes_when_left(cycle: &mut Cycle<'_, '_>, task: TaskId, id: NodeId) -> bool {
    let tables = cycle.trial.tables();
    let Some(gang) = tables.task(task).gang else {
        return false;
    };
    let held = tables.node(id).tasks.iter().copied();
    let of_gangs = held.filter(|task| {
        let row = tables.task(*task);
        row.gang.is_some() && row.phase.is_allocated()
    });
    let of_gangs: Vec<TaskId> = of_gangs.collect();
    let mark = cycle.trial.mark();
    for task in of_gangs {
        cycle.trial.evict(task, gang, "");
    }
    let takes = will_take(cycle, task, id);
    cycle.trial.rewind(mark);
    takes
}

/// What `look` finds while nothing is kept for those who drain: they are short of tasks, too.
pub(super) fn without<T>(cycle: &mut Cycle<'_, '_>, look: impl FnOnce(&Cycle<'_, '_>) -> T) -> T {
    let draining = std::mem::take(&mut cycle.draining);
    for gang in draining.keys() {
        take_promises_back(cycle, *gang);
    }
    let found = look(cycle);
    for (gang, otherwise) in draining {
        keep_again(cycle, gang, otherwise);
    }
    found
}

/// Clears room for the gang, for one that drains as if nothing was kept for it; where that cannot be it drains
/// on.
pub(super) fn serve(
    cycle: &mut Cycle<'_, '_>,
    gang: GangId,
    clear: impl FnOnce(&mut Cycle<'_, '_>),
) {
    let kept = cycle.draining.remove(&gang);
    if kept.is_some() {
        take_promises_back(cycle, gang);
        // What others did not find while it was kept may be found now.
        cycle.moved();
    }
    clear(cycle);
    if let Some(otherwise) = kept
        && cycle.trial.tables().gang(gang).count(Phase::Pipelined) == 0
    {
        keep_again(cycle, gang, otherwise);
    }
}

fn keep_again(cycle: &mut Cycle<'_, '_>, gang: GangId, otherwise: Outcome) {
    let outcome = keep(cycle, gang, otherwise);
    cycle.outcomes.insert(gang, outcome);
}
