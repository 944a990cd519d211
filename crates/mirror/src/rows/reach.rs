//! Which nodes and pods are this scheduler's: by labels, by its part of a ring of schedulers, by shard.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::Node;
use api::intent::{Intent, Part};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::sum::Sum;
use api::time::Time;
use api::volcano::{NodeShard, ShardingMode};
use model::{Cards, NumaLayout, Phase, Shard, Tables};
use serde_json::json;

use super::{Rows, node_spec, volume};
use crate::held::{Change, Mirror};
use crate::lower::patched;

/// What the operator chose about nodes; by default all of them are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Labels of which a node must have one (`--node-selector`); none selects all.
    pub selector: Vec<(Box<str>, Box<str>)>,
    /// Which part of the nodes and pods, where several schedulers of one kind share them.
    pub slice: Option<Slice>,
    /// Whether nodes are given out in shards.
    pub sharding: ShardingMode,
    /// The name of our shard.
    pub shard: Box<str>,
}

/// One of several schedulers that share nodes and pods by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which one, from zero.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Slice {
    /// Whether what has this name is ours. Of the same names each member sees the same owner, and a
    /// member more or less moves only names of its own.
    pub fn owns(self, name: &str) -> bool {
        let weight = |member: u32| {
            let mut sum = Sum::default();
            sum.bytes(name.as_bytes());
            sum.bytes(&member.to_be_bytes());
            let hash = sum.value();
            // The last bytes reach only the low bits; this spreads them.
            let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            hash ^ (hash >> 32)
        };
        let highest = (0..self.of).max_by_key(|member| (weight(*member), *member));
        highest == Some(self.index)
    }
}

/// Whose a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    /// Another scheduler's, and ours where nothing else will do.
    Last,
    Others,
}

impl Reach {
    /// Whether what has this metadata is ours to place: an owner's name decides for all that it owns.
    pub(super) fn owns(&self, meta: &ObjectMeta) -> bool {
        self.slice.is_none_or(|slice| {
            let owner = meta.owner_references.first();
            slice.owns(owner.map_or(&meta.name, |owner| &owner.name))
        })
    }

    fn side(&self, node: &Node, tables: &Tables) -> Side {
        let meta = &node.metadata;
        let has = |(key, value): &(Box<str>, Box<str>)| {
            meta.labels.get(key).is_some_and(|it| *it == **value)
        };
        let is_selected = self.selector.is_empty() || self.selector.iter().any(has);
        if !is_selected || self.slice.is_some_and(|slice| !slice.owns(&meta.name)) {
            return Side::Others;
        }
        let is_in = || {
            let shard = tables.shard();
            shard.is_some_and(|shard| shard.nodes.contains(&*meta.name))
        };
        match self.sharding {
            ShardingMode::None => Side::Ours,
            ShardingMode::Hard if !is_in() => Side::Others,
            ShardingMode::Soft if !is_in() => Side::Last,
            ShardingMode::Hard | ShardingMode::Soft => Side::Ours,
        }
    }
}

