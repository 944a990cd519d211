//! What annotations say of when something comes, how often, and how long its pods run.

use api::duration::Duration;
use serde_json::Value;

use super::{
    FOR_MS_MAX, SIM_ARRIVES, SIM_ARRIVES_JITTER, SIM_DURATION_JITTER, SIM_EVERY, SIM_TIMES,
};

/// When something comes, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct When {
    pub(super) arrives_ms: i64,
    pub(super) arrives_jitter_ms: i64,
    pub(super) every_ms: Option<i64>,
    pub(super) times: Option<usize>,
    /// How long its pods run, where it says so itself.
    pub(super) duration_ms: Option<i64>,
    pub(super) duration_jitter_ms: i64,
}

/// A field and what is wrong with it.
pub(super) type Wrong = (String, String);

impl When {
    /// What the annotations of an object say.
    pub(super) fn of(object: &Value) -> Result<When, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut time = |name: &str| match duration(object, "metadata", name) {
            Ok(found) => found,
            Err(what) => {
                wrong.push(what);
                None
            }
        };
        let mut when = When {
            arrives_ms: time(SIM_ARRIVES).unwrap_or(0),
            arrives_jitter_ms: time(SIM_ARRIVES_JITTER).unwrap_or(0),
            every_ms: time(SIM_EVERY),
            times: None,
            duration_ms: time(nodes::SIM_DURATION),
            duration_jitter_ms: time(SIM_DURATION_JITTER).unwrap_or(0),
        };
        if when.every_ms.is_some_and(|ms| ms < 1_000) {
            wrong.push((
                path("metadata", SIM_EVERY),
                "must be at least 1s".to_owned(),
            ));
        }
        match count(object, SIM_TIMES) {
            Ok(times) => when.times = times,
            Err(what) => wrong.push(what),
        }
        if when.times.is_some_and(|times| times > 1) && when.every_ms.is_none() {
            let text = format!("needs {SIM_EVERY}");
            wrong.push((path("metadata", SIM_TIMES), text));
        }
        match wrong.is_empty() {
            true => Ok(when),
            false => Err(wrong),
        }
    }

    /// How often it comes if the world ends after so long; at least once.
    pub(super) fn count(&self, for_ms: i64) -> usize {
        let fits = match self.every_ms {
            Some(every) => (for_ms - self.arrives_ms).max(0) / every.max(1) + 1,
            None => 1,
        };
        let fits = usize::try_from(fits).unwrap_or(usize::MAX);
        fits.min(self.times.unwrap_or(usize::MAX)).max(1)
    }
}

/// A duration that an annotation of an object, or of a template in it, states.
pub(super) fn duration(object: &Value, meta: &str, name: &str) -> Result<Option<i64>, Wrong> {
    let told = &object["metadata"]["annotations"][name];
    let wrong = |text: String| (path(meta, name), text);
    let text = match told {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        _ => return Err(wrong("Invalid value: must be a string such as 10m".into())),
    };
    let parsed = Duration::parse(text);
    let micros = parsed
        .map_err(|why| wrong(format!("Invalid value: {text:?}: {why}")))?
        .micros();
    if micros < 0 {
        return Err(wrong(format!(
            "Invalid value: {text:?}: must not be negative"
        )));
    }
    let ms = micros / 1_000;
    if ms > FOR_MS_MAX {
        return Err(wrong(format!(
            "Invalid value: {text:?}: longer than a year"
        )));
    }
    Ok(Some(ms))
}

/// A positive number that an annotation states.
pub(super) fn count(object: &Value, name: &str) -> Result<Option<usize>, Wrong> {
    let told = &object["metadata"]["annotations"][name];
    if told.is_null() {
        return Ok(None);
    }
    let number = told.as_str().and_then(|text| text.parse::<usize>().ok());
    match number.filter(|number| *number > 0) {
        Some(number) => Ok(Some(number)),
        None => Err((
            path("metadata", name),
            format!("Invalid value: {told}: must be a string with a number above 0"),
        )),
    }
}

fn path(meta: &str, name: &str) -> String {
    format!("{meta}.annotations.{name}")
}
