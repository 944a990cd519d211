//! Suppositions: rows changed for a question, and put back exactly as they were.
//!
//! A trial can place and evict; it cannot raise a ceiling or take a taint away. These can, outside
//! of any trial, and [`Tables::aside`] sees to it that nobody notices afterwards.

use std::sync::Arc;

use super::{GangId, Key, News, NodeId, Quota, Tables, TaskId};
use crate::gang::GangSpec;
use crate::node::NodeSpec;
use crate::queue::QueueSpec;
use crate::task::{Gate, Phase, TaskSpec};

/// One change of one row, as the wall would tell it.
#[derive(Clone, Debug)]
pub enum Change {
    /// A gang comes or changes.
    PutGang(Box<GangSpec>),
    /// A node comes or changes.
    PutNode(Box<NodeSpec>),
    /// A queue comes or changes.
    PutQueue(Box<QueueSpec>),
    /// A namespace's quota comes or changes.
    PutQuota(Box<Quota>),
    /// A task comes or changes.
    PutTask(Box<TaskSpec>),
    /// A gang goes.
    RemoveGang(Key),
    /// A node goes.
    RemoveNode(Arc<str>),
    /// A queue goes.
    RemoveQueue(Arc<str>),
    /// A quota goes.
    RemoveQuota(Key),
    /// A task goes.
    RemoveTask(Key),
}

impl Change {
    /// Makes the change.
    pub fn apply(&self, tables: &mut Tables) {
        match self {
            Change::PutGang(spec) => drop(tables.put_gang((**spec).clone())),
            Change::PutNode(spec) => drop(tables.put_node((**spec).clone())),
            Change::PutQueue(spec) => drop(tables.put_queue((**spec).clone())),
            Change::PutQuota(quota) => tables.put_quota((**quota).clone()),
            Change::PutTask(spec) => drop(tables.put_task((**spec).clone())),
            Change::RemoveGang(key) => tables.remove_gang(key),
            Change::RemoveNode(name) => tables.remove_node(name),
            Change::RemoveQueue(name) => tables.remove_queue(name),
            Change::RemoveQuota(key) => tables.remove_quota(key),
            Change::RemoveTask(key) => tables.remove_task(key),
        }
    }
}

/// What puts supposed rows back.
#[derive(Debug)]
pub struct Supposed {
    backwards: Vec<Back>,
    news: News,
}

#[derive(Debug)]
enum Back {
    Row(Change),
    Queue(Box<QueueSpec>),
    Gang(Box<GangSpec>, bool),
    Node(Box<NodeSpec>, u64),
}

impl Tables {
    /// Lends the tables to a question that leaves its rows as they were: neither the revision, nor
    /// what was said from outside, nor what the engine has still to look at moves.
    pub fn aside<R>(&mut self, ask: impl FnOnce(&mut Tables) -> R) -> R {
        let (tick, serial, news) = (self.tick, self.shape_serial, self.news.clone());
        let opinions = Arc::clone(&self.opinions);
        let answer = ask(self);
        self.settle();
        (self.tick, self.shape_serial, self.news) = (tick, serial, news);
        self.opinions = opinions;
        answer
    }

    /// What the engine would look at now.
    pub fn news(&self) -> &News {
        &self.news
    }

    /// Makes changes that [`Tables::put_back`] takes back; only inside of [`Tables::aside`]. `None`,
    /// and nothing is changed, where one of them could not be taken back: a row goes, or a write
    /// about it is on its way.
    pub fn suppose(&mut self, changes: &[Change]) -> Option<Supposed> {
        if !changes.iter().all(|change| self.can_suppose(change)) {
            return None;
        }
        let mut supposed = Supposed {
            backwards: Vec::with_capacity(changes.len()),
            news: self.news.clone(),
        };
        for change in changes {
            let back = self.back_from(change);
            supposed.backwards.push(back);
            change.apply(self);
        }
        Some(supposed)
    }

    /// Has nodes judged anew, as if rules said something else of them, until [`Tables::put_back`]; only
    /// inside of [`Tables::aside`].
    pub fn suppose_judged(&mut self, nodes: &[NodeId]) -> Supposed {
        let back = |id: &NodeId| {
            let node = self.node(*id);
            Back::Node(Box::new(node.spec.clone()), node.spec_tick)
        };
        let supposed = Supposed {
            backwards: nodes.iter().map(back).collect(),
            news: self.news.clone(),
        };
        nodes.iter().for_each(|node| self.judge_anew(*node));
        supposed
    }

