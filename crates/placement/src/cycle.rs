//! One cycle's work: the actions in their order, on one trial, over the gangs that are to be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{GangId, NoFit, NodeId, QueueId, Reason, ShapeId, TaskId, Time, Trial};

use crate::clearing::Grounds;
use crate::coupling::{self, Surroundings};
use crate::feasibility::{Index, Indexes};
use crate::fence::{self, Fence};
use crate::order::Heap;
use crate::plugin::{Room, View};
use crate::rules::{Rules, State};
use crate::together::{self, Home};

/// What a look at a gang found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was let in.
    Entered,
    /// It is whole, and no task of it waits.
    Whole,
    /// It is whole, and further tasks wait.
    Extras(Arc<Reason>, Lacks),
    /// It waits for its own objects to change: tasks, gates, its queue.
    WaitsForObjects(Arc<Reason>),
    /// It waits for room that is promised to it.
    WaitsForPromise(Arc<Reason>),
    /// It waits for room, and perhaps for shares too.
    WaitsForRoom(Arc<Reason>, Lacks),
    /// It waits for shares, ceilings or promises to move.
    WaitsForShares(Arc<Reason>),
}

/// What tasks that found no place wait for: each of it may help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Room for tasks of these shapes.
    pub shapes: BTreeSet<ShapeId>,
    /// Whether a task was refused for its queue's sake.
    pub shares: bool,
}

impl Outcome {
    /// Why it waits, if it does.
    pub fn reason(&self) -> Option<&Arc<Reason>> {
        match self {
            Outcome::Entered | Outcome::Whole => None,
            Outcome::Extras(reason, _)
            | Outcome::WaitsForObjects(reason)
            | Outcome::WaitsForPromise(reason)
            | Outcome::WaitsForRoom(reason, _)
            | Outcome::WaitsForShares(reason) => Some(reason),
        }
    }
}

/// How much work was done; a cycle with nothing to do does none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Gangs looked at.
    pub gangs: u64,
    /// Tasks for which a node was sought.
    pub tasks: u64,
    /// Nodes evaluated for a shape.
    pub nodes: u64,
}

/// Tasks of a shape that found room when a gang of it failed, valid while nothing else was placed.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) fits: u32,
    pub(crate) no_fit: NoFit,
    pub(crate) at_moves: u64,
}

/// One cycle of the rules on a trial.
pub struct Cycle<'a, 't> {
    pub(crate) trial: &'a mut Trial<'t>,
    pub(crate) rules: &'a Rules,
    pub(crate) indexes: &'a mut Indexes,
    pub(crate) state: State,
    pub(crate) gangs: BTreeSet<GangId>,
    pub(crate) outcomes: BTreeMap<GangId, Outcome>,
    pub(crate) refused: BTreeMap<ShapeId, Refused>,
    /// The value of a label within which a gang is tried.
    pub(crate) tried: Option<Arc<str>>,
    /// What is known of room that others hold.
    pub(crate) grounds: Grounds,
    /// Counts evictions, also those that were taken back.
    pub(crate) evictions: u64,
    /// Counts kept moves: what was found before one of them may no longer hold.
    pub(crate) moves: u64,
    /// What was done so far.
    pub work: Work,
}

impl<'a, 't> Cycle<'a, 't> {
    /// Runs the configured actions over `gangs`, and says what came of each.
    pub fn run(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        now: Time,
    ) -> (BTreeMap<GangId, Outcome>, Work) {
        trial.settle();
        let state = rules.open(trial.tables(), now);
        let before = indexes.evaluated;
        let mut cycle = Cycle {
            trial,
            rules,
            indexes,
            state,
            work: Work {
                gangs: gangs.len() as u64,
                ..Work::default()
            },
            gangs,
            outcomes: BTreeMap::new(),
            refused: BTreeMap::new(),
            tried: None,
            grounds: Grounds::default(),
            evictions: 0,
            moves: 0,
        };
        for action in &rules.actions {
            (action.run)(&mut cycle);
        }
        cycle.work.nodes = cycle.indexes.evaluated - before;
        (cycle.outcomes, cycle.work)
    }

