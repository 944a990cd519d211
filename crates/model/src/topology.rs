//! The network's tree: hyper-nodes over nodes, and how close together tasks must be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::ids::{DomainId, NodeId};
use crate::labels::Requirement;

/// So many hyper-nodes that do not hang below one that names them are kept for it, the others are counted: as
/// many may name each other as there are.
pub const MISFITS_MAX: usize = 5;

/// The name of the hyper-node above all others, which nobody writes down.
pub const CLUSTER_TOP: &str = "<cluster-top-hypernode>";

/// A test of names, compiled by the wall; the tables only ask it.
#[derive(Clone)]
pub struct Pattern {
    text: Arc<str>,
    accepts: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Pattern {
    /// A test that is told from others by its text.
    pub fn new(
        text: impl Into<Arc<str>>,
        accepts: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Pattern {
        Pattern {
            text: text.into(),
            accepts: Arc::new(accepts),
        }
    }

    /// Whether it accepts the name.
    pub fn accepts(&self, name: &str) -> bool {
        (self.accepts)(name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

/// Which nodes or hyper-nodes a member stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The one of this name.
    Name(Arc<str>),
    /// Those whose name the pattern accepts.
    Pattern(Pattern),
    /// Those whose labels meet the requirements; only nodes have labels here.
    Labels(Vec<Requirement>),
}

/// One member of a hyper-node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// Nodes.
    Nodes(Selector),
    /// Hyper-nodes of a lower tier.
    HyperNodes(Selector),
}

/// A hyper-node as the wall gives it: nodes that reach one another at the same cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperNodeSpec {
    /// Its name.
    pub name: Arc<str>,
    /// How far its nodes are from one another: the lower the closer.
    pub tier: u32,
    /// What that tier is called, if anything.
    pub tier_name: Arc<str>,
    /// What it is made of.
    pub members: Vec<Member>,
    /// What is wrong with further members, in plain words: they cannot be read, or would be too large, and stand
    /// for nothing.
    pub unreadable: Vec<Arc<str>>,
}

/// The greatest tier that may hold all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Highest {
    /// Nobody says: any tier, the lower the better.
    #[default]
    Any,
    /// This tier.
    Tier(u32),
    /// The tier of this name.
    Named(Arc<str>),
}

/// How close together tasks must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// Within one hyper-node of a tier that is low enough.
    ///
    /// Volcano's soft mode asks for the lowest tier that there is and takes any: it is [`Highest::Any`].
    HyperNode(Highest),
    /// On nodes with one value of this label.
    Label(Arc<str>),
}

/// Where tasks that must be close together were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// In the hyper-node of this name.
    HyperNode(Arc<str>),
    /// On nodes with this value of the label; on those that have it at all where none is known.
    Label {
        /// The label.
        key: Arc<str>,
        /// Its value.
        value: Option<Arc<str>>,
    },
}

impl Within {
    /// In plain words, to stand before what was found there.
    pub(crate) fn words(&self) -> String {
        match self {
            Within::HyperNode(name) if **name == *CLUSTER_TOP => String::new(),
            Within::HyperNode(name) => format!("in hyper-node {name} "),
            Within::Label {
                key,
                value: Some(value),
            } => format!("where {key} is {value} "),
            Within::Label { key, value: None } => format!("where nodes have the label {key} "),
        }
    }
}

/// A hyper-node in its place in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: Arc<str>,
    /// Its tier.
    pub tier: u32,
    /// What the tier is called, if anything.
    pub tier_name: Arc<str>,
    /// The domain above; only the cluster's top has none.
    pub parent: Option<DomainId>,
    /// The domains right below, in order.
    pub children: Vec<DomainId>,
    /// All nodes in it and below it, in order of id.
    pub nodes: Arc<[NodeId]>,
    /// Those of them that are in no child.
    pub own: Vec<NodeId>,
    /// Nodes in it and below it that are other schedulers' now and still have tasks, in order of id: nothing
    /// goes there, and what is there is within the domain.
    pub left: Vec<NodeId>,
}

impl Domain {
    /// Whether the node is in it or below it.
    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    /// Whether a task on the node is within it.
    pub fn has(&self, node: NodeId) -> bool {
        self.contains(node) || self.left.binary_search(&node).is_ok()
    }
}

/// Why a hyper-node does not hang where another wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The hyper-node.
    pub child: Arc<str>,
    /// The one that names it as its member.
    pub parent: Arc<str>,
    /// Why it is not.
    pub why: Unhung,
}

