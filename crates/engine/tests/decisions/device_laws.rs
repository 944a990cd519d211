//! Laws of claimed devices, tried on seeded random clusters that have some. The fixture asks the checker
//! after every cycle (I2). A failure prints its seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use checker::check;
use model::{Phase, Tables, Trial};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws;

fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let mut lines = vec!["class high 1000".to_owned()];
    if pick(&["", "preempt"]) == "preempt" {
        lines.push("actions enqueue allocate backfill reclaim preempt".to_owned());
        lines.push("off gang enablePreemptable".to_owned());
    }
    // In some clusters all nodes reach two devices, which are made of one thing.
    let is_shared = pick(&["", "", "shared"]) == "shared";
    let has_parts = pick(&["", "parts"]) == "parts";
    let net = "counter=net/3 device=x0:2:board/a:shared:net/2 device=x1:2:board/b:shared:net/2";
    for node in 0..3 {
        let mut line = format!("node n{node} cpu=16 counter=slots/4");
        for device in 0..4 {
            let (kind, board) = (pick(&["1", "2", "1,2"]), pick(&["a", "b"]));
            let sick = pick(&["", "", "", "sick"]);
            let draws = pick(&["", "slots/1", "slots/3"]);
            line.push_str(&format!(
                " device=g{device}:{kind}:board/{board}:{sick}:{draws}"
            ));
        }
        if has_parts {
            let steps = pick(&["m/8", "m/8/2", "m/8/1/2-4-8", "m/8//2..+3", "m/8,n/3/1"]);
            let draws = pick(&["", "slots/1"]);
            line.push_str(&format!(" device=p:3:board/a:parts:{draws}:{steps}"));
        }
        if is_shared {
            line = format!("{line} {net}");
        }
        lines.push(line);
    }
    for at in 0..14 {
        let claim = pick(&[
            "1", "1:1", "2~board", "2~!board", "all:2", "admin1", "brave1", "2:1|1:2", "1;1:2",
            "1:3:m/2", "1:3:m/3", "2:3:m/1", "1:3",
        ]);
        let more = pick(&["", "", "claim=1:2"]);
        let (min, class) = (pick(&["1", "2"]), pick(&["", "class=high"]));
        let other = pick(&["0", "1", "2", "3", "4", "5"]);
        lines.push(
            match &*pick(&[
                "gang", "gang", "gang", "run", "end", "delete", "release", "refuse",
            ]) {
                "gang" => {
                    format!("gang a/g{at} min={min} {class} : 2 x cpu=1 claim={claim} {more}")
                }
                "delete" => format!("delete a/g{other}-0"),
                "refuse" => format!("refuse a/g{other}-1"),
                verb => format!("{verb} a/g{other}-"),
            },
        );
        lines.push(pick(&["cycle", "cycle", "cycle once", "wait 1s"]));
    }
    lines.push("cycle".to_owned());
    lines
}

fn played(seed: u64) -> World {
    laws::played(script(seed))
}

/// How many hold each device alone, counted here.
fn holders(tables: &Tables) -> BTreeMap<Arc<str>, u32> {
    let mut holders: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    let grants = tables.tasks().flat_map(|(_, task)| &task.grants);
    for grant in grants.filter(|grant| grant.is_whole) {
        *holders.entry(grant.card.clone()).or_default() += 1;
    }
    holders
}

#[test]
fn no_device_is_given_twice() {
    let mut given = 0;
    for seed in 0..150 {
        eprintln!("seed {seed}");
        let holders = holders(&played(seed).tables);
        assert!(holders.values().all(|holders| *holders == 1), "{holders:?}");
        given += holders.len();
    }
    assert!(given > 400, "only {given} devices were given");
}

#[test]
fn no_more_is_drawn_than_there_is() {
    let mut drawn = 0;
    for seed in 0..150 {
        eprintln!("seed {seed}");
        let tables = played(seed).tables;
        let holders = holders(&tables);
        for (_, node) in tables.nodes() {
            for (name, counter) in &node.spec.devices.counters {
                let held = counter.drawers.iter();
                let held = held.filter(|drawer| holders.contains_key(&drawer.device));
                let sum: i64 = held.map(|drawer| drawer.amount).sum();
                assert!(sum <= counter.whole, "{name}: {sum}");
                drawn += sum;
            }
        }
    }
    assert!(drawn > 400, "only {drawn} was drawn");
}

#[test]
fn no_more_of_a_device_is_given_in_parts_than_there_is() {
    let mut given = 0;
    for seed in 0..150 {
        eprintln!("seed {seed}");
        let tables = played(seed).tables;
        let mut sums: BTreeMap<(Arc<str>, Arc<str>), i64> = BTreeMap::new();
        let grants = tables.tasks().flat_map(|(_, task)| &task.grants);
        let portions = grants.filter_map(|grant| Some((&grant.card, grant.portion.as_ref()?)));
        for (device, portion) in portions {
            given += 1;
            for taking in &**portion {
                let key = (device.clone(), taking.dimension.clone());
                *sums.entry(key).or_default() += taking.amount;
            }
        }
        for ((device, dimension), sum) in sums {
            let mut devices = tables
                .nodes()
                .flat_map(|(_, node)| &*node.spec.devices.list);
            let device = devices.find(|it| it.id == device).expect("it is offered");
            let mut dimensions = device.dimensions.iter();
            let whole = dimensions.find(|it| it.name == dimension);
            assert!(sum <= whole.expect("it has the dimension").whole, "{sum}");
        }
    }
    assert!(given > 60, "only {given} parts were given");
}

#[test]
fn a_trial_that_is_rewound_gives_devices_back() {
    let mut taken = 0;
    for seed in 0..60 {
        let mut world = played(seed);
        let before = holders(&world.tables);
        let waiting: Vec<_> = world
            .tables
            .tasks()
            .filter(|(_, task)| task.phase == Phase::Pending && task.gang.is_some())
            .map(|(id, _)| id)
            .collect();
        let node = world.tables.node_named("n0").expect("the node");
        let mut trial = Trial::begin(&mut world.tables);
        for task in waiting {
            let device = trial.tables().node(node).spec.devices.list[0].id.clone();
            let grant = model::Grant {
                part: 0,
                card: device,
                slice: None,
                memory: 0,
                cores: 0,
                is_whole: true,
                ..model::Grant::default()
            };
            trial.place_with(task, node, vec![grant]);
            taken += 1;
        }
        drop(trial);
        assert_eq!(holders(&world.tables), before, "seed {seed}");
        assert_eq!(check(&world.tables), [], "seed {seed}");
    }
    assert!(taken > 30, "only {taken} were placed");
}
