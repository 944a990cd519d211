//! The writer: frames become segments, old segments go.
//!
//! A file holds whole frames only, and none without the checkpoint that it begins with: what cannot
//! be written whole is taken back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use api::time::Time;
use driver::log::{Encoder, Header, Record, Tokens, frame, opening};

use super::shelf::{Shelf, Sink};
use super::{Wish, name_of};

/// So many segments share the bytes that may be kept.
pub(super) const SEGMENTS_WANTED: u64 = 8;
/// Where a segment could not be written, the next is asked for after so long, in milliseconds.
pub(super) const AGAIN_MS: i64 = 60_000;

/// What comes from the side that decides.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) what: What,
    pub(super) now: Time,
}

#[derive(Debug)]
pub(super) enum What {
    /// The first of these records begins a segment, in that term. The encoder goes back once they are
    /// bytes.
    Segment { records: Vec<Record>, term: u64 },
    /// So many records as bytes.
    Frame { bytes: Vec<u8>, records: u64 },
}

/// What writer and driver tell each other.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The writer wants a new segment.
    pub(super) wants_segment: AtomicBool,
    /// Bytes that the writer was given and has not written.
    pub(super) waiting: AtomicUsize,
}

pub(super) struct Writer<S> {
    wish: Wish,
    tokens: Tokens,
    shelf: S,
    /// The segment, and how long it is; `None` before any, and after one that could not be written.
    segment: Option<(Box<dyn Sink>, u64)>,
    signals: Arc<Signals>,
    /// A new segment was asked for since this one began.
    has_asked: bool,
    lost: u64,
    again_at: Option<Time>,
    /// Lines for the log.
    pub(super) notices: Vec<String>,
}

impl<S: Shelf> Writer<S> {
    pub(super) fn new(wish: Wish, tokens: Tokens, shelf: S, signals: Arc<Signals>) -> Writer<S> {
        Writer {
            wish,
            tokens,
            shelf,
            segment: None,
            signals,
            has_asked: false,
            lost: 0,
            again_at: None,
            notices: Vec::new(),
        }
    }

    /// Writes what comes until nobody can send any more, and gives back what it encoded with.
    pub(super) fn run(&mut self, taken: &Receiver<Parcel>, returns: &Sender<Encoder>) {
        for parcel in taken {
            if let Some(encoder) = self.take(parcel) {
                // Where nobody waits for it any more the plane has ended.
                let _ = returns.send(encoder);
            }
            self.tell();
        }
        self.say_lost();
        self.tell();
    }

    fn tell(&mut self) {
        for notice in self.notices.drain(..) {
            tracing::warn!("{notice}");
        }
    }

    /// Writes a parcel; the encoder behind its records, where it began a segment.
    pub(super) fn take(&mut self, parcel: Parcel) -> Option<Encoder> {
        let Parcel { what, now } = parcel;
        let encoder = match what {
            What::Segment { records, term } => Some(self.segments(&records, term)),
            What::Frame { bytes, records } => {
                self.append(&bytes, records);
                self.signals
                    .waiting
                    .fetch_sub(bytes.len(), Ordering::Relaxed);
                None
            }
        };
        if self.again_at.is_some_and(|at| now >= at) {
            self.again_at = None;
            self.has_asked = false;
            self.ask();
        } else if self.segment.is_none() && self.again_at.is_none() {
            self.again_at = Some(now.plus_ms(AGAIN_MS));
        }
        encoder
    }

    fn ask(&mut self) {
        if !self.has_asked {
            self.has_asked = true;
            self.signals.wants_segment.store(true, Ordering::Relaxed);
        }
    }

