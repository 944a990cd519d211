//! Claims that one pod may use at a time: whoever uses one that a more important task needs goes for it,
//! wherever it is, and all who use it go.
//!
//! Source: Kubernetes' VolumeRestrictions with preemption (`ReadWriteOncePod`). There the user goes only from
//! the node that is chosen; here its node may be another one than the task gets.

use super::Clearing;
use super::grounds::Field;
use crate::cycle::Cycle;
use crate::plugin::Room;
use crate::together::{self, Home};
use crate::victims::{Against, Search};

impl Clearing<'_> {
    /// Evicts everybody who uses claims of the task that one may use at a time; whether nobody uses them
    /// then. A queue's share is room and no claim: nobody of another queue goes.
    pub(super) fn free_claims(&self, cycle: &mut Cycle<'_, '_>, search: &Search<'_>) -> bool {
        let users = together::rivals(cycle.trial.tables(), search.claimant.task);
        if users.is_empty() {
            return true;
        }
        if self.against == Against::OtherQueues {
            return false;
        }
        let Some(victims) = search.all_of(cycle.view(), users) else {
            return false;
        };
        for victim in victims {
            cycle.trial.evict(victim, self.gang, self.against.cause());
            cycle.evictions += 1;
        }
        true
    }

    /// Whether nobody whom the gang's tasks are promised to follow uses their claims any more.
    pub(super) fn has_its_claims(&self, cycle: &Cycle<'_, '_>) -> bool {
        let tables = cycle.trial.tables();
        let mut promised = self.promised.iter();
        promised.all(|(task, _)| together::rivals(tables, *task).is_empty())
    }

    /// The nodes for a task for whose claims somebody went, or that goes where they are: what is found out
    /// for it says nothing about others of its shape, so that it is not kept. `None` where it can go nowhere.
    pub(super) fn own_field(&self, cycle: &Cycle<'_, '_>, search: &Search<'_>) -> Option<Field> {
        let tables = cycle.trial.tables();
        match together::home(tables, search.claimant.task, Room::Later) {
            Home::Anywhere => {
                let nodes = tables.nodes().map(|(id, _)| id).collect();
                Some(Field::of(cycle, search, nodes))
            }
            Home::At { node, .. } => Some(Field::of(cycle, search, vec![node])),
            Home::InUse | Home::Nowhere { .. } => None,
        }
    }
}
