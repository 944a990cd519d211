//! Events have one storage and two shapes: `v1` and `events.k8s.io/v1`. The core shape is stored.

use serde_json::{Map, Value, json};

/// Fields that differ: core name, `events.k8s.io` name.
const RENAMED: &[(&str, &str)] = &[
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// From `events.k8s.io/v1` to `v1`.
pub(crate) fn to_core(event: &mut Value) {
    rename(event, |map, core, new| {
        if let Some(value) = map.remove(new) {
            map.insert(core.to_owned(), value);
        }
    });
    event["apiVersion"] = json!("v1");
}

/// From `v1` to `events.k8s.io/v1`.
pub(crate) fn from_core(event: &mut Value) {
    rename(event, |map, core, new| {
        if let Some(value) = map.remove(core) {
            map.insert(new.to_owned(), value);
        }
    });
    event["apiVersion"] = json!("events.k8s.io/v1");
    if let Some(map) = event.as_object_mut() {
        for name in ["reportingController", "reportingInstance"] {
            if map.get(name).is_some_and(|text| text == "") {
                map.remove(name);
            }
        }
    }
}

fn rename(event: &mut Value, step: impl Fn(&mut Map<String, Value>, &str, &str)) {
    let Some(map) = event.as_object_mut() else {
        return;
    };
    for (core, new) in RENAMED {
        step(map, core, new);
    }
}
