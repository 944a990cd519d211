//! Whose room a task may take on one node, and the fewest of them that make enough.

use std::collections::{BTreeMap, BTreeSet};

use model::{Gang, GangId, Kind, NodeId, Phase, QueueId, Shape, Share, Tables, TaskId};

use crate::plugin::{Claimant, View};
use crate::rules::Rules;
use crate::settings::Difference;

/// From whom room is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Against {
    /// Gangs of other queues.
    OtherQueues,
    /// Other gangs of the same queue.
    OtherGangs,
    /// Lesser tasks of the same gang.
    OwnTasks,
}

impl Against {
    /// Upstream's word for the reason of an eviction.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Against::OtherQueues => "reclaim",
            Against::OtherGangs | Against::OwnTasks => "preempt",
        }
    }

    /// The action that clears whole places for the same.
    pub(crate) fn by_places(self) -> &'static str {
        match self {
            Against::OtherQueues => "gangreclaim",
            Against::OtherGangs | Against::OwnTasks => "gangpreempt",
        }
    }
}

/// What making room on a node costs, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// The priority of the most important victim's gang; the lowest number where there is none.
    priority: i32,
    /// Victims for each task that finds room, in millionths.
    per_task: u64,
    /// How many victims the first task costs.
    victims: u32,
    /// How many tasks find room then.
    tasks: u32,
}

impl Cost {
    /// No eviction at all.
    pub(crate) const NONE: Cost = Cost {
        priority: i32::MIN,
        per_task: 0,
        victims: 0,
        tasks: 0,
    };

    /// The priority of the most important victim's gang, at least.
    pub(crate) fn priority(self) -> i32 {
        self.priority
    }

    /// The same where so many tasks want room: more than these do not make it a bargain.
    pub(crate) fn wanted_by(self, tasks: u32) -> Cost {
        if self.victims == 0 || self.tasks <= tasks {
            return self;
        }
        cost(self.priority, self.victims, u64::from(tasks))
    }
}

/// Tasks that make room on a node, in the order in which they would be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) cost: Cost,
    pub(crate) victims: Vec<TaskId>,
}

/// One search for room: who asks, against whom, and how many tasks of the same shape still want some.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) against: Against,
    pub(crate) claimant: Claimant,
    pub(crate) wanting: u32,
    /// No victim's gang is more important than this.
    pub(crate) ceiling: i32,
}

