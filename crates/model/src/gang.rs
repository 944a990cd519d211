//! Gangs: tasks that start together or wait together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{Key, QueueId, ShapeId, TaskId, WriteId};
use crate::labels::Requirement;
use crate::reason::Reason;
use crate::resource::Vector;
use crate::roles::TaskTopology;
use crate::task::{Phase, Task};
use crate::time::Time;
use crate::topology::Closeness;

/// The PodGroup phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GangPhase {
    /// Not let in yet; its pods need not exist.
    #[default]
    Pending,
    /// Let in: pods are made and placed.
    Inqueue,
    /// Enough tasks have a node.
    Running,
    /// Some run, but the minimum is not met and no room was found for the rest.
    Unknown,
    /// All tasks are over.
    Completed,
}

impl GangPhase {
    /// The word that the API uses.
    pub fn word(self) -> &'static str {
        match self {
            GangPhase::Pending => "Pending",
            GangPhase::Inqueue => "Inqueue",
            GangPhase::Running => "Running",
            GangPhase::Unknown => "Unknown",
            GangPhase::Completed => "Completed",
        }
    }
}

/// What the last look at a gang found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody has looked, or there was nothing to say.
    #[default]
    Undecided,
    /// Enough tasks have a node (condition Scheduled).
    Scheduled,
    /// It waits (condition Unschedulable).
    Waits(Arc<Reason>),
}

/// A gang's status: what the PodGroup shows or should show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangStatus {
    /// The phase.
    pub phase: GangPhase,
    /// Running tasks.
    pub running: u32,
    /// Tasks that ended well.
    pub succeeded: u32,
    /// Tasks that ended badly.
    pub failed: u32,
    /// The hyper-node in which its tasks are, if they had to be close together.
    pub hyper_node: Option<Arc<str>>,
    /// Why it waits, or that it does not. The wall leaves this `Undecided`: conditions are for
    /// people, the engine does not read them back.
    pub verdict: Verdict,
}

/// Gangs within a gang: tasks that match, divided by what their labels say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroups {
    /// What they are called.
    pub name: Arc<str>,
    /// How close together the tasks of one must be.
    pub closeness: Option<Closeness>,
    /// How many tasks of one must start together.
    pub size: u32,
    /// How many of them must start with the gang.
    pub min: u32,
    /// Requirements on the labels of their tasks.
    pub selector: Vec<Requirement>,
    /// Tasks with equal values of these labels belong to the same one; a task without one of them
    /// belongs to none.
    pub keys: Vec<Arc<str>>,
}

/// So many tasks of a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// This many.
    Count(u32),
    /// So many of a hundred, rounded up.
    Percent(u32),
}

impl Portion {
    /// How many of these tasks it is.
    pub fn of(self, tasks: u32) -> u32 {
        match self {
            Portion::Count(count) => count,
            Portion::Percent(percent) => {
                let all = u64::from(tasks) * u64::from(percent);
                u32::try_from(all.div_ceil(100)).unwrap_or(u32::MAX)
            }
        }
    }
}

/// How many tasks of a gang may be missing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// So many keep running.
    MinAvailable(Portion),
    /// No more than so many are not running.
    MaxUnavailable(Portion),
}

/// Whose gang it is, where several schedulers serve one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// Ours: everything about it is decided here.
    #[default]
    Ours,
    /// Ours, but that there are pods of other schedulers among its own: it could not start as one, and none of
    /// it is placed.
    Shared,
    /// Nobody's yet, as far as can be seen: it may be let in, and nothing else is said of it.
    Unclaimed,
    /// Another scheduler's: what it holds counts in its queue, and nothing is decided about it.
    Others,
}

/// Which verdicts stand in the conditions of a gang's object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// That it waits.
    pub waits: bool,
    /// That it is scheduled.
    pub scheduled: bool,
}

impl Shown {
    /// Whether a verdict of this kind stands there; there is none for one that is undecided.
    pub fn has(self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Undecided => true,
            Verdict::Scheduled => self.scheduled,
            Verdict::Waits(_) => self.waits,
        }
    }
}

