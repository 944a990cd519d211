//! Room for a gang by evicting others: all that it needs, or nothing at all.
//!
//! Each of its tasks goes to the node where that costs the least: nobody, else the least important and
//! then the fewest victims for each task that finds room. When there is room for enough of the gang,
//! everybody is spared without whom there still is. Where the victims do not suffice, nobody goes.

use std::collections::{BTreeMap, BTreeSet};

use model::{GangId, Mark, NodeId, Phase, QueueId, ShapeId, TaskId};

use crate::actions::allocate::{Asking, waiting_tasks};
use crate::coupling::{self, Surroundings};
use crate::cycle::Cycle;
use crate::plugin::{Claimant, Room};
use crate::plugins::predicates::lacks;
use crate::together;
use crate::victims::{Against, Cost, Offer, Search};

/// What a field was surveyed for: gangs for which all three are the same see the same.
type Likeness = (Against, Vec<u64>, ShapeId);

/// The fields of a cycle.
pub(crate) type Fields = BTreeMap<Likeness, Field>;

/// All nodes by what room for one shape would cost there. A cost is a lower bound until its node comes
/// first; then it is found out, which can only raise it.
#[derive(Debug, Default)]
pub(crate) struct Field {
    cursor: u64,
    evictions: u64,
    leaves: Vec<Option<Cost>>,
    order: BTreeSet<(Cost, NodeId)>,
    /// Nodes whose costs rose since the attempt began.
    raised: Vec<NodeId>,
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

    /// Surveys every node again.
    fn survey(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>) {
        let view = cycle.view();
        let shape = view.tables.shape_of(search.claimant.task);
        self.order.clear();
        self.leaves.clear();
        for (node, _) in view.tables.nodes() {
            self.put(node, search.bound(view, shape, node));
        }
        self.cursor = view.tables.log_end();
        self.evictions = cycle.evictions;
    }

    /// Surveys the nodes that changed.
    fn sync(&mut self, cycle: &Cycle<'_, '_>, search: &Search<'_>) {
        let view = cycle.view();
        let changed = view.tables.changed_since(self.cursor);
        let Some(changed) = changed.filter(|_| !self.leaves.is_empty()) else {
            return self.survey(cycle, search);
        };
        let changed: BTreeSet<NodeId> = changed.iter().copied().collect();
        self.look_again(cycle, search, changed);
        self.cursor = view.tables.log_end();
    }

    fn look_again(
        &mut self,
        cycle: &Cycle<'_, '_>,
        search: &Search<'_>,
        nodes: impl IntoIterator<Item = NodeId>,
    ) {
        let view = cycle.view();
        let shape = view.tables.shape_of(search.claimant.task);
        for node in nodes {
            let is_known = view.tables.find_node(node).is_some_and(|row| row.known);
            let cost = is_known.then(|| search.bound(view, shape, node)).flatten();
            self.put(node, cost);
        }
    }

    /// The cheapest node for the claimant's task, with whom it takes.
    fn cheapest(
        &mut self,
        cycle: &mut Cycle<'_, '_>,
        search: &Search<'_>,
    ) -> Option<(NodeId, Offer)> {
        self.sync(cycle, search);
        loop {
            while let Some((cost, node)) = self.order.first().copied() {
                let offer = offer(cycle, search, node);
                let found = offer.as_ref().map(|offer| offer.cost);
                if found.is_some_and(|found| found <= cost) {
                    return offer.map(|offer| (node, offer));
                }
                self.put(node, found);
                self.raised.push(node);
            }
            // Who may be evicted changes with every eviction, for good or ill.
            if self.evictions == cycle.evictions {
                return None;
            }
            self.survey(cycle, search);
        }
    }
}

/// Whom the task would take room from on the node, if the node takes it then.
fn offer(cycle: &mut Cycle<'_, '_>, search: &Search<'_>, node: NodeId) -> Option<Offer> {
    let task = search.claimant.task;
    let view = cycle.view();
    let shape = view.tables.shape_of(task);
    let home = together::home(view.tables, task);
    if home.refuses(node).is_some() || search.rules.suits(view, shape, node).is_some() {
        return None;
    }
    let is_about_amounts = shape.spec.ports.is_empty()
        && shape.spec.volumes.is_empty()
        && !coupling::concerns(view, task);
    if is_about_amounts {
        return search.offer(view, shape, node);
    }
    tried(cycle, search, node)
}

/// The same where more than amounts decide: found by evicting one after the other, and sparing those
/// without whom it does as well.
fn tried(cycle: &mut Cycle<'_, '_>, search: &Search<'_>, node: NodeId) -> Option<Offer> {
    let task = search.claimant.task;
    let candidates = search.candidates(cycle.view(), node);
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
        && cycle.rules.has_room(view, shape, node, Room::Later).is_none()
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
    let mut clearing = Clearing {
        rules: cycle.rules,
        against,
        queue,
        gang,
        likeness: likeness(cycle, against, gang),
        promised: Vec::new(),
    };
    let mut fields = std::mem::take(&mut cycle.fields);
    for field in fields.values_mut() {
        field.raised.clear();
    }
    clearing.seek(cycle, &mut fields);
    let found = !clearing.promised.is_empty() && cycle.rules.job_pipelined(cycle.view(), gang);
    if found {
        clearing.spare(cycle, &mut fields, mark);
        cycle.moves += 1;
        cycle.refused.clear();
        let tasks = cycle.trial.tables().gang(gang).count(Phase::Pipelined);
        let outcome = cycle.kept_for(gang, tasks);
        cycle.outcomes.insert(gang, outcome);
    } else {
        cycle.trial.rewind(mark);
        clearing.restore(cycle, &mut fields);
    }
    cycle.fields = fields;
}