impl Search<'_> {
    /// The tasks on the node that could make room, in the order in which they go: mostly the rules let
    /// the claimant evict few of them or nobody, which is found out before they are put in order.
    pub(crate) fn in_turn(&self, view: View<'_>, node: NodeId) -> Vec<TaskId> {
        let tasks = view.tables.node(node).tasks.iter().copied();
        let mut tasks: Vec<TaskId> = tasks.filter(|task| self.may_give(view, *task)).collect();
        let gives = |task: &TaskId| {
            self.rules
                .gives_alone(view, self.against, self.claimant, *task)
        };
        if self.rules.refused_do_not_count(self.against) {
            tasks.retain(gives);
        } else if !tasks.iter().any(gives) {
            return Vec::new();
        }
        self.sort(view, &mut tasks);
        tasks
    }

    /// Those of one gang on some nodes, whose places in their order these are.
    pub(crate) fn in_turn_of(
        &self,
        view: View<'_>,
        gang: GangId,
        nodes: &BTreeMap<NodeId, usize>,
    ) -> Vec<TaskId> {
        let place = |task: TaskId| nodes.get(&view.tables.task(task).node?).copied();
        let tasks = view.tables.gang(gang).tasks.iter().copied();
        let there = tasks.filter_map(|task| Some((place(task)?, task)));
        let mut there: Vec<(usize, TaskId)> = there
            .filter(|(_, task)| self.may_give(view, *task))
            .collect();
        there.sort_unstable();
        let mut tasks: Vec<TaskId> = there.into_iter().map(|(_, task)| task).collect();
        self.sort(view, &mut tasks);
        tasks
    }

    /// Those on some nodes, also who goes with all of his gang only.
    pub(crate) fn who_may_go_on(&self, view: View<'_>, nodes: &[NodeId]) -> Vec<TaskId> {
        let nodes = nodes.iter().map(|node| view.tables.node(*node));
        let tasks = nodes.flat_map(|node| &node.tasks).copied();
        let mut tasks: Vec<TaskId> = tasks.filter(|task| self.may_go(view, *task)).collect();
        self.sort(view, &mut tasks);
        tasks
    }

    /// The same on whatever node, of the claimant's queue.
    pub(crate) fn own_in_turn(&self, view: View<'_>) -> Vec<TaskId> {
        let is_on_one = |task: &TaskId| {
            let node = view.tables.task(*task).node;
            node.is_some_and(|node| view.tables.node(node).known)
        };
        let mut tasks = Vec::new();
        for gang in self.own_gangs(view).into_iter().flatten() {
            let own = view.tables.gang(gang).tasks.iter().copied();
            tasks.extend(own.filter(|task| is_on_one(task) && self.may_give(view, *task)));
        }
        self.sort(view, &mut tasks);
        tasks
    }

    /// On which nodes, by index, are tasks that could make room; `None` if that may be anywhere, or if so many
    /// nodes are looked at more quickly.
    pub(crate) fn own_nodes(&self, view: View<'_>, instead_of: usize) -> Option<Vec<bool>> {
        if view.tables.queue(self.claimant.queue).gangs.len() > instead_of {
            return None;
        }
        let mut nodes = Vec::new();
        for gang in self.own_gangs(view)? {
            let own = view.tables.gang(gang).tasks.iter();
            for node in own.filter_map(|task| view.tables.task(*task).node) {
                if nodes.len() <= node.index() {
                    nodes.resize(node.index() + 1, false);
                }
                nodes[node.index()] = true;
            }
        }
        Some(nodes)
    }

    /// The gangs that hold something of those whose tasks could make room; `None` if that may be any.
    fn own_gangs(&self, view: View<'_>) -> Option<Vec<GangId>> {
        let holds = |gang: &GangId| {
            let row = view.tables.gang(*gang);
            row.count(Phase::Pending) as usize != row.tasks.len()
        };
        let queue = view.tables.queue(self.claimant.queue);
        match self.against {
            Against::OtherQueues => None,
            Against::OtherGangs => Some(queue.gangs.iter().copied().filter(holds).collect()),
            Against::OwnTasks => Some(vec![self.claimant.gang]),
        }
    }

    /// Those of the named queue, and of all below it, also who goes with all of his gang only.
    pub(crate) fn who_may_go_below(&self, view: View<'_>, top: QueueId) -> Vec<TaskId> {
        let mut queues = vec![top];
        let mut tasks = Vec::new();
        while let Some(queue) = queues.pop().map(|id| view.tables.queue(id)) {
            queues.extend(&queue.children);
            let gangs = queue.gangs.iter().map(|gang| view.tables.gang(*gang));
            let own = gangs.flat_map(|gang| &gang.tasks).copied();
            tasks.extend(own.filter(|task| self.may_go(view, *task)));
        }
        self.sort(view, &mut tasks);
        tasks
    }

    /// Those of them that the rules let the claimant evict now.
    pub(crate) fn candidates(&self, view: View<'_>, in_turn: &[TaskId]) -> Vec<TaskId> {
        let tasks = in_turn.iter().copied();
        let mut candidates: Vec<TaskId> = tasks.filter(|task| self.may_give(view, *task)).collect();
        self.rules
            .victims(view, self.against, self.claimant, &mut candidates);
        candidates
    }

    /// All of these in the order in which they go, if the rules let the claimant evict every one of them and
    /// each is less important: what only one may have is not divided by shares.
    pub(crate) fn all_of(&self, view: View<'_>, tasks: BTreeSet<TaskId>) -> Option<Vec<TaskId>> {
        let mut in_turn: Vec<TaskId> = tasks.into_iter().collect();
        let may_go = |task: &TaskId| self.may_give(view, *task) && self.is_lesser(view, *task);
        if !in_turn.iter().all(may_go) {
            return None;
        }
        self.sort(view, &mut in_turn);
        let going = self.candidates(view, &in_turn);
        (going.len() == in_turn.len()).then_some(going)
    }

    /// Whether the task is less important than the claimant; of one gang by their own priorities.
    fn is_lesser(&self, view: View<'_>, task: TaskId) -> bool {
        let claimant = view.tables.task(self.claimant.task);
        match self.against {
            Against::OwnTasks => view.tables.task(task).priority < claimant.priority,
            Against::OtherGangs | Against::OtherQueues => {
                priority_of(view.tables, task) < priority_of(view.tables, self.claimant.task)
            }
        }
    }

    /// Puts tasks in the order in which they go. Two gangs are compared once at most, however many tasks
    /// they have.
    fn sort(&self, view: View<'_>, tasks: &mut Vec<TaskId>) {
        let gang_of = |task: &TaskId| view.tables.task(*task).gang;
        let mut gangs: Vec<GangId> = tasks.iter().filter_map(gang_of).collect();
        gangs.sort_unstable();
        gangs.dedup();
        gangs.sort_by(|a, b| self.rules.victim_order(view, self.claimant.queue, *a, *b));
        let turns: BTreeMap<GangId, usize> = gangs.into_iter().zip(0..).collect();
        let turn = |task: &TaskId| turns.get(&gang_of(task)?).copied();
        let mut in_turn: Vec<_> = tasks.drain(..).map(|task| (turn(&task), task)).collect();
        in_turn.sort_by(|a, b| {
            let same_gang = || self.rules.task_order(view, b.1, a.1);
            a.0.cmp(&b.0).then_with(same_gang)
        });
        tasks.extend(in_turn.into_iter().map(|(_, task)| task));
    }

    /// Whether the task is one that could make room by itself, before the rules of the tiers are asked.
    pub(crate) fn may_give(&self, view: View<'_>, task: TaskId) -> bool {
        let gang = view.tables.task(task).gang;
        let goes_whole = |gang: GangId| view.tables.gang(gang).spec.goes_whole;
        !gang.is_some_and(goes_whole) && self.may_go(view, task)
    }

    /// Whether it is one that could, by itself or with all of its gang.
    pub(crate) fn may_go(&self, view: View<'_>, task: TaskId) -> bool {
        let tables = view.tables;
        let row = tables.task(task);
        let is_there = match self.against {
            Against::OtherQueues => row.phase == Phase::Running,
            Against::OtherGangs | Against::OwnTasks => {
                matches!(row.phase, Phase::Bound | Phase::Running)
            }
        };
        let Some(gang) = row.gang.filter(|_| is_there && row.preemptable) else {
            return false;
        };
        let of = tables.gang(gang);
        let is_one = match self.against {
            Against::OtherQueues => of.queue.is_some_and(|id| {
                let queue = tables.queue(id);
                id != self.claimant.queue && queue.known && queue.spec.reclaimable
            }),
            // Upstream: what requests nothing takes no room from what requests something.
            Against::OtherGangs => {
                let asks_nothing = tables.task(self.claimant.task).best_effort;
                gang != self.claimant.gang
                    && of.queue == Some(self.claimant.queue)
                    && (row.best_effort || !asks_nothing)
            }
            Against::OwnTasks => gang == self.claimant.gang,
        };
        is_one
            && !is_starting(of)
            && of.priority <= self.ceiling
            && !self.rules.keeps(view, self.against, self.claimant, task)
    }

    /// Whether the node has room for the shape without anybody going, as far as amounts decide.
    pub(crate) fn is_free(&self, tables: &Tables, shape: &Shape, node: NodeId) -> bool {
        let row = tables.node(node);
        let mut needs = shape.held.entries();
        needs.all(|(kind, need)| need <= 0 || need <= row.free_later(kind))
    }

    /// At least so much it costs to make room for a task of this shape on the node, found without
    /// asking the rules; `None` where even nobody on it would not be enough.
    pub(crate) fn bound(
        &self,
        view: View<'_>,
        shape: &Shape,
        node: NodeId,
        scratch: &mut Scratch,
    ) -> Option<Cost> {
        let tables = view.tables;
        let Scratch { room, largest } = scratch;
        room.weigh(tables, shape, node);
        if room.is_enough() {
            return Some(Cost::NONE);
        }
        if !room.could_be_enough(tables, node) {
            return None;
        }
        largest.clear();
        largest.resize(room.rows.len(), 0);
        let mut priority = i32::MAX;
        let mut before = None;
        for task in &tables.node(node).tasks {
            let shape = tables.task(*task).shape;
            let is_alike = before == Some(shape);
            let importance = priority_of(tables, *task);
            // Of most it would tell nothing new whether they may give.
            if is_alike && importance >= priority || !self.may_give(view, *task) {
                continue;
            }
            priority = priority.min(importance);
            if is_alike {
                continue;
            }
            before = Some(shape);
            let held = &tables.shape(shape).held;
            for (largest, row) in largest.iter_mut().zip(&room.rows) {
                *largest = held.get(row.kind).max(*largest);
            }
        }
        let mut victims = 1;
        for (largest, row) in largest.iter().zip(&room.rows) {
            let lack = row.need - row.left;
            if lack > 0 {
                if *largest == 0 {
                    return None;
                }
                victims = victims.max(lack.saturating_add(*largest - 1) / *largest);
            }
        }
        let after = largest.iter().zip(&room.rows).map(|(largest, row)| {
            let left = row.left.saturating_add(largest.saturating_mul(victims));
            left.max(0) / row.need
        });
        let tasks = u64::try_from(after.min().unwrap_or(1)).unwrap_or(1);
        let count = u32::try_from(victims).unwrap_or(u32::MAX);
        Some(cost(priority, count, tasks))
    }

    /// What these victims cost, who make room for so many tasks.
    pub(crate) fn cost_of(&self, tables: &Tables, victims: &[TaskId], tasks: u64) -> Cost {
        if victims.is_empty() {
            return Cost::NONE;
        }
        let count = u32::try_from(victims.len()).unwrap_or(u32::MAX);
        cost(most_important(tables, victims), count, tasks)
    }

    /// The cheapest way to make room for a task of this shape on the node, as far as amounts decide, with
    /// the tasks there in the order in which they go.
    pub(crate) fn offer(
        &self,
        view: View<'_>,
        shape: &Shape,
        node: NodeId,
        in_turn: &[TaskId],
    ) -> Option<Offer> {
        let room = Scales::of(view.tables, shape, node);
        if room.is_enough() {
            return Some(Offer {
                cost: Cost::NONE,
                victims: Vec::new(),
            });
        }
        if in_turn.is_empty() || !room.could_be_enough(view.tables, node) {
            return None;
        }
        let victims = match self.first_of(view, &room, in_turn) {
            Some(task) => vec![task],
            None => self.fewest(view.tables, &room, &self.candidates(view, in_turn))?,
        };
        let mut after = room.clone();
        victims
            .iter()
            .for_each(|task| after.take(view.tables, *task));
        let cost = self.cost_of(view.tables, &victims, after.tasks());
        Some(Offer { cost, victims })
    }

    /// Whose turn it is, if that alone is enough and the rules allow it, whoever else is there.
    fn first_of(&self, view: View<'_>, room: &Scales, in_turn: &[TaskId]) -> Option<TaskId> {
        let mut tasks = in_turn.iter().copied();
        let first = tasks.find(|task| self.may_give(view, *task))?;
        let mut after = room.clone();
        after.take(view.tables, first);
        if !after.is_enough() {
            return None;
        }
        let mut only = vec![first];
        let by_the_first = self
            .rules
            .victims(view, self.against, self.claimant, &mut only);
        // A tier further down decides only where nobody else is allowed by one above it.
        only.pop().filter(|_| by_the_first)
    }

    /// Victims of the lowest priorities that do, and of those the fewest that are found. Upstream: one after
    /// the other until it is enough (chapter 3.4, preempt).
    fn fewest(&self, tables: &Tables, room: &Scales, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        let mut in_turn = room.clone();
        let mut first = Vec::new();
        for task in candidates {
            if in_turn.is_enough() {
                break;
            }
            in_turn.take(tables, *task);
            first.push(*task);
        }
        if !in_turn.is_enough() {
            return None;
        }
        if self.rules.is_as_upstream(Difference::MinimalVictims) {
            return Some(first);
        }
        room.spare(tables, &mut first);
        if first.len() == 1 {
            return Some(first);
        }
        let limit = most_important(tables, &first);
        let pool = candidates
            .iter()
            .copied()
            .filter(|task| priority_of(tables, *task) <= limit);
        let mut largest = room.largest_first(tables, pool.collect());
        room.spare(tables, &mut largest);
        // In the order in which candidates go, as the other one is.
        largest.sort_by_key(|task| candidates.iter().position(|other| other == task));
        Some(if largest.len() < first.len() {
            largest
        } else {
            first
        })
    }
}