/// A gang as the wall gives it (a PodGroup).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangSpec {
    /// Namespace and name of the PodGroup.
    pub key: Key,
    /// Its uid.
    pub uid: Arc<str>,
    /// The queue's name; empty where no queue counts what it holds.
    pub queue: Arc<str>,
    /// How many tasks must start together.
    pub min_member: u32,
    /// The same by role.
    pub min_task_member: BTreeMap<Arc<str>, u32>,
    /// What those tasks need together; `None` when unset.
    pub min_resources: Option<Vector>,
    /// What the limits of those tasks come to, by the names that quotas have for limits: no node is asked for
    /// that.
    pub min_limits: Vector,
    /// The PriorityClass's name, if any.
    pub priority_class: Option<Arc<str>>,
    /// What it says of whether its tasks may be evicted for another gang's, if it says anything.
    pub preemptable: Option<bool>,
    /// Whether its tasks are evicted all at once or not at all.
    pub goes_whole: bool,
    /// How close together its tasks must be.
    pub closeness: Option<Closeness>,
    /// How many of its tasks may be missing at a time, if it says so.
    pub disruption: Option<Disruption>,
    /// Gangs within the gang.
    pub sub_groups: Vec<SubGroups>,
    /// How long it may wait before it is let in whatever others say, in milliseconds.
    pub waits_at_most_ms: Option<i64>,
    /// When it was created.
    pub created: Time,
    /// What its status shows.
    pub status: GangStatus,
    /// Which verdicts its object shows, where that is known.
    pub shows: Option<Shown>,
    /// Whether nobody makes another task beside one that has failed: it stays failed as long as the
    /// others are there.
    pub fails_for_good: bool,
    /// Whose it is.
    pub ownership: Ownership,
    /// Whether it is one pod that names no group: nobody shows its status, so none is written.
    pub lone: bool,
    /// Whether its status has neither phase nor counts, and tells once that it was placed: it is let
    /// in as soon as it is there, since its pods are.
    pub native: bool,
    /// Its priority, where it states it itself; the class says it otherwise.
    pub priority: Option<i32>,
    /// Which of its roles are to be together and which apart, if it says so.
    pub task_topology: Option<Arc<TaskTopology>>,
}

impl GangSpec {
    /// Whether the two differ in nothing but what their status shows.
    pub(crate) fn wants_like(&self, other: &GangSpec) -> bool {
        self.key == other.key
            && self.uid == other.uid
            && self.queue == other.queue
            && self.min_member == other.min_member
            && self.min_task_member == other.min_task_member
            && self.min_resources == other.min_resources
            && self.min_limits == other.min_limits
            && self.priority_class == other.priority_class
            && self.preemptable == other.preemptable
            && self.goes_whole == other.goes_whole
            && self.closeness == other.closeness
            && self.disruption == other.disruption
            && self.sub_groups == other.sub_groups
            && self.waits_at_most_ms == other.waits_at_most_ms
            && self.created == other.created
            && self.fails_for_good == other.fails_for_good
            && self.ownership == other.ownership
            && self.lone == other.lone
            && self.native == other.native
            && self.priority == other.priority
            && self.task_topology == other.task_topology
    }
}

/// How many tasks there are, by what they are at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// How many are in each phase, indexed by [`Phase`].
    pub(crate) phases: [u32; 9],
    /// Pending ones that ask for no resources and are not gated.
    pub pending_best_effort: u32,
}

impl Census {
    /// How many are in `phase`.
    pub fn count(&self, phase: Phase) -> u32 {
        self.phases[phase as usize]
    }

    /// Those that count as use of the queue.
    pub fn allocated(&self) -> u32 {
        self.count(Phase::Allocated)
            + self.count(Phase::Binding)
            + self.count(Phase::Bound)
            + self.count(Phase::Running)
    }

    /// Those that have a node or are over well.
    pub fn settled(&self) -> u32 {
        self.allocated() + self.count(Phase::Succeeded)
    }

    /// Those that still want room.
    pub fn waiting(&self) -> u32 {
        self.count(Phase::Pending) + self.count(Phase::Pipelined)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.phases.iter().all(|count| *count == 0)
    }
}

/// The shapes of a gang's tasks with how many have each, of the first few. Tasks of further shapes are the
/// others, and new shapes are among them as long as there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shapes {
    rows: [(ShapeId, u32); SHAPES_MAX],
    others: u32,
    /// Those with claims of devices or volumes, each of which is like no other.
    with_claims: u32,
}

/// A gang has seldom more shapes than these.
const SHAPES_MAX: usize = 4;

impl Default for Shapes {
    fn default() -> Self {
        Shapes {
            rows: [(ShapeId(0), 0); SHAPES_MAX],
            others: 0,
            with_claims: 0,
        }
    }
}

impl Shapes {
    pub(crate) fn add(&mut self, task: &Task) {
        *self.count_of(task) += 1;
    }

    pub(crate) fn take(&mut self, task: &Task) {
        let count = self.count_of(task);
        *count = count
            .checked_sub(1)
            .expect("every task is added once before it is taken");
    }

    fn count_of(&mut self, task: &Task) -> &mut u32 {
        if !task.claims.is_empty() {
            return &mut self.with_claims;
        }
        let has = |row: &(ShapeId, u32)| row.1 > 0 && row.0 == task.shape;
        let is_free = |row: &(ShapeId, u32)| row.1 == 0;
        let row = self.rows.iter().position(has).or_else(|| {
            // Some of the others may be of this shape.
            let free = self.rows.iter().position(is_free);
            free.filter(|_| self.others == 0)
        });
        let Some(at) = row else {
            return &mut self.others;
        };
        self.rows[at].0 = task.shape;
        &mut self.rows[at].1
    }
}

