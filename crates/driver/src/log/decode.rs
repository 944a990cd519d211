//! Bytes → what is played again. Objects come back as JSON, for a driver reads JSON.

use std::collections::BTreeMap;

use api::core::TextMap;
use api::intent::{KeyMaterial, ObjectKey, Part, Propagation, Refusal, WriteOutcome};
use api::kind::{KINDS, Kind};
use api::time::Time;
use api::token::Tokens;
use mirror::{Mirror, Object};

use super::body::Body;
use super::bytes::Reader;
use super::checkpoint::Checkpoint;
use super::delta;
use super::encode::{flag, tag, write};
use super::form::{self, Form};
use super::frame::Problem;
use super::names::Names;
use super::record::{Asked, How, Planned, Wanted};
use crate::request::{RequestId, Topic};

/// What a record tells.
#[derive(Debug)]
pub(super) enum Told {
    Began(Box<Checkpoint>),
    Asked(Option<Asked>),
    Planned(Planned),
    Passed,
    Leapt,
    Page(RequestId, Result<PageTold, Refusal>),
    Put(RequestId, String),
    Gone(RequestId, ObjectKey, u64),
    Seen(RequestId, u64),
    LineFailed(RequestId, Refusal),
    Closed(RequestId, Option<Refusal>),
    Written(RequestId, WriteOutcome),
    Got(RequestId, Result<Option<String>, Refusal>),
    Answered(RequestId, Result<String, String>),
    Released,
    Due,
}

#[derive(Debug)]
pub(super) struct PageTold {
    pub(super) kind: Kind,
    pub(super) revision: u64,
    pub(super) continue_token: String,
    pub(super) put: Vec<String>,
    pub(super) gone: Vec<ObjectKey>,
}

/// Reads records of one segment.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Tokens are tokens already; this only has to leave them as they are.
    tokens: Tokens,
    names: Names,
    pub(super) now: Time,
    fresh: BTreeMap<Kind, Vec<u8>>,
    bodies: BTreeMap<(Kind, u8), Vec<u8>>,
    objects: Objects,
}

/// What becomes of objects.
#[derive(Debug)]
pub(super) enum Objects {
    /// They are as they were written.
    Told,
    /// They are passed over: only what went out is of interest.
    Skipped,
    /// One token stands for all; here is what they were, for the deltas against them.
    Blanked(BTreeMap<ObjectKey, Vec<u8>>),
}

impl Decoder {
    pub(super) fn new(objects: Objects) -> Decoder {
        Decoder {
            tokens: Tokens::keyed([0; 16]),
            names: Names::of_reader(),
            now: Time(0),
            fresh: BTreeMap::new(),
            bodies: BTreeMap::new(),
            objects,
        }
    }

    /// The next record, against what the mirror holds now.
    pub(super) fn next(
        &mut self,
        reader: &mut Reader<'_>,
        mirror: &Mirror,
    ) -> Result<Told, Problem> {
        let tag = reader.byte()?;
        if tag == tag::PLANNED {
            return self.planned(reader).map(Told::Planned);
        }
        let passed = reader.signed()?;
        self.now = Time(self.now.micros().wrapping_add(passed));
        let id = |reader: &mut Reader<'_>| reader.number().map(RequestId);
        Ok(match tag {
            tag::BEGAN => Told::Began(Box::new(self.began(reader)?)),
            tag::IDLE => Told::Asked(None),
            tag::ASK => Told::Asked(Some(Asked::Ask(Topic(reader.word()?.to_owned())))),
            tag::GET => Told::Asked(Some(Asked::Get { key: key(reader)? })),
            tag::LIST => Told::Asked(Some(Asked::List {
                kind: kind(reader)?,
                limit: small(reader)?,
                continue_token: reader.word()?.to_owned(),
            })),
            tag::WATCH => Told::Asked(Some(Asked::Watch {
                kind: kind(reader)?,
                revision: reader.number()?,
                timeout_seconds: small(reader)?,
            })),
            tag::WRITE => Told::Asked(Some(Asked::Write(self.wanted(reader)?))),
            tag::PASSED => Told::Passed,
            tag::LEAPT => Told::Leapt,
            tag::PAGE => Told::Page(id(reader)?, Ok(self.page(reader, mirror)?)),
            tag::PAGE_REFUSED => Told::Page(id(reader)?, Err(refusal(reader)?)),
            tag::PUT => {
                let id = id(reader)?;
                let kind = kind(reader)?;
                Told::Put(id, self.object(kind, reader, mirror)?)
            }
            tag::GONE => {
                let id = id(reader)?;
                let kind = kind(reader)?;
                Told::Gone(id, name(kind, reader)?, reader.number()?)
            }
            tag::SEEN => Told::Seen(id(reader)?, reader.number()?),
            tag::LINE_FAILED => Told::LineFailed(id(reader)?, refusal(reader)?),
            tag::CLOSED => Told::Closed(id(reader)?, None),
            tag::CLOSED_REFUSED => Told::Closed(id(reader)?, Some(refusal(reader)?)),
            tag::DONE => {
                let id = id(reader)?;
                let (revision, uid) = (reader.number()?, reader.word()?.into());
                Told::Written(id, WriteOutcome::Done { revision, uid })
            }
            tag::REFUSED => Told::Written(id(reader)?, WriteOutcome::Refused(refusal(reader)?)),
            tag::UNKNOWN => {
                let id = id(reader)?;
                let message = reader.word()?.into();
                Told::Written(id, WriteOutcome::Unknown { message })
            }
            tag::GOT => {
                let id = id(reader)?;
                let kind = kind(reader)?;
                Told::Got(id, Ok(Some(self.object(kind, reader, mirror)?)))
            }
            tag::GOT_NONE => Told::Got(id(reader)?, Ok(None)),
            tag::GOT_REFUSED => Told::Got(id(reader)?, Err(refusal(reader)?)),
            tag::ANSWERED => Told::Answered(id(reader)?, Ok(reader.word()?.to_owned())),
            tag::UNANSWERED => Told::Answered(id(reader)?, Err(reader.word()?.to_owned())),
            tag::RELEASED => Told::Released,
            tag::DUE => Told::Due,
            other => return Err(reader.problem(&format!("no record begins with {other}"))),
        })
    }