/// Whether binds of the gang are on their way that are no start without those it has already. Whoever breaks
/// it now makes half a gang of them (I4), whatever for; a moment later it may give as any other, or gives nobody.
pub(crate) fn is_starting(gang: &Gang) -> bool {
    let starting = gang.count(Phase::Allocated) + gang.count(Phase::Binding);
    starting > 0 && starting < gang.spec.min_member
}

/// Whether the task, or a claim of its, counts for some of the kind in its queue.
pub(crate) fn holds(tables: &Tables, task: TaskId, kind: Kind) -> bool {
    let claims = tables.task(task).charges.iter();
    tables.shape_of(task).spec.requests.get(kind) > 0
        || (claims.flat_map(|claim| &claim.amounts)).any(|(of, _)| *of == kind)
}

fn cost(priority: i32, victims: u32, tasks: u64) -> Cost {
    Cost {
        priority,
        per_task: u64::from(victims) * 1_000_000 / tasks.max(1),
        victims,
        tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
    }
}

pub(crate) fn priority_of(tables: &Tables, task: TaskId) -> i32 {
    let gang = tables.task(task).gang;
    gang.map_or(i32::MAX, |gang| tables.gang(gang).priority)
}

fn most_important(tables: &Tables, tasks: &[TaskId]) -> i32 {
    let all = tasks.iter().map(|task| priority_of(tables, *task));
    all.max().unwrap_or(i32::MIN)
}

