//! Ownership: what belongs to nobody any more is deleted; foreground and orphan deletions end.
//!
//! An owner is absent only if its kind is listed and everything up to the dependant's own version
//! has been seen: kinds are watched apart, so a child may be seen before its owner.

use api::intent::{Action, Intent, ObjectKey, Part, Propagation};
use api::kind::{KINDS, Kind};
use api::meta::{FOREGROUND_DELETION, ORPHAN_DEPENDANTS, ObjectMeta, OwnerReference};
use mirror::{Change, Index, Mirror, Object};
use serde_json::json;

use crate::presence::Presence;
use crate::{Controller, Inputs, Outcome, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "ownership_gc",
    component: "garbage-collector-controller",
    tells_refused: &[],
    watches: &WATCHED,
    keys,
    step,
};

/// Every kind of [`KINDS`] but one: Events are many and own nothing. Of Secrets only the metadata
/// is kept.
pub(crate) const WATCHED: [Kind; KINDS.len() - 1] = {
    let mut kinds = [Kind::Pod; KINDS.len() - 1];
    let (mut index, mut count) = (0, 0);
    while index < KINDS.len() {
        let kind = KINDS[index].kind;
        if !matches!(kind, Kind::Event) {
            kinds[count] = kind;
            count += 1;
        }
        index += 1;
    }
    kinds
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let gone = change.after.is_none() || change.is_recreation();
    if let Some(before) = change.before.as_ref().filter(|_| gone) {
        keys.extend(mirror.dependants_of(before.uid()).map(Object::key));
    }
    let owners = |side: &Option<Object>| match side {
        Some(object) => object.meta().owner_references.clone(),
        None => Default::default(),
    };
    let (before, after) = (owners(&change.before), owners(&change.after));
    let are_new = !before.shares_with(&after) && *before != *after;
    if let Some(object) = &change.after {
        let meta = object.meta();
        // Mostly all are there, and nothing is to be decided before one of them goes.
        let is_owned = || after.iter().all(|it| is_seen(mirror, meta, it));
        if meta.cascade().is_some() || are_new && !is_owned() {
            keys.push((*change.key).clone());
        }
    }
    // An owner that waits for its dependants counts them again when one changes or goes.
    let left = before.iter().filter(|_| are_new);
    for owner in left.chain(after.iter()) {
        keys.extend(mirror.keys(Index::Cascade, "", &owner.uid));
    }
}

/// Whether an owner is there, as far as that is quickly told.
fn is_seen(mirror: &Mirror, meta: &ObjectMeta, owner: &OwnerReference) -> bool {
    mirror.by_uid(&owner.uid).is_some_and(|object| {
        let row = object.kind().row();
        let group = owner.api_version.rsplit_once('/');
        let namespace = match row.namespaced {
            true => &*meta.namespace,
            false => "",
        };
        object.name() == &*owner.name
            && object.namespace() == namespace
            && *row.name == *owner.kind
            && row.group == group.map_or("", |(group, _)| group)
    })
}

fn step(inputs: &Inputs<'_>) -> Step {
    let Some(object) = inputs.mirror.object(inputs.key) else {
        return Step::idle();
    };
    match object.meta().cascade() {
        Some(ORPHAN_DEPENDANTS) => release(inputs, object),
        Some(_) => foreground(inputs, object),
        None if object.meta().deletion_timestamp.is_some() => Step::idle(),
        None => collect(inputs, object),
    }
}

/// Takes the owner off its dependants, then lets it go.
fn release(inputs: &Inputs<'_>, owner: &Object) -> Step {
    let intents: Vec<Intent> = inputs
        .mirror
        .dependants_of(owner.uid())
        .take(inputs.settings.writes_per_step_max)
        .map(|dependant| without_owners(dependant, |reference| &*reference.uid == owner.uid()))
        .collect();
    if intents.is_empty() {
        return Step::write(vec![without_finalizer(owner, ORPHAN_DEPENDANTS)]);
    }
    Step::write(intents)
}

