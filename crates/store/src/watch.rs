//! A watch as a cursor over its resource's ring of events.
//!
//! The store keeps no list of watchers: each one reads on from its own cursor, at its own speed.
//! One that falls behind the ring is told 410 and dropped; it can block nobody.

use std::collections::VecDeque;
use std::sync::Arc;

use api::time::Time;

use crate::entry::Entry;
use crate::registry::ResourceId;
use crate::select::Selection;
use crate::table::{Headers, Include};
use crate::talk::{Answer, Call, Talk};
use crate::view::View;

/// How often an idle watch that asked for bookmarks gets one, in milliseconds.
pub const BOOKMARK_MS: i64 = 60_000;
/// A poll stops after so many bytes, so that one watch cannot hold the store for long, and pieces
/// stay of a size that allocators keep at hand: larger ones are fresh, zeroed pages every time.
pub const POLL_BYTES_MAX: usize = 24 << 10;

/// One client's watch.
#[derive(Debug)]
pub struct Watch {
    pub(crate) topic: usize,
    pub(crate) resource: ResourceId,
    pub(crate) version: Box<str>,
    pub(crate) view: View,
    pub(crate) include: Include,
    pub(crate) selection: Selection,
    /// Everything up to here was delivered.
    pub(crate) cursor: u64,
    /// Objects that are told as ADDED before any event.
    pub(crate) initial: VecDeque<Arc<Entry>>,
    /// After `initial`, a bookmark says that it is complete.
    pub(crate) ends_initial: InitialEnd,
    pub(crate) bookmark_at: Option<Time>,
    pub(crate) deadline: Option<Time>,
    pub(crate) headers: Headers,
    /// What conversion webhooks have answered, for objects that are still to be told.
    pub(crate) talk: Talk,
    /// What must be asked before the next object can be told.
    pub(crate) calls: Vec<Call>,
}

/// Whether the end of the initial events is still to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialEnd {
    /// Nobody asked, or it was told.
    Silent,
    /// A bookmark with the annotation follows the initial events.
    Owed,
}

impl Watch {
    /// What wakes this watch: see [`crate::Store::take_touched`].
    pub fn topic(&self) -> usize {
        self.topic
    }

    /// The calls that [`WatchStep::Call`] speaks of.
    pub fn take_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.calls)
    }

    /// Takes note of the answers to `calls`, in their order.
    pub fn hear(&mut self, calls: Vec<Call>, answers: Vec<Answer>) {
        self.talk.hear(calls, answers);
    }

    /// `Content-Type` of the stream.
    pub fn content_type(&self) -> String {
        self.view.content_type()
    }
}

/// What the shell does next with a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStep {
    /// Webhooks must answer first: send what there is, make the calls of [`Watch::take_calls`], give
    /// their answers to [`Watch::hear`] and poll again.
    Call,
    /// There is more: send what there is and poll again.
    More,
    /// Nothing until the resource changes or `until` is reached.
    Wait {
        /// When to poll again even if nothing changed.
        until: Option<Time>,
    },
    /// Send what there is and close the stream.
    End,
}
