//! What functions cost, and what they toil for nothing.

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators;
use kube_cel::cel::objects::Key;

use super::LIST_COST;

/// Most bytes and items that one expression may go through, or make, for which the real server
/// takes no cost: it would go on until its memory is gone.
pub(super) const TOIL_MAX: u64 = 64 << 20;
/// What calling a function on these values costs.
pub(super) fn cost(name: &str, values: &[Value]) -> u64 {
    let size = |at: usize| values.get(at).map_or(0, size_of);
    let tenth = |size: u64| size.div_ceil(10);
    let texts = || matches!(values, [Value::String(_) | Value::Bytes(_), ..]);
    match name {
        operators::NOT_EQUALS | operators::EQUALS => tenth(size(0).min(size(1))),
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
            if texts() =>
        {
            tenth(size(0).min(size(1)))
        }
        operators::ADD if texts() => tenth(size(0) + size(1)),
        operators::IN => match values.get(1) {
            Some(Value::List(list)) => list.len() as u64,
            _ => 1,
        },
        "matches" | "find" | "findAll" => tenth(size(0) + 1) * size(1).div_ceil(4),
        "contains" if texts() => tenth(size(0)) * tenth(size(1)),
        "indexOf" | "lastIndexOf" | "isSorted" | "sum" | "max" | "min" => {
            values.first().map_or(1, whole_size)
        }
        "join" => 2 * values.first().map_or(1, whole_size),
        "replace" | "split" | "isCanonical" => (2 * size(0)).div_ceil(10),
        "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" | "quantity" | "isQuantity"
        | "semver" | "isSemver" | "ip" | "isIP" | "cidr" | "isCIDR" | "format" | "quote"
        | "startsWith" | "endsWith" => tenth(size(0)),
        "bytes" if texts() => tenth(size(0)),
        "string" => match values.first() {
            Some(Value::Bytes(_)) => tenth(size(0)),
            _ => 1,
        },
        "validate" => tenth(size(1) + 1) * 32,
        "distinct" | "sort" => match values.first() {
            Some(Value::List(list)) => compared_cost(list),
            _ => 1,
        },
        "reverse" | "slice" | "flatten" => size(0) + 1 + LIST_COST,
        "range" => match values.first() {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0) + 1 + LIST_COST,
            _ => 1,
        },
        "contains" | "intersects" => 1 + size(0) * size(1),
        "equivalent" => 1 + 2 * size(0) * size(1),
        _ => 1,
    }
}

/// What comparing everything in a list with everything else costs.
pub(super) fn compared_cost(list: &[Value]) -> u64 {
    let count = list.len() as u64;
    let each = match list.first() {
        Some(Value::String(_) | Value::Bytes(_)) => 21,
        _ => 20,
    };
    count.saturating_mul(count).saturating_mul(each) / 10 + 1 + LIST_COST
}

/// How much a function goes through or makes beyond what it costs, up to a limit.
pub(super) fn toil(name: &str, values: &[Value], limit: u64) -> u64 {
    let is_nested = |value: &Value| match value {
        Value::List(list) => list
            .iter()
            .any(|item| matches!(item, Value::List(_) | Value::Map(_))),
        Value::Map(_) => true,
        _ => false,
    };
    let has_nested = values.iter().any(is_nested);
    match (name, values) {
        (
            "replace",
            [
                Value::String(text),
                Value::String(old),
                Value::String(new),
                ..,
            ],
        ) => {
            let times = (text.len() + 1) / old.len().max(1) + 1;
            (times as u64).saturating_mul(new.len() as u64)
        }
        ("format", [Value::String(text), Value::List(list)]) => {
            let values: u64 = list.iter().map(|item| bulk(item, limit)).sum();
            let digits = text.split("%.").skip(1).map(|rest| {
                let end = rest.find(|letter: char| !letter.is_ascii_digit());
                rest[..end.unwrap_or(rest.len())].parse().unwrap_or(0u64)
            });
            digits.fold(values, u64::saturating_add)
        }
        ("join", [Value::List(list), Value::String(between)]) => {
            (list.len() as u64).saturating_mul(between.len() as u64)
        }
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) if has_nested => {
            bulk(left, limit).min(bulk(right, limit))
        }
        (operators::IN | "flatten" | "indexOf" | "lastIndexOf", _) if has_nested => {
            values.iter().map(|value| bulk(value, limit)).sum()
        }
        ("contains" | "distinct" | "equivalent" | "intersects", [first, ..]) if has_nested => {
            let each = values.iter().map(|value| bulk(value, limit)).max();
            each.unwrap_or(0).saturating_mul(size_of(first))
        }
        _ => 0,
    }
}

/// Everything in a value, counted up to a limit.
pub(super) fn bulk(value: &Value, limit: u64) -> u64 {
    let mut waiting = vec![value];
    let mut count = 0u64;
    while let Some(next) = waiting.pop() {
        count = count.saturating_add(1);
        if count > limit {
            break;
        }
        match next {
            Value::String(text) => count = count.saturating_add(text.len() as u64),
            Value::Bytes(bytes) => count = count.saturating_add(bytes.len() as u64),
            Value::List(list) => waiting.extend(list.iter()),
            Value::Map(map) => waiting.extend(map.map.values()),
            _ => {}
        }
    }
    count
}

fn size_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.map.len() as u64,
        _ => 1,
    }
}

/// What going through everything in a value costs.
fn whole_size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.iter().map(whole_size).sum(),
        Value::Map(map) => {
            let entries = map.map.iter();
            let sizes = entries.map(|(at, value)| match at {
                Key::String(text) => text.len() as u64 / 10 + whole_size(value),
                _ => 1 + whole_size(value),
            });
            sizes.sum()
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
