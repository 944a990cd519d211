//! The state machine: requests in, answers out, nothing visible before it is durable.

use std::collections::VecDeque;

use api::admission::{Facts, Review, Verdict};
use api::time::Time;

use crate::journal::{Change, Torn};
use crate::registry::{Registry, ResourceId};
use crate::request::{Begin, Commit, Request, Response, Ticket};
use crate::shelf::{Shelf, Staged};
use crate::watch::{Watch, WatchStep};

/// What a store is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest request body in bytes.
    pub body_bytes_max: usize,
    /// What `/version` says after `v`: the Kubernetes version whose behaviour this is.
    pub kubernetes_version: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            body_bytes_max: 3 << 20,
            kubernetes_version: "1.36.3".to_owned(),
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
    pub(crate) registry: Registry,
    pub(crate) shelves: Vec<Shelf>,
    /// The newest visible revision.
    pub(crate) revision: u64,
    /// The newest given revision.
    pub(crate) begun: u64,
    pub(crate) next_ticket: u64,
    pub(crate) waiting: VecDeque<Waiting>,
}

/// A begun write.
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) changes: Vec<(ResourceId, Staged)>,
    pub(crate) response: Response,
}

impl Store {
    /// An empty store. Feed it [`Store::load`], then [`Store::start`].
    pub fn new(settings: Settings, entropy: Box<dyn Entropy>) -> Store {
        Store {
            settings,
            entropy,
            registry: Registry::default(),
            shelves: Vec::new(),
            revision: 0,
            begun: 0,
            next_ticket: 1,
            waiting: VecDeque::new(),
        }
    }

    /// Takes one journal record of an earlier life, oldest first.
    pub fn load(&mut self, record: &[u8]) -> Result<(), Torn> {
        let _ = crate::journal::Record::decode(record)?;
        Ok(())
    }

    /// Takes one change of an earlier life (a journal that keeps objects apart calls this).
    pub fn load_change(&mut self, revision: u64, change: Change) -> Result<(), LoadError> {
        let _ = (revision, change);
        Ok(())
    }

    /// Ends loading: serves the definitions found, and makes the objects that every plane has and
    /// this one lacks. The commit must be journaled and finished before anything else.
    pub fn start(&mut self, now: Time) -> Option<Commit> {
        let _ = now;
        None
    }

    /// Answers a read (GET) without changing anything, so that reads may run side by side.
    /// Any other method gives `None`.
    pub fn read(&self, request: &Request, now: Time) -> Option<Begin> {
        let _ = (request, now);
        None
    }

    /// Begins any request. A write's effect becomes visible in [`Store::finish`].
    pub fn begin(&mut self, request: &Request, now: Time, admit: &mut Admit<'_>) -> Begin {
        let _ = (request, now, admit);
        Begin::Done(crate::status::Refused::no_resource().response())
    }

    /// A begun write is durable: makes it visible and gives its answer. Tickets come in order.
    pub fn finish(&mut self, ticket: Ticket, now: Time) -> Response {
        let _ = (ticket, now);
        crate::status::Refused::no_resource().response()
    }

    /// The journal could not keep the begun writes: forgets all of them; each is answered 503.
    pub fn abandon(&mut self, why: &str) -> Vec<(Ticket, Response)> {
        let _ = why;
        Vec::new()
    }

    /// Appends what a watch has to say to `out` (one JSON event a line).
    pub fn poll_watch(&self, watch: &mut Watch, now: Time, out: &mut Vec<u8>) -> WatchStep {
        let _ = (watch, now, out);
        WatchStep::End
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        self.revision
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
