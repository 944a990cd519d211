//! Numbers and texts as bytes. A reader never reads past its end and never takes more than is there.

use super::frame::Problem;

/// Puts numbers and texts down.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number that may be below zero.
pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn text(out: &mut Vec<u8>, text: &[u8]) {
    number(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Reads what was put down.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the first byte stands in the file.
    offset: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], offset: u64) -> Reader<'a> {
        Reader {
            bytes,
            at: 0,
            offset,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Where the next byte stands in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.at as u64
    }

    pub(super) fn problem(&self, what: &str) -> Problem {
        Problem::Damaged {
            offset: self.offset(),
            what: what.to_owned(),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Problem> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or_else(|| self.problem("a record ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, Problem> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.problem("a number is too long"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, Problem> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn length(&mut self) -> Result<usize, Problem> {
        let value = self.number()?;
        usize::try_from(value).map_err(|_| self.problem("a length is too large"))
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], Problem> {
        let length = self.length()?;
        self.take(length)
            .ok_or_else(|| self.problem("a text ends early"))
    }

    /// So many bytes, if there are so many.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let text = self.bytes.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(text)
    }

    pub(super) fn word(&mut self) -> Result<&'a str, Problem> {
        let text = self.text()?;
        std::str::from_utf8(text).map_err(|_| self.problem("a text is not UTF-8"))
    }
}
