//! How large a world is, how slow its wires are and what goes wrong in it.

use std::collections::BTreeMap;

use api::time::Time;

use crate::coverage::Phase;
use crate::fault::{FAULTS, Fault};

/// A world's shape.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Every random choice follows from it.
    pub seed: u64,
    /// When the world begins.
    pub begins: Time,
    /// A request or an answer takes at least so many milliseconds on the wire.
    pub latency_ms_min: i64,
    /// And at most so many.
    pub latency_ms_max: i64,
    /// Drivers; of several one holds the Lease and decides.
    pub replicas: u32,
    /// The largest object that is stored, in bytes of its JSON.
    pub object_bytes_max: usize,
    /// What goes wrong.
    pub faults: Faults,
    /// Each driver's decisions are logged, in segments of so many milliseconds, and played again at
    /// the end of its life.
    pub log_every_ms: Option<i64>,
    /// The name server hears of an EndpointSlice at least so many milliseconds later: what it watches
    /// with sums up for a while, and answers are kept for another.
    pub names_ms_min: i64,
    /// And at most so many, while it is not deaf.
    pub names_ms_max: i64,
    /// Imitation nodes.
    pub nodes: nodes::Settings,
}

impl Settings {
    /// A small calm world.
    pub fn new(seed: u64) -> Settings {
        Settings {
            seed,
            begins: Time::from_seconds(1_700_000_000),
            latency_ms_min: 0,
            latency_ms_max: 3,
            replicas: 1,
            object_bytes_max: store::Settings::default().object_bytes_max,
            faults: Faults::NONE,
            log_every_ms: Some(600_000),
            names_ms_min: 0,
            names_ms_max: 2_000,
            nodes: nodes::Settings::default(),
        }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Nothing goes wrong before so many milliseconds.
    pub from_ms: i64,
    /// Nothing goes wrong any more after so many milliseconds.
    pub until_ms: i64,
    /// How often each happens: see [`crate::Strikes`].
    pub rates: BTreeMap<Fault, u64>,
    /// While the system is in this phase, ten times as much goes wrong; and what goes wrong by the
    /// clock does so in no other.
    pub keen_on: Option<Phase>,
    /// So long after the beginning no pod may be created: 403, as by a quota.
    pub no_pods_until_ms: i64,
    /// How many milliseconds at most pass until a driver that died starts again.
    pub down_ms_max: i64,
    /// The driver dies right after its write of this number, counted from 1, and before the
    /// answer; 0 for never.
    pub crash_at_write: u64,
}

impl Faults {
    /// A world in which nothing goes wrong.
    pub const NONE: Faults = Faults {
        from_ms: 0,
        until_ms: i64::MAX,
        rates: BTreeMap::new(),
        keen_on: None,
        no_pods_until_ms: 0,
        down_ms_max: 0,
        crash_at_write: 0,
    };

    /// These, and one more; a rate of 0 takes it away.
    pub fn with(mut self, fault: Fault, rate: u64) -> Faults {
        self.set(fault, rate);
        self
    }

    /// Says how often a fault happens; 0 for never.
    pub fn set(&mut self, fault: Fault, rate: u64) {
        match rate {
            0 => self.rates.remove(&fault),
            _ => self.rates.insert(fault, rate),
        };
    }

    /// How often a fault happens; 0 for never.
    pub fn rate(&self, fault: Fault) -> u64 {
        self.rates.get(&fault).copied().unwrap_or(0)
    }

    /// Whether a fault can happen.
    pub fn has(&self, fault: Fault) -> bool {
        self.rates.contains_key(&fault)
    }

    /// What can happen.
    pub fn all(&self) -> impl Iterator<Item = (Fault, u64)> {
        self.rates.iter().map(|(fault, rate)| (*fault, *rate))
    }

    /// Whether everything can happen that can be injected.
    pub fn is_everything(&self) -> bool {
        FAULTS.iter().all(|row| self.has(row.fault))
    }
}
