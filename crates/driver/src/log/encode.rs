//! Records → bytes. What it remembers begins anew with each segment.

mod objects;

use api::intent::{KeyMaterial, ObjectKey, Part, Propagation, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use api::token::Tokens;
use mirror::Object;

use super::bytes::{number, signed, text};
use super::checkpoint::Checkpoint;
use super::record::{Asked, How, LineTaken, PageTaken, Planned, Record, Wanted};
use objects::Objects;
pub(super) use objects::{flag, write};

/// What begins a record.
pub(super) mod tag {
    pub const BEGAN: u8 = 0;
    pub const IDLE: u8 = 1;
    pub const GET: u8 = 2;
    pub const LIST: u8 = 3;
    pub const WATCH: u8 = 4;
    pub const WRITE: u8 = 5;
    pub const PLANNED: u8 = 6;
    pub const PASSED: u8 = 7;
    pub const PAGE: u8 = 8;
    pub const PAGE_REFUSED: u8 = 9;
    pub const PUT: u8 = 10;
    pub const GONE: u8 = 11;
    pub const SEEN: u8 = 12;
    pub const LINE_FAILED: u8 = 13;
    pub const CLOSED: u8 = 14;
    pub const CLOSED_REFUSED: u8 = 15;
    pub const DONE: u8 = 16;
    pub const REFUSED: u8 = 17;
    pub const UNKNOWN: u8 = 18;
    pub const GOT: u8 = 19;
    pub const GOT_NONE: u8 = 20;
    pub const GOT_REFUSED: u8 = 21;
    pub const RELEASED: u8 = 22;
    pub const DUE: u8 = 23;
    pub const LEAPT: u8 = 24;
    pub const ASK: u8 = 25;
    pub const ANSWERED: u8 = 26;
    pub const UNANSWERED: u8 = 27;
}

/// Turns records into bytes.
#[derive(Debug)]
pub struct Encoder {
    now: i64,
    objects: Objects,
}

impl Encoder {
    /// For one segment.
    pub fn new(tokens: Tokens) -> Encoder {
        Encoder {
            now: 0,
            objects: Objects::new(tokens),
        }
    }

    /// Adds a record to `out`.
    pub fn put(&mut self, record: &Record, out: &mut Vec<u8>) {
        match record {
            Record::Began { checkpoint, .. } => self.began(checkpoint, out),
            Record::Asked { now, asked } => self.asked(*now, asked.as_ref(), out),
            Record::Planned(planned) => put_planned(planned, out),
            Record::Passed { now } => self.head(tag::PASSED, *now, out),
            Record::Leapt { now } => self.head(tag::LEAPT, *now, out),
            Record::Page {
                now,
                id,
                kind,
                page,
            } => {
                let is_taken = page.is_ok();
                let tag = if is_taken {
                    tag::PAGE
                } else {
                    tag::PAGE_REFUSED
                };
                self.head(tag, *now, out);
                number(out, id.0);
                match page {
                    Ok(page) => self.page(*kind, page, out),
                    Err(refusal) => put_refusal(refusal, out),
                }
            }
            Record::Line {
                now,
                id,
                kind,
                line,
            } => self.line(*now, id.0, *kind, line, out),
            Record::Closed { now, id, refusal } => {
                let is_refused = refusal.is_some();
                let tag = if is_refused {
                    tag::CLOSED_REFUSED
                } else {
                    tag::CLOSED
                };
                self.head(tag, *now, out);
                number(out, id.0);
                if let Some(refusal) = refusal {
                    put_refusal(refusal, out);
                }
            }
            Record::Written { now, id, outcome } => self.written(*now, id.0, outcome, out),
            Record::Got {
                now,
                id,
                kind,
                object,
            } => self.got(*now, id.0, *kind, object, out),
            Record::Answered { now, id, answer } => {
                let (tag, words) = match answer {
                    Ok(answer) => (tag::ANSWERED, answer),
                    Err(why) => (tag::UNANSWERED, why),
                };
                self.head(tag, *now, out);
                number(out, id.0);
                text(out, words.as_bytes());
            }
            Record::Released { now } => self.head(tag::RELEASED, *now, out),
            Record::Due { now } => self.head(tag::DUE, *now, out),
        }
    }

    fn head(&mut self, tag: u8, now: Time, out: &mut Vec<u8>) {
        out.push(tag);
        signed(out, now.micros().wrapping_sub(self.now));
        self.now = now.micros();
    }

    fn began(&mut self, checkpoint: &Checkpoint, out: &mut Vec<u8>) {
        self.head(tag::BEGAN, checkpoint.now, out);
        text(out, checkpoint.state().to_string().as_bytes());
        number(out, checkpoint.objects.len() as u64);
        for object in &checkpoint.objects {
            out.push(object.kind() as u8);
            self.objects.read(object, out);
        }
    }

    fn asked(&mut self, now: Time, asked: Option<&Asked>, out: &mut Vec<u8>) {
        let Some(asked) = asked else {
            self.head(tag::IDLE, now, out);
            return;
        };
        match asked {
            Asked::Ask(topic) => {
                self.head(tag::ASK, now, out);
                text(out, topic.0.as_bytes());
            }
            Asked::Get { key } => {
                self.head(tag::GET, now, out);
                put_key(key, out);
            }
            Asked::List {
                kind,
                limit,
                continue_token,
            } => {
                self.head(tag::LIST, now, out);
                out.push(*kind as u8);
                number(out, u64::from(*limit));
                text(out, continue_token.as_bytes());
            }
            Asked::Watch {
                kind,
                revision,
                timeout_seconds,
            } => {
                self.head(tag::WATCH, now, out);
                out.push(*kind as u8);
                number(out, *revision);
                number(out, u64::from(*timeout_seconds));
            }
            Asked::Write(wanted) => {
                self.head(tag::WRITE, now, out);
                self.wanted(wanted, out);
            }
        }
    }

    fn wanted(&mut self, wanted: &Wanted, out: &mut Vec<u8>) {
        put_key(&wanted.target, out);
        let how = how_tag(&wanted.how);
        out.push(how);
        match &wanted.how {
            How::Create(_) => {}
            How::Patch {
                uid,
                resource_version,
                ..
            } => {
                text(out, uid.as_bytes());
                text(out, resource_version.as_bytes());
            }
            How::Delete {
                uid,
                resource_version,
                grace_seconds,
                ..
            } => {
                text(out, uid.as_bytes());
                let version = resource_version.as_deref();
                out.push(u8::from(version.is_some()));
                text(out, version.unwrap_or_default().as_bytes());
                out.push(u8::from(grace_seconds.is_some()));
                signed(out, grace_seconds.unwrap_or(0));
            }
            How::Bind {
                uid,
                node,
                annotations,
            } => {
                text(out, uid.as_bytes());
                text(out, node.as_bytes());
                if !annotations.is_empty() {
                    number(out, annotations.len() as u64);
                    for (key, value) in annotations {
                        text(out, key.as_bytes());
                        text(out, value.as_bytes());
                    }
                }
            }
        }
        if matches!(wanted.how, How::Create(_) | How::Patch { .. }) {
            self.objects
                .body(wanted.target.kind, how, &wanted.body, out);
        }
    }

    fn page(&mut self, kind: Kind, page: &PageTaken, out: &mut Vec<u8>) {
        out.push(kind as u8);
        number(out, page.revision);
        text(out, page.continue_token.as_bytes());
        number(out, page.changes.len() as u64);
        for change in &page.changes {
            match &change.after {
                Some(after) => {
                    out.push(1);
                    self.objects.changed(change, after, out);
                }
                None => {
                    out.push(0);
                    self.objects.gone(change);
                    put_name(&change.key, out);
                }
            }
        }
    }

    fn line(&mut self, now: Time, id: u64, kind: Kind, line: &LineTaken, out: &mut Vec<u8>) {
        let tag = match line {
            LineTaken::Changed { change, .. } if change.after.is_some() => tag::PUT,
            LineTaken::Changed { .. } => tag::GONE,
            LineTaken::Seen(_) => tag::SEEN,
            LineTaken::Failed(_) => tag::LINE_FAILED,
        };
        self.head(tag, now, out);
        number(out, id);
        match line {
            LineTaken::Changed { change, seen } => {
                out.push(kind as u8);
                match &change.after {
                    Some(after) => self.objects.changed(change, after, out),
                    None => {
                        self.objects.gone(change);
                        put_name(&change.key, out);
                        number(out, *seen);
                    }
                }
            }
            LineTaken::Seen(seen) => number(out, *seen),
            LineTaken::Failed(refusal) => put_refusal(refusal, out),
        }
    }

    fn written(&mut self, now: Time, id: u64, outcome: &WriteOutcome, out: &mut Vec<u8>) {
        match outcome {
            WriteOutcome::Done { revision, uid } => {
                self.head(tag::DONE, now, out);
                number(out, id);
                number(out, *revision);
                text(out, uid.as_bytes());
            }
            WriteOutcome::Refused(refusal) => {
                self.head(tag::REFUSED, now, out);
                number(out, id);
                put_refusal(refusal, out);
            }
            WriteOutcome::Unknown { message } => {
                self.head(tag::UNKNOWN, now, out);
                number(out, id);
                text(out, message.as_bytes());
            }
        }
    }

    fn got(
        &mut self,
        now: Time,
        id: u64,
        kind: Kind,
        object: &Result<Option<Object>, Refusal>,
        out: &mut Vec<u8>,
    ) {
        match object {
            Ok(Some(object)) => {
                self.head(tag::GOT, now, out);
                number(out, id);
                out.push(kind as u8);
                self.objects.read(object, out);
            }
            Ok(None) => {
                self.head(tag::GOT_NONE, now, out);
                number(out, id);
            }
            Err(refusal) => {
                self.head(tag::GOT_REFUSED, now, out);
                number(out, id);
                put_refusal(refusal, out);
            }
        }
    }
}

pub(super) fn how_tag(how: &How) -> u8 {
    match how {
        How::Create(None) => 0,
        How::Create(Some(KeyMaterial::SshEd25519)) => 1,
        How::Create(Some(KeyMaterial::SshRsa2048)) => 2,
        How::Patch { part, .. } => match part {
            Part::Whole => 3,
            Part::Status => 4,
            Part::Finalize => 5,
        },
        How::Delete { propagation, .. } => match propagation {
            Propagation::Background => 6,
            Propagation::Foreground => 7,
            Propagation::Orphan => 8,
        },
        How::Bind { annotations, .. } if annotations.is_empty() => 9,
        How::Bind { .. } => 10,
        How::Create(Some(KeyMaterial::SshEd25519AndHost)) => 11,
    }
}

fn put_planned(planned: &Planned, out: &mut Vec<u8>) {
    out.push(tag::PLANNED);
    number(out, planned.tick);
    number(out, u64::from(planned.places));
    number(out, u64::from(planned.evictions));
    number(out, u64::from(planned.others));
    out.extend_from_slice(&planned.sum.to_le_bytes());
}

fn put_key(key: &ObjectKey, out: &mut Vec<u8>) {
    out.push(key.kind as u8);
    put_name(key, out);
}

fn put_name(key: &ObjectKey, out: &mut Vec<u8>) {
    text(out, key.namespace.as_bytes());
    text(out, key.name.as_bytes());
}

fn put_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    number(out, u64::from(refusal.code));
    text(out, refusal.reason.as_bytes());
    text(out, refusal.message.as_bytes());
    let after = refusal.retry_after_seconds;
    number(out, after.map_or(0, |seconds| u64::from(seconds) + 1));
}
