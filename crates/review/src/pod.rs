//! Pods: the annotations that limit disruption.

use api::admission::Operation;
use api::kind::Kind;
use api::names::go_quote;
use api::volcano::{JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_GATE};
use serde_json::{Value, json};

use crate::fields::text;
use crate::{Case, Reviewer};

pub(crate) const REVIEWER: Reviewer = Reviewer {
    kind: Kind::Pod,
    mutate: Some(("mutatepod.volcano.sh", mutate)),
    validate: Some(("validatepod.volcano.sh", validate)),
};

const KEYS: [&str; 2] = [JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE];

/// A new pod that asks for it is held back until its queue has room.
fn mutate(case: &Case<'_>, pod: &mut Value) {
    let asks = case.object["metadata"]["annotations"][QUEUE_GATE] == "true";
    if !case.settings.queue_gates || !is_ours(case) || !asks {
        return;
    }
    let gates = &mut pod["spec"]["schedulingGates"];
    if gates.is_null() {
        *gates = json!([]);
    }
    let Some(gates) = gates.as_array_mut() else {
        return;
    };
    if gates.iter().all(|gate| gate["name"] != QUEUE_GATE) {
        gates.push(json!({ "name": QUEUE_GATE }));
    }
}

/// Only new pods of our schedulers are looked at: other people's pods are never stopped.
fn is_ours(case: &Case<'_>) -> bool {
    let scheduler = text(&case.object["spec"], "schedulerName");
    let mut names = case.settings.scheduler_names.iter();
    case.operation == Operation::Create && names.any(|name| **name == *scheduler)
}

fn validate(case: &Case<'_>) -> Result<(), String> {
    if !is_ours(case) {
        return Ok(());
    }
    let annotations = &case.object["metadata"]["annotations"];
    let mut found = 0;
    for key in KEYS {
        if let Some(value) = annotations[key].as_str() {
            found += 1;
            check(key, value)?;
        }
    }
    if found > 1 {
        return Err(format!(
            "not allow configure multiple annotations <[{}]> at same time",
            KEYS.join(" ")
        ));
    }
    Ok(())
}

/// A positive whole number, or 1% to 99%.
fn check(key: &str, value: &str) -> Result<(), String> {
    if let Ok(number) = value.parse::<i32>() {
        if number <= 0 {
            return Err(format!(
                "invalid value <{}> for {key}, it must be a positive integer",
                go_quote(value)
            ));
        }
        return Ok(());
    }
    let digits = value.replace('%', "");
    let percent: i64 = digits.parse().map_err(|_| {
        format!(
            "invalid value strconv.Atoi: parsing {}: invalid syntax for {key}",
            go_quote(&digits)
        )
    })?;
    if percent <= 0 || percent >= 100 {
        return Err(format!(
            "invalid value <{}> for {key}, it must be a valid percentage which between 1% ~ 99%",
            go_quote(value)
        ));
    }
    Ok(())
}
