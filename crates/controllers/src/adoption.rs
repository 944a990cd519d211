//! Who belongs to an owner: what it manages and still selects, and what nobody manages and it
//! selects. The latter is adopted, what it no longer selects is let go.

use std::sync::Arc;

use api::intent::{Intent, ObjectKey, Part};
use api::kind::Kind;
use api::meta::{ObjectMeta, OwnerReference};
use api::selector::LabelSelector;
use mirror::{Change, Index, Mirror, Typed};
use serde_json::{Value, json};

use crate::write;

/// An owner and what it selects.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) kind: Kind,
    pub(crate) meta: &'a ObjectMeta,
    pub(crate) selector: &'a LabelSelector,
}

/// What an owner has.
pub(crate) struct Claimed<T> {
    /// Its own, by name.
    pub(crate) own: Vec<Arc<T>>,
    /// Writes that adopt or let go. Nothing else is to be decided before they are seen.
    pub(crate) intents: Vec<Intent>,
}

/// Sorts out the objects of a type in the owner's namespace. Only what is wanted is adopted or let
/// go.
pub(crate) fn claim<T: Typed>(
    mirror: &Mirror,
    owner: Owner<'_>,
    finalizer: Option<&str>,
    is_wanted: impl Fn(&T) -> bool,
) -> Claimed<T> {
    let meta = owner.meta;
    let mut claimed = Claimed {
        own: Vec::new(),
        intents: Vec::new(),
    };
    let is_leaving = meta.deletion_timestamp.is_some();
    for object in mirror.owned_by::<T>(&meta.uid) {
        let child = object.meta();
        if !child.is_controlled_by(&meta.uid) {
            continue;
        }
        if owner.selector.matches(&child.labels) {
            claimed.own.push(Arc::clone(object));
        } else if !is_leaving && is_wanted(object) {
            claimed
                .intents
                .push(release::<T>(child, &meta.uid, finalizer));
        }
    }
    // An empty selector would take everything; the API server lets nobody ask for that.
    if is_leaving || owner.selector.is_empty() {
        return claimed;
    }
    let orphans = mirror.indexed::<T>(Index::Orphan, &meta.namespace, T::KIND.row().name);
    for object in orphans {
        let child = object.meta();
        let is_here = child.deletion_timestamp.is_none() && is_wanted(object);
        if is_here && owner.selector.matches(&child.labels) {
            claimed.intents.push(adopt::<T>(child, owner, finalizer));
        }
    }
    claimed
}

fn adopt<T: Typed>(child: &ObjectMeta, owner: Owner<'_>, finalizer: Option<&str>) -> Intent {
    let mut owners: Vec<Value> = child.owner_references.iter().map(|it| json!(it)).collect();
    owners.push(write::controller_ref(owner.kind, owner.meta));
    let mut metadata = json!({ "ownerReferences": owners });
    if let Some(name) = finalizer {
        let mut finalizers: Vec<&str> = child.finalizers.iter().map(|it| &**it).collect();
        if !finalizers.contains(&name) {
            finalizers.push(name);
        }
        metadata["finalizers"] = json!(finalizers);
    }
    let patch = json!({ "metadata": metadata });
    write::patch(T::KIND, child, Part::Whole, patch)
}

fn release<T: Typed>(child: &ObjectMeta, uid: &str, finalizer: Option<&str>) -> Intent {
    let kept: Vec<&OwnerReference> = child
        .owner_references
        .iter()
        .filter(|it| &*it.uid != uid)
        .collect();
    let kept = (!kept.is_empty()).then_some(kept);
    let mut metadata = json!({ "ownerReferences": kept });
    if let Some(name) = finalizer {
        let finalizers: Vec<&str> = child.finalizers.iter().map(|it| &**it).collect();
        let left: Vec<&str> = finalizers.into_iter().filter(|it| *it != name).collect();
        metadata["finalizers"] = json!((!left.is_empty()).then_some(left));
    }
    let patch = json!({ "metadata": metadata });
    write::patch(T::KIND, child, Part::Whole, patch)
}

/// The owners of a type that would adopt a changed object that nobody manages.
pub(crate) fn keys_of_adopters<T: Typed>(
    mirror: &Mirror,
    change: &Change,
    selector: fn(&T) -> Option<&LabelSelector>,
    keys: &mut Vec<ObjectKey>,
) {
    let Some(after) = &change.after else {
        return;
    };
    if after.meta().controller().is_some() {
        return;
    }
    let facts = |meta: &ObjectMeta| (meta.labels.clone(), meta.controller().is_some());
    let before = change.before.as_ref().map(|before| facts(before.meta()));
    if before == Some(facts(after.meta())) {
        return;
    }
    for owner in mirror.list_in::<T>(after.namespace()) {
        let is_match =
            selector(owner).is_some_and(|it| !it.is_empty() && it.matches(&after.meta().labels));
        if is_match {
            let meta = owner.meta();
            keys.push(ObjectKey::new(T::KIND, &meta.namespace, &meta.name));
        }
    }
}
