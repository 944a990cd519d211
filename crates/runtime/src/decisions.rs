//! The decision log on disk: segments in a directory, written by a thread of their own.
//!
//! A file is a segment; it is named by the instant at which it began, so that names sort by age.
//! Each begins with a checkpoint, so that the oldest can go. Beside them lies the key of their tokens,
//! for this user only: whoever is given a segment without it cannot try out what a secret was.
//!
//! Records become bytes in the thread that decides, event by event; of a checkpoint, which may be of
//! many objects, the writer's thread makes them, and has the encoder for as long.
//!
//! What is on its way to the disk is bounded: the writer holds [`WAITING_MAX`] bytes, and one more
//! frame; beyond them, and while a checkpoint is put down, the driver keeps what it has done up to its
//! own limit, then gives it up, says so, and the log goes on with a new segment.

mod shelf;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use api::time::Time;
use driver::Driver;
use driver::log::{Encoder, Record, Tokens};

use shelf::{Directory, Shelf};
use writer::{Parcel, Signals, What, Writer};

/// How a segment's name ends.
pub const SUFFIX: &str = ".decisions";
/// The key's file.
pub const KEY: &str = "key";

/// A frame goes to the writer when it has grown to so many bytes, or after so long.
const FRAME_BYTES: usize = 256 << 10;
const FRAME_MS: i64 = 1_000;
/// A writer that has so many bytes before it gets no more.
const WAITING_MAX: usize = 8 << 20;

/// Where to log, and how much of it to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The directory, made where it is missing.
    pub directory: PathBuf,
    /// Segments that ended so long ago are removed, in milliseconds.
    pub keep_ms: i64,
    /// And the oldest, beyond so many bytes.
    pub bytes_max: u64,
    /// A new segment begins after so long, in milliseconds.
    pub segment_ms: i64,
    /// The version of the binary.
    pub binary: &'static str,
}

/// The driver's side of the log.
#[derive(Debug)]
pub struct DecisionLog {
    parcels: Option<Sender<Parcel>>,
    /// What records become bytes by; `None` while the writer has it for a checkpoint.
    encoder: Option<Encoder>,
    returned: Receiver<Encoder>,
    /// Records on their way through the encoder.
    records: Vec<Record>,
    /// The bytes of so many records.
    frame: Vec<u8>,
    framed: u64,
    sent_at: Time,
    segment_ms: i64,
    segment_due: Time,
    signals: Arc<Signals>,
    writer: Option<JoinHandle<()>>,
}

impl DecisionLog {
    /// Begins to log what a driver does that has done nothing yet.
    pub fn begin(wish: Wish, driver: &mut Driver, now: Time) -> io::Result<DecisionLog> {
        let directory = Directory::open(&wish.directory)?;
        let tokens = Tokens::keyed(directory.key()?);
        DecisionLog::begin_on(directory, tokens, wish, driver, now)
    }

    fn begin_on(
        shelf: impl Shelf,
        tokens: Tokens,
        wish: Wish,
        driver: &mut Driver,
        now: Time,
    ) -> io::Result<DecisionLog> {
        let signals = Arc::new(Signals::default());
        let (mut log, taken, returns) =
            DecisionLog::new(&tokens, wish.segment_ms, Arc::clone(&signals), now);
        let mut writer = Writer::new(wish, tokens, shelf, signals);
        let writer = std::thread::Builder::new()
            .name("katmai-decisions".to_owned())
            .spawn(move || writer.run(&taken, &returns))?;
        driver.record(now);
        log.writer = Some(writer);
        Ok(log)
    }

    /// Without a writer: what one takes, and where it returns encoders.
    fn new(
        tokens: &Tokens,
        segment_ms: i64,
        signals: Arc<Signals>,
        now: Time,
    ) -> (DecisionLog, Receiver<Parcel>, Sender<Encoder>) {
        let (parcels, taken) = channel();
        let (returns, returned) = channel();
        let log = DecisionLog {
            parcels: Some(parcels),
            encoder: Some(Encoder::new(tokens.clone())),
            returned,
            records: Vec::new(),
            frame: Vec::new(),
            framed: 0,
            sent_at: now,
            segment_ms,
            segment_due: now.plus_ms(segment_ms),
            signals,
            writer: None,
        };
        (log, taken, returns)
    }

