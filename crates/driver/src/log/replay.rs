//! Plays a segment again and compares what comes out.

use std::collections::BTreeMap;

use api::call::{Page, WatchLine};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use api::token::Tokens;
use mirror::Mirror;
use serde_json::value::RawValue;

use super::bytes::Reader;
use super::checkpoint::stub;
use super::decode::{Decoder, Objects, PageTold, Told};
use super::frame::{Problem, Segment};
use super::header::settings_of;
use super::record::{Asked, How, Planned, Record, Sum};
use crate::cycle::Otherwise;
use crate::driver::Driver;
use crate::settings::Settings;

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events that were handed in: pages, lines, answers, times.
    pub events: u64,
    /// Polls.
    pub polls: u64,
    /// Plans that were compared.
    pub plans: u64,
    /// Requests that were compared.
    pub requests: u64,
    /// Writes among them.
    pub writes: u64,
    /// Tasks that the plans place.
    pub places: u64,
    /// When the first record was made.
    pub from: Time,
    /// When the last one was.
    pub until: Time,
    /// Sum of what the log says went out.
    pub logged_sum: u64,
    /// Sum of what went out now.
    pub replayed_sum: u64,
    /// Where the two part, if they do.
    pub difference: Option<Difference>,
}

/// Where log and replay part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where the record ends in the file.
    pub offset: u64,
    /// When it was made.
    pub now: Time,
    /// What the log says went out.
    pub logged: String,
    /// What went out now.
    pub replayed: String,
}

/// What a watcher of a replay sees after each record.
#[derive(Debug)]
pub struct Moment<'a> {
    /// When.
    pub now: Time,
    /// The driver as it is after it.
    pub driver: &'a Driver,
    /// What controllers said about the object that is explained.
    pub steps: Vec<String>,
    /// What another engine would have decided otherwise.
    pub otherwise: Vec<Otherwise>,
    /// What went out.
    pub asked: Option<&'a Asked>,
    /// Plans that came with it.
    pub plans: &'a [Planned],
    /// Everything that it recorded of this.
    pub records: &'a [Record],
}

/// A segment that is being played.
#[derive(Debug)]
pub struct Replay<'a> {
    segment: &'a Segment<'a>,
    settings: Settings,
    tokens: Tokens,
    driver: Option<Driver>,
    decoder: Decoder,
    expected: Vec<Planned>,
    explained: Option<ObjectKey>,
    logged: Sum,
    replayed: Sum,
    summary: Summary,
}