/// What a shape needs and what a node will have, by the kinds that the shape asks for.
#[derive(Clone, Debug, Default)]
struct Scales {
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    kind: Kind,
    need: i64,
    left: i64,
}

/// What is written anew for each node that is looked at.
#[derive(Default)]
pub(crate) struct Scratch {
    room: Scales,
    /// The most that one task gives of each kind.
    largest: Vec<i64>,
}

impl Scales {
    fn of(tables: &Tables, shape: &Shape, node: NodeId) -> Scales {
        let mut scales = Scales::default();
        scales.weigh(tables, shape, node);
        scales
    }

    fn weigh(&mut self, tables: &Tables, shape: &Shape, node: NodeId) {
        let node = tables.node(node);
        let rows = shape.held.entries().filter(|(_, need)| *need > 0);
        self.rows.clear();
        self.rows.extend(rows.map(|(kind, need)| Row {
            kind,
            need,
            left: node.free_later(kind),
        }));
    }

    fn is_enough(&self) -> bool {
        self.rows.iter().all(|row| row.need <= row.left)
    }

    /// Whether the node would do with nobody on it.
    fn could_be_enough(&self, tables: &Tables, node: NodeId) -> bool {
        let node = tables.node(node);
        self.rows.iter().all(|row| {
            let promised = node.pipelined.get(row.kind);
            row.need <= node.spec.allocatable.get(row.kind).saturating_sub(promised)
        })
    }

