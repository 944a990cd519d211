//! One cycle's work: the actions in their order, on one trial, over the gangs that are to be looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use model::{
    GangId, Hands, NoFit, NodeId, QueueId, Reason, Refusal, ShapeId, TakenVolume, TaskId, Time,
    Trial,
};

use crate::actions::recall;
use crate::clearing::Grounds;
use crate::coupling::{self, Surroundings};
use crate::domains::Scope;
use crate::feasibility::{self, Indexes};
use crate::footing::Asker;
use crate::order::Heap;
use crate::plugin::{Room, Score, View};
use crate::plugins::predicates::volumes;
use crate::plugins::ready_without_promises;
use crate::rules::{Company, Rules, State};
use crate::together::{self, Home};
use crate::turns::Turns;

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
    /// The others, which found a place and had to leave it again.
    pub placed: Placed,
}

/// Which tasks of a gang that cannot start would have a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// So many of each shape, of a gang whose tasks were counted instead of tried.
    Counted(BTreeMap<ShapeId, u64>),
    /// These.
    These(Vec<TaskId>),
}

impl Default for Placed {
    fn default() -> Self {
        Placed::These(Vec::new())
    }
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

/// What a cycle has come past. Nothing here knows how long that took: who hears of it may have a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// It has begun.
    Begun,
    /// A plugin has computed its state.
    Opened {
        /// Which.
        plugin: &'static str,
    },
    /// All plugins have.
    AllOpened,
    /// An action is through.
    Acted {
        /// Which.
        action: &'static str,
    },
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

/// Tasks of a shape that found room when a gang of it failed, known until something else is placed.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) fits: u32,
    /// The same once tasks on their way out are gone.
    pub(crate) later: u32,
    pub(crate) no_fit: Box<NoFit>,
}

/// The tasks of gangs that take turns, each gang's in their order. A gang's is written down in its first turn
/// and struck off one by one: as many turns as it may have tasks, to list and to sort them in each would take
/// the square of their number. No task begins to wait meanwhile but those that were promised room, which are
/// in it, and in no place but the one that they had.
pub(crate) type Lines = BTreeMap<GangId, VecDeque<TaskId>>;

/// For whose sake a decision is tried that nobody carries out.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// The gang.
    pub gang: GangId,
    /// Whether it is told what nodes say to tasks that find none, which costs a look at all of them.
    pub is_told: bool,
}

/// One cycle of the rules on a trial.
pub struct Cycle<'a, 't> {
    pub(crate) trial: &'a mut Trial<'t>,
    pub(crate) rules: &'a Rules,
    pub(crate) indexes: &'a mut Indexes,
    pub(crate) state: State,
    pub(crate) gangs: BTreeSet<GangId>,
    pub(crate) outcomes: BTreeMap<GangId, Outcome>,
    pub(crate) refused: BTreeMap<Asker, Refused>,
    /// The only nodes that are searched, if not all are.
    pub(crate) scope: Option<Scope>,
    /// Gangs for which room is kept that others still use, and what they waited for otherwise.
    pub(crate) draining: BTreeMap<GangId, Outcome>,
    /// Kinds of pods without a group for which no room can be kept, by their queue and shape.
    pub(crate) undrainable: BTreeSet<(QueueId, ShapeId)>,
    /// What is known of room that others hold.
    pub(crate) grounds: Grounds,
    /// Counts evictions, also those that were taken back.
    pub(crate) evictions: u64,
    /// What is left of gangs that take turns.
    pub(crate) lines: Lines,
    /// Counts kept moves: what was found before one of them may no longer hold.
    pub(crate) moves: u64,
    /// The gang after which nobody else matters, if only one is asked about.
    until: Option<GangId>,
    /// Whether it is told what nodes say.
    pub(crate) is_told: bool,
    /// What was done so far.
    pub work: Work,
}

impl<'a, 't> Cycle<'a, 't> {
    /// Runs the configured actions over `gangs`, and says what came of each; `passed` hears how far it is.
    pub fn run(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        (now, passed): (Time, &mut dyn FnMut(Milestone)),
    ) -> (BTreeMap<GangId, Outcome>, Work) {
        passed(Milestone::Begun);
        trial.settle();
        let state = rules.open_heard(trial.tables(), now, passed);
        passed(Milestone::AllOpened);
        Cycle::with(trial, rules, indexes, gangs, state).through(passed)
    }

