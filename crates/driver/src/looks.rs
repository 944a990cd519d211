//! Look-ups: objects whose presence the mirror cannot tell yet, read one by one for the keys that
//! asked. An answer is for the key's next step alone; nothing is kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::intent::ObjectKey;
use controllers::Looked;

use crate::request::{Request, RequestId};
use crate::work::WorkKey;

/// Most look-ups that are on their way at once.
const IN_FLIGHT_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Looks {
    queue: VecDeque<ObjectKey>,
    /// Who waits for what has not been sent yet, in the order of asking: they are woken in that one. Nobody is
    /// there twice, for who waits is not stepped.
    waiting: BTreeMap<ObjectKey, Vec<WorkKey>>,
    sent: BTreeMap<RequestId, (ObjectKey, Vec<WorkKey>)>,
    told: BTreeMap<WorkKey, Looked>,
}

impl Looks {
    /// Wants these looked up for a key; how many answers it will have.
    pub(crate) fn ask(&mut self, work: &WorkKey, keys: Vec<ObjectKey>) -> u32 {
        let keys: BTreeSet<ObjectKey> = keys.into_iter().collect();
        let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        for key in keys {
            // One that was sent already may be answered from before this key's world.
            let waiting = self.waiting.entry(key.clone()).or_insert_with(|| {
                self.queue.push_back(key);
                Vec::new()
            });
            waiting.push(work.clone());
        }
        count
    }

    /// The next look-up; `id` is what it will be called.
    pub(crate) fn poll(&mut self, id: RequestId) -> Option<Request> {
        if self.sent.len() >= IN_FLIGHT_MAX {
            return None;
        }
        let key = self.queue.pop_front()?;
        let waiting = self.waiting.remove(&key).unwrap_or_default();
        self.sent.insert(id, (key.clone(), waiting));
        Some(Request::Get { key })
    }

    /// What an open look-up is about, and who waits for it, the first that asked first. It is open no more.
    pub(crate) fn answered(&mut self, id: RequestId) -> Option<(ObjectKey, Vec<WorkKey>)> {
        self.sent.remove(&id)
    }

    /// A key's answer: the uid of what is there.
    pub(crate) fn tell(&mut self, work: &WorkKey, key: &ObjectKey, uid: Option<&str>) {
        let told = self.told.entry(work.clone()).or_default();
        told.tell(key.clone(), uid);
    }

    /// A look-up of a key failed: it will ask for everything anew.
    pub(crate) fn forget(&mut self, work: &WorkKey) {
        self.told.remove(work);
    }

    /// What was told to a key since its last step.
    pub(crate) fn take(&mut self, work: &WorkKey) -> Looked {
        self.told.remove(work).unwrap_or_default()
    }

    /// Look-ups that have no answer yet.
    pub(crate) fn open(&self) -> usize {
        self.queue.len() + self.sent.len()
    }
}
