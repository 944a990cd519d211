//! Gangs for which a search for room finds the same: where one found too little and nothing has moved since,
//! the others need not look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Kind, Phase, QueueId, ShapeId, TaskId};

use super::Clearing;
use crate::actions::waiting::{Asking, waiting_tasks};
use crate::coupling;
use crate::cycle::Cycle;
use crate::victims::Against;

/// For whom too little was found since a move was kept last: with the next one all may find something.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    moves: u64,
    kin: BTreeSet<Kin>,
}

impl Failed {
    /// Those since so many moves were kept.
    pub(super) fn since(&mut self, moves: u64) -> &mut BTreeSet<Kin> {
        if self.moves != moves {
            self.moves = moves;
            self.kin.clear();
        }
        &mut self.kin
    }
}

/// All that a search for a gang that holds nothing looks at of the gang itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kin {
    against: Against,
    queue: QueueId,
    /// What the rules of victims see of who asks.
    likeness: Vec<u64>,
    priority: i32,
    preemptable: Option<bool>,
    /// How many tasks it has, and with how many it starts.
    tasks: usize,
    min_member: u32,
    min_of_roles: BTreeMap<Arc<str>, u32>,
    best_effort: u32,
    /// Those that want room, in their order.
    wanting: Vec<Run>,
}

/// Tasks in a row that are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    shape: ShapeId,
    role: Arc<str>,
    priority: i32,
    preempts: bool,
    is_kept_for: bool,
    /// What its cards count for in the queue.
    counts: Vec<(Kind, i64)>,
    count: u32,
}

impl Kin {
    /// `None` where what is found for the gang says nothing about others: it holds something or is promised
    /// it, its tasks must be near one another, or pods elsewhere or claims decide where they may be.
    pub(super) fn of(cycle: &Cycle<'_, '_>, clearing: &Clearing<'_>) -> Option<Kin> {
        let tables = cycle.trial.tables();
        let row = tables.gang(clearing.gang);
        let spec = &row.spec;
        let is_apart =
            spec.sub_groups.is_empty() && spec.closeness.is_none() && spec.task_topology.is_none();
        if !is_apart || row.count(Phase::Pending) as usize != row.tasks.len() {
            return None;
        }
        let mut wanting = Vec::new();
        for asking in [Asking::Something, Asking::Nothing] {
            for task in waiting_tasks(cycle, clearing.gang, asking) {
                join(&mut wanting, run_of(cycle, task)?);
            }
        }
        Some(Kin {
            against: clearing.against,
            queue: clearing.queue,
            likeness: clearing.likeness.clone(),
            priority: row.priority,
            preemptable: spec.preemptable,
            tasks: row.tasks.len(),
            min_member: spec.min_member,
            min_of_roles: spec.min_task_member.clone(),
            best_effort: row.census.pending_best_effort,
            wanting,
        })
    }
}

/// The task alone, if what is found for it would be found for any like it.
fn run_of(cycle: &Cycle<'_, '_>, task: TaskId) -> Option<Run> {
    let row = cycle.trial.tables().task(task);
    let own = row.charges.iter().find(|charge| charge.is_own);
    let is_free = !row.is_tied() && row.charges.iter().all(|charge| charge.is_own);
    (is_free && !coupling::concerns(cycle.view(), task)).then(|| Run {
        shape: row.shape,
        role: row.role.clone(),
        priority: row.priority,
        preempts: row.preempts,
        is_kept_for: row.is_kept_for(),
        counts: own.map(|charge| charge.amounts.clone()).unwrap_or_default(),
        count: 1,
    })
}

fn join(runs: &mut Vec<Run>, next: Run) {
    let is_like = |last: &Run| {
        last.shape == next.shape
            && last.role == next.role
            && last.priority == next.priority
            && last.preempts == next.preempts
            && last.is_kept_for == next.is_kept_for
            && last.counts == next.counts
    };
    match runs.last_mut().filter(|last| is_like(last)) {
        Some(last) => last.count += 1,
        None => runs.push(next),
    }
}
