//! How large a world is and how slow its wires are.

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
    /// One watch in so many lines is dropped, on average; 0 for never.
    pub watch_drop_once_in: u64,
    /// One write in so many loses its answer after it was done, on average; 0 for never.
    pub answer_loss_once_in: u64,
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
            watch_drop_once_in: 0,
            answer_loss_once_in: 0,
            nodes: nodes::Settings::default(),
        }
    }
}