    fn planned(&mut self, reader: &mut Reader<'_>) -> Result<Planned, Problem> {
        let tick = reader.number()?;
        let (places, evictions, others) = (small(reader)?, small(reader)?, small(reader)?);
        let mut sum = [0; 8];
        for byte in &mut sum {
            *byte = reader.byte()?;
        }
        Ok(Planned {
            tick,
            places,
            evictions,
            others,
            sum: u64::from_le_bytes(sum),
        })
    }

    fn began(&mut self, reader: &mut Reader<'_>) -> Result<Checkpoint, Problem> {
        let state = reader.text()?;
        let state = serde_json::from_slice(state).ok();
        let checkpoint = state.as_ref().and_then(Checkpoint::of_state);
        let mut checkpoint =
            checkpoint.ok_or_else(|| reader.problem("the state of a checkpoint is unreadable"))?;
        let nothing = Mirror::new();
        for _ in 0..reader.number()? {
            let kind = kind(reader)?;
            let text = self.object(kind, reader, &nothing)?;
            if matches!(self.objects, Objects::Skipped) {
                continue;
            }
            let object = Object::decode(kind, &text)
                .map_err(|problem| reader.problem(&problem.to_string()))?;
            checkpoint.objects.push(object);
        }
        Ok(checkpoint)
    }

    fn wanted(&mut self, reader: &mut Reader<'_>) -> Result<Wanted, Problem> {
        let target = key(reader)?;
        let tag = reader.byte()?;
        let word = |reader: &mut Reader<'_>| reader.word().map(Box::<str>::from);
        let how = match tag {
            0 => How::Create(None),
            1 => How::Create(Some(KeyMaterial::SshEd25519)),
            2 => How::Create(Some(KeyMaterial::SshRsa2048)),
            3..=5 => How::Patch {
                uid: word(reader)?,
                resource_version: reader.word()?.into(),
                part: [Part::Whole, Part::Status, Part::Finalize][usize::from(tag - 3)],
            },
            6..=8 => {
                let uid = word(reader)?;
                let has_version = reader.byte()? == 1;
                let version = reader.word()?.into();
                let has_grace = reader.byte()? == 1;
                let grace = reader.signed()?;
                let all = [
                    Propagation::Background,
                    Propagation::Foreground,
                    Propagation::Orphan,
                ];
                How::Delete {
                    uid,
                    resource_version: has_version.then_some(version),
                    grace_seconds: has_grace.then_some(grace),
                    propagation: all[usize::from(tag - 6)],
                }
            }
            9 | 10 => How::Bind {
                uid: word(reader)?,
                node: word(reader)?,
                annotations: match tag {
                    10 => texts(reader)?,
                    _ => TextMap::new(),
                },
            },
            11 => How::Create(Some(KeyMaterial::SshEd25519AndHost)),
            other => return Err(reader.problem(&format!("no write begins with {other}"))),
        };
        let mut body = Body::default();
        if matches!(how, How::Create(_) | How::Patch { .. }) {
            let base = self.bodies.entry((target.kind, tag)).or_default();
            let form = undelta(base, reader)?;
            base.clone_from(&form);
            body = Body::read(form).map_err(|what| reader.problem(what))?;
        }
        Ok(Wanted { target, how, body })
    }

