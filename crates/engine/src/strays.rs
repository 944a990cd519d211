//! Tasks whose group does not exist: nobody decides on them, and after a while they are told so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{GangId, Reason, Tables, Time, Trial};

use placement::Placed;

use crate::status::tell_tasks;
use crate::wording::Wordings;

/// A group may well become known after its pods: it is another watch that brings it.
const PATIENCE_MS: i64 = 5_000;

/// Groups that are named and not there, and when their tasks are told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strays {
    due: BTreeMap<GangId, Time>,
}

impl Strays {
    /// Takes note of those among `gangs` that do not exist although tasks name them.
    pub(crate) fn look(&mut self, tables: &Tables, gangs: &BTreeSet<GangId>, now: Time) {
        let is_stray = |gang: &GangId| tables.find_gang(*gang).is_some_and(|row| !row.known);
        self.due.retain(|gang, _| is_stray(gang));
        for gang in gangs.iter().filter(|gang| is_stray(gang)) {
            let due = now.plus_millis(PATIENCE_MS);
            self.due.entry(*gang).or_insert(due);
        }
    }

    /// Those whose time has come; they are forgotten.
    pub(crate) fn due(&mut self, now: Time) -> Vec<GangId> {
        let due: Vec<GangId> = (self.due.iter())
            .filter(|(_, at)| **at <= now)
            .map(|(gang, _)| *gang)
            .collect();
        for gang in &due {
            self.due.remove(gang);
        }
        due
    }

    /// Whatever waits for its time is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        for at in self.due.values_mut() {
            *at = now.min(*at);
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.due.values().min().copied()
    }
}

/// Tells the tasks of these that their group is missing.
pub(crate) fn tell(wordings: &mut Wordings, trial: &mut Trial<'_>, strays: &[GangId], now: Time) {
    for gang in strays {
        let group = trial.tables().gang(*gang).spec.key.name.clone();
        let reason = Arc::new(Reason::GroupMissing { group });
        tell_tasks(wordings, trial, (*gang, &reason, &Placed::default()), now);
    }
}
