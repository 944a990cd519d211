//! How many pods of each task a kill of the whole job has kept: they have ended, and are of a former version.
//!
//! They stand in the counts of the status beside the others. When one of them goes nothing is left that
//! tells whose version it was; therefore the status says how many of them it counts.

use std::collections::BTreeMap;

use api::volcano::JobStatus;

use super::roster::{Roster, Standing};

/// Start of the keys in `status.controlledResources` under which their number stands:
/// `katmai.dev/former/<task>`.
const PREFIX: &str = "katmai.dev/former/";

/// How many a status counts; `None` where it says nothing of it.
pub(super) fn of(status: &JobStatus, task: &str) -> Option<i64> {
    let count = status
        .controlled_resources
        .get(format!("{PREFIX}{task}").as_str())?;
    count.parse().ok()
}

/// Takes out what stands in a status.
pub(super) fn clear(status: &mut JobStatus) {
    let held = &mut status.controlled_resources;
    held.retain(|key, _| !key.starts_with(PREFIX));
}

/// Writes the numbers into a status, in place of those that stand there.
pub(super) fn write(roster: &Roster, status: &mut JobStatus) {
    clear(status);
    let mut kept = BTreeMap::<&str, usize>::new();
    for member in &roster.members {
        if member.standing == Standing::Former {
            *kept.entry(&member.task).or_default() += 1;
        }
    }
    if !kept.is_empty() {
        let notes = kept.into_iter();
        let notes =
            notes.map(|(task, count)| (format!("{PREFIX}{task}").into(), count.to_string().into()));
        status.controlled_resources.extend(notes);
    }
}
