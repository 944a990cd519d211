//! Pods: the annotations that limit disruption.

use api::admission::Operation;
use api::kind::Kind;
use api::names::go_quote;
use api::volcano::{JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE};

use crate::fields::text;
use crate::{Case, Reviewer};

pub(crate) const REVIEWER: Reviewer = Reviewer {
    kind: Kind::Pod,
    mutate: None,
    validate: Some(("validatepod.volcano.sh", validate)),
};

const KEYS: [&str; 2] = [JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE];

/// Only pods of our schedulers are looked at: other people's pods are never stopped.
fn validate(case: &Case<'_>) -> Result<(), String> {
    if case.operation != Operation::Create {
        return Ok(());
    }
    let scheduler = text(&case.object["spec"], "schedulerName");
    if !case
        .settings
        .scheduler_names
        .iter()
        .any(|name| &**name == scheduler)
    {
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
