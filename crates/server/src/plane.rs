//! The store among threads: readers side by side, one writer, watches woken by topic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use api::admission::{Facts, Review, Verdict};
use api::time::Time;
use client::ask::AskDoor;
use client::kubelet::Kubelet;
use ring::rand::SecureRandom;
use store::{Begin, Entropy, Method, Records, Refused, Request, Settings, Store, Talk};
use tokio::sync::watch;

use crate::journal::{Journal, JournalError};
use crate::keys::TokenKeys;
use crate::webhook;
use crate::writer::Writer;

/// Longest that a request may take together with its webhooks.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// Decides what a request may become.
pub type Reviewer = dyn Fn(&Review<'_>, &dyn Facts) -> Verdict + Send + Sync;

/// What a plane is started with.
pub struct Start {
    /// The store's settings.
    pub settings: Settings,
    /// Where records go; `None` keeps nothing.
    pub journal: Option<Box<dyn Journal>>,
    /// The rules of our own kinds.
    pub reviewer: Arc<Reviewer>,
    /// Who answers about containers; `None` refuses logs and exec.
    pub kubelet: Option<Arc<dyn Kubelet>>,
}

impl Default for Start {
    fn default() -> Start {
        Start {
            settings: Settings::default(),
            journal: None,
            reviewer: Arc::new(|_, _| Verdict::Allowed {
                object: None,
                warnings: Vec::new(),
            }),
            kubelet: None,
        }
    }
}

pub(crate) struct Plane {
    store: RwLock<Store>,
    reviewer: Arc<Reviewer>,
    topics: Mutex<BTreeMap<usize, watch::Sender<u64>>>,
    /// `None`: writes are finished where they are begun.
    writer: Option<Writer>,
    kubelet: RwLock<Option<Arc<dyn Kubelet>>>,
    ask_door: RwLock<Option<Arc<dyn AskDoor>>>,
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) token_keys: TokenKeys,
}

/// The wall clock, as everything below receives it.
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

struct SystemEntropy(ring::rand::SystemRandom);

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0
            .fill(bytes)
            .expect("the operating system has random bytes");
    }
}

impl Plane {
    /// Loads what the journal kept and makes the plane ready.
    pub(crate) fn start(start: Start, token_keys: TokenKeys) -> Result<Arc<Plane>, JournalError> {
        let entropy = SystemEntropy(ring::rand::SystemRandom::new());
        let mut journal = start.journal;
        let records = match &journal {
            Some(_) => Records::Kept,
            None => Records::Unwanted,
        };
        let settings = Settings {
            records,
            prose: crate::prose::PROSE,
            ..start.settings
        };
        let mut store = Store::new(settings, Box::new(entropy));
        if let Some(journal) = &mut journal {
            journal.load(&mut |revision, change| {
                if let Some(change) = change
                    && let Err(error) = store.load_change(revision, change)
                {
                    tracing::error!(%error, "an object could not be loaded; it stays in the journal");
                }
                store.load_revision(revision);
                Ok(())
            })?;
        }
        if let Some(commit) = store.start(now()) {
            if let Some(journal) = &mut journal {
                journal.append(std::slice::from_ref(&commit.record))?;
            }
            store.finish(commit.ticket, now());
        }
        store.take_touched();
        let (writer, entrance) = Writer::new();
        let plane = Arc::new(Plane {
            store: RwLock::new(store),
            reviewer: start.reviewer,
            topics: Mutex::new(BTreeMap::new()),
            writer: journal.is_some().then_some(writer),
            kubelet: RwLock::new(start.kubelet),
            ask_door: RwLock::new(None),
            stopping: watch::Sender::new(false),
            token_keys,
        });
        if let Some(journal) = journal {
            entrance.open(Arc::downgrade(&plane), journal)?;
        }
        Ok(plane)
    }

