//! Resource vectors: rows of integers over the table's list of resource kinds.
//!
//! Units: cpu in thousandths of a core, memory in bytes, pods in pieces, everything else in
//! thousandths (as upstream counts scalars). Arithmetic saturates. Shares are fractions, compared
//! exactly; there is no floating point in an order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

mod kinds;

pub use kinds::{ASKED_MAX, BEYOND, KINDS_MAX, ResourceKinds};

/// A resource kind of one table: its position in every vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u16);

impl Kind {
    /// Thousandths of a core.
    pub const CPU: Kind = Kind(0);
    /// Bytes.
    pub const MEMORY: Kind = Kind(1);
    /// Pods, in pieces.
    pub const PODS: Kind = Kind(2);
    /// Of no table: what is counted in pieces and has no place in a vector, such as cards.
    pub const PIECES: Kind = Kind(u16::MAX);

    /// The position in a vector.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How much of what, with the name at hand: prints as `100m cpu`, `2Gi memory`, `3 nvidia.com/gpu`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// The kind.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// How much, in the kind's unit.
    pub value: i64,
}

impl Amount {
    /// So many pieces of something that has no place in a vector.
    pub fn pieces(name: impl Into<Arc<str>>, count: i64) -> Amount {
        Amount {
            kind: Kind::PIECES,
            name: name.into(),
            value: count,
        }
    }

    /// The number alone, as Kubernetes would write it; for people, it may be rounded down.
    pub fn number(&self) -> String {
        match self.kind {
            Kind::MEMORY => bytes(self.value),
            _ => self.exact(),
        }
    }

    /// The number alone to the last unit, as Kubernetes reads it.
    pub fn exact(&self) -> String {
        match self.kind {
            Kind::MEMORY => whole_units(self.value).unwrap_or_else(|| self.value.to_string()),
            Kind::PODS | Kind::PIECES => self.value.to_string(),
            _ => milli(self.value),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Kind::PODS {
            let plural = if self.value == 1 { "" } else { "s" };
            return write!(f, "{} pod slot{plural}", self.value);
        }
        write!(f, "{} {}", self.number(), self.name)
    }
}

fn milli(value: i64) -> String {
    if value % 1_000 == 0 {
        (value / 1_000).to_string()
    } else {
        format!("{value}m")
    }
}

/// In the largest unit of which it is a whole number.
fn whole_units(value: i64) -> Option<String> {
    let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let is_whole = |(shift, _): &(u32, &str)| value != 0 && value % (1_i64 << shift) == 0;
    let (shift, unit) = units.into_iter().find(is_whole)?;
    Some(format!("{}{unit}", value >> shift))
}

fn bytes(value: i64) -> String {
    if let Some(text) = whole_units(value) {
        return text;
    }
    // An amount that is no whole number of kibibytes is rounded down to the largest unit that
    // leaves three digits; it is for reading, never parsed again.
    for (shift, unit) in [(30, "Gi"), (20, "Mi"), (10, "Ki")] {
        if value.saturating_abs() >= 100 << shift {
            return format!("{}{unit}", value >> shift);
        }
    }
    value.to_string()
}

/// Changes amounts by others, wrapping; whether one of them did not fit.
#[inline]
fn step(mine: &mut [i64], its: &[i64], change: impl Fn(i64, i64) -> (i64, bool)) -> bool {
    let mut is_beyond = false;
    for (mine, its) in mine.iter_mut().zip(its) {
        let (value, wraps) = change(*mine, *its);
        *mine = value;
        is_beyond |= wraps;
    }
    is_beyond
}

/// A sum as it is read: the greatest or least number that fits where it does not.
pub fn shown(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}

/// Amounts by kind; a kind beyond the end is zero.
///
/// Sums are exact however large they are: one that no longer fits is read as the greatest (or least)
/// number that does, and is right again once what was too large has been taken away. Anybody may ask for as
/// much as can be written, and what others ask for must not be lost in that.
#[derive(Clone, Debug, Default)]
pub struct Vector {
    shown: Vec<i64>,
    /// All amounts, as long as one of them does not fit.
    exact: Option<Box<[i128]>>,
}

impl Vector {
    /// All zero.
    pub const ZERO: Vector = Vector {
        shown: Vec::new(),
        exact: None,
    };

    /// A vector of the given amounts; the last amount wins where a kind occurs twice.
    pub fn of(amounts: impl IntoIterator<Item = (Kind, i64)>) -> Vector {
        let mut vector = Vector::ZERO;
        for (kind, value) in amounts {
            vector.set(kind, value);
        }
        vector
    }

    /// The amount of `kind`.
    #[inline]
    pub fn get(&self, kind: Kind) -> i64 {
        self.shown.get(kind.index()).copied().unwrap_or(0)
    }

