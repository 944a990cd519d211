//! Claims that one pod may use at a time: whoever uses one that the gang needs goes for it.

use model::{Phase, TaskId};

use super::{Bundle, Hunt};
use crate::arguments::Switched;
use crate::cycle::Cycle;
use crate::plugins::can_be_spared;
use crate::together;
use crate::victims::Against;

impl Hunt {
    /// Evicts who uses claims that waiting tasks need and one may use at a time, wherever they are. A queue's
    /// share is room and no claim: nobody of another queue goes.
    pub(super) fn free_claims(
        &self,
        cycle: &mut Cycle<'_, '_>,
        waiting: &[TaskId],
        gone: &mut Vec<Bundle>,
    ) {
        if self.against == Against::OtherQueues {
            return;
        }
        for task in waiting {
            for user in together::rivals(cycle.trial.tables(), *task) {
                let bundle = self.bundle_of(cycle, *task, user);
                if let Some(bundle) = bundle.filter(|bundle| self.evict(cycle, *task, bundle)) {
                    gone.push(bundle);
                }
            }
        }
    }

    /// The task alone if its gang can spare it, else its gang as a whole, if such may go.
    fn bundle_of(&self, cycle: &Cycle<'_, '_>, claimant: TaskId, task: TaskId) -> Option<Bundle> {
        let view = cycle.view();
        let gang = view.tables.task(task).gang?;
        let may_lose = view.tables.gang(gang).spec.preemptable != Some(false);
        let search = self.search(cycle, claimant);
        let is_spare = || can_be_spared(view, self.claimant(claimant), task);
        // It has gone with its gang for another claim.
        if !may_lose || view.tables.task(task).phase == Phase::Releasing {
            return None;
        }
        if search.may_give(view, task) && is_spare() {
            return Some(Bundle {
                gang,
                tasks: vec![task],
                is_whole: false,
            });
        }
        let may_be_whole = self.reach.whole == Switched::On;
        let mut rest = self.rest_of(cycle, claimant, gang).into_iter();
        rest.next().filter(|_| may_be_whole)
    }
}
