//! The decision log on disk: segments in a directory, written by a thread of their own.
//!
//! A file is a segment; it is named by the instant at which it began, so that names sort by age.
//! Each begins with a checkpoint, so that the oldest can go. Beside them lies the key of their tokens,
//! for this user only: whoever is given a segment without it cannot try out what a secret was.
//!
//! What is on its way to the disk is bounded: the writer holds [`WAITING_MAX`] records, and one more
//! batch; beyond them the driver keeps what it has done up to its own limit, then gives it up, says
//! so, and the log goes on with a new segment.

mod shelf;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use api::time::Time;
use driver::Driver;
use driver::log::Tokens;

use shelf::{Directory, Shelf};
use writer::{Batch, Signals, Writer};

/// How a segment's name ends.
pub const SUFFIX: &str = ".decisions";
/// The key's file.
pub const KEY: &str = "key";

/// Records are handed to the writer when there are so many, or after so long.
const BATCH: usize = 1_024;
const BATCH_MS: i64 = 250;
/// A writer that has so many before it gets no more.
const WAITING_MAX: usize = 65_536;

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
    batches: Option<Sender<Batch>>,
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
        let (batches, taken) = channel();
        let signals = Arc::new(Signals::default());
        let segment_ms = wish.segment_ms;
        let mut writer = Writer::new(wish, tokens, shelf, Arc::clone(&signals));
        let writer = std::thread::Builder::new()
            .name("katmai-decisions".to_owned())
            .spawn(move || writer.run(&taken))?;
        driver.record(now);
        Ok(DecisionLog {
            batches: Some(batches),
            sent_at: now,
            segment_ms,
            segment_due: now.plus_ms(segment_ms),
            signals,
            writer: Some(writer),
        })
    }

    /// When [`DecisionLog::take`] has something to do although nothing happens.
    pub(crate) fn wake(&self, driver: &Driver) -> Option<Time> {
        (driver.records_waiting() > 0).then(|| self.sent_at.plus_ms(BATCH_MS))
    }

    /// Takes what the driver has done, if there is enough of it, and asks for a new segment when its
    /// time has come.
    pub(crate) fn take(&mut self, driver: &mut Driver, now: Time) {
        let is_due = now >= self.sent_at.plus_ms(BATCH_MS) || now < self.sent_at;
        if !is_due && driver.records_waiting() < BATCH {
            return;
        }
        self.sent_at = now;
        let is_old = now >= self.segment_due || now < self.segment_due.plus_ms(-self.segment_ms);
        if self.signals.wants_segment.swap(false, Ordering::Relaxed) || is_old {
            self.segment_due = now.plus_ms(self.segment_ms);
            driver.handle_checkpoint(now);
        }
        if self.signals.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            self.send(driver, now);
        }
    }

    fn send(&mut self, driver: &mut Driver, now: Time) {
        let batch = Batch {
            records: driver.take_records(),
            term: driver.metrics().terms,
            now,
        };
        let Some(batches) = &self.batches else {
            return;
        };
        let count = batch.records.len();
        self.signals.waiting.fetch_add(count, Ordering::Relaxed);
        // It ends only when it panics, and has printed that.
        if batches.send(batch).is_err() {
            self.batches = None;
        }
    }

    /// Writes down what is left.
    pub(crate) fn end(mut self, driver: &mut Driver, now: Time) {
        self.send(driver, now);
    }
}

impl Drop for DecisionLog {
    fn drop(&mut self) {
        self.batches = None;
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
