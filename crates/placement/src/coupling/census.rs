//! How many of which pods are in which domain, kept from task to task: what a change of a node moves is
//! counted anew, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Inclusion, Node, NodeId, NodeSpec, NodeTerm, Phase, PodTerm, Requirement, Shape, ShapeId,
    Spread, Tables, Taint, TaintEffect, Task, Toleration,
};

use crate::plugin::Room;

/// The most entries (nodes and domains of a key, nodes and domains of a count) that are kept; what was
/// used longest ago goes first.
const ENTRIES_MAX: usize = 4_000_000;

/// A node that is in no domain of a key.
const OUTSIDE: u32 = u32::MAX;

/// Which tasks are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crowd {
    /// Those of whom a term speaks.
    Spoken(PodTerm),
    /// Those of whom each of several terms speaks.
    SpokenByAll(Vec<PodTerm>),
    /// Those of a shape, also where the node has gone and only they are left.
    Shaped {
        id: ShapeId,
        /// The number that tells it from others of this id.
        serial: u64,
    },
    /// Those that a spread counts, on the nodes that its pod may choose.
    Spread {
        selector: Vec<Requirement>,
        namespace: Arc<str>,
        node_selector: Vec<Requirement>,
        node_affinity: Option<Vec<NodeTerm>>,
        /// What its pod bears, where only such nodes count.
        tolerations: Option<Vec<Toleration>>,
        /// By what else its pod is spread: nodes in no domain of one of these keys are passed over.
        keys: Vec<Arc<str>>,
    },
}

impl Crowd {
    /// Kubernetes: only a pod counts of which all terms of a required affinity speak, each by its own key.
    pub(super) fn near(terms: &[PodTerm]) -> Crowd {
        match terms {
            [term] => Crowd::Spoken(term.clone()),
            terms => Crowd::SpokenByAll(terms.to_vec()),
        }
    }

    pub(super) fn of_shape(tables: &Tables, id: ShapeId) -> Crowd {
        let serial = tables.shape(id).serial;
        Crowd::Shaped { id, serial }
    }

    /// Kubernetes, nodeAffinityPolicy and nodeTaintsPolicy: where they say Honor, only nodes make domains
    /// that the pod selects, and whose taints it bears. kube-scheduler passes over nodes that lack a key of one
    /// of the pod's spreads, by all those that are required, or by all that are wished for.
    pub(super) fn of_spread(spread: &Spread, shape: &Shape) -> Crowd {
        let spec = &shape.spec;
        let (node_selector, node_affinity) = match spread.affinity {
            Inclusion::Honor => (spec.node_selector.clone(), spec.node_affinity.clone()),
            Inclusion::Ignore => (Vec::new(), None),
        };
        let others = spec
            .spread
            .iter()
            .filter(|it| it.required == spread.required && it.topology_key != spread.topology_key);
        let keys: BTreeSet<Arc<str>> = others.map(|it| it.topology_key.clone()).collect();
        Crowd::Spread {
            keys: keys.into_iter().collect(),
            selector: spread.selector.clone(),
            namespace: spread.namespace.clone(),
            node_selector,
            node_affinity,
            tolerations: (spread.taints == Inclusion::Honor).then(|| spec.tolerations.clone()),
        }
    }

    fn has(&self, task: &Task) -> bool {
        match self {
            Crowd::Spoken(term) => term.selects(&task.key.namespace, &task.labels),
            Crowd::SpokenByAll(terms) => is_meant_by_all(terms, task),
            Crowd::Shaped { id, .. } => task.shape == *id,
            Crowd::Spread {
                selector,
                namespace,
                ..
            } => task.key.namespace == *namespace && model::matches_all(selector, &task.labels),
        }
    }

    /// Whether tasks are counted on the node.
    fn looks_at(&self, node: &Node) -> bool {
        match self {
            Crowd::Spoken(_) | Crowd::SpokenByAll(_) => node.known,
            Crowd::Shaped { .. } => true,
            Crowd::Spread {
                node_selector,
                node_affinity,
                tolerations,
                keys,
                ..
            } => {
                let spec = &node.spec;
                let accepts = |terms: &Vec<NodeTerm>| {
                    let mut terms = terms.iter();
                    terms.any(|term| term.accepts(&spec.name, &spec.labels))
                };
                node.known
                    && keys.iter().all(|key| spec.labels.get(key).is_some())
                    && model::matches_all(node_selector, &spec.labels)
                    && node_affinity.as_ref().is_none_or(accepts)
                    && tolerations.as_ref().is_none_or(|it| bears(it, spec))
            }
        }
    }
}

