//! The ways in which objects are found.
//!
//! An index is a row of [`INDEXES`]: a name, the kind that it covers and the terms that an object
//! of that kind stands under.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use api::core::TextMap;
use api::disk::SELECTED_NODE;
use api::kind::Kind;
use api::volcano::{DEFAULT_QUEUE, JOB_NAME, group_of_pod};
use model::{Rank, Ranked};

use crate::head::head;
use crate::object::Object;
use crate::rows::namespaces::by_labels;

/// Names one index. The order is [`INDEXES`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Index {
    /// Objects of any kind whose deletion waits for what becomes of their dependants, by uid (no namespace).
    Cascade,
    /// ResourceClaims by each class that their requests name (no namespace).
    ClaimClass,
    /// ResourceClaims by each device that they have for themselves, `driver/pool/name` (no namespace).
    ClaimDevice,
    /// PersistentVolumeClaims that name no volume yet by the node that was chosen for them (no
    /// namespace).
    ClaimNode,
    /// PersistentVolumeClaims by the volume that they name (no namespace).
    ClaimVolume,
    /// DeviceClasses by the resources by which pods can ask for their devices (no namespace).
    ClassResource,
    /// Commands by the name of their target: for jobs those of one namespace, for queues all (no
    /// namespace).
    CommandTarget,
    /// EndpointSlices by the Service that they belong to.
    EndpointSliceService,
    /// Pods, ReplicaSets and ControllerRevisions that nobody manages, by their kind's name.
    Orphan,
    /// Objects of any kind by the uid of each owner (no namespace).
    Owner,
    /// Pods by each claim that they mount.
    PodClaim,
    /// Pods by each ResourceClaim that they name, or that their status says was made for them.
    PodDeviceClaim,
    /// Pods by the PodGroup that their annotation names.
    PodGroup,
    /// PodGroups by their queue (no namespace).
    PodGroupQueue,
    /// Pods with terms that choose namespaces by labels: all of them under [`BY_LABELS`] (no namespace).
    PodNamespaces,
    /// Pods by the group of Kubernetes' own that they name.
    PodNativeGroup,
    /// Pods by the node that they are bound to (no namespace).
    PodNode,
    /// Queues by their parent (no namespace).
    QueueParent,
    /// Services by one label that their pods have: see [`label_term`].
    ServiceLabel,
    /// ResourceSlices by their node, or by `*` if they are not for one node (no namespace).
    SliceNode,
    /// ResourceSlices by `driver/pool` (no namespace).
    SlicePool,
    /// VCJobs by each existing claim that they name.
    VcJobClaim,
    /// VCJobs by the JobTemplate that they were made from.
    VcJobTemplate,
    /// PersistentVolumes by `namespace/name` of the claim that they are kept for (no namespace).
    VolumeClaim,
    /// PersistentVolumes and claims by their storage class (no namespace).
    VolumeClass,
}

/// The term of slices that are not for one node.
pub const ANY_NODE: &str = "*";

/// The term of pods with terms that choose namespaces by labels.
pub const BY_LABELS: &str = "labels";

/// One index.
#[derive(Debug)]
pub struct IndexRow {
    /// Its name.
    pub index: Index,
    terms: TermsOf,
}

/// Tells the terms of an object.
type TermsOf = for<'a> fn(&'a Object, &mut Terms<'a>);

/// The list, in the order of [`Index`].
pub const INDEXES: &[IndexRow] = &[
    row(Index::Cascade, cascade),
    row(Index::ClaimClass, claim_class),
    row(Index::ClaimDevice, claim_device),
    row(Index::ClaimNode, claim_node),
    row(Index::ClaimVolume, claim_volume),
    row(Index::ClassResource, class_resource),
    row(Index::CommandTarget, command_target),
    row(Index::EndpointSliceService, endpoint_slice_service),
    row(Index::Orphan, orphan),
    row(Index::Owner, owner),
    row(Index::PodClaim, pod_claim),
    row(Index::PodDeviceClaim, pod_device_claim),
    row(Index::PodGroup, pod_group),
    row(Index::PodGroupQueue, pod_group_queue),
    row(Index::PodNamespaces, pod_namespaces),
    row(Index::PodNativeGroup, pod_native_group),
    row(Index::PodNode, pod_node),
    row(Index::QueueParent, queue_parent),
    row(Index::ServiceLabel, service_label),
    row(Index::SliceNode, slice_node),
    row(Index::SlicePool, slice_pool),
    row(Index::VcJobClaim, vcjob_claim),
    row(Index::VcJobTemplate, vcjob_template),
    row(Index::VolumeClaim, volume_claim),
    row(Index::VolumeClass, volume_class),
];