    /// Sets the amount of `kind`.
    pub fn set(&mut self, kind: Kind, value: i64) {
        if kind.index() >= self.shown.len() {
            if value == 0 {
                return;
            }
            self.shown.resize(kind.index() + 1, 0);
        }
        if self.exact.is_some() {
            let mut exact = self.exact();
            exact[kind.index()] = value.into();
            *self = Vector::shown(exact);
        } else {
            self.shown[kind.index()] = value;
        }
    }

    /// Amounts in order of kind; kinds beyond the end are zero.
    pub fn amounts(&self) -> &[i64] {
        &self.shown
    }

    /// The kinds with a non-zero amount, with it.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = (Kind, i64)> {
        self.shown
            .iter()
            .enumerate()
            .filter(|(_, value)| **value != 0)
            .map(|(at, value)| {
                (
                    Kind(u16::try_from(at).expect("KINDS_MAX fits in 16 bits")),
                    *value,
                )
            })
    }

    /// Whether every amount is zero.
    pub fn is_zero(&self) -> bool {
        self.shown.iter().all(|value| *value == 0)
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Vector) {
        if self.is_narrow_with(other) {
            if !step(&mut self.shown, &other.shown, i64::overflowing_add) {
                return;
            }
            step(&mut self.shown, &other.shown, i64::overflowing_sub);
        }
        self.combine(other, i128::saturating_add);
    }

    /// Subtracts `other`; amounts may become negative.
    pub fn sub(&mut self, other: &Vector) {
        if self.is_narrow_with(other) {
            if !step(&mut self.shown, &other.shown, i64::overflowing_sub) {
                return;
            }
            step(&mut self.shown, &other.shown, i64::overflowing_add);
        }
        self.combine(other, i128::saturating_sub);
    }

    /// Whether both hold nothing that does not fit; it is made as long as the other.
    #[inline]
    fn is_narrow_with(&mut self, other: &Vector) -> bool {
        if self.shown.len() < other.shown.len() {
            self.shown.resize(other.shown.len(), 0);
        }
        self.exact.is_none() && other.exact.is_none()
    }

    #[cold]
    fn combine(&mut self, other: &Vector, wide: fn(i128, i128) -> i128) {
        let (mut exact, its) = (self.exact(), other.exact());
        for (mine, its) in exact.iter_mut().zip(its) {
            *mine = wide(*mine, its);
        }
        *self = Vector::shown(exact);
    }

    /// All amounts as they are.
    fn exact(&self) -> Box<[i128]> {
        let mut exact: Vec<i128> = match &self.exact {
            Some(exact) => exact.to_vec(),
            None => self.shown.iter().map(|value| (*value).into()).collect(),
        };
        exact.resize(self.shown.len(), 0);
        exact.into()
    }

    fn shown(exact: Box<[i128]>) -> Vector {
        let fits = |value: &i128| i64::try_from(*value).is_ok();
        Vector {
            shown: exact.iter().map(|value| shown(*value)).collect(),
            exact: (!exact.iter().all(fits)).then_some(exact),
        }
    }

