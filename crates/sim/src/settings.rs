//! How large a world is, how slow its wires are and what goes wrong in it.

use api::time::Time;

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
    /// What goes wrong.
    pub faults: Faults,
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
            faults: Faults::NONE,
            nodes: nodes::Settings::default(),
        }
    }
}

/// What goes wrong, each once in so many times on average; 0 for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Nothing goes wrong any more after so many milliseconds.
    pub until_ms: i64,
    /// A watch ends after a line.
    pub watch_drop_once_in: u64,
    /// A watch that is to be opened has expired (410), so that everything is listed again.
    pub watch_expiry_once_in: u64,
    /// The answer to a write of the driver is lost after it was done.
    pub answer_loss_once_in: u64,
    /// A write of the driver is lost before it is done.
    pub request_loss_once_in: u64,
    /// A write of the driver is refused: a conflict where it can have one, else 429 or 500.
    pub refusal_once_in: u64,
    /// So long after the beginning no pod may be created: 403, as by a quota.
    pub no_pods_until_ms: i64,
    /// The driver dies after a write and starts again with an empty memory.
    pub crash_once_in: u64,
    /// A driver stands still after a write.
    pub pause_once_in: u64,
    /// For so many milliseconds at most.
    pub pause_ms_max: i64,
    /// How many milliseconds at most pass until a driver that died starts again.
    pub down_ms_max: i64,
    /// The driver dies right after its write of this number, counted from 1, and before the
    /// answer; 0 for never.
    pub crash_at_write: u64,
}

impl Faults {
    /// A world in which nothing goes wrong.
    pub const NONE: Faults = Faults {
        until_ms: i64::MAX,
        watch_drop_once_in: 0,
        watch_expiry_once_in: 0,
        answer_loss_once_in: 0,
        request_loss_once_in: 0,
        refusal_once_in: 0,
        no_pods_until_ms: 0,
        crash_once_in: 0,
        pause_once_in: 0,
        pause_ms_max: 0,
        down_ms_max: 0,
        crash_at_write: 0,
    };
}
