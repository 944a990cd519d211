//! Questions of a step to somebody beside the API: a pod, or a system outside.
//!
//! A step names them and decides nothing; whoever drives it asks, and steps the key again with the
//! answers at once. An answer is for that step alone, or for all of a while, as the question says. What is sent and what came back stays outside:
//! a step sees what a question's reader makes of it.

use std::collections::BTreeMap;

use api::intent::ObjectKey;
use api::time::Time;

/// One question.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// What it is about: the name of its answer, and all that a log has of the question.
    pub topic: String,
    /// Who is asked what.
    pub whom: Whom,
    /// So long an answer may take, in milliseconds.
    pub within_ms: i64,
    /// So long it may be, in bytes.
    pub bytes_max: usize,
    /// So long an answer stands, in milliseconds: steps of the key are told it again, and the
    /// question need not be asked. 0 where it is for one step alone.
    pub stands_ms: i64,
    /// So long it stands that there was none, or none that counts, in milliseconds.
    pub fails_ms: i64,
    /// What of an answer counts, or why nothing does: a pure function of its bytes.
    pub read: fn(&[u8]) -> Result<String, String>,
}

/// Who is asked what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A port of a pod: whether it takes connections, or what it answers to a request.
    Pod {
        /// The pod's address.
        address: String,
        /// Its port.
        port: u16,
        /// Path of a GET request and its header fields; `None` only connects.
        request: Option<(String, Vec<(String, String)>)>,
    },
    /// An HTTP server anywhere.
    Server {
        /// `http://` or `https://`, a host, perhaps a path.
        address: String,
        /// What is asked for there, beginning with `/`.
        path: String,
        /// Whether any certificate of it is taken.
        insecure_skip_verify: bool,
        /// The Secret that holds `username` and `password`, if it wants them. No step sees them.
        credentials: Option<ObjectKey>,
    },
    /// The DNS of pods: which addresses a name has. An answer is `NOERROR` and the addresses, all
    /// parted by spaces, or the word that DNS has for why it knows none, such as `NXDOMAIN`.
    Names {
        /// The whole name, without a dot at its end.
        name: String,
    },
}

impl Inquiry {
    /// How long this answer to it stands, in milliseconds.
    pub fn stands_for_ms(&self, answer: &Result<String, String>) -> i64 {
        match answer {
            Ok(_) => self.stands_ms,
            Err(_) => self.fails_ms,
        }
    }
}

/// What was heard, by topic: what counts of an answer, or why there is none; and until when that stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard(BTreeMap<String, (Result<String, String>, Option<Time>)>);

impl Heard {
    /// This was answered.
    pub fn tell(&mut self, topic: &str, answer: Result<String, String>) {
        self.0.insert(topic.to_owned(), (answer, None));
    }

    /// This was answered, and stands until then.
    pub fn tell_until(&mut self, topic: &str, answer: Result<String, String>, until: Time) {
        self.0.insert(topic.to_owned(), (answer, Some(until)));
    }

    /// The answer to a question; `None` if it was not asked.
    pub fn told(&self, topic: &str) -> Option<Result<&str, &str>> {
        let (answer, _) = self.0.get(topic)?;
        Some(answer.as_deref().map_err(String::as_str))
    }

    /// Until when that answer stands; `None` where it is for this step alone.
    pub fn until(&self, topic: &str) -> Option<Time> {
        self.0.get(topic)?.1
    }
}
