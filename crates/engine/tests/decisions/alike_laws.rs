//! Laws of searches for room that gangs share: who is like one that found too little is not looked at, and
//! would have found no more. Tried on seeded random clusters; a failure prints its seed.

use model::Phase;

use crate::dice::Dice;
use crate::fixture::World;

/// A full cluster, and gangs of a few kinds that come in waves and may take room of others. Where gangs are
/// told apart, each has a name of its own for the role of its tasks, which no rule looks at.
fn script(seed: u64, told_apart: bool) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut lines = vec![
        "queue gold weight=2".to_owned(),
        "queue iron".to_owned(),
        "class high 1000".to_owned(),
    ];
    let evicting = dice.pick(&["preempt", "reclaim", "preempt reclaim"]);
    lines.push(format!("actions enqueue allocate {evicting}"));
    lines.push("off gang enablePreemptable".to_owned());
    lines.push("argument gang starvation-bound=0".to_owned());
    for node in 0..2 + dice.roll(6) {
        let cpu = 2 + dice.roll(6);
        lines.push(format!("node n{node} cpu={cpu} mem=64Gi"));
    }
    for at in 0..2 + dice.roll(4) {
        let queue = dice.pick(&["gold", "gold", "iron"]);
        let (count, cpu) = (2 + dice.roll(8), 1 + dice.roll(2));
        lines.push(format!(
            "gang a/old{at} queue={queue} minres=none min=1 : {count} x cpu={cpu}"
        ));
        lines.push("cycle".to_owned());
    }
    lines.push("run a/old".to_owned());
    let kinds: Vec<_> = (0..1 + dice.roll(3)).map(|_| kind(&mut dice)).collect();
    let mut gangs = 0;
    for _ in 0..1 + dice.roll(3) {
        for _ in 0..2 + dice.roll(6) {
            let (head, tasks) = &kinds[dice.roll(kinds.len() as u64) as usize];
            let role = match told_apart {
                true => format!("r{gangs}"),
                false => "r".to_owned(),
            };
            lines.push(format!("gang a/new{gangs} {head} : {tasks} role={role}"));
            gangs += 1;
        }
        lines.push("cycle".to_owned());
        lines.push(EVICTED_GO.to_owned());
        lines.push("cycle".to_owned());
    }
    lines.push("cycle".to_owned());
    lines
}

/// Whoever is on its way out is gone.
const EVICTED_GO: &str = "evicted go";

fn played(script: Vec<String>) -> World {
    let mut world = World::new();
    for line in script {
        if line != EVICTED_GO {
            world.perform(&line);
            continue;
        }
        let rows = world.tables.tasks();
        let leaving = rows.filter(|(_, task)| task.phase == Phase::Releasing);
        let leaving: Vec<String> = leaving.map(|(_, task)| task.key.to_string()).collect();
        for pod in leaving {
            world.perform(&format!("delete {pod}"));
        }
    }
    world
}

fn kind(dice: &mut Dice) -> (String, String) {
    let queue = dice.pick(&["gold", "gold", "iron"]);
    let class = dice.pick(&["", "", "class=high"]);
    let count = 1 + dice.roll(4);
    let min = 1 + dice.roll(count);
    let cpu = 1 + dice.roll(3);
    (
        format!("queue={queue} {class} minres=none min={min}"),
        format!("{count} x cpu={cpu}"),
    )
}

/// Where every task is, by its gang and number, and in which phase: those that were evicted are not there.
fn outcome(world: &World) -> Vec<String> {
    let tables = &world.tables;
    let rows = tables.tasks().map(|(_, task)| {
        let gang = task.gang.map(|gang| tables.gang(gang).spec.key.to_string());
        let node = task.node.map(|node| tables.node(node).spec.name.clone());
        let gang = gang.unwrap_or_default();
        format!("{gang} {} {:?} {node:?}", task.index, task.phase)
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn gangs_that_are_alike_find_what_they_would_find_if_they_were_told_apart() {
    let mut evicted = 0;
    for seed in 0..400 {
        let alike = outcome(&played(script(seed, false)));
        let apart = outcome(&played(script(seed, true)));
        assert_eq!(alike, apart, "seed {seed}");
        let has_place = |row: &&String| row.starts_with("a/new") && row.contains("Some(");
        evicted += usize::from(alike.iter().any(|row| has_place(&row)));
    }
    assert!(evicted > 200, "room was taken in {evicted} of 400");
}
