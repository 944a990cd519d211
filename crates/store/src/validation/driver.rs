//! Drivers of storage, and volumes attached by them.

use std::collections::BTreeSet;

use api::names;
use serde_json::{Value, json};

use super::spot::{Faults, Spot};
use super::storage::driver_name;
use super::{IMMUTABLE, meta, same};

/// Shortest time between two looks at a node's room, in seconds.
const PERIOD_SECONDS_MIN: i64 = 10;
/// Shortest and longest life of a token, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
/// Most bytes of what is told of an attached volume.
const TOLD_BYTES_MAX: i64 = 256 * 1024;
/// Longest complaint about a volume, in bytes. Upstream names another limit in its text.
const COMPLAINT_BYTES_MAX: usize = 1024;
const GROUP_POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];
const LIVES: &[&str] = &["Persistent", "Ephemeral"];
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

/// Checks a new driver.
pub(super) fn create(driver: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(driver, names::check_subdomain, faults);
    spec(&driver.at("spec"), faults);
}

/// A driver keeps how it attaches, and the lives of its volumes.
pub(super) fn update(driver: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    meta::update(driver, old, faults);
    let given = driver.at("spec");
    spec(&given, faults);
    for (name, called) in [
        ("attachRequired", "attachedRequired"),
        ("volumeLifecycleModes", "volumeLifecycleModes"),
    ] {
        let at = given.called(name, called);
        if !same(at.value, &old["spec"][name]) {
            faults.invalid(&at, IMMUTABLE);
        }
    }
}

fn spec(spec: &Spot<'_, '_>, faults: &mut Faults) {
    faults.known(&spec.at("fsGroupPolicy"), GROUP_POLICIES);
    let requests = spec.at("tokenRequests");
    tokens(&requests, faults);
    let lives = spec.at("volumeLifecycleModes");
    for life in lives.items().filter(|life| !LIVES.contains(&life.text())) {
        let path = lives.path();
        let fault = crate::field::FieldError::not_supported(&path, life.text(), LIVES);
        faults.push(fault);
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period
        .maybe()
        .is_some_and(|period| period < PERIOD_SECONDS_MIN)
    {
        let detail = format!("must be greater than or equal to {PERIOD_SECONDS_MIN} seconds");
        faults.invalid(&period, &detail);
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.is_there() && requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        faults.invalid(&in_secrets, detail);
    }
}

fn tokens(requests: &Spot<'_, '_>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for request in requests.items() {
        let audience = request.at("audience");
        if !seen.insert(audience.text()) {
            faults.duplicate(&audience, audience.text());
            continue;
        }
        let life = request.at("expirationSeconds");
        let Some(seconds) = life.maybe() else {
            continue;
        };
        if seconds < TOKEN_SECONDS_MIN {
            faults.invalid(&life, "may not specify a duration less than 10 minutes");
        }
        if seconds > TOKEN_SECONDS_MAX {
            faults.invalid(&life, "may not specify a duration larger than 2^32 seconds");
        }
    }
}

/// Checks a new attachment.
pub(super) fn attachment(attachment: &Spot<'_, '_>, faults: &mut Faults) {
    meta::create(attachment, names::check_subdomain, faults);
    let spec = attachment.at("spec");
    driver_name(&spec.at("attacher"), faults);
    let source = spec.at("source");
    let name = source.at("persistentVolumeName");
    match (source.at("inlineVolumeSpec").is_there(), name.is_there()) {
        (false, false) => faults.required(&source, ONE_SOURCE),
        (true, true) => faults.forbidden(&source, ONE_SOURCE),
        (false, true) if name.is_empty() => {
            faults.required(&name, "must specify non empty persistentVolumeName");
        }
        _ => {}
    }
    faults.name(&spec.at("nodeName"), names::check_subdomain);
    attached(&attachment.at("status"), faults);
    if name.is_there() {
        faults.name(&name, names::check_subdomain);
    }
}

/// An attachment keeps its spec.
pub(super) fn attachment_update(changed: &Spot<'_, '_>, old: &Value, faults: &mut Faults) {
    attachment(changed, faults);
    let spec = changed.at("spec");
    if !same(spec.value, &old["spec"]) {
        let source = &spec.value["source"];
        let shown = json!({
            "Attacher": spec.value["attacher"],
            "Source": {
                "PersistentVolumeName": source["persistentVolumeName"],
                "InlineVolumeSpec": source["inlineVolumeSpec"],
            },
            "NodeName": spec.value["nodeName"],
        });
        faults.invalid_as(&spec, shown, IMMUTABLE);
    }
}

fn attached(status: &Spot<'_, '_>, faults: &mut Faults) {
    let told = status.at("attachmentMetadata");
    let bytes = told.entries().map(|(key, at)| key.len() + at.text().len());
    if bytes.sum::<usize>() as i64 > TOLD_BYTES_MAX {
        faults.too_long(&told, TOLD_BYTES_MAX);
    }
    for error in ["attachError", "detachError"] {
        let error = status.at(error);
        let message = error.at("message");
        if message.text().len() > COMPLAINT_BYTES_MAX {
            faults.too_long(&message, TOLD_BYTES_MAX);
        }
        faults.within(&error.at("errorCode"), 0, i64::from(i32::MAX));
    }
}
