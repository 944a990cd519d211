//! What reaches the server from whoever tends the directories behind volumes.

use api::intent::{Intent, WriteOutcome};
use api::time::Time;

use super::{Event, Patience, World};
use crate::fault::Fault;

impl World {
    /// When a directory is as its volume wants it.
    pub(super) fn disk_time(&mut self) -> Time {
        self.later_or_slow(Fault::ProvisionerSlow)
    }

    pub(super) fn hear_disk(&mut self, intent: Intent, patience: Patience) {
        let is_failing = self.strikes(Fault::ProvisionerFailing, &intent.target.name);
        let is_wanted = is_failing || is_passing(&self.perform("disk", &intent));
        if let Some((ms, left)) = patience.again().filter(|_| is_wanted) {
            self.push(self.now.plus_ms(ms), Event::Disk(intent, left));
        }
    }
}

/// Whether a write that failed may well be taken later.
fn is_passing(outcome: &WriteOutcome) -> bool {
    match outcome {
        WriteOutcome::Done { .. } => false,
        WriteOutcome::Refused(refusal) => matches!(refusal.code, 429 | 500..),
        WriteOutcome::Unknown { .. } => true,
    }
}
