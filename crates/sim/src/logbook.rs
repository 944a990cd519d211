//! The decision log of each driver's life, kept in memory and played again at its end: what comes out
//! must be what came out (I19).

use api::time::Time;
use driver::Driver;
use driver::log::{Encoder, Header, Record, Replay, Segment, Tokens, frame, opening};

/// Any key does: nobody but this process reads the log.
const KEY: [u8; 16] = *b"a key of a story";

/// Records make a frame when they are so long.
const FRAME_BYTES: usize = 1_024;

/// The log of one life.
pub(crate) struct Logbook {
    encoder: Encoder,
    segments: Vec<Vec<u8>>,
    records: Vec<u8>,
    due: Time,
    every_ms: i64,
}

impl Logbook {
    /// Begins the log of a driver that has done nothing yet, with a new segment every now and then.
    pub(crate) fn begin(driver: &mut Driver, every_ms: i64, now: Time) -> Logbook {
        driver.record(now);
        Logbook {
            encoder: Encoder::new(Tokens::keyed(KEY)),
            segments: Vec::new(),
            records: Vec::new(),
            due: now.plus_ms(every_ms),
            every_ms,
        }
    }

    /// Takes what has happened, and asks for a segment when its time has come.
    pub(crate) fn take(&mut self, driver: &mut Driver, now: Time) {
        for record in driver.take_records() {
            if let Record::Began {
                checkpoint,
                settings,
            } = &record
            {
                self.end_frame();
                self.encoder = Encoder::new(Tokens::keyed(KEY));
                let tokens = Tokens::keyed(KEY);
                let header = Header::new(settings, &tokens, "sim", 0, checkpoint.now);
                self.segments.push(opening(&header));
            }
            self.encoder.put(&record, &mut self.records);
            if self.records.len() > FRAME_BYTES {
                self.end_frame();
            }
        }
        if now >= self.due {
            // Soon at first and seldom later: a story's calm is long.
            self.every_ms = self.every_ms.saturating_mul(2);
            self.due = now.plus_ms(self.every_ms);
            driver.handle_checkpoint(now);
        }
    }

    fn end_frame(&mut self) {
        let records = std::mem::take(&mut self.records);
        if records.is_empty() {
            return;
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.extend_from_slice(&frame(&records));
        }
    }

    /// What was written since the last checkpoint, as a file.
    pub(crate) fn last_segment(&mut self) -> Option<Vec<u8>> {
        self.end_frame();
        self.segments.last().cloned()
    }

    /// Plays all of it again; what is wrong with it.
    pub(crate) fn replay(mut self) -> Vec<String> {
        self.end_frame();
        let all = self.segments.iter().enumerate();
        all.filter_map(|(at, bytes)| {
            let wrong = self.replay_segment(bytes)?;
            Some(format!("segment {at} of a log: {wrong}"))
        })
        .collect()
    }

    fn replay_segment(&self, bytes: &[u8]) -> Option<String> {
        let segment = match Segment::read(bytes) {
            Ok(segment) => segment,
            Err(problem) => return Some(problem.to_string()),
        };
        let replay = match Replay::new(&segment, Tokens::keyed(KEY)) {
            Ok(replay) => replay,
            Err(problem) => return Some(problem.to_string()),
        };
        match replay.run(None, &mut |_| {}) {
            Err(problem) => Some(problem.to_string()),
            Ok(summary) => {
                let it = summary.difference?;
                Some(format!(
                    "at {} (byte {}) the log has: {}; the replay: {}",
                    it.now.micro(),
                    it.offset,
                    it.logged,
                    it.replayed
                ))
            }
        }
    }
}
