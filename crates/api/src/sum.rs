//! One number for some bytes: FNV-1a, 64 bits, the same on every machine and in every version.
//!
//! Names and digests are made of it, so it never changes. It is no secret, and keeps nobody from making two
//! texts of one sum.

use std::hash::Hasher;

const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A sum of what it was given so far, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    /// Another beginning, where one number is too short.
    pub const OTHER_BASIS: u64 = 0x8422_2325_cbf2_9ce4;

    /// A sum with a beginning of its own.
    pub const fn begun_at(basis: u64) -> Sum {
        Sum(basis)
    }

    /// Takes these bytes in.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Takes a text in, and its end: `("ab", "c")` and `("a", "bc")` are two things. No text has such a byte.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    /// The number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Sum {
    fn default() -> Sum {
        Sum(Sum::BASIS)
    }
}

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of objects that there are were made so.
    #[test]
    fn sums_are_those_of_everybody_who_counts_so() {
        let of = |bytes: &[u8]| {
            let mut sum = Sum::default();
            sum.bytes(bytes);
            sum.value()
        };
        assert_eq!(of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of(b"foobar"), 0x8594_4171_f739_67e8);
        let mut texts = Sum::default();
        texts.text("ab");
        texts.text("c");
        assert_eq!(texts.value(), of(b"ab\xffc\xff"));
    }
}