impl Misfit {
    /// In plain words, to be told of the one that names the other.
    pub fn sentence(&self) -> String {
        let Misfit { child, parent, why } = self;
        match why {
            _ if child == parent => "it names itself as its member".to_owned(),
            Unhung::NotLower => {
                format!(
                    "its member {child} does not hang below it: the tier of {child} is not lower"
                )
            }
            Unhung::Elsewhere(other) => {
                format!("its member {child} does not hang below it: it hangs below {other} already")
            }
        }
    }
}

/// Why a hyper-node does not hang below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unhung {
    /// Its tier is not lower: it may even contain the other.
    NotLower,
    /// It hangs below this one already.
    Elsewhere(Arc<str>),
}

/// The tree, made anew when hyper-nodes or their nodes change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    domains: Vec<Domain>,
    lowest: Vec<Option<DomainId>>,
    misfits: Vec<Misfit>,
    /// How many hyper-nodes do not hang below one that names them, by its name.
    unhung: BTreeMap<Arc<str>, usize>,
    serial: u64,
}

impl Topology {
    /// All domains, lowest tier first, then by name; the last is the whole cluster. None where there
    /// are no hyper-nodes.
    pub fn domains(&self) -> impl DoubleEndedIterator<Item = (DomainId, &Domain)> {
        let domains = self.domains.iter().enumerate();
        domains.map(|(at, domain)| (DomainId::from(at), domain))
    }

    /// A number that no earlier tree of these tables had.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether there are no hyper-nodes.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// A domain of this tree.
    pub fn domain(&self, id: DomainId) -> &Domain {
        &self.domains[id.index()]
    }

    /// The whole cluster, if there are hyper-nodes.
    pub fn top(&self) -> Option<DomainId> {
        let last = self.domains.len().checked_sub(1)?;
        Some(DomainId::from(last))
    }

    /// The lowest domain of the node; the first by name where several of one tier have it.
    pub fn lowest(&self, node: NodeId) -> Option<DomainId> {
        self.lowest.get(node.index()).copied().flatten()
    }

    /// The domain and all above it, lowest first.
    pub fn up_from(&self, id: DomainId) -> impl Iterator<Item = DomainId> {
        std::iter::successors(Some(id), |id| self.domain(*id).parent)
    }

    /// The lowest domain that has all of the nodes; `None` without nodes or hyper-nodes.
    pub fn holding(&self, nodes: &[NodeId]) -> Option<DomainId> {
        let first = self.lowest(*nodes.first()?)?;
        let holds = |id: &DomainId| nodes.iter().all(|node| self.domain(*id).contains(*node));
        self.up_from(first).find(holds)
    }

    /// The tier of this name.
    pub fn tier_named(&self, name: &str) -> Option<u32> {
        let mut named = self.domains.iter();
        named
            .find(|domain| &*domain.tier_name == name)
            .map(|domain| domain.tier)
    }

    /// The lowest tier and that of the whole cluster.
    pub fn tiers(&self) -> Option<(u32, u32)> {
        Some((self.domains.first()?.tier, self.domains.last()?.tier))
    }

    /// Hyper-nodes that do not hang where others want them: of each of these so many as are kept.
    pub fn misfits(&self) -> &[Misfit] {
        &self.misfits
    }

    /// How many there are in all of one that wants them, by its name.
    pub fn misfits_of(&self, parent: &str) -> usize {
        self.unhung.get(parent).copied().unwrap_or(0)
    }
}

/// A hyper-node with the nodes that its members select.
pub(crate) struct Row<'a> {
    pub(crate) spec: &'a HyperNodeSpec,
    pub(crate) nodes: &'a BTreeSet<NodeId>,
    /// Those that are other schedulers'.
    pub(crate) left: &'a BTreeSet<NodeId>,
}