/// Whether each of the terms speaks of the task.
pub(crate) fn is_meant_by_all(terms: &[PodTerm], task: &Task) -> bool {
    let mut terms = terms.iter();
    terms.all(|term| term.selects(&task.key.namespace, &task.labels))
}

/// Whether the tolerations cover all of the node's taints that keep pods off.
fn bears(tolerations: &[Toleration], node: &NodeSpec) -> bool {
    let hard = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
    let mut taints = node.taints.iter().filter(hard);
    taints.all(|taint| tolerations.iter().any(|it| it.covers(taint)))
}

/// Nodes and tasks in a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sums {
    /// Nodes that a spread's pod may choose.
    pub(super) nodes: u32,
    /// Tasks that hold room and stay.
    held: u32,
    /// Tasks that hold room and are on their way out.
    leaving: u32,
    /// Tasks that are promised room.
    promised: u32,
}

impl Sums {
    const NONE: Sums = Sums {
        nodes: 0,
        held: 0,
        leaving: 0,
        promised: 0,
    };

    /// Of those there are: later without those on their way out and with the promised ones.
    pub(super) fn present(self, room: Room) -> i64 {
        match room {
            Room::Now => i64::from(self.held) + i64::from(self.leaving),
            Room::Later => self.staying(room),
        }
    }

    /// The same, but those on their way out have gone.
    pub(super) fn staying(self, room: Room) -> i64 {
        match room {
            Room::Now => i64::from(self.held),
            Room::Later => i64::from(self.held) + i64::from(self.promised),
        }
    }

    /// A promise is kept: who comes now must suit whoever comes later.
    pub(super) fn with_a_say(self, room: Room) -> i64 {
        match room {
            Room::Now => self.present(room) + i64::from(self.promised),
            Room::Later => self.staying(room),
        }
    }

    fn add(&mut self, other: Sums) {
        self.nodes += other.nodes;
        self.held += other.held;
        self.leaving += other.leaving;
        self.promised += other.promised;
    }

    fn take(&mut self, other: Sums) {
        self.nodes -= other.nodes;
        self.held -= other.held;
        self.leaving -= other.leaving;
        self.promised -= other.promised;
    }
}

/// Which domain of a topology key each node is in. Domains are numbered in the order in which they are
/// met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    /// A number that no other numbering of domains ever has.
    pub(crate) serial: u64,
    cursor: u64,
    used: u64,
    names: BTreeMap<Arc<str>, u32>,
    of: Arc<Vec<u32>>,
    /// How many nodes are in each domain.
    sizes: Vec<u32>,
    /// How many domains have more than one.
    shared: u32,
}

impl Column {
    /// How many domains there are, with those in which no node is any more.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// The domain of each node, by its id.
    pub(super) fn domains(&self) -> &Arc<Vec<u32>> {
        &self.of
    }

    /// Whether each node is in a domain of its own, or in none.
    pub(crate) fn is_by_node(&self) -> bool {
        self.shared == 0
    }

    fn entries(&self) -> usize {
        self.of.len() + self.names.len()
    }

    fn sync(&mut self, tables: &Tables, key: &str) {
        if self.cursor == tables.log_end() {
            return;
        }
        let span = tables.node_span();
        let changed = tables.changed_since(self.cursor);
        self.cursor = tables.log_end();
        Arc::make_mut(&mut self.of).resize(span, OUTSIDE);
        match changed.filter(|changed| changed.len() < span) {
            Some(changed) => changed
                .iter()
                .for_each(|node| self.read(tables, key, *node)),
            None => (0..span).for_each(|at| self.read(tables, key, NodeId::from(at))),
        }
    }

    /// Reads the node's label again.
    fn read(&mut self, tables: &Tables, key: &str, node: NodeId) {
        let row = tables.find_node(node);
        let value = row.and_then(|row| row.spec.labels.get(key));
        let now = value.map_or(OUTSIDE, |value| self.numbered(value));
        let of = Arc::make_mut(&mut self.of);
        let was = std::mem::replace(&mut of[node.index()], now);
        if was == now {
            return;
        }
        if was != OUTSIDE {
            let size = &mut self.sizes[was as usize];
            *size -= 1;
            self.shared -= u32::from(*size == 1);
        }
        if now != OUTSIDE {
            let size = &mut self.sizes[now as usize];
            *size += 1;
            self.shared += u32::from(*size == 2);
        }
    }

