//! How much of a gang counts as started.

use std::sync::Arc;

use super::{GangId, Tables, TaskId};
use crate::gang::Verdict;
use crate::reason::Reason;
use crate::task::{Phase, Task};
use crate::time::Time;

impl Tables {
    /// Tasks that have a node, are over well, or are over badly and still count: see
    /// [`Tables::spent`].
    pub fn ready(&self, id: GangId) -> u32 {
        let gang = self.gang(id);
        gang.settled() + self.spent(id, gang.spec.min_member, None)
    }

    /// Whether the gang was last told that room is kept for it although others still use it. A pod without
    /// a group has no status of its own: there its condition counts.
    pub fn is_kept_room(&self, id: GangId) -> bool {
        let is_of_that = |why: &Arc<Reason>| matches!(why.of_gang(), Reason::WaitsForDrain { .. });
        let gang = self.gang(id);
        if gang.spec.lone {
            let mut said = gang.tasks.iter().map(|task| &self.task(*task).said);
            return said.any(|said| said.as_ref().is_some_and(is_of_that));
        }
        match &gang.said {
            Verdict::Waits(why) => is_of_that(why),
            Verdict::Undecided | Verdict::Scheduled => false,
        }
    }

    /// Tasks, of one role if it is given, that are over badly and yet had their part in the start that the others
    /// still wait for, as far as nobody else is there to take that part.
    ///
    /// Whoever binds a gang may die between two binds. If a member that was bound fails before its
    /// peers are, those would wait for a start together that can never be: too few are left alive.
    /// A task that was there when the failed one started belongs to the same start; one that was
    /// made later replaces it, and is waited for as ever. Where others of the gang run or have run
    /// already there is no start to be waited for: whoever comes later joins them. And where nobody
    /// makes another one beside a failed task, whoever is made later replaces a third one that was
    /// lost, and the gang is never whole again.
    pub fn spent(&self, id: GangId, min: u32, role: Option<&str>) -> u32 {
        let gang = self.gang(id);
        let failed = gang.count(Phase::Failed);
        if failed == 0 || role.is_none() && gang.tasks.len() >= (min + failed) as usize {
            return 0;
        }
        let is_of = |task: TaskId| role.is_none_or(|role| *self.task(task).role == *role);
        self.spent_of(id, min, &is_of)
    }

    /// The same of a gang within the gang: of these tasks, which are in order and of which so many must
    /// start together.
    pub fn spent_among(&self, id: GangId, min: u32, tasks: &[TaskId]) -> u32 {
        match self.gang(id).count(Phase::Failed) {
            0 => 0,
            _ => self.spent_of(id, min, &|task| tasks.binary_search(&task).is_ok()),
        }
    }

    fn spent_of(&self, id: GangId, min: u32, is_of: &dyn Fn(TaskId) -> bool) -> u32 {
        let gang = self.gang(id);
        let tasks = || gang.tasks.iter().map(|task| self.task(*task));
        let count = |is: &dyn Fn(&Task) -> bool| {
            let ours = gang.tasks.iter().filter(|task| is_of(**task));
            let counted = ours.filter(|task| is(self.task(**task))).count();
            u32::try_from(counted).unwrap_or(u32::MAX)
        };
        let missing = min.saturating_sub(count(&|task| task.phase != Phase::Failed));
        if missing == 0 {
            return 0;
        }
        let is_unstarted = |task: &&Task| {
            let phase = task.phase;
            phase.is_waiting() || phase.is_allocated() && phase != Phase::Running
        };
        let oldest: Option<Time> = tasks().filter(is_unstarted).map(|task| task.created).min();
        let Some(oldest) = oldest else {
            return 0;
        };
        let has_begun = tasks().any(|task| task.phase.is_under_way());
        let is_past = has_begun || gang.spec.fails_for_good;
        let had_its_part = |task: &Task| {
            let was_there = is_past || task.started.is_some_and(|at| at >= oldest);
            task.phase == Phase::Failed && was_there
        };
        count(&had_its_part).min(missing)
    }
}
