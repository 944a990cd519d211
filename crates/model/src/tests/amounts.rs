//! Vectors, ceilings and shares against sums in wide integers.

use std::cmp::Ordering;

use super::dice::Dice;
use super::{CASES, one};
use crate::resource::{ASKED_MAX, BEYOND, KINDS_MAX};
use crate::{Kind, Limits, Portion, ResourceKinds, Share, Vector};

const KINDS: usize = 5;
type Plain = [i128; KINDS];

/// Amounts at which something may go wrong.
const ODD: [i64; 12] = [
    0,
    0,
    0,
    1,
    -1,
    2,
    -2,
    3,
    1_000,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
];

fn kind(at: usize) -> Kind {
    Kind(at as u16)
}

fn plain(dice: &mut Dice) -> Plain {
    std::array::from_fn(|_| i128::from(*one(dice, &ODD)))
}

/// The vector of these amounts, however it came to be long enough for them.
fn vector(dice: &mut Dice, plain: &Plain) -> Vector {
    let mut vector = Vector::of([(kind(dice.roll(KINDS as u64) as usize), 7)]);
    for at in (0..KINDS).rev() {
        vector.set(kind(at), narrow(plain[at]));
    }
    match dice.roll(2) {
        0 => vector,
        _ => Vector::of(vector.entries()),
    }
}

fn narrow(wide: i128) -> i64 {
    wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn by_kind(a: &Plain, b: &Plain, f: impl Fn(i128, i128) -> i128) -> [i64; KINDS] {
    std::array::from_fn(|at| narrow(f(a[at], b[at])))
}

fn read(vector: &Vector) -> [i64; KINDS] {
    std::array::from_fn(|at| vector.get(kind(at)))
}

#[test]
fn vectors_are_amounts_side_by_side() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let (a, b) = (plain(dice), plain(dice));
        let (left, right) = (vector(dice, &a), vector(dice, &b));
        assert_eq!(read(&left), a.map(narrow), "seed {seed}");
        assert_eq!(left.is_zero(), a == [0; KINDS], "seed {seed}");
        let entries: Vec<(Kind, i64)> = left.entries().collect();
        let told = (0..KINDS).map(|at| (kind(at), narrow(a[at])));
        let told: Vec<(Kind, i64)> = told.filter(|(_, it)| *it != 0).collect();
        assert_eq!(entries, told, "seed {seed}");
        let mut amounts = left.amounts().to_vec();
        amounts.resize(KINDS, 0);
        assert_eq!(amounts, read(&left), "seed {seed}");
        for (found, wanted) in [
            (left.plus(&right), by_kind(&a, &b, |a, b| a + b)),
            (left.minus(&right), by_kind(&a, &b, |a, b| a - b)),
            (left.beyond(&right), by_kind(&a, &b, |a, b| (a - b).max(0))),
            (left.lower(&right), by_kind(&a, &b, i128::min)),
            (left.higher(&right), by_kind(&a, &b, i128::max)),
        ] {
            assert_eq!(read(&found), wanted, "seed {seed}");
        }
        assert_eq!(left.cmp(&right), a.cmp(&b), "seed {seed}");
        assert_eq!(left == right, a == b, "seed {seed}");
    }
}

#[test]
fn what_fits_is_below_the_room_in_every_kind() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let (a, b, asked) = (plain(dice), plain(dice), plain(dice));
        let (have, room) = (vector(dice, &a), vector(dice, &b));
        let fits = (0..KINDS).all(|at| a[at] <= b[at]);
        assert_eq!(have.fits(&room), fits, "seed {seed}");
        // A kind that nobody asks for is nobody's trouble, and the first of those that are is told.
        let first = (0..KINDS).find(|at| asked[*at] > 0 && a[*at] > b[*at]);
        let asked = vector(dice, &asked);
        assert_eq!(have.exceeds(&room, &asked), first.map(kind), "seed {seed}");
    }
}