const fn row(index: Index, terms: TermsOf) -> IndexRow {
    IndexRow { index, terms }
}

/// Collects the terms of one object: namespace and term.
#[derive(Debug, Default, PartialEq)]
struct Terms<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl<'a> Terms<'a> {
    /// Takes the terms of an object, if there is one, in place of what was there.
    fn read(&mut self, row: &IndexRow, object: Option<&'a Object>) {
        self.0.clear();
        if let Some(object) = object {
            (row.terms)(object, self);
        }
    }

    fn add(&mut self, namespace: &'a str, term: impl Into<Cow<'a, str>>) {
        let term = term.into();
        if !term.is_empty() {
            self.0.push((namespace, term));
        }
    }
}

/// Postings by namespace, in the order of their terms.
type Entries = BTreeMap<Box<str>, Ranked<Postings>>;

/// The objects under a term, in the order of their keys.
#[derive(Debug)]
struct Postings {
    /// The first bytes of the term: they tell most terms apart without a look at the texts, which lie elsewhere.
    head: u64,
    term: Box<str>,
    objects: Ranked<Object>,
}

impl Postings {
    /// Where the postings of a term are, or would be.
    fn place(of: &Ranked<Postings>, term: &str) -> Result<Rank, Rank> {
        let head = head(term.as_bytes());
        of.place(|it| it.head.cmp(&head).then_with(|| (*it.term).cmp(term)))
    }

    fn find<'a>(of: &'a Ranked<Postings>, term: &str) -> Option<&'a Postings> {
        of.get(Postings::place(of, term).ok()?)
    }
}

/// Everything that is held.
type All<'i, 'a> = &'i mut dyn Iterator<Item = &'a Object>;

/// Each index is made when it is first asked, and kept up from then on: a scheduler asks few of those that
/// controllers do, and each takes memory for every object that is in it.
#[derive(Debug)]
pub(crate) struct Indexes {
    entries: Vec<OnceCell<Entries>>,
}

impl Indexes {
    pub(crate) fn new() -> Indexes {
        Indexes {
            entries: INDEXES.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// What was held under a key, if anything, has become this, if anything. Mostly an object stays under the
    /// terms that it had, and is only looked up there.
    pub(crate) fn change(&mut self, before: Option<&Object>, after: Option<&Object>) {
        let (mut old, mut new) = (Terms::default(), Terms::default());
        for (row, entries) in INDEXES.iter().zip(&mut self.entries) {
            let Some(entries) = entries.get_mut() else {
                continue;
            };
            old.read(row, before);
            new.read(row, after);
            if old != new
                && let Some(before) = before
            {
                for (namespace, term) in &old.0 {
                    remove_term(entries, namespace, term, before);
                }
            }
            if let Some(after) = after {
                for (namespace, term) in &new.0 {
                    put_term(entries, namespace, term, after);
                }
            }
        }
    }

    /// The objects under a term; `all` is everything that is held.
    pub(crate) fn objects<'a>(
        &'a self,
        all: All<'_, 'a>,
        index: Index,
        namespace: &str,
        term: &str,
    ) -> impl Iterator<Item = &'a Object> + use<'a> {
        let terms = self.entries(all, index).get(namespace);
        let found = terms.and_then(|terms| Postings::find(terms, term));
        found.into_iter().flat_map(|it| it.objects.iter())
    }

    /// The terms of a namespace; `all` is everything that is held.
    pub(crate) fn terms<'a>(
        &'a self,
        all: All<'_, 'a>,
        index: Index,
        namespace: &str,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let terms = self.entries(all, index).get(namespace);
        let postings = terms.into_iter().flat_map(Ranked::iter);
        postings.map(|it| &*it.term)
    }

    fn entries<'a>(&'a self, all: All<'_, 'a>, index: Index) -> &'a Entries {
        self.entries[index as usize].get_or_init(|| {
            let (mut entries, mut terms) = (Entries::new(), Terms::default());
            for object in all {
                terms.read(&INDEXES[index as usize], Some(object));
                for (namespace, term) in &terms.0 {
                    put_term(&mut entries, namespace, term, object);
                }
            }
            entries
        })
    }
}

