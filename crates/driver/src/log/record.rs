//! What is recorded, as values: cheap to make, since objects are shared with the mirror.

use std::sync::Arc;

use api::core::TextMap;
use api::intent::{
    Action, Intent, KeyMaterial, ObjectKey, Part, Propagation, Refusal, WriteOutcome,
};
use api::kind::Kind;
use api::shared::Word;
use api::time::Time;
use api::token::Tokens;
use mirror::{Change, Object};

use super::body::Body;
use super::checkpoint::Checkpoint;
use crate::read::ReadLine;
use crate::reflector::Reflected;
use crate::request::{Request, RequestId, Topic};
use crate::settings::Settings;

/// One thing that happened to a driver, or that it did.
#[derive(Clone, Debug)]
pub enum Record {
    /// A segment begins.
    Began {
        /// With this state.
        checkpoint: Box<Checkpoint>,
        /// By these settings.
        settings: Arc<Settings>,
    },
    /// It was polled; what it wanted.
    Asked {
        /// When.
        now: Time,
        /// Under the id after the last one.
        asked: Option<Asked>,
    },
    /// A cycle came to a plan.
    Planned(Planned),
    /// Time passed.
    Passed {
        /// Until when.
        now: Time,
    },
    /// The clock was set.
    Leapt {
        /// To what.
        now: Time,
    },
    /// A page of a list came.
    Page {
        /// When.
        now: Time,
        /// To which request.
        id: RequestId,
        /// Of which kind.
        kind: Kind,
        /// What it said.
        page: Result<PageTaken, Refusal>,
    },
    /// A line of a watch came.
    Line {
        /// When.
        now: Time,
        /// Of which request.
        id: RequestId,
        /// Of which kind.
        kind: Kind,
        /// What it did.
        line: LineTaken,
    },
    /// A watch ended.
    Closed {
        /// When.
        now: Time,
        /// Which.
        id: RequestId,
        /// Why.
        refusal: Option<Refusal>,
    },
    /// A write was answered.
    Written {
        /// When.
        now: Time,
        /// Which.
        id: RequestId,
        /// How.
        outcome: WriteOutcome,
    },
    /// A read was answered.
    Got {
        /// When.
        now: Time,
        /// Which.
        id: RequestId,
        /// Of which kind.
        kind: Kind,
        /// What is there.
        object: Result<Option<Object>, Refusal>,
    },
    /// Somebody who was asked answered, or did not.
    Answered {
        /// When.
        now: Time,
        /// Which question.
        id: RequestId,
        /// What counts of it, in the form of who asked; or why nothing does.
        answer: Result<String, String>,
    },
    /// The driver was told to let go.
    Released {
        /// When.
        now: Time,
    },
    /// A new segment is wanted.
    Due {
        /// When.
        now: Time,
    },
}

impl Record {
    /// Whether a segment begins with it.
    pub fn is_beginning(&self) -> bool {
        matches!(self, Record::Began { .. })
    }
}

/// What a page did.
#[derive(Clone, Debug)]
pub struct PageTaken {
    /// At which revision it was served.
    pub revision: u64,
    /// Empty at the end of a list.
    pub continue_token: String,
    /// What was not held so before, and at the end of a list what has gone.
    pub changes: Vec<Change>,
}

/// What a line of a watch did.
#[derive(Clone, Debug)]
pub enum LineTaken {
    /// It changed an object.
    Changed {
        /// What.
        change: Change,
        /// Everything up to here has been seen.
        seen: u64,
    },
    /// It changed none; everything up to here has been seen.
    Seen(u64),
    /// It was an error.
    Failed(Refusal),
}

/// What a driver wants, as it is compared.
pub type Asked = Request<Wanted, Topic>;

/// A wanted write with its body in the log's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of what.
    pub target: ObjectKey,
    /// Verb and fence.
    pub how: How,
    /// Empty where there is none.
    pub body: Body,
}

/// The kinds of write, without what they write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// A create, perhaps with drawn key material.
    Create(Option<KeyMaterial>),
    /// A merge patch.
    Patch {
        /// Of this object.
        uid: Box<str>,
        /// At this version.
        resource_version: Word,
        /// Of this part.
        part: Part,
    },
    /// A deletion.
    Delete {
        /// Of this object.
        uid: Box<str>,
        /// At this version.
        resource_version: Option<Word>,
        /// With this grace.
        grace_seconds: Option<i64>,
        /// And this for its dependants.
        propagation: Propagation,
    },
    /// A bind.
    Bind {
        /// Of this pod.
        uid: Box<str>,
        /// To this node.
        node: Box<str>,
        /// With these annotations.
        annotations: TextMap,
    },
}

/// What a cycle came to, so far as it tells one plan from another. Everything that is written
/// because of it is recorded beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The tables' revision.
    pub tick: u64,
    /// Tasks placed.
    pub places: u32,
    /// Tasks evicted.
    pub evictions: u32,
    /// Everything else that is wanted.
    pub others: u32,
    /// A sum over which task goes where, and which goes.
    pub sum: u64,
}