    fn page(&mut self, reader: &mut Reader<'_>, mirror: &Mirror) -> Result<PageTold, Problem> {
        let mut page = PageTold {
            kind: kind(reader)?,
            revision: reader.number()?,
            continue_token: reader.word()?.to_owned(),
            put: Vec::new(),
            gone: Vec::new(),
        };
        for _ in 0..reader.number()? {
            match reader.byte()? {
                0 => page.gone.push(name(page.kind, reader)?),
                _ => page.put.push(self.object(page.kind, reader, mirror)?),
            }
        }
        Ok(page)
    }

    /// An object against what was held, or the last of its kind, as JSON.
    fn object(
        &mut self,
        kind: Kind,
        reader: &mut Reader<'_>,
        mirror: &Mirror,
    ) -> Result<String, Problem> {
        let flags = reader.byte()?;
        if flags & flag::NAMES != 0 {
            for _ in 0..reader.number()? {
                self.names.learn(reader.word()?);
            }
        }
        let held = match flags & flag::HELD {
            0 => None,
            _ => Some(name(kind, reader)?),
        };
        if matches!(self.objects, Objects::Skipped) {
            reader.text()?;
            return Ok(String::new());
        }
        let Some(key) = held else {
            let base = self.fresh.entry(kind).or_default();
            let form = undelta(base, reader)?;
            base.clone_from(&form);
            return self.shown(kind, form, reader);
        };
        let form = match &self.objects {
            Objects::Blanked(objects) if objects.contains_key(&key) => {
                undelta(&objects[&key], reader)?
            }
            _ => {
                let held = mirror.object(&key).ok_or_else(|| {
                    let name = super::record::Named(&key);
                    reader.problem(&format!("{name} changes and was never there"))
                })?;
                let (mut base, mut told) = (Form::default(), Form::default());
                write(held, &self.tokens, &mut self.names, &mut base, &mut told);
                undelta(&base.bytes, reader)?
            }
        };
        self.shown(kind, form, reader)
    }

    fn shown(&mut self, kind: Kind, form: Vec<u8>, reader: &Reader<'_>) -> Result<String, Problem> {
        let json = |form: &[u8], names: &Names| {
            form::json(form, names).map_err(|what| reader.problem(what))
        };
        let Objects::Blanked(objects) = &mut self.objects else {
            return json(&form, &self.names);
        };
        let mut blank = Form::default();
        form::told(&form, kind, &Tokens::blank(), &self.names, &mut blank);
        let text = json(&blank.bytes, &self.names)?;
        let object =
            Object::decode(kind, &text).map_err(|problem| reader.problem(&problem.to_string()))?;
        // One that has gone may come again: its last form does no harm, for what comes then has no
        // base, or this one's successor.
        match blank.bytes == form {
            true => objects.remove(&object.key()),
            false => objects.insert(object.key(), form),
        };
        Ok(text)
    }
}

fn undelta(base: &[u8], reader: &mut Reader<'_>) -> Result<Vec<u8>, Problem> {
    let delta = reader.text()?;
    let offset = reader.offset() - delta.len() as u64;
    delta::apply(base, delta, offset)
}

/// Texts by texts, as many as are told.
fn texts(reader: &mut Reader<'_>) -> Result<TextMap, Problem> {
    let mut all = TextMap::new();
    for _ in 0..reader.number()? {
        let key = reader.word()?.into();
        all.insert(key, reader.word()?.into());
    }
    Ok(all)
}

fn kind(reader: &mut Reader<'_>) -> Result<Kind, Problem> {
    let byte = reader.byte()?;
    let row = KINDS.get(usize::from(byte));
    row.map(|row| row.kind)
        .ok_or_else(|| reader.problem(&format!("no kind has the number {byte}")))
}

fn key(reader: &mut Reader<'_>) -> Result<ObjectKey, Problem> {
    let kind = kind(reader)?;
    name(kind, reader)
}

fn name(kind: Kind, reader: &mut Reader<'_>) -> Result<ObjectKey, Problem> {
    let namespace = reader.word()?;
    let name = reader.word()?;
    Ok(ObjectKey::new(kind, namespace, name))
}

fn small(reader: &mut Reader<'_>) -> Result<u32, Problem> {
    let value = reader.number()?;
    u32::try_from(value).map_err(|_| reader.problem("a number is too large"))
}

fn refusal(reader: &mut Reader<'_>) -> Result<Refusal, Problem> {
    let code = reader.number()?;
    let code = u16::try_from(code).map_err(|_| reader.problem("a code is too large"))?;
    let (reason, message) = (reader.word()?.into(), reader.word()?.into());
    let after = reader.number()?;
    Ok(Refusal {
        code,
        reason,
        message,
        retry_after_seconds: after.checked_sub(1).and_then(|it| u32::try_from(it).ok()),
    })
}
