//! What a write is going to change, before any of it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::time::Time;
use serde_json::{Value, json};

use crate::crd::Crd;
use crate::entry::Entry;
use crate::journal::{Change, Record, State};
use crate::owners::Owners;
use crate::path::Effect;
use crate::registry::{Resource, ResourceId, Source};
use crate::request::{Begin, Commit, Response, Ticket};
use crate::shelf::{After, Staged};
use crate::status::Refused;
use crate::store::{Records, Store, Waiting};
use crate::view::Shape;
use crate::write::Writing;

/// The changes of one write.
#[derive(Debug)]
pub(crate) struct Draft {
    effect: Effect,
    /// When the write was asked for.
    pub(crate) at: Option<Time>,
    changes: Vec<(ResourceId, Staged)>,
    /// What the answer shows: the object as it will be.
    shown: Option<Arc<Entry>>,
    /// Where the stored form is not what the answer shows.
    form: Option<Value>,
    /// Texts for `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// For the audit log.
    pub(crate) notes: BTreeMap<String, String>,
    /// Who owns the fields of the object as it would be and as it is, for webhooks.
    pub(crate) owners: (Owners, Owners),
    /// A definition that was compiled on the way.
    pub(crate) definition: Option<Box<Crd>>,
    /// What becomes served or ceases to be once the write is visible.
    pub(crate) servings: Vec<Serving>,
}

/// A change of the registry.
#[derive(Debug)]
pub(crate) enum Serving {
    /// A definition begins to be served.
    Begin(Box<Crd>),
    /// It ends.
    End { group: String, plural: String },
}

impl Draft {
    pub(crate) fn new(writing: &Writing<'_>) -> Draft {
        Draft {
            at: Some(writing.now),
            ..Draft::with(writing.options.effect)
        }
    }

    pub(crate) fn with(effect: Effect) -> Draft {
        Draft {
            effect,
            at: None,
            changes: Vec::new(),
            shown: None,
            form: None,
            warnings: Vec::new(),
            notes: BTreeMap::new(),
            owners: (Owners::default(), Owners::default()),
            definition: None,
            servings: Vec::new(),
        }
    }

    /// The object will be so; whoever owned its fields owns them on.
    pub(crate) fn put(&mut self, store: &mut Store, id: ResourceId, key: &str, mut object: Value) {
        let owners = self.owners_now(store, id, key);
        self.put_owned(store, id, key, &mut object, owners);
    }

    /// The object will be so, with these owners of its fields. It is given its revision.
    pub(crate) fn put_owned(
        &mut self,
        store: &mut Store,
        id: ResourceId,
        key: &str,
        object: &mut Value,
        owners: Owners,
    ) {
        let entry = self.entry(store, id, object, owners);
        self.change(id, key, After::Here(entry));
    }

    /// The object will be so: the server itself wrote this part of it.
    pub(crate) fn put_by_server(
        &mut self,
        store: &mut Store,
        id: ResourceId,
        key: &str,
        (before, mut object): (&Value, Value),
        subresource: &str,
        now: Time,
    ) {
        let row = store.registry.row(id).clone();
        let owners = self.owners_now(store, id, key);
        let owners = store.own_as_server(&row, subresource, (before, &owners), &object, now);
        self.put_owned(store, id, key, &mut object, owners);
    }

    /// Who owns the fields of an object by now.
    fn owners_now(&self, store: &Store, id: ResourceId, key: &str) -> Owners {
        let mut changes = self.changes.iter().rev();
        let changed = changes.find(|(changed, staged)| *changed == id && &*staged.key == key);
        match changed.map(|(_, staged)| &staged.after) {
            Some(After::Here(entry) | After::Gone(entry)) => entry.owners.clone(),
            None => {
                let latest = store.shelf(id).latest(key);
                latest.map(|entry| entry.owners.clone()).unwrap_or_default()
            }
        }
    }

    /// The object will be gone; `object` is its last state.
    pub(crate) fn remove(
        &mut self,
        store: &mut Store,
        id: ResourceId,
        key: &str,
        mut object: Value,
    ) {
        let owners = self.owners_now(store, id, key);
        let entry = self.entry(store, id, &mut object, owners);
        self.change(id, key, After::Gone(entry));
    }

    /// The object will be gone because nothing holds it any more. The change that let it go is in
    /// the answer alone, under the version that it was based on: watches hear of the object as it
    /// was stored last.
    pub(crate) fn release(
        &mut self,
        store: &mut Store,
        id: ResourceId,
        key: &str,
        old: &Entry,
        (object, owners): (&Value, Owners),
    ) {
        self.remove(store, id, key, old.value());
        let selectable = &store.registry.row(id).selectable;
        let shown = Entry::of(old.revision, object, selectable, owners);
        self.shown = Some(Arc::new(shown));
    }

    /// Nothing will change; the answer shows what is there.
    pub(crate) fn unchanged(&mut self, entry: Arc<Entry>) {
        self.shown = Some(entry);
    }

    /// The answer shows this form of what was put last: not the stored one, but the request's.
    pub(crate) fn show(&mut self, writing: &Writing<'_>, mut object: Value) {
        if writing.row.source == Source::BuiltIn
            || *writing.row.storage_version == *writing.target.version
        {
            return;
        }
        if let Some(entry) = &self.shown
            && self.effect == Effect::Real
        {
            object["metadata"]["resourceVersion"] = json!(entry.revision.to_string());
        }
        self.form = Some(object);
    }

