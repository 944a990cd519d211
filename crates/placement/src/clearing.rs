//! Room for a gang by evicting others: all that it needs, or nothing at all.
//!
//! Each of its tasks goes to the node where that costs the least: nobody, else the least important and
//! then the fewest victims for each task that finds room. When there is room for enough of the gang,
//! everybody is spared without whom there still is. Where the victims do not suffice, nobody goes.

use std::collections::{BTreeMap, BTreeSet};

use model::{GangId, Mark, NodeId, Phase, QueueId, ShapeId, Share, Tables, TaskId};

use crate::actions::allocate::{Asking, waiting_tasks};
use crate::coupling::{self, Surroundings};
use crate::cycle::Cycle;
use crate::plugin::{Claimant, Room};
use crate::plugins::predicates::lacks;
use crate::together;
use crate::victims::{self, Against, Cost, Offer, Search};

/// What a field was surveyed for: against whom (for tasks of one queue or one gang, which), up to which
/// priority, and for which shape.
type Ground = (Against, u32, i32, ShapeId);

/// Claimants who may take the same tasks from others for the same shape.
type Likeness = (Against, Vec<u64>, ShapeId);

/// How many tasks that differ are tried in other ways for the sake of one victim.
const REFIT_TASKS_MAX: usize = 64;

/// How many nodes that cost nobody anything are tried for each shape then.
const REFIT_NODES_MAX: usize = 16;

/// How often at most a node is looked at for a task then.
const REFIT_LOOKS_MAX: u32 = 2_000;

/// What a cycle knows of room that others hold.
#[derive(Debug, Default)]
pub(crate) struct Grounds {
    fields: BTreeMap<Ground, Field>,
    /// For whom no node was found when so many moves were kept.
    hopeless: BTreeMap<Likeness, u64>,
}

impl Grounds {
    fn field(&mut self, ground: Ground) -> &mut Field {
        self.fields.entry(ground).or_default()
    }
}

/// All nodes by what room for one shape would cost there at least. What it costs a claimant is found out
/// when the node comes first, which can only raise it; claimants who may take the same share what was
/// found out.
#[derive(Debug, Default)]
struct Field {
    cursor: u64,
    leaves: Vec<Option<Cost>>,
    order: BTreeSet<(Cost, NodeId)>,
    /// Nodes whose costs were raised, and for whom.
    raised: Vec<NodeId>,
    whose: Vec<u64>,
    /// How many of them were when the attempt began.
    begun: usize,
    /// How many were evicted when nothing had been raised yet.
    evictions: u64,
    /// Whose turn it is on the node that came first the last time in this attempt: the next task is
    /// likely to meet it there again.
    in_turn: Option<(NodeId, Vec<TaskId>)>,
}

impl Field {
    fn put(&mut self, node: NodeId, cost: Option<Cost>) {
        if node.index() >= self.leaves.len() {
            self.leaves.resize(node.index() + 1, None);
        }
        let leaf = &mut self.leaves[node.index()];
        if *leaf == cost {
            return;
        }
        if let Some(old) = *leaf {
            self.order.remove(&(old, node));
        }
        if let Some(new) = cost {
            self.order.insert((new, node));
        }
        *leaf = cost;
    }

    /// Surveys the nodes that changed since the last time; all of them the first time.
    fn sync(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>) {
        let tables = cycle.trial.tables();
        let changed = tables.changed_since(self.cursor);
        match changed.filter(|_| !self.leaves.is_empty()) {
            Some(changed) => {
                let mut changed = changed.to_vec();
                changed.sort_unstable();
                changed.dedup();
                self.look_again(cycle, search, changed);
            }
            None => {
                let all: Vec<NodeId> = tables.all_nodes().map(|(id, _)| id).collect();
                self.look_again(cycle, search, all);
            }
        }
        self.cursor = tables.log_end();
    }