/// The object stands under the term from now on, in place of what its key had there.
fn put_term(entries: &mut Entries, namespace: &str, term: &str, object: &Object) {
    let terms = match entries.get_mut(namespace) {
        Some(terms) => terms,
        None => entries.entry(namespace.into()).or_default(),
    };
    let place = match Postings::place(terms, term) {
        Ok(place) => place,
        Err(place) => {
            let mut objects = Ranked::default();
            if let Err(first) = objects.place(|held: &Object| held.order(object)) {
                objects.insert(first, object.clone());
            }
            let (head, term) = (head(term.as_bytes()), term.into());
            return terms.insert(
                place,
                Postings {
                    head,
                    term,
                    objects,
                },
            );
        }
    };
    let Some(Postings { objects, .. }) = terms.get_mut(place) else {
        return;
    };
    match objects.place(|held| held.order(object)) {
        Ok(place) => {
            if let Some(held) = objects.get_mut(place) {
                held.clone_from(object);
            }
        }
        Err(place) => objects.insert(place, object.clone()),
    }
}

fn remove_term(entries: &mut Entries, namespace: &str, term: &str, object: &Object) {
    let Some(terms) = entries.get_mut(namespace) else {
        return;
    };
    if let Ok(at) = Postings::place(terms, term)
        && let Some(Postings { objects, .. }) = terms.get_mut(at)
    {
        if let Ok(place) = objects.place(|held| held.order(object)) {
            objects.remove(place);
        }
        if objects.is_empty() {
            terms.remove(at);
        }
    }
    if terms.is_empty() {
        entries.remove(namespace);
    }
}

fn cascade<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if object.meta().cascade().is_some() {
        terms.add("", object.uid());
    }
}

fn command_target<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Command(command) = object
        && let Some(addressee) = command.addressee()
    {
        let is_job = addressee.kind == Kind::VcJob;
        let namespace = if is_job { object.namespace() } else { "" };
        terms.add(namespace, String::from(addressee.name));
    }
}

fn endpoint_slice_service<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::EndpointSlice(slice) = object
        && let Some(service) = slice.metadata.labels.get("kubernetes.io/service-name")
    {
        terms.add(&slice.metadata.namespace, &**service);
    }
}

fn service_label<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Service(service) = object
        && let Some(label) = telling_label(&service.spec.selector)
    {
        terms.add(&service.metadata.namespace, label);
    }
}

/// The label of a selector by which a Service is found, `key=value`, which should tell it from as many
/// others as can be: the name of a job, of which there may be thousands in a namespace, else the one with
/// the longest value; of equals the last by key. `None` where nothing is selected.
fn telling_label(selector: &TextMap) -> Option<String> {
    let labels = selector.iter();
    let (key, value) = labels.max_by_key(|(key, value)| (***key == *JOB_NAME, value.len()))?;
    Some(label_term(key, value))
}

/// The term of a label in [`Index::ServiceLabel`].
pub fn label_term(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

fn orphan<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    let is_adoptable = matches!(
        object,
        Object::Pod(_) | Object::ReplicaSet(_) | Object::ControllerRevision(_)
    );
    if is_adoptable && object.meta().controller().is_none() {
        terms.add(object.namespace(), object.kind().row().name);
    }
}

fn owner<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    for owner in &object.meta().owner_references {
        terms.add("", &*owner.uid);
    }
}

fn claim_class<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::ResourceClaim(claim) = object {
        for request in &claim.spec.devices.requests {
            for way in request.exactly.iter().chain(&request.first_available) {
                terms.add("", &*way.device_class_name);
            }
        }
    }
}

fn claim_device<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::ResourceClaim(claim) = object {
        for device in claim.allocated().iter().filter(|it| !it.is_admin()) {
            terms.add("", device.id());
        }
    }
}

fn claim_node<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::PersistentVolumeClaim(claim) = object
        && claim.spec.volume_name.is_empty()
        && let Some(node) = claim.metadata.annotations.get(SELECTED_NODE)
    {
        terms.add("", &**node);
    }
}

fn claim_volume<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::PersistentVolumeClaim(claim) = object {
        terms.add("", &*claim.spec.volume_name);
    }
}

fn pod_claim<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object {
        for claim in api::core::claims_named(&pod.metadata.name, &pod.spec.volumes) {
            terms.add(&pod.metadata.namespace, claim);
        }
    }
}

fn class_resource<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::DeviceClass(class) = object {
        for resource in class.resources() {
            terms.add("", String::from(resource));
        }
    }
}

