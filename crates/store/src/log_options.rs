//! `PodLogOptions`: which part of a log is asked for.

use api::time::Time;

use crate::field::FieldError;
use crate::path::Query;
use crate::request::{LogOptions, Since};
use crate::status::{Outcome, Refused};

const TOO_SMALL: &str = "must be greater than 0";

/// Reads and checks the options of a request for a pod's log; whose log, is for others to say.
pub(crate) fn read(pod: &str, query: &Query) -> Outcome<LogOptions> {
    let tail = query.number("tailLines")?;
    let limit = query.number("limitBytes")?;
    let seconds = query.number("sinceSeconds")?;
    let instant = instant(query)?;
    let mut errors = Vec::new();
    if !query.text("stream").is_empty() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if let Some(lines) = tail.filter(|lines| *lines < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("tailLines", lines, detail));
    }
    if let Some(bytes) = limit.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", bytes, TOO_SMALL));
    }
    match (seconds, instant) {
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(
            // Upstream names no field here, and prints it so.
            "[]",
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        )),
        (Some(seconds), None) if seconds < 1 => {
            errors.push(FieldError::invalid("sinceSeconds", seconds, TOO_SMALL));
        }
        _ => {}
    }
    if !errors.is_empty() {
        return Err(Refused::invalid("", "PodLogOptions", pod, &errors));
    }
    let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let ago = seconds.map(|seconds| Since::Ago(u32::try_from(seconds).unwrap_or(u32::MAX)));
    Ok(LogOptions {
        container: String::new(),
        follow: query.is_on("follow"),
        previous: query.is_on("previous"),
        timestamps: query.is_on("timestamps"),
        tail_lines: count(tail),
        since: ago.or(instant.map(Since::Instant)),
        limit_bytes: count(limit),
    })
}

fn instant(query: &Query) -> Outcome<Option<Time>> {
    let given = query.text("sinceTime");
    if given.is_empty() {
        return Ok(None);
    }
    let read = Time::parse(given).ok_or_else(|| {
        Refused::bad_request(format!(
            "parsing time {given:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {given:?} as \"2006\""
        ))
    })?;
    Ok(Some(read))
}
