//! What is held, against a list of those who hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::dice::Dice;
use super::{CASES, one};
use crate::device::Slice;
use crate::{
    CardLoad, CardLoads, Census, ChipPart, Dimension, Gang, Grant, Key, Kind, NodeSpec, PartLoad,
    Phase, ShapeId, ShapeSpec, Tables, Taking, TaskSpec, Template, Units, Vector,
};

fn taking(dice: &mut Dice) -> Taking {
    Taking {
        dimension: (*one(dice, &["memory", "bandwidth", "slots"])).into(),
        amount: dice.roll(4) as i64,
    }
}

/// A part names each dimension once.
fn portion(dice: &mut Dice) -> Vec<Taking> {
    let some = (0..dice.roll(3)).map(|_| taking(dice));
    let by_name: BTreeMap<Arc<str>, Taking> = some.map(|it| (it.dimension.clone(), it)).collect();
    by_name.into_values().collect()
}

fn grant(dice: &mut Dice) -> Grant {
    let slice = Slice {
        group: (*one(dice, &["a", "b"])).into(),
        place: dice.roll(2) as u32,
    };
    Grant {
        part: 0,
        kind: "".into(),
        card: (*one(dice, &["0", "1", "2"])).into(),
        slice: (dice.roll(2) == 0).then_some(slice),
        memory: dice.roll(5) as i64 * 1_000,
        cores: dice.roll(5) as i64 * 10,
        is_whole: dice.roll(3) == 0,
        portion: (dice.roll(2) == 0).then(|| portion(dice).into()),
        units: (0..dice.roll(4)).map(|_| dice.roll(6) as u32).collect(),
        is_shared: false,
        is_claimed: false,
        chip: (dice.roll(3) == 0).then(|| ChipPart {
            template: *one(dice, &Template::ALL),
            is_settled: dice.roll(2) == 0,
            group: (dice.roll(2) == 0).then(|| dice.roll(4) as u32),
        }),
    }
}

fn sum<'a>(grants: &[&'a Grant], of: impl Fn(&'a Grant) -> i64) -> i64 {
    grants.iter().map(|grant| of(grant)).sum()
}

/// What the holders of one card hold, said once more.
fn check_load(load: &CardLoad, held: &[&Grant]) {
    assert_eq!(load.users, held.len() as i64);
    assert_eq!(load.owners, sum(held, |it| i64::from(it.is_whole)));
    assert_eq!(load.memory, sum(held, |it| it.memory));
    assert_eq!(load.cores, sum(held, |it| it.cores));
    let mut slices: BTreeMap<Slice, u32> = BTreeMap::new();
    for slice in held.iter().filter_map(|it| it.slice.clone()) {
        *slices.entry(slice).or_default() += 1;
    }
    assert_eq!(load.slices, slices);
    let chips: Vec<ChipPart> = held.iter().filter_map(|it| it.chip).collect();
    let templates = |is_it: &dyn Fn(&ChipPart) -> bool| {
        let mut counts = BTreeMap::new();
        for part in chips.iter().filter(|it| is_it(it)) {
            *counts.entry(part.template).or_insert(0) += 1;
        }
        counts
    };
    assert_eq!(load.chip.templates, templates(&|_| true));
    assert_eq!(load.chip.unsettled, templates(&|part| !part.is_settled));
    let groups: BTreeSet<u32> = chips.iter().filter_map(|part| part.group).collect();
    assert!(load.chip.groups.keys().eq(&groups));
    let units: BTreeSet<u32> = held.iter().flat_map(|it| it.units.iter()).collect();
    assert_eq!(*load.units.held(), units.into_iter().collect::<Units>());
    let portions: Vec<&[Taking]> = held.iter().filter_map(|it| it.portion.as_deref()).collect();
    check_parts(&load.parts, &portions);
    let is_had = load.owners > 0 || !portions.is_empty();
    assert_eq!(load.is_had(), is_had);
}

