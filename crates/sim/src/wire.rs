//! The API server on this thread: calls in, answers and watch lines out.

use api::admission::{Facts, Review, Verdict};
use api::call::{self, Call, WatchLine};
use api::kind::Kind;
use api::time::Time;
use serde_json::Value;
use store::{Begin, Request, Response, Store, User, Watch, WatchStep};

use crate::random::Random;

/// The real store with the real review rules, without a socket or a journal.
pub(crate) struct Server {
    store: Store,
}

/// What a call came to.
pub(crate) enum Answered {
    Whole(Response),
    Stream(Box<Watch>),
}

impl Server {
    /// A server that has just started for the first time.
    pub(crate) fn start(random: Random, now: Time) -> Server {
        let mut store = Store::new(store::Settings::default(), Box::new(random));
        if let Some(commit) = store.start(now) {
            store.finish(commit.ticket, now);
        }
        Server { store }
    }

    /// Answers one call as the plane's own identity.
    pub(crate) fn answer(&mut self, call: &Call, now: Time) -> Answered {
        let request = Request::from_call(call, User::admin());
        match self.store.begin(&request, now, &mut admit) {
            Begin::Done(response) => Answered::Whole(response),
            Begin::Commit(commit) => Answered::Whole(self.store.finish(commit.ticket, now)),
            Begin::Watch(watch) => Answered::Stream(watch),
            Begin::Call(_) | Begin::Check(_) | Begin::Connect(_) | Begin::Mint(_) => {
                Answered::Whole(Response::text(
                    501,
                    "no kubelet, no webhooks and no keys in a simulated world",
                ))
            }
        }
    }

    /// The lines that a watch has to say now; the flag tells whether it has ended.
    pub(crate) fn lines(&self, watch: &mut Watch, now: Time) -> (Vec<WatchLine>, Next) {
        let mut bytes = Vec::new();
        let next = loop {
            match self.store.poll_watch(watch, now, &mut bytes) {
                WatchStep::More => {}
                WatchStep::Wait { until } => break Next::At(until),
                // Nobody registers webhooks in a simulated world.
                WatchStep::Call | WatchStep::End => break Next::End,
            }
        };
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| call::watch_line(line).expect("the store writes watch lines"))
            .collect();
        (lines, next)
    }

    /// All stored objects of a kind.
    pub(crate) fn objects(&mut self, kind: Kind, now: Time) -> Vec<Value> {
        let Answered::Whole(response) = self.answer(&call::list(kind, 0, ""), now) else {
            return Vec::new();
        };
        let mut list: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.store.revision()
    }
}

/// When a watch has more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Once the store changes, or at this time.
    At(Option<Time>),
    /// Never.
    End,
}

fn admit(question: &Review<'_>, facts: &dyn Facts) -> Verdict {
    review::review(question, facts)
}