/// Gangs with the same numbers may take the same tasks from others.
fn likeness(cycle: &Cycle<'_, '_>, against: Against, gang: GangId) -> Vec<u64> {
    match against {
        Against::OtherQueues => cycle.rules.reclaims_like(cycle.view(), gang),
        Against::OtherGangs | Against::OwnTasks => vec![u64::from(gang.0)],
    }
}

impl Clearing<'_> {
    fn seek(&mut self, cycle: &mut Cycle<'_, '_>, fields: &mut Fields) {
        let mut hopeless = BTreeSet::new();
        for asking in [Asking::Something, Asking::Nothing] {
            for task in waiting_tasks(cycle, self.gang, asking) {
                if !cycle.rules.job_starving(cycle.view(), self.gang) {
                    return;
                }
                let shape = cycle.trial.tables().task(task).shape;
                if hopeless.contains(&shape) || !self.may_claim(cycle, task) {
                    continue;
                }
                if !self.take(cycle, fields, task) {
                    hopeless.insert(shape);
                }
            }
        }
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
        }
    }

    /// Promises the task the room that costs the least, and evicts for it.
    fn take(&mut self, cycle: &mut Cycle<'_, '_>, fields: &mut Fields, task: TaskId) -> bool {
        let shape = cycle.trial.tables().task(task).shape;
        let key = (self.against, self.likeness.clone(), shape);
        let field = fields.entry(key).or_default();
        let search = self.search(cycle, task);
        let Some((node, offer)) = field.cheapest(cycle, &search) else {
            return false;
        };
        let cause = self.against.cause();
        let mark = cycle.trial.mark();
        for victim in &offer.victims {
            cycle.trial.evict(*victim, self.gang, cause);
            cycle.evictions += 1;
        }
        // Room that others leave may bring the queue back within its share.
        if cycle.rules.allocatable(cycle.view(), self.queue, task).is_some() {
            cycle.trial.rewind(mark);
            return false;
        }
        cycle.trial.promise(task, node);
        self.promised.push((task, node));
        true
    }

    /// Lets everybody go on without whom the gang has room as well, the last chosen first.
    fn spare(&mut self, cycle: &mut Cycle<'_, '_>, fields: &mut Fields, mark: Mark) {
        let mut victims = cycle.trial.evicted_since(mark);
        let tables = cycle.trial.tables();
        let priority = |task: &TaskId| tables.task(*task).gang.map(|g| tables.gang(g).priority);
        victims.reverse();
        victims.sort_by_key(|task| std::cmp::Reverse(priority(task)));
        for victim in victims {
            let here = cycle.trial.mark();
            let before = self.promised.clone();
            let node = cycle.trial.tables().task(victim).node;
            cycle.trial.spare(victim);
            let still = node.is_some_and(|node| self.resettle(cycle, fields, node));
            if !still {
                cycle.trial.rewind(here);
                self.promised = before;
            }
        }
    }

    /// Whether the gang's tasks that were promised room on the node have it still, or find some
    /// elsewhere that costs nobody anything.
    fn resettle(&mut self, cycle: &mut Cycle<'_, '_>, fields: &mut Fields, node: NodeId) -> bool {
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
            let shape = cycle.trial.tables().task(task).shape;
            let key = (self.against, self.likeness.clone(), shape);
            let field = fields.entry(key).or_default();
            let search = self.search(cycle, task);
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

    fn restore(&self, cycle: &Cycle<'_, '_>, fields: &mut Fields) {
        for ((against, likeness, shape), field) in fields {
            if (*against, likeness) != (self.against, &self.likeness) {
                continue;
            }
            let raised = std::mem::take(&mut field.raised);
            let tasks = &cycle.trial.tables().gang(self.gang).tasks;
            let mut tasks = tasks.iter().copied();
            let of_shape = tasks.find(|task| cycle.trial.tables().task(*task).shape == *shape);
            if let Some(task) = of_shape {
                field.look_again(cycle, &self.search(cycle, task), raised);
            }
        }
    }
}

/// Whether the node will have the room that the tasks were promised there.
pub(crate) fn keep_their_room(
    cycle: &mut Cycle<'_, '_>,
    node: NodeId,
    tasks: &[TaskId],
) -> bool {
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
        let mark = cycle.trial.mark();
        cycle.trial.unpromise(*task);
        let takes = will_take(cycle, *task, node);
        cycle.trial.rewind(mark);
        takes
    })
}
