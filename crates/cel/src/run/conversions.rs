//! Conversions that the real server makes and the library does not, or makes otherwise.

use std::sync::Arc;

use kube_cel::cel::Value;

use super::types::name_of;
use super::{Answer, failed, optional};
use crate::messages::{instant, plain_text};

/// The first second of the year 1 and the last one of the year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// What a conversion makes of a value; `None` where the library makes the same of it.
pub(super) fn converted(name: &str, values: &[Value]) -> Option<Answer> {
    let [value] = values else { return None };
    let text = |text: String| Some(Ok(Value::String(Arc::new(text))));
    match (name, value) {
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("duration", Value::Duration(_))
        | ("timestamp", Value::Timestamp(_)) => Some(Ok(value.clone())),
        ("bool", Value::String(word)) => Some(match &***word {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(none(value, "bool")),
        }),
        // It may be called, and never has an answer.
        ("duration", Value::Int(_)) => Some(Err(none(value, "google.protobuf.Duration"))),
        ("int", Value::Duration(length)) => {
            let nanos = length.num_nanoseconds().map(Value::Int);
            Some(nanos.ok_or_else(|| failed("integer overflow")))
        }
        ("int", Value::Timestamp(time)) => Some(Ok(Value::Int(time.timestamp()))),
        ("string", Value::Bool(truth)) => text(truth.to_string()),
        ("string", Value::Duration(_)) => text(plain_text(value)?),
        ("string", Value::Float(number)) => text(general(*number)),
        ("string", Value::Timestamp(time)) => {
            let fraction = format!(".{:09}", time.timestamp_subsec_nanos());
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            let whole = time.format("%Y-%m-%dT%H:%M:%S");
            let zone = match time.offset().local_minus_utc() {
                0 => "Z".to_owned(),
                _ => time.format("%:z").to_string(),
            };
            text(format!("{whole}{fraction}{zone}"))
        }
        ("timestamp", Value::Int(seconds)) => Some(match SECONDS.contains(seconds) {
            true => instant(*seconds, 0).map_err(failed),
            false => Err(failed("timestamp overflow")),
        }),
        ("unwrap" | "unwrapOpt", Value::List(list)) => {
            let there = list.iter().filter_map(|item| optional(item)?);
            Some(Ok(Value::List(Arc::new(there.collect()))))
        }
        _ => None,
    }
}

fn none(value: &Value, wanted: &str) -> super::Halt {
    let name = name_of(value);
    failed(format!("type conversion error from '{name}' to '{wanted}'"))
}

/// A fraction as Go's `%g` writes it: with an exponent where that is below -4 or above 5.
fn general(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        let sign = if number > 0.0 { '+' } else { '-' };
        return format!("{sign}Inf");
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}