    fn look_again(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, nodes: Vec<NodeId>) {
        let view = cycle.view();
        let shape = view.tables.shape_of(search.claimant.task);
        for node in nodes {
            let is_known = view.tables.find_node(node).is_some_and(|row| row.known);
            let cost = is_known.then(|| search.bound(view, shape, node)).flatten();
            self.put(node, cost);
        }
    }

    /// Gets ready for a claimant: what others found out counts only if they may take the same.
    fn meet(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, likeness: &[u64]) {
        if self.whose != likeness {
            self.forget(cycle, search, 0);
            self.whose = likeness.to_vec();
        }
        self.sync(cycle, search);
    }

    /// Forgets what was found out, but for the first nodes.
    fn forget(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>, but: usize) {
        if self.raised.len() > but {
            let raised = self.raised.split_off(but);
            self.look_again(cycle, search, raised);
        }
        self.begun = self.begun.min(but);
    }

    fn costs_nothing(&self) -> bool {
        self.costing_nothing().next().is_some()
    }

    /// Nodes that have room without any eviction, as far as is known.
    fn costing_nothing(&self) -> impl Iterator<Item = NodeId> {
        let free = self
            .order
            .iter()
            .take_while(|(cost, _)| *cost == Cost::NONE);
        free.map(|(_, node)| *node)
    }

    /// The cheapest node for the claimant's task, with whom it takes.
    fn cheapest(
        &mut self,
        cycle: &mut Cycle<'_, '_>,
        search: &Search<'_>,
    ) -> Option<(NodeId, Offer)> {
        loop {
            while let Some((cost, node)) = self.order.first().copied() {
                let in_turn = match self.in_turn.take() {
                    Some((at, tasks)) if at == node => tasks,
                    _ => search.in_turn(cycle.view(), node),
                };
                let offer = offer(cycle, search, node, &in_turn);
                self.in_turn = Some((node, in_turn));
                let found = offer.as_ref().map(|offer| offer.cost);
                if found.is_some_and(|found| found <= cost) {
                    return offer.map(|offer| (node, offer));
                }
                if self.raised.is_empty() {
                    self.evictions = cycle.evictions;
                }
                self.put(node, found);
                self.raised.push(node);
            }
            // Who may be evicted changes with every eviction, for good or ill.
            if self.raised.is_empty() || self.evictions == cycle.evictions {
                return None;
            }
            self.forget(cycle, search, 0);
        }
    }
}

/// Whom the task would take room from on the node, if the node takes it then.
fn offer(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
    node: NodeId,
    in_turn: &[TaskId],
) -> Option<Offer> {
    let task = search.claimant.task;
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    let home = together::home(view.tables, task);
    if home.refuses(node).is_some() || search.rules.suits(view, shape, node).is_some() {
        return None;
    }
    if is_about_amounts(cycle, task) {
        return search.offer(view, shape, node, in_turn);
    }
    tried(cycle, search, node, in_turn)
}

/// Whether nothing that is on a node but amounts decides whether it takes the task.
fn is_about_amounts(cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    shape.spec.cards.is_none()
        && shape.spec.ports.is_empty()
        && shape.spec.volumes.is_empty()
        && !coupling::concerns(view, task)
}

/// The same where more than amounts decide: found by evicting one after the other, and sparing those
/// without whom it does as well.
fn tried(
    cycle: &mut Cycle<'_, '_>,
    search: &Search<'_>,
    node: NodeId,
    in_turn: &[TaskId],
) -> Option<Offer> {
    let task = search.claimant.task;
    let candidates = search.candidates(cycle.view(), in_turn);
    let mark = cycle.trial.mark();
    let (gang, cause) = (search.claimant.gang, search.against.cause());
    let mut victims = Vec::new();
    for victim in candidates {
        if will_take(cycle, task, node) {
            break;
        }
        cycle.trial.evict(victim, gang, cause);
        victims.push(victim);
    }
    let mut offer = None;
    if will_take(cycle, task, node) {
        for at in (0..victims.len()).rev() {
            let here = cycle.trial.mark();
            cycle.trial.spare(victims[at]);
            if will_take(cycle, task, node) {
                victims.remove(at);
            } else {
                cycle.trial.rewind(here);
            }
        }
        let cost = search.cost_of(cycle.trial.tables(), &victims, 1);
        offer = Some(Offer { cost, victims });
    }
    cycle.trial.rewind(mark);
    offer
}

