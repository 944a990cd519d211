//! What the query of a list or a watch may say.

use crate::field::FieldError;
use crate::path::Query;
use crate::status::{Outcome, Refused};

const MATCH: &str = "resourceVersionMatch";

/// Checks the options of a list.
pub(crate) fn check_list(query: &Query) -> Outcome<()> {
    let matching = query.text(MATCH);
    let version = query.text("resourceVersion");
    let mut errors = Vec::new();
    if !matching.is_empty() {
        if version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        errors.extend(with_continue(query));
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let known = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(MATCH, matching, &known));
        }
        if matching == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
    }
    if !query.text("sendInitialEvents").is_empty() {
        let detail = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden("sendInitialEvents", detail));
    }
    query.number("timeoutSeconds")?;
    finish(&errors)?;
    if !query.text("continue").is_empty() && !matches!(version, "" | "0") {
        let why = "specifying resource version is not allowed when using continue";
        return Err(Refused::bad_request(why));
    }
    Ok(())
}

/// Checks the options of a watch.
pub(crate) fn check_watch(query: &Query) -> Outcome<()> {
    let matching = query.text(MATCH);
    let initial = !query.text("sendInitialEvents").is_empty();
    let mut errors = Vec::new();
    if initial && matching != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, detail));
    }
    if !matching.is_empty() {
        if !initial {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if matching != "NotOlderThan" {
            let known = ["NotOlderThan"];
            errors.push(FieldError::not_supported(MATCH, matching, &known));
        }
        errors.extend(with_continue(query));
    }
    finish(&errors)
}

fn with_continue(query: &Query) -> Option<FieldError> {
    let detail = "resourceVersionMatch is forbidden when continue is provided";
    (!query.text("continue").is_empty()).then(|| FieldError::forbidden(MATCH, detail))
}

fn finish(errors: &[FieldError]) -> Outcome<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Refused::invalid("meta.k8s.io", "ListOptions", "", errors))
}

/// `resourceVersion` of a read; 0 where there is none.
pub(crate) fn version_of(query: &Query) -> Outcome<u64> {
    match query.text("resourceVersion") {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            Refused::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: {}",
                no_number(text)
            ))
        }),
    }
}

/// `resourceVersion` of a watch. Upstream answers a bad one as its own failure.
pub(crate) fn watch_version(query: &Query) -> Outcome<u64> {
    match query.text("resourceVersion") {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            Refused::plain(format!(
                "resourceVersion: Invalid value: {text:?}: {}",
                no_number(text)
            ))
        }),
    }
}

/// What Go says to a text that is no number.
pub(crate) fn no_number(text: &str) -> String {
    format!("strconv.ParseUint: parsing {text:?}: invalid syntax")
}
