//! The decision log on disk: segments in a directory, written by a thread of their own.
//!
//! A file is a segment; it is named by the instant at which it began, so that names sort by age.
//! Each begins with a checkpoint, so that the oldest can go. Beside them lies the key of their tokens,
//! for this user only: whoever is given a segment without it cannot try out what a secret was.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use api::time::Time;
use driver::Driver;
use driver::log::{Encoder, Header, Record, Tokens, frame, opening};

/// How a segment's name ends.
pub const SUFFIX: &str = ".decisions";
/// The key's file.
pub const KEY: &str = "key";

/// Records are handed to the writer when there are so many, or after so long.
const BATCH: usize = 1_024;
const BATCH_MS: i64 = 250;
/// Batches that wait for the writer; beyond them the driver keeps what it has done.
const BATCHES_MAX: usize = 16;
/// A frame is written when it has grown to so many bytes, or when nothing has come for so long.
const FRAME_BYTES: usize = 256 << 10;
const FRAME_WAIT: Duration = Duration::from_secs(1);
/// So many segments share the bytes that may be kept.
const SEGMENTS_WANTED: u64 = 8;

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
    batches: Option<SyncSender<Batch>>,
    unsent: Option<Batch>,
    sent_at: Time,
    segment_ms: i64,
    segment_due: Time,
    is_full: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Batch {
    records: Vec<Record>,
    term: u64,
}