/// A gang's row.
#[derive(Clone, Debug)]
pub struct Gang {
    /// What the wall says.
    pub spec: GangSpec,
    /// Whether the wall has such a PodGroup: a row can stand for a key that only pods mention.
    pub known: bool,
    /// The queue's row.
    pub queue: Option<QueueId>,
    /// The resolved priority.
    pub priority: i32,
    /// Its tasks.
    pub tasks: BTreeSet<TaskId>,
    /// How many tasks there are.
    pub census: Census,
    /// The same by role, of the roles that have a task.
    pub roles: BTreeMap<Arc<str>, Census>,
    pub(crate) shapes: Shapes,
    /// Requests of its allocated tasks.
    pub allocated: Vector,
    /// Requests of its pending tasks behind gates that somebody else opens than their queue.
    pub gated: Vector,
    /// How many pending tasks are behind the gate that their queue opens, and behind no other one.
    pub queue_gated: u32,
    /// Requests of its tasks that are promised room on a node.
    pub promised: Vector,
    /// The status that is planned and not yet seen.
    pub wanted: Option<GangStatus>,
    /// The write that carries it.
    pub status_write: Option<WriteId>,
    /// The verdict last said to the world.
    pub said: Verdict,
    /// Of how many tasks it spoke.
    pub said_of: SaidOf,
    /// When the last status write was planned.
    pub written_at: Option<Time>,
    pub(crate) inqueue: Vector,
    pub(crate) inqueue_whole: Vector,
    pub(crate) elastic: Vector,
    /// Whether that is all that it holds, for want of a minimum.
    pub(crate) all_elastic: bool,
    pub(crate) unsettled: bool,
    /// Whether the wall spoke since the status on its way was planned.
    pub(crate) fed: bool,
}

/// The numbers of tasks that a verdict goes with when it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaidOf {
    census: Census,
    min_member: u32,
}

impl Gang {
    /// The numbers that a verdict would go with now.
    pub fn counts(&self) -> SaidOf {
        SaidOf {
            census: self.census,
            min_member: self.spec.min_member,
        }
    }

    pub(crate) fn new(key: Key) -> Gang {
        Gang {
            spec: GangSpec {
                key,
                ..GangSpec::default()
            },
            known: false,
            queue: None,
            priority: 0,
            tasks: BTreeSet::new(),
            census: Census::default(),
            roles: BTreeMap::new(),
            shapes: Shapes::default(),
            allocated: Vector::ZERO,
            gated: Vector::ZERO,
            queue_gated: 0,
            promised: Vector::ZERO,
            wanted: None,
            status_write: None,
            said: Verdict::Undecided,
            said_of: SaidOf::default(),
            written_at: None,
            inqueue: Vector::ZERO,
            inqueue_whole: Vector::ZERO,
            elastic: Vector::ZERO,
            all_elastic: false,
            unsettled: false,
            fed: false,
        }
    }

    /// How many tasks are in `phase`.
    pub fn count(&self, phase: Phase) -> u32 {
        self.census.count(phase)
    }

    /// The shape of all its tasks, where they have the same and none has claims.
    pub fn only_shape(&self) -> Option<ShapeId> {
        let mut shapes = self.shapes();
        let (shape, _) = shapes.next()?;
        (shapes.next().is_none() && self.others() == 0).then_some(shape)
    }

    /// Shapes of its tasks, with how many tasks have each: all of them but for [`Gang::others`].
    pub fn shapes(&self) -> impl Iterator<Item = (ShapeId, u32)> {
        let rows = self.shapes.rows.iter().copied();
        rows.filter(|(_, count)| *count > 0)
    }

    /// How many of its tasks have claims, or came when there were too many shapes to tell them apart.
    pub fn others(&self) -> u32 {
        self.shapes.others + self.shapes.with_claims
    }

    /// How many tasks of a role there are.
    pub fn of_role(&self, role: &str) -> Census {
        self.roles.get(role).copied().unwrap_or_default()
    }

    /// The phase as planned if a status write is on its way, else as seen.
    pub fn phase(&self) -> GangPhase {
        self.status().phase
    }

    /// What it has been let in for and does not hold yet (A.2 `inqueue`).
    pub fn inqueue(&self) -> &Vector {
        &self.inqueue
    }

    /// The same as the cluster counts it: until it runs, all of its minimum.
    pub fn inqueue_whole(&self) -> &Vector {
        &self.inqueue_whole
    }

    /// The status as planned if a write is on its way, else as seen.
    pub fn status(&self) -> &GangStatus {
        self.wanted.as_ref().unwrap_or(&self.spec.status)
    }

    /// Tasks that have a node or are over well (A.4 `ready`, with the rows a plan has placed).
    /// [`crate::Tables::ready`] says how many count as started.
    pub fn settled(&self) -> u32 {
        self.census.settled()
    }

    /// Tasks that count as use of the queue.
    pub fn allocated_count(&self) -> u32 {
        self.census.allocated()
    }
}
