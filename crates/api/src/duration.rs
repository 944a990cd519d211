//! Go durations as text: `300ms`, `1h30m0s`, `-1.5h`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time in nanoseconds, read and written as Go's `time.Duration`
/// (`metav1.Duration` on the wire).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

const NANOSECOND: u64 = 1;
const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Longest unit text first where one begins with another.
const UNITS: &[(&str, u64)] = &[
    ("ns", NANOSECOND),
    ("us", MICROSECOND),
    ("µs", MICROSECOND),
    ("μs", MICROSECOND),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

impl Duration {
    /// This many whole seconds, saturating.
    pub const fn from_seconds(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(SECOND as i64))
    }

    /// In milliseconds, rounded towards zero.
    pub const fn milliseconds(self) -> i64 {
        self.0 / MILLISECOND as i64
    }

    /// In microseconds, rounded towards zero.
    pub const fn micros(self) -> i64 {
        self.0 / MICROSECOND as i64
    }

    /// Reads Go's form. The error is the text of Go's `time.ParseDuration`.
    pub fn parse(text: &str) -> Result<Duration, String> {
        let invalid = || format!("time: invalid duration {}", quote(text));
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Duration(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (whole, after_whole) = digits(rest);
            let (fraction, after) = match after_whole.strip_prefix('.') {
                Some(after_point) => digits(after_point),
                None => ("", after_whole),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let unit_length = after
                .find(|c: char| c == '.' || c.is_ascii_digit())
                .unwrap_or(after.len());
            let (unit, next) = after.split_at(unit_length);
            if unit.is_empty() {
                return Err(format!("time: missing unit in duration {}", quote(text)));
            }
            let Some(&(_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    quote(unit),
                    quote(text)
                ));
            };
            let part = span(whole, fraction, size).ok_or_else(invalid)?;
            total = total.checked_add(part).ok_or_else(invalid)?;
            if total > 1 << 63 {
                return Err(invalid());
            }
            rest = next;
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(total)) => Ok(Duration(total)),
            (true, Ok(total)) => Ok(Duration(-total)),
            (true, Err(_)) => Ok(Duration(i64::MIN)),
            (false, Err(_)) => Err(invalid()),
        }
    }
}

/// Whole part and fraction of a unit, in nanoseconds, the fraction cut off below one.
fn span(whole: &str, fraction: &str, size: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    if whole > 1 << 63 {
        return None;
    }
    let mut scaled: u128 = 0;
    let mut scale: u128 = 1;
    // 18 digits are finer than a nanosecond of an hour.
    for digit in fraction.bytes().take(18) {
        scaled = scaled * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let part = u64::try_from(scaled * u128::from(size) / scale).ok()?;
    whole.checked_mul(size)?.checked_add(part)
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn quote(text: &str) -> String {
    crate::names::go_quote(text)
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if size == 0 {
            return f.write_str("0s");
        }
        if size < SECOND {
            let (unit, name) = match size {
                0..MICROSECOND => (NANOSECOND, "ns"),
                MICROSECOND..MILLISECOND => (MICROSECOND, "µs"),
                _ => (MILLISECOND, "ms"),
            };
            return write!(f, "{}{name}", decimal(size, unit));
        }
        let (hours, minutes) = (size / HOUR, size % HOUR / MINUTE);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(size % MINUTE, SECOND))
    }
}

/// `size / unit` without trailing zeros.
fn decimal(size: u64, unit: u64) -> String {
    let (whole, part) = (size / unit, size % unit);
    if part == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{part:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Duration::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_and_print_as_in_go() {
        for (text, nanoseconds, printed) in [
            ("0", 0, "0s"),
            ("-0", 0, "0s"),
            ("5s", 5_000_000_000, "5s"),
            ("+5s", 5_000_000_000, "5s"),
            ("1478s", 1_478_000_000_000, "24m38s"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("-2m3.4s", -123_400_000_000, "-2m3.4s"),
            ("100ms", 100_000_000, "100ms"),
            ("1.1ms", 1_100_000, "1.1ms"),
            ("2us", 2_000, "2µs"),
            ("2µs", 2_000, "2µs"),
            (".5s", 500_000_000, "500ms"),
            ("5.s", 5_000_000_000, "5s"),
            (
                "0.3333333333333333333h",
                1_200_000_000_000 - 1,
                "19m59.999999999s",
            ),
            (
                "9223372036854775807ns",
                i64::MAX,
                "2562047h47m16.854775807s",
            ),
            (
                "-9223372036854775808ns",
                i64::MIN,
                "-2562047h47m16.854775808s",
            ),
        ] {
            let duration = Duration::parse(text).unwrap();
            assert_eq!(duration.0, nanoseconds, "{text}");
            assert_eq!(duration.to_string(), printed, "{text}");
        }
    }

    #[test]
    fn errors_are_the_texts_of_go() {
        for (text, message) in [
            ("", "time: invalid duration \"\""),
            ("3", "time: missing unit in duration \"3\""),
            ("-", "time: invalid duration \"-\""),
            ("s", "time: invalid duration \"s\""),
            (".", "time: invalid duration \".\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
            (
                "9223372036854775808ns",
                "time: invalid duration \"9223372036854775808ns\"",
            ),
        ] {
            assert_eq!(Duration::parse(text).unwrap_err(), message);
        }
    }
}
