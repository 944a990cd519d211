//! Texts of arguments that stand for numbers: lengths of time as Go writes them, and amounts as Kubernetes
//! does.
//!
//! Sources: the documentation of Go's `time.ParseDuration`; Kubernetes' page on quantities.

/// The units of a length of time, in billionths of a second.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The suffixes of an amount that are powers of ten, by their exponents.
const POWERS: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Those that are powers of 1024.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Larger exponents are as good as this one.
const EXPONENT_MAX: i32 = 30;

/// Digits of a fraction that count; others are too small to.
const FRACTION_DIGITS: usize = 18;

/// An unsigned number at the beginning of a text, and what comes behind it.
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
    rest: &'a str,
}

impl<'a> Number<'a> {
    /// Digits with a point before, behind or between them, or none; one digit at least.
    fn read(text: &'a str) -> Option<Number<'a>> {
        let digits =
            |text: &'a str| text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
        let (whole, after) = digits(text);
        let (fraction, rest) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        let is_one = !(whole.is_empty() && fraction.is_empty());
        is_one.then_some(Number {
            whole,
            fraction,
            rest,
        })
    }

    /// So many times a unit: the whole part of that, and whether something is left over. `None` where it is
    /// more than can be counted.
    fn times(&self, unit: i128) -> Option<(i128, bool)> {
        let whole = match self.whole {
            "" => 0,
            digits => digits.parse::<i128>().ok()?.checked_mul(unit)?,
        };
        let (counts, beyond) = self
            .fraction
            .split_at(self.fraction.len().min(FRACTION_DIGITS));
        let beyond = beyond.bytes().any(|digit| digit != b'0');
        let mut part = 0_i128;
        let mut of = 1_i128;
        for digit in counts.bytes() {
            part = part * 10 + i128::from(digit - b'0');
            of *= 10;
        }
        let part = part.checked_mul(unit)?;
        Some((whole.checked_add(part / of)?, part % of != 0 || beyond))
    }
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A length of time in milliseconds; part of one counts as a whole one. `None` for what Go does not read:
/// no unit (but for a plain `0`), an unknown one, or more than some 292 years.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = sign(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let number = Number::read(rest)?;
        let until = |c: char| c.is_ascii_digit() || c == '.';
        let (name, after) = number
            .rest
            .split_at(number.rest.find(until).unwrap_or(number.rest.len()));
        let unit = UNITS.iter().find(|(unit, _)| *unit == name)?.1;
        total = total.checked_add(number.times(unit)?.0)?;
        rest = after;
    }
    let bound = i128::from(i64::MAX) + i128::from(is_negative);
    if total > bound {
        return None;
    }
    let up = i64::try_from((total + 999_999) / 1_000_000).ok()?;
    Some(if is_negative { -up } else { up })
}

/// An amount, of which one is `per_one` here; part of that counts as a whole, and what is too much as the
/// most there is. `None` for what is none, or less than nothing.
pub(super) fn amount(text: &str, per_one: i64) -> Option<i64> {
    let (is_negative, rest) = sign(text);
    let number = Number::read(rest)?;
    let (unit, of) = scale(number.rest)?;
    let most = i64::MAX;
    let Some((whole, is_more)) = number.times(i128::from(per_one).checked_mul(unit)?) else {
        return Some(most).filter(|_| !is_negative);
    };
    let is_more = is_more || whole % of != 0;
    let up = whole / of + i128::from(is_more);
    let up = i64::try_from(up).unwrap_or(most);
    (!is_negative || up == 0).then_some(up)
}

/// What one of a suffix is, as a fraction.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    if let Some(at) = BINARY.iter().position(|name| *name == suffix) {
        return Some((1 << (10 * (at + 1)), 1));
    }
    let power = POWERS.iter().find(|(name, _)| *name == suffix);
    let exponent = match power {
        Some((_, exponent)) => *exponent,
        None => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let (is_negative, digits) = sign(exponent);
            let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
            // Beyond this it is too much, or next to nothing, whatever stands before it.
            let exponent = digits.parse::<i32>().ok().filter(|_| is_number)?;
            let exponent = exponent.min(EXPONENT_MAX);
            if is_negative { -exponent } else { exponent }
        }
    };
    let power = 10_i128.pow(exponent.unsigned_abs());
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::{amount, milliseconds};

    #[test]
    fn a_length_of_time_is_what_go_makes_of_it() {
        for (text, counts) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("0s", Some(0)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("2.5m", Some(150_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("1.s", Some(1_000)),
            ("+1s", Some(1_000)),
            ("-1.5h", Some(-5_400_000)),
            ("1m1h1m", Some(3_720_000)),
            ("1ms", Some(1)),
            ("100us", Some(1)),
            ("1500\u{b5}s", Some(2)),
            ("1000\u{3bc}s", Some(1)),
            ("1ns", Some(1)),
            ("0.000000000001s", Some(0)),
            ("2562047h47m16.854775807s", Some(9_223_372_036_855)),
            ("2562047h47m16.854775808s", None),
            ("-2562047h47m16.854775808s", Some(-9_223_372_036_855)),
            ("99999999999999999999999999999999999999999h", None),
            ("", None),
            ("-", None),
            ("5", None),
            (".s", None),
            ("s", None),
            ("1d", None),
            ("1 s", None),
            ("1S", None),
            ("--1s", None),
            ("1s-1s", None),
            ("1e3s", None),
        ] {
            assert_eq!(milliseconds(text), counts, "{text:?}");
        }
    }

    #[test]
    fn an_amount_is_what_kubernetes_makes_of_it() {
        for (text, milli, ones) in [
            ("250m", Some(250), Some(1)),
            ("0.5", Some(500), Some(1)),
            (".5", Some(500), Some(1)),
            ("2.", Some(2_000), Some(2)),
            ("+2", Some(2_000), Some(2)),
            ("1500u", Some(2), Some(1)),
            ("1n", Some(1), Some(1)),
            ("200M", Some(200_000_000_000), Some(200_000_000)),
            ("200Mi", Some(209_715_200_000), Some(209_715_200)),
            ("1.5Gi", Some(1_610_612_736_000), Some(1_610_612_736)),
            ("1k", Some(1_000_000), Some(1_000)),
            ("1e3", Some(1_000_000), Some(1_000)),
            ("1E3", Some(1_000_000), Some(1_000)),
            ("1E-3", Some(1), Some(1)),
            ("5e-1", Some(500), Some(1)),
            ("1E", Some(i64::MAX), Some(1_000_000_000_000_000_000)),
            ("9Ei", Some(i64::MAX), Some(i64::MAX)),
            ("1e999999", Some(i64::MAX), Some(i64::MAX)),
            ("0e30", Some(0), Some(0)),
            ("1e-999999", Some(1), Some(1)),
            ("0.0000000000000000000000001", Some(1), Some(1)),
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("-1", None, None),
            ("", None, None),
            ("much", None, None),
            ("1K", None, None),
            ("1 Mi", None, None),
            ("1e", None, None),
            ("1Mi1", None, None),
            ("1.2.3", None, None),
        ] {
            assert_eq!(amount(text, 1_000), milli, "{text:?} in thousandths");
            assert_eq!(amount(text, 1), ones, "{text:?}");
        }
    }
}
