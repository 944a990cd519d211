//! Shares that are short although there is room: who leaves the queue, or those beside it below one that is
//! full, makes room within what it may have, wherever that is.

use super::{Going, Hunt, Place, Progress, Wanted};
use crate::cycle::Cycle;
use crate::victims::Against;
use model::{GangId, QueueId};

impl Hunt {
    /// Evicts those whose leaving brings the gang within the share, wherever they are, until it is. Upstream
    /// looks at who is in the place only.
    pub(super) fn take_elsewhere(
        &self,
        cycle: &mut Cycle<'_, '_>,
        here: &mut Progress,
        going: Going,
    ) {
        let is_narrow = cycle.scope.is_some() && !self.is_as_upstream(cycle);
        if here.is_done || !here.has_room || !is_narrow {
            return;
        }
        while let Some(top) = self.short_below(cycle, &here.wanted, &here.place) {
            let view = cycle.view();
            let in_turn = self.search(cycle, here.first).who_may_go_below(view, top);
            let everywhere = Place::of(view.tables.nodes().map(|(id, _)| id).collect());
            let before = here.gone.len();
            for gang in self.gangs_in_turn(cycle, &in_turn, (here, going)) {
                if !self.is_short(cycle, here, top) {
                    break;
                }
                self.take_of(cycle, here, (gang, top), (&everywhere, going));
            }
            // Where nobody is left who could give, the share stays short.
            if here.gone.len() == before {
                return;
            }
        }
    }

    /// Evicts tasks of the gang, or all of it, until what is short below that queue is there.
    fn take_of(
        &self,
        cycle: &mut Cycle<'_, '_>,
        here: &mut Progress,
        (gang, top): (GangId, QueueId),
        (everywhere, going): (&Place, Going),
    ) {
        let bundles = match going {
            Going::Spare => self.spare_tasks(cycle, here.first, gang, everywhere),
            Going::Whole => self.rest_of(cycle, here.first, gang),
        };
        for bundle in bundles {
            if self.is_short(cycle, here, top) {
                self.try_bundle(cycle, here, bundle);
            }
        }
    }

    /// Whether the gang still waits for what others below that queue have.
    fn is_short(&self, cycle: &mut Cycle<'_, '_>, here: &Progress, top: QueueId) -> bool {
        !here.is_done && self.short_below(cycle, &here.wanted, &here.place) == Some(top)
    }

    /// The queue whose share is short for those with whom the gang starts, and below which others may be who
    /// can leave it: its own, where it takes from others of its queue, else one above.
    fn short_below(
        &self,
        cycle: &mut Cycle<'_, '_>,
        wanted: &Wanted,
        place: &Place,
    ) -> Option<QueueId> {
        match self.against {
            Against::OtherQueues => {
                let view = cycle.view();
                let full = cycle.rules.full_above(view, self.queue, wanted.first());
                full.map(|(above, _)| above)
            }
            Against::OtherGangs | Against::OwnTasks => self
                .is_beyond_the_share(cycle, wanted, place)
                .then_some(self.queue),
        }
    }

    /// Whether the queue may not have as many more as the gang starts with, whatever room there is.
    fn is_beyond_the_share(
        &self,
        cycle: &mut Cycle<'_, '_>,
        wanted: &Wanted,
        place: &Place,
    ) -> bool {
        let Some(node) = place.nodes.first() else {
            return false;
        };
        let mark = cycle.trial.mark();
        let is_beyond = wanted.first().iter().any(|task| {
            let refused = cycle.rules.allocatable(cycle.view(), self.queue, *task);
            if refused.is_none() {
                cycle.trial.promise(*task, *node);
            }
            refused.is_some()
        });
        cycle.trial.rewind(mark);
        is_beyond
    }
}
