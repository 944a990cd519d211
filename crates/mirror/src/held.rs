//! The objects themselves: what is held, how events change it, how it is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::Pod;
use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};

use crate::index::{Index, Indexes};
use crate::names::ImageNames;
use crate::object::{Object, Problem, Typed};

/// What one event did to one object. A recreation under the same name has both sides, with
/// different uids.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object's key.
    pub key: Arc<ObjectKey>,
    /// What was held before; `None` if it is new.
    pub before: Option<Object>,
    /// What is held now; `None` if it has gone.
    pub after: Option<Object>,
}

impl Change {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        self.key.kind
    }

    /// The newest state known: what is there now or, of an object that has gone, its last one.
    pub fn latest(&self) -> &Object {
        self.after
            .as_ref()
            .or(self.before.as_ref())
            .expect("a change has at least one side")
    }

    /// Both sides that exist, the older first.
    pub fn sides(&self) -> impl Iterator<Item = &Object> {
        self.before.iter().chain(self.after.iter())
    }

    /// True when another object has taken the name since.
    pub fn is_recreation(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.uid() != after.uid(),
            _ => false,
        }
    }

    /// The typed state before.
    pub fn before<T: Typed>(&self) -> Option<&Arc<T>> {
        self.before.as_ref().and_then(Object::typed)
    }

    /// The typed state now.
    pub fn after<T: Typed>(&self) -> Option<&Arc<T>> {
        self.after.as_ref().and_then(Object::typed)
    }
}

/// A list in progress: objects that it does not name have gone when it ends.
#[derive(Debug)]
#[must_use = "a list that is never ended removes nothing"]
pub struct Listing {
    kind: Kind,
    round: u32,
}

impl Listing {
    /// The kind that is being listed.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// The live copy of the world. See the crate's page.
#[derive(Debug)]
pub struct Mirror {
    shelves: Vec<Shelf>,
    indexes: Indexes,
    keys_by_uid: BTreeMap<Box<str>, Arc<ObjectKey>>,
    image_names: ImageNames,
}

#[derive(Debug, Default)]
struct Shelf {
    objects: BTreeMap<Box<str>, BTreeMap<Box<str>, Held>>,
    count: usize,
    /// Everything up to this revision has been seen.
    seen: u64,
    is_listed: bool,
    round: u32,
}

#[derive(Debug)]
struct Held {
    key: Arc<ObjectKey>,
    object: Object,
    round: u32,
}

impl Default for Mirror {
    fn default() -> Mirror {
        Mirror::new()
    }
}

impl Mirror {
    /// An empty mirror: nothing is listed.
    pub fn new() -> Mirror {
        Mirror {
            shelves: KINDS.iter().map(|_| Shelf::default()).collect(),
            indexes: Indexes::new(),
            keys_by_uid: BTreeMap::new(),
            image_names: ImageNames::default(),
        }
    }

    // Reads.

    /// The object of that type and name. `namespace` is empty for cluster-scoped kinds.
    pub fn get<T: Typed>(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.find(T::KIND, namespace, name).and_then(Object::typed)
    }

    /// The object of that kind and name.
    pub fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        let held = self.shelves[kind as usize]
            .objects
            .get(namespace)?
            .get(name)?;
        Some(&held.object)
    }

    /// The object with that key.
    pub fn object(&self, key: &ObjectKey) -> Option<&Object> {
        self.find(key.kind, &key.namespace, &key.name)
    }

    /// All objects of a type, by namespace and name.
    pub fn list<T: Typed>(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects(T::KIND).filter_map(Object::typed)
    }