    /// The same for one gang's sake: whoever would have a turn after it is whole has none. Nobody could take
    /// its places again: who evicts takes none that were found in this cycle, nor any of a gang that is no
    /// start without those it had before ([`crate::victims::is_starting`]).
    pub fn run_for(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        (tried, now): (Tried, Time),
    ) -> (BTreeMap<GangId, Outcome>, Work) {
        let mut cycle = Cycle::begin(trial, rules, indexes, gangs, now);
        cycle.until = Some(tried.gang);
        cycle.is_told = tried.is_told;
        cycle.through(&mut |_| {})
    }

    /// Runs the actions in their order.
    fn through(mut self, passed: &mut dyn FnMut(Milestone)) -> (BTreeMap<GangId, Outcome>, Work) {
        let before = self.indexes.evaluated;
        for action in &self.rules.actions {
            (action.run)(&mut self);
            passed(Milestone::Acted {
                action: action.name,
            });
            if self.has_come_to_an_end() {
                break;
            }
        }
        self.work.nodes = self.indexes.evaluated - before;
        (self.outcomes, self.work)
    }

    /// Promises these gangs again what the status of their pods says they were promised. For who begins
    /// anew, before the first cycle.
    pub fn recall(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        now: Time,
    ) {
        let mut cycle = Cycle::begin(trial, rules, indexes, gangs, now);
        recall::run(&mut cycle);
    }

    fn begin(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        now: Time,
    ) -> Cycle<'a, 't> {
        trial.settle();
        let state = rules.open(trial.tables(), now);
        Cycle::with(trial, rules, indexes, gangs, state)
    }

    fn with(
        trial: &'a mut Trial<'t>,
        rules: &'a Rules,
        indexes: &'a mut Indexes,
        gangs: BTreeSet<GangId>,
        state: State,
    ) -> Cycle<'a, 't> {
        if rules.queues_move_others() {
            trial.watch();
        }
        Cycle {
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
            scope: None,
            draining: BTreeMap::new(),
            undrainable: BTreeSet::new(),
            grounds: Grounds::default(),
            evictions: 0,
            lines: Lines::default(),
            moves: 0,
            until: None,
            is_told: true,
        }
    }

    /// Whether the one gang that is asked about has all that it may get. Its tasks that request nothing
    /// count as started before they have a node: backfill has still to find them one.
    fn has_come_to_an_end(&self) -> bool {
        let has_all = |gang: GangId| {
            let row = self.trial.tables().gang(gang);
            self.outcomes.get(&gang) == Some(&Outcome::Whole) && row.census.pending_best_effort == 0
        };
        self.until.is_some_and(has_all)
    }

    /// Whether enough tasks of the gang have a place: really, not by counting tasks that request nothing and
    /// have none.
    pub(crate) fn is_enough(&self, gang: GangId) -> bool {
        self.rules.job_ready(self.view(), gang) && ready_without_promises(self.trial.tables(), gang)
    }