#[test]
fn a_ceiling_of_zero_is_one_and_no_ceiling_is_none() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut plainly: [Option<i64>; KINDS] = [None; KINDS];
        let mut limits = Limits::default();
        for _ in 0..dice.roll(6) {
            let (at, most) = (dice.roll(KINDS as u64) as usize, *one(dice, &ODD));
            plainly[at] = Some(most);
            limits.set(kind(at), most);
        }
        let rows = (0..KINDS).filter_map(|at| Some((kind(at), plainly[at]?)));
        let rows: Vec<(Kind, i64)> = rows.collect();
        assert_eq!(limits, Limits::of(rows.iter().copied()), "seed {seed}");
        assert_eq!(limits.is_empty(), rows.is_empty(), "seed {seed}");
        assert!(limits.entries().eq(rows), "seed {seed}");
        let a = plain(dice);
        let low = limits.clamp(&vector(dice, &a));
        for at in 0..KINDS {
            assert_eq!(limits.get(kind(at)), plainly[at], "seed {seed}");
            let (have, most) = (narrow(a[at]), plainly[at].unwrap_or(i64::MAX));
            assert_eq!(low.get(kind(at)), have.min(most), "seed {seed}");
        }
    }
}

/// `part` of `whole` as it is meant: part and whole of a fraction whose whole is positive.
fn fraction(part: i64, whole: i64) -> (i128, i128) {
    match (part, whole) {
        (0, 0) => (0, 1),
        (_, ..=0) => (1, 1),
        _ => (part.into(), whole.into()),
    }
}

#[test]
fn shares_are_fractions() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut some = || (dice.roll(40) as i64 - 4, dice.roll(40) as i64 - 4);
        let ((p, q), (r, s)) = (some(), some());
        let ((a, b), (c, d)) = (fraction(p, q), fraction(r, s));
        let (left, right) = (Share::of(p, q), Share::of(r, s));
        assert_eq!(left.cmp(&right), (a * d).cmp(&(c * b)), "seed {seed}");
        assert_eq!(left == right, a * d == c * b, "seed {seed}");
        // Rust divides towards zero, which only matters to what is below it.
        let millionths = i128::from(left.millionths());
        assert_eq!(millionths, a * 1_000_000 / b, "seed {seed}");
        let amount = dice.roll(1_000) as i64 - 100;
        // amount × left / right, never more than the amount, and nothing of nothing.
        let scaled = match () {
            () if a <= 0 => 0,
            () if amount <= 0 || a * d >= c * b => i128::from(amount),
            () => i128::from(amount) * a * d / (b * c),
        };
        let found = left.scale(right, amount);
        assert_eq!(i128::from(found), scaled, "seed {seed} {left:?} {right:?}");
        let (w, v) = (1 + dice.roll(9), 1 + dice.roll(9));
        let weighted =
            |part: i128, whole: i128, weight: u64| part.max(0) * whole * i128::from(weight);
        let wanted = weighted(a, d, v).cmp(&weighted(c, b, w));
        let found = left.cmp_weighted(w as i64, right, v as i64);
        assert_eq!(found, wanted, "seed {seed}");
    }
}

#[test]
fn the_dominant_share_is_the_largest_over_what_there_is() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut some = || std::array::from_fn(|_| i128::from(dice.roll(5)));
        let (part, whole): (Plain, Plain) = (some(), some());
        let shares = (0..KINDS).filter(|at| whole[*at] != 0);
        let shares = shares.map(|at| Share::of(narrow(part[at]), narrow(whole[at])));
        let largest = shares.fold(Share::NONE, |a, b| match a.cmp(&b) {
            Ordering::Less => b,
            _ => a,
        });
        let found = Share::dominant(&vector(dice, &part), &vector(dice, &whole));
        assert_eq!(found, largest, "seed {seed}");
    }
}

#[test]
fn a_portion_of_a_hundred_is_rounded_up() {
    for tasks in 0..60_u32 {
        assert_eq!(Portion::Count(7).of(tasks), 7);
        for percent in 0..130 {
            let least = (0..).find(|of| of * 100 >= tasks * percent);
            assert_eq!(Some(Portion::Percent(percent).of(tasks)), least);
        }
    }
    assert_eq!(Portion::Percent(u32::MAX).of(u32::MAX), u32::MAX);
}