fn check_parts(load: &PartLoad, portions: &[&[Taking]]) {
    assert_eq!(load.parts, portions.len() as i64);
    for dimension in ["memory", "bandwidth", "slots", "none"] {
        let takings = portions.iter().copied().flatten();
        let takings = takings.filter(|it| *it.dimension == *dimension);
        let amount: i64 = takings.map(|it| it.amount).sum();
        assert_eq!(load.of(dimension), amount, "{dimension}");
    }
}

#[test]
fn a_card_is_loaded_with_what_its_holders_hold() {
    for seed in 0..CASES / 10 {
        let dice = &mut Dice(seed);
        let (mut loads, mut holders) = (CardLoads::default(), Vec::<Grant>::new());
        for _ in 0..30 {
            if dice.roll(2) == 0 && !holders.is_empty() {
                let gone = holders.swap_remove(dice.roll(holders.len() as u64) as usize);
                loads.give_back(&gone);
            } else {
                let more = grant(dice);
                loads.take(&more);
                holders.push(more);
            }
            assert_eq!(loads.is_empty(), holders.is_empty(), "seed {seed}");
            let cards: BTreeSet<Arc<str>> = holders.iter().map(|it| it.card.clone()).collect();
            assert!(loads.iter().map(|(card, _)| card).eq(&cards), "seed {seed}");
            for card in ["0", "1", "2", "3"] {
                let held: Vec<&Grant> = holders.iter().filter(|it| *it.card == *card).collect();
                match loads.of(card) {
                    Some(load) => check_load(load, &held),
                    None => assert!(held.is_empty(), "seed {seed}"),
                }
            }
        }
    }
}

#[test]
fn a_part_is_left_where_all_that_it_takes_is() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut load = PartLoad::default();
        for _ in 0..dice.roll(3) {
            load.take(&portion(dice));
        }
        let dimensions = ["memory", "bandwidth", "slots"].map(|name| Dimension {
            name: name.into(),
            whole: dice.roll(7) as i64,
            ..Dimension::default()
        });
        let mine = portion(dice);
        // Whoever takes nothing of a dimension is not kept by one of which there is too little.
        let is_left = mine.iter().filter(|it| it.amount > 0).all(|mine| {
            let dimension = dimensions.iter().find(|it| it.name == mine.dimension);
            load.of(&mine.dimension) + mine.amount <= dimension.unwrap().whole
        });
        assert_eq!(load.leaves(&dimensions, &mine), is_left, "seed {seed}");
    }
}

#[test]
fn what_leaves_is_free_later_and_what_is_promised_of_it_is_free_never() {
    for seed in 0..CASES {
        let dice = &mut Dice(seed);
        let mut tables = Tables::default();
        let id = tables.put_node(NodeSpec::default());
        let mut node = tables.node(id).clone();
        let mut amount = || Vector::of([(Kind::CPU, dice.roll(9) as i64)]);
        node.spec.allocatable = amount();
        (node.used, node.releasing, node.pipelined) = (amount(), amount(), amount());
        let of = |vector: &Vector| vector.get(Kind::CPU);
        let idle = of(&node.spec.allocatable) - of(&node.used);
        let later = idle + of(&node.releasing) - of(&node.pipelined);
        assert_eq!(node.free_later(Kind::CPU), later, "seed {seed}");
        assert_eq!(node.free(Kind::CPU), idle.min(later), "seed {seed}");
    }
}

