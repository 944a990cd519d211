//! `resource.Quantity`: exact decimal amounts such as `100m`, `1.5Gi` or `1e3`.
//!
//! Amounts are whole numbers of nano-units; anything finer is rounded away from zero when read,
//! and everything saturates at the ends of the range instead of wrapping.
//! The kind of suffix is remembered, and texts print as Go prints them: mostly in canonical form,
//! but Go keeps some texts as they came (`1.500`, `+5`), and so do we.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANO_DIGITS: i64 = 9;
const NANO: i128 = 1_000_000_000;
/// Digits that surely fit an `int64`; Go keeps texts as they came only up to here.
const SHORT_DIGITS: i64 = 18;

/// An exact amount, at least ±10^29 wide.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text as it came, only where it differs from the canonical form and Go keeps it.
    kept: Option<Box<str>>,
}

/// The family of suffixes that an amount was written with, and is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `n u m k M G T P E`
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`
    BinarySi,
    /// `e3`
    DecimalExponent,
}

/// Why a text is no quantity; the texts are those of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text has not the shape of a number with a suffix.
    Shape,
    /// The suffix is none that exists.
    Suffix,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ParseError::Shape => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            ParseError::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for ParseError {}

const DECIMAL: &[(&str, i64)] = &[
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

const BINARY: &[(&str, u32)] = &[
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity::from_nanos(0, Format::DecimalSi);

    /// An amount in nano-units.
    pub const fn from_nanos(nanos: i128, format: Format) -> Quantity {
        Quantity {
            nanos,
            format,
            kept: None,
        }
    }

    /// An amount in milli-units, printed in the decimal family.
    pub const fn from_milli(milli: i64) -> Quantity {
        Quantity::from_nanos(milli as i128 * 1_000_000, Format::DecimalSi)
    }

    /// A whole amount.
    pub const fn from_value(value: i64, format: Format) -> Quantity {
        Quantity::from_nanos(value as i128 * NANO, format)
    }

    /// Reads a text as Go's `ParseQuantity` does.
    pub fn parse(text: &str) -> Result<Quantity, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Shape);
        }
        let parts = split(text)?;
        let quantity = match suffix(parts.suffix).ok_or(ParseError::Suffix)? {
            Scale::Decimal(exponent, format) => decimal(text, &parts, exponent, format),
            Scale::Binary(bits) => binary(text, &parts, bits),
        };
        Ok(quantity)
    }

    /// The amount in nano-units.
    pub const fn nanos(&self) -> i128 {
        self.nanos
    }

    /// The family of suffixes that it is printed with.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The amount in whole units, a fraction rounded away from zero, saturating.
    pub fn value(&self) -> i64 {
        rounded(self.nanos, NANO)
    }

    /// The amount in milli-units, a fraction rounded away from zero, saturating.
    pub fn milli_value(&self) -> i64 {
        rounded(self.nanos, 1_000_000)
    }

    /// Whether it is as much, and was written the same.
    pub fn is_written_like(&self, other: &Quantity) -> bool {
        self == other && self.format == other.format && self.kept == other.kept
    }

    /// Whether it is nothing.
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number of units.
    pub const fn is_whole(&self) -> bool {
        self.nanos % NANO == 0
    }

    /// Adds, saturating. Nothing takes over the other's family of suffixes.
    pub fn add(&mut self, other: &Quantity) {
        self.combine(other, i128::saturating_add);
    }

    /// Subtracts, saturating; the outcome may be negative.
    pub fn sub(&mut self, other: &Quantity) {
        self.combine(other, i128::saturating_sub);
    }

    fn combine(&mut self, other: &Quantity, operation: fn(i128, i128) -> i128) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.kept = None;
        // Both ends of the range are as far from nothing, as they are for what is read.
        self.nanos = operation(self.nanos, other.nanos).max(-i128::MAX);
    }

    /// The canonical text of an amount that is given as text.
    pub fn canonical_text(text: &str) -> Result<Cow<'_, str>, ParseError> {
        if is_plain(text) {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(Quantity::parse(text)?.canonical()))
    }

    /// The canonical text, as `CanonicalizeBytes` gives it.
    pub fn canonical(&self) -> String {
        Canonical(self).to_string()
    }
}

/// Shows the canonical text.
struct Canonical<'a>(&'a Quantity);

impl std::fmt::Display for Canonical<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Quantity { nanos, format, .. } = *self.0;
        if nanos == 0 {
            return f.write_str("0");
        }
        if format != Format::BinarySi {
            return show_decimal(nanos, format, f);
        }
        let whole = nanos / NANO;
        // A sum may be more than Kubernetes reads with a binary suffix, where it caps: printed with one, as Go
        // does, it would be read as less than was written.
        let is_small = whole.unsigned_abs() < 1024;
        let is_large = whole.unsigned_abs() > i64::MAX.unsigned_abs().into();
        if is_small || is_large || whole * NANO != nanos {
            return show_decimal(nanos, Format::DecimalSi, f);
        }
        show_binary(whole, f)
    }
}

struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros, at least one.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// Cuts a text into sign, digits and suffix. As lenient as Go's scanner: `-` and `.` are zero.
fn split(text: &str) -> Result<Parts<'_>, ParseError> {
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = digits(unsigned.trim_start_matches('0'));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after_point) => digits(after_point),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::Shape);
    }
    Ok(Parts {
        negative,
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
    })
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

enum Scale {
    Decimal(i64, Format),
    Binary(u32),
}

fn suffix(text: &str) -> Option<Scale> {
    if let Some(&(_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == text) {
        return Some(Scale::Decimal(exponent, Format::DecimalSi));
    }
    if let Some(&(_, bits)) = BINARY.iter().find(|(name, _)| *name == text) {
        return Some(Scale::Binary(bits));
    }
    let exponent = text.strip_prefix(['e', 'E'])?;
    let exponent = exponent.parse::<i64>().ok()?;
    // Beyond this everything saturates or rounds to the smallest amount anyway.
    let exponent = exponent.clamp(-1_000_000, 1_000_000);
    Some(Scale::Decimal(exponent, Format::DecimalExponent))
}

fn decimal(text: &str, parts: &Parts<'_>, exponent: i64, format: Format) -> Quantity {
    let fraction_length = parts.fraction.len() as i64;
    let length = parts.whole.len() as i64 + fraction_length;
    let scale = exponent - fraction_length;
    let amount = scaled(parts, scale + NANO_DIGITS, 1);
    let quantity = Quantity::from_nanos(amount, format);
    let short = length <= SHORT_DIGITS && scale >= -NANO_DIGITS;
    let zeros = parts
        .whole
        .bytes()
        .chain(parts.fraction.bytes())
        .rev()
        .take(3)
        .filter(|digit| *digit == b'0')
        .count();
    if short && scale % 3 == 0 && zeros < 3 && !parts.whole.starts_with('0') {
        return keep(quantity, text);
    }
    quantity
}

fn binary(text: &str, parts: &Parts<'_>, bits: u32) -> Quantity {
    let amount = scaled(parts, NANO_DIGITS - parts.fraction.len() as i64, 1 << bits);
    let cap = i128::from(i64::MAX) * NANO;
    let amount = amount.clamp(-cap, cap);
    let format = if amount != 0 && amount.abs() < NANO {
        Format::DecimalSi
    } else {
        Format::BinarySi
    };
    let quantity = Quantity::from_nanos(amount, format);
    let short = parts.whole.len() as i64 + i64::from(bits) * 3 / 10 < 15;
    let odd = parts.whole.parse::<u64>().is_ok_and(|whole| whole & 7 != 0);
    if short && parts.fraction.is_empty() && odd {
        return keep(quantity, text);
    }
    quantity
}

/// Go reuses the text of a number that looks canonical to it, without making sure.
fn keep(mut quantity: Quantity, text: &str) -> Quantity {
    if !is_plain(text) && quantity.canonical() != text {
        quantity.kept = Some(text.into());
    }
    quantity
}

/// Whether a text is surely canonical; so are nearly all, and no number need be made to see it. So few
/// digits are in no danger of the ends of the range.
fn is_plain(text: &str) -> bool {
    let (whole, suffix) = digits(text.strip_prefix('-').unwrap_or(text));
    if whole.is_empty() || whole.starts_with('0') || whole.len() > 6 {
        return false;
    }
    match suffix {
        // With three zeros another suffix would do.
        "" | "n" | "u" | "m" | "k" | "M" | "G" => !whole.ends_with("000"),
        "Ki" | "Mi" | "Gi" | "Ti" => whole.parse::<u32>().is_ok_and(|whole| whole % 1024 != 0),
        _ => false,
    }
}

/// `digits × 10^exponent × factor`, rounded away from zero, saturating.
fn scaled(parts: &Parts<'_>, exponent: i64, factor: i128) -> i128 {
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let mut kept = parts.whole.len() + parts.fraction.len();
    // Digits below the last that counts only matter by being non-zero.
    let dropped = usize::try_from(-exponent.min(0)).unwrap_or(usize::MAX);
    // A binary factor is no power of ten, so its division comes last and keeps the digits,
    // as many as can matter.
    let dropped = if factor == 1 {
        dropped.min(kept)
    } else {
        kept.saturating_sub(38).min(dropped)
    };
    kept -= dropped;
    let mut amount: i128 = 0;
    let mut inexact = false;
    for (index, digit) in digits.enumerate() {
        let digit = i128::from(digit - b'0');
        if index < kept {
            amount = amount.saturating_mul(10).saturating_add(digit);
        } else {
            inexact |= digit != 0;
        }
    }
    let exponent = exponent + dropped as i64;
    let mut amount = if amount == 0 {
        0
    } else if exponent >= 0 {
        amount
            .saturating_mul(power_of_ten(exponent))
            .saturating_mul(factor)
    } else {
        divided(amount, factor, power_of_ten(-exponent), &mut inexact)
    };
    if inexact {
        amount = amount.saturating_add(1);
    }
    if parts.negative { -amount } else { amount }
}

/// `amount × factor / divisor` for a factor that is a power of two, by doubling, so that the
/// product never has to fit.
fn divided(amount: i128, factor: i128, divisor: i128, inexact: &mut bool) -> i128 {
    let (mut part, mut rest) = (amount / divisor, amount % divisor);
    for _ in 0..factor.trailing_zeros() {
        part = part.saturating_mul(2);
        rest = rest.saturating_mul(2);
        if rest >= divisor {
            rest -= divisor;
            part = part.saturating_add(1);
        }
    }
    *inexact |= rest != 0;
    part
}

fn power_of_ten(exponent: i64) -> i128 {
    u32::try_from(exponent)
        .ok()
        .and_then(|exponent| 10_i128.checked_pow(exponent))
        .unwrap_or(i128::MAX)
}

fn rounded(nanos: i128, unit: i128) -> i64 {
    let whole = nanos / unit + (nanos % unit).signum();
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

fn show_binary(mut whole: i128, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let mut name = "";
    // Zeros at the end are cheaper to count than to divide away.
    let zeros = whole.trailing_zeros();
    if let Some((last, bits)) = BINARY.iter().rfind(|(_, bits)| *bits <= zeros) {
        whole >>= bits;
        name = last;
    }
    write!(f, "{whole}{name}")
}

fn show_decimal(amount: i128, format: Format, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let mut exponent = -NANO_DIGITS;
    // Most amounts fit half the width, which is divided at a tenth of the cost.
    if let Ok(mut amount) = i64::try_from(amount) {
        while amount % 1_000 == 0 {
            amount /= 1_000;
            exponent += 3;
        }
        return show_scaled(amount, exponent, format, f);
    }
    let mut amount = amount;
    while amount % 1_000 == 0 {
        amount /= 1_000;
        exponent += 3;
    }
    show_scaled(amount, exponent, format, f)
}

fn show_scaled(
    amount: impl std::fmt::Display,
    exponent: i64,
    format: Format,
    f: &mut std::fmt::Formatter<'_>,
) -> std::fmt::Result {
    if format == Format::DecimalSi
        && let Some((name, _)) = DECIMAL.iter().find(|(_, power)| *power == exponent)
    {
        return write!(f, "{amount}{name}");
    }
    match exponent {
        0 => write!(f, "{amount}"),
        _ => write!(f, "{amount}e{exponent}"),
    }
}

impl std::str::FromStr for Quantity {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Quantity, ParseError> {
        Quantity::parse(text)
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kept {
            Some(text) => f.write_str(text),
            None => Canonical(self).fmt(f),
        }
    }
}

/// Amounts are compared; how they were written does not count.
impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a quantity: a number or a text such as 500m or 1Gi")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text.trim()).map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_value(number, Format::DecimalSi))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
                let nanos = i128::from(number) * NANO;
                Ok(Quantity::from_nanos(nanos, Format::DecimalSi))
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests;
