//! The one way in for writes. One thread begins and finishes them; another makes them durable, so
//! that requests are decided while the disk takes those before them.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use store::{Begin, Refused, Request, Response, Talk, Ticket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::journal::{Journal, JournalError};
use crate::plane::{self, Plane, now};

/// Most writes that are begun together.
const GROUP_MAX: usize = 256;
/// Most writes that are not answered yet.
const UNANSWERED_MAX: usize = 4_096;
/// How often a failed journal is tried again, at most.
const RECOVER_EVERY: Duration = Duration::from_secs(1);

/// Where writes are handed in. Its threads end when it is dropped.
pub(crate) struct Writer {
    inbox: Sender<Message>,
    places: Arc<Semaphore>,
}

enum Message {
    Write(Job),
    /// Of the oldest records so many have been kept; or none, and those after them will not be.
    Kept(Result<usize, Lost>),
    Stop,
}

struct Job {
    request: Arc<Request>,
    talk: Talk,
    caller: Caller,
}

/// Who waits for an answer, and the place that this takes.
struct Caller {
    answer: oneshot::Sender<Begin>,
    _place: OwnedSemaphorePermit,
}

impl Caller {
    fn tell(self, answer: Begin) {
        // A client that has gone needs no answer.
        let _ = self.answer.send(answer);
    }
}

impl Writer {
    /// A writer, and what starts it once there is a plane.
    pub(crate) fn new() -> (Writer, Entrance) {
        let (sender, receiver) = mpsc::channel();
        let entrance = Entrance {
            messages: receiver,
            inbox: sender.clone(),
        };
        let writer = Writer {
            inbox: sender,
            places: Arc::new(Semaphore::new(UNANSWERED_MAX)),
        };
        (writer, entrance)
    }

    /// Carries a write through.
    pub(crate) async fn write(&self, request: Arc<Request>, talk: Talk) -> Begin {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let why = "the server has too many writes waiting";
            return Begin::Done(Refused::too_many(why, 1).response());
        };
        let (answer, waits) = oneshot::channel();
        let caller = Caller {
            answer,
            _place: place,
        };
        let job = Job {
            request,
            talk,
            caller,
        };
        match self.inbox.send(Message::Write(job)) {
            Ok(()) => waits.await.unwrap_or_else(|_| plane::stopped()),
            Err(_) => plane::stopped(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Where nobody listens any more, nobody needs to be stopped.
        let _ = self.inbox.send(Message::Stop);
    }
}

/// Where a writer's threads find what it is told.
pub(crate) struct Entrance {
    messages: Receiver<Message>,
    inbox: Sender<Message>,
}

impl Entrance {
    /// Starts both threads.
    pub(crate) fn open(
        self,
        plane: Weak<Plane>,
        journal: Box<dyn Journal>,
    ) -> Result<(), JournalError> {
        let journal = Arc::new(Mutex::new(journal));
        let (records, kept) = mpsc::channel();
        let desk = Desk {
            plane,
            messages: self.messages,
            jobs: VecDeque::new(),
            unsent: Vec::new(),
            waiting: VecDeque::new(),
            records,
            journal: journal.clone(),
            life: 0,
            failure: None,
        };
        let inbox = self.inbox;
        spawn("katmai-journal", move || keep_all(&journal, &kept, &inbox))?;
        spawn("katmai-writer", move || desk.run())
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), JournalError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(|cause| JournalError::new("start the writer", cause))
}

type SharedJournal = Mutex<Box<dyn Journal>>;

/// Records on their way to the journal.
struct Sent {
    records: Vec<Vec<u8>>,
    /// How often the journal had failed when they were sent.
    life: u64,
}

/// Records that a failing journal may or may not have kept.
struct Lost {
    why: String,
    records: Vec<Vec<u8>>,
}

/// Makes records durable, as many at once as have come, until nobody sends any more.
fn keep_all(journal: &SharedJournal, sent: &Receiver<Sent>, inbox: &Sender<Message>) {
    let mut life = 0;
    while let Ok(first) = sent.recv() {
        // What was sent before its sender knew of a failure has been abandoned with the rest.
        let records: Vec<Vec<u8>> = std::iter::once(first)
            .chain(sent.try_iter())
            .filter(|sent| sent.life == life)
            .flat_map(|sent| sent.records)
            .collect();
        if records.is_empty() {
            continue;
        }
        let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match journal.append(&records) {
            Ok(()) => Ok(records.len()),
            Err(error) => {
                life += 1;
                Err(Lost {
                    why: error.chain(),
                    records,
                })
            }
        };
        drop(journal);
        if inbox.send(Message::Kept(kept)).is_err() {
            return;
        }
    }
}

/// The one thread that changes the store.
struct Desk {
    plane: Weak<Plane>,
    messages: Receiver<Message>,
    jobs: VecDeque<Job>,
    /// Writes that were begun, oldest first.
    waiting: VecDeque<(Ticket, Caller)>,
    /// The records of the newest of them.
    unsent: Vec<Vec<u8>>,
    records: Sender<Sent>,
    journal: Arc<SharedJournal>,
    /// How often the journal has failed.
    life: u64,
    failure: Option<Failure>,
}

/// A journal that did not keep its last append.
struct Failure {
    why: String,
    tried: Instant,
    /// What it may or may not have kept.
    doubtful: Vec<Vec<u8>>,
}

/// Nobody is left to write for.
struct Stopped;

impl Desk {
    fn run(mut self) {
        while self.turn().is_ok() {}
    }

