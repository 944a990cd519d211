//! Schedules of CronJobs: five fields or a descriptor, read and run as the library reads and runs
//! them that Kubernetes and Volcano use, complaints included (`specs/rust.md` 8).
//!
//! A time that the clock skips in spring is skipped; one that it shows twice in autumn counts
//! twice.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::duration::Duration;
use crate::time::Time;

/// How many years ahead a time is looked for.
const YEARS_MAX: i16 = 5;

/// Whose clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// The zone of exactly that name, from the program's own tables: Go finds zones as files, whose names have
    /// capital letters where they have.
    pub fn find(name: &str) -> Option<Zone> {
        match name {
            "" | "UTC" => Some(Zone::utc()),
            name => {
                let zone = TimeZoneDatabase::bundled().get(name).ok()?;
                (zone.iana_name() == Some(name)).then_some(Zone(zone))
            }
        }
    }

    /// An instant by this clock: `2026-11-21T18:00:00+01:00`.
    pub fn text(&self, at: Time) -> String {
        let stamp = jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default();
        let zoned = stamp.to_zoned(self.0.clone());
        match zoned.offset().is_zero() {
            true => zoned.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            false => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        }
    }
}

/// When something is to happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At times whose fields match.
    Fields(Fields),
    /// So often, in seconds.
    Every(i64),
}

/// The values that match, as bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    /// The zone that the text itself names.
    zone: Option<Zone>,
}

/// Stands for `*` in a field of days.
const STAR: u64 = 1 << 63;

struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds {
    min: 0,
    max: 59,
    names: &[],
};
const HOURS: Bounds = Bounds {
    min: 0,
    max: 23,
    names: &[],
};
const DAYS: Bounds = Bounds {
    min: 1,
    max: 31,
    names: &[],
};
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAYS: Bounds = Bounds {
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Schedule {
    /// Reads a schedule, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let mut rest = text;
        let mut zone = None;
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            let (head, tail) = text.split_once(' ').unwrap_or((text, ""));
            let name = head.split_once('=').map_or("", |(_, name)| name);
            zone = Some(Zone::find(name).ok_or_else(|| {
                format!("provided bad location {name}: unknown time zone {name}")
            })?);
            rest = tail.trim();
        }
        if rest.starts_with('@') {
            return descriptor(rest, zone);
        }
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let count = fields.len();
            let shown = fields.join(" ");
            return Err(format!(
                "expected exactly 5 fields, found {count}: [{shown}]"
            ));
        };
        Ok(Schedule::Fields(Fields {
            minute: field(minute, &MINUTES)?,
            hour: field(hour, &HOURS)?,
            day: field(day, &DAYS)?,
            month: field(month, &MONTHS)?,
            weekday: field(weekday, &WEEKDAYS)?,
            zone,
        }))
    }

    /// The first time after `after`, by a clock of `zone` unless the text names one; `None` if
    /// there is none within five years.
    pub fn next(&self, after: Time, zone: &Zone) -> Option<Time> {
        let seconds = after.micros().div_euclid(1_000_000);
        match self {
            Schedule::Every(every) => Some(Time::from_seconds(seconds.checked_add(*every)?)),
            Schedule::Fields(fields) => {
                let zone = fields.zone.as_ref().unwrap_or(zone);
                fields.next(seconds, &zone.0)
            }
        }
    }
}

impl Fields {
    fn next(&self, after: i64, zone: &TimeZone) -> Option<Time> {
        const MINUTE: i64 = 60;
        if self.is_never() {
            return None;
        }
        let mut second = (after.div_euclid(MINUTE) + 1) * MINUTE;
        let local = |second: i64| {
            let stamp = jiff::Timestamp::from_second(second).ok()?;
            Some(zone.to_datetime(stamp))
        };
        let last_year = local(second)?.year().saturating_add(YEARS_MAX);
        loop {
            let at = local(second)?;
            if at.year() > last_year {
                return None;
            }
            let date = at.date();
            if !self.is_day(date) {
                second = self.next_day(date, zone, last_year)?;
            } else if self.hour & (1 << at.hour()) == 0 {
                second += MINUTE * (60 - i64::from(at.minute()));
            } else if self.minute & (1 << at.minute()) == 0 {
                second += MINUTE;
            } else {
                return Some(Time::from_seconds(second));
            }
        }
    }

    /// Whether a field that has to match has no values, as a lone comma reads.
    fn is_never(&self) -> bool {
        let is_dayless = match (self.day | self.weekday) & STAR != 0 {
            true => self.day == 0 || self.weekday == 0,
            false => self.day == 0 && self.weekday == 0,
        };
        self.minute == 0 || self.hour == 0 || self.month == 0 || is_dayless
    }

    /// The first second of the next day that matches.
    fn next_day(&self, mut date: Date, zone: &TimeZone, last_year: i16) -> Option<i64> {
        loop {
            date = date.checked_add(1.day()).ok()?;
            if date.year() > last_year {
                return None;
            }
            if self.is_day(date) {
                let start = date.to_zoned(zone.clone()).ok()?;
                return Some(start.timestamp().as_second());
            }
        }
    }

    fn is_day(&self, date: Date) -> bool {
        let is_month = self.month & (1 << date.month()) != 0;
        let is_date = self.day & (1 << date.day()) != 0;
        let weekday = date.weekday().to_sunday_zero_offset();
        let is_weekday = self.weekday & (1 << weekday) != 0;
        let is_day = match (self.day | self.weekday) & STAR != 0 {
            true => is_date && is_weekday,
            false => is_date || is_weekday,
        };
        is_month && is_day
    }
}

