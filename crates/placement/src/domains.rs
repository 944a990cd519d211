//! Where tasks that must be close together may go: hyper-nodes, the lowest tier first, and inside the
//! chosen one as few of the lower ones as possible.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Closeness, DomainId, Highest, NodeId, Reason, Shape, Tables, TaskId, Topology, Vector, Within,
};

use crate::arguments::Switched;
use crate::cycle::Cycle;
use crate::feasibility::Index;
use crate::footing::Asker;
use crate::plugin::{Score, View};

/// The nodes to which a search is confined.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// What to call it.
    pub(crate) name: Within,
    /// The hyper-node of all of them, if it is one that confines it, and the one in it that is being
    /// filled.
    domain: Option<(DomainId, DomainId)>,
    nodes: Arc<[NodeId]>,
    /// How many tasks are still to come.
    wanted: u32,
}

impl Scope {
    fn of_domain(topology: &Topology, id: DomainId) -> Scope {
        let domain = topology.domain(id);
        Scope {
            name: Within::HyperNode(domain.name.clone()),
            domain: Some((id, id)),
            nodes: domain.nodes.clone(),
            wanted: 1,
        }
    }

    /// All its nodes, in order of id.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Whether the node belongs to it.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    /// The best node for a task of the shape. `pick` finds the best of some nodes. The domain that is
    /// being filled comes first; where it is full, the next one is sought as near to it as there is
    /// one: the smallest that takes all tasks that are still to come, else the largest.
    pub(crate) fn best(
        &mut self,
        view: View<'_>,
        shape: &Shape,
        index: &Index,
        pick: impl Fn(&[NodeId]) -> Option<NodeId>,
    ) -> Option<NodeId> {
        let topology = view.tables.topology();
        let Some((domain, here)) = self.domain else {
            return pick(&self.nodes);
        };
        let mut found = None;
        for level in topology.up_from(here) {
            let is_leaf = topology.domain(level).children.is_empty();
            let target = if level == here && is_leaf {
                level
            } else {
                self.descend(view, shape, index, level)
            };
            let nodes = &topology.domain(target).nodes;
            found = pick(nodes).map(|node| (target, node)).or_else(|| {
                let node = pick(&topology.domain(level).nodes)?;
                Some((topology.lowest(node)?, node))
            });
            if found.is_some() || level == domain {
                break;
            }
        }
        let (target, node) = found?;
        self.domain = Some((domain, target));
        self.wanted = self.wanted.saturating_sub(1).max(1);
        Some(node)
    }

    /// From a domain down to one without children that takes tasks of the shape.
    fn descend(&self, view: View<'_>, shape: &Shape, index: &Index, from: DomainId) -> DomainId {
        let topology = view.tables.topology();
        let mut at = from;
        loop {
            let mut best: Option<(Suits, DomainId)> = None;
            for child in &topology.domain(at).children {
                let nodes = &topology.domain(*child).nodes;
                let slots = slots(view, shape, index, nodes, u32::MAX);
                let own = own_slots(view, shape, index, nodes, slots);
                let suits = Suits::of(slots, own, self.wanted);
                if slots > 0 && best.is_none_or(|(most, _)| suits > most) {
                    best = Some((suits, *child));
                }
            }
            match best {
                Some((_, child)) => at = child,
                None => return at,
            }
        }
    }
}

/// How well a domain suits tasks, the better the greater: its own nodes take all of them, or those of other
/// schedulers do with them, and the fewest places are left over; else it has the most places, own ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suits {
    InPart { own: u32, all: u32 },
    WithOthers(Reverse<u32>),
    Alone(Reverse<u32>),
}

impl Suits {
    fn of(all: u32, own: u32, wanted: u32) -> Suits {
        match wanted {
            _ if own >= wanted => Suits::Alone(Reverse(all)),
            _ if all >= wanted => Suits::WithOthers(Reverse(all)),
            _ => Suits::InPart { own, all },
        }
    }
}

/// How many of those slots are not on nodes of other schedulers, which come last where nodes are given out in
/// shards.
fn own_slots(view: View<'_>, shape: &Shape, index: &Index, nodes: &[NodeId], all: u32) -> u32 {
    if view.tables.shard().is_none() {
        return all;
    }
    let own = |node: &NodeId| !view.tables.node(*node).spec.foreign;
    let nodes: Vec<NodeId> = nodes.iter().copied().filter(own).collect();
    slots(view, shape, index, &nodes, u32::MAX)
}

/// How many tasks of the shape the nodes take by their amounts alone, counted up to `most`.
pub(crate) fn slots(
    view: View<'_>,
    shape: &Shape,
    index: &Index,
    nodes: &[NodeId],
    most: u32,
) -> u32 {
    let mut sum = 0_u32;
    for node in nodes {
        if !index.takes(*node) {
            continue;
        }
        let row = view.tables.node(*node);
        let wanted = shape.held.entries().filter(|(_, need)| *need > 0);
        let fits = wanted.map(|(kind, need)| row.free(kind) / need).min();
        sum = sum.saturating_add(u32::try_from(fits.unwrap_or(1)).unwrap_or(u32::MAX));
        if sum >= most {
            return most;
        }
    }
    sum
}

