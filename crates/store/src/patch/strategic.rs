//! Strategic merge: lists merge by the keys that the built-in schemas name, steered by directives.
//!
//! Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$setElementOrder/<list>`,
//! `$deleteFromPrimitiveList/<list>`. Follows the rules of Kubernetes' strategic merge document;
//! fields that the schema does not know merge as in a JSON merge patch.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::PatchError;
use super::order::{Places, arrange, identity, places};
use crate::field::{go_type, go_value};
use crate::schema::{MergeRule, Place};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
/// Deepest patch that is followed.
const DEPTH_MAX: usize = 110;

/// Applies a strategic merge patch to a built-in object. `place` is the root of its schema.
///
/// # Errors
/// [`PatchError::Malformed`] for a patch that breaks the rules of its directives.
pub fn strategic(object: &mut Value, patch: &Value, place: Place<'_>) -> Result<(), PatchError> {
    let (Value::Object(map), Value::Object(changes)) = (&mut *object, patch) else {
        return Err(PatchError::Malformed("Invalid JSON document".to_owned()));
    };
    let original = std::mem::take(map);
    *map = merge_map(original, changes.clone(), Some(place), 0)?;
    Ok(())
}

type Object = Map<String, Value>;

fn malformed(text: impl Into<String>) -> PatchError {
    PatchError::Malformed(text.into())
}

fn failed(text: impl Into<String>) -> PatchError {
    PatchError::Failed(text.into())
}

fn unknown_type(directive: &Value, of: &Value) -> PatchError {
    let (directive, of) = (go_value(directive), go_value(of));
    failed(format!("unknown patch type: {directive} in map: {of}"))
}

fn no_key(item: &Value, key: &str) -> PatchError {
    let item = go_value(item);
    failed(format!(
        "map: {item} does not contain declared merge key: {key}"
    ))
}

fn merge_map(
    mut original: Object,
    mut patch: Object,
    place: Option<Place<'_>>,
    depth: usize,
) -> Result<Object, PatchError> {
    if depth > DEPTH_MAX {
        return Err(malformed("the patch is nested too deeply"));
    }
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_type(&directive.clone(), &Value::Object(patch))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(&mut original, &mut patch, place, depth)?;
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            delete_from(&mut original, list, &change)?;
            continue;
        }
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let field = place.and_then(|place| place.field(&name));
        let merged = merge_value(original.remove(&name), change, field, depth)?;
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

fn merge_value(
    old: Option<Value>,
    change: Value,
    place: Option<Place<'_>>,
    depth: usize,
) -> Result<Option<Value>, PatchError> {
    let rule = place.and_then(|place| place.merge_rule());
    match (old, change) {
        (Some(Value::Object(old)), Value::Object(change)) => {
            if rule.is_some_and(|rule| rule.replace) {
                return Ok(Some(Value::Object(change)));
            }
            merge_map(old, change, place, depth + 1).map(|map| Some(Value::Object(map)))
        }
        (Some(Value::Array(old)), Value::Array(change)) => {
            merge_field_list(old, change, rule, place, depth).map(|list| Some(Value::Array(list)))
        }
        (_, change) => Ok(fresh(change)),
    }
}

