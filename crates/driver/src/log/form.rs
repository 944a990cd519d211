//! An object as the log has it: JSON in bytes that are quick to write, to walk and to compare.
//!
//! A value begins with a head. Names of fields are numbers that the segment explains once
//! ([`Names`](super::names::Names)), texts have their length in front and nothing to escape, times are
//! numbers. Each value has one form, so that equal values are equal bytes, and a reader needs
//! no list of types to make JSON of it again.
//!
//! | head | value |
//! | --- | --- |
//! | 0 | end of an object or list |
//! | 1, 2, 3 | null, false, true |
//! | 4, 5 | object: key, value, key, value, …, end; list: values, end |
//! | 6, 7 | a whole number; minus one less a whole number |
//! | 8 | a number with a point, in eight bytes |
//! | 9 | a text: length and bytes |
//! | 10 | a number of more than 64 bits, as a text of digits |
//! | 11, 12 | a time: whole numbers of seconds; of microseconds |
//! | 13–15 | whole numbers from 112, with one more byte |
//! | 16–127 | whole numbers below 112 |
//! | 128–255 | texts of less than 128 bytes |
//!
//! A key is a text, or the number of a name.

mod json;
mod put;
mod secrets;
#[cfg(test)]
mod tests;

pub(super) use json::json;
pub(super) use put::put;
pub(super) use secrets::told;

use super::bytes;

pub(super) const CLOSE: u8 = 0;
pub(super) const NULL: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const TRUE: u8 = 3;
pub(super) const OBJECT: u8 = 4;
pub(super) const LIST: u8 = 5;
pub(super) const WHOLE: u8 = 6;
pub(super) const BELOW: u8 = 7;
pub(super) const POINT: u8 = 8;
pub(super) const TEXT: u8 = 9;
pub(super) const DIGITS: u8 = 10;
pub(super) const SECONDS: u8 = 11;
pub(super) const MICROS: u8 = 12;
/// The first head of numbers with one more byte.
const WHOLE_2: u8 = 13;
/// The first head of numbers that stand in it.
const WHOLE_1: u8 = 16;
/// The first head of texts whose length stands in it.
pub(super) const TEXT_1: u8 = 128;
const SMALL: u64 = (TEXT_1 - WHOLE_1) as u64;
const MIDDLE: u64 = SMALL + ((WHOLE_1 - WHOLE_2) as u64) * 256;

/// Objects and lists within each other, at most. What the mirror reads is less deep.
pub(super) const DEPTH_MAX: usize = 256;

/// An object in its form, and where the parts of it end.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    pub(super) bytes: Vec<u8>,
    /// Objects and lists, in the order in which they begin.
    pub(super) parts: Vec<Part>,
    /// Under one of its keys there may be secrets.
    pub(super) may_hide: bool,
}

/// An object or list within a form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Behind its end.
    pub(super) end: u32,
    /// How many parts there are before the first one behind it.
    pub(super) next: u32,
}

impl Form {
    /// An empty one with room for an object of usual size.
    pub(super) fn roomy() -> Form {
        Form {
            bytes: Vec::with_capacity(1_024),
            parts: Vec::with_capacity(64),
            may_hide: false,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
        self.may_hide = false;
    }

    /// So many bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.parts.capacity() * size_of::<Part>()
    }

    /// Becomes the same as another, in the memory that it has.
    pub(super) fn become_of(&mut self, other: &Form) {
        self.bytes.clone_from(&other.bytes);
        self.parts.clone_from(&other.parts);
        self.may_hide = other.may_hide;
    }

    /// Begins an object or a list; which part it is.
    fn open(&mut self, head: u8) -> usize {
        self.bytes.push(head);
        self.parts.push(Part::default());
        self.parts.len() - 1
    }

    /// Ends it.
    fn close(&mut self, part: usize) {
        self.bytes.push(CLOSE);
        let (end, next) = (self.bytes.len() as u32, self.parts.len() as u32);
        if let Some(part) = self.parts.get_mut(part) {
            *part = Part { end, next };
        }
    }
}

#[inline]
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..128 => put_short(out, TEXT_1 + length as u8, text),
        length => {
            out.push(TEXT);
            bytes::number(out, length as u64);
            out.extend_from_slice(text);
        }
    }
}

