//! What becomes of ownership when an object is written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Held, Operation, Resets, Who};
use crate::fields::FieldSet;
use crate::schema::Spot;
use crate::status::Refused;
use crate::typed::{self, Comparison};

/// Most owners that only update; older ones are put together.
const UPDATERS_MAX: usize = 10;
/// The name under which they are put together.
const ANCIENT: &str = "ancient-changes";

/// Fields that are everybody's.
pub(super) const COMMON: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "clusterName"],
    &["metadata", "creationTimestamp"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "resourceVersion"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
];

/// Why it cannot be told who owns what.
#[derive(Debug)]
pub(crate) enum Untold {
    /// A webhook must convert an object first.
    Asks(Refused),
    /// An object cannot be had in a version that an owner knows.
    Failed(String),
}

impl Untold {
    /// A failure says on what occasion it came.
    pub(super) fn on(self, occasion: &str) -> Untold {
        match self {
            Untold::Failed(why) => Untold::Failed(format!("{occasion}: {why}")),
            asks @ Untold::Asks(_) => asks,
        }
    }
}

/// The versions of a kind: owners may know an object in another one than a request does.
pub(crate) trait Versions {
    /// The kind's type in a version; `None` where that is not served.
    fn spot(&self, api_version: &str) -> Option<Spot<'_>>;
    /// An object in a version; `None` where nobody keeps one for that version any more.
    ///
    /// # Errors
    /// [`Untold`] where it must be converted first, or cannot be.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, Untold>;
    /// What the request cannot write, as a version names it.
    fn resets(&self, api_version: &str) -> Resets;
}

/// One write: by whom, when.
pub(crate) struct Change<'a> {
    pub(crate) who: Who,
    pub(crate) seconds: i64,
    pub(crate) versions: &'a dyn Versions,
}

/// What two states of an object differ in, in each version that an owner knows.
pub(super) struct Differences<'a, 'v> {
    old: &'a Value,
    new: &'a Value,
    api_version: &'v str,
    versions: &'v dyn Versions,
    /// `None` stands for a version that is not served any more.
    known: BTreeMap<String, Option<Comparison<'a>>>,
}

impl<'a, 'v> Differences<'a, 'v> {
    pub(super) fn new(
        old: &'a Value,
        new: &'a Value,
        api_version: &'v str,
        versions: &'v dyn Versions,
    ) -> Differences<'a, 'v> {
        Differences {
            old,
            new,
            api_version,
            versions,
            known: BTreeMap::new(),
        }
    }

    /// The differences in the version of the request.
    pub(super) fn own(&mut self) -> Result<Option<&Comparison<'a>>, Untold> {
        self.within(self.api_version)
    }

    /// The differences in a version; `None` where that is not served any more.
    pub(super) fn within(&mut self, api_version: &str) -> Result<Option<&Comparison<'a>>, Untold> {
        if !self.known.contains_key(api_version) {
            let found = self.find(api_version)?;
            self.known.insert(api_version.to_owned(), found);
        }
        Ok(self.known.get(api_version).and_then(Option::as_ref))
    }

    fn find(&self, api_version: &str) -> Result<Option<Comparison<'a>>, Untold> {
        let versions = self.versions;
        let found = if api_version == self.api_version {
            let Some(spot) = versions.spot(api_version) else {
                return Ok(None);
            };
            typed::compare(self.old, self.new, spot)
        } else {
            let convert = |object, occasion| {
                let converted = versions.convert(object, api_version);
                converted.map_err(|why| why.on(occasion))
            };
            let Some(old) = convert(self.old, "failed to convert old object")? else {
                return Ok(None);
            };
            let Some(new) = convert(self.new, "failed to convert new object")? else {
                return Ok(None);
            };
            let Some(spot) = versions.spot(api_version) else {
                return Ok(None);
            };
            let found = typed::compare(&old, &new, spot);
            Comparison {
                added: found.added.into_owned(),
                modified: found.modified.into_owned(),
                removed: found.removed.into_owned(),
            }
        };
        let resets = versions.resets(api_version);
        Ok(Some(Comparison {
            added: resets.filter(found.added),
            modified: resets.filter(found.modified),
            removed: resets.filter(found.removed),
        }))
    }
}

