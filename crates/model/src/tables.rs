//! The cluster's tables: one owner, changed in place, never copied for a cycle.

mod classes;
mod device_claims;
mod ends;
mod feed;
mod groups;
mod hyper_nodes;
mod images;
mod measured;
mod opinions;
mod policies;
mod reach;
mod ready;
mod stock;
mod sums;
pub(crate) mod suppose;
mod volumes;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::device::{CardLoads, Grant};
use crate::gang::Gang;
use crate::glance::{Glance, NodeRows};
use crate::ids::{GangId, Key, NodeId, QueueId, ShapeId, TaskId, Tick, WriteId};
use crate::node::Node;
use crate::queue::Queue;
use crate::ranked::Ranked;
use crate::resource::{Kind, ResourceKinds, Vector};
use crate::shape::ShapeSpec;
use crate::slots::Slots;
use crate::task::Task;
use crate::terms::TermIndex;
use crate::time::Time;

pub use images::ImageMark;
pub use measured::Measured;
pub use opinions::{Giving, Opinion, Query, Question};
pub use policies::{Budget, Quota};
pub use reach::Shard;
pub(crate) use writes::Written;

/// A PriorityClass as the wall gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: i32,
    /// Whether it holds for those that name none.
    pub global_default: bool,
}

/// A shape's row.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Requests and constraints.
    pub spec: Arc<ShapeSpec>,
    /// The requests with the one pod slot that every task takes.
    pub held: Vector,
    /// Cpu and memory, where none counts as 100m and 200Mi.
    pub nonzero: [i64; 2],
    /// Where the terms of its required node affinity are that a node may meet.
    pub terms: TermIndex,
    /// A number that no other shape ever has, for those who keep judgements under a reused id.
    pub serial: u64,
    refs: u32,
}

/// What changed since the engine last looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Gangs whose own rows or tasks changed.
    pub gangs: BTreeSet<GangId>,
    /// Nodes on which a task may fit that did not before.
    pub freed: BTreeSet<NodeId>,
    /// Whether shares or ceilings may have moved.
    pub shares: bool,
    /// Whether some queue asks for more than before: what it deserves may have grown with that.
    pub requests: bool,
    /// Whether a task came to hold room that others may want to have.
    pub holders: bool,
    /// Whether a task has gone from its domain that keeps others out of it by its anti-affinity: they may
    /// fit on nodes where nothing else has changed.
    pub parted: bool,
    /// Whether a task without a gang came to a node: others may want to be near it.
    pub strangers: bool,
    /// Queues whose use changed.
    pub queues: BTreeSet<QueueId>,
    /// Whether a task may find a node because of something in `gangs`. What only has to be told
    /// (placed tasks that start, writes that were taken) can wait for more of its kind.
    pub pressing: bool,
}

impl News {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        let is_of_rows = self.gangs.is_empty() && self.freed.is_empty() && self.queues.is_empty();
        is_of_rows && !self.shares && !self.strangers
    }

    /// A gang changed such that its tasks may find nodes now.
    pub(crate) fn press(&mut self, gang: GangId) {
        self.gangs.insert(gang);
        self.pressing = true;
    }
}

/// All state that decisions read.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    kinds: ResourceKinds,
    nodes: NodeRows,
    node_names: BTreeMap<Arc<str>, NodeId>,
    tasks: Slots<Task>,
    /// In the order of their keys, which stand in their rows.
    task_keys: Ranked<TaskId>,
    gangs: Slots<Gang>,
    gang_keys: BTreeMap<Key, GangId>,
    queues: Slots<Queue>,
    queue_names: BTreeMap<Arc<str>, QueueId>,
    shapes: Slots<Shape>,
    shape_specs: BTreeMap<Arc<ShapeSpec>, ShapeId>,
    shape_serial: u64,
    priorities: BTreeMap<Arc<str>, Priority>,
    opinions: Arc<opinions::Opinions>,
    policies: policies::Policies,
    hyper_nodes: hyper_nodes::HyperNodes,
    images: images::ImageCensus,
    reach: reach::Reach,
    tick: u64,
    writes: BTreeMap<WriteId, Written>,
    next_write: u64,
    total: Vector,
    used_total: Vector,
    known_nodes: u32,
    inqueue_whole: Vector,
    unsettled: Vec<GangId>,
    coupled: BTreeMap<ShapeId, BTreeSet<TaskId>>,
    task_topologies: BTreeSet<GangId>,
    group_use: groups::GroupUse,
    classes: classes::Classes,
    claim_homes: BTreeMap<Key, BTreeMap<NodeId, u32>>,
    device_claims: device_claims::DeviceClaims,
    ends: ends::Ends,
    /// Who uses each claim that one pod may use at a time.
    sole_users: BTreeMap<Key, BTreeSet<TaskId>>,
    shared_loads: CardLoads,
    /// How many tasks that ask for devices were promised room on each node.
    promised_devices: BTreeMap<NodeId, u32>,
    volumes: volumes::Volumes,
    /// Nodes with devices that others reach, too.
    sharing: BTreeSet<NodeId>,
    log: Vec<NodeId>,
    log_base: u64,
    news: News,
    shuffles: BTreeMap<Arc<str>, Time>,
    in_trial: bool,
}

