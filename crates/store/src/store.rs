//! The state machine: requests in, answers out, nothing visible before it is durable.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use api::admission::{Facts, Review, Verdict};
use api::time::Time;

use crate::access::Index;
use crate::asking;
use crate::catalogue;
use crate::crd::Crd;
use crate::documents::Documents;
use crate::draft::Serving;
use crate::entry::Entry;
use crate::fading::Fading;
use crate::hook::Hooks;
use crate::journal::{Change, Record, Torn};
use crate::owners::Memo;
use crate::registry::{Registry, ResourceId};
use crate::request::{Begin, Response, Ticket};
use crate::shelf::{Shelf, Staged};
use crate::status::Refused;
use crate::wire::Wire;

/// The shelf of definitions.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// What a store is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest request body in bytes.
    pub body_bytes_max: usize,
    /// Largest object in bytes of its JSON, as etcd takes them.
    pub object_bytes_max: usize,
    /// What `/version` says: the Kubernetes version whose behaviour this is.
    pub kubernetes_version: String,
    /// What `/api` says: `HOST:PORT` of the server; empty where it has no socket.
    pub address: String,
    /// Whether writes carry their journal record.
    pub records: Records,
    /// What OpenAPI documents say of built-in kinds and fields: a line for each definition, its
    /// name, a tab and a JSON object from field to text. May be empty.
    pub prose: &'static str,
    /// Kubernetes' own groups of pods.
    pub native_groups: NativeGroups,
    /// Whether somebody answers questions to the scheduler: then `ask.katmai.dev` is served.
    pub explains: bool,
}

/// Whether `scheduling.k8s.io` has Workload and PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeGroups {
    /// It has not, as upstream's default is.
    Absent,
    /// It has, in v1beta1 and v1alpha3.
    Served,
}

/// Whether somebody keeps the records of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Yes: each commit carries its encoded record.
    Kept,
    /// No: commits carry an empty one, which spares a copy of each object.
    Unwanted,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            body_bytes_max: 3 << 20,
            object_bytes_max: 3 << 19,
            kubernetes_version: "1.36.3".to_owned(),
            address: String::new(),
            records: Records::Kept,
            prose: "",
            native_groups: NativeGroups::Absent,
            explains: false,
        }
    }
}

/// Where uids, name suffixes and token ids come from.
pub trait Entropy: Send + Sync {
    /// Fills the buffer with unpredictable (in simulation: seeded) bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Decides what a request may become: `review`'s rules, given the objects they ask for.
pub type Admit<'a> = dyn FnMut(&Review<'_>, &dyn Facts) -> Verdict + 'a;

/// A Kubernetes API as a value.
pub struct Store {
    pub(crate) settings: Settings,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) wire: Arc<Wire>,
    /// The specs of the definitions that came with this build, where one starts again.
    pub(crate) specs: Option<Arc<BTreeMap<String, String>>>,
    pub(crate) registry: Registry,
    pub(crate) definitions: BTreeMap<ResourceId, Crd>,
    pub(crate) documents: Documents,
    pub(crate) fading: Fading,
    pub(crate) access: Index,
    pub(crate) hooks: Hooks,
    /// Random bytes that this request drew when it was begun before, to be drawn again.
    pub(crate) redraw: VecDeque<u8>,
    /// Random bytes that this request has drawn.
    pub(crate) drawn: Vec<u8>,
    /// Texts that owners of many objects share.
    pub(crate) memo: Memo,
    shelves: Vec<Shelf>,
    shelf_names: BTreeMap<Box<str>, usize>,
    /// Shelf of each registry row.
    shelf_of: Vec<usize>,
    /// The newest visible revision.
    pub(crate) revision: u64,
    /// The newest given revision.
    pub(crate) begun: u64,
    pub(crate) next_ticket: u64,
    pub(crate) waiting: VecDeque<Waiting>,
    /// Shelves that changed since the shell last asked.
    touched: std::collections::BTreeSet<usize>,
}

/// A begun write.
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) changes: Vec<(ResourceId, Staged)>,
    pub(crate) servings: Vec<Serving>,
    pub(crate) response: Response,
}

impl Store {
    /// An empty store. Feed it [`Store::load`], then [`Store::start`].
    pub fn new(settings: Settings, entropy: Box<dyn Entropy>) -> Store {
        let wire = Arc::new(Wire::with(settings.native_groups));
        Store::of(settings, entropy, wire)
    }

    /// An empty store of the same program, as [`Store::new`] makes one. What was read and compiled
    /// for this one is shared, which spares most of its start.
    pub fn again(&self, settings: Settings, entropy: Box<dyn Entropy>) -> Store {
        if settings.native_groups != self.settings.native_groups {
            return Store::new(settings, entropy);
        }
        let specs = self.specs.clone();
        let specs = specs.unwrap_or_else(|| Arc::new(self.wire.written_specs()));
        Store {
            specs: Some(specs),
            ..Store::of(settings, entropy, self.wire.clone())
        }
    }