/// What a patch says where there is nothing to merge with: without nulls, and without what
/// carries a directive.
fn fresh(change: Value) -> Option<Value> {
    match change {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(name, value)| {
                let steers = name == RETAIN_KEYS
                    || name.starts_with(SET_ORDER)
                    || name.starts_with(DELETE_FROM);
                !steers && !value.is_null()
            });
            let kept = kept.filter_map(|(name, value)| Some((name, fresh(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(fresh).collect())),
        scalar => Some(scalar),
    }
}

fn merge_field_list(
    old: Vec<Value>,
    change: Vec<Value>,
    rule: Option<&MergeRule>,
    place: Option<Place<'_>>,
    depth: usize,
) -> Result<Vec<Value>, PatchError> {
    match rule {
        Some(rule) if rule.merge => {
            let items = place.and_then(|place| place.items());
            merge_list(old, change, rule.key.as_deref(), items, depth)
        }
        _ => Ok(change),
    }
}

fn merge_list(
    old: Vec<Value>,
    patch: Vec<Value>,
    key: Option<&str>,
    items: Option<Place<'_>>,
    depth: usize,
) -> Result<Vec<Value>, PatchError> {
    if old.iter().chain(&patch).any(Value::is_array) {
        return Err(PatchError::Unprocessable(
            "lists of lists are not supported".to_owned(),
        ));
    }
    let of_maps = old.iter().chain(&patch).any(Value::is_object);
    if of_maps && !old.iter().chain(&patch).all(Value::is_object) {
        let slices = go_value(&json!([old, patch]));
        return Err(failed(format!(
            "list element types are not identical: {slices}"
        )));
    }
    if !of_maps {
        let mut merged = old.clone();
        let mut seen = places(&merged, None);
        for item in &patch {
            if seen.insert(item.to_string(), 0).is_none() {
                merged.push(item.clone());
            }
        }
        return Ok(arrange(merged, &patch, &places(&old, None), None));
    }
    let key = key.ok_or_else(|| failed("cannot merge lists without merge key"))?;
    let server = places(&old, Some(key));
    let (old, patch) = apply_list_directives(old, patch, key)?;
    let mut merged = old;
    let mut where_is: Places = places(&merged, Some(key));
    for item in &patch {
        let Value::Object(change) = item else {
            continue;
        };
        let name = identity(item, Some(key)).ok_or_else(|| no_key(item, key))?;
        match where_is.get(&name) {
            Some(&at) => {
                let Value::Object(old) = merged[at].take() else {
                    continue;
                };
                let new = merge_map(old, change.clone(), items, depth + 1)?;
                merged[at] = Value::Object(new);
            }
            None => {
                where_is.insert(name, merged.len());
                merged.extend(fresh(item.clone()));
            }
        }
    }
    Ok(arrange(merged, &patch, &server, Some(key)))
}

/// Carries out `$patch` elements of a list; returns what is left to merge, and with what.
fn apply_list_directives(
    mut old: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut replaces = false;
    let mut gone = Places::new();
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let name = identity(&item, Some(key)).ok_or_else(|| no_key(&item, key))?;
                gone.insert(name, 0);
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(failed("merging lists cannot yet be specified in the patch"));
            }
            _ => return Err(unknown_type(directive, &item)),
        }
    }
    if replaces {
        return Ok((rest, Vec::new()));
    }
    old.retain(|item| {
        identity(item, Some(key)).is_none_or(|identity| !gone.contains_key(&identity))
    });
    Ok((old, rest))
}

fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let wrong = || malformed("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(wrong)?;
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &str| keys.contains(name);
    let is_covered = patch.iter().all(|(name, change)| {
        change.is_null()
            || name.starts_with(SET_ORDER)
            || name.starts_with(DELETE_FROM)
            || is_kept(name)
    });
    if !is_covered {
        return Err(wrong());
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

/// Merges every list that has a wanted order, and takes it out of the patch.
fn set_orders(
    original: &mut Object,
    patch: &mut Object,
    place: Option<Place<'_>>,
    depth: usize,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let wanted = match patch.remove(&directive) {
            Some(Value::Array(wanted)) => wanted,
            other => return Err(no_list(&other.unwrap_or_default())),
        };
        let name = directive.trim_start_matches(SET_ORDER);
        let field = place.and_then(|place| place.field(name));
        let rule = field.and_then(|field| field.merge_rule());
        let key = rule.and_then(|rule| rule.key.as_deref());
        let old = match original.remove(name) {
            Some(Value::Array(old)) => Some(old),
            Some(other) => return Err(no_list(&other)),
            None => None,
        };
        let change = match patch.remove(name) {
            Some(Value::Array(change)) => Some(change),
            Some(other) => return Err(no_list(&other)),
            None => None,
        };
        check_order(change.as_deref().unwrap_or_default(), &wanted, key)?;
        let server = places(old.as_deref().unwrap_or_default(), key);
        let merged = match (old, change) {
            (None, None) => continue,
            (Some(old), None) => old,
            (old, Some(change)) => {
                merge_field_list(old.unwrap_or_default(), change, rule, field, depth)?
            }
        };
        original.insert(
            name.to_owned(),
            arrange(merged, &wanted, &server, key).into(),
        );
    }
    Ok(())
}

/// The list in the patch must stand in the wanted order.
fn check_order(change: &[Value], wanted: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let wanted_places = places(wanted, key);
    let mut last = None;
    for item in change {
        if item.get(PATCH).is_some() {
            continue;
        }
        let at = identity(item, key).and_then(|identity| wanted_places.get(&identity).copied());
        if at.is_none() || at < last {
            let shown = |list: &[Value]| go_value(&Value::Array(list.to_vec()));
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(change),
                shown(wanted)
            )));
        }
        last = at;
    }
    Ok(())
}

fn delete_from(original: &mut Object, list: &str, values: &Value) -> Result<(), PatchError> {
    // Something else than a list deletes nothing.
    let Some(values) = values.as_array() else {
        return Ok(());
    };
    let gone = places(values, None);
    if let Some(Value::Array(old)) = original.get_mut(list) {
        old.retain(|item| !gone.contains_key(&item.to_string()));
    }
    Ok(())
}

fn no_list(found: &Value) -> PatchError {
    let found = go_type(found);
    failed(format!(
        "expected a []interface {{}}, but received a {found}"
    ))
}