impl DecisionLog {
    /// Begins to log what a driver does that has done nothing yet.
    pub fn begin(wish: Wish, driver: &mut Driver, now: Time) -> io::Result<DecisionLog> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&wish.directory)?;
        let tokens = Tokens::keyed(key(&wish.directory)?);
        let (batches, taken) = sync_channel(BATCHES_MAX);
        let is_full = Arc::new(AtomicBool::new(false));
        let segment_ms = wish.segment_ms;
        let mut writer = Writer {
            wish,
            settings: driver.settings().clone(),
            encoder: Encoder::new(tokens.clone()),
            tokens,
            file: None,
            bytes: 0,
            frame: Vec::new(),
            is_full: Arc::clone(&is_full),
        };
        let writer = std::thread::Builder::new()
            .name("katmai-decisions".to_owned())
            .spawn(move || writer.run(&taken))?;
        driver.record(now);
        Ok(DecisionLog {
            batches: Some(batches),
            unsent: None,
            sent_at: now,
            segment_ms,
            segment_due: now.plus_ms(segment_ms),
            is_full,
            writer: Some(writer),
        })
    }

    /// When [`DecisionLog::take`] has something to do although nothing happens.
    pub(crate) fn wake(&self, driver: &Driver) -> Option<Time> {
        let waits = self.unsent.is_some() || driver.records_waiting() > 0;
        waits.then(|| self.sent_at.plus_ms(BATCH_MS))
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
        if self.is_full.swap(false, Ordering::Relaxed) || is_old {
            self.segment_due = now.plus_ms(self.segment_ms);
            driver.handle_checkpoint(now);
        }
        let batch = self.unsent.take().unwrap_or_else(|| Batch {
            records: driver.take_records(),
            term: driver.metrics().terms,
        });
        if let Some(batches) = &self.batches {
            match batches.try_send(batch) {
                Ok(()) => {}
                // The writer is behind: the driver keeps what it does, up to its own limit.
                Err(TrySendError::Full(batch)) => self.unsent = Some(batch),
                // It has told why it ended.
                Err(TrySendError::Disconnected(_)) => self.batches = None,
            }
        }
    }

    /// Writes down what is left.
    pub(crate) fn end(mut self, driver: &mut Driver) {
        let last = Batch {
            records: driver.take_records(),
            term: driver.metrics().terms,
        };
        for batch in self.unsent.take().into_iter().chain([last]) {
            if let Some(batches) = &self.batches {
                // A writer that has ended wants no more.
                let _gone = batches.send(batch);
            }
        }
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

struct Writer {
    wish: Wish,
    settings: driver::Settings,
    tokens: Tokens,
    encoder: Encoder,
    /// None before a segment has begun, and after one could not be written.
    file: Option<File>,
    bytes: u64,
    frame: Vec<u8>,
    is_full: Arc<AtomicBool>,
}

impl Writer {
    fn run(&mut self, taken: &Receiver<Batch>) {
        let mut flushed = Instant::now();
        loop {
            match taken.recv_timeout(FRAME_WAIT) {
                Ok(batch) => {
                    for record in &batch.records {
                        self.put(record, batch.term);
                    }
                    if self.frame.len() >= FRAME_BYTES || flushed.elapsed() >= FRAME_WAIT {
                        self.flush();
                        flushed = Instant::now();
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
        }
    }

    fn put(&mut self, record: &Record, term: u64) {
        if let Record::Began(checkpoint) = record {
            self.flush();
            self.begin_segment(checkpoint.now, term);
        }
        if self.file.is_some() {
            self.encoder.put(record, &mut self.frame);
        }
    }

    fn begin_segment(&mut self, now: Time, term: u64) {
        self.encoder = Encoder::new(self.tokens.clone());
        self.bytes = 0;
        self.file = None;
        self.drop_old(now);
        let path = self.wish.directory.join(name_of(now));
        let header = Header::new(&self.settings, &self.tokens, self.wish.binary, term, now);
        let opened = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => {
                self.file = Some(file);
                self.write(&opening(&header));
            }
            Err(error) => tracing::warn!("cannot begin the log {}: {error}", path.display()),
        }
    }

    fn flush(&mut self) {
        if self.frame.is_empty() {
            return;
        }
        let whole = frame(&self.frame);
        self.frame.clear();
        self.write(&whole);
        if self.bytes > self.wish.bytes_max / SEGMENTS_WANTED {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// What cannot be written ends the segment: what was written before is whole.
    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = file.write_all(bytes) {
            tracing::warn!(
                "the decision log in {} goes on with its next segment: {error}",
                self.wish.directory.display()
            );
            self.file = None;
        }
        self.bytes += bytes.len() as u64;
    }

    /// Removes segments whose successor began too long ago, and the oldest that are too many.
    fn drop_old(&self, now: Time) {
        let all = match segments(&self.wish.directory) {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!("cannot look for old logs: {error}");
                return;
            }
        };
        let horizon = name_of(now.plus_ms(-self.wish.keep_ms));
        let room = self.wish.bytes_max - self.wish.bytes_max / SEGMENTS_WANTED;
        let mut kept = 0_u64;
        let mut successor: Option<&Path> = None;
        for path in all.iter().rev() {
            kept = kept.saturating_add(fs::metadata(path).map_or(0, |it| it.len()));
            let is_old = successor
                .and_then(Path::file_name)
                .is_some_and(|name| *name.to_string_lossy() < *horizon);
            if (is_old || kept > room)
                && let Err(error) = fs::remove_file(path)
            {
                tracing::warn!("cannot remove {}: {error}", path.display());
            }
            successor = Some(path);
        }
    }
}

/// The segments of a directory, the oldest first.
pub fn segments(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_segment = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(SUFFIX);
        if path.file_name().is_some_and(is_segment) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// `2026-11-22T10:52:59.000000Z` without what is trouble in a file's name.
fn name_of(began: Time) -> String {
    let text: String = began.micro().chars().filter(|one| *one != ':').collect();
    format!("{text}{SUFFIX}")
}

/// The key of a directory's tokens, drawn where there is none.
fn key(directory: &Path) -> io::Result<[u8; 16]> {
    let path = directory.join(KEY);
    let mut key = [0; 16];
    match File::open(&path) {
        Ok(mut file) => file.read_exact(&mut key)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::open("/dev/urandom")?.read_exact(&mut key)?;
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(&key)?;
        }
        Err(error) => return Err(error),
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_age() {
        let early = name_of(Time::from_seconds(1_700_000_000));
        let late = name_of(Time(1_700_000_000_000_001));
        assert!(early < late, "{early} {late}");
        assert!(!early.contains(':'));
    }
}