/// The scopes that may hold tasks which must be this close together, some of which are on `placed`
/// already, each with its tier; the lowest tiers first. None where they may be anywhere: nobody has
/// described the network and any tier would do, or nobody is to look at it.
pub(crate) fn allowed(
    view: View<'_>,
    closeness: &Closeness,
    placed: &[NodeId],
    within: Option<&Scope>,
) -> Result<Vec<(u32, Scope)>, Reason> {
    match closeness {
        Closeness::HyperNode(_) if view.config.bonds.hyper_nodes == Switched::Off => Ok(Vec::new()),
        Closeness::HyperNode(highest) => {
            in_hyper_nodes(view.tables.topology(), highest, placed, within)
        }
        Closeness::Label(key) => Ok(with_one_value(view.tables, key, placed, within)),
    }
}

fn in_hyper_nodes(
    topology: &Topology,
    highest: &Highest,
    placed: &[NodeId],
    within: Option<&Scope>,
) -> Result<Vec<(u32, Scope)>, Reason> {
    let missing = |is_scattered| Reason::NoHyperNode {
        highest: highest.clone(),
        is_scattered,
    };
    let Some((_, top)) = topology.tiers() else {
        return match highest {
            Highest::Any => Ok(Vec::new()),
            _ => Err(missing(false)),
        };
    };
    let limit = match highest {
        Highest::Any => Some(top),
        Highest::Tier(tier) => Some(*tier),
        Highest::Named(name) => topology.tier_named(name),
    };
    let limit = limit.ok_or_else(|| missing(false))?;
    let above = within.and_then(|scope| scope.domain).map(|(id, _)| id);
    let is_inside = |id| above.is_none_or(|top| topology.up_from(id).any(|up| up == top));
    // Where a node was that is no more, nobody can be close to it.
    let whole = topology.top().map(|top| topology.domain(top));
    let is_somewhere = |node: &&NodeId| whole.is_some_and(|whole| whole.has(**node));
    let placed: Vec<NodeId> = placed.iter().filter(is_somewhere).copied().collect();
    let mut some_tier = false;
    let mut scopes = Vec::new();
    for (id, domain) in topology.domains() {
        if domain.tier > limit || !is_inside(id) {
            continue;
        }
        some_tier = true;
        if placed.iter().all(|node| domain.has(*node)) {
            scopes.push((domain.tier, Scope::of_domain(topology, id)));
        }
    }
    match scopes.is_empty() {
        true => Err(missing(some_tier)),
        false => Ok(scopes),
    }
}

/// One scope for each value of the label; what has a place already decides.
fn with_one_value(
    tables: &Tables,
    key: &Arc<str>,
    placed: &[NodeId],
    within: Option<&Scope>,
) -> Vec<(u32, Scope)> {
    let value_of = |node: NodeId| tables.node(node).spec.labels.get(key);
    let given = placed.iter().find_map(|node| value_of(*node));
    let mut values: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (id, _) in tables.nodes() {
        let is_inside = within.is_none_or(|scope| scope.contains(id));
        let value = value_of(id).filter(|value| given.is_none_or(|given| given == *value));
        if let Some(value) = value.filter(|_| is_inside) {
            values.entry(value).or_default().push(id);
        }
    }
    let scope = |value: Option<&str>, nodes: Vec<NodeId>| Scope {
        name: Within::Label {
            key: key.clone(),
            value: value.map(Into::into),
        },
        domain: None,
        nodes: nodes.into(),
        wanted: 1,
    };
    if values.is_empty() {
        return vec![(0, scope(None, Vec::new()))];
    }
    let scopes = values.into_iter();
    scopes
        .map(|(value, nodes)| (0, scope(Some(value), nodes)))
        .collect()
}

/// A scope for tasks, by how well it suits.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    /// The scope.
    pub(crate) scope: Scope,
    /// How many of the tasks find room there, were they alone of their shape.
    pub(crate) slots: u32,
    /// How many of them on nodes that are not other schedulers'.
    own: u32,
    tier: u32,
    score: Score,
}