#[test]
fn what_is_no_whole_number_of_a_unit_is_rounded_down_for_reading() {
    let kinds = ResourceKinds::default();
    let said = |value: i64| kinds.amount(Kind::MEMORY, value).number();
    let (ki, mi, gi) = (1_i64 << 10, 1_i64 << 20, 1_i64 << 30);
    for (value, words) in [
        (0, "0"),
        (1, "1"),
        (ki - 1, "1023"),
        (ki, "1Ki"),
        (3 * ki, "3Ki"),
        (100 * ki - 1, "102399"),
        (100 * ki + 1, "100Ki"),
        (100 * mi - 1, "102399Ki"),
        (100 * mi + 1, "100Mi"),
        (100 * gi - 1, "102399Mi"),
        (100 * gi + 1, "100Gi"),
        (1_024 * gi, "1Ti"),
        (1_024 * gi + 1, "1024Gi"),
        (5 * gi, "5Gi"),
        (-2 * gi, "-2Gi"),
        (-5, "-5"),
        (-100 * gi + 1, "-102400Mi"),
    ] {
        assert_eq!(said(value), words, "{value}");
    }
    assert_eq!(kinds.amount(Kind::CPU, 1_500).to_string(), "1500m cpu");
    assert_eq!(kinds.amount(Kind::CPU, -2_000).to_string(), "-2 cpu");
    assert_eq!(kinds.amount(Kind::PODS, 0).to_string(), "0 pod slots");
    assert_eq!(kinds.amount(Kind::PODS, 2).to_string(), "2 pod slots");
}

#[test]
fn what_is_asked_for_takes_no_place_from_what_there_is() {
    let mut kinds = ResourceKinds::default();
    assert_eq!(kinds.find("memory"), Some(Kind::MEMORY));
    let named = |at: usize| format!("example.com/{at}");
    for at in 3..ASKED_MAX + 3 {
        assert_eq!(kinds.find(&named(at)), None);
        assert_eq!(kinds.intern(&named(at)), kind(at));
    }
    let beyond = kind(ASKED_MAX + 3);
    for at in 0..10_000 {
        assert_eq!(kinds.intern(&format!("example.com/more-{at}")), beyond);
    }
    assert_eq!(kinds.intern(BEYOND), beyond);
    assert_eq!(
        kinds.find("example.com/more-1"),
        None,
        "it is not remembered"
    );
    assert_eq!(**kinds.name(beyond), *BEYOND);
    assert_eq!(kinds.iter().count(), ASKED_MAX + 4);
    assert_eq!(kinds.intern(&named(5)), kind(5), "it was met before");
    assert_eq!(kinds.intern_offered(&named(5)), Some(kind(5)));
    assert_eq!(kinds.intern_offered(BEYOND), None, "nobody has any of it");
    assert!(kinds.take_late().is_empty());

    let late = kind(ASKED_MAX + 4);
    assert_eq!(kinds.intern_offered("example.com/more-1"), Some(late));
    assert_eq!(kinds.intern("example.com/more-1"), late);
    assert_eq!(kinds.take_late(), ["example.com/more-1".into()]);
    assert!(kinds.take_late().is_empty(), "that was told");
}

#[test]
fn kinds_have_an_end() {
    for is_beyond in [false, true] {
        let mut kinds = ResourceKinds::default();
        for at in 0..if is_beyond { ASKED_MAX + 1 } else { 0 } {
            kinds.intern(&format!("example.com/asked-{at}"));
        }
        let had = kinds.iter().count();
        let had = had + usize::from(!is_beyond);
        let offered = |at: usize| format!("example.com/{at}");
        for at in had..KINDS_MAX {
            assert!(kinds.intern_offered(&offered(at)).is_some());
        }
        assert_eq!(kinds.intern_offered("one more"), None);
        let beyond = kinds.intern("one more");
        assert_eq!(**kinds.name(beyond), *BEYOND);
        assert_eq!(kinds.iter().count(), KINDS_MAX);
        assert!(kinds.iter().all(|(kind, name)| kinds.name(kind) == name));
    }
}

#[test]
fn an_exact_amount_is_what_it_is() {
    let kinds = ResourceKinds::default();
    let (ki, mi) = (1_i64 << 10, 1_i64 << 20);
    for (kind, value, words) in [
        (Kind::MEMORY, 0, "0"),
        (Kind::MEMORY, 3 * ki, "3Ki"),
        (Kind::MEMORY, 2_861 * mi + 24_064, "3000000000"),
        (Kind::MEMORY, -(5 * mi), "-5Mi"),
        (Kind::MEMORY, i64::MIN, "-8388608Ti"),
        (Kind::CPU, 1_500, "1500m"),
        (Kind::PODS, 3, "3"),
    ] {
        assert_eq!(kinds.amount(kind, value).exact(), words);
    }
}