/// Ownership after a write that is not an apply: what it changed is now the writer's.
///
/// # Errors
/// [`Untold`] where an owner knows the object in a version in which it cannot be had.
pub(crate) fn update<'a>(
    held: Vec<Held<'a>>,
    old: &'a Value,
    new: &'a Value,
    change: &Change<'_>,
) -> Result<Vec<Held<'a>>, Untold> {
    let api_version = &change.who.api_version;
    let mut differences = Differences::new(old, new, api_version, change.versions);
    let mut held = reconciled(held, old, change)?;
    for one in &mut held {
        if let Some(seen) = differences.within(&one.who.api_version)? {
            if seen.is_same() {
                continue;
            }
            let lost = seen.written().union(&seen.removed);
            if one.fields.meets(&lost) {
                one.fields = one.fields.difference(&lost);
            }
        } else {
            one.fields = FieldSet::default();
        }
    }
    held.retain(|one| !one.fields.is_empty());
    let written = match differences.own()? {
        Some(seen) if !seen.is_same() => seen.written(),
        _ => return Ok(cap(held)),
    };
    let won = written.difference(&FieldSet::of_names(COMMON));
    if !won.is_empty() {
        match held
            .iter_mut()
            .find(|one| one.who.is_same_owner(&change.who))
        {
            Some(mine) => {
                mine.fields = mine.fields.union(&won);
                mine.seconds = Some(change.seconds);
            }
            None => held.push(Held {
                who: change.who.clone(),
                seconds: Some(change.seconds),
                fields: won,
            }),
        }
    }
    Ok(cap(held))
}

/// Sets written before a part became one leaf are brought up to date; owners who know a version
/// that is not there any more are forgotten.
pub(super) fn reconciled<'a>(
    held: Vec<Held<'a>>,
    live: &Value,
    change: &Change<'_>,
) -> Result<Vec<Held<'a>>, Untold> {
    let versions = change.versions;
    let mut out = Vec::with_capacity(held.len());
    for mut one in held {
        let api_version = &one.who.api_version;
        // Upstream finds here first whether the object can be had in each owner's version.
        if *api_version != change.who.api_version && versions.convert(live, api_version)?.is_none()
        {
            continue;
        }
        if let Some(spot) = versions.spot(api_version)
            && let Some(fields) = typed::with_leaves(&one.fields, spot)
        {
            one.fields = fields;
        }
        out.push(one);
    }
    Ok(out)
}

/// Puts the oldest updaters of each version together where there are too many.
fn cap(mut held: Vec<Held<'_>>) -> Vec<Held<'_>> {
    let updaters = |held: &[Held<'_>]| {
        held.iter()
            .filter(|one| one.who.operation == Operation::Update)
            .count()
    };
    let mut count = updaters(&held);
    if count <= UPDATERS_MAX {
        return held;
    }
    let mut oldest: Vec<Who> = held
        .iter()
        .filter(|one| one.who.operation == Operation::Update)
        .map(|one| one.who.clone())
        .collect();
    let age = |who: &Who| {
        let found = held.iter().find(|one| one.who == *who);
        (
            found.and_then(|one| one.seconds).unwrap_or(0),
            who.manager.clone(),
            who.api_version.clone(),
            who.subresource.clone(),
        )
    };
    oldest.sort_by_key(age);
    let mut firsts: BTreeMap<String, Who> = BTreeMap::new();
    for who in oldest {
        if count <= UPDATERS_MAX {
            break;
        }
        let bucket = Who {
            operation: Operation::Update,
            manager: ANCIENT.to_owned(),
            api_version: who.api_version.clone(),
            subresource: String::new(),
        };
        let Some(first) = firsts.get(&who.api_version) else {
            firsts.insert(who.api_version.clone(), who);
            continue;
        };
        if !held.iter().any(|one| one.who == bucket)
            && let Some(first) = held.iter_mut().find(|one| one.who == *first)
        {
            first.who = bucket.clone();
        }
        let Some(at) = held.iter().position(|one| one.who == who) else {
            continue;
        };
        if who == bucket {
            continue;
        }
        let merged = held.remove(at);
        if let Some(into) = held.iter_mut().find(|one| one.who == bucket) {
            into.fields = into.fields.union(&merged.fields);
            into.seconds = merged.seconds;
        }
        count -= 1;
    }
    held
}