impl Topology {
    /// Hangs hyper-nodes below one another: a child's tier is lower than its parent's, and of several
    /// that want it the one of the lowest tier has it, then the first by name. `rows` are in order of
    /// name, `nodes` in order of id; `left` are those of other schedulers that have tasks.
    pub(crate) fn of(
        rows: &[Row<'_>],
        nodes: &[NodeId],
        left: &BTreeSet<NodeId>,
        serial: u64,
    ) -> Topology {
        let mut tree = Topology {
            serial,
            ..Topology::default()
        };
        if rows.is_empty() {
            return tree;
        }
        let mut order: Vec<&Row<'_>> = rows.iter().collect();
        order.sort_by_key(|row| row.spec.tier);
        let mut by_name = BTreeMap::new();
        for (at, row) in order.iter().enumerate() {
            let id = DomainId::from(at);
            by_name.insert(row.spec.name.clone(), id);
            tree.domains.push(Domain {
                name: row.spec.name.clone(),
                tier: row.spec.tier,
                tier_name: row.spec.tier_name.clone(),
                ..Domain::default()
            });
        }
        let mut accepted = BTreeMap::new();
        for (at, row) in order.iter().enumerate() {
            let id = DomainId::from(at);
            tree.hang(id, row.spec, &by_name, &mut accepted);
        }
        tree.crown();
        tree.fill(&order, nodes);
        if !left.is_empty() {
            tree.fill_left(&order, left);
        }
        tree
    }

    /// What a pattern accepts is looked up once, though many may name it.
    fn hang<'a>(
        &mut self,
        id: DomainId,
        spec: &'a HyperNodeSpec,
        by_name: &BTreeMap<Arc<str>, DomainId>,
        accepted: &mut BTreeMap<&'a str, Arc<[DomainId]>>,
    ) {
        for member in &spec.members {
            let Member::HyperNodes(selector) = member else {
                continue;
            };
            match selector {
                Selector::Name(name) => {
                    if let Some(child) = by_name.get(name) {
                        self.hang_one(id, *child);
                    }
                }
                Selector::Pattern(pattern) => {
                    let all = accepted.entry(&pattern.text).or_insert_with(|| {
                        let all = by_name.iter().filter(|(name, _)| pattern.accepts(name));
                        all.map(|(_, child)| *child).collect()
                    });
                    for child in all.iter().filter(|child| **child != id) {
                        self.hang_one(id, *child);
                    }
                }
                Selector::Labels(_) => {}
            }
        }
        self.domains[id.index()].children.sort();
    }

    fn hang_one(&mut self, id: DomainId, child: DomainId) {
        let tier = self.domain(id).tier;
        let row = &self.domains[child.index()];
        let over = match row.parent {
            _ if row.tier >= tier => None,
            Some(parent) if parent == id => return,
            Some(parent) => Some(parent),
            None => {
                self.domains[child.index()].parent = Some(id);
                self.domains[id.index()].children.push(child);
                return;
            }
        };
        let parent = &self.domains[id.index()].name;
        let unhung = self.unhung.entry(parent.clone()).or_default();
        *unhung += 1;
        if *unhung > MISFITS_MAX {
            return;
        }
        self.misfits.push(Misfit {
            child: row.name.clone(),
            parent: parent.clone(),
            why: match over {
                None => Unhung::NotLower,
                Some(over) => Unhung::Elsewhere(self.domain(over).name.clone()),
            },
        });
    }

    /// Puts the whole cluster above all that hang nowhere.
    fn crown(&mut self) {
        let top = DomainId::from(self.domains.len());
        let loose = self.domains.iter_mut().enumerate();
        let loose = loose.filter(|(_, domain)| domain.parent.is_none());
        let mut children = Vec::new();
        for (at, domain) in loose {
            domain.parent = Some(top);
            children.push(DomainId::from(at));
        }
        let highest = self.domains.iter().map(|domain| domain.tier).max();
        self.domains.push(Domain {
            name: CLUSTER_TOP.into(),
            tier: highest.unwrap_or(0).saturating_add(1),
            children,
            ..Domain::default()
        });
    }

    /// Collects the nodes of each domain, lowest tiers first.
    fn fill(&mut self, order: &[&Row<'_>], nodes: &[NodeId]) {
        for at in 0..self.domains.len() {
            let mut below: Vec<NodeId> = Vec::new();
            for child in &self.domains[at].children {
                below.extend(self.domain(*child).nodes.iter());
            }
            below.sort();
            below.dedup();
            let direct: Vec<NodeId> = match order.get(at) {
                Some(row) => row.nodes.iter().copied().collect(),
                None => nodes.to_vec(),
            };
            let is_own = |node: &NodeId| below.binary_search(node).is_err();
            let own: Vec<NodeId> = direct.into_iter().filter(is_own).collect();
            below.extend(&own);
            below.sort();
            let id = DomainId::from(at);
            for node in &own {
                if self.lowest.len() <= node.index() {
                    self.lowest.resize(node.index() + 1, None);
                }
                self.lowest[node.index()].get_or_insert(id);
            }
            let domain = &mut self.domains[at];
            domain.nodes = below.into();
            domain.own = own;
        }
    }

    /// The same of those of other schedulers.
    fn fill_left(&mut self, order: &[&Row<'_>], left: &BTreeSet<NodeId>) {
        for at in 0..self.domains.len() {
            let own = order.get(at).map_or(left, |row| row.left);
            let mut all = own.clone();
            for child in &self.domains[at].children {
                all.extend(&self.domain(*child).left);
            }
            self.domains[at].left = all.into_iter().collect();
        }
    }
}
