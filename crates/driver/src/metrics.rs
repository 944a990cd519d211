//! What has happened so far, as plain numbers. `runtime` gives them their upstream names.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A snapshot. Counters only grow; gauges say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// By controller.
    pub controllers: BTreeMap<&'static str, ControllerCounts>,
    /// Writes that are over, by verb (`bind`, `create`, `delete`, `patch`) and end (`done`,
    /// `outdated`, `failed`).
    pub writes: BTreeMap<(&'static str, &'static str), u64>,
    /// Writes whose answer was lost.
    pub writes_unknown: u64,
    /// Objects read back because an answer was lost or an effect was not seen.
    pub read_backs: u64,
    /// Questions to others than the API.
    pub asks: u64,
    /// Questions that were not answered, or not as could be understood.
    pub asks_failed: u64,
    /// Values of their answers that cannot be meant.
    pub values_refused: u64,
    /// Notes for people that were dropped at the limit.
    pub notes_dropped: u64,
    /// Records of the decision log that nobody took in time.
    pub records_lost: u64,
    /// Lines for the log that were dropped at the limit.
    pub notices_dropped: u64,
    /// Pages asked for.
    pub list_pages: u64,
    /// Watches opened.
    pub watches: u64,
    /// Lists that had to be repeated because the server had forgotten where we were.
    pub relists: u64,
    /// Events taken.
    pub events: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Cycles of the engine.
    pub cycles: u64,
    /// Time that they took, in microseconds of the shell's stopwatch.
    pub cycle_micros: u64,
    /// Tasks placed by them.
    pub places: u64,
    /// Placed tasks that came back because their write was refused.
    pub places_refused: u64,
    /// Violations found by the checker's cheap subset.
    pub violations: u64,
    /// Pods of jobs with the `svc` plugin that were made before their job's Service.
    pub service_inversions: u64,
    /// How often everything that must be held before deciding was won.
    pub terms: u64,
    /// How often it was lost again.
    pub terms_lost: u64,
    /// Gauge: whether this driver may write; always so where there is no election.
    pub is_leading: bool,
    /// What runs here: controllers by their names, `scheduler`, `agent-scheduler`.
    pub parts: Arc<[&'static str]>,
    /// Gauge: keys ready to be stepped.
    pub keys_ready: usize,
    /// Gauge: keys known at all.
    pub keys_known: usize,
    /// Gauge: writes decided and not yet handed out.
    pub writes_queued: usize,
    /// Gauge: writes and read-backs handed out and not yet answered.
    pub writes_in_flight: usize,
    /// Gauge: writes that are not over.
    pub writes_open: usize,
}

/// Counts of one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounts {
    /// Steps taken.
    pub steps: u64,
    /// Steps that ended blocked.
    pub blocked: u64,
    /// Steps that asked for another try.
    pub retries: u64,
    /// Steps that ended for good with an error.
    pub fatal: u64,
    /// Rounds whose writes were refused.
    pub write_failures: u64,
    /// Gauge: keys that have failed more often in a row than the limit, and wait for long.
    pub stuck: usize,
    /// Gauge: keys that are ready to be stepped.
    pub ready: usize,
}

/// One line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How bad it is.
    pub level: Level,
    /// What was being attempted and what came of it.
    pub text: String,
}

/// How bad a [`Notice`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look closely.
    Debug,
    /// Something was refused and will be tried again.
    Warning,
    /// Something is wrong and stays so until somebody acts.
    Error,
}
