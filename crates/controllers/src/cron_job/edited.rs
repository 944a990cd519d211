//! Since when a schedule holds that somebody has edited.
//!
//! Nothing that is there tells it: an object says what it is and not what it was. So the event itself wakes
//! a key of its own, whose step writes the instant into an annotation; times before that are not made up
//! for. Who never edits a schedule never has it. An edit that nobody of ours heard of is as if the schedule
//! had always been so. Where the annotation may not be written the key of the edit looks after the CronJob
//! for as long, so that the next time of the new schedule is served.

use api::intent::{Intent, ObjectKey, Part};
use api::time::Time;
use mirror::{Change, Typed};
use serde_json::json;

use super::family::{Family, Parent};
use crate::{Inputs, Refused, write};

/// On a CronJob: since when its schedule holds, and the generation in which it was seen to.
const SCHEDULED_SINCE: &str = "katmai.dev/scheduled-since";
/// What the name in the key of an edit ends with: no object's name has a slash.
const EDITED: &str = "/schedule";

/// Whether a change of this kind of CronJob gives one that was there before another schedule or zone.
pub(super) fn reschedules<T: Typed>(change: &Change, of: fn(&T) -> Parent<'_>) -> bool {
    let (Some(before), Some(after)) = (change.before::<T>(), change.after::<T>()) else {
        return false;
    };
    let (before, after) = (of(before).spec, of(after).spec);
    let is_other = before.schedule != after.schedule || before.time_zone != after.time_zone;
    is_other && !change.is_recreation()
}

/// The key of an edit of the CronJob under this key. The CronJob itself is looked at once the instant is
/// written: that is a change of it, too.
pub(super) fn key(cron_job: &ObjectKey) -> ObjectKey {
    let name = format!("{}{EDITED}", cron_job.name);
    ObjectKey::new(cron_job.kind, &cron_job.namespace, &name)
}

/// The name of the CronJob in the key of an edit.
pub(super) fn name_in(name: &str) -> Option<&str> {
    name.strip_suffix(EDITED)
}

/// How an edit stands.
pub(super) enum Edit {
    /// Its instant is written, or need not be.
    Noted,
    /// It has just happened: this writes its instant.
    New(Intent),
    /// Its instant may not be written. Nobody looks at the CronJob because of the edit then but the key of the
    /// edit itself, for which the schedule holds since that instant.
    Refused {
        since: Time,
        /// Tries to write it once more.
        noting: Option<Intent>,
    },
}

/// Judges an edit of this CronJob by the key of the edit.
pub(super) fn judge(family: &Family, inputs: &Inputs<'_>, it: &Parent<'_>) -> Edit {
    // Also where it was edited back and forth: what else was edited with it waits for this change.
    let generation = it.meta.generation.to_string();
    let is_noted = noted(it).is_some_and(|(_, noted)| *noted == *generation);
    if is_noted || it.meta.deletion_timestamp.is_some() {
        return Edit::Noted;
    }
    let noting = |since: Time| {
        let text = format!("{} {generation}", since.seconds_text());
        let patch = json!({ "metadata": { "annotations": { SCHEDULED_SINCE: text } } });
        write::patch(family.kind, it.meta, Part::Whole, patch)
    };
    let last = inputs.last;
    let is_it = |it: &Refused| it.verb == "patch" && it.target.kind == family.kind;
    let is_refused = last.refused.iter().any(is_it);
    // What was remembered of an edit and has been written says nothing of another one.
    let unwritten = (last.rests_since).filter(|since| self::since(it) != whole_second(*since));
    if !is_refused && unwritten.is_none() {
        return Edit::New(noting(inputs.now));
    }
    let since = unwritten.unwrap_or(inputs.now);
    Edit::Refused {
        since,
        // Once for each time that comes: in between, what is done succeeds, and is not put off.
        noting: (!is_refused).then(|| noting(since)),
    }
}

/// An instant as it is written.
fn whole_second(at: Time) -> Option<Time> {
    Time::parse(&at.seconds_text())
}

/// Since when the schedule holds, as far as that was noted.
pub(super) fn since(it: &Parent<'_>) -> Option<Time> {
    noted(it).map(|(since, _)| since)
}

fn noted<'a>(it: &Parent<'a>) -> Option<(Time, &'a str)> {
    let (since, generation) = it.meta.annotations.get(SCHEDULED_SINCE)?.split_once(' ')?;
    let since = Time::parse(since)?;
    // What came with a copy of another object says nothing of this one.
    (it.meta.creation_timestamp <= Some(since)).then_some((since, generation))
}
