//! Which pods that somebody has marked as out of sync a status has taken out of its counts.
//!
//! The going of a marked pod is nothing that happened to the job. Whether a status still counts one that
//! goes cannot be seen from the pod; therefore the status lists by index those that it does not.

use std::collections::BTreeMap;

use api::volcano::JobStatus;

use super::roster::Roster;

/// Start of the keys in `status.controlledResources` under which their indices stand:
/// `katmai.dev/marked/<task>`, with ranges (`0,3-5`) as text.
const PREFIX: &str = "katmai.dev/marked/";
/// So many ranges of a task are listed; a status has to stay small.
const RANGES_MAX: usize = 64;

/// Indices of a task, as ranges with both ends.
pub(super) struct Told(Vec<(u32, u32)>);

impl Told {
    /// Reads what a status lists; what cannot be understood is nothing.
    pub(super) fn of(status: &JobStatus, task: &str) -> Told {
        let held = &status.controlled_resources;
        let text = held.get(format!("{PREFIX}{task}").as_str());
        let ranges = text.into_iter().flat_map(|text| text.split(','));
        let ranges = ranges.filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        Told(ranges.collect())
    }

    /// Whether the status tells of the pod of this index that it goes.
    pub(super) fn has(&self, index: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&index))
    }
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
    for (task, mut indices) in tasks {
        indices.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for index in indices {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
                _ => ranges.push((index, index)),
            }
        }
        ranges.truncate(RANGES_MAX);
        let texts = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let text = texts.collect::<Vec<_>>().join(",");
        let held = &mut status.controlled_resources;
        held.insert(format!("{PREFIX}{task}").into(), text.into());
    }
}