impl<'a> Replay<'a> {
    /// Plays by the settings that the segment names.
    pub fn new(segment: &'a Segment<'a>, tokens: Tokens) -> Result<Replay<'a>, Problem> {
        let settings = settings_of(&segment.header.settings);
        let settings = settings.map_err(|what| Problem::Settings { what })?;
        Replay::by(segment, settings, tokens)
    }

    /// Plays by these settings.
    pub fn by(
        segment: &'a Segment<'a>,
        mut settings: Settings,
        tokens: Tokens,
    ) -> Result<Replay<'a>, Problem> {
        let is_keyed = segment.header.is_keyed_by(&tokens);
        let (tokens, objects) = match is_keyed {
            true => (tokens, Objects::Told),
            false => (Tokens::blank(), Objects::Blanked(BTreeMap::new())),
        };
        settings.controller_settings.tokens = Some(tokens.clone());
        settings.controller_settings.words = words_of(segment, &tokens)?;
        Ok(Replay {
            segment,
            settings,
            tokens,
            driver: None,
            decoder: Decoder::new(objects),
            expected: Vec::new(),
            explained: None,
            logged: Sum::default(),
            replayed: Sum::default(),
            summary: Summary::default(),
        })
    }

    /// Tells the steps of an object.
    #[must_use]
    pub fn explaining(mut self, key: ObjectKey) -> Replay<'a> {
        self.explained = Some(key);
        self
    }

    /// Asks an engine of another configuration the same. What of that is not known is left out.
    pub fn asking(mut self, placement: engine::Placement) -> Result<Replay<'a>, String> {
        let Some(engine) = &mut self.settings.engine else {
            return Err("the log is of a process that places nothing".to_owned());
        };
        let settings = engine::Settings {
            placement,
            ..engine.engine.settings().clone()
        };
        let (other, _) = engine::Engine::new(settings).map_err(|it| it.to_string())?;
        engine.other = Some(other);
        Ok(self)
    }

    /// Whether tokens are compared, or only that there are some.
    pub fn is_keyed(&self) -> bool {
        !self.tokens.is_blank()
    }

    /// Plays until that time or to the first difference; `see` is shown each moment.
    pub fn run(
        mut self,
        until: Option<Time>,
        see: &mut dyn FnMut(&Moment<'_>),
    ) -> Result<Summary, Problem> {
        let segment = self.segment;
        let nothing = Mirror::new();
        for (offset, frame) in &segment.frames {
            let mut reader = Reader::new(frame, *offset);
            while !reader.is_done() {
                let mirror = self.driver.as_ref().map_or(&nothing, Driver::mirror);
                let told = self.decoder.next(&mut reader, mirror)?;
                if until.is_some_and(|until| self.decoder.now > until) {
                    return Ok(self.done());
                }
                self.take(told, &reader, see)?;
                if self.summary.difference.is_some() {
                    return Ok(self.done());
                }
            }
        }
        Ok(self.done())
    }

    fn done(mut self) -> Summary {
        self.summary.logged_sum = self.logged.0;
        self.summary.replayed_sum = self.replayed.0;
        self.summary
    }

    fn take(
        &mut self,
        told: Told,
        reader: &Reader<'_>,
        see: &mut dyn FnMut(&Moment<'_>),
    ) -> Result<(), Problem> {
        let now = self.decoder.now;
        if let Told::Began(checkpoint) = told {
            self.summary.from = now;
            self.summary.until = now;
            let mut driver = Driver::resumed(self.settings.clone(), &checkpoint)
                .ok_or_else(|| reader.problem("the checkpoint is of another kind of driver"))?;
            driver.record_on(self.explained.clone());
            self.driver = Some(driver);
            return Ok(());
        }
        let Some(driver) = &mut self.driver else {
            return Err(reader.problem("a record comes before the checkpoint"));
        };
        self.summary.until = now;
        let asked = match told {
            Told::Planned(planned) => {
                self.expected.push(planned);
                return Ok(());
            }
            Told::Asked(asked) => {
                self.summary.polls += 1;
                return self.compare(asked, reader, see);
            }
            other => other,
        };
        self.summary.events += 1;
        hand_in(driver, asked, now).map_err(|what| reader.problem(&what))?;
        let records = driver.take_records();
        see(&Moment {
            now,
            steps: driver.take_steps(),
            otherwise: driver.take_otherwise(),
            driver,
            asked: None,
            plans: &[],
            records: &records,
        });
        Ok(())
    }

    /// Polls, and compares what comes out with what came out.
    fn compare(
        &mut self,
        asked: Option<Asked>,
        reader: &Reader<'_>,
        see: &mut dyn FnMut(&Moment<'_>),
    ) -> Result<(), Problem> {
        let now = self.decoder.now;
        let Some(driver) = &mut self.driver else {
            return Err(reader.problem("a record comes before the checkpoint"));
        };
        // What it wants is in its records, with its plans.
        let _wanted = driver.poll_request(now);
        let mut plans = Vec::new();
        let mut wanted = None;
        let records = driver.take_records();
        for record in &records {
            match record {
                Record::Planned(planned) => plans.push(*planned),
                Record::Asked { asked, .. } => wanted.clone_from(asked),
                _ => {}
            }
        }
        let wanted = wanted.map(|wanted| wanted.told(&self.tokens));
        let asked = match self.tokens.is_blank() {
            true => asked.map(|asked| asked.told(&self.tokens)),
            false => asked,
        };
        see(&Moment {
            now,
            steps: driver.take_steps(),
            otherwise: driver.take_otherwise(),
            driver,
            asked: wanted.as_ref(),
            plans: &plans,
            records: &records,
        });
        let expected = std::mem::take(&mut self.expected);
        add(&mut self.logged, &expected, asked.as_ref());
        add(&mut self.replayed, &plans, wanted.as_ref());
        self.summary.plans += expected.len() as u64;
        self.summary.places += expected
            .iter()
            .map(|plan| u64::from(plan.places))
            .sum::<u64>();
        self.summary.requests += u64::from(asked.is_some());
        self.summary.writes += u64::from(matches!(asked, Some(Asked::Write(_))));
        if expected != plans || asked != wanted {
            self.summary.difference = Some(Difference {
                offset: reader.offset(),
                now,
                logged: words(&expected, asked.as_ref()),
                replayed: words(&plans, wanted.as_ref()),
            });
        }
        Ok(())
    }
}

/// The words of templates that are made in a segment: what each would be of the template as the log
/// has it, and what it is.
fn words_of(segment: &Segment<'_>, tokens: &Tokens) -> Result<BTreeMap<String, String>, Problem> {
    let mut decoder = Decoder::new(Objects::Skipped);
    let nothing = Mirror::new();
    let mut words = BTreeMap::new();
    let mut made: BTreeMap<String, i32> = BTreeMap::new();
    for (offset, frame) in &segment.frames {
        let mut reader = Reader::new(frame, *offset);
        while !reader.is_done() {
            let told = decoder.next(&mut reader, &nothing)?;
            let Told::Asked(Some(Asked::Write(wanted))) = told else {
                continue;
            };
            if !matches!(wanted.how, How::Create(_))
                || !matches!(
                    wanted.target.kind,
                    Kind::ReplicaSet | Kind::ControllerRevision
                )
            {
                continue;
            }
            let kind = wanted.target.kind;
            let body = wanted.body.told(kind, tokens).value();
            let first =
                controllers::word_of(kind, &body, 0).and_then(|(_, shown)| shown.first().cloned());
            let Some(first) = first else { continue };
            let before = made.entry(first).or_default();
            if let Some((word, shown)) = controllers::word_of(kind, &body, *before) {
                words.extend(shown.into_iter().map(|shown| (shown, word.clone())));
            }
            *before += 1;
        }
    }
    Ok(words)
}

fn add(sum: &mut Sum, plans: &[Planned], asked: Option<&Asked>) {
    for plan in plans {
        sum.add(&[plan.tick, u64::from(plan.others), plan.sum]);
    }
    match asked {
        Some(Asked::Write(wanted)) => {
            sum.text(wanted.target.name.as_bytes());
            sum.text(wanted.body.bytes());
        }
        Some(_) => sum.add(&[1]),
        None => sum.add(&[0]),
    }
}

fn words(plans: &[Planned], asked: Option<&Asked>) -> String {
    let mut words: Vec<String> = plans
        .iter()
        .map(|plan| {
            format!(
                "a plan at tick {} of {} places, {} evictions and {} others (sum {:016x})",
                plan.tick, plan.places, plan.evictions, plan.others, plan.sum
            )
        })
        .collect();
    words.push(asked.map_or_else(|| "no request".to_owned(), ToString::to_string));
    words.join("; ")
}

/// Hands an event to the driver as its shell did.
fn hand_in(driver: &mut Driver, told: Told, now: Time) -> Result<(), String> {
    match told {
        Told::Began(_) | Told::Asked(_) | Told::Planned(_) => {}
        Told::Passed => driver.handle_time(now),
        Told::Leapt => driver.handle_leap(now),
        Told::Page(id, Err(refusal)) => driver.handle_page(id, Err(refusal), now),
        Told::Page(id, Ok(page)) => {
            let page = page_of(driver.mirror(), page)?;
            driver.handle_page(id, Ok(page), now);
        }
        Told::Put(id, text) => driver.handle_watch(id, WatchLine::Applied(raw(text)?), now),
        Told::Gone(id, key, seen) => {
            let held = driver.mirror().object(&key);
            let uid = held.map(|held| held.uid().to_owned()).unwrap_or_default();
            let text = stub(&key, &uid, &seen.to_string());
            driver.handle_watch(id, WatchLine::Deleted(raw(text)?), now);
        }
        Told::Seen(id, seen) => driver.handle_watch(id, WatchLine::Bookmark(seen), now),
        Told::LineFailed(id, refusal) => {
            driver.handle_watch(id, WatchLine::Failed(refusal), now);
        }
        Told::Closed(id, refusal) => driver.handle_closed(id, refusal, now),
        Told::Written(id, outcome) => driver.handle_written(id, outcome, now),
        Told::Got(id, answer) => {
            let answer = match answer {
                Ok(Some(text)) => Ok(Some(raw(text)?)),
                Ok(None) => Ok(None),
                Err(refusal) => Err(refusal),
            };
            driver.handle_got(id, answer, now);
        }
        Told::Answered(id, answer) => driver.handle_answered(id, answer, now)?,
        Told::Released => driver.release(now),
        Told::Due => driver.handle_checkpoint(now),
    }
    Ok(())
}

/// A page that does what the logged one did: it names what has changed and, at the end of a list,
/// what is still there.
fn page_of(mirror: &Mirror, told: PageTold) -> Result<Page, String> {
    let PageTold {
        kind,
        revision,
        continue_token,
        put,
        gone,
    } = told;
    let mut items = Vec::new();
    if continue_token.is_empty() {
        for object in mirror.objects(kind) {
            let key = object.key();
            let version = &object.meta().resource_version;
            // Without a version it counts as changed, and stands among those.
            if version.is_empty() || gone.contains(&key) {
                continue;
            }
            items.push(raw(stub(&key, object.uid(), version))?);
        }
    }
    for text in put {
        items.push(raw(text)?);
    }
    Ok(Page {
        items,
        continue_token,
        revision,
    })
}

fn raw(text: String) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text).map_err(|error| error.to_string())
}
