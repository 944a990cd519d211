//! Sets of units and of selectors, and columns of rows, against sorted sets.

use std::collections::{BTreeMap, BTreeSet};

use super::dice::Dice;
use super::{CASES, one};
use crate::claim::{Passed, SelectorId};
use crate::{NumaAsk, NumaLayout, NumaPart, NumaResource, Slots, UnitLoad, Units};

/// Numbers at the ends of words, and some between.
const UNITS: [u32; 14] = [0, 1, 2, 5, 62, 63, 64, 65, 127, 128, 129, 191, 192, 4_095];

fn some_units(dice: &mut Dice) -> BTreeSet<u32> {
    let (most, count) = (1 + dice.roll(UNITS.len() as u64), dice.roll(6));
    let some = (0..count).map(|_| UNITS[dice.roll(most) as usize]);
    some.collect()
}

fn units(plain: &BTreeSet<u32>) -> Units {
    plain.iter().copied().collect()
}

#[test]
fn units_are_sets() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let (a, b) = (some_units(dice), some_units(dice));
        let (left, right) = (units(&a), units(&b));
        assert!(left.iter().eq(a.iter().copied()), "seed {seed}");
        assert_eq!(left.len() as usize, a.len(), "seed {seed}");
        assert_eq!(left.is_empty(), a.is_empty(), "seed {seed}");
        assert_eq!(left.holds(&right), b.is_subset(&a), "seed {seed}");
        let shared = a.intersection(&b).count();
        assert_eq!(left.shared(&right) as usize, shared, "seed {seed}");
        for (found, wanted) in [
            (left.or(&right), &a | &b),
            (left.and(&right), &a & &b),
            (left.without(&right), &a - &b),
        ] {
            assert_eq!(found, units(&wanted), "seed {seed}");
        }
        assert_eq!(Units::of_list(&left.to_string()), Some(left), "seed {seed}");
    }
}

#[test]
fn a_unit_is_held_as_long_as_somebody_holds_it() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut load = UnitLoad::default();
        let mut holders: Vec<BTreeSet<u32>> = Vec::new();
        for _ in 0..12 {
            if dice.roll(2) == 0 && !holders.is_empty() {
                let gone = holders.swap_remove(dice.roll(holders.len() as u64) as usize);
                load.give_back(&units(&gone));
            } else {
                let more = some_units(dice);
                load.take(&units(&more));
                holders.push(more);
            }
            let held: BTreeSet<u32> = holders.iter().flatten().copied().collect();
            let of_all: usize = holders.iter().map(BTreeSet::len).sum();
            assert_eq!(*load.held(), units(&held), "seed {seed}");
            let overlaps = load.overlaps() as usize;
            assert_eq!(overlaps, of_all - held.len(), "seed {seed}");
        }
    }
}

#[test]
fn units_are_counted_where_they_lie() {
    let resource = |name: &str, rows: [&[u32]; 3]| NumaResource {
        name: name.into(),
        by_node: rows.map(|row| row.iter().copied().collect()).into(),
        open: Units::default(),
    };
    let layout = NumaLayout {
        nodes: vec![0, 4, 7],
        resources: vec![
            resource("gpu", [&[9], &[], &[]]),
            resource(NumaLayout::CPU, [&[0, 1, 2], &[3, 4], &[5]]),
        ],
        ..NumaLayout::default()
    };
    let asked: Units = [1, 2, 5, 9].into_iter().collect();
    assert_eq!(layout.spread_of("cpu", &asked), [(0, 2), (7, 1)]);
    assert_eq!(layout.spread_of("gpu", &asked), [(0, 1)]);
    assert_eq!(layout.spread_of("nic", &asked), []);
    assert_eq!(layout.cpus(), Some(&layout.resources[1]));
    assert_eq!(NumaLayout::default().cpus(), None);
    let part = |units: &[(&str, u32)]| NumaPart {
        container: "c".into(),
        units: units
            .iter()
            .map(|(name, it)| ((*name).into(), *it))
            .collect(),
    };
    let ask = NumaAsk {
        policy: "".into(),
        parts: vec![part(&[("cpu", 3), ("gpu", 2)]), part(&[("cpu", u32::MAX)])],
    };
    let totals = ["cpu", "gpu", "nic"].map(|name| ask.total(name));
    assert_eq!(totals, [u32::MAX, 2, 0]);
}

#[test]
fn a_device_passes_the_selectors_that_were_told_to_it() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let plain = some_units(dice);
        let mut passed = Passed::default();
        for selector in &plain {
            passed.insert(SelectorId(*selector));
        }
        for selector in UNITS {
            let passes = passed.contains(SelectorId(selector));
            assert_eq!(passes, plain.contains(&selector), "seed {seed}");
        }
    }
}

#[test]
fn the_lowest_free_place_is_given_first_and_an_old_id_is_stale() {
    for seed in 0..CASES / 10 {
        let dice = &mut Dice(seed);
        let mut slots: Slots<u64> = Slots::default();
        let mut rows: BTreeMap<usize, u64> = BTreeMap::new();
        let mut given: BTreeMap<usize, u32> = BTreeMap::new();
        for row in 0..60 {
            if dice.roll(5) < 3 {
                let free = (0..).find(|at| !rows.contains_key(at));
                let at = slots.insert(row);
                assert_eq!(Some(at), free, "seed {seed}");
                rows.insert(at, row);
                given.entry(at).or_default();
            } else {
                let at = dice.roll(slots.span() as u64 + 2) as usize;
                let gone = rows.remove(&at);
                assert_eq!(slots.remove(at), gone, "seed {seed}");
                if gone.is_some() {
                    *given.entry(at).or_default() += 1;
                }
            }
            let told: Vec<(usize, u64)> = slots.iter().map(|(at, row)| (at, *row)).collect();
            assert!(told.iter().copied().eq(rows.clone()), "seed {seed}");
            assert_eq!(slots.len(), rows.len(), "seed {seed}");
            assert_eq!(slots.is_empty(), rows.is_empty(), "seed {seed}");
            assert_eq!(slots.span(), given.len(), "seed {seed}");
            let at = *one(dice, &[0, 1, 2, 3, 5, 8, 70]);
            assert_eq!(slots.get(at), rows.get(&at), "seed {seed}");
            assert_eq!(slots.get_mut(at).copied(), rows.get(&at).copied());
            let generation = given.get(&at).copied().unwrap_or(0);
            assert_eq!(slots.generation(at), generation, "seed {seed}");
        }
    }
}
