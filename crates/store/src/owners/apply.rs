//! Server-side apply: a configuration laid over an object, and what its author thereby owns.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::change::{COMMON, Differences, reconciled};
use super::{Change, Held, Untold, Versions, Who};
use crate::fields::{Element, FieldSet};
use crate::status::Refused;
use crate::typed;

/// Where kubectl keeps what it applied before servers could.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether others' fields may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Off,
    On,
}

/// A field that somebody else has set otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    who: Who,
    path: Vec<Element<'static>>,
}

/// Why a configuration was not applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// Others own fields that it sets otherwise.
    Conflicts(Vec<Conflict>),
    /// An owner knows the object in a version in which it cannot be had.
    Untold(Untold),
}

impl From<Untold> for ApplyError {
    fn from(why: Untold) -> ApplyError {
        ApplyError::Untold(why)
    }
}

/// What an apply comes to.
#[derive(Debug)]
pub(crate) struct Applied<'a> {
    /// The object, where it changed.
    pub(crate) object: Option<Value>,
    pub(crate) held: Vec<Held<'a>>,
}

/// Lays `config` over `live`.
///
/// Fields that the author applied before and now leaves out go, unless others own them too.
///
/// # Errors
/// [`ApplyError::Conflicts`] where others own what would change, unless the author insists;
/// [`ApplyError::Untold`] where owners know the object in a version in which it cannot be had.
pub(crate) fn apply<'a>(
    held: Vec<Held<'a>>,
    live: &'a Value,
    config: &'a Value,
    change: &Change<'_>,
    force: Force,
) -> Result<Applied<'a>, ApplyError> {
    let versions = change.versions;
    let version = &change.who.api_version;
    let Some(spot) = versions.spot(version) else {
        return Ok(Applied { object: None, held });
    };
    let mut held = reconciled(held, live, change)?;
    let merged = typed::merge(live, config, spot);
    let at = held
        .iter()
        .position(|one| one.who.is_same_owner(&change.who));
    let last = at.map(|at| held.remove(at));
    let set = versions
        .resets(version)
        .filter(typed::fields_of(config, spot));
    let mine = Held {
        who: change.who.clone(),
        seconds: last.as_ref().and_then(|last| last.seconds),
        fields: set,
    };
    let object = match &last {
        Some(last) => prune(merged, &held, &mine, last, versions)
            .map_err(|why| why.on("failed to prune fields"))?,
        None => merged,
    };
    take(&mut held, live, &object, change, force)?;
    let is_changed = *live != object;
    let fields = mine.fields.difference(&FieldSet::of_names(COMMON));
    if !fields.is_empty() {
        held.push(Held {
            seconds: if is_changed {
                Some(change.seconds)
            } else {
                mine.seconds
            },
            fields,
            ..mine
        });
    }
    Ok(Applied {
        object: is_changed.then_some(object),
        held,
    })
}

/// Takes what changed from the others, or tells whose it is.
fn take(
    held: &mut Vec<Held<'_>>,
    live: &Value,
    object: &Value,
    change: &Change<'_>,
    force: Force,
) -> Result<(), ApplyError> {
    let mut differences = Differences::new(live, object, &change.who.api_version, change.versions);
    let mut conflicts = Vec::new();
    for one in held.iter_mut() {
        let Some(seen) = differences.within(&one.who.api_version)? else {
            one.fields = FieldSet::default();
            continue;
        };
        if seen.is_same() {
            continue;
        }
        let taken = one.fields.intersection(&seen.written());
        if force == Force::Off {
            conflicts.extend(taken.paths().into_iter().map(|path| Conflict {
                who: one.who.clone(),
                path: own_path(path),
            }));
        }
        if !taken.is_empty() || one.fields.meets(&seen.removed) {
            one.fields = one.fields.difference(&taken).difference(&seen.removed);
        }
    }
    if !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    held.retain(|one| !one.fields.is_empty());
    Ok(())
}

