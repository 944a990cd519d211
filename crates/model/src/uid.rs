//! Uids of tasks.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A uid. One as servers make them is held as the number that it writes, which takes no memory of its own;
/// any other text as it is. Uids stand in the order of their texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Uid(Held);

#[derive(Clone, PartialEq, Eq)]
enum Held {
    /// Its two halves: a whole one would have to lie at every sixteenth byte. That the upper one is not 0
    /// tells it from a text without a word more.
    Number(Halves),
    /// Never what a number writes; nothing where it is empty.
    Text(Option<Arc<Box<str>>>),
}

type Halves = (NonZeroU64, u64);

impl Held {
    fn of(text: &str) -> Held {
        match number(text) {
            Some(halves) => Held::Number(halves),
            None => Held::Text((!text.is_empty()).then(|| Arc::new(text.into()))),
        }
    }
}

/// Where dashes stand in a uid that servers make.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const LENGTH: usize = 36;

impl Uid {
    /// As it is written.
    pub fn text(&self) -> Arc<str> {
        match &self.0 {
            Held::Number(halves) => written(halves, |text| text.into()),
            Held::Text(text) => shown(text).into(),
        }
    }

    /// Whether it is written so.
    pub fn is(&self, text: &str) -> bool {
        match &self.0 {
            Held::Number(halves) => number(text).as_ref() == Some(halves),
            Held::Text(held) => shown(held) == text,
        }
    }
}

fn shown(text: &Option<Arc<Box<str>>>) -> &str {
    text.as_deref().map_or("", |text| text)
}

/// What is done with the text of a number.
fn written<T>((upper, lower): &Halves, show: impl FnOnce(&str) -> T) -> T {
    let halves = [upper.get(), *lower];
    let mut text = [b'-'; LENGTH];
    let places = (0..LENGTH).filter(|at| !DASHES.contains(at));
    for (digit, at) in (0..).zip(places) {
        let value = halves[digit / 16] >> (60 - digit % 16 * 4) & 15;
        text[at] = b"0123456789abcdef"[value as usize];
    }
    show(std::str::from_utf8(&text).expect("digits and dashes are a text"))
}

/// The value of each byte as a digit; what is none has a value above them.
const DIGITS: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NO_DIGIT: u8 = 16;

/// The number that a uid writes, if it is written as servers do: no two texts write the same.
fn number(uid: &str) -> Option<Halves> {
    let bytes: &[u8; LENGTH] = uid.as_bytes().try_into().ok()?;
    let mut seen = 0;
    let mut part = |digits: &[u8]| {
        digits.iter().fold(0_u64, |number, byte| {
            let digit = DIGITS[usize::from(*byte)];
            seen |= digit;
            number << 4 | u64::from(digit & 15)
        })
    };
    let upper = part(&bytes[0..8]) << 32 | part(&bytes[9..13]) << 16 | part(&bytes[14..18]);
    let lower = part(&bytes[19..23]) << 48 | part(&bytes[24..36]);
    let is_number = seen < NO_DIGIT && DASHES.iter().all(|at| bytes[*at] == b'-');
    Some((NonZeroU64::new(upper)?, lower)).filter(|_| is_number)
}

impl From<&str> for Uid {
    fn from(text: &str) -> Uid {
        Uid(Held::of(text))
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Uid {
        Uid::from(text.as_str())
    }
}

impl From<Arc<str>> for Uid {
    fn from(text: Arc<str>) -> Uid {
        Uid::from(&*text)
    }
}

impl Default for Uid {
    fn default() -> Uid {
        Uid(Held::Text(None))
    }
}

impl Ord for Uid {
    fn cmp(&self, other: &Uid) -> Ordering {
        match (&self.0, &other.0) {
            (Held::Number(mine), Held::Number(its)) => mine.cmp(its),
            (Held::Text(mine), Held::Text(its)) => mine.cmp(its),
            (Held::Number(mine), Held::Text(its)) => written(mine, |mine| mine.cmp(shown(its))),
            (Held::Text(mine), Held::Number(its)) => written(its, |its| shown(mine).cmp(its)),
        }
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Uid) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Held::Number(halves) => written(halves, |text| f.write_str(text)),
            Held::Text(text) => f.write_str(shown(text)),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_what_it_was_and_stands_where_its_text_does() {
        let texts = [
            "",
            "00000000-0000-0000-0000-00000000002a",
            "0000002a-5a1c-4d2e-9f00-000000000001",
            "0000002a-5a1c-4d2e-9f00-00000000000f",
            "0000002A-5a1c-4d2e-9f00-000000000001",
            "0000002a-5a1c-4d2e-9f00+000000000001",
            "0000002a-5a1c-4d2e-9f00-00000000000-",
            "0000002a05a1c-4d2e-9f00-000000000001",
            "fedcba98-7654-3210-0123-456789abcdef",
            "u",
        ];
        let uids: Vec<Uid> = texts.iter().map(|text| Uid::from(*text)).collect();
        assert_eq!(size_of::<Uid>(), 16);
        let as_numbers = uids.iter().filter(|it| matches!(it.0, Held::Number(_)));
        assert_eq!(as_numbers.count(), 3);
        for (text, uid) in texts.iter().zip(&uids) {
            assert_eq!((&*uid.text(), &*uid.to_string()), (*text, *text));
            for (other, its) in texts.iter().zip(&uids) {
                assert_eq!(uid.is(other), text == other);
                assert_eq!(uid.cmp(its), text.cmp(other), "{text:?} and {other:?}");
            }
        }
    }
}
