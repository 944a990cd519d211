//! Instants on the wire: RFC 3339 text, microseconds since the Unix epoch inside.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        let stamp = jiff::Timestamp::from_second(self.0.div_euclid(1_000_000)).unwrap_or_default();
        stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// `2026-11-21T18:00:00.000000Z`: the form of `metav1.MicroTime`.
    pub fn micro(self) -> String {
        let stamp = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        stamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
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
        serializer.serialize_str(&self.seconds_text())
    }
}

/// Serialises a `metav1.MicroTime`: what was read to the microsecond is put down so.
pub(crate) fn as_micro<S: Serializer>(at: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.serialize_str(&at.micro()),
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
