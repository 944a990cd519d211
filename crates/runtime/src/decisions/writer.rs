//! The writer: records become frames, frames become segments, old segments go.
//!
//! A file holds whole frames only, and none without the checkpoint that it begins with: what cannot
//! be written whole is taken back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use api::time::Time;
use driver::log::{Encoder, Header, Record, Tokens, frame, opening};

use super::shelf::{Shelf, Sink};
use super::{Wish, name_of};

/// A frame is written when it has grown to so many bytes, or when nothing has come for so long.
const FRAME_BYTES: usize = 256 << 10;
const FRAME_WAIT: Duration = Duration::from_secs(1);
/// So many segments share the bytes that may be kept.
pub(super) const SEGMENTS_WANTED: u64 = 8;
/// Where a segment could not be written, the next is asked for after so long, in milliseconds.
pub(super) const AGAIN_MS: i64 = 60_000;

/// Records, and what was true when they were taken.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) term: u64,
    pub(super) now: Time,
}

/// What writer and driver tell each other.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The writer wants a new segment.
    pub(super) wants_segment: AtomicBool,
    /// Records that the writer was given and has not put into frames.
    pub(super) waiting: AtomicUsize,
}

pub(super) struct Writer<S> {
    wish: Wish,
    tokens: Tokens,
    encoder: Encoder,
    shelf: S,
    stands: Stands,
    frame: Vec<u8>,
    /// Records in the frame.
    framed: u64,
    signals: Arc<Signals>,
    /// A new segment was asked for since this one began.
    has_asked: bool,
    lost: u64,
    again_at: Option<Time>,
    /// Lines for the log.
    pub(super) notices: Vec<String>,
}

/// Where the writer stands.
enum Stands {
    /// Before any segment, or after one that could not be written.
    Outside,
    /// A segment's first frame is not written yet.
    Beginning { name: String, opening: Vec<u8> },
    /// In a segment of so many bytes.
    Inside { sink: Box<dyn Sink>, bytes: u64 },
}

impl<S: Shelf> Writer<S> {
    pub(super) fn new(wish: Wish, tokens: Tokens, shelf: S, signals: Arc<Signals>) -> Writer<S> {
        Writer {
            wish,
            encoder: Encoder::new(tokens.clone()),
            tokens,
            shelf,
            stands: Stands::Outside,
            frame: Vec::new(),
            framed: 0,
            signals,
            has_asked: false,
            lost: 0,
            again_at: None,
            notices: Vec::new(),
        }
    }

    /// Writes what comes until nobody can send any more.
    pub(super) fn run(&mut self, taken: &Receiver<Batch>) {
        let mut flushed = Instant::now();
        loop {
            let heard = taken.recv_timeout(FRAME_WAIT);
            let is_over = matches!(heard, Err(RecvTimeoutError::Disconnected));
            match heard {
                Ok(batch) => self.take(batch),
                Err(_) => self.flush(),
            }
            if flushed.elapsed() >= FRAME_WAIT {
                self.flush();
                flushed = Instant::now();
            }
            if is_over {
                self.say_lost();
            }
            for notice in self.notices.drain(..) {
                tracing::warn!("{notice}");
            }
            if is_over {
                return;
            }
        }
    }

    /// Puts records into frames.
    pub(super) fn take(&mut self, batch: Batch) {
        for record in &batch.records {
            self.put(record, batch.term);
            self.signals.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        if self.frame.len() >= FRAME_BYTES {
            self.flush();
        }
        if self.again_at.is_some_and(|at| batch.now >= at) {
            self.again_at = None;
            self.has_asked = false;
            self.ask();
        } else if matches!(self.stands, Stands::Outside) && self.again_at.is_none() {
            self.again_at = Some(batch.now.plus_ms(AGAIN_MS));
        }
    }

    fn ask(&mut self) {
        if !self.has_asked {
            self.has_asked = true;
            self.signals.wants_segment.store(true, Ordering::Relaxed);
        }
    }

    fn put(&mut self, record: &Record, term: u64) {
        if let Record::Began {
            checkpoint,
            settings,
        } = record
        {
            self.flush();
            self.has_asked = false;
            self.encoder = Encoder::new(self.tokens.clone());
            let now = checkpoint.now;
            let header = Header::new(settings, &self.tokens, self.wish.binary, term, now);
            self.stands = Stands::Beginning {
                name: name_of(now),
                opening: opening(&header),
            };
            self.drop_old(now);
        }
        match self.stands {
            Stands::Outside => self.lost += 1,
            Stands::Beginning { .. } | Stands::Inside { .. } => {
                self.encoder.put(record, &mut self.frame);
                self.framed += 1;
            }
        }
    }

    /// Writes what is there as a frame.
    pub(super) fn flush(&mut self) {
        if self.frame.is_empty() {
            return;
        }
        let whole = frame(&self.frame);
        self.frame.clear();
        let framed = std::mem::take(&mut self.framed);
        let was = std::mem::replace(&mut self.stands, Stands::Outside);
        let written = match was {
            Stands::Outside => return,
            Stands::Beginning { name, opening } => self.begin(&name, &opening, &whole),
            Stands::Inside { sink, bytes } => append(sink, bytes, &whole),
        };
        match written {
            Ok((sink, bytes)) => {
                self.again_at = None;
                if bytes > self.wish.bytes_max / SEGMENTS_WANTED {
                    self.ask();
                }
                self.stands = Stands::Inside { sink, bytes };
            }
            Err(error) => {
                self.lost += framed;
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