    /// The number of the domain of this name, a new one if it is met for the first time.
    fn numbered(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = NodeId::from(self.names.len()).0;
        self.names.insert(name.into(), number);
        self.sizes.push(0);
        number
    }
}

/// The number of the node's domain, if it is in one.
pub(super) fn domain(domains: &[u32], node: NodeId) -> Option<u32> {
    let number = domains.get(node.index()).copied();
    number.filter(|number| *number != OUTSIDE)
}

/// Where a crowd is. Domains and nodes without any of it are not listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    column: u64,
    cursor: u64,
    used: u64,
    /// What each node adds, and to which domain.
    parts: BTreeMap<NodeId, (u32, Sums)>,
    pub(super) sums: BTreeMap<u32, Sums>,
    /// How many domains have so many.
    levels: BTreeMap<Sums, u32>,
    pub(super) total: Sums,
}

/// One way to tell nodes apart.
pub(crate) struct Look<'c> {
    column: &'c Column,
    tally: Option<&'c Tally>,
}

/// What there is to tell a node by: its domain, or how many are there.
pub(crate) type Spot = (u32, Sums);

impl Look<'_> {
    /// What there is to tell the node by.
    pub(crate) fn spot(&self, node: NodeId) -> Spot {
        match (domain(&self.column.of, node), self.tally) {
            (None, _) => (OUTSIDE, Sums::NONE),
            (Some(domain), None) => (domain, Sums::NONE),
            (Some(domain), Some(tally)) => (0, tally.of(domain)),
        }
    }
}

impl Tally {
    /// How many there are in the domain.
    pub(super) fn of(&self, domain: u32) -> Sums {
        self.sums.get(&domain).copied().unwrap_or_default()
    }

    /// The fewest that are in a domain where there are any nodes or tasks, if there is one.
    pub(super) fn least(&self, of: impl Fn(Sums) -> i64) -> Option<i64> {
        self.levels.keys().map(|sums| of(*sums)).min()
    }

    fn entries(&self) -> usize {
        1 + self.parts.len() + self.sums.len()
    }

    fn sync(&mut self, tables: &Tables, column: &Column, crowd: &Crowd) {
        let changed = tables.changed_since(self.cursor);
        let is_same = self.column == column.serial;
        match changed.filter(|changed| is_same && changed.len() < tables.node_span()) {
            Some(changed) => {
                for node in changed {
                    self.update(*node, part(tables, column, crowd, *node));
                }
            }
            None => self.rebuild(tables, column, crowd),
        }
        self.column = column.serial;
        self.cursor = tables.log_end();
    }

    fn rebuild(&mut self, tables: &Tables, column: &Column, crowd: &Crowd) {
        let part = |node| Some((node, part(tables, column, crowd, node)?));
        self.parts = match crowd {
            Crowd::Shaped { id, .. } => {
                let tasks = tables.coupled_shapes().get(id).into_iter().flatten();
                let nodes: BTreeSet<NodeId> =
                    tasks.filter_map(|task| tables.task(*task).node).collect();
                nodes.into_iter().filter_map(part).collect()
            }
            Crowd::Spoken(_) | Crowd::SpokenByAll(_) | Crowd::Spread { .. } => {
                let nodes = tables.all_nodes();
                nodes.filter_map(|(node, _)| part(node)).collect()
            }
        };
        let mut sums = vec![Sums::NONE; column.count()];
        self.total = Sums::NONE;
        for (domain, part) in self.parts.values() {
            sums[*domain as usize].add(*part);
            self.total.add(*part);
        }
        let sums = (0..).zip(sums);
        self.sums = sums.filter(|(_, sums)| *sums != Sums::NONE).collect();
        self.levels.clear();
        for sums in self.sums.values() {
            *self.levels.entry(*sums).or_default() += 1;
        }
    }

    fn update(&mut self, node: NodeId, now: Option<(u32, Sums)>) {
        let was = match now {
            Some(part) => self.parts.insert(node, part),
            None => self.parts.remove(&node),
        };
        if was == now {
            return;
        }
        if let Some((domain, part)) = was {
            self.total.take(part);
            self.alter(domain, |sums| sums.take(part));
        }
        if let Some((domain, part)) = now {
            self.total.add(part);
            self.alter(domain, |sums| sums.add(part));
        }
    }