impl Planned {
    /// What a plan comes to.
    pub fn of(plan: &model::Plan) -> Planned {
        let mut sum = Sum::default();
        for place in &plan.places {
            sum.add(&[
                u64::from(place.task.0),
                u64::from(place.node.0),
                place.write.0,
            ]);
        }
        for eviction in &plan.evictions {
            let gang = eviction.sake.gang().map_or(u64::MAX, |it| u64::from(it.0));
            sum.add(&[u64::from(eviction.task.0), gang, eviction.write.0]);
        }
        for opening in &plan.openings {
            sum.add(&[u64::from(opening.task.0), opening.write.0]);
        }
        for nomination in &plan.nominations {
            let node = nomination.node.map_or(u64::MAX, |node| u64::from(node.0));
            sum.add(&[u64::from(nomination.task.0), node]);
        }
        for status in &plan.statuses {
            sum.add(&[u64::from(status.gang.0), status.write.0]);
        }
        let wake = plan.wake_at.map_or(i64::MIN, |at| at.micros);
        sum.add(&[wake as u64]);
        let others =
            plan.nominations.len() + plan.statuses.len() + plan.waits.len() + plan.queues.len();
        let others = others + plan.openings.len() + plan.remarks.len();
        Planned {
            tick: plan.tick.0,
            places: u32::try_from(plan.places.len()).unwrap_or(u32::MAX),
            evictions: u32::try_from(plan.evictions.len()).unwrap_or(u32::MAX),
            others: u32::try_from(others).unwrap_or(u32::MAX),
            sum: sum.0,
        }
    }
}

/// A sum that depends on the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum(pub(super) u64);

impl Default for Sum {
    fn default() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    pub(super) fn add(&mut self, words: &[u64]) {
        for word in words {
            self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 29;
        }
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        self.add(&[text.len() as u64]);
        for eight in text.chunks(8) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            self.add(&[u64::from_le_bytes(word)]);
        }
    }
}

impl Asked {
    /// What a request asks.
    pub fn of(request: &Request) -> Asked {
        request.with(Wanted::of)
    }

    /// The same with tokens.
    #[must_use]
    pub fn told(mut self, tokens: &Tokens) -> Asked {
        if let Asked::Write(wanted) = &mut self
            && !wanted.body.is_empty()
        {
            wanted.body = wanted.body.told(wanted.target.kind, tokens);
        }
        self
    }
}

impl Wanted {
    fn of(intent: &Intent) -> Wanted {
        let (how, body) = match &intent.action {
            Action::Create { body } => (How::Create(None), Body::of(body)),
            Action::CreateSecret { body, key } => (How::Create(Some(*key)), Body::of(body)),
            Action::Patch {
                uid,
                resource_version,
                part,
                patch,
            } => {
                let how = How::Patch {
                    uid: uid.clone(),
                    resource_version: resource_version.clone(),
                    part: *part,
                };
                (how, Body::of(patch))
            }
            Action::Delete {
                uid,
                resource_version,
                grace_seconds,
                propagation,
            } => {
                let how = How::Delete {
                    uid: uid.clone(),
                    resource_version: resource_version.clone(),
                    grace_seconds: *grace_seconds,
                    propagation: *propagation,
                };
                (how, Body::default())
            }
            Action::Bind {
                uid,
                node,
                annotations,
            } => {
                let how = How::Bind {
                    uid: uid.clone(),
                    node: node.clone(),
                    annotations: annotations.clone(),
                };
                (how, Body::default())
            }
        };
        Wanted {
            target: intent.target.clone(),
            how,
            body,
        }
    }

    /// `bind`, `create`, `delete` or `patch`.
    pub fn verb(&self) -> &'static str {
        match self.how {
            How::Bind { .. } => "bind",
            How::Create(_) => "create",
            How::Delete { .. } => "delete",
            How::Patch { .. } => "patch",
        }
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Asked::Ask(topic) => write!(f, "ask {}", topic.0),
            Asked::Get { key } => write!(f, "get {}", Named(key)),
            Asked::List { kind, .. } => write!(f, "list {}", kind.row().plural),
            Asked::Watch { kind, revision, .. } => {
                write!(f, "watch {} from {revision}", kind.row().plural)
            }
            Asked::Write(wanted) => {
                write!(f, "{} {}", wanted.verb(), Named(&wanted.target))?;
                match &wanted.how {
                    How::Bind { node, .. } => write!(f, " to {node}"),
                    How::Create(_) | How::Patch { .. } => {
                        write!(f, " {}", wanted.body)
                    }
                    How::Delete { .. } => Ok(()),
                }
            }
        }
    }
}

/// A key as people type it.
pub(super) struct Named<'a>(pub(super) &'a ObjectKey);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.0;
        match &*key.namespace {
            "" => write!(f, "{}/{}", key.kind.row().name, key.name),
            namespace => write!(f, "{}/{namespace}/{}", key.kind.row().name, key.name),
        }
    }
}

/// What is kept of a line until it is known what it did.
#[derive(Clone, Debug)]
pub(crate) enum LineHeard {
    Failed(Refusal),
    Other,
}

impl LineHeard {
    pub(crate) fn of(line: &ReadLine) -> LineHeard {
        match line {
            ReadLine::Failed(refusal) => LineHeard::Failed(refusal.clone()),
            _ => LineHeard::Other,
        }
    }

    /// A line after which everything is listed again is kept as one that says so.
    pub(crate) fn taken(self, reflected: &Reflected, seen: u64) -> LineTaken {
        match (self, reflected.changes.first()) {
            (LineHeard::Failed(refusal), _) => LineTaken::Failed(refusal),
            (LineHeard::Other, _) if reflected.is_relist => LineTaken::Failed(Refusal {
                code: 410,
                reason: "Expired".into(),
                message: reflected.trouble.clone().unwrap_or_default().into(),
                retry_after_seconds: None,
            }),
            (LineHeard::Other, Some(change)) => LineTaken::Changed {
                change: change.clone(),
                seen,
            },
            (LineHeard::Other, None) => LineTaken::Seen(seen),
        }
    }
}
