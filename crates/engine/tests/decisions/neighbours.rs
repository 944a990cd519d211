//! Engines beside one another: what each decides is its own matter. A failure prints which of them differs.
//!
//! A decision runs on one thread, and nothing here says what would become of one that is divided among
//! several. What is shown is that engines of one process share nothing: neither what belongs to a thread or
//! to the process, nor names that are numbered as they come, nor the seeds of hashes, which each thread
//! draws anew.

use std::sync::Barrier;

use checker::digest;

use crate::dice::Dice;
use crate::explained_kinds::{THEMES, script_of};
use crate::fixture::World;
use crate::laws;

/// As many worlds as run beside one another, each of them another one.
const WORLDS: usize = 16;
/// How often that is tried.
const ROUNDS: u64 = 6;

/// What happens in one of them: cards, devices, cpus, groups, zones, trees of queues, or a bit of all.
fn script(at: usize, round: u64) -> Vec<String> {
    let seed = round * WORLDS as u64 + at as u64;
    match THEMES.get(at) {
        Some(theme) => script_of(theme, seed),
        None => laws::script(seed),
    }
}

/// One that is played line by line.
struct Player {
    world: World,
    lines: std::vec::IntoIter<String>,
}

impl Player {
    fn of(lines: Vec<String>) -> Player {
        Player {
            world: World::new(),
            lines: lines.into_iter(),
        }
    }

    /// Plays a line, if there is one left.
    fn step(&mut self) {
        if let Some(line) = self.lines.next() {
            laws::play(&mut self.world, &line);
        }
    }

    /// All that was decided, and what the tables came to.
    fn told(mut self) -> (String, u64) {
        while self.lines.len() > 0 {
            self.step();
        }
        (self.world.said, digest(&self.world.tables))
    }
}

/// What becomes of each when nobody is beside it, on a thread that has seen nobody else.
fn alone(scripts: &[Vec<String>]) -> Vec<(String, u64)> {
    let one = |script: &Vec<String>| {
        let script = script.clone();
        let end = std::thread::scope(|scope| scope.spawn(|| Player::of(script).told()).join());
        end.expect("the thread came to its end")
    };
    scripts.iter().map(one).collect()
}

fn longest(scripts: &[Vec<String>]) -> usize {
    scripts.iter().map(Vec::len).max().unwrap_or(0)
}

#[test]
fn sixteen_engines_at_a_time_decide_as_each_does_alone() {
    let mut places = 0;
    for round in 0..ROUNDS {
        let scripts: Vec<_> = (0..WORLDS).map(|at| script(at, round)).collect();
        let alone = alone(&scripts);
        let together = Barrier::new(WORLDS);
        let played = |script: Vec<String>| {
            // Nobody begins before all are there.
            together.wait();
            Player::of(script).told()
        };
        let played = &played;
        let beside: Vec<_> = std::thread::scope(|scope| {
            let start = |script| scope.spawn(move || played(script));
            let threads: Vec<_> = scripts.into_iter().map(start).collect();
            let ends = threads.into_iter().map(|thread| thread.join());
            ends.map(|end| end.expect("the thread came to its end"))
                .collect()
        });
        for (at, (beside, alone)) in beside.iter().zip(&alone).enumerate() {
            assert_eq!(beside, alone, "world {at} of round {round} (I19)");
            places += alone.0.matches(" -> ").count();
        }
    }
    assert!(places > 300, "only {places} were placed");
}

/// What the same world is called in another run, so that no name is known when it begins. The order of names
/// stays what it was.
fn renamed(text: &str, from: &[&str], to: &[&str]) -> String {
    let pairs = from.iter().zip(to);
    pairs.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn sixteen_engines_that_take_turns_on_one_thread_decide_as_each_does_alone() {
    let (old, new) = (["gold", "iron", "leaf"], ["gold-b", "iron-b", "leaf-b"]);
    let mut dice = Dice(7);
    for round in 0..ROUNDS {
        let scripts: Vec<_> = (0..WORLDS).map(|at| script(at, round)).collect();
        let alone = alone(&scripts);
        let line = |line: &String| renamed(line, &old, &new);
        let named = scripts
            .iter()
            .map(|script| script.iter().map(line).collect());
        let mut players: Vec<Player> = named.map(Player::of).collect();
        // Whose turn it is is drawn, so that none always comes after the same one.
        for _ in 0..longest(&scripts) * WORLDS {
            let at = usize::try_from(dice.roll(WORLDS as u64)).expect("small");
            players[at].step();
        }
        for (at, (player, (said, _))) in players.into_iter().zip(&alone).enumerate() {
            let (turns, _) = player.told();
            let turns = renamed(&turns, &new, &old);
            assert_eq!(turns, *said, "world {at} of round {round} (I19)");
        }
    }
}
