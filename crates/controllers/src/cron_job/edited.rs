//! Since when a schedule holds that somebody has edited.
//!
//! Nothing that is there tells it: an object says what it is and not what it was. So the event itself wakes
//! a key of its own, whose step writes the instant into an annotation; times before that are not made up
//! for. Who never edits a schedule never has it. An edit that nobody of ours heard of is as if the schedule
//! had always been so.

use api::intent::{ObjectKey, Part};
use api::time::Time;
use mirror::{Change, Typed};
use serde_json::json;

use super::family::{Family, Parent};
use crate::{Inputs, Step, write};

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

/// Takes down the instant of an edit, if the key is that of one.
pub(super) fn step(family: &Family, inputs: &Inputs<'_>) -> Option<Step> {
    let name = inputs.key.name.strip_suffix(EDITED)?;
    let Some(it) = (family.find)(inputs.mirror, &inputs.key.namespace, name) else {
        return Some(Step::idle());
    };
    // Also where it was edited back and forth: what else was edited with it waits for this change.
    let generation = it.meta.generation.to_string();
    let is_noted = noted(&it).is_some_and(|(_, noted)| *noted == *generation);
    if is_noted || it.meta.deletion_timestamp.is_some() {
        return Some(Step::idle());
    }
    let text = format!("{} {generation}", inputs.now.seconds_text());
    let patch = json!({ "metadata": { "annotations": { SCHEDULED_SINCE: text } } });
    let noting = write::patch(family.kind, it.meta, Part::Whole, patch);
    Some(Step::write(vec![noting]))
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
