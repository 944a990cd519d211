//! Attach slots: how many volumes of one driver a node can bear.
//!
//! Source: Kubernetes' node volume limits (`CSINode.spec.drivers[].allocatable.count`). A volume that
//! several pods use takes one slot, also one that has yet to be made; a free volume that a claim gets takes one
//! of its own driver, whoever makes volumes of the claim's class.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Attached, NodeId, TaskId};

use super::later_on;
use crate::plugin::{Room, View};

/// What takes slots of one driver.
#[derive(Debug, Default)]
pub(super) struct Slots<'a> {
    /// Volumes that are there.
    handles: BTreeSet<&'a str>,
    /// Volumes that have yet to be made.
    unmade: u32,
}

impl<'a> Slots<'a> {
    /// What of these is the driver's.
    pub(super) fn of(driver: &str, volumes: impl Iterator<Item = Attached<'a>>) -> Slots<'a> {
        let mut slots = Slots::default();
        volumes.for_each(|volume| slots.add(driver, volume));
        slots
    }

    /// What is taken on the node. What is promised there is taken now, too.
    pub(super) fn at(view: View<'a>, id: NodeId, room: Room, driver: &Arc<str>) -> Slots<'a> {
        let node = view.tables.node(id);
        let mut slots = Slots::default();
        let mut hold = |task: TaskId| {
            let volumes = view.tables.attached_by(task);
            volumes.for_each(|volume| slots.add(driver, volume));
        };
        match room {
            Room::Now => {
                node.promised.iter().copied().for_each(&mut hold);
                let volumes = node.volumes.keys().filter(|(of, _)| of == driver);
                slots.handles.extend(volumes.map(|(_, handle)| &**handle));
                let unmade = node.unmade.get(driver).copied().unwrap_or(0);
                slots.unmade = slots.unmade.saturating_add(unmade);
            }
            Room::Later => later_on(view, id).for_each(hold),
        }
        slots
    }

    pub(super) fn is_empty(&self) -> bool {
        self.handles.is_empty() && self.unmade == 0
    }

    /// Whether these are too many beside those that are taken. What is taken already takes nothing.
    pub(super) fn exceed(&self, taken: &Slots<'_>, limit: i64) -> bool {
        let new = self.handles.difference(&taken.handles).count();
        if new == 0 && self.unmade == 0 {
            return false;
        }
        let there = taken.handles.len() + new;
        let unmade = i64::from(self.unmade) + i64::from(taken.unmade);
        i64::try_from(there)
            .unwrap_or(i64::MAX)
            .saturating_add(unmade)
            > limit
    }

    fn add(&mut self, driver: &str, volume: Attached<'a>) {
        if **volume.driver() != *driver {
            return;
        }
        match volume {
            Attached::One((_, handle)) => drop(self.handles.insert(handle)),
            Attached::Unmade(_, count) => self.unmade = self.unmade.saturating_add(count),
        }
    }
}
