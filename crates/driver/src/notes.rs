//! Notes that tell of a write which is still on its way: they are true only once it is done.

use std::collections::BTreeMap;

use api::intent::{Action, Intent, ObjectKey};

use crate::work::WorkKey;

/// How the reason begins of a note that tells of a write.
const DONE: &str = "Successful";

/// Notes by the write that they wait for. Bounded by the writes that are open, each of which ends.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<(WorkKey, ObjectKey), Vec<Intent>>);

impl Notes {
    /// Keeps a note that tells of a write of the same step, to be taken when that is over; gives
    /// back any other.
    pub(crate) fn hold(
        &mut self,
        work: &WorkKey,
        targets: &[ObjectKey],
        note: Intent,
    ) -> Option<Intent> {
        let Some(target) = told(&note, targets).cloned() else {
            return Some(note);
        };
        let waiting = self.0.entry((work.clone(), target)).or_default();
        waiting.push(note);
        None
    }

    /// The notes that waited for a write.
    pub(crate) fn take(&mut self, work: &WorkKey, target: &ObjectKey) -> Vec<Intent> {
        // Mostly nobody waits, and the key need not be made.
        if self.0.is_empty() {
            return Vec::new();
        }
        let waited = (work.clone(), target.clone());
        self.0.remove(&waited).unwrap_or_default()
    }
}

/// The target that a note says was written.
fn told<'a>(note: &Intent, targets: &'a [ObjectKey]) -> Option<&'a ObjectKey> {
    let Action::Create { body } = &note.action else {
        return None;
    };
    let message = body["message"].as_str()?;
    if !body["reason"].as_str()?.starts_with(DONE) {
        return None;
    }
    let mut words = message.split(' ');
    words.find_map(|word| targets.iter().find(|target| *target.name == *word))
}