impl Tables {
    /// Empty tables.
    pub fn new() -> Tables {
        Tables::default()
    }

    /// The revision of everything below the line.
    pub fn tick(&self) -> Tick {
        Tick(self.tick)
    }

    /// The resource kinds met so far.
    pub fn kinds(&self) -> &ResourceKinds {
        &self.kinds
    }

    /// The kind of this resource name, for who asks for it: new if it was not met before and there is place
    /// ([`ResourceKinds::intern`]).
    pub fn kind(&mut self, name: &str) -> Kind {
        self.kinds.intern(name)
    }

    /// The kind of this resource name, for who has some of it or counts it; `None` where no more kinds are
    /// told apart ([`ResourceKinds::intern_offered`]).
    pub fn offered_kind(&mut self, name: &str) -> Option<Kind> {
        self.kinds.intern_offered(name)
    }

    /// Names whose kind is another one now for who asks for them ([`ResourceKinds::take_late`]).
    pub fn take_late_kinds(&mut self) -> Vec<Arc<str>> {
        self.kinds.take_late()
    }

    /// A node's row. The id must be live: ids come from these tables and die with their rows.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.rows().row(id.index())
    }

    /// A node's row, if the id is live.
    #[inline]
    pub fn find_node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.rows().get(id.index())
    }

    /// What of a node's row stands beside that of other nodes, for whoever looks at all of them; nothing
    /// where the id is not live.
    #[inline]
    pub fn glance(&self, id: NodeId) -> &Glance {
        self.nodes.glance(id.index())
    }

    /// The node of this name.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied()
    }

    /// All nodes that the wall knows, in order of id.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .rows()
            .iter()
            .filter(|(_, node)| node.known)
            .map(|(at, node)| (NodeId::from(at), node))
    }

    /// All node rows, with those that only pods mention.
    pub fn all_nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let rows = self.nodes.rows().iter();
        rows.map(|(at, node)| (NodeId::from(at), node))
    }

    /// One more than the highest node id ever used.
    pub fn node_span(&self) -> usize {
        self.nodes.rows().span()
    }

    /// How many nodes the wall knows.
    pub fn node_count(&self) -> u32 {
        self.known_nodes
    }

    /// A task's row. The id must be live.
    #[inline]
    pub fn task(&self, id: TaskId) -> &Task {
        self.tasks.row(id.index())
    }

    /// A task's row, if the id is live.
    #[inline]
    pub fn find_task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.index())
    }

    /// The task of this key.
    pub fn task_keyed(&self, key: &Key) -> Option<TaskId> {
        let keyed = |id: &TaskId| self.task(*id).key.cmp(key);
        self.task_keys.find(keyed).copied()
    }

    /// All tasks in order of id.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks.iter().map(|(at, task)| (TaskId::from(at), task))
    }

    /// How often a task id was given to another task.
    pub fn task_generation(&self, id: TaskId) -> u32 {
        self.tasks.generation(id.index())
    }

    /// A gang's row. The id must be live.
    #[inline]
    pub fn gang(&self, id: GangId) -> &Gang {
        self.gangs.row(id.index())
    }

    /// A gang's row, if the id is live.
    pub fn find_gang(&self, id: GangId) -> Option<&Gang> {
        self.gangs.get(id.index())
    }

    /// The gang of this key.
    pub fn gang_keyed(&self, key: &Key) -> Option<GangId> {
        self.gang_keys.get(key).copied()
    }

    /// All gang rows in order of id, with those that only pods mention.
    pub fn gangs(&self) -> impl Iterator<Item = (GangId, &Gang)> {
        self.gangs.iter().map(|(at, gang)| (GangId::from(at), gang))
    }

    /// A queue's row. The id must be live.
    #[inline]
    pub fn queue(&self, id: QueueId) -> &Queue {
        self.queues.row(id.index())
    }

    /// A queue's row, if the id is live.
    pub fn find_queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id.index())
    }

    /// The queue of this name.
    pub fn queue_named(&self, name: &str) -> Option<QueueId> {
        self.queue_names.get(name).copied()
    }

    /// All queue rows in order of id, with those that only gangs mention.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues
            .iter()
            .map(|(at, queue)| (QueueId::from(at), queue))
    }

    /// A shape's row. The id must be live.
    #[inline]
    pub fn shape(&self, id: ShapeId) -> &Shape {
        self.shapes.row(id.index())
    }

    /// A shape's row, if the id is live.
    pub fn find_shape(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id.index())
    }

    /// The shape of a task.
    #[inline]
    pub fn shape_of(&self, task: TaskId) -> &Shape {
        self.shape(self.task(task).shape)
    }

    /// The priority of this name.
    pub fn priority_named(&self, name: &str) -> Option<&Priority> {
        self.priorities.get(name)
    }

    /// Allocatable of all known nodes together.
    pub fn total(&self) -> &Vector {
        &self.total
    }

    /// What is held on all known nodes together.
    pub fn used_total(&self) -> &Vector {
        &self.used_total
    }

    /// What enqueued gangs were let in for (overcommit's sum). Settle first.
    pub fn inqueue_whole(&self) -> &Vector {
        &self.inqueue_whole
    }

    /// Shapes that speak of other pods, each with its tasks that hold or are promised a node; none
    /// without any.
    pub fn coupled_shapes(&self) -> &BTreeMap<ShapeId, BTreeSet<TaskId>> {
        &self.coupled
    }

    /// Gangs that say which of their roles are to be together.
    pub fn task_topologies(&self) -> &BTreeSet<GangId> {
        &self.task_topologies
    }

    /// Where a claim that waits for its first consumer will be served: the node to which a task
    /// that mounts it goes.
    pub fn claim_home(&self, claim: &Key) -> Option<NodeId> {
        self.claim_homes.get(claim)?.keys().next().copied()
    }

    /// The tasks that are on a node, or are promised one, with a claim that one pod may use at a time.
    pub fn sole_users<'t>(&'t self, claim: &Key) -> impl Iterator<Item = TaskId> + use<'t> {
        self.sole_users.get(claim).into_iter().flatten().copied()
    }

    /// What is held of devices that several nodes reach.
    pub fn shared_loads(&self) -> &CardLoads {
        &self.shared_loads
    }

    /// The nodes with devices that others reach, too, on which tasks that ask for devices were promised
    /// room.
    pub fn promised_shared(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.promised_devices.keys().copied();
        nodes.filter(|node| self.sharing.contains(node))
    }

    /// The end of the log of nodes whose room or spec changed.
    pub fn log_end(&self) -> u64 {
        self.log_base + self.log.len() as u64
    }

    /// Nodes that changed since `cursor`, oldest first, possibly repeated; `None` if the log no
    /// longer goes back that far.
    pub fn changed_since(&self, cursor: u64) -> Option<&[NodeId]> {
        let from = cursor.checked_sub(self.log_base)?;
        self.log.get(usize::try_from(from).ok()?..)
    }

    /// Whether the engine has anything to look at.
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Whether what it has to look at may place a task.
    pub fn has_pressing_news(&self) -> bool {
        self.news.pressing || self.news.shares || !self.news.freed.is_empty()
    }

    /// What changed since the last call.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Asks for the gang to be looked at again.
    pub fn mark_gang(&mut self, id: GangId) {
        self.news.press(id);
    }

    /// When the plugin last sent tasks away from their nodes, if it is known.
    pub fn shuffled_at(&self, plugin: &str) -> Option<Time> {
        self.shuffles.get(plugin).copied()
    }

    /// When each plugin last sent tasks away.
    pub fn shuffles(&self) -> impl Iterator<Item = (&str, Time)> {
        self.shuffles.iter().map(|(plugin, at)| (&**plugin, *at))
    }

    /// Says when the plugin last sent tasks away: after a checkpoint nothing else tells.
    pub fn set_shuffled_at(&mut self, plugin: &str, at: Option<Time>) {
        match at {
            Some(at) => drop(self.shuffles.insert(plugin.into(), at)),
            None => drop(self.shuffles.remove(plugin)),
        }
    }

    /// A rule says something else about the node than before, though its row is the same: whoever
    /// keeps judgements of it judges anew.
    pub fn judge_anew(&mut self, id: NodeId) {
        if self.find_node(id).is_none() {
            return;
        }
        self.tick += 1;
        let tick = self.tick;
        self.nodes.change(id.index(), |node| node.spec_tick = tick);
        self.touch(id);
        self.mark_freed(id);
    }

    /// Writes of committed plans that are not answered yet.
    pub fn pending_writes(&self) -> impl Iterator<Item = WriteId> {
        self.writes.keys().copied()
    }

    pub(crate) fn in_trial_mut(&mut self) -> &mut bool {
        &mut self.in_trial
    }

    pub(crate) fn task_row(&mut self, id: TaskId) -> &mut Task {
        self.tasks.row_mut(id.index())
    }

    /// Says what a task will hold of cards. It must hold no node while that is said.
    pub(crate) fn set_grants(&mut self, id: TaskId, grants: Vec<Grant>) {
        let row = self.task_row(id);
        debug_assert!(!row.phase.holds_node(), "what is held is not changed");
        row.set_grants(grants);
    }

    pub(crate) fn gang_mut(&mut self, id: GangId) -> &mut Gang {
        self.gangs.row_mut(id.index())
    }

    pub(crate) fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        self.queues.row_mut(id.index())
    }
}