impl Rows {
    /// Only some nodes and pods are ours.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Rows {
        self.reach = reach;
        self
    }

    /// The node with the layout that it has in the tables: only news of it change that.
    pub(super) fn put_node(&mut self, mirror: &Mirror, node: &Node, tables: &mut Tables) {
        let name = &node.metadata.name;
        let row = tables.node_named(name).and_then(|id| tables.find_node(id));
        let layout = row
            .filter(|row| row.known)
            .and_then(|row| row.spec.numa.clone());
        let layout = layout.or_else(|| self.layout_of(mirror, name));
        self.put_node_laid_out(mirror, node, layout, tables);
    }

    pub(super) fn put_node_laid_out(
        &mut self,
        mirror: &Mirror,
        node: &Node,
        layout: Option<Arc<NumaLayout>>,
        tables: &mut Tables,
    ) {
        let side = self.reach.side(node, tables);
        if side == Side::Others {
            let labels = self.words.node_labels(&node.metadata.labels);
            let name = (&*node.metadata.name).into();
            tables.leave_node(&name, labels);
            self.put_models(mirror, &name, &Cards::default(), tables);
            return;
        }
        let mut spec = node_spec(node, &mut self.words, tables);
        spec.foreign = side == Side::Last;
        spec.numa = layout;
        spec.volume_limits = volume::limits(mirror, &node.metadata.name);
        if self.has_images {
            spec.images = node.status.images.names().clone();
        }
        if !self.cards.is_empty() {
            spec.cards = self.cards.of_node(mirror, node);
        }
        self.put_devices(mirror, node, &mut spec, tables);
        let (name, cards) = (spec.name.clone(), spec.cards.clone());
        tables.put_node(spec);
        self.put_models(mirror, &name, &cards, tables);
    }

    /// A shard has changed: which nodes are ours is found out anew.
    pub(super) fn feed_shard(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        if self.reach.sharding == ShardingMode::None || says_nothing_new(change) {
            return;
        }
        let own = mirror.get::<NodeShard>("", &self.reach.shard);
        let mut nodes: BTreeSet<Arc<str>> = own
            .iter()
            .flat_map(|shard| &shard.spec.nodes_desired)
            .map(|name| (&**name).into())
            .collect();
        for other in mirror.list::<NodeShard>() {
            if other.metadata.name != self.reach.shard {
                for name in &other.status.nodes_in_use {
                    nodes.remove(&**name);
                }
            }
        }
        let before = tables.shard().map(|shard| shard.nodes.clone());
        let before = before.unwrap_or_default();
        let moved: Vec<Arc<str>> = nodes.symmetric_difference(&before).cloned().collect();
        tables.set_shard(Shard {
            name: (&*self.reach.shard).into(),
            exists: own.is_some(),
            nodes,
        });
        for name in moved {
            if let Some(node) = mirror.get::<Node>("", &name) {
                self.put_node(mirror, node, tables);
            }
        }
    }

    /// The shard that is to be there before any node comes.
    pub fn begin(&self, tables: &mut Tables) {
        if self.reach.sharding != ShardingMode::None {
            tables.set_shard(Shard {
                name: (&*self.reach.shard).into(),
                ..Shard::default()
            });
        }
    }

    /// What our shard's status should say and does not: on which nodes we place, with those that a bind
    /// of ours is still on its way to, which ones others have to let go of first, and which ones we do.
    pub fn shard_status(&self, mirror: &Mirror, tables: &Tables, now: Time) -> Option<Intent> {
        let ours = tables.shard()?;
        let shard = mirror.get::<NodeShard>("", &self.reach.shard)?;
        let desired: BTreeSet<&str> = shard.spec.nodes_desired.iter().map(|it| &**it).collect();
        let is_busy = |name: &&str| {
            let node = tables.node_named(name).and_then(|id| tables.find_node(id));
            let mut tasks = node.into_iter().flat_map(|node| &node.tasks);
            tasks.any(|task| tables.task(*task).phase == Phase::Binding)
        };
        let shown = &shard.status;
        let kept = shown.nodes_in_use.iter().map(|name| &**name);
        let kept = kept
            .filter(|name| !ours.nodes.contains(*name))
            .filter(is_busy);
        let mut in_use: BTreeSet<&str> = ours.nodes.iter().map(|name| &**name).collect();
        in_use.extend(kept);
        let to_add: Vec<&str> = desired.difference(&in_use).copied().collect();
        let to_remove: Vec<&str> = in_use.difference(&desired).copied().collect();
        let in_use: Vec<&str> = in_use.into_iter().collect();
        let is_shown = |shown: &[Box<str>], wanted: &[&str]| {
            shown.iter().map(|name| &**name).eq(wanted.iter().copied())
        };
        if is_shown(&shown.nodes_in_use, &in_use)
            && is_shown(&shown.nodes_to_add, &to_add)
            && is_shown(&shown.nodes_to_remove, &to_remove)
        {
            return None;
        }
        let patch = json!({ "status": {
            "lastUpdateTime": now,
            "nodesInUse": in_use,
            "nodesToAdd": to_add,
            "nodesToRemove": to_remove,
        } });
        Some(patched(
            &shard.metadata,
            Kind::NodeShard,
            Part::Status,
            patch,
        ))
    }
}

/// Whether nobody's nodes moved: a shard's time and what it waits for are told often.
fn says_nothing_new(change: &Change) -> bool {
    let sides = (change.before::<NodeShard>(), change.after::<NodeShard>());
    let (Some(before), Some(after)) = sides else {
        return false;
    };
    before.metadata.uid == after.metadata.uid
        && before.spec.nodes_desired == after.spec.nodes_desired
        && before.status.nodes_in_use == after.status.nodes_in_use
}
