//! Which pods of a task a status counts, by index.
//!
//! Mostly they are those of its first indices, as many as it counts, and nothing has to be said. Where they are
//! not, the status lists them: of a task that gets new pods nobody could tell by their number that another one
//! has gone.

use std::collections::BTreeMap;

use api::volcano::{JobStatus, TaskCount};

use super::kept;
use super::ranges::Ranges;
use super::roster::{Roster, Standing};

/// Start of the keys in `status.controlledResources` under which they stand: `katmai.dev/counted/<task>`, with
/// ranges (`0,3-5`) as text. Pods of former versions are not among them.
const PREFIX: &str = "katmai.dev/counted/";
/// So many ranges of a task are listed, and of so many tasks; a status has to stay small.
const RANGES_MAX: usize = 64;
const TASKS_MAX: usize = 256;
/// Says that there are too many to be listed: of this task, or, where the key names none, of any.
const TOO_MANY: &str = "too-many";
/// Says that there is none.
const NONE: &str = "none";

/// What a status says of a task.
pub(super) enum Counted {
    /// It lists these.
    Listed(Ranges),
    /// It says nothing: they are these, unless somebody has written it who lists nobody.
    First(Ranges),
    /// Only how many there are.
    Number,
}

impl Counted {
    /// Reads what a status says.
    pub(super) fn of(status: &JobStatus, task: &str) -> Counted {
        let held = &status.controlled_resources;
        match held.get(format!("{PREFIX}{task}").as_str()) {
            Some(text) if **text == *TOO_MANY => Counted::Number,
            Some(text) => Counted::Listed(Ranges::parse(text)),
            // It would be listed by whoever lists anybody.
            None if held.contains_key(PREFIX) || kept::of(status, task).is_some() => {
                Counted::Number
            }
            None => {
                let count = status
                    .task_status_count
                    .get(task)
                    .map_or(0, TaskCount::pods);
                Counted::First(Ranges::first(u32::try_from(count).unwrap_or(0)))
            }
        }
    }
}

/// Whether a key of a status is one of these.
pub(super) fn is_note(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// Takes out what stands in a status.
pub(super) fn clear(status: &mut JobStatus) {
    status.controlled_resources.retain(|key, _| !is_note(key));
}

/// Writes into a status whom it counts, in place of what stands there.
pub(super) fn write(roster: &Roster, status: &mut JobStatus) {
    clear(status);
    let mut tasks = BTreeMap::<&str, (Vec<u32>, bool)>::new();
    for member in roster.counting() {
        let (indices, has_former) = tasks.entry(&member.task).or_default();
        match member.standing {
            Standing::Former => *has_former = true,
            _ => indices.push(member.index),
        }
    }
    let notes = tasks
        .into_iter()
        .filter_map(|(task, (indices, has_former))| {
            let ranges = Ranges::of(indices);
            let text = match ranges.len() {
                _ if ranges.are_first() && !has_former => return None,
                0 => NONE.to_owned(),
                1..=RANGES_MAX => ranges.text(),
                _ => TOO_MANY.to_owned(),
            };
            Some((task, text))
        });
    let mut notes: Vec<(&str, String)> = notes.collect();
    if notes.len() > TASKS_MAX {
        notes = vec![("", TOO_MANY.to_owned())];
    }
    if !notes.is_empty() {
        let notes = notes.into_iter();
        let notes = notes.map(|(task, text)| (format!("{PREFIX}{task}").into(), text.into()));
        status.controlled_resources.extend(notes);
    }
}