    pub(crate) fn view(&self) -> View<'_> {
        self.rules.view(self.trial.tables(), &self.state)
    }

    /// Room is kept for so many tasks of the gang until others have left.
    pub(crate) fn kept_for(&self, gang: GangId, tasks: u32) -> Outcome {
        let reason = Arc::new(Reason::WaitsForRelease { tasks });
        if self.is_enough(gang) {
            Outcome::Extras(reason, Lacks::default())
        } else {
            Outcome::WaitsForPromise(reason)
        }
    }

    /// Places the task on a node, where it takes what it needs of the cards and of free volumes.
    pub(crate) fn place(&mut self, task: TaskId, node: NodeId) {
        let grants = self.rules.hand_out(self.view(), task, node);
        let volumes = self.free_volumes(task, node);
        self.trial.place_with(task, node, Hands { grants, volumes });
    }

    /// Promises the task room on a node, where free volumes that its claims need are kept for it.
    pub(crate) fn promise(&mut self, task: TaskId, node: NodeId) {
        let volumes = self.free_volumes(task, node);
        self.trial.promise_with(task, node, volumes);
    }

    /// The free volumes that claims of the task get on the node. Where nobody looks whether they get all
    /// that they need some may stay without.
    fn free_volumes(&self, task: TaskId, node: NodeId) -> Option<Arc<[TakenVolume]>> {
        let view = self.view();
        let shape = view.tables.shape_of(task);
        match shape.spec.volumes.is_empty() {
            true => None,
            false => volumes::choose(view, shape, node).ok().flatten(),
        }
    }

    /// Which nodes suit the task, by their numbers, as far as somebody has looked.
    pub(crate) fn suiting(&mut self, task: TaskId) -> Option<Vec<bool>> {
        let view = self.rules.view(self.trial.tables(), &self.state);
        let asker = self.rules.asker(view, task);
        self.indexes.suiting(self.rules, view, &asker)
    }

    /// The best node for the task now, among those of the scope.
    pub(crate) fn best_node(&mut self, task: TaskId) -> Option<NodeId> {
        self.work.tasks += 1;
        let view = self.rules.view(self.trial.tables(), &self.state);
        let home = match together::home(view.tables, task, Room::Now) {
            Home::Anywhere => None,
            Home::At { node, .. } => Some(node),
            Home::InUse | Home::Nowhere { .. } => return None,
        };
        if let Some(node) = home {
            return self.takes(task, node).then_some(node);
        }
        // Where somebody expects it, be it that room was made there, it goes if it can.
        if let Some(node) = nominated(view, task)
            && self.takes(task, node)
        {
            return Some(node);
        }
        let view = self.rules.view(self.trial.tables(), &self.state);
        let company = self.rules.company(view, task);
        if self.scope.is_none() && (self.leans(view) || !company.is_indifferent()) {
            return leaning_node(self.rules, self.indexes, view, task, &company);
        }
        let Some(scope) = &mut self.scope else {
            return self.indexes.best(self.rules, view, task);
        };
        let asker = self.rules.asker(view, task);
        let (index, around) = self
            .indexes
            .synced_with_surroundings(self.rules, view, &asker, task);
        let lean = |node| company.points(node);
        let pick = |nodes: &[NodeId]| match &around {
            None if company.is_indifferent() => index.best_of(nodes),
            None => best_leaning(index.candidates_in(nodes), lean),
            Some(around) => around.best(view, index, index.candidates_in(nodes), lean),
        };
        scope.best(view, view.tables.shape(asker.0), index, pick)
    }

    /// What `look` does while no nodes are searched but those of the scope, all where there is none.
    pub(crate) fn within<T>(
        &mut self,
        scope: Option<Scope>,
        look: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.scope, scope);
        let found = look(self);
        self.scope = outer;
        found
    }

    /// A move is kept: what was found before may no longer hold.
    pub(crate) fn moved(&mut self) {
        self.moves += 1;
        self.refused.clear();
    }

    /// Whether rules tell nodes apart by the hyper-nodes that they are in.
    fn leans(&self, view: View<'_>) -> bool {
        !view.tables.topology().is_empty() && self.rules.scores_domains()
    }

    /// Whether the node takes the task now, wherever its claims are.
    pub(crate) fn takes(&mut self, task: TaskId, node: NodeId) -> bool {
        if self
            .scope
            .as_ref()
            .is_some_and(|scope| !scope.contains(node))
        {
            return false;
        }
        let view = self.rules.view(self.trial.tables(), &self.state);
        let asker = self.rules.asker(view, task);
        // An index of those who share devices looks at all nodes again with each of them that gets some.
        let takes = match feasibility::shares_devices(view.tables.shape(asker.0)) {
            true => feasibility::takes_now(self.rules, view, &asker, node),
            false => self.indexes.synced(self.rules, view, &asker).takes(node),
        };
        takes && self.refuses(task, node, Room::Now).is_none()
    }

    /// Why the pods elsewhere forbid the node to the task, if they do.
    pub(crate) fn refuses(&mut self, task: TaskId, node: NodeId, room: Room) -> Option<Refusal> {
        let view = self.rules.view(self.trial.tables(), &self.state);
        coupling::refuses(self.indexes.census(), view, task, node, room)
    }

    /// What the pods elsewhere say of nodes for the task now, if anything.
    pub(crate) fn surroundings(&mut self, task: TaskId) -> Option<Surroundings> {
        let view = self.rules.view(self.trial.tables(), &self.state);
        let is_coupled = coupling::concerns(view, task);
        is_coupled.then(|| Surroundings::of(self.indexes.census(), view, task, Room::Now))
    }

    /// Nodes of the scope that would take the task, the best by its own worth first.
    pub(crate) fn candidates(&mut self, task: TaskId) -> Vec<NodeId> {
        let view = self.rules.view(self.trial.tables(), &self.state);
        let index = self
            .indexes
            .synced(self.rules, view, &self.rules.asker(view, task));
        let mut candidates: Vec<_> = match &self.scope {
            None => index.candidates().collect(),
            Some(scope) => index.candidates_in(scope.nodes()).collect(),
        };
        candidates.sort_by_key(|(node, score)| (std::cmp::Reverse(*score), *node));
        candidates.into_iter().map(|(node, _)| node).collect()
    }

    /// Computes again what moved with the trial; whether anything did.
    fn refresh(&mut self) -> bool {
        let moved = self.trial.take_moved();
        let has_moved = !moved.is_empty();
        if has_moved {
            let tables = self.trial.tables();
            self.rules.refresh(tables, &mut self.state, &moved);
        }
        has_moved
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
            lines.entry(queue).or_default().push(gang, before);
        }
        let mut queues = Turns::new(self.rules.has_tree());
        for queue in lines.keys() {
            let (rules, view) = (self.rules, self.view());
            let before = |a, b| rules.queue_order(view, a, b).is_lt();
            queues.push(view.tables, *queue, before);
        }
        let queues_move_others = self.rules.queues_move_others();
        loop {
            let has_moved = queues_move_others && self.refresh();
            let (rules, view) = (self.rules, self.view());
            let before = |a, b| rules.queue_order(view, a, b).is_lt();
            if has_moved {
                queues.sort(before);
            }
            let Some(queue) = queues.pop(before) else {
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
            if self.has_come_to_an_end() {
                return;
            }
            let (rules, view) = (self.rules, self.view());
            if !lines[&queue].is_empty() {
                let before = |a, b| rules.queue_order(view, a, b).is_lt();
                queues.push(view.tables, queue, before);
            }
        }
    }
}

