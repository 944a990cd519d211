//! Laws of claims that several tasks name, tried on seeded random clusters. The fixture asks the checker after
//! every cycle (I4, I2), and decides once more from scratch (I19). A failure prints its seed.

use std::collections::{BTreeMap, BTreeSet};

use checker::check;
use model::{Key, NodeId, Phase, Tables, Trial};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws;

fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let mut lines = vec!["class high 1000".to_owned()];
    if dice.roll(2) == 0 {
        lines.push("actions enqueue allocate backfill preempt".to_owned());
        lines.push("off gang enablePreemptable".to_owned());
    }
    let net = dice.pick(&["", "device=net:2::shared", "device=net:2::shared"]);
    for node in 0..3 {
        let own = dice.pick(&["", "device=a:1", "device=a:1 device=b:1"]);
        let cpu = 2 + dice.roll(3);
        lines.push(format!("node n{node} cpu={cpu} {own} {net}"));
    }
    for at in 0..10 {
        // What a claim asks for is the claim's.
        let claim = dice.pick(&["1@x", "1:1@y", "1:2@z", "1;1@w", "1:1"]);
        let other = dice.pick(&["1@x", "1:2@z", "1:1"]);
        let more = match dice.roll(3) {
            0 => format!(" + 1 x cpu=1 claim={other} claim={claim}"),
            1 => format!(" + 1 x cpu=2 claim={other}"),
            _ => String::new(),
        };
        let (min, class) = (dice.pick(&["1", "2", "3"]), dice.pick(&["", "class=high"]));
        let one = dice.roll(at + 1);
        lines.push(match dice.roll(8) {
            0 => format!("refuse a/g{one}-0"),
            1 => format!("refuse a/g{one}-1"),
            2 => format!("delete a/g{one}-1"),
            _ => format!(
                "gang a/g{at} min={min} {class} minres=none : 2 x cpu=1 claim={claim}{more}"
            ),
        });
        lines.push(
            dice.pick(&["cycle", "cycle once", "cycle first"])
                .to_owned(),
        );
    }
    lines.push("cycle".to_owned());
    lines
}

fn played(seed: u64) -> World {
    eprintln!("seed {seed}");
    laws::played(script(seed))
}

/// Events that take a place back.
const LOST: [&str; 2] = ["refuse", "delete"];

/// Who is on which node with each claim, and what of it got which devices.
#[derive(Default)]
struct Use {
    nodes: BTreeSet<NodeId>,
    given: Vec<BTreeSet<String>>,
}

fn uses(tables: &Tables) -> BTreeMap<Key, Use> {
    let mut uses: BTreeMap<Key, Use> = BTreeMap::new();
    let placed = tables.tasks().map(|(_, task)| task);
    for task in placed.filter(|task| task.phase.is_allocated()) {
        let ask = tables.shape(task.shape).spec.devices.as_deref();
        for (at, claim) in ask.into_iter().flat_map(|ask| ask.shared()) {
            let row = uses.entry(claim.clone()).or_default();
            row.nodes.extend(task.node);
            let grants = task.grants.iter().filter(|it| it.is_for_claim(at));
            let given: BTreeSet<String> = grants.map(|it| it.card.to_string()).collect();
            row.given.extend((!given.is_empty()).then_some(given));
        }
    }
    uses
}

#[test]
fn a_shared_claim_gets_devices_once_and_all_who_name_it_reach_them() {
    let (mut shared, mut apart) = (0, 0);
    for seed in 0..400 {
        let world = played(seed);
        // Whose devices come to nothing leaves others that count with them, until the loop takes their places
        // back as well: no event of this language.
        let is_lost = script(seed)
            .iter()
            .any(|line| LOST.iter().any(|verb| line.starts_with(verb)));
        for (claim, row) in uses(&world.tables) {
            if is_lost && row.given.is_empty() {
                continue;
            }
            assert_eq!(row.given.len(), 1, "{claim} got {:?}", row.given);
            for node in &row.nodes {
                let list = &world.tables.node(*node).spec.devices.list;
                let offers = |id: &String| list.iter().any(|device| *device.id == **id);
                assert!(row.given[0].iter().all(offers), "{claim} on {node:?}");
            }
            shared += 1;
            apart += usize::from(row.nodes.len() > 1);
        }
    }
    assert!(
        shared > 400 && apart > 50,
        "{shared} claims, {apart} on several nodes"
    );
}

#[test]
fn a_trial_that_is_rewound_gives_shared_claims_back() {
    for seed in 0..150 {
        let world = played(seed);
        let (mut tables, before) = (world.tables.clone(), uses(&world.tables));
        let nodes: Vec<NodeId> = tables.nodes().map(|(id, _)| id).collect();
        let waiting = tables
            .tasks()
            .filter(|(_, task)| task.phase == Phase::Pending);
        let waiting: Vec<_> = waiting.map(|(id, _)| id).collect();
        let mut trial = Trial::begin(&mut tables);
        for (at, task) in waiting.into_iter().enumerate() {
            trial.place(task, nodes[at % nodes.len()]);
        }
        drop(trial);
        assert_eq!(check(&tables), []);
        for (claim, row) in before.into_iter().filter(|(_, row)| !row.given.is_empty()) {
            let holder = tables.device_holder(&claim).map(|id| tables.task(id).node);
            let is_there = holder
                .flatten()
                .is_some_and(|node| row.nodes.contains(&node));
            assert!(is_there, "{claim}");
        }
    }
}
