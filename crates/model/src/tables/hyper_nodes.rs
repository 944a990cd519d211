//! Hyper-nodes: which nodes their members select, kept from change to change, and the tree over them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{GangId, NodeId, Tables};
use crate::labels::matches_all;
use crate::node::NodeSpec;
use crate::topology::{HyperNodeSpec, Member, Row, Selector, Topology};

/// A hyper-node's row.
#[derive(Clone, Debug)]
struct Held {
    spec: HyperNodeSpec,
    nodes: BTreeSet<NodeId>,
    /// Other schedulers' that it would have.
    left: BTreeSet<NodeId>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct HyperNodes {
    rows: BTreeMap<Arc<str>, Held>,
    /// Hyper-nodes that name a node, by the node's name.
    naming: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Hyper-nodes that select nodes in another way.
    asking: BTreeSet<Arc<str>>,
    /// Gangs whose tasks must be close together.
    close: BTreeSet<GangId>,
    /// Nodes that are other schedulers' and have tasks.
    left: BTreeSet<NodeId>,
    tree: Topology,
    is_stale: bool,
    /// Whether some hyper-node has other nodes than the tree shows.
    is_moved: bool,
}

fn selects(spec: &HyperNodeSpec, node: &NodeSpec) -> bool {
    spec.members.iter().any(|member| match member {
        Member::Nodes(Selector::Name(name)) => *name == node.name,
        Member::Nodes(Selector::Pattern(pattern)) => pattern.accepts(&node.name),
        Member::Nodes(Selector::Labels(requirements)) => matches_all(requirements, &node.labels),
        Member::HyperNodes(_) => false,
    })
}

impl HyperNodes {
    /// The node came, went, or looks otherwise.
    pub(super) fn heed_node(&mut self, id: NodeId, spec: &NodeSpec, is_known: bool) {
        if self.rows.is_empty() {
            return;
        }
        let naming = self.naming.get(&spec.name).into_iter().flatten();
        let names: Vec<Arc<str>> = naming.chain(&self.asking).cloned().collect();
        for name in names {
            let row = self.rows.get_mut(&name).expect("only rows are listed");
            self.is_moved |= match is_known && selects(&row.spec, spec) {
                true => row.nodes.insert(id),
                false => row.nodes.remove(&id),
            };
        }
        self.is_stale = true;
    }

    /// The node is another scheduler's, and tasks are on it.
    pub(super) fn leave(&mut self, id: NodeId, spec: &NodeSpec) {
        self.left.insert(id);
        for row in self.rows.values_mut() {
            if selects(&row.spec, spec) {
                row.left.insert(id);
            }
            self.is_stale = true;
        }
    }

    /// The node is ours, or nothing is left of it.
    pub(super) fn is_left_no_more(&mut self, id: NodeId) {
        if !self.left.remove(&id) {
            return;
        }
        for row in self.rows.values_mut() {
            row.left.remove(&id);
            (self.is_stale, self.is_moved) = (true, true);
        }
    }

    fn forget(&mut self, name: &str) -> Option<Held> {
        let row = self.rows.remove(name)?;
        self.asking.remove(name);
        for member in &row.spec.members {
            if let Member::Nodes(Selector::Name(node)) = member
                && let Some(naming) = self.naming.get_mut(node)
            {
                naming.remove(name);
                if naming.is_empty() {
                    self.naming.remove(node);
                }
            }
        }
        Some(row)
    }

    fn put(&mut self, spec: HyperNodeSpec, nodes: BTreeSet<NodeId>, left: BTreeSet<NodeId>) {
        for member in &spec.members {
            match member {
                Member::Nodes(Selector::Name(node)) => {
                    let naming = self.naming.entry(node.clone()).or_default();
                    naming.insert(spec.name.clone());
                }
                Member::Nodes(_) => {
                    self.asking.insert(spec.name.clone());
                }
                Member::HyperNodes(_) => {}
            }
        }
        self.rows
            .insert(spec.name.clone(), Held { spec, nodes, left });
    }
}

impl Tables {
    /// Adds or changes a hyper-node.
    pub fn put_hyper_node(&mut self, spec: HyperNodeSpec) {
        self.tick += 1;
        let held = self.hyper_nodes.rows.get(&spec.name);
        if held.is_some_and(|held| held.spec == spec) {
            return;
        }
        self.hyper_nodes.forget(&spec.name);
        let nodes = self.selected_by(&spec);
        let left = self.hyper_nodes.left.iter().copied();
        let left = left.filter(|id| selects(&spec, &self.node(*id).spec));
        let left = left.collect();
        self.hyper_nodes.put(spec, nodes, left);
        self.replant();
    }