    pub(crate) fn view(&self) -> View<'_> {
        self.rules.view(self.trial.tables(), &self.state)
    }

    /// Room is kept for so many tasks of the gang until others have left.
    pub(crate) fn kept_for(&self, gang: GangId, tasks: u32) -> Outcome {
        let reason = Arc::new(Reason::WaitsForRelease { tasks });
        if self.rules.job_ready(self.view(), gang) {
            Outcome::Extras(reason, Lacks::default())
        } else {
            Outcome::WaitsForPromise(reason)
        }
    }

    /// The best node for the task now.
    pub(crate) fn best_node(&mut self, task: TaskId) -> Option<NodeId> {
        self.work.tasks += 1;
        let view = self.rules.view(self.trial.tables(), &self.state);
        let index = self
            .indexes
            .synced(self.rules, view, view.tables.task(task).shape);
        let fence = fence::around(view.tables, task, self.tried.as_ref());
        match together::home(view.tables, task) {
            Home::Anywhere
                if fence.is_open() && !index.has_wishes() && !coupling::concerns(view, task) =>
            {
                index.best()
            }
            Home::Anywhere => {
                let around = Surroundings::of(view, task, Room::Now);
                around.within(fence).best(view, index)
            }
            Home::At { node, .. } => takes(view, index, task, &fence, node).then_some(node),
            Home::Nowhere { .. } => None,
        }
    }

    /// Where the task may go for the sake of its gang.
    pub(crate) fn fence(&self, task: TaskId) -> Fence {
        fence::around(self.trial.tables(), task, self.tried.as_ref())
    }

    /// Whether the node takes the task now, wherever its claims are.
    pub(crate) fn takes(&mut self, task: TaskId, node: NodeId) -> bool {
        let view = self.rules.view(self.trial.tables(), &self.state);
        let index = self
            .indexes
            .synced(self.rules, view, view.tables.task(task).shape);
        let fence = fence::around(view.tables, task, self.tried.as_ref());
        takes(view, index, task, &fence, node)
    }

    /// Nodes that would take the task, the best by its own worth first.
    pub(crate) fn candidates(&mut self, task: TaskId) -> Vec<NodeId> {
        let view = self.rules.view(self.trial.tables(), &self.state);
        let index = self
            .indexes
            .synced(self.rules, view, view.tables.task(task).shape);
        let fence = fence::around(view.tables, task, self.tried.as_ref());
        let mut candidates: Vec<_> = index.candidates().collect();
        candidates.retain(|(node, _)| fence.refuses(view.tables, *node).is_none());
        candidates.sort_by_key(|(node, score)| (std::cmp::Reverse(*score), *node));
        candidates.into_iter().map(|(node, _)| node).collect()
    }

    /// Lets queues take turns in their order, and in each queue its gangs in theirs. `turn` says
    /// whether the gang wants another turn, or whether its queue is through.
    pub(crate) fn take_turns(
        &mut self,
        gangs: impl IntoIterator<Item = (QueueId, GangId)>,
        mut turn: impl FnMut(&mut Self, QueueId, GangId) -> Turn,
    ) {
        let mut lines: BTreeMap<QueueId, Heap<GangId>> = BTreeMap::new();
        for (queue, gang) in gangs {
            let (rules, view) = (self.rules, self.view());
            let before = |a, b| rules.job_order(view, a, b).is_lt();
            lines
                .entry(queue)
                .or_insert_with(Heap::new)
                .push(gang, before);
        }
        let mut queues = Heap::new();
        for queue in lines.keys() {
            let (rules, view) = (self.rules, self.view());
            queues.push(*queue, |a, b| rules.queue_order(view, a, b).is_lt());
        }
        loop {
            let (rules, view) = (self.rules, self.view());
            let Some(queue) = queues.pop(|a, b| rules.queue_order(view, a, b).is_lt()) else {
                return;
            };
            let line = lines
                .get_mut(&queue)
                .expect("every queue in the heap has a line");
            let Some(gang) = line.pop(|a, b| rules.job_order(view, a, b).is_lt()) else {
                continue;
            };
            match turn(self, queue, gang) {
                Turn::Again => {
                    let (rules, view) = (self.rules, self.view());
                    let before = |a, b| rules.job_order(view, a, b).is_lt();
                    lines
                        .get_mut(&queue)
                        .expect("the line was just found")
                        .push(gang, before);
                }
                Turn::Done => {}
            }
            let (rules, view) = (self.rules, self.view());
            if !lines[&queue].is_empty() {
                queues.push(queue, |a, b| rules.queue_order(view, a, b).is_lt());
            }
        }
    }
}

fn takes(view: View<'_>, index: &Index, task: TaskId, fence: &Fence, node: NodeId) -> bool {
    let is_refused = || {
        coupling::concerns(view, task)
            && Surroundings::of(view, task, Room::Now)
                .refuses(view.tables, node)
                .is_some()
    };
    index.takes(node) && fence.refuses(view.tables, node).is_none() && !is_refused()
}

/// What a gang wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another one, in its new place in the order.
    Again,
    /// No more.
    Done,
}
