//! A trial: a reversible what-if on the tables, an undo list that ends in a whole plan or in nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::gang::{GangStatus, Verdict};
use crate::ids::{GangId, NodeId, QueueId, TaskId};
use crate::plan::{
    Eviction, Nomination, Opening, Place, Plan, QueueUse, Remark, Sake, StatusWrite, TaskWait,
};
use crate::reason::Reason;
use crate::resource::Vector;
use crate::tables::{Tables, Written};
use crate::task::{Gate, Phase};
use crate::time::Time;
use crate::volume::{Hands, TakenVolume};

/// A point to rewind to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

/// How a task stood before a move.
#[derive(Clone, Debug)]
struct Stood {
    phase: Phase,
    node: Option<NodeId>,
    volumes: Option<Arc<[TakenVolume]>>,
}

#[derive(Clone, Debug)]
enum Move {
    Place {
        task: TaskId,
        was: Stood,
    },
    Promise {
        task: TaskId,
        was: Stood,
    },
    Unpromise {
        task: TaskId,
        was: Stood,
    },
    Evict {
        task: TaskId,
        was: Stood,
        sake: Sake,
        cause: &'static str,
    },
    Spare {
        task: TaskId,
        was: Stood,
    },
    Open {
        task: TaskId,
    },
    Show {
        gang: GangId,
        was: Option<GangStatus>,
    },
    Shuffled {
        plugin: &'static str,
        was: Option<Time>,
    },
}

/// The tables on loan. Dropping a trial rewinds all of it; [`Trial::finish`] commits all of it.
#[derive(Debug)]
pub struct Trial<'t> {
    tables: &'t mut Tables,
    moves: Vec<Move>,
    /// Gangs of which something was moved, if it is watched.
    moved: Option<BTreeSet<GangId>>,
    says: Vec<(TaskId, Arc<Reason>)>,
    lapsed: Vec<TaskId>,
    remarks: Vec<Remark>,
    published: Vec<(QueueId, Vector)>,
    committed: bool,
}