/// The best node for a task that may be anywhere, where nodes are told apart by their hyper-nodes or
/// by where others of the gang are.
fn leaning_node(
    rules: &Rules,
    indexes: &mut Indexes,
    view: View<'_>,
    task: TaskId,
    company: &Company<'_>,
) -> Option<NodeId> {
    let id = view.tables.task(task).shape;
    let shape = view.tables.shape(id);
    let asker = rules.asker(view, task);
    let (_, around) = indexes.synced_with_surroundings(rules, view, &asker, task);
    let (index, sums) = indexes.synced_with_sums(rules, view, &asker);
    let topology = view.tables.topology();
    let points: Vec<Score> = topology
        .domains()
        .map(|(domain, row)| match row.own.is_empty() {
            true => 0,
            false => rules.domain_score(view, sums, domain, shape),
        })
        .collect();
    let lean = |node: NodeId| {
        let of_domain = topology.lowest(node).map_or(0, |id| points[id.index()]);
        of_domain.saturating_add(company.points(node))
    };
    match around {
        Some(around) => around.best(view, index, index.candidates(), lean),
        None => best_leaning(index.candidates(), lean),
    }
}

/// The node with the most points, with those that `lean` gives beside its own; the first one wins a tie.
fn best_leaning(
    candidates: impl Iterator<Item = (NodeId, Score)>,
    lean: impl Fn(NodeId) -> Score,
) -> Option<NodeId> {
    let mut best: Option<(Score, NodeId)> = None;
    for (node, score) in candidates {
        let score = score.saturating_add(lean(node));
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, node));
        }
    }
    best.map(|(_, node)| node)
}

/// The node that a pod's status names, if there is one of that name.
pub(crate) fn nominated(view: View<'_>, task: TaskId) -> Option<NodeId> {
    let name = view.tables.task(task).nominated.as_ref()?;
    let node = view.tables.node_named(name)?;
    view.tables.node(node).known.then_some(node)
}

/// What a gang wants after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another one, in its new place in the order.
    Again,
    /// No more.
    Done,
}