    /// When [`DecisionLog::take`] has something to do although nothing happens.
    pub(crate) fn wake(&self, driver: &Driver) -> Option<Time> {
        let has_some = !self.frame.is_empty() || driver.records_waiting() > 0;
        has_some.then(|| self.sent_at.plus_ms(FRAME_MS))
    }

    /// Turns what the driver has just done into bytes. Objects are put down while they are at hand:
    /// a thread that comes to them a thousand events later takes twice as long.
    pub(crate) fn note(&mut self, driver: &mut Driver) {
        if self.signals.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            self.encode(driver);
        }
    }

    /// Notes what the driver has done, sends it when its time has come, and then asks for a new
    /// segment if one is due.
    pub(crate) fn take(&mut self, driver: &mut Driver, now: Time) {
        self.note(driver);
        if now < self.sent_at.plus_ms(FRAME_MS) && now >= self.sent_at {
            return;
        }
        self.sent_at = now;
        self.send_frame(now);
        let is_old = now >= self.segment_due || now < self.segment_due.plus_ms(-self.segment_ms);
        if self.signals.wants_segment.swap(false, Ordering::Relaxed) || is_old {
            self.segment_due = now.plus_ms(self.segment_ms);
            driver.handle_checkpoint(now);
        }
    }

    fn encode(&mut self, driver: &mut Driver) {
        if self.encoder.is_none() {
            self.encoder = self.returned.try_recv().ok();
        }
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        driver.take_records_into(&mut self.records);
        let before = self.records.iter().take_while(|it| !it.is_beginning());
        let mut count = 0;
        for record in before {
            encoder.put(record, &mut self.frame);
            count += 1;
        }
        self.framed += count as u64;
        if count < self.records.len() {
            let records = self.records.split_off(count);
            self.begin_segment(records, driver.metrics().terms);
        } else if self.frame.len() >= FRAME_BYTES {
            self.send_frame(self.sent_at);
        }
    }

    fn begin_segment(&mut self, records: Vec<Record>, term: u64) {
        self.send_frame(self.sent_at);
        self.encoder = None;
        self.send(What::Segment { records, term }, self.sent_at);
    }

    fn send_frame(&mut self, now: Time) {
        if self.frame.is_empty() {
            return;
        }
        // The next one is about as long.
        let next = Vec::with_capacity(self.frame.len());
        let bytes = std::mem::replace(&mut self.frame, next);
        let records = std::mem::take(&mut self.framed);
        self.signals
            .waiting
            .fetch_add(bytes.len(), Ordering::Relaxed);
        self.send(What::Frame { bytes, records }, now);
    }

    fn send(&mut self, what: What, now: Time) {
        let Some(parcels) = &self.parcels else {
            return;
        };
        // It ends only when it panics, and has printed that.
        if parcels.send(Parcel { what, now }).is_err() {
            self.parcels = None;
        }
    }

    /// Writes down what is left.
    pub(crate) fn end(mut self, driver: &mut Driver, now: Time) {
        self.encode(driver);
        while self.encoder.is_none() {
            // It comes back unless the writer has panicked.
            match self.returned.recv() {
                Ok(encoder) => self.encoder = Some(encoder),
                Err(_) => return,
            }
            self.encode(driver);
        }
        self.send_frame(now);
    }
}

impl Drop for DecisionLog {
    fn drop(&mut self) {
        self.parcels = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been printed by its thread already.
            let _ = writer.join();
        }
    }
}

/// `2026-11-22T10:52:59.000000Z` without what is trouble in a file's name.
fn name_of(began: Time) -> String {
    let text: String = began.micro().chars().filter(|one| *one != ':').collect();
    format!("{text}{SUFFIX}")
}
