//! The laws again, whatever plugins stand in whatever tiers with whichever switches. A failure prints its seed.

use checker::digest;
use placement::{PLUGINS, Switch};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws::{play, script};

/// Rules that are drawn by lot, as the beginning of a script.
pub fn rules(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    // An extender is somebody to be asked, and nobody is there who would answer.
    let all = PLUGINS.iter().map(|row| row.name);
    let mut left: Vec<&str> = all
        .filter(|name| *name != "extender" && dice.roll(3) > 0)
        .collect();
    let mut lines = Vec::new();
    let mut tiers = vec!["tiers".to_owned()];
    let mut names = Vec::new();
    while !left.is_empty() {
        let at = usize::try_from(dice.roll(left.len() as u64)).expect("few");
        let name = left.swap_remove(at);
        if !names.is_empty() && dice.roll(5) == 0 {
            tiers.push("/".to_owned());
        }
        tiers.push(name.to_owned());
        names.push(name);
    }
    lines.push(tiers.join(" "));
    for name in &names {
        for switch in Switch::ALL {
            if switch.is_on_by_default() && dice.roll(14) == 0 {
                lines.push(format!("off {name} {}", switch.key()));
            }
        }
    }
    if names.contains(&"capacity") && dice.roll(2) == 0 {
        lines.push("on capacity enableHierarchy".to_owned());
    }
    lines
}

/// The rules, then a story that has no say in them.
fn story(seed: u64) -> Vec<String> {
    let mut lines = rules(seed);
    let told = script(seed).into_iter();
    lines.extend(told.filter(|line| !line.starts_with("off ")));
    lines
}

#[test]
fn nothing_is_overfilled_lost_or_half_placed_by_whatever_rules() {
    // The fixture asks the checker after every cycle.
    let mut places = 0;
    for seed in 0..300 {
        eprintln!("seed {seed}");
        let mut world = World::new();
        for line in story(seed) {
            play(&mut world, &line);
        }
        places += world.said.matches(" -> ").count();
    }
    assert!(places > 500, "only {places} were placed");
}

#[test]
fn what_is_kept_says_what_is_found_from_scratch_by_whatever_rules() {
    // I19: in every cycle an engine that looks up everything decides the same as ours.
    for seed in 300..400 {
        eprintln!("seed {seed}");
        let mut world = World::new();
        world.is_doubted = true;
        for line in story(seed) {
            play(&mut world, &line);
        }
    }
}

#[test]
fn the_same_history_gives_the_same_plans_by_whatever_rules() {
    for seed in 400..450 {
        let told = |()| {
            let mut world = World::new();
            story(seed).iter().for_each(|line| play(&mut world, line));
            (world.said, digest(&world.tables))
        };
        assert_eq!(told(()), told(()), "seed {seed} (I19)");
    }
}
