//! A point in time, as the decisions see it: always an argument, never read.

/// Microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Microseconds since the Unix epoch.
    pub micros: i64,
}

impl Time {
    /// The point `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Time {
        Time { micros }
    }

    /// The point `millis` milliseconds later, at most the last one that can be written down.
    pub const fn plus_millis(self, millis: i64) -> Time {
        Time {
            micros: self.micros.saturating_add(millis.saturating_mul(1_000)),
        }
    }
}