impl<'t> Trial<'t> {
    /// Starts a trial on the tables.
    pub fn begin(tables: &'t mut Tables) -> Trial<'t> {
        tables.set_in_trial(true);
        Trial {
            tables,
            moves: Vec::new(),
            moved: None,
            says: Vec::new(),
            lapsed: Vec::new(),
            remarks: Vec::new(),
            published: Vec::new(),
            committed: false,
        }
    }

    /// The tables as the trial has them now.
    pub fn tables(&self) -> &Tables {
        self.tables
    }

    /// Brings the sums over enqueued gangs up to date.
    pub fn settle(&mut self) {
        self.tables.settle();
    }

    /// Where the trial stands.
    pub fn mark(&self) -> Mark {
        Mark(self.moves.len())
    }

    /// Begins to watch whose tasks are moved.
    pub fn watch(&mut self) {
        self.moved = Some(BTreeSet::new());
    }

    /// The gangs of which a task was moved since this was asked last, or since it is watched, or a gate was
    /// opened; also where that was undone. All others hold what they held, and are promised what they were.
    pub fn take_moved(&mut self) -> BTreeSet<GangId> {
        self.moved.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, task: TaskId) {
        if let Some(moved) = &mut self.moved {
            moved.extend(self.tables.task(task).gang);
        }
    }

    /// Places a waiting task on a node.
    pub fn place(&mut self, task: TaskId, node: NodeId) {
        self.place_with(task, node, Hands::default());
    }

    /// Places a waiting task on a node, where it takes parts of cards, or free volumes.
    pub fn place_with(&mut self, task: TaskId, node: NodeId, hands: impl Into<Hands>) {
        let Hands { grants, volumes } = hands.into();
        let was = self.standing(task);
        assert!(was.phase.is_waiting(), "only a waiting task is placed");
        if !grants.is_empty() {
            self.tables.set_grants(task, grants);
        }
        let (phase, node) = (Phase::Allocated, Some(node));
        self.tables.shift_with(task, phase, node, volumes);
        self.note(task);
        self.moves.push(Move::Place { task, was });
    }

    /// Promises a waiting task room on a node that is not free yet.
    pub fn promise(&mut self, task: TaskId, node: NodeId) {
        self.promise_with(task, node, None);
    }

    /// The same, where these volumes are kept for it, too.
    pub fn promise_with(
        &mut self,
        task: TaskId,
        node: NodeId,
        volumes: Option<Arc<[TakenVolume]>>,
    ) {
        let was = self.standing(task);
        assert!(
            was.phase.is_waiting(),
            "only a waiting task is promised room"
        );
        let (phase, node) = (Phase::Pipelined, Some(node));
        self.tables.shift_with(task, phase, node, volumes);
        self.note(task);
        self.moves.push(Move::Promise { task, was });
    }

    /// Takes a promise back.
    pub fn unpromise(&mut self, task: TaskId) {
        let was = self.standing(task);
        assert!(
            was.phase == Phase::Pipelined,
            "only a promise is taken back"
        );
        self.tables.shift(task, Phase::Pending, None);
        self.note(task);
        self.moves.push(Move::Unpromise { task, was });
    }

    /// Evicts a task that holds a node, in favour of a gang.
    pub fn evict(&mut self, task: TaskId, beneficiary: GangId, cause: &'static str) {
        self.drive_out(task, Sake::Gang(beneficiary), cause);
    }

    /// Evicts a task that has to leave its node, though nobody is given the room.
    pub fn send_away(&mut self, task: TaskId, reason: Arc<Reason>, cause: &'static str) {
        self.drive_out(task, Sake::Leaving(reason), cause);
    }

    /// Writes down when a plugin sent tasks away.
    pub fn shuffled(&mut self, plugin: &'static str, now: Time) {
        let was = self.tables.swap_shuffled_at(plugin, Some(now));
        self.moves.push(Move::Shuffled { plugin, was });
    }

    fn drive_out(&mut self, task: TaskId, sake: Sake, cause: &'static str) {
        let was = self.standing(task);
        assert!(
            was.phase.is_allocated() && was.node.is_some(),
            "only a task on a node is evicted"
        );
        self.tables.shift(task, Phase::Releasing, was.node);
        self.note(task);
        self.moves.push(Move::Evict {
            task,
            was,
            sake,
            cause,
        });
    }

    /// Opens the gate of a waiting task: its queue keeps what it requests.
    pub fn open(&mut self, task: TaskId) {
        let row = self.tables.task(task);
        assert!(
            row.phase == Phase::Pending && row.gate == Gate::Closed,
            "only a closed gate is opened"
        );
        self.tables.set_gate(task, Gate::Opening);
        self.note(task);
        self.moves.push(Move::Open { task });
    }

    /// Takes back an eviction of this trial: the task goes on in the phase that it had.
    pub fn spare(&mut self, task: TaskId) {
        let was = self.standing(task);
        assert!(was.phase == Phase::Releasing, "only a victim is spared");
        let evicted = self.moves.iter().rev().find_map(|moved| match moved {
            Move::Evict {
                task: other, was, ..
            } if *other == task => Some(was.clone()),
            _ => None,
        });
        let before = evicted.expect("only a victim of this trial is spared");
        self.stand(task, before);
        self.moves.push(Move::Spare { task, was });
    }

    /// The tasks that this trial has evicted since the mark and not spared again, in the order in
    /// which they were first evicted.
    pub fn evicted_since(&self, mark: Mark) -> Vec<TaskId> {
        let mut seen = BTreeSet::new();
        let evicted = self.moves[mark.0..].iter().filter_map(|moved| match moved {
            Move::Evict { task, .. } => Some(*task),
            _ => None,
        });
        evicted
            .filter(|task| self.tables.task(*task).phase == Phase::Releasing && seen.insert(*task))
            .collect()
    }

    /// Gives the gang another status.
    pub fn show(&mut self, gang: GangId, status: GangStatus) {
        let was = self.tables.swap_wanted(gang, Some(status));
        self.moves.push(Move::Show { gang, was });
    }

    /// Says on a task why it waits. Not undone by a rewind: say it when the trial is decided.
    pub fn say(&mut self, task: TaskId, reason: Arc<Reason>) {
        self.says.push((task, reason));
    }

    /// The pod names a node that its task is not promised any more, if it is not when the trial is finished.
    pub fn lapse(&mut self, task: TaskId) {
        self.lapsed.push(task);
    }

    /// Says something of a gang for which it does not wait. Not undone by a rewind either.
    pub fn remark(&mut self, gang: GangId, reason: Arc<Reason>) {
        self.remarks.push(Remark { gang, reason });
    }

    /// Publishes a queue's use. Not undone by a rewind.
    pub fn publish(&mut self, queue: QueueId, allocated: Vector) {
        self.published.push((queue, allocated));
    }

    /// Undoes everything since the mark, last move first.
    pub fn rewind(&mut self, mark: Mark) {
        while self.moves.len() > mark.0 {
            match self.moves.pop().expect("the list is longer than the mark") {
                Move::Place { task, was } => {
                    self.stand(task, was);
                    if !self.tables.task(task).grants.is_empty() {
                        self.tables.set_grants(task, Vec::new());
                    }
                }
                Move::Promise { task, was }
                | Move::Unpromise { task, was }
                | Move::Spare { task, was }
                | Move::Evict { task, was, .. } => self.stand(task, was),
                Move::Open { task } => {
                    self.tables.set_gate(task, Gate::Closed);
                    self.note(task);
                }
                Move::Show { gang, was } => {
                    self.tables.swap_wanted(gang, was);
                }
                Move::Shuffled { plugin, was } => {
                    self.tables.swap_shuffled_at(plugin, was);
                }
            }
        }
    }

    /// Commits the whole trial: rows become pending writes, and the plan lists them.
    pub fn finish(mut self, now: Time) -> Plan {
        self.committed = true;
        self.tables.set_in_trial(false);
        let mut plan = Plan {
            tick: self.tables.tick(),
            ..Plan::default()
        };
        let mut nominated: BTreeMap<TaskId, Option<NodeId>> = BTreeMap::new();
        let mut shown = BTreeSet::new();
        let mut evicted = BTreeSet::new();
        for moved in std::mem::take(&mut self.moves) {
            match moved {
                Move::Place { task, .. } => self.commit_place(task, &mut plan),
                Move::Promise { task, was } | Move::Unpromise { task, was } => {
                    let promised = was.node.filter(|_| was.phase == Phase::Pipelined);
                    nominated.entry(task).or_insert(promised);
                }
                Move::Evict {
                    task, sake, cause, ..
                } => {
                    // Evicted, spared and evicted again: one eviction, in favour of whoever was first.
                    let goes = self.tables.task(task).phase == Phase::Releasing;
                    if goes && evicted.insert(task) {
                        let write = self.tables.plan_write(task, Written::Evict(task));
                        plan.evictions.push(Eviction {
                            task,
                            sake,
                            cause,
                            write,
                        });
                    }
                }
                Move::Spare { .. } | Move::Shuffled { .. } => {}
                Move::Open { task } => {
                    let write = self.tables.plan_write(task, Written::Open(task));
                    plan.openings.push(Opening { task, write });
                }
                Move::Show { gang, .. } => {
                    shown.insert(gang);
                }
            }
        }
        for (task, before) in nominated {
            self.commit_promise(task, before, &mut plan);
        }
        self.commit_lapsed(&mut plan);
        for gang in shown {
            let (status, write) = self.tables.plan_status(gang, now);
            plan.statuses.push(StatusWrite {
                gang,
                status,
                write,
            });
        }
        for (task, reason) in std::mem::take(&mut self.says) {
            self.tables.set_said(task, reason.clone());
            plan.waits.push(TaskWait { task, reason });
        }
        plan.remarks = std::mem::take(&mut self.remarks);
        for (queue, allocated) in std::mem::take(&mut self.published) {
            let write = self.tables.plan_queue(queue, allocated.clone(), now);
            plan.queues.push(QueueUse {
                queue,
                allocated,
                write,
            });
        }
        plan
    }

    fn commit_place(&mut self, task: TaskId, plan: &mut Plan) {
        // Placed, taken back and placed again within one trial: one bind, for where it ended.
        let row = self.tables.task(task);
        if row.phase != Phase::Allocated {
            return;
        }
        let node = row.node.expect("an allocated task has a node");
        let write = self.tables.plan_write(task, Written::Bind(task));
        plan.places.push(Place { task, node, write });
    }

    fn commit_promise(&mut self, task: TaskId, before: Option<NodeId>, plan: &mut Plan) {
        let row = self.tables.task(task);
        let after = row.node.filter(|_| row.phase == Phase::Pipelined);
        let is_waiting = row.phase.is_waiting();
        if after == before {
            return;
        }
        if is_waiting {
            plan.nominations.push(Nomination { task, node: after });
        }
        // What was kept for this task may now suit one that was refused before it.
        if let Some(node) = before {
            self.tables.mark_freed(node);
        }
    }

    /// Takes back what pods say that was promised otherwise than in a trial: with its node, or its gang.
    fn commit_lapsed(&mut self, plan: &mut Plan) {
        if self.lapsed.is_empty() {
            return;
        }
        let told: BTreeSet<TaskId> = plan.nominations.iter().map(|it| it.task).collect();
        for task in std::mem::take(&mut self.lapsed) {
            let row = self.tables.task_row(task);
            if row.phase == Phase::Pending && row.lapse() && !told.contains(&task) {
                plan.nominations.push(Nomination { task, node: None });
            }
        }
    }

    fn standing(&self, task: TaskId) -> Stood {
        let row = self.tables.task(task);
        Stood {
            phase: row.phase,
            node: row.node,
            volumes: row.volumes.clone(),
        }
    }

    /// The task stands again as it did.
    fn stand(&mut self, task: TaskId, was: Stood) {
        self.tables
            .shift_with(task, was.phase, was.node, was.volumes);
        self.note(task);
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.rewind(Mark(0));
            self.tables.set_in_trial(false);
        }
    }
}

