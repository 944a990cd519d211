//! Whoever waits is looked at when something elsewhere helps it: pods that keep others out of their zone go,
//! pods of other schedulers come, and nodes come into other zones. A failure prints its seed.

use model::Phase;

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws::play;

/// Pods that avoid others by zone or must be near them, pods that ask nothing of others, and groups that stay in
/// one zone.
fn story(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0xa076_1d64_78bd_642f) + 3);
    let sizes: Vec<u64> = (0..3 + dice.roll(3)).map(|_| 1 + dice.roll(4)).collect();
    let node = |dice: &mut Dice, at: usize| {
        let zone = dice.pick(&["a", "b", "c"]);
        format!("node n{at} cpu={} mem=8Gi label=zone:{zone}", sizes[at])
    };
    let mut lines: Vec<String> = (0..sizes.len()).map(|at| node(&mut dice, at)).collect();
    let gangs = 4 + dice.roll(4);
    for at in 0..gangs {
        lines.push(gang(&mut dice, at));
        lines.push("cycle".to_owned());
    }
    for at in 0..8 {
        let known = usize::try_from(dice.roll(sizes.len() as u64)).expect("few");
        lines.push(match dice.roll(4) {
            0 => {
                let label = dice.pick(&["app:db", "role:log", "app:db label=role:log"]);
                format!("bound n{known} b/f{at} label={label}")
            }
            1 => format!("delete a/g{}-", dice.roll(gangs)),
            2 => format!("delete b/f{}", dice.roll(8)),
            _ => node(&mut dice, known),
        });
        lines.push("wait 5s".to_owned());
        lines.push("cycle".to_owned());
    }
    lines
}

fn gang(dice: &mut Dice, at: u64) -> String {
    let count = 1 + dice.roll(2);
    let min = 1 + dice.roll(count);
    let kind = dice.pick(&["", "", "native within=zone"]);
    let app = dice.pick(&[
        "label=app:db",
        "label=app:db label=role:log",
        "label=app:web",
        "",
    ]);
    let near = dice.pick(&["", "", "near=app:db~key:zone near=role:log~key:zone"]);
    let apart = dice.pick(&["", "", "apart=app:db~key:zone", "apart=app:web~key:zone"]);
    let cpu = 1 + dice.roll(2);
    format!("gang a/g{at} {kind} min={min} minres=none : {count} x cpu={cpu} {app} {apart} {near}")
}

#[test]
fn nobody_waits_who_would_find_a_place() {
    let mut waiting = 0;
    for seed in 0..200 {
        eprintln!("seed {seed}");
        let mut world = World::new();
        for line in story(seed) {
            play(&mut world, &line);
            if line != "cycle" {
                continue;
            }
            let gangs: Vec<_> = (world.tables.gangs())
                .filter(|(_, gang)| gang.count(Phase::Pending) > 0)
                .map(|(id, gang)| (id, gang.spec.key.clone()))
                .collect();
            for (id, key) in gangs {
                waiting += 1;
                let found = engine::explain(&world.engine, &mut world.tables, id, world.now);
                let told = story(seed).join("\n");
                assert_eq!(found.places, [], "{key} waits\n{told}\n{}", world.said);
            }
        }
    }
    assert!(waiting > 1_000, "only {waiting} waited");
}
