//! How long to wait before the next attempt.

/// A delay that doubles with every failure, between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure, in milliseconds.
    pub first_ms: i64,
    /// Never more than this, in milliseconds.
    pub max_ms: i64,
}

impl Backoff {
    /// The law of a controller's key, the same as upstream's rate limiter: 5 ms … 1000 s.
    pub const KEY: Backoff = Backoff {
        first_ms: 5,
        max_ms: 1_000_000,
    };

    /// The law of a bind that was not taken: 5 ms … 10 s, for its gang waits on its nodes.
    pub const BIND: Backoff = Backoff {
        first_ms: 5,
        max_ms: 10_000,
    };

    /// The law of what is said for people and was not taken: 1 s … 5 min.
    pub const SAID: Backoff = Backoff {
        first_ms: 1_000,
        max_ms: 300_000,
    };

    /// The law of lists and watches: 50 ms … 30 s, with jitter.
    pub const REFLECTOR: Backoff = Backoff {
        first_ms: 50,
        max_ms: 30_000,
    };

    /// The delay after so many failures in a row, in milliseconds; none after no failure.
    pub fn delay_ms(self, failures: u32) -> i64 {
        let Some(doublings) = failures.checked_sub(1) else {
            return 0;
        };
        if doublings >= 62 {
            return self.max_ms;
        }
        self.first_ms
            .saturating_mul(1_i64 << doublings)
            .min(self.max_ms)
    }

    /// The delay with up to half of it taken away, chosen by `draw`, so that many clients that
    /// failed at once do not come back at once.
    pub fn jittered_ms(self, failures: u32, draw: u64) -> i64 {
        let delay = self.delay_ms(failures);
        let spread = u64::try_from(delay / 2).unwrap_or(0) + 1;
        delay - i64::try_from(draw % spread).unwrap_or(0)
    }
}

/// A sequence of numbers that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// Where the sequence stands: [`Draws::new`] goes on from it.
    pub(crate) fn state(&self) -> u64 {
        self.0
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_waits_5_ms_then_twice_as_long_each_time_up_to_1000_s() {
        let delays: Vec<i64> = (0..5).map(|n| Backoff::KEY.delay_ms(n)).collect();
        assert_eq!(delays, [0, 5, 10, 20, 40]);
        assert_eq!(Backoff::KEY.delay_ms(18), 655_360);
        assert_eq!(Backoff::KEY.delay_ms(19), 1_000_000);
        assert_eq!(Backoff::KEY.delay_ms(u32::MAX), 1_000_000);
    }

    #[test]
    fn jitter_takes_away_at_most_half() {
        let mut draws = Draws::new(7);
        for failures in 0..40 {
            let full = Backoff::REFLECTOR.delay_ms(failures);
            let some = Backoff::REFLECTOR.jittered_ms(failures, draws.next());
            assert!(some <= full && some >= full / 2, "{some} of {full}");
        }
    }
}
