//! What room that others hold would cost on each node, found out once for claimants who may take the same.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, QueueId, Refusal, ShapeId, Tables, TaskId};

use super::below::Belows;
use super::kin::Failed;
use crate::coupling::{self, Lot};
use crate::cycle::Cycle;
use crate::footing;
use crate::plugin::Room;
use crate::plugins::predicates::lacks;
use crate::settings::Difference;
use crate::together;
use crate::victims::{Against, Cost, Offer, Scratch, Search};

/// What a field was surveyed for: against whom (for tasks of one queue or one gang, which), up to which
/// priority, and for which shape.
pub(super) type Ground = (Against, u32, i32, ShapeId);

/// Claimants who may take the same tasks from others for tasks of the same lot.
pub(super) type Likeness = (Against, Vec<u64>, Lot);

/// What a cycle knows of room that others hold.
#[derive(Debug, Default)]
pub(crate) struct Grounds {
    pub(super) fields: BTreeMap<Ground, Field>,
    /// For whom no node was found when so many moves were kept.
    pub(super) hopeless: BTreeMap<Likeness, u64>,
    /// For whom too little was found.
    pub(super) failed: Failed,
    /// For which claimants of a queue no node was found then, where one above it is full.
    pub(super) short: BTreeMap<(QueueId, Likeness), u64>,
    /// Who holds what below queues that are full.
    pub(super) below: Belows,
}

impl Grounds {
    pub(super) fn field(&mut self, ground: Ground) -> &mut Field {
        self.fields.entry(ground).or_default()
    }
}

/// All nodes by what room for one shape would cost there at least. What it costs a claimant is found out
/// when the node comes first, which can only raise it; claimants who may take the same share what was
/// found out.
#[derive(Debug, Default)]
pub(super) struct Field {
    cursor: u64,
    leaves: Vec<Option<Cost>>,
    order: BTreeSet<(Cost, NodeId)>,
    /// Nodes of which only is known that they cost something: they are surveyed when that matters.
    unsurveyed: Vec<NodeId>,
    /// Nodes whose costs were raised, and for whom.
    pub(super) raised: Vec<NodeId>,
    whose: Vec<u64>,
    /// How many of them were when the attempt began.
    pub(super) begun: usize,
    /// How many were evicted when nothing had been raised yet.
    evictions: u64,
    /// Whose turn it is on the node that came first the last time in this attempt: the next task is
    /// likely to meet it there again.
    pub(super) in_turn: Option<(NodeId, Vec<TaskId>)>,
}

impl Field {
    /// One of these nodes, for one claimant.
    pub(super) fn of(cycle: &Cycle<'_, '_>, search: &Search<'_>, nodes: Vec<NodeId>) -> Field {
        let mut field = Field {
            cursor: cycle.trial.tables().log_end(),
            ..Field::default()
        };
        field.look_again(cycle, search, nodes);
        field
    }

    fn put(&mut self, node: NodeId, cost: Option<Cost>) {
        if node.index() >= self.leaves.len() {
            self.leaves.resize(node.index() + 1, None);
        }
        let leaf = &mut self.leaves[node.index()];
        if *leaf == cost {
            return;
        }
        if let Some(old) = *leaf {
            self.order.remove(&(old, node));
        }
        if let Some(new) = cost {
            self.order.insert((new, node));
        }
        *leaf = cost;
    }

    /// Surveys the nodes that changed since the last time; all of them the first time.
    fn sync(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>) {
        let tables = cycle.trial.tables();
        let mut nodes = std::mem::take(&mut self.unsurveyed);
        match self.changed(tables) {
            Some(changed) => nodes.extend(changed),
            None => nodes = tables.all_nodes().map(|(id, _)| id).collect(),
        }
        nodes.sort_unstable();
        nodes.dedup();
        self.look_again(cycle, search, nodes);
        self.cursor = tables.log_end();
    }

    /// The same as far as nodes have room without any eviction.
    fn sync_free(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>) {
        let tables = cycle.trial.tables();
        let Some(changed) = self.changed(tables) else {
            return self.sync(cycle, search);
        };
        let shape = tables.shape_of(search.claimant.task);
        for node in changed {
            let is_known = tables.find_node(*node).is_some_and(|row| row.known);
            let is_free = is_known && search.is_free(tables, shape, *node);
            self.put(*node, is_free.then_some(Cost::NONE));
            if !is_free {
                self.unsurveyed.push(*node);
            }
        }
        self.cursor = tables.log_end();
    }

