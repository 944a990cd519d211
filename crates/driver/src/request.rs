//! What the driver asks its shell to do.

use api::call::Call;
use api::intent::{Intent, ObjectKey, Refusal};
use api::kind::Kind;
use mirror::Object;
use serde_json::value::RawValue;

/// Names one request until it has been answered. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A question to somebody beside the API, whose answer is a fact of that moment. The shell answers it in
/// any case: with what came, or with why nothing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it is about.
    pub topic: Topic,
    /// Whom.
    pub door: Door,
    /// What is sent; its path goes behind the door's address.
    pub call: Call,
    /// So long an answer may take, in milliseconds.
    pub within_ms: i64,
    /// So long it may be, in bytes.
    pub bytes_max: usize,
}

/// What a question is about: all that a log has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic(pub String);

/// Where somebody is asked.
#[derive(Clone, PartialEq, Eq)]
pub enum Door {
    /// The cluster's own API.
    Cluster,
    /// Anywhere.
    Address {
        /// `http://` or `https://`, a host, perhaps a path.
        address: String,
        /// Whether any certificate of it is taken.
        insecure_skip_verify: bool,
        /// Who asks, if it wants to know.
        credentials: Option<Credentials>,
    },
    /// The DNS of pods: which addresses the name has that is the call's target. The answer is
    /// `NOERROR` and the addresses, parted by spaces, or the word of DNS for why it knows none.
    Names,
    /// A port of a pod: an empty target of the call only connects, any other is an HTTP request.
    Pod {
        /// The pod's address.
        address: String,
        /// Its port.
        port: u16,
        /// Header fields of the request.
        headers: Vec<(String, String)>,
    },
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// These.
    Plain(String, String),
    /// Those that a Secret holds as `username` and `password`: the shell reads it, and nobody else.
    Secret(ObjectKey),
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without credentials: this may end in a log.
        match self {
            Door::Cluster => f.write_str("Cluster"),
            Door::Address { address, .. } => write!(f, "Address({address})"),
            Door::Names => f.write_str("Names"),
            Door::Pod { address, port, .. } => write!(f, "Pod({address}, {port})"),
        }
    }
}

/// One thing to do, outside. Each is answered by the handler that its variant names, exactly once,
/// save for watches, whose lines come one by one until they are closed. The log has another form of
/// writes and questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<W = Intent, A = Ask> {
    /// Ask somebody; answered by `handle_answer`.
    Ask(A),
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
    /// The same with another form of its write, and of a question what it is about.
    pub(crate) fn with<V>(&self, form: impl FnOnce(&W) -> V) -> Request<V, Topic> {
        match self {
            Request::Ask(ask) => Request::Ask(ask.topic.clone()),
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