fn pod_device_claim<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object {
        let named = pod.spec.resource_claims.iter();
        let named = named.filter_map(|claim| claim.resource_claim_name.as_deref());
        let made = pod.status.resource_claim_statuses.iter();
        let made = made.filter_map(|claim| claim.resource_claim_name.as_deref());
        let extended = pod.status.extended_resource_claim_status.iter();
        let extended = extended.map(|claim| &*claim.resource_claim_name);
        for claim in named.chain(made).chain(extended) {
            terms.add(&pod.metadata.namespace, claim);
        }
    }
}

fn pod_group<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object
        && let Some(group) = group_of_pod(&pod.metadata)
    {
        terms.add(&pod.metadata.namespace, group);
    }
}

fn pod_namespaces<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object
        && by_labels(pod).next().is_some()
    {
        terms.add("", BY_LABELS);
    }
}

fn pod_native_group<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object
        && let Some(group) = pod.native_group()
    {
        terms.add(&pod.metadata.namespace, group);
    }
}

fn pod_node<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Pod(pod) = object {
        terms.add("", &*pod.spec.node_name);
    }
}

fn pod_group_queue<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::PodGroup(group) = object {
        terms.add("", queue_or_default(&group.spec.queue));
    }
}

fn queue_parent<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::Queue(queue) = object
        && let Some(parent) = queue.parent()
    {
        terms.add("", parent);
    }
}

fn slice_node<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::ResourceSlice(slice) = object {
        terms.add("", slice.spec.node_name.as_deref().unwrap_or(ANY_NODE));
    }
}

fn slice_pool<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::ResourceSlice(slice) = object {
        let spec = &slice.spec;
        terms.add("", format!("{}/{}", spec.driver, spec.pool.name));
    }
}

fn vcjob_claim<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::VcJob(job) = object {
        for volume in &job.spec.volumes {
            terms.add(&job.metadata.namespace, &*volume.volume_claim_name);
        }
    }
}

fn vcjob_template<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::VcJob(job) = object
        && let Some(template) = job.template()
    {
        terms.add(&job.metadata.namespace, template);
    }
}

fn volume_claim<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    if let Object::PersistentVolume(volume) = object
        && let Some(claim) = &volume.spec.claim_ref
    {
        terms.add("", format!("{}/{}", claim.namespace, claim.name));
    }
}

fn volume_class<'a>(object: &'a Object, terms: &mut Terms<'a>) {
    match object {
        Object::PersistentVolume(volume) => terms.add("", &*volume.spec.storage_class_name),
        Object::PersistentVolumeClaim(claim) => {
            terms.add("", claim.spec.storage_class_name.as_deref().unwrap_or(""));
        }
        _ => {}
    }
}

fn queue_or_default(queue: &str) -> &str {
    if queue.is_empty() {
        DEFAULT_QUEUE
    } else {
        queue
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{INDEXES, Index};
    use crate::Mirror;
    use api::kind::Kind;

    #[test]
    fn terms_that_begin_alike_are_told_apart() {
        let uids = [
            "0000002a-5a1c-4d2e-9f00-000000000001",
            "0000002a-5a1c-4d2e-9f00-000000000002",
            "0000002a",
        ];
        let mut mirror = Mirror::new();
        for (at, uid) in uids.iter().enumerate() {
            let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid });
            let object = json!({ "metadata": { "name": format!("o{at}"), "uid": format!("u{at}"), "ownerReferences": [owner] } });
            let changed = mirror.apply(Kind::ConfigMap, &object.to_string());
            assert!(changed.is_ok_and(|change| change.is_some()));
            let found = |uid: &str| {
                mirror
                    .dependants_of(uid)
                    .map(|it| it.name().to_owned())
                    .collect::<Vec<_>>()
            };
            for (other, uid) in uids.iter().enumerate() {
                let wanted = (other <= at).then(|| format!("o{other}"));
                assert_eq!(found(uid), wanted.into_iter().collect::<Vec<_>>());
            }
        }
        let mut sorted = uids;
        sorted.sort_unstable();
        assert!(mirror.terms(Index::Owner, "").eq(sorted));
    }

    #[test]
    fn rows_stand_in_the_order_of_the_indexes() {
        for (at, row) in INDEXES.iter().enumerate() {
            assert_eq!(row.index as usize, at);
        }
        let names: Vec<String> = INDEXES
            .iter()
            .map(|row| format!("{:?}", row.index))
            .collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