    /// Nodes that changed since the last time, if it is known which.
    fn changed<'t>(&self, tables: &'t Tables) -> Option<&'t [NodeId]> {
        let changed = tables.changed_since(self.cursor);
        changed.filter(|_| !self.leaves.is_empty())
    }

    fn look_again(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, nodes: Vec<NodeId>) {
        let view = cycle.view();
        let shape = view.tables.shape_of(search.claimant.task);
        let is_known = |node: NodeId| view.tables.find_node(node).is_some_and(|row| row.known);
        let mut scratch = Scratch::default();
        let mut cost = |node: NodeId| {
            let bound = || search.bound(view, shape, node, &mut scratch);
            is_known(node).then(bound).flatten()
        };
        if self.leaves.is_empty() {
            // Few nodes may have somebody who could give.
            let own = search.own_nodes(view, nodes.len());
            let mut cost = |node: NodeId| match own.as_ref().map(|own| own.get(node.index())) {
                None | Some(Some(true)) => cost(node),
                _ if !is_known(node) => None,
                _ => search
                    .is_free(view.tables, shape, node)
                    .then_some(Cost::NONE),
            };
            // In order once, instead of one by one.
            let end = nodes.iter().map(|node| node.index() + 1).max();
            self.leaves.resize(end.unwrap_or(0), None);
            let rows = nodes.into_iter();
            self.order = rows.filter_map(|node| Some((cost(node)?, node))).collect();
            for (cost, node) in &self.order {
                self.leaves[node.index()] = Some(*cost);
            }
            return;
        }
        for node in nodes {
            self.put(node, cost(node));
        }
    }

    /// Gets ready for a claimant: what others found out counts only if they may take the same.
    pub(super) fn meet(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, likeness: &[u64]) {
        if self.whose != likeness {
            self.forget(cycle, search, 0);
            self.whose = likeness.to_vec();
        }
        self.sync(cycle, search);
    }

    /// The same for a claimant that was met before and looks for room without any eviction.
    pub(super) fn meet_again(
        &mut self,
        cycle: &Cycle<'_, '_>,
        search: &Search<'_>,
        likeness: &[u64],
    ) {
        if self.whose == likeness {
            self.sync_free(cycle, search);
        } else {
            self.meet(cycle, search, likeness);
        }
    }

    /// What was found out for claimants of the one likeness is for those of the other from now on.
    pub(super) fn change_hands(&mut self, from: &[u64], to: &[u64]) {
        if self.whose == from {
            self.whose = to.to_vec();
        }
    }

    /// Forgets what was found out, but for the first nodes.
    pub(super) fn forget(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, but: usize) {
        if self.raised.len() > but {
            let raised = self.raised.split_off(but);
            self.look_again(cycle, search, raised);
        }
        self.begun = self.begun.min(but);
    }

    pub(super) fn costs_nothing(&self) -> bool {
        self.costing_nothing().next().is_some()
    }

    /// Nodes that have room without any eviction, as far as is known.
    pub(super) fn costing_nothing(&self) -> impl Iterator<Item = NodeId> {
        let free = self
            .order
            .iter()
            .take_while(|(cost, _)| *cost == Cost::NONE);
        free.map(|(_, node)| *node)
    }

    /// All nodes where there may be room, by what it costs there at least.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (Cost, NodeId)> {
        self.order.iter().copied()
    }

    /// The node that comes first where so many tasks want room, and what it costs them.
    fn first(&self, wanting: u32) -> Option<(Cost, NodeId)> {
        let mut order = self.order.iter();
        let (cost, node) = *order.next()?;
        let mut first = (cost.wanted_by(wanting), node);
        // It makes room for more than want some: another one may be as good for these, or better.
        if first.0 != cost {
            for (cost, node) in order {
                if *cost > first.0 {
                    break;
                }
                first = first.min((cost.wanted_by(wanting), *node));
            }
        }
        Some(first)
    }

    /// The cheapest node for the claimant's task, with whom it takes.
    pub(super) fn cheapest(
        &mut self,
        cycle: &mut Cycle<'_, '_>,
        search: &Search<'_>,
    ) -> Option<(NodeId, Offer)> {
        loop {
            while let Some((cost, node)) = self.first(search.wanting) {
                let offer = if cost == Cost::NONE && is_about_amounts(cycle, search.claimant.task) {
                    offer(cycle, search, node, &[])
                } else {
                    let in_turn = match self.in_turn.take() {
                        Some((at, tasks)) if at == node => tasks,
                        _ => search.in_turn(cycle.view(), node),
                    };
                    let offer = offer(cycle, search, node, &in_turn);
                    self.in_turn = Some((node, in_turn));
                    offer
                };
                let found = offer.as_ref().map(|offer| offer.cost);
                if found.is_some_and(|found| found.wanted_by(search.wanting) <= cost) {
                    return offer.map(|offer| (node, offer));
                }
                if self.raised.is_empty() {
                    self.evictions = cycle.evictions;
                }
                self.put(node, found);
                self.raised.push(node);
            }
            // Who may be evicted changes with every eviction, for good or ill.
            if self.raised.is_empty() || self.evictions == cycle.evictions {
                return None;
            }
            self.forget(cycle, search, 0);
        }
    }
}

