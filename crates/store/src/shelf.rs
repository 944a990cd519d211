//! The objects of one resource: an ordered map, what is begun but not yet durable, and a ring of
//! recent events from which watches resume and old pages are rebuilt.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use api::time::Time;

use crate::entry::Entry;

/// Most events that a ring remembers.
pub const EVENTS_MAX: usize = 65_536;
/// Most bytes of object states that a ring remembers.
pub const EVENT_BYTES_MAX: usize = 48 << 20;
/// Events older than this are forgotten, in milliseconds (etcd compacts every five minutes).
pub const EVENT_AGE_MS_MAX: i64 = 300_000;

/// What became of an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// The write's revision.
    pub revision: u64,
    /// When it was written.
    pub at: Time,
    /// `namespace/name` or `name`.
    pub key: Arc<str>,
    /// The state before, if there was one.
    pub before: Option<Arc<Entry>>,
    /// The state after.
    pub after: After,
}

/// The state after an event.
#[derive(Clone, Debug)]
pub enum After {
    /// It is there.
    Here(Arc<Entry>),
    /// It has gone; this is its last state with the deletion's revision.
    Gone(Arc<Entry>),
}

/// One change of a begun write.
#[derive(Clone, Debug)]
pub struct Staged {
    /// `namespace/name` or `name`.
    pub key: Arc<str>,
    /// The state after.
    pub after: After,
}

/// The objects of one resource.
#[derive(Debug, Default)]
pub struct Shelf {
    objects: BTreeMap<Arc<str>, Arc<Entry>>,
    /// Begun writes by key: the newest state and how many writes wait.
    staged: BTreeMap<Arc<str>, (Option<Arc<Entry>>, u32)>,
    ring: VecDeque<Event>,
    ring_bytes: usize,
    /// Revision of the newest forgotten event: a watch may resume at or after it.
    floor: u64,
}

impl Shelf {
    /// Puts a loaded object in its place.
    pub fn load(&mut self, key: &str, entry: Option<Entry>) {
        match entry {
            Some(entry) => {
                self.objects.insert(key.into(), Arc::new(entry));
            }
            None => {
                self.objects.remove(key);
            }
        }
    }

    /// Forgets that there was a history before `revision` (after loading).
    pub fn start_at(&mut self, revision: u64) {
        self.floor = revision;
    }

    /// How many objects are visible.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// The visible object.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.objects.get(key)
    }

    /// The object as the next write must see it: begun writes count.
    pub fn latest(&self, key: &str) -> Option<&Arc<Entry>> {
        match self.staged.get(key) {
            Some((state, _)) => state.as_ref(),
            None => self.objects.get(key),
        }
    }

    /// All visible objects whose key begins with `prefix`, in key order.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Entry>)> {
        self.range_after(prefix, None)
    }

    /// Visible objects under `prefix` that come after the key `after`.
    pub fn range_after<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Entry>)> {
        let from = match after {
            Some(key) if key >= prefix => Bound::Excluded(key),
            _ => Bound::Included(prefix),
        };
        self.objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// All objects under `prefix` as the next write must see them.
    pub fn latest_range(&self, prefix: &str) -> Vec<(Arc<str>, Arc<Entry>)> {
        let mut all: BTreeMap<Arc<str>, Arc<Entry>> = self
            .range(prefix)
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        for (key, (state, _)) in &self.staged {
            if !key.starts_with(prefix) {
                continue;
            }
            match state {
                Some(entry) => all.insert(key.clone(), entry.clone()),
                None => all.remove(key),
            };
        }
        all.into_iter().collect()
    }

    /// The objects under `prefix` after `after` as they were at `revision`; `None` if that is
    /// forgotten.
    pub fn range_at(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
    ) -> Option<BTreeMap<Arc<str>, Arc<Entry>>> {
        if revision < self.floor {
            return None;
        }
        let mut then: BTreeMap<Arc<str>, Arc<Entry>> = self
            .range_after(prefix, after)
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        // Undo newest first: the oldest undone event has the last word.
        for event in self.events_after(revision).rev() {
            if !event.key.starts_with(prefix) || after.is_some_and(|after| &*event.key <= after) {
                continue;
            }
            match &event.before {
                Some(entry) => then.insert(event.key.clone(), entry.clone()),
                None => then.remove(&event.key),
            };
        }
        Some(then)
    }

    /// The oldest revision at which a watch may resume.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The events after `revision`, oldest first.
    pub fn events_after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Event> {
        let from = self
            .ring
            .partition_point(|event| event.revision <= revision);
        self.ring.range(from..)
    }

    /// Lets the next write see a begun one.
    pub fn stage(&mut self, change: &Staged) {
        let state = match &change.after {
            After::Here(entry) => Some(entry.clone()),
            After::Gone(_) => None,
        };
        let slot = self.staged.entry(change.key.clone()).or_insert((None, 0));
        slot.0 = state;
        slot.1 += 1;
    }

    /// Makes a begun write visible.
    pub fn commit(&mut self, change: Staged, now: Time) {
        if let Some(slot) = self.staged.get_mut(&change.key) {
            slot.1 -= 1;
            if slot.1 == 0 {
                self.staged.remove(&change.key);
            }
        }
        let (revision, before) = match &change.after {
            After::Here(entry) => (
                entry.revision,
                self.objects.insert(change.key.clone(), entry.clone()),
            ),
            After::Gone(last) => (last.revision, self.objects.remove(&change.key)),
        };
        self.remember(Event {
            revision,
            at: now,
            key: change.key,
            before,
            after: change.after,
        });
    }

    /// Forgets all begun writes.
    pub fn abandon(&mut self) {
        self.staged.clear();
    }

    fn remember(&mut self, event: Event) {
        let now = event.at;
        self.ring_bytes += weight(&event);
        self.ring.push_back(event);
        while let Some(oldest) = self.ring.front() {
            let too_old = oldest.at.plus_ms(EVENT_AGE_MS_MAX) < now;
            if !too_old && self.ring.len() <= EVENTS_MAX && self.ring_bytes <= EVENT_BYTES_MAX {
                break;
            }
            self.ring_bytes -= weight(oldest);
            self.floor = oldest.revision;
            self.ring.pop_front();
        }
    }
}

/// The states that only the ring may still hold: those before, and last states.
fn weight(event: &Event) -> usize {
    let before = event.before.as_ref().map_or(0, |entry| entry.bytes.len());
    let gone = match &event.after {
        After::Gone(last) => last.bytes.len(),
        After::Here(_) => 0,
    };
    before + gone + 128
}
