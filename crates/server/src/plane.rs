//! The store among threads: readers side by side, one writer, watches woken by topic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::time::{Duration, Instant};

use api::admission::{Facts, Review, Verdict};
use api::time::Time;
use client::kubelet::Kubelet;
use ring::rand::SecureRandom;
use store::{Begin, Entropy, Method, Records, Refused, Request, Response, Settings, Store, Talk};
use tokio::sync::{oneshot, watch};

use crate::journal::{Journal, JournalError};
use crate::keys::TokenKeys;
use crate::webhook;

/// Most writes that share one journal append.
const GROUP_MAX: usize = 256;
/// Most writes that wait for the writer.
const QUEUE_MAX: usize = 4_096;
/// Longest that a request may take together with its webhooks.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// How often a failed journal is tried again, at most.
const RECOVER_EVERY: Duration = Duration::from_secs(1);

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
    writer: Option<mpsc::SyncSender<Job>>,
    kubelet: RwLock<Option<Arc<dyn Kubelet>>>,
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) token_keys: TokenKeys,
}

struct Job {
    request: Arc<Request>,
    talk: Talk,
    answer: oneshot::Sender<Begin>,
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
        let (sender, receiver) = mpsc::sync_channel(QUEUE_MAX);
        let plane = Arc::new(Plane {
            store: RwLock::new(store),
            reviewer: start.reviewer,
            topics: Mutex::new(BTreeMap::new()),
            writer: journal.is_some().then_some(sender),
            kubelet: RwLock::new(start.kubelet),
            stopping: watch::Sender::new(false),
            token_keys,
        });
        if let Some(journal) = journal {
            let weak = Arc::downgrade(&plane);
            let spawned = std::thread::Builder::new()
                .name("katmai-writer".to_owned())
                .spawn(move || {
                    let mut writer = Writer {
                        journal,
                        failure: None,
                    };
                    // Ends when the last sender is gone with the plane.
                    while let Ok(first) = receiver.recv() {
                        let Some(plane) = weak.upgrade() else {
                            return;
                        };
                        let mut jobs = vec![first];
                        jobs.extend(receiver.try_iter().take(GROUP_MAX - 1));
                        writer.turn(&plane, jobs);
                    }
                });
            spawned.map_err(|cause| JournalError::new("start the writer", cause))?;
        }
        Ok(plane)
    }

    pub(crate) fn read_store(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_store(&self) -> RwLockWriteGuard<'_, Store> {
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

    /// Carries a request through to its answer, or to the stream that it opens.
    ///
    /// Where webhooks must be asked, they are asked from here, with nothing held: other requests
    /// go on, and this one is begun again with the answers.
    pub(crate) async fn ask(&self, request: Request) -> Begin {
        let request = Arc::new(request);
        let mut talk = Talk::new(now());
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
            match calls.answer(answers) {
                Ok(told) => talk = told,
                Err(why) => return Begin::Done(Refused::plain(why).response()),
            }
        }
    }

    async fn begin(&self, request: &Arc<Request>, talk: Talk) -> Begin {
        if request.method == Method::Get {
            let read = self.read_store().read_on(request, talk);
            return read.unwrap_or_else(stopped);
        }
        let Some(writer) = &self.writer else {
            return self.write_at_once(request, talk);
        };
        let (answer, waits) = oneshot::channel();
        let request = request.clone();
        let job = Job {
            request,
            talk,
            answer,
        };
        match writer.try_send(job) {
            Ok(()) => waits.await.unwrap_or_else(|_| stopped()),
            Err(mpsc::TrySendError::Full(_)) => Begin::Done(
                Refused::too_many("the server has too many writes waiting", 1).response(),
            ),
            Err(mpsc::TrySendError::Disconnected(_)) => stopped(),
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

    fn wake(&self, topics: &[usize], revision: u64) {
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
fn begin(store: &mut Store, request: &Request, talk: Talk, reviewer: &Reviewer) -> Begin {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.resume(request, talk, &mut |review, facts| reviewer(review, facts))
    }));
    decided.unwrap_or_else(|_| {
        tracing::error!(path = %request.path, "a request broke the server's own rules");
        Begin::Done(Refused::internal("the request could not be handled").response())
    })
}

