//! One request to the store and what may become of it, as values.

use std::collections::BTreeMap;

use api::call::Call;
use serde_json::Value;

use crate::asking::Explain;
use crate::talk::Calls;
use crate::watch::Watch;

/// The HTTP methods that an API server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Delete an object or a collection.
    Delete,
    /// Get, list or watch.
    Get,
    /// Patch.
    Patch,
    /// Create, or call a subresource.
    Post,
    /// Replace.
    Put,
}

impl Method {
    /// The method of that name, if an API server answers it.
    pub fn parse(text: &str) -> Option<Method> {
        match text {
            "DELETE" => Some(Method::Delete),
            "GET" => Some(Method::Get),
            "PATCH" => Some(Method::Patch),
            "POST" => Some(Method::Post),
            "PUT" => Some(Method::Put),
            _ => None,
        }
    }

    /// Its name: `GET`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Delete => "DELETE",
            Method::Get => "GET",
            Method::Patch => "PATCH",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// Who asks. The shell has authenticated them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `kubernetes-admin`, `system:serviceaccount:ns:name` …
    pub name: String,
    /// Groups; `system:masters` may do everything.
    pub groups: Vec<String>,
    /// Empty where there is none.
    pub uid: String,
    /// What else the credential says, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether this user may do everything, whatever the rules say.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }

    /// The plane's own identity, allowed everything.
    pub fn admin() -> User {
        User {
            name: "katmai-admin".to_owned(),
            groups: vec![
                "system:masters".to_owned(),
                "system:authenticated".to_owned(),
            ],
            ..User::default()
        }
    }
}

/// One HTTP request, without its socket.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as it came, still percent-encoded.
    pub path: String,
    /// The query as it came, without `?`.
    pub query: String,
    /// `Accept`; may be empty.
    pub accept: String,
    /// `Content-Type`; may be empty.
    pub content_type: String,
    /// `User-Agent`; may be empty. Names the owner of written fields where the query does not.
    pub user_agent: String,
    /// The body, at most [`crate::Settings::body_bytes_max`] long (longer ones are refused).
    pub body: Vec<u8>,
    /// Who asks.
    pub user: User,
}

impl Request {
    /// The request that a [`Call`] describes, made by `user`.
    pub fn from_call(call: &Call, user: User) -> Request {
        let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
        Request {
            method: Method::parse(call.method).unwrap_or(Method::Get),
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
            content_type: call.content_type.to_owned(),
            user_agent: api::call::FIELD_MANAGER.to_owned(),
            body: call.body.clone(),
            user,
        }
    }
}

/// An answer, without its socket.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// HTTP status code.
    pub code: u16,
    /// `Content-Type`; there is none where it is empty.
    pub content_type: String,
    /// `Location`, where the answer is elsewhere.
    pub location: Option<String>,
    /// Texts for `Warning: 299` headers.
    pub warnings: Vec<String>,
    /// `Retry-After` in seconds.
    pub retry_after_seconds: Option<u32>,
    /// How long it may be kept by whom.
    pub cache: Cache,
    /// What webhooks told for the audit log: `webhook/key` and text.
    pub notes: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A JSON answer.
    pub fn json(code: u16, value: &Value) -> Response {
        Response::bytes(code, value.to_string().into_bytes())
    }

    /// A JSON answer that is bytes already.
    pub fn bytes(code: u16, body: Vec<u8>) -> Response {
        Response {
            code,
            content_type: "application/json".to_owned(),
            location: None,
            warnings: Vec::new(),
            retry_after_seconds: None,
            cache: Cache::Private,
            notes: Vec::new(),
            body,
        }
    }

    /// A plain text answer.
    pub fn text(code: u16, text: &str) -> Response {
        Response {
            content_type: "text/plain; charset=utf-8".to_owned(),
            ..Response::bytes(code, text.as_bytes().to_vec())
        }
    }
}

/// How long an answer may be kept by whom; a tag is the same while the answer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// It must be asked for again.
    #[default]
    Private,
    /// By whoever asked, if it asks whether the tag is still the same.
    Own(String),
    /// By anybody, if it asks whether the tag is still the same.
    Tagged(String),
    /// By anybody for ever: the address names the tag.
    Forever(String),
}

/// What a request needs before it is answered.
#[derive(Debug)]
pub enum Begin {
    /// Nothing: here is the answer.
    Done(Response),
    /// Its journal record must be durable first; then [`crate::Store::finish`] gives the answer.
    Commit(Commit),
    /// Webhooks must answer first: the shell calls them, holding nothing, and gives
    /// [`Calls::answer`] to [`crate::Store::resume`] or [`crate::Store::read_on`].
    Call(Box<Calls>),
    /// A stream: the shell calls [`crate::Store::poll_watch`] until it ends.
    Watch(Box<Watch>),
    /// The scheduler must answer: the shell asks it and answers with [`Explain::answered`].
    Explain(Box<Explain>),
    /// A node must answer: the shell hands this to its kubelet.
    Connect(Box<Connect>),
    /// A token must be signed: the shell writes it to `status.token` of `answer`.
    Mint(Box<Mint>),
    /// A token must be looked at: the shell checks its signature, asks
    /// [`crate::Store::token_user`] and answers with [`Check::answered`].
    Check(Box<Check>),
}

/// A write that waits for its journal record.
#[derive(Debug)]
pub struct Commit {
    /// Names the write. Tickets are finished in the order in which they were begun.
    pub ticket: Ticket,
    /// The encoded [`crate::journal::Record`].
    pub record: Vec<u8>,
}

/// Names a begun write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A service account token that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Mint {
    /// JWT claims.
    pub claims: Value,
    /// The `TokenRequest` to be answered, without `status.token`.
    pub answer: Value,
}

/// A token that somebody asks about.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The token.
    pub token: String,
    /// The audiences that are asked about.
    pub audiences: Vec<String>,
    /// The `TokenReview` to be answered, without its status.
    pub(crate) answer: Value,
}

/// A pod whose node must answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAddress {
    /// `spec.nodeName`, never empty.
    pub node: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// A question to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Connect {
    /// The pod.
    pub pod: PodAddress,
    /// What is asked.
    pub ask: Ask,
}

/// The kinds of question to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// `pods/log`.
    Log(LogOptions),
    /// `pods/exec`, or `pods/attach` where `command` is empty.
    Exec(ExecOptions),
    /// `pods/portforward`; ports may be named by the query (websocket v4) or later.
    PortForward {
        /// Wanted ports.
        ports: Vec<u16>,
    },
}

/// `PodLogOptions`, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Never empty.
    pub container: String,
    /// Keep the stream open.
    pub follow: bool,
    /// The instance before the current one.
    pub previous: bool,
    /// Begin each line with its time.
    pub timestamps: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only lines since then.
    pub since: Option<Since>,
    /// Stop after so many bytes.
    pub limit_bytes: Option<u64>,
}

/// From when on lines of a log are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So many seconds ago.
    Ago(u32),
    /// That instant.
    Instant(api::time::Time),
}

/// `PodExecOptions` or `PodAttachOptions`, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// Never empty.
    pub container: String,
    /// Empty means attach.
    pub command: Vec<String>,
    /// The caller sends input.
    pub stdin: bool,
    /// The caller wants output.
    pub stdout: bool,
    /// The caller wants error output.
    pub stderr: bool,
    /// The caller wants a terminal.
    pub tty: bool,
}