    pub(crate) fn read_store(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reviewer(&self) -> &Reviewer {
        &*self.reviewer
    }

    pub(crate) fn write_store(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where the plane listens.
    pub(crate) fn set_address(&self, address: &str) {
        self.write_store().set_address(address);
    }

    pub(crate) fn kubelet(&self) -> Option<Arc<dyn Kubelet>> {
        let kubelet = self.kubelet.read().unwrap_or_else(PoisonError::into_inner);
        kubelet.clone()
    }

    pub(crate) fn set_kubelet(&self, kubelet: Arc<dyn Kubelet>) {
        let mut slot = self.kubelet.write().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(kubelet);
    }

    pub(crate) fn ask_door(&self) -> Option<Arc<dyn AskDoor>> {
        let door = (self.ask_door.read()).unwrap_or_else(PoisonError::into_inner);
        door.clone()
    }

    pub(crate) fn set_ask_door(&self, door: Arc<dyn AskDoor>) {
        let mut slot = (self.ask_door.write()).unwrap_or_else(PoisonError::into_inner);
        *slot = Some(door);
    }

    /// Carries a request through to its answer, or to the stream that it opens.
    ///
    /// Where webhooks must be asked, they are asked from here, with nothing held: other requests
    /// go on, and this one is begun again with the answers.
    pub(crate) async fn ask(&self, request: Request) -> Begin {
        let request = Arc::new(request);
        let mut talk = Talk::new(now()).read_ahead(&request);
        let ends = tokio::time::Instant::now() + REQUEST_MAX;
        loop {
            let calls = match self.begin(&request, talk).await {
                Begin::Call(calls) => calls,
                other => return other,
            };
            let answered = tokio::time::timeout_at(ends, webhook::perform(&calls.calls)).await;
            let Ok(answers) = answered else {
                let why = "request did not complete within requested timeout";
                return Begin::Done(Refused::timeout(why).response());
            };
            talk = calls.answer(answers);
        }
    }

    async fn begin(&self, request: &Arc<Request>, talk: Talk) -> Begin {
        if request.method == Method::Get {
            let read = self.read_store().read_on(request, talk);
            return read.unwrap_or_else(stopped);
        }
        match &self.writer {
            None => self.write_at_once(request, talk),
            Some(writer) => writer.write(request.clone(), talk).await,
        }
    }

    fn write_at_once(&self, request: &Request, talk: Talk) -> Begin {
        let mut store = self.write_store();
        let begin = begin(&mut store, request, talk, &*self.reviewer);
        let Begin::Commit(commit) = begin else {
            return begin;
        };
        let response = store.finish(commit.ticket, now());
        let (touched, revision) = (store.take_touched(), store.revision());
        drop(store);
        self.wake(&touched, revision);
        Begin::Done(response)
    }

    pub(crate) fn wake(&self, topics: &[usize], revision: u64) {
        let senders = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        for topic in topics {
            if let Some(sender) = senders.get(topic) {
                sender.send_replace(revision);
            }
        }
    }

    /// How many wait for news on this topic.
    pub(crate) fn watchers(&self, topic: usize) -> usize {
        let senders = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        senders.get(&topic).map_or(0, watch::Sender::receiver_count)
    }

    /// Wakes whenever something on this topic has become visible.
    pub(crate) fn subscribe(&self, topic: usize) -> watch::Receiver<u64> {
        let mut senders = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        senders
            .entry(topic)
            .or_insert_with(|| watch::Sender::new(0))
            .subscribe()
    }
}

/// Begins a request. A panic is a bug of ours, answered 500: it must not end the writer, and the
/// store changes nothing before a request is decided.
pub(crate) fn begin(
    store: &mut Store,
    request: &Request,
    talk: Talk,
    reviewer: &Reviewer,
) -> Begin {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.resume(request, talk, &mut |review, facts| reviewer(review, facts))
    }));
    decided.unwrap_or_else(|_| {
        tracing::error!(path = %request.path, "a request broke the server's own rules");
        Begin::Done(Refused::internal("the request could not be handled").response())
    })
}

pub(crate) fn stopped() -> Begin {
    Begin::Done(Refused::unavailable("the server is stopping").response())
}