    fn take(&mut self, tables: &Tables, task: TaskId) {
        let held = &tables.shape_of(task).held;
        for row in &mut self.rows {
            row.left = row.left.saturating_add(held.get(row.kind));
        }
    }

    fn give(&mut self, tables: &Tables, task: TaskId) {
        let held = &tables.shape_of(task).held;
        for row in &mut self.rows {
            row.left = row.left.saturating_sub(held.get(row.kind));
        }
    }

    /// How many tasks of the shape there is room for.
    fn tasks(&self) -> u64 {
        let of_kind = self.rows.iter().map(|row| row.left.max(0) / row.need);
        u64::try_from(of_kind.min().unwrap_or(0)).unwrap_or(0)
    }

    /// Takes the task that fills most of what lacks, again and again.
    fn largest_first(&self, tables: &Tables, mut pool: Vec<TaskId>) -> Vec<TaskId> {
        let mut room = self.clone();
        let mut taken = Vec::new();
        while !room.is_enough() && !pool.is_empty() {
            let gain = |task: &TaskId| {
                let held = &tables.shape_of(*task).held;
                let lacking = room.rows.iter().filter(|row| row.left < row.need);
                lacking
                    .map(|row| {
                        let lack = row.need - row.left;
                        Share::of(held.get(row.kind).min(lack), row.need)
                    })
                    .max()
            };
            // The first of equals: candidates come in the order in which they go.
            let best = (0..pool.len()).rev().max_by_key(|at| gain(&pool[*at]));
            let Some(at) = best else { break };
            let task = pool.remove(at);
            room.take(tables, task);
            taken.push(task);
        }
        taken
    }

