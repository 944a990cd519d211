//! Which time of a schedule was missed last, and which comes next.

use api::cron::{Schedule, Zone};
use api::time::Time;

use super::SECOND;
use super::family::Parent;

/// More missed times than these are told.
const MANY: i64 = 100;

/// A schedule as seen at one instant.
pub(super) struct Missed<'a> {
    pub(super) it: Parent<'a>,
    /// Since when the schedule holds, where it was edited.
    pub(super) edited: Option<Time>,
    pub(super) schedule: &'a Schedule,
    pub(super) zone: &'a Zone,
    pub(super) now: Time,
}

/// What is to become of the last time that was missed.
pub(super) enum Latest {
    /// None was.
    Served,
    /// It is made up for; there may be very many of them.
    Due { time: Time, is_many: bool },
    /// Its deadline has passed.
    Late(Time),
}

/// What was missed.
struct Found {
    /// Where the search began.
    since: Time,
    latest: Option<Time>,
    count: i64,
}

impl Missed<'_> {
    /// The last time that has come and was not served.
    pub(super) fn latest(&self) -> Result<Latest, &'static str> {
        let deadline = self.it.spec.starting_deadline_seconds;
        let earliest = deadline.map(|it| self.now.plus_ms(it.saturating_mul(-1_000)));
        let found = self.find(earliest)?;
        if let Some(time) = found.latest {
            let is_many = found.count > MANY;
            return Ok(Latest::Due { time, is_many });
        }
        Ok(match earliest {
            Some(_) => self.find(None)?.latest.map_or(Latest::Served, Latest::Late),
            None => Latest::Served,
        })
    }

    /// The next time to look again.
    pub(super) fn next(&self) -> Option<Time> {
        let from = match self.find(None) {
            Ok(found) => match found.latest {
                Some(latest) => latest,
                None if found.count == 0 => found.since,
                None => self.now,
            },
            Err(_) => self.now,
        };
        self.after(from)
    }

    fn after(&self, time: Time) -> Option<Time> {
        self.schedule.next(time, self.zone)
    }

    fn find(&self, earliest: Option<Time>) -> Result<Found, &'static str> {
        let created = self.it.meta.creation_timestamp.unwrap_or(self.now);
        let known = self.it.status.last_schedule_time.unwrap_or(created);
        // What was missed is so by the schedule that held then.
        let edited = self.edited.map(|since| since.min(self.now));
        let known = edited.map_or(known, |edited| edited.max(known));
        let since = earliest.map_or(known, |earliest| earliest.max(known));
        if let Schedule::Every(seconds) = self.schedule {
            return Ok(self.every(seconds.saturating_mul(SECOND), known, since));
        }
        let none = Found {
            since,
            latest: None,
            count: 0,
        };
        let Some(first) = self.after(since) else {
            // Fields that no date has, such as the 31st of February.
            return Err("time difference between two schedules is less than 1 second");
        };
        if self.now < first {
            return Ok(none);
        }
        let second = match self.after(first) {
            Some(second) if second <= self.now => second,
            _ => {
                return Ok(Found {
                    latest: Some(first),
                    ..none
                });
            }
        };
        let seconds = |from: Time, to: Time| (to.micros() - from.micros()) / 1_000_000;
        let gap = seconds(first, second).max(1);
        let count = seconds(first, self.now) / gap + 1;
        Ok(Found {
            since,
            latest: Some(self.last_since(second)),
            count,
        })
    }

    /// What was missed after `since` of what happens so often, in microseconds. Its times are counted from
    /// `known`: from `since`, which moves with the deadline, the next would lie ahead for ever where the
    /// deadline is shorter than the interval.
    fn every(&self, gap: i64, known: Time, since: Time) -> Found {
        let none = Found {
            since,
            latest: None,
            count: 0,
        };
        let Some(first) = self.after(known).filter(|first| *first <= self.now) else {
            return none;
        };
        let more = (self.now.micros() - first.micros()) / gap;
        let latest = Time(first.micros() + more * gap);
        if latest <= since {
            return none;
        }
        Found {
            latest: Some(latest),
            count: (latest.micros() - since.micros() - 1) / gap + 1,
            ..none
        }
    }

    /// The last time of the fields that has come, if `last` is one that has. Upstream looks at what would be
    /// the last stretch of a regular schedule, and loses a time that lies before it; walking through years of
    /// minutes would take long. So the span in which it can be is halved.
    fn last_since(&self, mut last: Time) -> Time {
        let mut end = self.now;
        while let Some(next) = self.after(last).filter(|next| *next <= end) {
            last = next;
            let middle = Time(last.micros() + (end.micros() - last.micros()) / 2);
            match self.after(middle).filter(|next| *next <= self.now) {
                Some(later) => last = later,
                None => end = middle,
            }
        }
        last
    }
}