#[test]
fn a_census_counts_each_task_in_its_phase() {
    let counts: [u32; 9] = std::array::from_fn(|at| 1 << at);
    let census = Census {
        phases: counts,
        pending_best_effort: 0,
    };
    let of = |is_meant: &dyn Fn(Phase) -> bool| -> u32 {
        let meant = Phase::ALL.into_iter().filter(|phase| is_meant(*phase));
        meant.map(|phase| counts[phase as usize]).sum()
    };
    for phase in Phase::ALL {
        assert_eq!(census.count(phase), counts[phase as usize]);
        let mut alone = Census::default();
        assert!(alone.is_empty());
        alone.phases[phase as usize] = 1;
        assert!(!alone.is_empty(), "{phase:?}");
    }
    assert_eq!(census.allocated(), of(&Phase::is_allocated));
    assert_eq!(census.waiting(), of(&Phase::is_waiting));
    let settled = |phase: Phase| phase.is_allocated() || phase == Phase::Succeeded;
    assert_eq!(census.settled(), of(&settled));
    let holding = |phase: Phase| phase.is_allocated() || phase == Phase::Releasing;
    assert_eq!(of(&Phase::holds_node), of(&holding));
}

/// A gang with tasks that come and go, of few shapes and of many.
struct World {
    tables: Tables,
    tasks: BTreeMap<u64, (u64, bool)>,
}

fn gang_key() -> Key {
    Key::new("ns", "gang")
}

impl World {
    fn step(&mut self, dice: &mut Dice, shapes: u64) {
        let at = dice.roll(12);
        let key = Key::new("ns", at.to_string());
        if self.tasks.remove(&at).is_some() && dice.roll(3) > 0 {
            self.tables.remove_task(&key);
            return;
        }
        let (shape, has_claims) = (dice.roll(shapes), dice.roll(6) == 0);
        self.tasks.insert(at, (shape, has_claims));
        self.tables.put_task(TaskSpec {
            key,
            gang: Some(gang_key()),
            shape: ShapeSpec {
                requests: Vector::of([(Kind::CPU, 1 + shape as i64)]),
                ..ShapeSpec::default()
            },
            claims: has_claims.then(|| "claim".into()).into_iter().collect(),
            ..TaskSpec::default()
        });
    }

    /// How many tasks there are of each shape, and how many have claims.
    fn counted(&self, gang: &Gang) -> (BTreeMap<ShapeId, u32>, u32) {
        let (mut counts, mut with_claims) = (BTreeMap::new(), 0);
        for id in &gang.tasks {
            let task = self.tables.task(*id);
            if task.claims.is_empty() {
                *counts.entry(task.shape).or_default() += 1;
            } else {
                with_claims += 1;
            }
        }
        (counts, with_claims)
    }

    fn check(&self, shapes: u64) {
        let Some(id) = self.tables.gang_keyed(&gang_key()) else {
            assert!(self.tasks.is_empty());
            return;
        };
        let gang = self.tables.gang(id);
        let (counts, with_claims) = self.counted(gang);
        assert_eq!(gang.tasks.len(), self.tasks.len());
        assert_eq!(gang.census.waiting() as usize, self.tasks.len());
        let rows: BTreeMap<ShapeId, u32> = gang.shapes().collect();
        let told: u32 = rows.values().sum();
        assert_eq!(told + gang.others(), gang.tasks.len() as u32);
        for (shape, count) in &rows {
            assert!(counts.get(shape).is_some_and(|all| count <= all));
        }
        let mut alone = counts.keys().filter(|_| with_claims == 0);
        let only = alone.next().filter(|_| alone.next().is_none());
        // Up to four shapes are told apart always; of more, those that came late may not be.
        if shapes <= 4 {
            assert_eq!((&rows, gang.others()), (&counts, with_claims));
            assert_eq!(gang.only_shape(), only.copied());
        } else if let Some(shape) = gang.only_shape() {
            assert_eq!(Some(&shape), only);
        }
    }
}

#[test]
fn shapes_of_a_gang_are_those_of_its_tasks() {
    for seed in 0..CASES / 10 {
        let dice = &mut Dice(seed);
        let shapes = *one(dice, &[1, 2, 4, 6]);
        let mut world = World {
            tables: Tables::default(),
            tasks: BTreeMap::new(),
        };
        for _ in 0..40 {
            world.step(dice, shapes);
            world.check(shapes);
        }
    }
}