/// Scopes for the tasks, of which so many are needed: the lowest tier first, in it those of which own nodes
/// alone hold them, of these the one with the highest score, then the fullest. Those that cannot take as many come last, the roomiest of the
/// highest tier at the very end.
pub(crate) fn ranked(
    cycle: &mut Cycle<'_, '_>,
    scopes: Vec<(u32, Scope)>,
    tasks: &[TaskId],
    needed: u32,
) -> Vec<Ranked> {
    let mut by_asker: BTreeMap<Asker, u32> = BTreeMap::new();
    for task in tasks {
        let asker = cycle.rules.asker(cycle.view(), *task);
        *by_asker.entry(asker).or_default() += 1;
    }
    let mut ranked: Vec<Ranked> = scopes
        .into_iter()
        .map(|(tier, mut scope)| {
            scope.wanted = needed.max(1);
            Ranked {
                scope,
                slots: 0,
                own: 0,
                tier,
                score: 0,
            }
        })
        .collect();
    for (asker, count) in by_asker {
        let view = cycle.rules.view(cycle.trial.tables(), &cycle.state);
        let index = cycle.indexes.synced(cycle.rules, view, &asker);
        let shape = view.tables.shape(asker.0);
        // Of one shape the room beyond the need tells the fuller one.
        let is_alone = count as usize == tasks.len();
        for row in &mut ranked {
            let found = slots(view, shape, index, &row.scope.nodes, u32::MAX);
            let own = own_slots(view, shape, index, &row.scope.nodes, found);
            let counted = |found: u32| if is_alone { found } else { found.min(count) };
            row.slots = row.slots.saturating_add(counted(found));
            row.own = row.own.saturating_add(counted(own));
        }
    }
    let view = cycle.rules.view(cycle.trial.tables(), &cycle.state);
    let sums = cycle.indexes.domain_sums(view.tables);
    for row in &mut ranked {
        if let Some((id, _)) = row.scope.domain {
            row.score = cycle.rules.hyper_node_order(view, sums, id, tasks);
        }
    }
    // Stable: among equals the first one.
    ranked.sort_by_key(|row| {
        let suits = row.slots >= needed;
        let score = if suits { row.score } else { 0 };
        let needs_others = suits && row.own < needed;
        (!suits, row.tier, needs_others, Reverse(score), row.slots)
    });
    ranked
}

/// Where tasks of a gang are.
pub(crate) fn places(view: View<'_>, tasks: impl IntoIterator<Item = TaskId>) -> Vec<NodeId> {
    let rows = tasks.into_iter().map(|task| view.tables.task(task));
    let placed = rows.filter(|row| row.phase.is_allocated());
    let mut nodes: Vec<NodeId> = placed.filter_map(|row| row.node).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

/// What is held on each domain's nodes, and what they have; kept from cycle to cycle.
#[derive(Clone, Debug, Default)]
pub struct DomainSums {
    serial: u64,
    cursor: u64,
    sums: Vec<(Vector, Vector)>,
    /// What each node adds, and to which domains.
    parts: Vec<(Vector, Vector)>,
    above: Vec<Vec<DomainId>>,
    /// The tiers that there are below the whole cluster, the lowest first.
    tiers: Vec<u32>,
}

impl DomainSums {
    /// Used and allocatable of the domain's nodes together.
    pub(crate) fn of(&self, domain: DomainId) -> (&Vector, &Vector) {
        let (used, whole) = &self.sums[domain.index()];
        (used, whole)
    }

    /// The tiers that there are below the whole cluster, the lowest first.
    pub(crate) fn tiers(&self) -> impl Iterator<Item = u32> {
        self.tiers.iter().copied()
    }

    /// Follows the tables.
    pub(crate) fn sync(&mut self, tables: &Tables) {
        let serial = tables.topology().serial();
        let changed = tables.changed_since(self.cursor);
        match changed.filter(|_| self.serial == serial) {
            Some(changed) => {
                for node in changed {
                    self.update(tables, *node);
                }
            }
            None => self.rebuild(tables),
        }
        self.serial = serial;
        self.cursor = tables.log_end();
    }

    fn rebuild(&mut self, tables: &Tables) {
        let span = tables.node_span();
        let topology = tables.topology();
        *self = DomainSums::default();
        self.parts.resize(span, Default::default());
        self.above.resize(span, Vec::new());
        for (id, domain) in topology.domains() {
            self.sums.push(Default::default());
            if domain.parent.is_some() {
                self.tiers.push(domain.tier);
            }
            for node in &*domain.nodes {
                self.above[node.index()].push(id);
            }
        }
        self.tiers.dedup();
        for at in 0..span {
            self.update(tables, NodeId::from(at));
        }
    }

    fn update(&mut self, tables: &Tables, id: NodeId) {
        // A node that is newer than the tree is in none of its domains.
        let Some(above) = self.above.get(id.index()) else {
            return;
        };
        let row = tables.find_node(id).filter(|row| row.known);
        let now = row.map_or_else(Default::default, |row| {
            (row.used.clone(), row.spec.allocatable.clone())
        });
        let was = std::mem::replace(&mut self.parts[id.index()], now);
        let now = &self.parts[id.index()];
        for domain in above {
            let (used, whole) = &mut self.sums[domain.index()];
            used.sub(&was.0);
            used.add(&now.0);
            whole.sub(&was.1);
            whole.add(&now.1);
        }
    }
}
