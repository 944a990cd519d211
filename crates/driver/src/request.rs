//! What the driver asks its shell to do.

use api::intent::{Intent, ObjectKey, Refusal};
use api::kind::Kind;
use mirror::Object;
use serde_json::value::RawValue;

/// Names one request until it has been answered. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One thing to do, outside. Each is answered by the handler that its variant names, exactly once,
/// save for watches, whose lines come one by one until they are closed. The log has another form of
/// writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<W = Intent> {
    /// Read one object; answered by `handle_got`.
    Get {
        /// Which one.
        key: ObjectKey,
    },
    /// Read one page of a list of all namespaces; answered by `handle_page`.
    List {
        /// What to list.
        kind: Kind,
        /// Objects per page at most.
        limit: u32,
        /// Empty for the first page.
        continue_token: String,
    },
    /// Watch a kind in all namespaces; lines go to `handle_watch`, its end to `handle_closed`.
    Watch {
        /// What to watch.
        kind: Kind,
        /// Events after this revision are wanted.
        revision: u64,
        /// How long the server should keep it open.
        timeout_seconds: u32,
    },
    /// Perform a write; answered by `handle_written`.
    Write(W),
}

impl<W> Request<W> {
    /// The same with another form of its write.
    pub(crate) fn with<V>(&self, form: impl FnOnce(&W) -> V) -> Request<V> {
        match self {
            Request::Get { key } => Request::Get { key: key.clone() },
            Request::List {
                kind,
                limit,
                continue_token,
            } => Request::List {
                kind: *kind,
                limit: *limit,
                continue_token: continue_token.clone(),
            },
            Request::Watch {
                kind,
                revision,
                timeout_seconds,
            } => Request::Watch {
                kind: *kind,
                revision: *revision,
                timeout_seconds: *timeout_seconds,
            },
            Request::Write(write) => Request::Write(form(write)),
        }
    }
}

/// The answer to [`Request::Get`]: the object, or `None` where there is none.
pub(crate) type Got = Result<Option<Box<RawValue>>, Refusal>;

/// An answer as the mirror reads objects.
pub(crate) fn decoded(kind: Kind, answer: Got) -> Result<Option<Object>, Refusal> {
    let decode = |text: Box<RawValue>| {
        Object::decode(kind, text.get()).map_err(|problem| unreadable(&problem))
    };
    answer?.map(decode).transpose()
}

/// A refusal that stands for an answer that could not be read.
pub(crate) fn unreadable(why: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        code: 0,
        reason: "Unreadable".into(),
        message: why.to_string().into(),
        retry_after_seconds: None,
    }
}