/// Whether the node takes the task once everybody on the way out is gone.
pub(crate) fn will_take(cycle: &Cycle<'_, '_>, task: TaskId, node: NodeId) -> bool {
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    view.tables.node(node).known
        && lacks(view, shape, node, Room::Later).is_none()
        && cycle.rules.suits(view, shape, node).is_none()
        && cycle
            .rules
            .has_room(view, shape, node, Room::Later)
            .is_none()
        && together::home(view.tables, task).refuses(node).is_none()
        && (!coupling::concerns(view, task)
            || Surroundings::of(view, task, Room::Later)
                .refuses(view.tables, node)
                .is_none())
}

/// One gang's search for room.
struct Clearing<'r> {
    rules: &'r crate::rules::Rules,
    against: Against,
    queue: QueueId,
    gang: GangId,
    likeness: Vec<u64>,
    /// No victim's gang is more important than this.
    ceiling: i32,
    /// What was promised, in order.
    promised: Vec<(TaskId, NodeId)>,
}

/// Evicts what the gang needs and promises it the room. Where that cannot be nothing changes.
pub(crate) fn clear_room(
    cycle: &mut Cycle<'_, '_>,
    against: Against,
    queue: QueueId,
    gang: GangId,
) {
    let mark = cycle.trial.mark();
    let mut grounds = std::mem::take(&mut cycle.grounds);
    let mut clearing = Clearing {
        rules: cycle.rules,
        against,
        queue,
        gang,
        likeness: cycle.rules.claims_like(cycle.view(), against, queue, gang),
        ceiling: i32::MAX,
        promised: Vec::new(),
    };
    let mut found = clearing.attempt(cycle, &mut grounds, mark);
    // Who makes room for one task may have to be more important than who would for another: where
    // their priorities differ it is tried without the highest.
    while let Some((least, most)) = found.then(|| priorities(cycle, mark)).flatten()
        && least < most
    {
        let better = Clearing {
            ceiling: most - 1,
            promised: Vec::new(),
            likeness: clearing.likeness.clone(),
            ..clearing
        };
        let kept = std::mem::replace(&mut clearing, better);
        cycle.trial.rewind(mark);
        kept.forget(cycle, &mut grounds);
        if !clearing.attempt(cycle, &mut grounds, mark) {
            clearing = kept;
            clearing.promised.clear();
            found = clearing.attempt(cycle, &mut grounds, mark);
            break;
        }
    }
    if found {
        clearing.spare(cycle, &mut grounds, mark);
        cycle.moves += 1;
        cycle.refused.clear();
        let tasks = cycle.trial.tables().gang(gang).count(Phase::Pipelined);
        let outcome = cycle.kept_for(gang, tasks);
        cycle.outcomes.insert(gang, outcome);
    }
    cycle.grounds = grounds;
}

/// The least and the most important victims' priorities since the mark.
fn priorities(cycle: &Cycle<'_, '_>, mark: Mark) -> Option<(i32, i32)> {
    let tables = cycle.trial.tables();
    let victims = cycle.trial.evicted_since(mark).into_iter();
    let all: Vec<i32> = victims
        .map(|task| victims::priority_of(tables, task))
        .collect();
    Some((*all.iter().min()?, *all.iter().max()?))
}

