//! Which of the cluster's nodes are for these tables: others belong to other schedulers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Tables;
use crate::ids::{GangId, NodeId};
use crate::labels::Labels;

/// The nodes that were given to this scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// The shard's name.
    pub name: Arc<str>,
    /// Whether there is such a shard; without it there are no nodes.
    pub exists: bool,
    /// The nodes on which this scheduler alone places.
    pub nodes: BTreeSet<Arc<str>>,
}

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    shard: Option<Shard>,
    /// The labels of nodes that are other schedulers'.
    left: BTreeMap<Arc<str>, Labels>,
}

impl Tables {
    /// The shard, where nodes are given out in shards.
    pub fn shard(&self) -> Option<&Shard> {
        self.reach.shard.as_ref()
    }

    /// The shard has come, changed or gone. Its nodes are put and left one by one.
    pub fn set_shard(&mut self, shard: Shard) {
        self.tick += 1;
        let existed = self.reach.shard.as_ref().map(|shard| shard.exists);
        let exists = shard.exists;
        self.reach.shard = Some(shard);
        // Also where no node moves somebody looks, for the shard is told what it has.
        self.mark_shares();
        if existed == Some(exists) {
            return;
        }
        // Whoever waits is told what it waits for now.
        let waits = |(id, gang): (GangId, &crate::Gang)| (gang.census.waiting() > 0).then_some(id);
        let waiting: Vec<GangId> = self.gangs().filter_map(waits).collect();
        self.news.gangs.extend(waiting);
    }

    /// How many nodes there are that belong to other schedulers.
    pub fn left_nodes(&self) -> u32 {
        u32::try_from(self.reach.left.len()).unwrap_or(u32::MAX)
    }

    /// Whether there are nodes, and all of them belong to other schedulers.
    pub fn are_all_left(&self) -> bool {
        self.left_nodes() > 0 && self.nodes().next().is_none()
    }

    /// A node with these labels is another scheduler's: it is none here. Whoever is on it is where its labels
    /// say, for those who have to be near them or away from them.
    pub fn leave_node(&mut self, name: &Arc<str>, labels: Labels) {
        if self.reach.left.get(name) == Some(&labels) {
            return;
        }
        self.remove_node(name);
        self.reach.left.insert(name.clone(), labels.clone());
        let Some(id) = self.node_named(name) else {
            return;
        };
        self.heed_domains(id, &labels);
        let tick = self.tick;
        self.nodes.change(id.index(), |node| {
            if node.spec.labels != labels {
                node.spec.labels = labels;
                node.spec_tick = tick;
            }
        });
        self.touch(id);
        self.mark_shares();
        self.heed_left(id);
    }

    /// The labels of a node that is another scheduler's; none of one that is not.
    pub(super) fn left_labels(&self, name: &str) -> Labels {
        self.reach.left.get(name).cloned().unwrap_or_default()
    }

    /// A row of a node has come that may be another scheduler's, or has become one.
    pub(super) fn heed_left(&mut self, id: NodeId) {
        let spec = &self.nodes.rows().row(id.index()).spec;
        if self.reach.left.contains_key(&spec.name) {
            self.hyper_nodes.leave(id, spec);
        }
    }

    /// A node is ours, or there is none of that name.
    pub(super) fn is_left_no_more(&mut self, name: &str) {
        if self.reach.left.remove(name).is_none() {
            return;
        }
        if let Some(id) = self.node_named(name) {
            self.hyper_nodes.is_left_no_more(id);
        }
    }
}