    /// Writes the segments that begin among these records, each in one frame.
    fn segments(&mut self, records: &[Record], term: u64) -> Encoder {
        let mut encoder = Encoder::new(self.tokens.clone());
        for segment in records.chunk_by(|_, next| !next.is_beginning()) {
            encoder = Encoder::new(self.tokens.clone());
            let mut bytes = Vec::new();
            for record in segment {
                encoder.put(record, &mut bytes);
            }
            if let Some(Record::Began {
                checkpoint,
                settings,
            }) = segment.first()
            {
                let now = checkpoint.now;
                let header = Header::new(settings, &self.tokens, self.wish.binary, term, now);
                self.has_asked = false;
                self.drop_old(now);
                let begun = self.begin(&name_of(now), &opening(&header), &frame(&bytes));
                self.stand(begun, segment.len() as u64);
            }
        }
        encoder
    }

    /// Writes a frame behind what is there, where a segment is.
    fn append(&mut self, bytes: &[u8], records: u64) {
        match self.segment.take() {
            None => self.lost += records,
            Some((sink, length)) => {
                let written = append(sink, length, &frame(bytes));
                self.stand(written, records);
            }
        }
    }

    /// Goes on in a segment, or without one and without so many records.
    fn stand(&mut self, written: io::Result<(Box<dyn Sink>, u64)>, records: u64) {
        match written {
            Ok((sink, bytes)) => {
                self.again_at = None;
                if bytes > self.wish.bytes_max / SEGMENTS_WANTED {
                    self.ask();
                }
                self.segment = Some((sink, bytes));
            }
            Err(error) => {
                self.segment = None;
                self.lost += records;
                self.notices.push(format!(
                    "the decision log in {} stands still, a new segment is tried every {} s: {error}",
                    self.wish.directory.display(),
                    AGAIN_MS / 1_000,
                ));
            }
        }
    }

    fn begin(
        &mut self,
        name: &str,
        opening: &[u8],
        whole: &[u8],
    ) -> io::Result<(Box<dyn Sink>, u64)> {
        let mut sink = self.shelf.begin(name)?;
        let all = [opening, whole].concat();
        if let Err(error) = sink.append(&all) {
            if let Err(error) = self.shelf.remove(name) {
                self.notices.push(format!("cannot remove {name}: {error}"));
            }
            return Err(error);
        }
        self.say_lost();
        Ok((sink, all.len() as u64))
    }

    fn say_lost(&mut self) {
        if self.lost > 0 {
            self.notices.push(format!(
                "the decision log in {} lacks {} records that could not be written",
                self.wish.directory.display(),
                self.lost
            ));
            self.lost = 0;
        }
    }

    /// Removes segments whose successor began too long ago, and the oldest that are too many.
    fn drop_old(&mut self, now: Time) {
        let all = match self.shelf.all() {
            Ok(all) => all,
            Err(error) => {
                self.notices
                    .push(format!("cannot look for old logs: {error}"));
                return;
            }
        };
        let horizon = name_of(now.plus_ms(-self.wish.keep_ms));
        let room = self.wish.bytes_max - self.wish.bytes_max / SEGMENTS_WANTED;
        let mut kept = 0_u64;
        let mut successor: Option<&str> = None;
        for (name, bytes) in all.iter().rev() {
            kept = kept.saturating_add(*bytes);
            let is_old = successor.is_some_and(|name| *name < *horizon);
            if (is_old || kept > room)
                && let Err(error) = self.shelf.remove(name)
            {
                self.notices.push(format!("cannot remove {name}: {error}"));
            }
            successor = Some(name);
        }
    }
}

/// Writes a frame behind what is there, or leaves what is there as it was.
fn append(mut sink: Box<dyn Sink>, bytes: u64, whole: &[u8]) -> io::Result<(Box<dyn Sink>, u64)> {
    match sink.append(whole) {
        Ok(()) => Ok((sink, bytes + whole.len() as u64)),
        Err(error) => match sink.cut(bytes) {
            Ok(()) => Err(error),
            // Whoever reads it leaves the tail out.
            Err(uncut) => Err(io::Error::other(format!(
                "{error}; its last frame is unfinished: {uncut}"
            ))),
        },
    }
}