    /// All objects of a type in one namespace, by name.
    pub fn list_in<'a, T: Typed>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, T> {
        self.shelves[T::KIND as usize]
            .objects
            .get(namespace)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|held| held.object.typed())
    }

    /// All objects of a kind, by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.shelves[kind as usize]
            .objects
            .values()
            .flat_map(BTreeMap::values)
            .map(|held| &held.object)
    }

    /// All objects of a kind as if they came just now.
    pub fn stock(&self, kind: Kind) -> impl Iterator<Item = Change> {
        self.objects(kind).map(|object| Change {
            key: Arc::new(object.key()),
            before: None,
            after: Some(object.clone()),
        })
    }

    /// How many objects of a kind are held.
    pub fn count(&self, kind: Kind) -> usize {
        self.shelves[kind as usize].count
    }

    /// The object with that uid, whatever its kind.
    pub fn by_uid(&self, uid: &str) -> Option<&Object> {
        self.object(self.keys_by_uid.get(uid)?)
    }

    /// Objects of a type that name `uid` among their owners, by namespace and name.
    pub fn owned_by<'a, T: Typed>(
        &'a self,
        uid: &str,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, T> {
        self.indexed(Index::Owner, "", uid)
    }

    /// Objects of every watched kind that name `uid` among their owners.
    pub fn dependants_of<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.keys(Index::Owner, "", uid)
            .filter_map(|key| self.object(key))
    }

    /// Pods bound to a node.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        self.indexed(Index::PodNode, "", node)
    }

    /// Pods that name a PodGroup of their namespace.
    pub fn pods_of_group<'a>(
        &'a self,
        namespace: &str,
        group: &str,
    ) -> impl Iterator<Item = &'a Arc<Pod>> + use<'a> {
        self.indexed(Index::PodGroup, namespace, group)
    }

    /// Objects of a type that an index has under a term.
    pub fn indexed<'a, T: Typed>(
        &'a self,
        index: Index,
        namespace: &str,
        term: &str,
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, T> {
        self.keys(index, namespace, term)
            .filter(|key| key.kind == T::KIND)
            .filter_map(|key| self.object(key).and_then(Object::typed))
    }

    /// Keys that an index has under a term, in order.
    pub fn keys<'a>(
        &'a self,
        index: Index,
        namespace: &str,
        term: &str,
    ) -> impl Iterator<Item = &'a Arc<ObjectKey>> + use<'a> {
        self.indexes.keys(index, namespace, term)
    }

    /// Terms that an index knows in a namespace, in order.
    pub fn terms<'a>(
        &'a self,
        index: Index,
        namespace: &str,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        self.indexes.terms(index, namespace)
    }

    /// Everything of a kind up to this revision has been seen.
    pub fn seen(&self, kind: Kind) -> u64 {
        self.shelves[kind as usize].seen
    }

    /// Whether a kind was listed to the end at least once.
    pub fn is_listed(&self, kind: Kind) -> bool {
        self.shelves[kind as usize].is_listed
    }

    // Events.

    /// Starts a list of a kind. What was held stays until the list ends.
    pub fn begin_list(&mut self, kind: Kind) -> Listing {
        let shelf = &mut self.shelves[kind as usize];
        shelf.round = shelf.round.wrapping_add(1);
        Listing {
            kind,
            round: shelf.round,
        }
    }

    /// Takes one object of a list. An object that cannot be read keeps the copy that is held.
    pub fn list_item(&mut self, listing: &Listing, text: &str) -> Result<Option<Change>, Problem> {
        match Object::decode(listing.kind, text) {
            Ok(object) => Ok(self.list_object(listing, object)),
            Err(problem) => {
                let shelf = &mut self.shelves[listing.kind as usize];
                if let Some(held) = shelf.held_mut(&problem.namespace, &problem.name) {
                    held.round = listing.round;
                }
                Err(problem)
            }
        }
    }

    /// Takes one object of a list, already read.
    pub fn list_object(&mut self, listing: &Listing, object: Object) -> Option<Change> {
        let shelf = &mut self.shelves[listing.kind as usize];
        if let Some(held) = shelf.held_mut(object.namespace(), object.name()) {
            held.round = listing.round;
            if same_state(&held.object, &object) {
                return None;
            }
        }
        Some(self.put(object, listing.round))
    }

    /// Ends a list that was served at `revision`: objects that it did not name have gone.
    pub fn end_list(&mut self, listing: Listing, revision: u64) -> Vec<Change> {
        let shelf = &mut self.shelves[listing.kind as usize];
        shelf.seen = revision;
        shelf.is_listed = true;
        let gone: Vec<Arc<ObjectKey>> = shelf
            .objects
            .values()
            .flat_map(BTreeMap::values)
            .filter(|held| held.round != listing.round)
            .map(|held| Arc::clone(&held.key))
            .collect();
        gone.iter().filter_map(|key| self.take(key)).collect()
    }

    /// Takes an "added" or "modified" event. `None` where it says nothing new.
    pub fn apply(&mut self, kind: Kind, text: &str) -> Result<Option<Change>, Problem> {
        Ok(self.apply_object(Object::decode(kind, text)?))
    }

    /// Takes an "added" or "modified" event, already read.
    pub fn apply_object(&mut self, object: Object) -> Option<Change> {
        let revision = object.meta().revision();
        let shelf = &mut self.shelves[object.kind() as usize];
        if is_stale(revision, shelf.seen) {
            return None;
        }
        shelf.seen = shelf.seen.max(revision);
        let round = shelf.round;
        if let Some(held) = shelf.held_mut(object.namespace(), object.name())
            && (same_state(&held.object, &object)
                || is_stale(revision, held.object.meta().revision()))
        {
            return None;
        }
        Some(self.put(object, round))
    }

    /// Takes a "deleted" event, which carries the object's last state.
    pub fn delete(&mut self, kind: Kind, text: &str) -> Result<Option<Change>, Problem> {
        Ok(self.delete_object(&Object::decode(kind, text)?))
    }

    /// Takes a "deleted" event, already read.
    pub fn delete_object(&mut self, object: &Object) -> Option<Change> {
        let revision = object.meta().revision();
        let shelf = &mut self.shelves[object.kind() as usize];
        if is_stale(revision, shelf.seen) {
            return None;
        }
        shelf.seen = shelf.seen.max(revision);
        let held = shelf.held_mut(object.namespace(), object.name())?;
        if held.object.uid() != object.uid() {
            return None;
        }
        let key = Arc::clone(&held.key);
        self.take(&key)
    }

    /// Whether a line of a watch tells of a time before what was seen of its kind. No server says such
    /// a thing; where it is said all the same, what was to come in between may have been passed over.
    pub fn is_behind(&self, object: &Object) -> bool {
        let seen = self.shelves[object.kind() as usize].seen;
        is_stale(object.meta().revision(), seen)
    }

    /// Takes a bookmark: everything of that kind up to `revision` has been sent.
    pub fn bookmark(&mut self, kind: Kind, revision: u64) {
        let shelf = &mut self.shelves[kind as usize];
        shelf.seen = shelf.seen.max(revision);
    }

    fn put(&mut self, object: Object, round: u32) -> Change {
        let shelf = &mut self.shelves[object.kind() as usize];
        let held = shelf.held_mut(object.namespace(), object.name());
        let object = self.image_names.shared(object, held.map(|it| &it.object));
        let before = shelf
            .held_mut(object.namespace(), object.name())
            .map(|held| {
                held.round = round;
                (
                    Arc::clone(&held.key),
                    std::mem::replace(&mut held.object, object.clone()),
                )
            });
        let (key, before) = match before {
            Some((key, before)) => (key, Some(before)),
            None => (shelf.insert(object.clone(), round), None),
        };
        if let Some(before) = &before {
            self.forget(&key, before);
        }
        self.indexes.insert(&key, &object);
        if !object.uid().is_empty() {
            self.keys_by_uid
                .insert(object.uid().into(), Arc::clone(&key));
        }
        Change {
            key,
            before,
            after: Some(object),
        }
    }

    #[cfg(test)]
    pub(crate) fn image_names(&self) -> &ImageNames {
        &self.image_names
    }

    fn take(&mut self, key: &Arc<ObjectKey>) -> Option<Change> {
        let before = self.shelves[key.kind as usize].remove(key)?;
        self.forget(key, &before);
        Some(Change {
            key: Arc::clone(key),
            before: Some(before),
            after: None,
        })
    }

    fn forget(&mut self, key: &Arc<ObjectKey>, object: &Object) {
        self.indexes.remove(key, object);
        if self.keys_by_uid.get(object.uid()) == Some(key) {
            self.keys_by_uid.remove(object.uid());
        }
    }
}

impl Shelf {
    fn held_mut(&mut self, namespace: &str, name: &str) -> Option<&mut Held> {
        self.objects.get_mut(namespace)?.get_mut(name)
    }

    fn insert(&mut self, object: Object, round: u32) -> Arc<ObjectKey> {
        let key = Arc::new(object.key());
        self.objects
            .entry(key.namespace.clone())
            .or_default()
            .insert(
                key.name.clone(),
                Held {
                    key: Arc::clone(&key),
                    object,
                    round,
                },
            );
        self.count += 1;
        key
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        let names = self.objects.get_mut(&key.namespace)?;
        let held = names.remove(&key.name)?;
        if names.is_empty() {
            self.objects.remove(&key.namespace);
        }
        self.count -= 1;
        Some(held.object)
    }
}

/// Whether an event of `revision` comes from before what was seen. Servers whose versions are not
/// numbers give 0, and then nothing counts as stale.
fn is_stale(revision: u64, seen: u64) -> bool {
    revision != 0 && revision < seen
}

fn same_state(held: &Object, other: &Object) -> bool {
    let (held, other) = (held.meta(), other.meta());
    held.uid == other.uid
        && held.resource_version == other.resource_version
        && !held.resource_version.is_empty()
}