/// What only a trial may do to the tables.
impl Tables {
    fn set_in_trial(&mut self, on: bool) {
        *self.in_trial_mut() = on;
    }

    fn plan_write(&mut self, task: TaskId, about: Written) -> crate::WriteId {
        let write = self.new_write(about);
        let row = self.task_row(task);
        row.write = Some(write);
        row.said = None;
        if matches!(about, Written::Bind(_)) {
            row.phase = Phase::Binding;
            self.step(task, Phase::Allocated);
        }
        write
    }

    fn swap_shuffled_at(&mut self, plugin: &str, at: Option<Time>) -> Option<Time> {
        let before = self.shuffled_at(plugin);
        self.set_shuffled_at(plugin, at);
        before
    }

    fn swap_wanted(&mut self, gang: GangId, status: Option<GangStatus>) -> Option<GangStatus> {
        self.unsettle(gang);
        std::mem::replace(&mut self.gang_mut(gang).wanted, status)
    }

    fn plan_status(&mut self, gang: GangId, now: Time) -> (GangStatus, crate::WriteId) {
        let write = self.new_write(Written::Status(gang));
        let row = self.gang_mut(gang);
        let status = row.wanted.clone().expect("a shown status is wanted");
        if status.verdict != Verdict::Undecided {
            row.said = status.verdict.clone();
            row.said_of = row.counts();
        }
        row.status_write = Some(write);
        row.written_at = Some(now);
        row.fed = false;
        (status, write)
    }

    fn set_said(&mut self, task: TaskId, reason: Arc<Reason>) {
        self.task_row(task).said = Some(reason);
    }

    fn plan_queue(&mut self, queue: QueueId, allocated: Vector, now: Time) -> crate::WriteId {
        let write = self.new_write(Written::Queue(queue));
        let row = self.queue_mut(queue);
        row.publishing = Some((write, allocated));
        row.published_at = Some(now);
        write
    }
}
