//! How long those who are refused go on trying.

/// The wait before the second try.
const FIRST_MS: i64 = 500;
/// The longest wait, as of the clients of upstream's controllers.
const LONGEST_MS: i64 = 30_000;

/// What is left of it: each wait is twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    wait_ms: i64,
    left_ms: i64,
}

impl Patience {
    /// One try is all.
    pub(crate) const NONE: Patience = Patience::of_ms(0);
    /// As long as anybody waits for something that they know to be right.
    pub(crate) const HOUR: Patience = Patience::of_ms(3_600_000);
    /// It is tried until it is done.
    pub(crate) const ENDLESS: Patience = Patience::of_ms(i64::MAX);

    /// For so many milliseconds from the first try.
    pub(crate) const fn of_ms(ms: i64) -> Patience {
        Patience {
            wait_ms: FIRST_MS,
            left_ms: ms,
        }
    }

    /// After how many milliseconds it is tried again, and what is left then; the last try is when it ends.
    pub(crate) fn again(self) -> Option<(i64, Patience)> {
        let wait_ms = self.wait_ms.min(self.left_ms);
        let left = Patience {
            wait_ms: (self.wait_ms * 2).min(LONGEST_MS),
            left_ms: self.left_ms - wait_ms,
        };
        (wait_ms > 0).then_some((wait_ms, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_tries_for_as_long_as_is_said() {
        let times = |mut patience: Patience| {
            let (mut now, mut times) = (0, Vec::new());
            while let Some((wait, left)) = patience.again() {
                (now, patience) = (now + wait, left);
                times.push(now);
            }
            times
        };
        assert_eq!(times(Patience::NONE), [0; 0]);
        let half_a_minute = times(Patience::of_ms(30_000));
        assert_eq!(half_a_minute, [500, 1_500, 3_500, 7_500, 15_500, 30_000]);
    }
}
