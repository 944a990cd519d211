//! Room for a gang by evicting others: all that it needs, or nothing at all.
//!
//! Each of its tasks goes to the node where that costs the least: nobody, else the least important and
//! then the fewest victims for each task that finds room. When there is room for enough of the gang,
//! everybody is spared without whom there still is. Where the victims do not suffice, nobody goes.

mod below;
mod claims;
mod dry_run;
mod grounds;
mod kin;
mod one_by_one;
mod shares;
mod sparing;

use std::collections::BTreeSet;

use model::{GangId, Mark, NodeId, Phase, QueueId, Share, Tables, TaskId};

use crate::actions::waiting::{Asking, waiting_tasks};
use crate::coupling;
use crate::cycle::Cycle;
use crate::plugin::{Claimant, Room};
use crate::plugins::is_beyond_the_start;
use crate::settings::Difference;
use crate::together::{self, Home};
use crate::victims::{self, Against, Search};

pub(crate) use grounds::{Grounds, will_take};

use grounds::{Field, Ground, Likeness};
use kin::Kin;

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
    /// Whether nodes were looked at, which is what takes time.
    has_looked: bool,
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
        has_looked: false,
    };
    let failed = grounds.failed.since(cycle.moves);
    let kin = match failed.is_empty() {
        true => None,
        false => Kin::of(cycle, &clearing),
    };
    if kin.as_ref().is_some_and(|kin| failed.contains(kin)) {
        cycle.grounds = grounds;
        return;
    }
    let mut found = clearing.attempt(cycle, &mut grounds, mark);
    // Who makes room for one task may have to be more important than who would for another: where
    // their priorities differ it is tried without the highest. Dry runs put budgets before priorities.
    let is_cheapest = clearing.compared(cycle).is_none() && !clearing.is_one_by_one();
    while let Some((least, most)) = (found && is_cheapest)
        .then(|| priorities(cycle, mark))
        .flatten()
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
        cycle.moved();
        let tasks = cycle.trial.tables().gang(gang).count(Phase::Pipelined);
        let outcome = cycle.kept_for(gang, tasks);
        cycle.outcomes.insert(gang, outcome);
        clearing.leave(cycle, &mut grounds);
    } else if clearing.has_looked
        && let Some(kin) = kin.or_else(|| Kin::of(cycle, &clearing))
    {
        grounds.failed.since(cycle.moves).insert(kin);
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
            let evictions = cycle.evictions;
            let differ = self.seek(cycle, grounds, first);
            if !self.promised.is_empty() && cycle.rules.job_pipelined(cycle.view(), self.gang) {
                return true;
            }
            cycle.trial.rewind(mark);
            // What was found out while nothing had moved holds still.
            if !self.promised.is_empty() || cycle.evictions != evictions {
                self.promised.clear();
                self.forget(cycle, grounds);
            }
            if !differ {
                break;
            }
        }
        false
    }

    /// Promises each task room in its turn; whether the tasks differ in what they ask for.
    fn seek(&mut self, cycle: &mut Cycle<'_, '_>, grounds: &mut Grounds, first: First) -> bool {
        let (mut hopeless, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        // Who may not take room now, as another one that counts alike, until one has taken some.
        let mut refused: Option<TaskId> = None;
        for asking in [Asking::Something, Asking::Nothing] {
            let mut tasks = waiting_tasks(cycle, self.gang, asking);
            put_first(cycle.trial.tables(), &mut tasks, first);
            for task in tasks {
                let tables = cycle.trial.tables();
                shapes.insert(tables.task(task).shape);
                if !cycle.rules.job_starving(cycle.view(), self.gang) {
                    return shapes.len() > 1;
                }
                if is_beyond_the_start(tables, self.gang, tables.task(task)) {
                    continue;
                }
                // Where the task speaks for itself alone nobody asks for its lot.
                let is_alike = speaks_for_others(cycle, task);
                let lot = is_alike.then(|| coupling::lot(tables, task));
                if lot.as_ref().is_some_and(|lot| hopeless.contains(lot))
                    || refused.is_some_and(|it| alike(cycle, it, task))
                {
                    continue;
                }
                if !self.may_claim(cycle, task) {
                    refused = Some(task);
                    continue;
                }
                if self.is_hopeless(cycle, grounds, task) {
                    continue;
                }
                match self.take(cycle, grounds, task) {
                    true => refused = None,
                    false => hopeless.extend(lot),
                }
            }
        }
        shapes.len() > 1
    }

    fn may_claim(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
        let view = cycle.view();
        let asks_the_queue = self.against == Against::OtherQueues;
        view.tables.task(task).preempts
            && (!asks_the_queue || cycle.rules.preemptive(view, self.queue, &[task]))
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
        self.has_looked = true;
        let search = self.search(cycle, task);
        let mark = cycle.trial.mark();
        if self.is_short_above(cycle, task) {
            let node = self.make_room_below(cycle, grounds, &search);
            return node.is_some_and(|node| self.promise(cycle, task, node));
        }
        let may = self.free_claims(cycle, &search) && self.make_share(cycle, &search);
        if !may {
            cycle.trial.rewind(mark);
            return false;
        }
        let Some((node, victims)) = self.find_for(cycle, grounds, &search) else {
            if self.may_speak_for_all(cycle, task) {
                let likeness = self.likeness(cycle, task);
                grounds.hopeless.insert(likeness, cycle.moves);
            }
            cycle.trial.rewind(mark);
            return false;
        };
        self.evict(cycle, &victims);
        self.promise(cycle, task, node)
    }

    fn promise(&mut self, cycle: &mut Cycle<'_, '_>, task: TaskId, node: NodeId) -> bool {
        cycle.promise(task, node);
        self.promised.push((task, node));
        true
    }

    fn evict(&self, cycle: &mut Cycle<'_, '_>, victims: &[TaskId]) {
        for victim in victims {
            cycle.trial.evict(*victim, self.gang, self.against.cause());
            cycle.evictions += 1;
        }
    }

    /// The node where the task's room costs the least, and whom it takes there.
    fn find_for(
        &self,
        cycle: &mut Cycle<'_, '_>,
        grounds: &mut Grounds,
        search: &Search<'_>,
    ) -> Option<(NodeId, Vec<TaskId>)> {
        let task = search.claimant.task;
        if !speaks_for_others(cycle, task) {
            let mut field = self.own_field(cycle, search)?;
            return self.find(cycle, search, &mut field);
        }
        let field = grounds.field(self.ground(cycle, task));
        field.meet(cycle, search, &self.likeness);
        self.find(cycle, search, field)
    }

    /// Whether that nothing is found for the task says the same of all who may take the same.
    fn may_speak_for_all(&self, cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
        speaks_for_others(cycle, task) && self.promised.is_empty() && self.ceiling == i32::MAX
    }

    /// The node of the field where its room costs the least, and whom it takes there.
    fn find(
        &self,
        cycle: &mut Cycle<'_, '_>,
        search: &Search<'_>,
        field: &mut Field,
    ) -> Option<(NodeId, Vec<TaskId>)> {
        match self.compared(cycle) {
            Some(most) => {
                field.forget(cycle, search, 0);
                dry_run::least_disturbed(cycle, search, field, most)
            }
            None if self.is_one_by_one() => one_by_one::first_that_does(cycle, search),
            None => {
                let cheapest = field.cheapest(cycle, search);
                cheapest.map(|(node, offer)| (node, offer.victims))
            }
        }
    }

    /// Whether nodes are cleared as upstream does it, whatever that costs.
    fn is_one_by_one(&self) -> bool {
        self.rules.is_as_upstream(Difference::MinimalVictims)
    }

    /// How many nodes are compared by dry runs at most, if that is how nodes are chosen.
    fn compared(&self, cycle: &Cycle<'_, '_>) -> Option<usize> {
        let wanted = cycle.view().config.preempt.compared;
        wanted.filter(|_| self.against != Against::OtherQueues)
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
        let lot = coupling::lot(cycle.trial.tables(), task);
        (self.against, self.likeness.clone(), lot)
    }

    /// Whether somebody who may take the same found no node just now.
    fn is_hopeless(&self, cycle: &Cycle<'_, '_>, grounds: &Grounds, task: TaskId) -> bool {
        if !self.promised.is_empty() || !speaks_for_others(cycle, task) {
            return false;
        }
        let likeness = self.likeness(cycle, task);
        let now = Some(&cycle.moves);
        grounds.hopeless.get(&likeness) == now
            || !grounds.short.is_empty() && grounds.short.get(&(self.queue, likeness)) == now
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

impl Clearing<'_> {
    /// What was found out once the gang held something is not for those who hold nothing: it may not take of
    /// them what they may.
    fn leave(&self, cycle: &Cycle<'_, '_>, grounds: &mut Grounds) {
        let view = cycle.view();
        let likeness = (self.rules).claims_like(view, self.against, self.queue, self.gang);
        if likeness != self.likeness {
            for field in grounds.fields.values_mut() {
                field.change_hands(&self.likeness, &likeness);
            }
        }
    }
}

/// Which of tasks that differ choose first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The large ones: what is left suits small ones more easily.
    Largest,
    /// Those that ask for the most kinds of resources: what is left suits the others.
    Pickiest,
}