impl Clearing<'_> {
    /// Promises room to enough of the gang, or leaves the trial as it was.
    fn attempt(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, mark: Mark) -> bool {
        for first in [First::Largest, First::Pickiest] {
            for field in grounds.fields.values_mut() {
                field.begun = field.raised.len();
                field.in_turn = None;
            }
            let differ = self.seek(cycle, grounds, first);
            if !self.promised.is_empty() && cycle.rules.job_pipelined(cycle.view(), self.gang) {
                return true;
            }
            cycle.trial.rewind(mark);
            self.promised.clear();
            self.forget(cycle, grounds);
            if !differ {
                break;
            }
        }
        false
    }

    /// Promises each task room in its turn; whether the tasks differ in what they ask for.
    fn seek(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, first: First) -> bool {
        let (mut hopeless, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        for asking in [Asking::Something, Asking::Nothing] {
            let mut tasks = waiting_tasks(cycle, self.gang, asking);
            put_first(cycle.trial.tables(), &mut tasks, first);
            for task in tasks {
                let shape = cycle.trial.tables().task(task).shape;
                shapes.insert(shape);
                if !cycle.rules.job_starving(cycle.view(), self.gang) {
                    return shapes.len() > 1;
                }
                if hopeless.contains(&shape)
                    || !self.may_claim(cycle, task)
                    || self.is_hopeless(cycle, grounds, task)
                {
                    continue;
                }
                if !self.take(cycle, grounds, task) {
                    hopeless.insert(shape);
                }
            }
        }
        shapes.len() > 1
    }

    fn may_claim(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
        let view = cycle.view();
        match self.against {
            Against::OtherQueues => cycle.rules.preemptive(view, self.queue, task),
            Against::OtherGangs | Against::OwnTasks => view.tables.task(task).preempts,
        }
    }

    fn search(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> Search<'_> {
        let gang = cycle.trial.tables().gang(self.gang);
        Search {
            rules: self.rules,
            against: self.against,
            claimant: Claimant {
                task,
                gang: self.gang,
                queue: self.queue,
            },
            wanting: gang.count(Phase::Pending),
            ceiling: self.ceiling,
        }
    }

    /// Promises the task the room that costs the least, and evicts for it.
    fn take(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, task: TaskId) -> bool {
        let search = self.search(cycle, task);
        let mark = cycle.trial.mark();
        if !self.make_share(cycle, &search) {
            return false;
        }
        let field = grounds.field(self.ground(cycle, task));
        field.meet(cycle, &search, &self.likeness);
        let Some((node, offer)) = field.cheapest(cycle, &search) else {
            if self.promised.is_empty() && self.ceiling == i32::MAX {
                grounds
                    .hopeless
                    .insert(self.likeness(cycle, task), cycle.moves);
            }
            cycle.trial.rewind(mark);
            return false;
        };
        let cause = self.against.cause();
        for victim in &offer.victims {
            cycle.trial.evict(*victim, self.gang, cause);
            cycle.evictions += 1;
        }
        cycle.trial.promise(task, node);
        self.promised.push((task, node));
        true
    }

    /// Where it is the queue's share that is short, others of the queue leave it, wherever they are, until
    /// the task is within it.
    fn make_share(&self, cycle: &mut Cycle<'_, '_>, search: &Search<'_>) -> bool {
        let task = search.claimant.task;
        let is_within = |cycle: &Cycle<'_, '_>| {
            let refused = cycle.rules.allocatable(cycle.view(), self.queue, task);
            refused.is_none()
        };
        if is_within(cycle) {
            return true;
        }
        if self.against == Against::OtherQueues {
            return false;
        }
        let mark = cycle.trial.mark();
        let view = cycle.view();
        let in_turn = search.all_in_turn(view);
        for victim in search.candidates(view, &in_turn) {
            cycle.trial.evict(victim, self.gang, self.against.cause());
            cycle.evictions += 1;
            if is_within(cycle) {
                return true;
            }
        }
        cycle.trial.rewind(mark);
        false
    }

    /// Whether the queue has its share for what is promised to the gang.
    fn is_within_share(&self, cycle: &mut Cycle<'_, '_>) -> bool {
        let Some((task, _)) = self.promised.last().copied() else {
            return true;
        };
        let mark = cycle.trial.mark();
        cycle.trial.unpromise(task);
        let refused = cycle.rules.allocatable(cycle.view(), self.queue, task);
        cycle.trial.rewind(mark);
        refused.is_none()
    }

    /// Lets everybody go on without whom the gang has room as well, the last chosen first.
    fn spare(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, mark: Mark) {
        let mut victims = cycle.trial.evicted_since(mark);
        let tables = cycle.trial.tables();
        victims.reverse();
        victims.sort_by_key(|task| std::cmp::Reverse(victims::priority_of(tables, *task)));
        for victim in victims {
            let here = cycle.trial.mark();
            let before = self.promised.clone();
            let node = cycle.trial.tables().task(victim).node;
            cycle.trial.spare(victim);
            if !self.is_within_share(cycle) {
                cycle.trial.rewind(here);
                continue;
            }
            if node.is_some_and(|node| self.resettle(cycle, grounds, node)) {
                continue;
            }
            cycle.trial.rewind(here);
            cycle.trial.spare(victim);
            self.promised = before.clone();
            if !self.refit(cycle, grounds) {
                cycle.trial.rewind(here);
                self.promised = before;
            }
        }
    }

    /// Whether tasks that differ find room in another way among the nodes that they were promised and
    /// some that cost nobody anything. Those that are alike need not be asked: one is as good as the
    /// other.
    fn refit(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds) -> bool {
        let mut tasks: Vec<TaskId> = self.promised.iter().map(|(task, _)| *task).collect();
        let mut shapes: Vec<TaskId> = tasks.clone();
        let tables = cycle.trial.tables();
        shapes.sort_by_key(|task| tables.task(*task).shape);
        shapes.dedup_by_key(|task| tables.task(*task).shape);
        if shapes.len() < 2 || tasks.len() > REFIT_TASKS_MAX {
            return false;
        }
        put_first(tables, &mut tasks, First::Largest);
        let mut nodes: BTreeSet<NodeId> = self.promised.iter().map(|(_, node)| *node).collect();
        for task in &tasks {
            cycle.trial.unpromise(*task);
        }
        for task in shapes {
            let field = grounds.field(self.ground(cycle, task));
            field.meet(cycle, &self.search(cycle, task), &self.likeness);
            nodes.extend(field.costing_nothing().take(REFIT_NODES_MAX));
        }
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        let mut looks = REFIT_LOOKS_MAX;
        self.promised.clear();
        fit(cycle, &tasks, &nodes, &mut looks, &mut self.promised)
    }

    fn ground(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> Ground {
        let shape = cycle.trial.tables().task(task).shape;
        let whose = match self.against {
            Against::OtherQueues => 0,
            Against::OtherGangs => self.queue.0,
            Against::OwnTasks => self.gang.0,
        };
        (self.against, whose, self.ceiling, shape)
    }

    fn likeness(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> Likeness {
        let shape = cycle.trial.tables().task(task).shape;
        (self.against, self.likeness.clone(), shape)
    }

    /// Whether somebody who may take the same found no node just now.
    fn is_hopeless(&self, cycle: &Cycle<'_, '_>, grounds: &Grounds, task: TaskId) -> bool {
        let known = grounds.hopeless.get(&self.likeness(cycle, task));
        self.promised.is_empty() && known == Some(&cycle.moves)
    }

    /// Whether the gang's tasks that were promised room on the node have it still, or find some
    /// elsewhere that costs nobody anything.
    fn resettle(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, node: NodeId) -> bool {
        let here = |(_, at): &(TaskId, NodeId)| *at == node;
        let mut moved = Vec::new();
        while let Some(at) = self.promised.iter().rposition(here) {
            if self.suffices(cycle, node) {
                break;
            }
            let (task, _) = self.promised.remove(at);
            cycle.trial.unpromise(task);
            moved.push(task);
        }
        if !self.suffices(cycle, node) {
            return false;
        }
        moved.into_iter().all(|task| {
            let search = self.search(cycle, task);
            let field = grounds.field(self.ground(cycle, task));
            field.meet(cycle, &search, &self.likeness);
            if !field.costs_nothing() {
                return false;
            }
            match field.cheapest(cycle, &search) {
                Some((node, offer)) if offer.victims.is_empty() => {
                    cycle.trial.promise(task, node);
                    self.promised.push((task, node));
                    true
                }
                _ => false,
            }
        })
    }

    /// Whether the gang's tasks on the node will have the room that they were promised.
    fn suffices(&self, cycle: &mut Cycle<'_, '_>, node: NodeId) -> bool {
        let promised = self.promised.iter().filter(|(_, at)| *at == node);
        let tasks: Vec<TaskId> = promised.map(|(task, _)| *task).collect();
        keep_their_room(cycle, node, &tasks)
    }

    /// Forgets what nodes cost in an attempt that was taken back: with it went its evictions.
    fn forget(&self, cycle: &Cycle<'_, '_>, grounds: &mut Grounds) {
        let tables = cycle.trial.tables();
        for (ground, field) in &mut grounds.fields {
            let mut tasks = tables.gang(self.gang).tasks.iter().copied();
            let of_shape = tasks.find(|task| tables.task(*task).shape == ground.3);
            let of_shape = of_shape.filter(|_| field.raised.len() > field.begun);
            if let Some(task) = of_shape {
                let search = Search {
                    ceiling: ground.2,
                    ..self.search(cycle, task)
                };
                field.forget(cycle, &search, field.begun);
            }
        }
    }
}

/// Promises each task room on one of the nodes, if there is a way that is found in time.
fn fit(
    cycle: &mut Cycle<'_, '_>,
    tasks: &[TaskId],
    nodes: &[NodeId],
    looks: &mut u32,
    promised: &mut Vec<(TaskId, NodeId)>,
) -> bool {
    let [task, rest @ ..] = tasks else {
        return true;
    };
    for node in nodes {
        if *looks == 0 {
            return false;
        }
        *looks -= 1;
        if !will_take(cycle, *task, *node) {
            continue;
        }
        let mark = cycle.trial.mark();
        cycle.trial.promise(*task, *node);
        promised.push((*task, *node));
        if fit(cycle, rest, nodes, looks, promised) {
            return true;
        }
        promised.pop();
        cycle.trial.rewind(mark);
    }
    false
}

/// Which of tasks that differ choose first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The large ones: what is left suits small ones more easily.
    Largest,
    /// Those that ask for the most kinds of resources: what is left suits the others.
    Pickiest,
}

fn put_first(tables: &Tables, tasks: &mut [TaskId], first: First) {
    let held = |task: &TaskId| &tables.shape_of(*task).held;
    let size = |task: &TaskId| Share::dominant(held(task), tables.total());
    let kinds = |task: &TaskId| match first {
        First::Largest => 0,
        First::Pickiest => held(task).entries().count(),
    };
    // Stable: among equals the one that comes first in the gang's order.
    tasks.sort_by_key(|task| std::cmp::Reverse((kinds(task), size(task))));
}

/// Whether the node will have the room that the tasks were promised there.
pub(crate) fn keep_their_room(cycle: &mut Cycle<'_, '_>, node: NodeId, tasks: &[TaskId]) -> bool {
    let tables = cycle.trial.tables();
    let row = tables.node(node);
    let has_amounts = |task: &TaskId| {
        let mut held = tables.shape_of(*task).held.entries();
        held.all(|(kind, need)| need <= 0 || row.free_later(kind) >= 0)
    };
    if !row.known || !tasks.iter().all(has_amounts) {
        return false;
    }
    // Rules that look at who else is there are asked as if the task came anew.
    tasks.iter().all(|task| {
        if is_about_amounts(cycle, *task) {
            return true;
        }
        let mark = cycle.trial.mark();
        cycle.trial.unpromise(*task);
        let takes = will_take(cycle, *task, node);
        cycle.trial.rewind(mark);
        takes
    })
}