    fn of(settings: Settings, entropy: Box<dyn Entropy>, wire: Arc<Wire>) -> Store {
        let mut store = Store {
            settings,
            entropy,
            registry: catalogue::built_in(&wire),
            definitions: BTreeMap::new(),
            documents: Documents::default(),
            fading: Fading::default(),
            access: Index::default(),
            hooks: Hooks::default(),
            redraw: VecDeque::new(),
            drawn: Vec::new(),
            memo: Memo::default(),
            shelves: Vec::new(),
            shelf_names: BTreeMap::new(),
            shelf_of: Vec::new(),
            revision: 0,
            begun: 0,
            next_ticket: 1,
            waiting: VecDeque::new(),
            touched: std::collections::BTreeSet::new(),
            wire: wire.clone(),
            specs: None,
        };
        if store.settings.explains {
            store.registry.put(asking::resource());
        }
        store.add_shelves();
        for crd in wire.crds() {
            store.serve(crd.clone());
        }
        store
    }

    /// Takes one journal record of an earlier life, oldest first.
    pub fn load(&mut self, record: &[u8]) -> Result<(), Torn> {
        let record = Record::decode(record)?;
        for change in record.changes {
            // An object that cannot be read any more must not keep the others from starting;
            // it stays in the journal.
            let _ = self.load_change(record.revision, change);
        }
        self.load_revision(record.revision);
        Ok(())
    }

    /// Takes one change of an earlier life (a journal that keeps objects apart calls this).
    pub fn load_change(&mut self, revision: u64, change: Change) -> Result<(), LoadError> {
        let at = self.shelf_index(&change.resource);
        let row = self.registry.shelved(&change.resource);
        let row = row.map(|(_, row)| row.clone());
        let selectable = row.as_ref().map_or(&[][..], |row| &row.selectable);
        let entry = change
            .state
            .map(|state| Entry::parse(state.revision, state.bytes, selectable, &mut self.memo))
            .transpose()
            .map_err(|cause| LoadError {
                key: format!("{} {}", change.resource, change.key),
                cause,
            })?;
        self.shelves[at].load(&change.key, entry);
        self.load_revision(revision);
        Ok(())
    }