/// Head and text. Most texts are short, and a call that copies them takes longer than the copy: two
/// halves of fixed size, which lie over each other in the middle, need none.
#[inline]
fn put_short(out: &mut Vec<u8>, head: u8, text: &[u8]) {
    let whole = out.len() + 1 + text.len();
    if let (Some(first), Some(last), true) = (
        text.first_chunk::<8>(),
        text.last_chunk::<8>(),
        text.len() <= 16,
    ) {
        let mut short = [0; 17];
        short[0] = head;
        short[1..9].copy_from_slice(first);
        if let Some(place) = short.get_mut(text.len() - 7..=text.len()) {
            place.copy_from_slice(last);
        }
        out.extend_from_slice(&short);
        out.truncate(whole);
    } else if let (Some(first), Some(last), true) = (
        text.first_chunk::<16>(),
        text.last_chunk::<16>(),
        text.len() <= 32,
    ) {
        let mut short = [0; 33];
        short[0] = head;
        short[1..17].copy_from_slice(first);
        if let Some(place) = short.get_mut(text.len() - 15..=text.len()) {
            place.copy_from_slice(last);
        }
        out.extend_from_slice(&short);
        out.truncate(whole);
    } else {
        out.push(head);
        out.extend_from_slice(text);
    }
}

#[inline]
fn put_whole(out: &mut Vec<u8>, value: u64) {
    if value < SMALL {
        out.push(WHOLE_1 + value as u8);
    } else if value < MIDDLE {
        let rest = value - SMALL;
        out.extend_from_slice(&[WHOLE_2 + (rest >> 8) as u8, rest as u8]);
    } else {
        out.push(WHOLE);
        bytes::number(out, value);
    }
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    match u64::try_from(value) {
        Ok(value) => put_whole(out, value),
        Err(_) => {
            out.push(BELOW);
            bytes::number(out, !value as u64);
        }
    }
}

/// What stands at a place of a form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item<'a> {
    /// The end of an object or list.
    Close,
    /// The beginning of one.
    Open { is_object: bool },
    /// A text.
    Text(&'a [u8]),
    /// A whole number, or the number of a name.
    Whole(u64),
    /// Minus one less this.
    Below(u64),
    /// Anything else, without its head.
    Other(u8, &'a [u8]),
}

/// What stands at a place, and where the next thing does; `None` where that is no form.
#[inline(always)]
pub(super) fn item(form: &[u8], at: usize) -> Option<(Item<'_>, usize)> {
    let head = *form.get(at)?;
    let at = at + 1;
    if head >= TEXT_1 {
        let end = at + usize::from(head - TEXT_1);
        return Some((Item::Text(form.get(at..end)?), end));
    }
    if head >= WHOLE_1 {
        return Some((Item::Whole(u64::from(head - WHOLE_1)), at));
    }
    match head {
        CLOSE => Some((Item::Close, at)),
        OBJECT => Some((Item::Open { is_object: true }, at)),
        LIST => Some((Item::Open { is_object: false }, at)),
        _ => long_item(form, head, at),
    }
}

/// The same for what is longer than its head, or seldom.
fn long_item(form: &[u8], head: u8, at: usize) -> Option<(Item<'_>, usize)> {
    let long = |at: usize| {
        let (length, at) = long_number(form, at)?;
        let end = at.checked_add(usize::try_from(length).ok()?)?;
        Some((form.get(at..end)?, end))
    };
    match head {
        WHOLE_2..WHOLE_1 => {
            let rest = u64::from(*form.get(at)?);
            let value = SMALL + u64::from(head - WHOLE_2) * 256 + rest;
            Some((Item::Whole(value), at + 1))
        }
        WHOLE => long_number(form, at).map(|(value, end)| (Item::Whole(value), end)),
        BELOW => long_number(form, at).map(|(value, end)| (Item::Below(value), end)),
        TEXT => long(at).map(|(text, end)| (Item::Text(text), end)),
        DIGITS => long(at).map(|(text, end)| (Item::Other(head, text), end)),
        SECONDS | MICROS => {
            // Not by itself: no depth of heads is a time.
            let is_number = !matches!(form.get(at)?, &SECONDS | &MICROS);
            let (Item::Whole(_) | Item::Below(_), end) = is_number.then(|| item(form, at))?? else {
                return None;
            };
            Some((Item::Other(head, form.get(at..end)?), end))
        }
        POINT => Some((Item::Other(head, form.get(at..at + 8)?), at + 8)),
        _ => Some((Item::Other(head, &[]), at)),
    }
}

fn long_number(form: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *form.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
    None
}
