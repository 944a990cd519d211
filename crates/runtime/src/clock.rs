//! The clocks, read here and nowhere else in this room.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::time::Time;
use nix::time::{ClockId, clock_gettime};

/// A wall clock that is further than this from where it was to be has been set. Less than what an
/// elector leaves between the end of its own term and the beginning of another's.
const LEAP_MICROS: i64 = 1_000_000;

/// Now, in the one unit that rooms below the line know.
pub fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// So many times is a clock set in the years that a process may run.
const CHANGES_MAX: usize = 40;

/// What clocks show at the place of this process (`TZ`, else the system's), now and for some decades.
pub fn local_time() -> model::LocalTime {
    let now = jiff::Timestamp::now();
    let zone = jiff::tz::TimeZone::system();
    let at = |at: jiff::Timestamp| model::Time::from_micros(at.as_microsecond());
    // Told again later this is the same: what holds now counts for the past, too.
    let first = (model::Time::default(), zone.to_offset(now).seconds());
    let set = zone.following(now).take(CHANGES_MAX);
    let set = set.map(|it| (at(it.timestamp()), it.offset().seconds()));
    model::LocalTime::of(std::iter::once(first).chain(set).collect())
}

/// Notices that somebody set the wall clock, also while this process or its machine stood still.
#[derive(Debug)]
pub(crate) struct Leaps {
    /// How far the wall clock was ahead of the steady one, in microseconds, when last it was set.
    ahead: i64,
}

impl Leaps {
    pub(crate) fn new() -> Leaps {
        Leaps {
            ahead: now().micros().saturating_sub(steady_micros()),
        }
    }

    /// Whether the wall clock was set since the last time that this said so.
    pub(crate) fn has_leapt(&mut self) -> bool {
        let ahead = now().micros().saturating_sub(steady_micros());
        self.is_leap(ahead)
    }

    fn is_leap(&mut self, ahead: i64) -> bool {
        let is_leap = ahead.saturating_sub(self.ahead).saturating_abs() > LEAP_MICROS;
        if is_leap {
            self.ahead = ahead;
        }
        is_leap
    }
}

/// A clock that nobody sets, and that goes on while the machine sleeps.
fn steady_micros() -> i64 {
    #[cfg(target_os = "linux")]
    let id = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let id = ClockId::CLOCK_MONOTONIC;
    // The call fails for an unknown clock only; standing still, it would make time passing a leap.
    clock_gettime(id).map_or_else(
        |_| now().micros(),
        |at| {
            at.tv_sec()
                .saturating_mul(1_000_000)
                .saturating_add(at.tv_nsec() / 1_000)
        },
    )
}

/// Waits for an instant; for ever without one.
pub(crate) async fn sleep_until(wake: Option<Time>) {
    match wake {
        Some(wake) => {
            let left = wake.micros().saturating_sub(now().micros()).max(0);
            tokio::time::sleep(Duration::from_micros(left.unsigned_abs())).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.3
    #[test]
    fn a_clock_that_was_set_is_noticed_once_and_one_that_is_corrected_is_not() {
        let mut leaps = Leaps { ahead: 5_000_000 };
        assert!(!leaps.is_leap(5_900_000));
        assert!(leaps.is_leap(3_999_999));
        assert!(!leaps.is_leap(4_000_000));
        assert!(leaps.is_leap(600_000_000));
        assert!(!leaps.is_leap(600_000_000));
    }

    #[test]
    fn local_time_is_what_the_system_says() {
        let local = local_time();
        let shown = jiff::Zoned::now();
        let at = model::Time::from_micros(shown.timestamp().as_microsecond());
        let midnight = shown.time().since(jiff::civil::Time::midnight());
        let since = midnight.and_then(|it| it.total(jiff::Unit::Microsecond));
        let since = since.expect("the day has begun") as i64;
        assert_eq!(local.of_day(at), since);
    }

    #[test]
    fn the_clocks_of_this_machine_do_not_leap() {
        let before = steady_micros();
        let mut leaps = Leaps::new();
        assert!(!leaps.has_leapt());
        assert!(steady_micros() >= before);
    }
}
