//! Events, in the core shape in which they are stored.

use api::names;
use serde_json::Value;

use super::meta;
use super::spot::{Faults, Spot};

/// Most bytes of an event's short texts.
const WORD_BYTES_MAX: usize = 128;
/// Most bytes of its message.
const NOTE_BYTES_MAX: usize = 1_024;

/// The shape in which a request brings an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    New,
}

/// Checks a new event.
pub(super) fn create(event: &Spot<'_, '_>, shape: Shape, faults: &mut Faults) {
    common(event, shape, faults);
    if shape == Shape::Core {
        return;
    }
    meta::create(event, names::check_subdomain, faults);
    series(&event.at("series"), faults);
    faults.need(&event.at("eventTime"));
    let kind = event.at("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        let detail = format!("has invalid value: {}", kind.text());
        faults.invalid_as(&kind, "", detail);
    }
    let unset = "needs to be unset";
    for field in ["firstTimestamp", "lastTimestamp"] {
        if event.at(field).is_there() {
            faults.invalid_as(&event.at(field), "", unset);
        }
    }
    if event.at("count").number() != 0 {
        faults.invalid_as(&event.at("count"), "", unset);
    }
    let source = event.at("source");
    if ["component", "host"]
        .iter()
        .any(|field| !source.at(field).is_empty())
    {
        faults.invalid_as(&source, "", unset);
    }
}

/// Checks a changed event.
pub(super) fn update(event: &Spot<'_, '_>, old: &Value, shape: Shape, faults: &mut Faults) {
    common(event, shape, faults);
    if shape == Shape::Core {
        return;
    }
    meta::update(event, old, faults);
    if *event.at("series").value != old["series"] {
        series(&event.at("series"), faults);
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingController",
        "reportingInstance",
    ] {
        let stored = match field {
            "reportingController" => "reportingComponent",
            other => other,
        };
        faults.unchanged(&event.called(stored, field), &old[stored]);
    }
}

fn series(series: &Spot<'_, '_>, faults: &mut Faults) {
    if !series.is_there() {
        return;
    }
    if series.at("count").number() < 2 {
        faults.invalid_as(&series.at("count"), "", "should be at least 2");
    }
    faults.need(&series.at("lastObservedTime"));
}

fn common(event: &Spot<'_, '_>, shape: Shape, faults: &mut Faults) {
    let about = event.at("involvedObject");
    let place = about.at("namespace");
    let meta = event.at("metadata");
    let own = meta.at("namespace").text();
    let is_new = !event.at("eventTime").is_empty();
    // Events about cluster-wide things live in the default namespace.
    let fits = match (is_new, place.is_empty()) {
        (false, true) => matches!(own, "" | "default"),
        (false, false) => place.text() == own,
        (true, true) => matches!(own, "default" | "kube-system"),
        (true, false) => true,
    };
    if !fits {
        faults.invalid_text(&place, "does not match event.namespace");
    }
    if is_new {
        let called = match shape {
            Shape::Core => "reportingComponent",
            Shape::New => "reportingController",
        };
        let reporter = event.called("reportingComponent", called);
        faults.need(&reporter);
        faults.name(&reporter, names::check_qualified);
        for field in ["reportingInstance", "action", "reason"] {
            let at = event.at(field);
            faults.need(&at);
            short(&at, WORD_BYTES_MAX, faults);
        }
        short(&event.at("message"), NOTE_BYTES_MAX, faults);
    }
    for detail in names::check_subdomain(own) {
        faults.push(crate::field::FieldError::invalid("namespace", own, detail));
    }
}

fn short(at: &Spot<'_, '_>, bytes_max: usize, faults: &mut Faults) {
    if at.text().len() > bytes_max {
        let detail = format!("can have at most {bytes_max} characters");
        faults.invalid_as(at, "", detail);
    }
}