fn own_path(path: Vec<Element<'_>>) -> Vec<Element<'static>> {
    path.into_iter().map(Element::into_owned).collect()
}

/// Takes out what the author applied last, does not apply now, and nobody else owns.
fn prune(
    merged: Value,
    others: &[Held<'_>],
    mine: &Held<'_>,
    last: &Held<'_>,
    versions: &dyn Versions,
) -> Result<Value, Untold> {
    let version = &last.who.api_version;
    let own = &mine.who.api_version;
    let is_alone = others.iter().all(|one| one.who.api_version == *own);
    if version == own && is_alone && last.fields.difference(&mine.fields).is_empty() {
        return Ok(merged);
    }
    let occasion = "failed to convert merged object to last applied version";
    let converted = in_version(&merged, version, versions).map_err(|why| why.on(occasion))?;
    let (Some(spot), Some(converted)) = (versions.spot(version), converted) else {
        return Ok(merged);
    };
    let named_last = typed::with_named(&last.fields, spot);
    let pruned = typed::remove(&converted, &named_last, spot);
    let pruned = with_owned(&converted, pruned, version, (others, mine), versions)
        .map_err(|why| why.on("failed add back owned items"))?;
    // What the author did not own stays, even inside of what goes.
    let occasion =
        "failed add back dangling items: failed to convert pruned object to last applied version";
    let pruned = in_version(&pruned, version, versions).map_err(|why| why.on(occasion))?;
    let result = match pruned {
        Some(pruned) => {
            let left = typed::with_named(&typed::fields_of(&pruned, spot), spot);
            let all = typed::with_named(&typed::fields_of(&converted, spot), spot);
            let gone = all.difference(&left).intersection(&named_last);
            typed::remove(&converted, &gone, spot)
        }
        None => converted,
    };
    Ok(in_version(&result, own, versions)?.unwrap_or(merged))
}

/// What is left, with what others own, and what the author applies now, put back.
fn with_owned(
    merged: &Value,
    mut pruned: Value,
    version: &str,
    (others, mine): (&[Held<'_>], &Held<'_>),
    versions: &dyn Versions,
) -> Result<Value, Untold> {
    let mut owned: BTreeMap<&str, FieldSet<'_>> = BTreeMap::new();
    for one in others.iter().chain([mine]) {
        let set = owned.entry(&one.who.api_version).or_default();
        *set = set.union(&one.fields);
    }
    // The version of the last apply first: what another version needs may stand there.
    let first = owned.remove_entry(version);
    let mut merged = merged.clone();
    for (version, set) in first.into_iter().chain(owned) {
        let failed = |what: &str| format!("failed to convert {what} object at version {version}");
        let whole =
            in_version(&merged, version, versions).map_err(|why| why.on(&failed("merged")))?;
        let (Some(spot), Some(whole)) = (versions.spot(version), whole) else {
            continue;
        };
        let left =
            in_version(&pruned, version, versions).map_err(|why| why.on(&failed("pruned")))?;
        let Some(left) = left else { continue };
        let all = typed::with_named(&typed::fields_of(&whole, spot), spot);
        let kept = typed::with_named(&typed::fields_of(&left, spot), spot)
            .into_owned()
            .union(&typed::with_named(&set, spot).into_owned());
        pruned = typed::remove(&whole, &all.difference(&kept), spot);
        merged = whole;
    }
    Ok(pruned)
}

fn in_version(
    object: &Value,
    wanted: &str,
    versions: &dyn Versions,
) -> Result<Option<Value>, Untold> {
    if object["apiVersion"] == *wanted {
        return Ok(Some(object.clone()));
    }
    versions.convert(object, wanted)
}

/// The fields that kubectl set before it applied on the server, as far as they still are so.
pub(crate) fn last_applied(
    live: &Value,
    api_version: &str,
    versions: &dyn Versions,
) -> Option<FieldSet<'static>> {
    let text = live["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let applied = crate::json::read(text.as_bytes()).ok()?.value;
    let spot = versions.spot(api_version)?;
    if applied["apiVersion"] != *api_version || typed::check(&applied, spot).is_err() {
        return None;
    }
    let seen = typed::compare(&applied, live, spot);
    let differs = seen.written().union(&seen.removed);
    let still = typed::fields_of(&applied, spot).difference(&differs);
    Some(still.into_owned())
}

/// The conflicts that are not about these fields.
pub(crate) fn beyond(conflicts: Vec<Conflict>, allowed: &FieldSet<'_>) -> Vec<Conflict> {
    let is_left = |conflict: &Conflict| !allowed.contains(&conflict.path);
    conflicts.into_iter().filter(is_left).collect()
}

/// Keeps kubectl's own record of what it applied up to date, where there is one.
pub(crate) fn renew_last_applied(object: &mut Value, config: &Value) {
    let record = &object["metadata"]["annotations"][LAST_APPLIED];
    if record.as_str().is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(meta) = config["metadata"].as_object_mut()
        && let Some(Value::Object(notes)) = meta.get_mut("annotations")
    {
        notes.remove(LAST_APPLIED);
        if notes.is_empty() {
            meta.remove("annotations");
        }
    }
    object["metadata"]["annotations"][LAST_APPLIED] = json!(format!("{config}\n"));
}

/// 409, with a cause for each field.
pub(crate) fn refusal(mut conflicts: Vec<Conflict>) -> Refused {
    let shown =
        |conflict: &Conflict| -> String { conflict.path.iter().map(Element::to_string).collect() };
    // Upstream's order of owners is that of their identities as JSON.
    conflicts.sort_by_key(|conflict| {
        let who = &conflict.who;
        let manager = crate::field::go_quoted(&who.manager);
        (
            manager,
            who.operation,
            who.api_version.clone(),
            who.subresource.clone(),
        )
    });
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|conflict| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {}", conflict.who.described()),
                "field": shown(conflict),
            })
        })
        .collect();
    let message = match &conflicts[..] {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.who.described(),
            shown(one)
        ),
        several => {
            let mut lines: Vec<String> = Vec::new();
            let mut last: Option<&Who> = None;
            for conflict in several {
                if last != Some(&conflict.who) {
                    lines.push(format!("conflicts with {}:", conflict.who.described()));
                    last = Some(&conflict.who);
                }
                lines.push(format!("- {}", shown(conflict)));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                several.len(),
                lines.join("\n")
            )
        }
    };
    Refused::apply_conflict(message, Value::Array(causes))
}