    /// Spares everybody without whom it is still enough, the most important first.
    fn spare(&self, tables: &Tables, victims: &mut Vec<TaskId>) {
        let mut room = self.clone();
        victims.iter().for_each(|task| room.take(tables, *task));
        let mut order: Vec<usize> = (0..victims.len()).rev().collect();
        order.sort_by_key(|at| std::cmp::Reverse(priority_of(tables, victims[*at])));
        let mut spared = vec![false; victims.len()];
        for at in order {
            room.give(tables, victims[at]);
            if room.is_enough() {
                spared[at] = true;
            } else {
                room.take(tables, victims[at]);
            }
        }
        let mut spared = spared.into_iter();
        victims.retain(|_| !spared.next().unwrap_or(false));
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, cost};

    #[test]
    fn what_costs_fewer_victims_for_each_task_costs_less_whatever_comes_after() {
        let all = || (1..9_u32).flat_map(|victims| (1..9_u64).map(move |tasks| (victims, tasks)));
        for (victims, tasks) in all() {
            let one = cost(5, victims, tasks);
            assert!(Cost::NONE < one && cost(4, 9, 1) < one && one < cost(6, 1, 9));
            for (others, more) in all() {
                let mine = u64::from(victims) * more;
                let theirs = u64::from(others) * tasks;
                // Of those that cost the same for each task, fewer victims come first.
                let order = mine.cmp(&theirs).then(victims.cmp(&others));
                assert_eq!(one.cmp(&cost(5, others, more)), order);
            }
            for wanted in 1..9_u32 {
                let found = one.wanted_by(wanted);
                let counts = tasks.min(u64::from(wanted));
                assert_eq!(found, cost(5, victims, counts), "no more than want room");
            }
        }
        assert_eq!(Cost::NONE.wanted_by(1), Cost::NONE);
    }
}