fn stopped() -> Begin {
    Begin::Done(Refused::unavailable("the server is stopping").response())
}

/// The one thread that writes.
struct Writer {
    journal: Box<dyn Journal>,
    failure: Option<Failure>,
}

/// A journal that did not keep its last append.
struct Failure {
    why: String,
    tried: Instant,
    /// What it may or may not have kept.
    doubtful: Vec<Vec<u8>>,
}

impl Writer {
    /// Begins all jobs, makes their records durable at once, then finishes them.
    fn turn(&mut self, plane: &Plane, jobs: Vec<Job>) {
        if let Err(why) = self.ready(plane) {
            for job in jobs {
                // A client that has gone needs no answer.
                let _ = job
                    .answer
                    .send(Begin::Done(Refused::unavailable(&why).response()));
            }
            return;
        }
        let mut waiting = Vec::new();
        let mut records = Vec::new();
        let mut answers = Vec::new();
        {
            let mut store = plane.write_store();
            for job in jobs {
                match begin(&mut store, &job.request, job.talk, &*plane.reviewer) {
                    Begin::Commit(commit) => {
                        records.push(commit.record);
                        waiting.push((commit.ticket, job.answer));
                    }
                    other => answers.push((job.answer, other)),
                }
            }
        }
        for (answer, begin) in answers {
            let _ = answer.send(begin);
        }
        if records.is_empty() {
            return;
        }
        let responses = match self.journal.append(&records) {
            Ok(()) => self.finish(plane, &waiting),
            Err(error) => self.fail(plane, &error, records),
        };
        for ((_, answer), response) in waiting.into_iter().zip(responses) {
            let _ = answer.send(Begin::Done(response));
        }
    }

    fn finish(
        &self,
        plane: &Plane,
        waiting: &[(store::Ticket, oneshot::Sender<Begin>)],
    ) -> Vec<Response> {
        let mut store = plane.write_store();
        let responses = waiting
            .iter()
            .map(|(ticket, _)| store.finish(*ticket, now()))
            .collect();
        let (touched, revision) = (store.take_touched(), store.revision());
        drop(store);
        plane.wake(&touched, revision);
        responses
    }

    fn fail(
        &mut self,
        plane: &Plane,
        error: &JournalError,
        records: Vec<Vec<u8>>,
    ) -> Vec<Response> {
        let why = format!(
            "the plane is read-only until its journal can be written again: {}",
            error.chain()
        );
        tracing::error!("{why}");
        let responses = plane
            .write_store()
            .abandon(&why)
            .into_iter()
            .map(|(_, response)| response)
            .collect();
        self.failure = Some(Failure {
            why,
            tried: Instant::now(),
            doubtful: records,
        });
        responses
    }

    /// Whether the journal takes records; after a failure it is opened anew and what the failed
    /// append may have left is set right.
    fn ready(&mut self, plane: &Plane) -> Result<(), String> {
        let Some(failure) = &mut self.failure else {
            return Ok(());
        };
        if failure.tried.elapsed() < RECOVER_EVERY {
            return Err(failure.why.clone());
        }
        failure.tried = Instant::now();
        let repair = plane.read_store().restate(&failure.doubtful);
        let repaired = self
            .journal
            .recover()
            .and_then(|()| self.journal.append(&[repair]));
        match repaired {
            Ok(()) => {
                tracing::info!("the journal can be written again");
                self.failure = None;
                Ok(())
            }
            Err(error) => {
                tracing::warn!("the journal still fails: {}", error.chain());
                Err(failure.why.clone())
            }
        }
    }
}