    /// Takes a hyper-node away.
    pub fn remove_hyper_node(&mut self, name: &str) {
        self.tick += 1;
        if self.hyper_nodes.forget(name).is_some() {
            self.replant();
        }
    }

    /// A hyper-node as the wall gave it.
    pub fn hyper_node(&self, name: &str) -> Option<&HyperNodeSpec> {
        self.hyper_nodes.rows.get(name).map(|held| &held.spec)
    }

    /// All hyper-nodes as the wall gave them, in order of name.
    pub fn hyper_nodes(&self) -> impl Iterator<Item = &HyperNodeSpec> {
        self.hyper_nodes.rows.values().map(|held| &held.spec)
    }

    /// The network's tree. Settle first.
    pub fn topology(&self) -> &Topology {
        &self.hyper_nodes.tree
    }

    /// Nodes that are named are looked up; only where a member asks otherwise all of them are asked.
    fn selected_by(&self, spec: &HyperNodeSpec) -> BTreeSet<NodeId> {
        let mut nodes = BTreeSet::new();
        let mut is_asking = false;
        for member in &spec.members {
            match member {
                Member::Nodes(Selector::Name(name)) => nodes.extend(self.node_named(name)),
                Member::Nodes(_) => is_asking = true,
                Member::HyperNodes(_) => {}
            }
        }
        if is_asking {
            let asked = self.nodes().filter(|(_, node)| selects(spec, &node.spec));
            nodes.extend(asked.map(|(id, _)| id));
        }
        nodes.retain(|id| self.node(*id).known);
        nodes
    }

    /// The tree is another one: gangs that must be close together may fit now.
    fn replant(&mut self) {
        self.hyper_nodes.is_stale = true;
        for gang in self.hyper_nodes.close.clone() {
            self.news.press(gang);
        }
    }

    /// Hyper-nodes have other nodes: who waits may fit now. Told once for however many nodes came and went.
    fn press_close_gangs(&mut self) {
        let close = self.hyper_nodes.close.iter().copied();
        let waits = |id: &GangId| self.gang(*id).census.waiting() > 0;
        let waiting: Vec<GangId> = close.filter(waits).collect();
        for gang in waiting {
            self.news.press(gang);
        }
    }

    /// Remembers whether the gang's tasks must be close together.
    pub(super) fn heed_closeness(&mut self, id: GangId) {
        let is_close = self.gangs.get(id.index()).is_some_and(|gang| {
            let spec = &gang.spec;
            gang.known && (spec.closeness.is_some() || !spec.sub_groups.is_empty())
        });
        if is_close {
            self.hyper_nodes.close.insert(id);
        } else {
            self.hyper_nodes.close.remove(&id);
        }
    }

    /// Makes the tree anew if it is not the one of the hyper-nodes.
    pub(super) fn plant(&mut self) {
        if !std::mem::take(&mut self.hyper_nodes.is_stale) {
            return;
        }
        let nodes: Vec<NodeId> = self.nodes().map(|(id, _)| id).collect();
        let rows: Vec<Row<'_>> = self
            .hyper_nodes
            .rows
            .values()
            .map(|held| Row {
                spec: &held.spec,
                nodes: &held.nodes,
                left: &held.left,
            })
            .collect();
        let serial = self.hyper_nodes.tree.serial() + 1;
        self.hyper_nodes.tree = Topology::of(&rows, &nodes, &self.hyper_nodes.left, serial);
        if std::mem::take(&mut self.hyper_nodes.is_moved) {
            self.press_close_gangs();
        }
    }
}