    /// Takes supposed changes back, the last one first.
    pub fn put_back(&mut self, supposed: Supposed) {
        // What the way back wakes is forgotten in the end; nothing is merged into what is.
        self.news = News::default();
        for back in supposed.backwards.into_iter().rev() {
            match back {
                Back::Row(change) => change.apply(self),
                Back::Queue(spec) => drop(self.put_queue_untold(*spec)),
                Back::Gang(spec, fed) => {
                    let id = self.put_gang(*spec);
                    self.gang_mut(id).fed = fed;
                }
                Back::Node(spec, tick) => {
                    let id = self.put_node(*spec);
                    // Whoever keeps judgements of the node must find the tick that it judged at.
                    self.nodes.change(id.index(), |node| node.spec_tick = tick);
                }
            }
        }
        self.news = supposed.news;
    }

    fn can_suppose(&self, change: &Change) -> bool {
        match change {
            Change::PutTask(spec) => match self.task_keyed(&spec.key) {
                Some(id) => {
                    let row = self.task(id);
                    row.uid == spec.uid && row.write.is_none() && row.gate != Gate::Opening
                }
                None => false,
            },
            Change::PutGang(spec) => self.gang_keyed(&spec.key).is_some_and(|id| {
                let row = self.gang(id);
                row.known && row.spec.uid == spec.uid && row.status_write.is_none()
            }),
            Change::PutNode(_) | Change::PutQueue(_) | Change::PutQuota(_) => true,
            Change::RemoveGang(_)
            | Change::RemoveNode(_)
            | Change::RemoveQueue(_)
            | Change::RemoveQuota(_)
            | Change::RemoveTask(_) => false,
        }
    }

    fn back_from(&self, change: &Change) -> Back {
        match change {
            Change::PutGang(spec) => {
                let row = self.gang(self.live_gang(&spec.key));
                Back::Gang(Box::new(row.spec.clone()), row.fed)
            }
            Change::PutNode(spec) => {
                let known = self.node_named(&spec.name).map(|id| self.node(id));
                match known.filter(|node| node.known) {
                    Some(node) => Back::Node(Box::new(node.spec.clone()), node.spec_tick),
                    None => Back::Row(Change::RemoveNode(spec.name.clone())),
                }
            }
            Change::PutQueue(spec) => {
                let known = self.queue_named(&spec.name).map(|id| self.queue(id));
                match known.filter(|queue| queue.known) {
                    Some(queue) => Back::Queue(Box::new(queue.spec.clone())),
                    None => Back::Row(Change::RemoveQueue(spec.name.clone())),
                }
            }
            Change::PutQuota(quota) => {
                let mut there = self.quotas(&quota.key.namespace);
                Back::Row(match there.find(|it| it.key == quota.key) {
                    Some(quota) => Change::PutQuota(Box::new(quota.clone())),
                    None => Change::RemoveQuota(quota.key.clone()),
                })
            }
            Change::PutTask(spec) => {
                let id = self.task_keyed(&spec.key);
                let id = id.expect("only a task that is there is supposed otherwise");
                Back::Row(Change::PutTask(Box::new(self.task_spec(id))))
            }
            other => unreachable!("{other:?} is never supposed"),
        }
    }

    fn live_gang(&self, key: &Key) -> GangId {
        self.gang_keyed(key)
            .expect("only a gang that is there is supposed otherwise")
    }

    /// The task as the wall gave it.
    pub fn task_spec(&self, id: TaskId) -> TaskSpec {
        let row = self.task(id);
        let planned = matches!(
            row.phase,
            Phase::Pipelined | Phase::Allocated | Phase::Binding
        );
        let node = row.node.filter(|_| !planned);
        TaskSpec {
            key: row.key.clone(),
            uid: row.uid.clone(),
            gang: row.gang.map(|gang| self.gang(gang).spec.key.clone()),
            role: row.role.clone(),
            index: row.index,
            shape: (*self.shape(row.shape).spec).clone(),
            claims: row.claims.clone(),
            sole: row.sole.clone(),
            labels: row.labels.clone(),
            priority: row.priority,
            pod_priority: row.pod_priority,
            critical: row.critical,
            of_node: row.of_node,
            phase: if planned { Phase::Pending } else { row.phase },
            node: node.map(|node| self.node(node).spec.name.clone()),
            nominated: row.nominated.clone(),
            gated: row.gated,
            gate: match row.gate {
                Gate::Opening => Gate::Closed,
                told => told,
            },
            preemptable: row.preemptable,
            preempts: row.preempts,
            cooldown_ms: row.cooldown_ms,
            scheduled: row.scheduled,
            created: row.created,
            started: row.started,
            charges: row.charges.clone(),
            grants: if planned {
                Vec::new()
            } else {
                row.grants.clone()
            },
        }
    }
}
