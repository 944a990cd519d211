//! Cells: by resource for built-ins, by path for custom resources.

use api::time::Time;
use serde_json::{Value, json};

use super::{core, workload};
use crate::jsonpath::JsonPath;

/// The cells of a built-in object, one a column.
pub(super) fn built_in(
    resource: &str,
    names: &[Box<str>],
    object: &Value,
    now: Time,
) -> Vec<Value> {
    let known = match resource {
        "cronjobs" => workload::cron_job(object, now),
        "daemonsets" => workload::daemon_set(object, now),
        "deployments" => workload::deployment(object, now),
        "endpointslices" => core::endpoint_slice(object, now),
        "events" => core::event(object, now),
        "jobs" => workload::job(object, now),
        "nodes" => core::node(object, now),
        "persistentvolumeclaims" => core::claim(object, now),
        "persistentvolumes" => core::volume(object, now),
        "pods" => workload::pod(object, now),
        "replicasets" | "replicationcontrollers" => workload::replica_set(object, now),
        "services" => core::service(object, now),
        "statefulsets" => workload::stateful_set(object, now),
        _ => Vec::new(),
    };
    if known.len() == names.len() {
        return known;
    }
    names
        .iter()
        .map(|name| core::simple(resource, name, object, now))
        .collect()
}

/// The cells of a custom object: its name, then one a printer column.
pub(super) fn custom(
    columns: &[(Option<JsonPath>, Box<str>)],
    object: &Value,
    now: Time,
) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    for (path, kind) in columns {
        let found = path
            .as_ref()
            .map(|path| path.find(object))
            .unwrap_or_default();
        cells.push(custom_cell(&found, kind, now));
    }
    cells
}

fn custom_cell(found: &[&Value], kind: &str, now: Time) -> Value {
    let Some(first) = found.first().filter(|value| !value.is_null()) else {
        return Value::Null;
    };
    match kind {
        "boolean" => first.as_bool().map_or(Value::Null, Value::Bool),
        "date" => match first.as_str().map(Time::parse) {
            Some(Some(time)) => human_duration(now, time).into(),
            _ => "<invalid>".into(),
        },
        "integer" => match (first.as_i64(), first.as_f64()) {
            (Some(n), _) => n.into(),
            (None, Some(n)) => (n as i64).into(),
            _ => Value::Null,
        },
        "number" => match first {
            Value::Number(_) => (*first).clone(),
            _ => Value::Null,
        },
        _ => {
            let texts: Vec<String> = found.iter().map(|value| plain(value)).collect();
            texts.join(" ").into()
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How long ago `then` was, as kubectl shows ages.
pub fn human_duration(now: Time, then: Time) -> String {
    span(now.micros().saturating_sub(then.micros()))
}

/// A span of microseconds as kubectl shows it: two units at most, one when it is long.
pub(super) fn span(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => two(hours / 24, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        () if hours < 24 * 365 * 8 => two(hours / 24 / 365, "y", (hours / 24) % 365, "d"),
        () => format!("{}y", hours / 24 / 365),
    }
}

/// The age of the instant that a field holds, `<unknown>` where it is missing.
pub(super) fn since(value: &Value, now: Time) -> String {
    match value.as_str().and_then(Time::parse) {
        Some(then) => human_duration(now, then),
        None => "<unknown>".to_owned(),
    }
}

/// The object's age.
pub(super) fn age(object: &Value, now: Time) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// The text of a field, or another text where it is missing or empty.
pub(super) fn text_or<'a>(value: &'a Value, otherwise: &'a str) -> &'a str {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .unwrap_or(otherwise)
}

/// A list, empty where it is missing.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A number, zero where it is missing.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(value: &Value) -> String {
    let pairs: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    or_none(pairs.join(","))
}

/// A label selector as `kubectl get -o wide` shows it.
pub(super) fn selector(value: &Value) -> String {
    if value.is_null() {
        return "<none>".to_owned();
    }
    let mut parts: Vec<String> = value["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    for rule in list(&value["matchExpressions"]) {
        let key = text_or(&rule["key"], "");
        let values: Vec<String> = list(&rule["values"]).iter().map(plain).collect();
        let values = values.join(",");
        parts.push(match rule["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.sort();
    or_none(parts.join(","))
}

/// Names and images of a pod template's containers.
pub(super) fn containers(spec: &Value) -> [Value; 2] {
    let join = |field: &str| {
        let texts: Vec<&str> = list(&spec["containers"])
            .iter()
            .map(|container| text_or(&container[field], ""))
            .collect();
        json!(texts.join(","))
    };
    [join("name"), join("image")]
}

pub(super) fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}
