//! The objects themselves: what is held, how events change it, how it is read.

use std::cell::OnceCell;
use std::sync::Arc;

use api::core::Pod;
use api::intent::ObjectKey;
use api::kind::{KINDS, Kind};
use model::Rank;

use crate::index::{Index, Indexes};
use crate::member_patterns::MemberPatterns;
use crate::names::ImageNames;
use crate::object::{Object, Problem, Typed};
use crate::patterns::Patterns;
use crate::shelf::Shelf;
use crate::uids::Uids;

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
    uids: OnceCell<Uids>,
    image_names: ImageNames,
    patterns: Patterns,
    member_patterns: MemberPatterns,
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
            uids: OnceCell::new(),
            image_names: ImageNames::default(),
            patterns: Patterns::default(),
            member_patterns: MemberPatterns::default(),
        }
    }

    // Reads.

    /// The object of that type and name. `namespace` is empty for cluster-scoped kinds.
    pub fn get<T: Typed>(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.find(T::KIND, namespace, name).and_then(Object::typed)
    }

    /// The object of that kind and name.
    pub fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        let names = self.shelves[kind as usize].names(namespace)?;
        Some(&names.find(name)?.object)
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
        let names = self.shelves[T::KIND as usize].names(namespace);
        let held = names.into_iter().flat_map(|names| names.iter());
        held.filter_map(|held| held.object.typed())
    }

    /// All objects of a kind, by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.shelves[kind as usize].iter().map(|held| &held.object)
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
        // Made when it is first asked, as indexes are.
        let uids = self.uids.get_or_init(|| {
            let mut uids = Uids::default();
            self.all().for_each(|object| uids.insert(object));
            uids
        });
        uids.get(uid)
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
        self.entries(Index::Owner, "", uid)
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
        self.entries(index, namespace, term)
            .filter_map(Object::typed)
    }

    /// Keys that an index has under a term, in order.
    pub fn keys<'a>(
        &'a self,
        index: Index,
        namespace: &str,
        term: &str,
    ) -> impl Iterator<Item = ObjectKey> + use<'a> {
        self.entries(index, namespace, term).map(Object::key)
    }

    fn entries<'a>(
        &'a self,
        index: Index,
        namespace: &str,
        term: &str,
    ) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.indexes
            .objects(&mut self.all(), index, namespace, term)
    }

    /// Terms that an index knows in a namespace, in order.
    pub fn terms<'a>(
        &'a self,
        index: Index,
        namespace: &str,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        self.indexes.terms(&mut self.all(), index, namespace)
    }

    /// All objects.
    fn all(&self) -> impl Iterator<Item = &Object> {
        let held = self.shelves.iter().flat_map(Shelf::iter);
        held.map(|held| &held.object)
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
        self.list_read(listing, Object::decode(listing.kind, text))
    }

    /// The same of an object that was read, or could not be.
    pub fn list_read(
        &mut self,
        listing: &Listing,
        read: Result<Object, Problem>,
    ) -> Result<Option<Change>, Problem> {
        match read {
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
        let place = shelf.place(object.namespace(), object.name());
        if let Some(held) = place.ok().and_then(|at| shelf.at(object.namespace(), at)) {
            held.round = listing.round;
            if same_state(&held.object, &object) {
                return None;
            }
        }
        Some(self.put(object, place, listing.round))
    }

    /// Ends a list that was served at `revision`: objects that it did not name have gone.
    pub fn end_list(&mut self, listing: Listing, revision: u64) -> Vec<Change> {
        let shelf = &mut self.shelves[listing.kind as usize];
        shelf.seen = revision;
        shelf.is_listed = true;
        let gone = shelf.iter().filter(|held| held.round != listing.round);
        let gone: Vec<ObjectKey> = gone.map(|held| held.object.key()).collect();
        gone.into_iter().filter_map(|key| self.take(key)).collect()
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
        let place = shelf.place(object.namespace(), object.name());
        if let Some(held) = place.ok().and_then(|at| shelf.at(object.namespace(), at))
            && (same_state(&held.object, &object)
                || is_stale(revision, held.object.meta().revision()))
        {
            return None;
        }
        Some(self.put(object, place, round))
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
        self.take(object.key())
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

    /// Puts an object where it was found, or found missing.
    fn put(&mut self, object: Object, place: Result<Rank, Rank>, round: u32) -> Change {
        let shelf = &mut self.shelves[object.kind() as usize];
        let held = place.ok().and_then(|at| shelf.at(object.namespace(), at));
        let mut object = self.image_names.shared(object, held.map(|it| &it.object));
        shelf.share(&mut object, place);
        if let Object::Pod(pod) = &mut object {
            self.patterns.share(&mut Arc::make_mut(pod).status);
        }
        let before = shelf.put(object.clone(), place, round);
        self.took(before.as_ref(), Some(&object));
        Change {
            key: Arc::new(object.key()),
            before,
            after: Some(object),
        }
    }

    /// The patterns of the members of hyper-nodes.
    pub(crate) fn member_patterns(&self) -> &MemberPatterns {
        &self.member_patterns
    }

    #[cfg(test)]
    pub(crate) fn image_names(&self) -> &ImageNames {
        &self.image_names
    }

    fn take(&mut self, key: ObjectKey) -> Option<Change> {
        let before = self.shelves[key.kind as usize].remove(&key)?;
        self.took(Some(&before), None);
        Some(Change {
            key: Arc::new(key),
            before: Some(before),
            after: None,
        })
    }

    /// What was held under a key, if anything, has become this, if anything: whoever is looked up finds it.
    fn took(&mut self, before: Option<&Object>, after: Option<&Object>) {
        self.indexes.change(before, after);
        if let Some(uids) = self.uids.get_mut() {
            uids.change(before, after);
        }
        let hyper_node = |side: Option<&Object>| match side {
            Some(Object::HyperNode(it)) => Some(Arc::clone(it)),
            _ => None,
        };
        let sides = (hyper_node(before), hyper_node(after));
        match &sides {
            (Some(before), Some(after)) if before.spec.members == after.spec.members => {}
            (_, Some(it)) => self.member_patterns.heed(&it.metadata.name, Some(it)),
            (Some(it), None) => self.member_patterns.heed(&it.metadata.name, None),
            (None, None) => {}
        }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(index: u32, cpu: &str) -> Value {
        let owner = json!({ "apiVersion": "v1", "kind": "Job", "name": "train", "uid": "j", "controller": true });
        let api_access = format!("kube-api-access-{index}");
        json!({
            "metadata": {
                "name": format!("train-w-{index}"), "namespace": "ml", "uid": format!("u{index}"),
                "labels": { "app": "train", "index": index.to_string(), "team": "vision" },
                "annotations": { "about": "training", "group": "train", "index": index.to_string() },
                "ownerReferences": [owner],
            },
            "spec": {
                "nodeName": format!("n{index}"), "hostname": format!("train-w-{index}"),
                "containers": [{ "name": "main", "resources": { "requests": { "cpu": cpu } } }],
                "volumes": [{ "name": api_access, "projected": {} }, { "name": "d", "persistentVolumeClaim": { "claimName": "d" } }],
            },
            "status": {
                "phase": "Running", "podIP": format!("10.0.0.{index}"), "qosClass": "Burstable",
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })
    }

    /// The pods as they are held, each of which is what it would be alone.
    fn listed(texts: &[Value]) -> Vec<Arc<Pod>> {
        let mut mirror = Mirror::new();
        let listing = mirror.begin_list(Kind::Pod);
        for text in texts {
            let text = text.to_string();
            let change = mirror.list_item(&listing, &text).expect("it can be read");
            let alone = Object::decode(Kind::Pod, &text).expect("it can be read");
            let held = change.and_then(|change| change.after);
            assert_eq!(json!(held.expect("it is new")), json!(alone));
        }
        mirror.list::<Pod>().cloned().collect()
    }

    #[test]
    fn pods_of_one_task_hold_what_they_have_alike_once() {
        let pods = listed(&[pod(1, "1"), pod(2, "1"), pod(3, "1")]);
        for pod in &pods[1..] {
            let (first, meta) = (&pods[0], &pod.metadata);
            assert!(meta.labels.shares_with(&first.metadata.labels));
            assert!(meta.annotations.shares_with(&first.metadata.annotations));
            assert!(meta.common.shares_with(&first.metadata.common));
            assert!(pod.spec.common.shares_with(&first.spec.common));
            assert!(pod.status.common.shares_with(&first.status.common));
            assert!(pod.status.conditions.shares_with(&first.status.conditions));
            assert!(pod.spec.hostname.shares_with(&meta.name));
        }
    }

    #[test]
    fn what_is_as_much_but_written_otherwise_is_not_alike() {
        let pods = listed(&[pod(1, "1k"), pod(2, "1e3"), pod(3, "1e3")]);
        assert!(!pods[1].spec.common.shares_with(&pods[0].spec.common));
        assert!(
            pods[1]
                .metadata
                .common
                .shares_with(&pods[0].metadata.common)
        );
        assert!(pods[2].spec.common.shares_with(&pods[1].spec.common));
    }
}