/// Deletes the dependants, and lets the owner go once none is left that it must wait for.
///
/// Dependants that have dependants of their own are deleted in the foreground, too. Of objects that
/// own each other in a circle, one is always seen to wait already, and nobody waits for that one.
fn foreground(inputs: &Inputs<'_>, owner: &Object) -> Step {
    let mut intents = Vec::new();
    let mut waits_for = Vec::new();
    for dependant in inputs.mirror.dependants_of(owner.uid()) {
        let meta = dependant.meta();
        let is_blocking = meta.owner_references.iter().any(|reference| {
            &*reference.uid == owner.uid() && reference.block_owner_deletion == Some(true)
        });
        let is_leaving = meta.deletion_timestamp.is_some();
        // Both wait for the other: the one that is seen first need not.
        let waits_for_us = is_leaving && meta.cascade().is_some();
        if is_blocking && !waits_for_us {
            waits_for.push(dependant.key());
        }
        if !is_leaving && intents.len() < inputs.settings.writes_per_step_max {
            let propagation = match has_dependants(inputs.mirror, dependant) {
                true => Propagation::Foreground,
                false => Propagation::Background,
            };
            intents.push(write::delete_with(
                dependant.kind(),
                meta,
                None,
                propagation,
            ));
        }
    }
    if waits_for.is_empty() && intents.is_empty() {
        return Step::write(vec![without_finalizer(owner, FOREGROUND_DELETION)]);
    }
    Step {
        outcome: Outcome::Blocked {
            reason: "WaitsForDependants".into(),
            waits_for,
        },
        ..Step::write(intents)
    }
}

fn has_dependants(mirror: &Mirror, object: &Object) -> bool {
    mirror.dependants_of(object.uid()).next().is_some()
}

/// Deletes an object whose owners have all gone; forgets those of several that have.
fn collect(inputs: &Inputs<'_>, object: &Object) -> Step {
    let meta = object.meta();
    if meta.owner_references.is_empty() {
        return Step::idle();
    }
    let owners = meta.owner_references.iter();
    let named = owners.filter_map(|owner| Some((key_of(meta, owner)?, &*owner.uid)));
    if let Some(first) = inputs.before_presence(named, meta.revision()) {
        return first;
    }
    // A kind that nobody here watches: its controller looks after its children.
    let is_gone = |owner: &OwnerReference| {
        key_of(meta, owner)
            .is_some_and(|key| inputs.presence(&key, &owner.uid, meta.revision()) == Presence::Gone)
    };
    let gone = meta.owner_references.iter().filter(|owner| is_gone(owner));
    let gone = gone.count();
    if gone == 0 {
        return Step::idle();
    }
    if gone < meta.owner_references.len() {
        return Step::write(vec![without_owners(object, is_gone)]);
    }
    Step::write(vec![Intent {
        target: object.key(),
        action: Action::Delete {
            uid: meta.uid.clone(),
            // Its owners may change meanwhile.
            resource_version: Some(meta.resource_version.clone()),
            grace_seconds: None,
            propagation: Propagation::Background,
        },
    }])
}

/// Where an owner is, if its kind is watched.
fn key_of(meta: &ObjectMeta, owner: &OwnerReference) -> Option<ObjectKey> {
    let kind = Kind::find(&owner.api_version, &owner.kind)?;
    let namespace = match kind.row().namespaced {
        true => &*meta.namespace,
        false => "",
    };
    let key = || ObjectKey::new(kind, namespace, &owner.name);
    WATCHED.contains(&kind).then(key)
}

fn without_owners(object: &Object, is_dropped: impl Fn(&OwnerReference) -> bool) -> Intent {
    let meta = object.meta();
    let kept: Vec<&OwnerReference> = meta
        .owner_references
        .iter()
        .filter(|owner| !is_dropped(owner))
        .collect();
    // An empty list is not written down: a real server has none in its objects.
    let kept = (!kept.is_empty()).then_some(kept);
    let patch = json!({ "metadata": { "ownerReferences": kept } });
    write::patch(object.kind(), meta, Part::Whole, patch)
}

fn without_finalizer(object: &Object, name: &str) -> Intent {
    write::without_finalizer(object.kind(), object.meta(), name)
}