    /// The answer shows this entry, whatever was put since.
    pub(crate) fn show_entry(&mut self, entry: Option<Arc<Entry>>) {
        self.shown = entry;
    }

    /// Which objects will be gone, by resource.
    pub(crate) fn removed(&self) -> BTreeMap<ResourceId, BTreeSet<Arc<str>>> {
        let mut removed: BTreeMap<_, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (id, staged) in &self.changes {
            if matches!(staged.after, After::Gone(_)) {
                removed.entry(*id).or_default().insert(staged.key.clone());
            }
        }
        removed
    }

    /// Whether an object is among the changes.
    pub(crate) fn touches(&self, id: ResourceId, key: &str) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|(changed, staged)| *changed == id && &*staged.key == key)
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    pub(crate) fn shown(&self) -> Option<&Arc<Entry>> {
        self.shown.as_ref()
    }

    fn entry(
        &self,
        store: &mut Store,
        id: ResourceId,
        object: &mut Value,
        owners: Owners,
    ) -> Arc<Entry> {
        let mut revision = store.begun;
        if self.effect == Effect::Real {
            store.begun += 1;
            revision = store.begun;
            object["metadata"]["resourceVersion"] = json!(revision.to_string());
        }
        Arc::new(Entry::of(
            revision,
            object,
            &store.registry.row(id).selectable,
            owners,
        ))
    }

    fn change(&mut self, id: ResourceId, key: &str, after: After) {
        let (After::Here(entry) | After::Gone(entry)) = &after;
        self.shown = Some(entry.clone());
        if self.effect == Effect::Real {
            let key = key.into();
            self.changes.push((id, Staged { key, after }));
        }
    }
}

impl Store {
    /// Commits a draft and answers with the one object that it shows.
    pub(crate) fn commit_object(
        &mut self,
        writing: &Writing<'_>,
        draft: Draft,
        code: u16,
    ) -> Begin {
        let response = match draft.shown() {
            Some(entry) if draft.form.is_some() && writing.view.shape == Shape::Whole => {
                let mut form = json!(draft.form);
                entry.name_owners(&mut form);
                Response::json(code, &form)
            }
            Some(entry) => Response {
                content_type: writing.view.content_type(),
                ..Response::bytes(code, self.shown_as(writing, entry))
            },
            None => Response::json(code, &json!({})),
        };
        self.commit(draft, response)
    }

    /// Begins the write of a draft; where nothing changes it is answered at once.
    pub(crate) fn commit(&mut self, mut draft: Draft, mut response: Response) -> Begin {
        if let Some(now) = draft.at {
            self.release_definitions(&mut draft, now);
        }
        response.warnings.extend(draft.warnings);
        response.notes.extend(draft.notes);
        if draft.changes.is_empty() {
            return Begin::Done(response);
        }
        let bytes_max = self.settings.object_bytes_max;
        let is_too_large = |staged: &Staged| match &staged.after {
            After::Here(entry) => entry.shown_size() > bytes_max,
            After::Gone(_) => false,
        };
        if draft.changes.iter().any(|(_, staged)| is_too_large(staged)) {
            // Nothing was staged: the revisions that were drawn are still nobody's.
            self.begun -= draft.changes.len() as u64;
            // Clients know these words.
            let refused = Refused::plain("etcdserver: request is too large".to_owned());
            return Begin::Done(refused.response());
        }
        let record = match self.settings.records {
            Records::Kept => self.record(&draft.changes).encode(),
            Records::Unwanted => Vec::new(),
        };
        for (id, staged) in &draft.changes {
            self.shelf_mut(*id).stage(staged);
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.push_back(Waiting {
            ticket,
            changes: draft.changes,
            servings: draft.servings,
            response,
        });
        Begin::Commit(Commit { ticket, record })
    }

    fn record(&self, changes: &[(ResourceId, Staged)]) -> Record {
        Record {
            revision: self.begun,
            changes: last_of_each(changes)
                .map(|(id, staged)| change_of(self.registry.row(*id), staged))
                .collect(),
        }
    }
}

/// Of several changes of one object, a journal keeps the last.
fn last_of_each(changes: &[(ResourceId, Staged)]) -> impl Iterator<Item = &(ResourceId, Staged)> {
    let mut last: BTreeMap<(ResourceId, &str), usize> = BTreeMap::new();
    for (position, (id, staged)) in changes.iter().enumerate() {
        last.insert((*id, &*staged.key), position);
    }
    let kept: BTreeSet<usize> = last.into_values().collect();
    let all = changes.iter().enumerate();
    all.filter(move |(position, _)| kept.contains(position))
        .map(|(_, change)| change)
}

fn change_of(row: &Resource, staged: &Staged) -> Change {
    Change {
        resource: row.shelf.clone(),
        key: (&*staged.key).into(),
        state: match &staged.after {
            After::Here(entry) => Some(State {
                revision: entry.revision,
                bytes: entry.shown(),
            }),
            After::Gone(_) => None,
        },
    }
}
