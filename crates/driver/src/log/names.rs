//! Names of fields as numbers, each explained once in a segment.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::token::may_hide;

/// A name that the segment does not have, where it is read.
const UNKNOWN: u64 = u32::MAX as u64;
/// So many names are found by where their text lies, each in one of a few rows.
const PLACES: usize = 1_024;
const CHOICE: usize = 4;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Names {
    all: Vec<Cow<'static, str>>,
    numbers: BTreeMap<Cow<'static, str>, u64>,
    /// Names in a program's memory lie still: the same place and length is the same name.
    places: Vec<Place>,
    /// So many are explained.
    explained: usize,
    is_open: bool,
    /// Under one of them there may be secrets.
    may_hide: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    address: usize,
    length: u32,
    number: u32,
}

impl Names {
    /// For a writer, who adds what he meets.
    pub(super) fn of_writer() -> Names {
        Names {
            all: Vec::new(),
            numbers: BTreeMap::new(),
            places: Vec::new(),
            explained: 0,
            is_open: true,
            may_hide: false,
        }
    }

    /// For a reader, who is told.
    pub(super) fn of_reader() -> Names {
        Names {
            is_open: false,
            ..Names::of_writer()
        }
    }

    /// The number of a name.
    #[inline]
    pub(super) fn number(&mut self, name: &'static str) -> u64 {
        let address = name.as_ptr().addr();
        // The high bits of the product depend on all of the address.
        let product = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = (product >> (64 - PLACES.ilog2())) as usize / CHOICE * CHOICE;
        let rows = self.places.get(first..first + CHOICE).unwrap_or_default();
        for place in rows {
            if place.address == address && place.length as usize == name.len() {
                return u64::from(place.number);
            }
        }
        self.look_up(name, first)
    }

    #[cold]
    fn look_up(&mut self, name: &'static str, first: usize) -> u64 {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if self.is_open => self.add(Cow::Borrowed(name)),
            None => return UNKNOWN,
        };
        let (Ok(length), Ok(short)) = (u32::try_from(name.len()), u32::try_from(number)) else {
            return number;
        };
        self.places.resize(PLACES, Place::default());
        // The one that was found last stands first, and the one that was last goes.
        if let Some(rows) = self.places.get_mut(first..first + CHOICE) {
            rows.rotate_right(1);
            rows[0] = Place {
                address: name.as_ptr().addr(),
                length,
                number: short,
            };
        }
        number
    }

    fn add(&mut self, name: Cow<'static, str>) -> u64 {
        let number = self.all.len() as u64;
        self.may_hide |= may_hide(name.as_bytes());
        self.numbers.insert(name.clone(), number);
        self.all.push(name);
        number
    }

    /// A reader is told the next name.
    pub(super) fn learn(&mut self, name: &str) {
        self.add(Cow::Owned(name.to_owned()));
        self.explained = self.all.len();
    }

    /// Whether there may be secrets under one of them.
    pub(super) fn may_hide(&self) -> bool {
        self.may_hide
    }

    /// The name of a number.
    pub(super) fn name(&self, number: u64) -> Option<&str> {
        let name = self.all.get(usize::try_from(number).ok()?);
        name.map(|name| &**name)
    }

    /// Names that are not explained yet; they are now.
    pub(super) fn unexplained(&mut self) -> &[Cow<'static, str>] {
        let from = std::mem::replace(&mut self.explained, self.all.len());
        self.all.get(from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_wherever_its_text_lies() {
        let mut names = Names::of_writer();
        let all: &'static str = "spec-status-spec";
        let numbers = [&all[..4], &all[5..11], &all[12..]].map(|name| names.number(name));
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(names.unexplained(), ["spec", "status"]);
        assert_eq!(names.unexplained(), [""; 0]);
        assert_eq!((names.name(1), names.name(2)), (Some("status"), None));
    }

    #[test]
    fn names_that_share_a_place_are_told_apart() {
        let text: &'static str = Box::leak("abcd".repeat(PLACES * 4).into_boxed_str());
        let mut names = Names::of_writer();
        let mut known = BTreeMap::new();
        for turn in 0..2 {
            for at in 0..PLACES * 3 {
                let name = &text[at..at + 1 + at % 7];
                let number = names.number(name);
                assert_eq!(names.name(number), Some(name), "turn {turn}");
                assert_eq!(*known.entry(name).or_insert(number), number);
            }
        }
    }

    #[test]
    fn a_reader_knows_what_it_was_told_and_adds_nothing() {
        let mut names = Names::of_reader();
        names.learn("spec");
        assert_eq!(names.number("spec"), 0);
        assert_eq!(names.number("status"), UNKNOWN);
        assert_eq!(names.name(UNKNOWN), None);
        names.learn("status");
        assert_eq!(names.number("status"), 1);
    }
}
