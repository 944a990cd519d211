//! What a request needs to hear from webhooks, as values.
//!
//! A request that must ask somebody outside is stopped with its [`Calls`]. The shell performs them
//! without holding anything, and begins the request again with the same [`Talk`], which now knows
//! the answers. What was decided in between by other writers is seen anew: an answer counts only
//! for exactly the question it was given to, and the object's version is part of the question.

use std::collections::BTreeMap;

use api::time::Time;
use serde_json::Value;

use crate::ahead::Ahead;
use crate::request::Request;

/// Most times that one request may be begun again before it is given up.
pub(crate) const ROUNDS_MAX: u32 = 256;

/// What was said so far about one request.
#[derive(Clone, Debug)]
pub struct Talk {
    /// When the request came: what it writes carries this time, however long the answers took.
    pub(crate) at: Time,
    /// The random bytes that it drew, so that names and uids stay what webhooks were told.
    pub(crate) drawn: Vec<u8>,
    /// Random bytes from which its reviews take their names.
    pub(crate) salt: Vec<u8>,
    /// Answers by question.
    pub(crate) told: BTreeMap<Box<str>, Answer>,
    /// Converted objects, by where they came from and the version that they were converted to.
    pub(crate) converted: BTreeMap<(Origin, Box<str>), Converted>,
    pub(crate) rounds: u32,
    /// Its body, if it was read before its turn came.
    pub(crate) ahead: Option<Ahead>,
}

/// Where an object to be converted came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A stored state: revisions are never given twice.
    Stored(u64),
    /// One at hand, by its text.
    Loose(Box<str>),
}

/// An object in another version, or why there is none, as a client reads it.
pub(crate) type Converted = Result<Value, String>;

/// A webhook's answer: the body, or why there is none, in the words of a Go client.
pub type Answer = Result<Vec<u8>, String>;

/// One webhook to be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The webhook's name, for logs.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// Certificates in PEM that the webhook's must be signed by; empty for the system's.
    pub authority: Vec<u8>,
    /// How long it may take.
    pub timeout_ms: u64,
    /// The review, in JSON.
    pub body: Vec<u8>,
    pub(crate) question: Question,
}

/// Where a webhook listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As errors show it: `https://host:port/path?timeout=10s`.
    pub url: String,
    /// Host that is dialled.
    pub host: String,
    /// Port that is dialled.
    pub port: u16,
    /// The name that its certificate must bear.
    pub server_name: String,
    /// `Host` header.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

/// What a call is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    /// Whether an object may pass: the review without what differs at each asking.
    Admission(Box<str>),
    /// Objects in another version.
    Conversion {
        uid: String,
        version: Box<str>,
        objects: Vec<(Origin, Value)>,
    },
}

/// Calls that a request waits for. They may be made side by side.
#[derive(Debug)]
pub struct Calls {
    /// What is to be called.
    pub calls: Vec<Call>,
    pub(crate) talk: Talk,
}

impl Talk {
    /// A request that nobody has been asked about.
    pub fn new(at: Time) -> Talk {
        Talk {
            at,
            drawn: Vec::new(),
            salt: Vec::new(),
            told: BTreeMap::new(),
            converted: BTreeMap::new(),
            rounds: 0,
            ahead: None,
        }
    }

    /// Reads the request's body here and now, so that whoever begins it, and may do that for one
    /// request at a time only, need not.
    pub fn read_ahead(mut self, request: &Request) -> Talk {
        self.ahead = Ahead::read(request);
        self
    }

    /// When the request came.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Takes note of the answers to `calls`, in their order; one that is missing failed.
    pub(crate) fn hear(&mut self, calls: Vec<Call>, answers: Vec<Answer>) {
        self.rounds += 1;
        let mut answers = answers.into_iter();
        for call in calls {
            let missing = || Err("the call was not made".to_owned());
            let answer = answers.next().unwrap_or_else(missing);
            match call.question {
                Question::Admission(question) => {
                    self.told.insert(question, answer);
                }
                Question::Conversion {
                    uid,
                    version,
                    objects,
                } => {
                    let mut converted =
                        crate::convert::read(&uid, &version, &objects, answer).map(Vec::into_iter);
                    for (origin, _) in objects {
                        let object = match &mut converted {
                            Ok(objects) => {
                                Ok(objects.next().expect("there is one for each that was sent"))
                            }
                            Err(why) => Err(why.clone()),
                        };
                        self.converted.insert((origin, version.clone()), object);
                    }
                }
            }
        }
    }
}

impl Calls {
    /// The request's talk with the answers to its calls, in their order.
    pub fn answer(mut self, answers: Vec<Answer>) -> Talk {
        self.talk.hear(self.calls, answers);
        self.talk
    }
}
