//! Hyper-nodes whose members are not what they say: their people are told, once for each change.

use api::kind::Kind;
use api::time::Time;
use mirror::{Change, Mirror, ToldFaults, Voice};

use super::Cycles;
use crate::writes::Writes;

/// What was told, and whether there may be more.
#[derive(Debug, Default)]
pub(super) struct Misfits {
    pub(super) is_due: bool,
    told: ToldFaults,
    /// The tree of which it was told.
    serial: u64,
}

impl Misfits {
    /// An object has changed.
    pub(super) fn changed(&mut self, change: &Change) {
        self.is_due |= change.kind() == Kind::HyperNode;
    }
}

impl Cycles {
    /// Tells what is wrong with the tree of hyper-nodes, if it is another one than before.
    pub(super) fn tell_misfits(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        if !std::mem::take(&mut self.misfits.is_due) {
            return;
        }
        // Where nothing else is news nothing was decided, and the tree is still the old one.
        self.tables.settle();
        let serial = self.tables.topology().serial();
        if std::mem::replace(&mut self.misfits.serial, serial) == serial {
            return;
        }
        let voice = Voice {
            component: &self.component,
            now,
            events: self.events,
        };
        let notes = mirror.hyper_node_faults(&self.tables, &mut self.misfits.told, voice);
        for note in notes {
            writes.note(note, now);
        }
    }
}