    /// Begins what is at hand, and sends its records together; what comes meanwhile is for the next turn.
    fn turn(&mut self) -> Result<(), Stopped> {
        if self.jobs.is_empty() {
            let message = self.messages.recv().map_err(|_| Stopped)?;
            self.take(message)?;
        }
        self.take_all()?;
        for _ in 0..self.jobs.len().min(GROUP_MAX) {
            let Some(job) = self.jobs.pop_front() else {
                break;
            };
            self.begin(job)?;
            // Whoever waits for what has been kept need not wait for the rest of these, too.
            self.take_all()?;
        }
        self.send()
    }

    fn take_all(&mut self) -> Result<(), Stopped> {
        while let Ok(message) = self.messages.try_recv() {
            self.take(message)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), Stopped> {
        match message {
            Message::Write(job) => self.jobs.push_back(job),
            Message::Kept(Ok(count)) => self.finish(count)?,
            Message::Kept(Err(lost)) => self.abandon(lost)?,
            Message::Stop => return Err(Stopped),
        }
        Ok(())
    }

    fn plane(&self) -> Result<Arc<Plane>, Stopped> {
        self.plane.upgrade().ok_or(Stopped)
    }

    fn begin(&mut self, job: Job) -> Result<(), Stopped> {
        let plane = self.plane()?;
        if let Err(why) = self.ready(&plane) {
            let refused = Refused::unavailable(&why).response();
            job.caller.tell(Begin::Done(refused));
            return Ok(());
        }
        let mut store = plane.write_store();
        let begun = plane::begin(&mut store, &job.request, job.talk, plane.reviewer());
        drop(store);
        match begun {
            Begin::Commit(commit) => {
                self.unsent.push(commit.record);
                self.waiting.push_back((commit.ticket, job.caller));
            }
            other => job.caller.tell(other),
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Stopped> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.unsent);
        let life = self.life;
        let sent = Sent { records, life };
        self.records.send(sent).map_err(|_| Stopped)
    }

    /// Makes the oldest begun writes visible, and answers them.
    fn finish(&mut self, count: usize) -> Result<(), Stopped> {
        let plane = self.plane()?;
        let mut store = plane.write_store();
        let answers: Vec<(Caller, Response)> = self
            .waiting
            .drain(..count)
            .map(|(ticket, caller)| (caller, store.finish(ticket, now())))
            .collect();
        let (touched, revision) = (store.take_touched(), store.revision());
        drop(store);
        plane.wake(&touched, revision);
        for (caller, response) in answers {
            caller.tell(Begin::Done(response));
        }
        Ok(())
    }

    /// Gives up everything that was begun: what has been decided meanwhile rests on what the journal
    /// did not keep.
    fn abandon(&mut self, lost: Lost) -> Result<(), Stopped> {
        let plane = self.plane()?;
        let why = format!(
            "the plane is read-only until its journal can be written again: {}",
            lost.why
        );
        tracing::error!("{why}");
        let responses = plane.write_store().abandon(&why);
        self.unsent.clear();
        for ((_, caller), (_, response)) in self.waiting.drain(..).zip(responses) {
            caller.tell(Begin::Done(response));
        }
        self.life += 1;
        self.failure = Some(Failure {
            why,
            tried: Instant::now(),
            doubtful: lost.records,
        });
        Ok(())
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
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let repaired = journal.recover().and_then(|()| journal.append(&[repair]));
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