    /// `self + other`.
    #[must_use]
    pub fn plus(&self, other: &Vector) -> Vector {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// `self - other`; amounts may become negative.
    #[must_use]
    pub fn minus(&self, other: &Vector) -> Vector {
        let mut rest = self.clone();
        rest.sub(other);
        rest
    }

    /// `max(self - other, 0)` in every kind.
    #[must_use]
    pub fn beyond(&self, other: &Vector) -> Vector {
        let mut rest = self.minus(other);
        rest.floor();
        rest
    }

    /// Raises negative amounts to zero.
    pub fn floor(&mut self) {
        if self.exact.is_some() {
            let floored = self.exact().iter().map(|value| (*value).max(0)).collect();
            *self = Vector::shown(floored);
            return;
        }
        for value in &mut self.shown {
            *value = (*value).max(0);
        }
    }

    /// The lower amount in every kind.
    #[must_use]
    pub fn lower(&self, other: &Vector) -> Vector {
        self.zip(other, i64::min)
    }

    /// The higher amount in every kind.
    #[must_use]
    pub fn higher(&self, other: &Vector) -> Vector {
        self.zip(other, i64::max)
    }

    /// How the first amount that is not zero stands to it.
    fn cmp_zero(&self) -> Ordering {
        let signs = self.shown.iter().map(|value| value.cmp(&0));
        signs
            .into_iter()
            .find(|it| it.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn zip(&self, other: &Vector, f: fn(i64, i64) -> i64) -> Vector {
        let len = self.shown.len().max(other.shown.len());
        let at = |vector: &Vector, at: usize| vector.shown.get(at).copied().unwrap_or(0);
        Vector {
            shown: (0..len).map(|i| f(at(self, i), at(other, i))).collect(),
            exact: None,
        }
    }

    /// Whether every amount is at most the other's.
    pub fn fits(&self, room: &Vector) -> bool {
        self.shown
            .iter()
            .enumerate()
            .all(|(at, value)| *value <= room.shown.get(at).copied().unwrap_or(0))
            && room
                .shown
                .iter()
                .skip(self.shown.len())
                .all(|value| *value >= 0)
    }

    /// The first kind that `request` asks for and in which `self` exceeds `limit`, in the order cpu,
    /// memory, scalars (A.1, `LessEqualWithDimension`).
    pub fn exceeds(&self, limit: &Vector, request: &Vector) -> Option<Kind> {
        request
            .entries()
            .find(|(kind, wanted)| *wanted > 0 && self.get(*kind) > limit.get(*kind))
            .map(|(kind, _)| kind)
    }
}

impl PartialEq for Vector {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Vector {}

impl PartialOrd for Vector {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An arbitrary but fixed order, for interning; it says nothing about which is larger.
impl Ord for Vector {
    fn cmp(&self, other: &Self) -> Ordering {
        let len = self.shown.len().max(other.shown.len());
        let at = |v: &Vector, i: usize| v.shown.get(i).copied().unwrap_or(0);
        (0..len)
            .map(|i| at(self, i).cmp(&at(other, i)))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| match (&self.exact, &other.exact) {
                (None, None) => Ordering::Equal,
                _ => self.minus(other).cmp_zero(),
            })
    }
}

/// Ceilings by kind; a kind without one is unlimited, which differs from a ceiling of zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(BTreeMap<Kind, i64>);

impl Limits {
    /// Ceilings for the given kinds only.
    pub fn of(amounts: impl IntoIterator<Item = (Kind, i64)>) -> Limits {
        Limits(amounts.into_iter().collect())
    }

    /// The ceiling of `kind`, if it has one.
    pub fn get(&self, kind: Kind) -> Option<i64> {
        self.0.get(&kind).copied()
    }

    /// Gives `kind` a ceiling.
    pub fn set(&mut self, kind: Kind, value: i64) {
        self.0.insert(kind, value);
    }

    /// The kinds with a ceiling, with it.
    pub fn entries(&self) -> impl Iterator<Item = (Kind, i64)> {
        self.0.iter().map(|(kind, value)| (*kind, *value))
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The vector lowered to the ceilings.
    #[must_use]
    pub fn clamp(&self, vector: &Vector) -> Vector {
        let mut low = vector.clone();
        for (kind, ceiling) in self.entries() {
            if low.get(kind) > ceiling {
                low.set(kind, ceiling);
            }
        }
        low
    }
}

/// A fraction, compared exactly (A: `share(a, d)` is a/d, 0 when both are 0, 1 when only d is).
#[derive(Clone, Copy, Debug)]
pub struct Share {
    part: i64,
    whole: i64,
}

impl Share {
    /// Nothing.
    pub const NONE: Share = Share { part: 0, whole: 1 };

    /// `part` of `whole`.
    pub fn of(part: i64, whole: i64) -> Share {
        match (part, whole) {
            (0, 0) => Share::NONE,
            (_, w) if w <= 0 => Share { part: 1, whole: 1 },
            _ => Share { part, whole },
        }
    }

    /// The largest share over the kinds of `whole` (drf and proportion).
    pub fn dominant(part: &Vector, whole: &Vector) -> Share {
        whole
            .entries()
            .map(|(kind, w)| Share::of(part.get(kind), w))
            .max()
            .unwrap_or(Share::NONE)
    }

    /// The amount, made smaller as this share is smaller than `from`; rounded down.
    pub fn scale(self, from: Share, amount: i64) -> i64 {
        let mut part = i128::from(self.part) * i128::from(from.whole);
        let mut whole = i128::from(self.whole) * i128::from(from.part);
        if amount <= 0 || part <= 0 || whole <= part {
            return if part <= 0 { 0 } else { amount };
        }
        let common = divisor(part, whole);
        (part, whole) = (part / common, whole / common);
        // What is beyond 63 bits makes no unit of difference.
        while whole > i128::from(i64::MAX) {
            (part, whole) = (part / 2, whole / 2);
        }
        i64::try_from(i128::from(amount) * part / whole).unwrap_or(amount)
    }

    /// Which share is the smaller one for its weight; weights are positive.
    pub fn cmp_weighted(self, weight: i64, other: Share, other_weight: i64) -> Ordering {
        let (a, b) = (self, other);
        wide(a.part, b.whole, other_weight).cmp(&wide(b.part, a.whole, weight))
    }

    /// The fraction in millionths, rounded down, for display.
    pub fn millionths(self) -> i64 {
        let value = i128::from(self.part) * 1_000_000 / i128::from(self.whole);
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}

fn divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The product of three, in two halves, exactly; what is below zero counts as zero.
fn wide(a: i64, b: i64, c: i64) -> (u128, u128) {
    let [a, b, c] = [a, b, c].map(|it| u128::from(it.max(0).unsigned_abs()));
    let (high, low) = ((a * b) >> 64, (a * b) & u128::from(u64::MAX));
    let low = low * c;
    (high * c + (low >> 64), low & u128::from(u64::MAX))
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        (i128::from(self.part) * i128::from(other.whole))
            .cmp(&(i128::from(other.part) * i128::from(self.whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, ResourceKinds, Share, Vector};

    #[test]
    fn an_amount_shrinks_with_a_share_to_the_last_unit() {
        let third = Share::of(1, 3);
        assert_eq!(third.scale(Share::of(2, 3), 10), 5);
        assert_eq!(third.scale(Share::of(1, 2), 10), 6);
        assert_eq!(third.scale(third, i64::MAX), i64::MAX);
        assert_eq!(Share::NONE.scale(third, 10), 0);
        // The same share, written so that nothing fits into 128 bits.
        let huge = Share::of(i64::MAX - 1, i64::MAX);
        let least = Share::of(1, i64::MAX);
        assert_eq!(huge.scale(huge, i64::MAX), i64::MAX);
        assert_eq!(least.scale(huge, i64::MAX - 1), 1);
        assert_eq!(least.scale(huge, i64::MAX / 2), 0);
    }

    #[test]
    fn shares_are_compared_for_their_weights() {
        let (half, quarter) = (Share::of(1, 2), Share::of(1, 4));
        assert!(half.cmp_weighted(1000, quarter, 1000).is_gt());
        assert!(half.cmp_weighted(2000, quarter, 1000).is_eq());
        assert!(half.cmp_weighted(2001, quarter, 1000).is_lt());
        let most = i64::MAX;
        let (huge, less) = (Share::of(most, most), Share::of(most - 1, most));
        assert!(huge.cmp_weighted(most, less, most).is_gt());
        assert!(huge.cmp_weighted(most, less, most - 1).is_eq());
        assert!(huge.cmp_weighted(most, less, most - 2).is_lt());
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        let mut kinds = ResourceKinds::default();
        let gpu = kinds.intern("nvidia.com/gpu");
        let said = |kind, value| kinds.amount(kind, value).to_string();
        assert_eq!(said(Kind::CPU, 100), "100m cpu");
        assert_eq!(said(Kind::CPU, 2_000), "2 cpu");
        assert_eq!(said(Kind::MEMORY, 1536 << 20), "1536Mi memory");
        assert_eq!(said(Kind::MEMORY, 2 << 30), "2Gi memory");
        assert_eq!(said(Kind::PODS, 1), "1 pod slot");
        assert_eq!(said(gpu, 3_000), "3 nvidia.com/gpu");
    }

    #[test]
    fn shares_are_compared_exactly() {
        assert!(Share::of(1, 3) < Share::of(i64::MAX / 2, i64::MAX));
        assert_eq!(Share::of(2, 6), Share::of(1, 3));
        assert_eq!(Share::of(0, 0), Share::NONE);
        assert_eq!(
            Share::of(5, 0),
            Share::of(1, 1),
            "something of nothing is all of it"
        );
    }

    #[test]
    fn a_sum_that_does_not_fit_is_right_again_without_what_was_too_large() {
        let huge = Vector::of([(Kind::CPU, i64::MAX), (Kind::PODS, 1)]);
        let small = Vector::of([(Kind::CPU, 500), (Kind::MEMORY, 7)]);
        let mut sum = huge.plus(&small).plus(&huge);
        assert_eq!(sum.get(Kind::CPU), i64::MAX);
        assert_ne!(sum, huge.plus(&small), "they only look alike");
        sum.set(Kind::PODS, 5);
        sum.sub(&huge);
        assert_eq!(sum.get(Kind::CPU), i64::MAX);
        sum.sub(&huge);
        assert_eq!(
            sum,
            Vector::of([(Kind::CPU, 500), (Kind::MEMORY, 7), (Kind::PODS, 3)])
        );
        assert!(sum.exact.is_none());
        let mut owed = small.minus(&huge.plus(&huge));
        assert_eq!(owed.get(Kind::CPU), i64::MIN);
        owed.floor();
        assert_eq!(owed, Vector::of([(Kind::MEMORY, 7)]));
    }

    #[test]
    fn trailing_zeros_do_not_matter() {
        let mut padded = Vector::of([(Kind::CPU, 1), (Kind::PODS, 1)]);
        padded.set(Kind::PODS, 0);
        assert_eq!(padded, Vector::of([(Kind::CPU, 1)]));
        assert!(padded.fits(&Vector::of([(Kind::CPU, 1)])));
        assert!(
            !Vector::ZERO.fits(&Vector::of([(Kind::CPU, -1)])),
            "negative room is none"
        );
    }
}
