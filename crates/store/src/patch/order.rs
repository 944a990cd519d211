//! The order of merged lists: what the patch names stands in the patch's order, what only the
//! server has keeps its place among the rest.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where each identity stands in a list; the first of equal ones counts.
pub(super) type Places = BTreeMap<String, usize>;

/// What tells items apart: the merge key's value, or the scalar itself.
pub(super) fn identity(item: &Value, key: Option<&str>) -> Option<String> {
    match key {
        Some(key) => item.get(key).map(Value::to_string),
        None => Some(item.to_string()),
    }
}

pub(super) fn places(list: &[Value], key: Option<&str>) -> Places {
    let mut places = Places::new();
    for (place, item) in list.iter().enumerate() {
        if let Some(identity) = identity(item, key) {
            places.entry(identity).or_insert(place);
        }
    }
    places
}

/// Orders `merged`: items in `wanted` as they stand there, the others as they stood in `server`.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    server: &Places,
    key: Option<&str>,
) -> Vec<Value> {
    let wanted = places(wanted, key);
    let place_in = |places: &Places, item: &Value| {
        identity(item, key).and_then(|identity| places.get(&identity).copied())
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| place_in(&wanted, item).is_some());
    named.sort_by_key(|item| place_in(&wanted, item));
    others.sort_by_key(|item| place_in(server, item).unwrap_or(usize::MAX));
    interleave(others, named, |item| place_in(server, item))
}

/// Takes from `others` only while it stood before the next named item on the server.
fn interleave(
    others: Vec<Value>,
    named: Vec<Value>,
    place: impl Fn(&Value) -> Option<usize>,
) -> Vec<Value> {
    let mut out = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    let mut named = named.into_iter().peekable();
    loop {
        let goes_first = match (others.peek(), named.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(name)) => match (place(other), place(name)) {
                (Some(other), Some(name)) => other < name,
                _ => false,
            },
        };
        out.extend(if goes_first {
            others.next()
        } else {
            named.next()
        });
    }
}
