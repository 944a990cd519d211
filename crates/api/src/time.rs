//! Instants on the wire: RFC 3339 text, microseconds since the Unix epoch inside.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writers that nobody reads by eye are given times as numbers, under these names: whole seconds,
/// and microseconds.
pub const SECONDS_NAME: &str = "katmai::Seconds";
/// See [`SECONDS_NAME`].
pub const MICROS_NAME: &str = "katmai::Micros";

/// How long the texts are without their last letter.
const SECONDS: usize = "2026-11-21T18:00:00".len();
const MICROS: usize = "2026-11-21T18:00:00.000000".len();

/// An instant, in microseconds since 1970-01-01T00:00:00Z.
///
/// Below the line it always arrives as an argument named `now`.
/// Serialises as `metav1.Time` (whole seconds); [`Time::micro`] gives the `MicroTime` text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The instant `seconds` after the epoch.
    pub const fn from_seconds(seconds: i64) -> Time {
        Time(seconds.saturating_mul(1_000_000))
    }

    /// This instant moved by `milliseconds`, saturating at the ends of the range.
    pub const fn plus_ms(self, milliseconds: i64) -> Time {
        Time(self.0.saturating_add(milliseconds.saturating_mul(1_000)))
    }

    /// `2026-11-21T18:00:00Z`: the form of `metav1.Time`.
    pub fn seconds_text(self) -> String {
        self.shown(SECONDS, str::to_owned)
    }

    /// `2026-11-21T18:00:00.000000Z`: the form of `metav1.MicroTime`.
    pub fn micro(self) -> String {
        self.shown(MICROS, str::to_owned)
    }

    /// Shows the text without taking memory for it, which is written for every time of every object.
    fn shown<T>(self, length: usize, show: impl FnOnce(&str) -> T) -> T {
        if let Some(mut digits) = self.digits() {
            digits[length] = b'Z';
            if let Ok(text) = std::str::from_utf8(&digits[..=length]) {
                return show(text);
            }
        }
        // Years that do not have four digits.
        let stamp = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        show(&match length {
            SECONDS => stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            _ => stamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        })
    }

    /// `2026-11-21T18:00:00.000000` and room for one more, in years of four digits.
    fn digits(self) -> Option<[u8; MICROS + 1]> {
        let stamp = jiff::Timestamp::from_microsecond(self.0).ok()?;
        let at = jiff::tz::Offset::UTC.to_datetime(stamp);
        let year = u64::try_from(at.year()).ok()?;
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |at: usize, mut value: u64, width: usize| {
            for place in (at..at + width).rev() {
                text[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        let small = |value: i8| u64::from(value.unsigned_abs());
        put(0, year, 4);
        put(5, small(at.month()), 2);
        put(8, small(at.day()), 2);
        put(11, small(at.hour()), 2);
        put(14, small(at.minute()), 2);
        put(17, small(at.second()), 2);
        put(20, self.0.rem_euclid(1_000_000).unsigned_abs(), 6);
        Some(text)
    }

    /// `Sat, 21 Nov 2026 18:00:00 UTC`, as messages have it.
    pub fn rfc1123(self) -> String {
        let stamp = jiff::Timestamp::from_second(self.0.div_euclid(1_000_000)).unwrap_or_default();
        stamp.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string()
    }

    /// Reads either form; `None` where the text is no RFC 3339 instant.
    pub fn parse(text: &str) -> Option<Time> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|stamp| Time(stamp.as_microsecond()))
    }
}

/// Whether a time zone has this name, spelled exactly so.
pub fn is_zone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            let seconds = self.0.div_euclid(1_000_000);
            return serializer.serialize_newtype_struct(SECONDS_NAME, &seconds);
        }
        self.shown(SECONDS, |text| serializer.serialize_str(text))
    }
}

/// Serialises a `metav1.MicroTime`: what was read to the microsecond is put down so.
pub(crate) fn as_micro<S: Serializer>(at: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) if !serializer.is_human_readable() => {
            serializer.serialize_newtype_struct(MICROS_NAME, &at.0)
        }
        Some(at) => at.shown(MICROS, |text| serializer.serialize_str(text)),
        None => serializer.serialize_none(),
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Time::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not an RFC 3339 time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the calendar's library says.
    fn slow(time: Time) -> [String; 2] {
        let stamp = jiff::Timestamp::from_microsecond(time.0).unwrap_or_default();
        let whole = jiff::Timestamp::from_second(time.0.div_euclid(1_000_000)).unwrap_or_default();
        [
            whole.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            stamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        ]
    }

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        let mut draw = 1_u64;
        let mut all: Vec<i64> = vec![0, -1, 1, -62_167_219_200_000_000, 253_402_200_000_999_999];
        // The ends of February, of years and of centuries.
        for year in (0..10_000).step_by(4) {
            let at: jiff::Timestamp = format!("{year:04}-02-29T23:59:59.999999Z")
                .parse()
                .or_else(|_| format!("{year:04}-02-28T23:59:59.999999Z").parse())
                .expect("a day of that year");
            all.extend([at.as_microsecond(), at.as_microsecond() + 1]);
        }
        for _ in 0..20_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // 1827 to 2112, and now and then any time that there is.
            let spread = if draw.is_multiple_of(8) { 1 } else { 1_000 };
            all.push(draw.cast_signed() / 2 / spread);
        }
        for time in all.into_iter().map(Time) {
            let quick = [time.seconds_text(), time.micro()];
            assert_eq!(quick, slow(time), "{time:?}");
        }
    }
}