    /// The global revision was at least this.
    pub fn load_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        self.begun = self.revision;
    }

    /// Makes a begun write visible and gives its answer. Tickets come in order.
    pub fn finish(&mut self, ticket: Ticket, now: Time) -> Response {
        match self.waiting.pop_front() {
            Some(waiting) if waiting.ticket == ticket => {
                let since = self.revision;
                for serving in waiting.servings {
                    match serving {
                        Serving::Begin(mut crd) => {
                            crd.since = since;
                            self.serve(*crd);
                        }
                        Serving::End { group, plural } => {
                            self.registry.retire(&group, &plural);
                            self.documents.forget();
                        }
                    }
                }
                let mut has_new_hooks = false;
                for (id, staged) in waiting.changes {
                    has_new_hooks |= crate::hook::is_configuration(self.registry.row(id));
                    let revision = match &staged.after {
                        crate::shelf::After::Here(entry) | crate::shelf::After::Gone(entry) => {
                            entry.revision
                        }
                    };
                    self.touched.insert(self.shelf_of[id.0 as usize]);
                    self.age_event(id, &staged, now);
                    let row = self.registry.row(id).clone();
                    self.index_access(&row, &staged);
                    self.shelf_mut(id).commit(staged, now);
                    self.revision = self.revision.max(revision);
                }
                if has_new_hooks {
                    self.read_hooks();
                }
                waiting.response
            }
            other => {
                // A shell that mixes up tickets has a bug; nothing becomes visible by it.
                self.waiting.extend(other);
                Refused::internal("tickets must be finished in order").response()
            }
        }
    }

    /// The journal could not keep the begun writes: forgets all of them; each is answered 503.
    pub fn abandon(&mut self, why: &str) -> Vec<(Ticket, Response)> {
        for shelf in &mut self.shelves {
            shelf.abandon();
        }
        let waiting = std::mem::take(&mut self.waiting);
        for (id, staged) in waiting.iter().flat_map(|waiting| &waiting.changes) {
            self.age_again(*id, staged);
        }
        waiting
            .into_iter()
            .map(|waiting| (waiting.ticket, Refused::unavailable(why).response()))
            .collect()
    }

    /// Says where the server listens: `HOST:PORT`.
    pub fn set_address(&mut self, address: &str) {
        address.clone_into(&mut self.settings.address);
        self.documents.forget();
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The topics (see [`crate::Watch::topic`]) that changed since the last call.
    pub fn take_touched(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.touched).into_iter().collect()
    }

    /// Fills the buffer with unpredictable bytes: with the same ones where the request was begun
    /// before, so that names and uids stay what webhooks were told.
    pub(crate) fn draw(&mut self, bytes: &mut [u8]) {
        if self.redraw.len() >= bytes.len() {
            let count = bytes.len();
            for (slot, byte) in bytes.iter_mut().zip(self.redraw.drain(..count)) {
                *slot = byte;
            }
        } else {
            self.redraw.clear();
            self.entropy.fill(bytes);
        }
        self.drawn.extend_from_slice(bytes);
    }

    pub(crate) fn topic(&self, id: ResourceId) -> usize {
        self.shelf_of[id.0 as usize]
    }

    /// One record that says of every object in `records` what is visible now: it undoes records
    /// that a failing journal may or may not have kept.
    pub fn restate(&self, records: &[Vec<u8>]) -> Vec<u8> {
        let changes = records
            .iter()
            .filter_map(|record| Record::decode(record).ok())
            .flat_map(|record| record.changes)
            .map(|change| {
                let state = self
                    .shelf_names
                    .get(&change.resource)
                    .and_then(|at| self.shelves[*at].get(&change.key))
                    .map(|entry| crate::journal::State {
                        revision: entry.revision,
                        bytes: entry.shown(),
                    });
                Change { state, ..change }
            })
            .collect();
        let revision = self.begun;
        Record { revision, changes }.encode()
    }

    /// How many objects are visible.
    pub fn object_count(&self) -> usize {
        self.shelves.iter().map(Shelf::len).sum()
    }

    /// The resource of a group and plural name, if it is served.
    pub fn resource(&self, group: &str, plural: &str) -> Option<ResourceId> {
        self.registry.find(group, plural)
    }

    /// The visible objects of a resource, as (key, bytes), in key order.
    pub fn objects(&self, id: ResourceId) -> impl Iterator<Item = (&str, &[u8])> {
        self.shelf(id)
            .range("")
            .map(|(key, entry)| (&**key, &*entry.bytes))
    }

    /// Every visible object as a journal's snapshot records it.
    pub fn snapshot(&self) -> impl Iterator<Item = Record> {
        self.shelf_names.iter().flat_map(|(name, at)| {
            self.shelves[*at].range("").map(|(key, entry)| {
                Record::snapshot(
                    name,
                    key,
                    crate::journal::State {
                        revision: entry.revision,
                        bytes: entry.shown(),
                    },
                )
            })
        })
    }

    /// Serves a definition from now on.
    pub(crate) fn serve(&mut self, crd: Crd) -> ResourceId {
        let id = self.registry.put(catalogue::custom(&crd));
        self.definitions.insert(id, crd);
        self.documents.forget();
        self.add_shelves();
        id
    }

    pub(crate) fn shelf(&self, id: ResourceId) -> &Shelf {
        &self.shelves[self.shelf_of[id.0 as usize]]
    }

    pub(crate) fn shelf_mut(&mut self, id: ResourceId) -> &mut Shelf {
        &mut self.shelves[self.shelf_of[id.0 as usize]]
    }

    /// Gives every row of the registry its shelf.
    fn add_shelves(&mut self) {
        for index in self.shelf_of.len()..self.registry.len() {
            let name = self.registry.row(ResourceId(index as u32)).shelf.clone();
            let at = self.shelf_index(&name);
            self.shelf_of.push(at);
        }
    }

    fn shelf_index(&mut self, name: &str) -> usize {
        if let Some(at) = self.shelf_names.get(name) {
            return *at;
        }
        let mut shelf = Shelf::default();
        shelf.start_at(self.revision);
        self.shelves.push(shelf);
        self.shelf_names.insert(name.into(), self.shelves.len() - 1);
        self.shelves.len() - 1
    }

    /// Forgets that there was a history: watches from before must list again.
    pub(crate) fn end_history(&mut self) {
        for shelf in &mut self.shelves {
            shelf.start_at(self.begun);
        }
    }

    /// The definitions that were loaded, by name.
    pub(crate) fn stored_definitions(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let at = self.shelf_names.get(DEFINITIONS);
        at.into_iter()
            .flat_map(|at| self.shelves[*at].range(""))
            .map(|(key, entry)| (key.rsplit('/').next().unwrap_or(key), &**entry))
    }
}

impl From<Refused> for Begin {
    fn from(refused: Refused) -> Begin {
        Begin::Done(refused.response())
    }
}

/// Why a stored object could not be loaded.
#[derive(Debug)]
pub struct LoadError {
    /// Which object.
    pub key: String,
    /// What is wrong with its bytes.
    pub cause: serde_json::Error,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot load {}: {}", self.key, self.cause)
    }
}

impl std::error::Error for LoadError {}