    fn alter(&mut self, domain: u32, change: impl FnOnce(&mut Sums)) {
        let was = self.of(domain);
        let mut now = was;
        change(&mut now);
        if was != Sums::NONE {
            let domains = self.levels.entry(was).or_default();
            *domains -= 1;
            if *domains == 0 {
                self.levels.remove(&was);
            }
        }
        if now == Sums::NONE {
            self.sums.remove(&domain);
            return;
        }
        self.sums.insert(domain, now);
        *self.levels.entry(now).or_default() += 1;
    }
}

/// What the node adds to the crowd, and to which domain.
fn part(tables: &Tables, column: &Column, crowd: &Crowd, id: NodeId) -> Option<(u32, Sums)> {
    let domain = domain(&column.of, id)?;
    let node = tables.find_node(id).filter(|node| crowd.looks_at(node))?;
    let mut sums = Sums {
        nodes: u32::from(matches!(crowd, Crowd::Spread { .. })),
        ..Sums::NONE
    };
    for task in node.tasks.iter().chain(&node.promised) {
        let row = tables.task(*task);
        match row.phase {
            _ if !crowd.has(row) => {}
            Phase::Releasing => sums.leaving += 1,
            Phase::Pipelined => sums.promised += 1,
            _ => sums.held += 1,
        }
    }
    (sums != Sums::NONE).then_some((domain, sums))
}

/// All that is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    columns: BTreeMap<Arc<str>, Column>,
    tallies: BTreeMap<(Arc<str>, Crowd), Tally>,
    uses: u64,
    serials: u64,
    entries: usize,
}

impl Census {
    /// Somebody begins to ask: what was used before may be forgotten where it is too much.
    pub(super) fn begin(&mut self) {
        self.uses += 1;
        if self.entries > ENTRIES_MAX {
            self.forget(ENTRIES_MAX / 2);
        }
    }

    /// The domains of a key, up to date with the tables.
    pub(crate) fn column(&mut self, tables: &Tables, key: &Arc<str>) -> &Column {
        let column = match self.columns.contains_key(key) {
            true => self.columns.get_mut(key),
            false => Some(self.columns.entry(key.clone()).or_default()),
        };
        let column = column.expect("it was just put there");
        self.entries -= column.entries();
        // Names that come and go would pile up otherwise. Who asks at the moment keeps the numbers.
        let is_long = column.names.len() > tables.node_span() * 2 + 64;
        if column.serial == 0 || is_long && column.used != self.uses {
            self.serials += 1;
            *column = Column {
                serial: self.serials,
                ..Column::default()
            };
        }
        column.sync(tables, key);
        column.used = self.uses;
        self.entries += column.entries();
        column
    }

    /// How to tell nodes apart by their domain of the key, or by how many of a crowd are in it, as it was
    /// when that was last asked for.
    pub(crate) fn look(&self, key: &Arc<str>, crowd: Option<&Crowd>) -> Look<'_> {
        let tally = |crowd: &Crowd| &self.tallies[&(key.clone(), crowd.clone())];
        Look {
            column: &self.columns[key],
            tally: crowd.map(tally),
        }
    }

    /// Where the crowd is, by domains of the key, up to date with the tables.
    pub(crate) fn count(
        &mut self,
        tables: &Tables,
        key: &Arc<str>,
        crowd: &Crowd,
    ) -> (&Column, &Tally) {
        self.column(tables, key);
        let column = &self.columns[key];
        let tally = self.tallies.entry((key.clone(), crowd.clone()));
        let tally = tally.or_insert_with(|| {
            self.entries += 1;
            Tally::default()
        });
        self.entries -= tally.entries();
        tally.sync(tables, column, crowd);
        tally.used = self.uses;
        self.entries += tally.entries();
        (column, tally)
    }

    /// Forgets what was used longest ago until no more than so many entries are left.
    pub(super) fn forget(&mut self, keep: usize) {
        let columns = self.columns.values().map(|column| column.used);
        let tallies = self.tallies.values().map(|tally| tally.used);
        let mut times: Vec<u64> = columns.chain(tallies).collect();
        times.sort_unstable();
        times.dedup();
        for time in times {
            if self.entries <= keep {
                return;
            }
            self.columns.retain(|_, column| column.used != time);
            self.tallies.retain(|_, tally| tally.used != time);
            let columns = self.columns.values().map(Column::entries);
            let tallies = self.tallies.values().map(Tally::entries);
            self.entries = columns.chain(tallies).sum();
        }
    }
}
