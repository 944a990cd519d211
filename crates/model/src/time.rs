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

/// What the clocks of a place show beyond universal time, and from when on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalTime(Vec<(Time, i32)>);

/// A day.
const DAY_MICROS: i64 = 86_400_000_000;

impl LocalTime {
    /// Seconds east of universal time, each from a point in time on; the first ones count before it, too.
    pub fn of(mut changes: Vec<(Time, i32)>) -> LocalTime {
        changes.sort_unstable();
        LocalTime(changes)
    }

    /// What it was made of, in order.
    pub fn changes(&self) -> &[(Time, i32)] {
        &self.0
    }

    /// Microseconds since local midnight, from 0 to a day.
    pub fn of_day(&self, at: Time) -> i64 {
        let past = self.0.iter().rev().find(|(from, _)| *from <= at);
        let seconds = past.or(self.0.first()).map_or(0, |(_, seconds)| *seconds);
        let local = at.micros.saturating_add(i64::from(seconds) * 1_000_000);
        local.rem_euclid(DAY_MICROS)
    }

    /// When local clocks next show this time of day, given in microseconds since midnight, or are set
    /// themselves before that.
    pub fn next(&self, of_day: i64, after: Time) -> Time {
        let ahead = (of_day - self.of_day(after) - 1).rem_euclid(DAY_MICROS) + 1;
        let at = Time::from_micros(after.micros.saturating_add(ahead));
        let set = self
            .0
            .iter()
            .map(|(from, _)| *from)
            .find(|from| *from > after);
        set.map_or(at, |set| set.min(at))
    }
}

#[cfg(test)]
mod tests {
    use super::{LocalTime, Time};

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_day_begins_where_the_clocks_say() {
        let utc = LocalTime::default();
        assert_eq!(utc.of_day(Time::from_micros(25 * HOUR)), HOUR);
        assert_eq!(utc.of_day(Time::from_micros(-HOUR)), 23 * HOUR);
        let summer = Time::from_micros(100 * HOUR);
        let local = LocalTime::of(vec![(summer, 7_200), (Time::default(), 3_600)]);
        assert_eq!(
            local.of_day(Time::from_micros(-HOUR)),
            0,
            "the first counts before it"
        );
        assert_eq!(local.of_day(Time::from_micros(99 * HOUR)), 4 * HOUR);
        assert_eq!(local.of_day(summer), 6 * HOUR);
    }

    #[test]
    fn the_next_time_of_day_is_never_now_and_clocks_are_set_before_it() {
        let utc = LocalTime::default();
        let at = |hours: i64| Time::from_micros(hours * HOUR);
        assert_eq!(utc.next(6 * HOUR, at(5)), at(6));
        assert_eq!(utc.next(6 * HOUR, at(6)), at(30));
        assert_eq!(utc.next(6 * HOUR, at(7)), at(30));
        let local = LocalTime::of(vec![(at(0), 0), (at(8), 3_600)]);
        assert_eq!(local.next(12 * HOUR, at(5)), at(8));
        assert_eq!(local.next(12 * HOUR, at(8)), at(11));
    }
}
