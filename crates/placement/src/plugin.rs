//! What a plugin and an action can be: rows of optional function pointers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    DomainId, GangId, Giving, Grant, Kind, NodeId, Query, Question, QueueId, Reason, Refusal,
    Shape, Share, Tables, TaskId, Time,
};

use crate::arguments::Asked;
use crate::cycle::Cycle;
use crate::domains::DomainSums;
use crate::footing::Footing;
use crate::ledger::Account;
use crate::rules::{Config, Rules, State};
use crate::settings::Switch;
use crate::shuffling::Protection;

/// What a plugin sees: the tables as the trial has them, its settings, and what it computed when the
/// cycle began.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The tables.
    pub tables: &'a Tables,
    /// The plugins' settings.
    pub(crate) config: &'a Config,
    /// What the plugins computed at the cycle's start.
    pub(crate) state: &'a State,
}

/// A vote on letting a gang in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Whatever later tiers say.
    Permit,
    /// No opinion.
    Abstain,
    /// No, and why.
    Reject(Reason),
}

/// A score in millionths of a point.
pub type Score = i64;

/// Whether something is so of a gang.
pub type GangCheck = fn(View<'_>, GangId) -> bool;

/// Whether a node takes a shape for what it is.
pub type NodeCheck = fn(View<'_>, &Shape, NodeId) -> Option<Refusal>;

/// What is said of nodes for the sake of a task's queue, by their groups: adds to what was said before.
pub type FootingRule = fn(View<'_>, QueueId, &Shape, &mut Footing);

/// Points for nodes, for one task in one state of the tables.
pub type NodePoints<'a> = Box<dyn Fn(NodeId) -> Score + 'a>;

/// Points for nodes that depend on where other tasks are; none where the rule has no say of the task.
pub type CoupledScore = for<'a> fn(View<'a>, TaskId) -> Option<NodePoints<'a>>;

/// Points for a hyper-node in which the tasks may be together.
pub type HyperNodeOrder = fn(View<'_>, &DomainSums, DomainId, &[TaskId]) -> Score;

/// Points for the nodes of a hyper-node, for a shape.
pub type DomainScore = fn(View<'_>, &DomainSums, DomainId, &Shape) -> Score;

/// Whether what is held on a node leaves room for a shape, now or later.
pub type RoomCheck = fn(View<'_>, &Shape, NodeId, Room) -> Option<Refusal>;

/// Which room to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// What is free now.
    Now,
    /// Once the tasks on their way out are gone and the promised ones are in.
    Later,
}

/// Who wants room that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// The task that wants it.
    pub task: TaskId,
    /// Its gang.
    pub gang: GangId,
    /// Its queue.
    pub queue: QueueId,
}

/// From which of the last two queues the first one takes room first.
pub type VictimQueueOrder = fn(View<'_>, QueueId, QueueId, QueueId) -> Ordering;

/// Which of the candidates may be victims: turns `allowed` to false where one may not. The candidates
/// come in the order in which they would be evicted; a check that counts what is left counts each of
/// them as gone once it was allowed by the check itself, whatever others say (chapter 3.3, A.2 to A.5).
/// Those who have gone can only make it stricter: whom it refuses alone it refuses after anybody.
pub type VictimCheck = fn(View<'_>, Claimant, &[TaskId], &mut [bool]);

/// What a task takes of a node's cards or devices; none where there is no say or they do not do.
pub type CardChoice = fn(View<'_>, TaskId, NodeId) -> Option<Vec<Grant>>;

/// Which of the tasks may be sent away from their nodes without anybody being given the room: as a
/// [`VictimCheck`], with nobody who asks.
pub type LeaveCheck = fn(View<'_>, &[TaskId], &mut [bool]);

/// A task that has to leave its node, and why.
pub type Leaver = (TaskId, Arc<Reason>);

/// Whether a queue has room left for a task.
/// Of two tasks that count alike ([`model::Task::counts_like`]) it says the same.
pub type ShareCheck = fn(View<'_>, QueueId, TaskId) -> Option<Reason>;

/// The queue above one that its tasks would together take beyond what it may have, and in what.
pub type FullCheck = fn(View<'_>, QueueId, &[TaskId]) -> Option<(QueueId, Kind)>;

/// Whether a queue may take room from others for all of its tasks that are named.
pub type ClaimCheck = fn(View<'_>, QueueId, &[TaskId]) -> bool;

/// What is to be asked of somebody outside for a gang that waits for this reason.
pub type AskRule = fn(&Rules, View<'_>, GangId, &Reason, &mut Asks);

/// What is to be asked after a cycle, each question once.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    questions: BTreeMap<Query, Question>,
    shapes: BTreeSet<u64>,
}

impl Asks {
    /// The most questions of a cycle; the others are asked when these are answered.
    pub const MAX: usize = 16_384;

    /// Asks, unless there is an answer that counts.
    pub(crate) fn ask(
        &mut self,
        view: View<'_>,
        query: Query,
        question: impl FnOnce() -> Question,
    ) {
        if view.tables.is_open(&query) {
            self.ask_anew(query, question);
        }
    }

    /// Asks whatever was answered.
    pub(crate) fn ask_anew(&mut self, query: Query, question: impl FnOnce() -> Question) {
        if self.questions.len() < Asks::MAX {
            self.questions.entry(query).or_insert_with(question);
        }
    }

    /// Whether nodes were not yet looked at for the shape of this serial number.
    pub(crate) fn is_first_of(&mut self, shape: u64) -> bool {
        self.shapes.insert(shape)
    }

    /// All of them.
    pub(crate) fn into_questions(self) -> Vec<(Query, Question)> {
        self.questions.into_iter().collect()
    }
}

/// One plugin: the hooks that it has. A hook that is `None` abstains.
#[derive(Clone, Copy)]
pub struct Plugin {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Reads its arguments.
    pub configure: Option<fn(&mut Asked<'_>, &mut Config)>,
    /// What is otherwise in its row and its settings where it takes queues for a tree
    /// (`enableHierarchy`).
    pub hierarchy: Option<fn(&mut Plugin, &mut Config)>,
    /// Takes hooks out of its row that its arguments leave nothing to do.
    pub fits_row: Option<fn(&mut Plugin, &Config)>,
    /// Computes its state at the start of a cycle.
    pub open: Option<fn(&Tables, &Config, &mut State)>,
    /// Computes again what of it moved with the trial: before each turn of a queue, where the order of
    /// others moves with one that had its turn. Only what these gangs hold, or are promised, is another.
    pub refresh: Option<fn(&Tables, &mut State, &BTreeSet<GangId>)>,
    /// Which gang of a queue comes first.
    pub job_order: Option<fn(View<'_>, GangId, GangId) -> Ordering>,
    /// Which queue comes first.
    pub queue_order: Option<fn(View<'_>, QueueId, QueueId) -> Ordering>,
    /// Which task of a gang comes first.
    pub task_order: Option<fn(View<'_>, TaskId, TaskId) -> Ordering>,
    /// Whether a gang can be tried at all.
    pub job_valid: Option<fn(View<'_>, GangId) -> Option<Reason>>,
    /// Whether enough of a gang is placed.
    pub job_ready: Option<GangCheck>,
    /// Why a gang does not start although enough of it is placed.
    pub unready: Option<fn(View<'_>, GangId) -> Option<Reason>>,
    /// Whether enough of a gang is placed or promised room.
    pub job_pipelined: Option<GangCheck>,
    /// Whether a gang has waited for so long that upstream lets it hold what it can get of what it needs.
    pub holds_in_part: Option<GangCheck>,
    /// Whether a gang may take others' room, being short of tasks.
    pub job_starving: Option<GangCheck>,
    /// It looks at what was measured of nodes, and says nothing of those of which nothing was.
    pub looks_at_measures: bool,
    /// Whether a gang may be let in.
    pub enqueueable: Option<fn(View<'_>, GangId) -> Vote>,
    /// Forgets what it counted of gangs that were let in: others are about to be.
    pub begin_letting_in: Option<fn(&mut State)>,
    /// Counts a gang that was let in.
    pub let_in: Option<fn(&Tables, &mut State, GangId)>,
    /// What the people of a gang should know, though it does not wait for that.
    pub remark: Option<fn(View<'_>, GangId) -> Option<Reason>>,
    /// When a rule says something else about a gang although nothing happens.
    pub wakes_at: Option<fn(View<'_>, GangId) -> Option<Time>>,
    /// What it knows of a queue, for figures.
    pub account: Option<fn(View<'_>, QueueId) -> Option<Account>>,
    /// A gang's share of the cluster, for figures.
    pub gang_share: Option<fn(View<'_>, GangId) -> Share>,
    /// Why nothing is placed for a queue now: it has its whole share.
    pub overused: Option<fn(View<'_>, QueueId) -> Option<Reason>>,
    /// Whether a task keeps its queue within its share.
    pub allocatable: Option<ShareCheck>,
    /// The queue above the named one that the tasks together would take beyond what it may have, and in
    /// what: those below it that give some of that make room there.
    pub full_above: Option<FullCheck>,
    /// Whether a queue has room for a task that waits behind its gate.
    pub opens: Option<ShareCheck>,
    /// Whether the node's own nature suits the shape: labels, taints, volumes' places.
    pub suits: Option<NodeCheck>,
    /// Whether what is held on the node leaves room for the shape.
    pub has_room: Option<RoomCheck>,
    /// Whether somebody outside agrees to the node for the shape: after all others.
    pub consents: Option<NodeCheck>,
    /// Whether somebody outside has said what the node is worth to the shape: after all others.
    pub valued: Option<NodeCheck>,
    /// Which groups of nodes the queue may use for the shape.
    pub footing: Option<FootingRule>,
    /// Points for groups of nodes, for the queue's sake.
    pub footing_points: Option<FootingRule>,
    /// Points for the node, from the node alone.
    pub score: Option<fn(View<'_>, &Shape, NodeId) -> Score>,
    /// Points for the node, from where other tasks of the gang are. Costs every candidate a look.
    pub coupled_score: Option<CoupledScore>,
    /// Points for a hyper-node in which tasks may be together.
    pub hyper_node_order: Option<HyperNodeOrder>,
    /// Points for every node of which this is the lowest hyper-node, for a task that may be anywhere.
    pub domain_score: Option<DomainScore>,
    /// What the task takes of the node's cards or devices now; none where the rule has no say or they
    /// do not do.
    pub hands_out: Option<CardChoice>,
    /// Whether the task may never make room for others of its queue, whatever other tiers say.
    pub never_preempted: Option<fn(View<'_>, TaskId) -> bool>,
    /// Whether the task may never make room for this claimant of its queue.
    pub never_preempted_by: Option<fn(View<'_>, Claimant, TaskId) -> bool>,
    /// Whether the task may never make room for other queues.
    pub never_reclaimed: Option<fn(View<'_>, TaskId) -> bool>,
    /// Which tasks may make room for others of their queue.
    pub preemptable: Option<VictimCheck>,
    /// The same where gangs go as a whole, if that is another question.
    pub preempted_together: Option<VictimCheck>,
    /// Which tasks may make room for other queues.
    pub reclaimable: Option<VictimCheck>,
    /// Which of those on whom a tier has agreed may really make room for others of their queue, whichever
    /// tier that was.
    pub spares_preempted: Option<VictimCheck>,
    /// The same for other queues.
    pub spares_reclaimed: Option<VictimCheck>,
    /// Whether its check of victims of this kind has no say for a claimant: then it is as if the plugin had
    /// none.
    pub abstains: Option<fn(View<'_>, Claimant, Giving) -> bool>,
    /// Whether its checks of victims count as gone also those whom they refuse.
    pub counts_refused: bool,
    /// Whether a queue may take room from others for all of these tasks; the same of two that count alike.
    pub preemptive: Option<ClaimCheck>,
    /// From which of two other queues the named one takes room first.
    pub victim_queue_order: Option<VictimQueueOrder>,
    /// Who has to leave its node, of those whom the protection lets go.
    pub victim_tasks: Option<fn(View<'_>, &Protection<'_>) -> Vec<Leaver>>,
    /// When to ask for those again, although nothing happens.
    pub victims_at: Option<fn(View<'_>) -> Option<Time>>,
    /// Which of the tasks that have to leave really may.
    pub spares_shuffled: Option<LeaveCheck>,
    /// Of which nodes the rule says something else now than it did at that time, though nothing happened.
    pub turned: Option<fn(View<'_>, Time) -> Vec<NodeId>>,
    /// When it says something else of a node next, if nothing happens.
    pub turns_at: Option<fn(View<'_>) -> Option<Time>>,
    /// What is to be asked of somebody outside.
    pub asks: Option<AskRule>,
    /// Set where the rules of preempting look at who asks: a number that is the same for gangs of one
    /// queue that they treat alike.
    pub preempts_like: Option<fn(View<'_>, GangId) -> u64>,
    /// The same for the rules of reclaiming, and for gangs of any queue.
    pub reclaims_like: Option<fn(View<'_>, GangId) -> u64>,
}

impl Plugin {
    /// A plugin without any hook, to be completed by a row.
    pub const NONE: Plugin = Plugin {
        name: "",
        configure: None,
        hierarchy: None,
        fits_row: None,
        open: None,
        refresh: None,
        job_order: None,
        queue_order: None,
        task_order: None,
        job_valid: None,
        job_ready: None,
        unready: None,
        job_pipelined: None,
        holds_in_part: None,
        job_starving: None,
        looks_at_measures: false,
        enqueueable: None,
        begin_letting_in: None,
        let_in: None,
        remark: None,
        wakes_at: None,
        account: None,
        gang_share: None,
        overused: None,
        allocatable: None,
        full_above: None,
        opens: None,
        suits: None,
        has_room: None,
        consents: None,
        valued: None,
        footing: None,
        footing_points: None,
        score: None,
        coupled_score: None,
        hyper_node_order: None,
        domain_score: None,
        hands_out: None,
        never_preempted: None,
        never_preempted_by: None,
        never_reclaimed: None,
        preemptable: None,
        preempted_together: None,
        reclaimable: None,
        spares_preempted: None,
        spares_reclaimed: None,
        abstains: None,
        counts_refused: false,
        preemptive: None,
        victim_queue_order: None,
        victim_tasks: None,
        victims_at: None,
        spares_shuffled: None,
        turned: None,
        turns_at: None,
        asks: None,
        preempts_like: None,
        reclaims_like: None,
    };

    /// The row with the switched-off hooks taken out.
    #[must_use]
    pub(crate) fn without(mut self, off: impl IntoIterator<Item = Switch>) -> Plugin {
        for switch in off {
            match switch {
                Switch::Allocatable => {
                    (self.allocatable, self.opens, self.full_above) = (None, None, None);
                }
                Switch::JobEnqueued => {
                    (self.enqueueable, self.let_in) = (None, None);
                    self.begin_letting_in = None;
                }
                Switch::JobOrder => self.job_order = None,
                Switch::JobPipelined => (self.job_pipelined, self.holds_in_part) = (None, None),
                Switch::JobReady => (self.job_ready, self.unready) = (None, None),
                Switch::JobStarving => self.job_starving = None,
                Switch::HyperNodeOrder => self.hyper_node_order = None,
                Switch::NodeOrder => {
                    (self.score, self.domain_score) = (None, None);
                    (self.coupled_score, self.footing_points) = (None, None);
                    self.valued = None;
                }
                Switch::Overused => self.overused = None,
                Switch::Predicate => {
                    (self.suits, self.has_room, self.hands_out) = (None, None, None);
                    (self.consents, self.footing) = (None, None);
                }
                Switch::Preemptable => {
                    (self.preemptable, self.preempted_together) = (None, None);
                    self.preempts_like = None;
                    (self.never_preempted, self.never_preempted_by) = (None, None);
                    self.spares_preempted = None;
                }
                Switch::Reclaimable => {
                    (self.reclaimable, self.never_reclaimed) = (None, None);
                    self.spares_reclaimed = None;
                }
                Switch::Preemptive => self.preemptive = None,
                Switch::QueueOrder => self.queue_order = None,
                Switch::TaskOrder => self.task_order = None,
                Switch::Victim => {
                    (self.victim_tasks, self.victims_at) = (None, None);
                    self.spares_shuffled = None;
                }
                // No row has the hooks of these; of the gradient and of gangs within gangs the rules'
                // bonds speak.
                Switch::BestNode
                | Switch::ClusterOrder
                | Switch::Hierarchy
                | Switch::HyperNodeGradient
                | Switch::ReservedNodes
                | Switch::SubJobOrder
                | Switch::SubJobPipelined
                | Switch::SubJobReady
                | Switch::TargetJob => {}
            }
        }
        self
    }
}

/// One action.
#[derive(Clone, Copy)]
pub struct Action {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Whether it may evict tasks.
    pub evicts: bool,
    /// Reads its arguments, if it has any.
    pub configure: Option<fn(&mut Asked<'_>, &mut Config)>,
    /// What it does in a cycle.
    pub run: fn(&mut Cycle<'_, '_>),
}
