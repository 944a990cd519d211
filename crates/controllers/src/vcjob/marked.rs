//! Which pods that somebody has marked as out of sync a status has taken out of its counts.
//!
//! The going of a marked pod is nothing that happened to the job. Whether a status still counts one that
//! goes cannot be seen from the pod; therefore the status lists by index those that it does not.

use std::collections::BTreeMap;

use api::volcano::JobStatus;

use super::ranges::Ranges;
use super::roster::Roster;

/// Start of the keys in `status.controlledResources` under which their indices stand:
/// `katmai.dev/marked/<task>`, with ranges (`0,3-5`) as text.
const PREFIX: &str = "katmai.dev/marked/";
/// So many ranges of a task are listed; a status has to stay small.
const RANGES_MAX: usize = 64;

/// Reads whom of a task a status lists.
pub(super) fn of(status: &JobStatus, task: &str) -> Ranges {
    let held = &status.controlled_resources;
    let text = held.get(format!("{PREFIX}{task}").as_str());
    text.map(|text| Ranges::parse(text)).unwrap_or_default()
}

/// Takes out what stands in a status.
pub(super) fn clear(status: &mut JobStatus) {
    let held = &mut status.controlled_resources;
    held.retain(|key, _| !key.starts_with(PREFIX));
}

/// Writes the indices into a status, in place of those that stand there.
pub(super) fn write(roster: &Roster, status: &mut JobStatus) {
    clear(status);
    let mut tasks = BTreeMap::<&str, Vec<u32>>::new();
    for member in &roster.members {
        if member.is_marked && !member.counts() {
            tasks.entry(&member.task).or_default().push(member.index);
        }
    }
    let notes = tasks.into_iter().map(|(task, indices)| {
        let mut ranges = Ranges::of(indices);
        ranges.truncate(RANGES_MAX);
        (format!("{PREFIX}{task}").into(), ranges.text().into())
    });
    let notes: Vec<_> = notes.collect();
    if !notes.is_empty() {
        status.controlled_resources.extend(notes);
    }
}