/// Whether what is found for the task holds for others of its shape: where others use its claims, or these
/// are on a node, it does not.
fn speaks_for_others(cycle: &Cycle<'_, '_>, task: TaskId) -> bool {
    together::home(cycle.trial.tables(), task, Room::Later) == Home::Anywhere
}

/// Whether the rules that say who may take room cannot tell the two tasks of a gang apart.
pub(crate) fn alike(cycle: &Cycle<'_, '_>, one: TaskId, other: TaskId) -> bool {
    let tables = cycle.trial.tables();
    let (one, other) = (tables.task(one), tables.task(other));
    one.preempts == other.preempts && one.counts_like(other)
}

fn put_first(tables: &Tables, tasks: &mut [TaskId], first: First) {
    let shape = |task: &TaskId| tables.task(*task).shape;
    if tasks
        .windows(2)
        .all(|pair| shape(&pair[0]) == shape(&pair[1]))
    {
        return;
    }
    let held = |task: &TaskId| &tables.shape_of(*task).held;
    let size = |task: &TaskId| Share::dominant(held(task), tables.total());
    let kinds = |task: &TaskId| match first {
        First::Largest => 0,
        First::Pickiest => held(task).entries().count(),
    };
    // Stable: among equals the one that comes first in the gang's order.
    tasks.sort_by_key(|task| std::cmp::Reverse((kinds(task), size(task))));
}