fn descriptor(text: &str, zone: Option<Zone>) -> Result<Schedule, String> {
    let fields = |minute, hour, day, month, weekday| {
        Ok(Schedule::Fields(Fields {
            minute,
            hour,
            day,
            month,
            weekday,
            zone: zone.clone(),
        }))
    };
    let all = |bounds: &Bounds| bits(bounds.min, bounds.max, 1) | STAR;
    match text {
        "@yearly" | "@annually" => fields(1, 1, 2, 2, all(&WEEKDAYS)),
        "@monthly" => fields(1, 1, 2, all(&MONTHS), all(&WEEKDAYS)),
        "@weekly" => fields(1, 1, all(&DAYS), all(&MONTHS), 1),
        "@daily" | "@midnight" => fields(1, 1, all(&DAYS), all(&MONTHS), all(&WEEKDAYS)),
        "@hourly" => fields(1, all(&HOURS), all(&DAYS), all(&MONTHS), all(&WEEKDAYS)),
        _ => {
            let Some(every) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let duration = Duration::parse(every)
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            Ok(Schedule::Every((duration.0 / 1_000_000_000).max(1)))
        }
    }
}

fn field(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let mut all = 0;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        all |= range(part, bounds)?;
    }
    Ok(all)
}

fn range(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end, mut star) = match ends[..] {
        ["*" | "?", ..] => (bounds.min, bounds.max, STAR),
        [one] => {
            let start = value(one, bounds)?;
            (start, start, 0)
        }
        [first, last] => (value(first, bounds)?, value(last, bounds)?, 0),
        _ => {
            value(ends[0], bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.max;
            }
            if step > 1 {
                star = 0;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {text}"
        ));
    }
    if end > max {
        return Err(format!(
            "end of range ({end}) above maximum ({max}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(bits(start, end, step) | star)
}

fn bits(min: u32, max: u32, step: u32) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX).max(1);
    (min..=max).step_by(step).fold(0, |all, bit| all | 1 << bit)
}

fn value(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    let named = bounds.names.iter().position(|name| *name == lower);
    match named.and_then(|at| u32::try_from(at).ok()) {
        Some(at) => Ok(at + bounds.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let quoted = crate::names::go_quote(text);
    if !is_number {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"
        ));
    }
    let Ok(number) = text.parse::<i64>() else {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: value out of range"
        ));
    };
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_its_name_as_it_is_written() {
        for name in ["", "UTC", "Etc/UTC", "GMT", "US/Eastern", "Asia/Shanghai"] {
            assert!(Zone::find(name).is_some(), "{name}");
        }
        for name in ["utc", "etc/utc", "asia/shanghai", "ASIA/SHANGHAI"] {
            assert!(Zone::find(name).is_none(), "{name}");
        }
    }

    fn times(text: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(text).unwrap();
        let zone = Zone::find(zone).unwrap();
        let mut at = Time::parse(from).unwrap();
        let mut all = Vec::new();
        while all.len() < count {
            match schedule.next(at, &zone) {
                Some(next) => at = next,
                None => break,
            }
            all.push(zone.text(at));
        }
        all
    }

    #[test]
    fn times_follow_from_the_fields() {
        let rows = [
            (
                "*/20 8 * * *",
                "2026-11-21T07:00:00Z",
                "2026-11-21T08:00:00Z 2026-11-21T08:20:00Z",
            ),
            (
                "30 6-16/4 * * 1-5",
                "2026-11-20T15:00:00Z",
                "2026-11-23T06:30:00Z 2026-11-23T10:30:00Z",
            ),
            (
                "0 0 13 * FRI",
                "2026-11-01T00:00:00Z",
                "2026-11-06T00:00:00Z 2026-11-13T00:00:00Z",
            ),
            (
                "0 0 29 feb ?",
                "2026-11-01T00:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            ("0 0 31 2 *", "2026-11-01T00:00:00Z", ""),
            (
                "@weekly",
                "2026-11-21T07:00:00Z",
                "2026-11-22T00:00:00Z 2026-11-29T00:00:00Z",
            ),
            (
                "@every 90s",
                "2026-11-21T07:00:00.5Z",
                "2026-11-21T07:01:30Z 2026-11-21T07:03:00Z",
            ),
            (
                "TZ=Asia/Tokyo 0 9 * * *",
                "2026-11-21T07:00:00Z",
                "2026-11-22T00:00:00Z",
            ),
        ];
        for (text, from, expected) in rows {
            let count = expected.split_whitespace().count().max(1);
            assert_eq!(
                times(text, "UTC", from, count).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_skipped_hour_is_skipped_and_a_doubled_one_counts_twice() {
        let spring = times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(
            spring,
            ["2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"]
        );
        let autumn = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3);
        assert_eq!(
            autumn,
            [
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:30:00+01:00",
                "2026-10-26T02:30:00+01:00"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_the_librarys_words() {
        let rows = [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
        ];
        for (text, expected) in rows {
            assert_eq!(Schedule::parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn no_text_takes_long_or_panics() {
        for text in [
            "*/4294967295 * * * *",
            "99999999999999999999 * * * *",
            "- - - - -",
            "@every ",
            "TZ= ",
        ] {
            let _ = Schedule::parse(text).map(|it| it.next(Time::default(), &Zone::utc()));
        }
        // The library takes a lone comma for a field without values.
        for text in [
            ", * * * *",
            "* , * * *",
            "* * , * *",
            "* * * , *",
            "* * * * ,",
            "* * , * ,",
        ] {
            let Schedule::Fields(fields) = Schedule::parse(text).unwrap() else {
                panic!("{text} has no fields");
            };
            assert!(fields.is_never(), "{text}");
            assert_eq!(fields.next(0, &TimeZone::UTC), None, "{text}");
        }
        assert_eq!(
            times("0 0 , * 1", "UTC", "2026-11-21T07:00:00Z", 1),
            ["2026-11-23T00:00:00Z"]
        );
    }
}