/// Whom the task would take room from on the node, if the node takes it then.
pub(super) fn offer(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
    node: NodeId,
    in_turn: &[TaskId],
) -> Option<Offer> {
    if !may_be_there(cycle, search, node) {
        return None;
    }
    let task = search.claimant.task;
    if is_about_amounts(cycle, task) {
        let view = cycle.view();
        return search.offer(view, view.tables.shape_of(task), node, in_turn);
    }
    tried(cycle, search, node, in_turn)
}

/// Whether the task may be on the node, whoever leaves it.
pub(super) fn may_be_there(cycle: &Cycle<'_, '_>, search: &Search<'_>, node: NodeId) -> bool {
    let task = search.claimant.task;
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    let home = together::home(view.tables, task, Room::Later);
    // Who leaves may make room within the queue's limit, and no other rule changes with that.
    home.refuses(node).is_none()
        && search.rules.suits(view, shape, node).is_none()
        && footing::refuses(cycle, task, node).is_none_or(|why| why == Refusal::NodeGroupFull)
}

/// Whether nothing that is on a node but amounts decides whether it takes the task.
pub(super) fn is_about_amounts(cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
    let view = cycle.view();
    view.tables.shape_of(task).spec.is_about_amounts()
        && !footing::is_limited(cycle, task)
        && !coupling::concerns(view, task)
}

/// The same where more than amounts decide: found by evicting one after the other, and sparing those
/// without whom it does as well.
fn tried(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
    node: NodeId,
    in_turn: &[TaskId],
) -> Option<Offer> {
    let task = search.claimant.task;
    let candidates = search.candidates(cycle.view(), in_turn);
    let mark = cycle.trial.mark();
    let (gang, cause) = (search.claimant.gang, search.against.cause());
    let mut victims = Vec::new();
    for victim in candidates {
        if will_take(cycle, task, node) {
            break;
        }
        cycle.trial.evict(victim, gang, cause);
        victims.push(victim);
    }
    let mut offer = None;
    if will_take(cycle, task, node) {
        let spared = match search.rules.is_as_upstream(Difference::MinimalVictims) {
            true => 0,
            false => victims.len(),
        };
        for at in (0..spared).rev() {
            let here = cycle.trial.mark();
            cycle.trial.spare(victims[at]);
            if will_take(cycle, task, node) {
                victims.remove(at);
            } else {
                cycle.trial.rewind(here);
            }
        }
        let cost = search.cost_of(cycle.trial.tables(), &victims, 1);
        offer = Some(Offer { cost, victims });
    }
    cycle.trial.rewind(mark);
    offer
}

/// Whether the node takes the task once everybody on the way out is gone.
pub(crate) fn will_take(cycle: &mut Cycle<'_, '_>, task: TaskId, node: NodeId) -> bool {
    has_later(cycle, task, node) && cycle.refuses(task, node, Room::Later).is_none()
}

/// The same as far as the pods elsewhere have no say.
fn has_later(cycle: &Cycle<'_, '_>, task: TaskId, node: NodeId) -> bool {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    view.tables.node(node).known
        && lacks(view, shape, node, Room::Later).is_none()
        && cycle.rules.suits(view, shape, node).is_none()
        && footing::refuses(cycle, task, node).is_none()
        && cycle
            .rules
            .has_room(view, shape, node, Room::Later)
            .is_none()
        && together::home(view.tables, task, Room::Later)
            .refuses(node)
            .is_none()
}
