//! Decision logs that are damaged, cut short or somebody else's.

use driver::log::{Problem, Replay, Segment, Tokens};
use sim::World;

use super::drivers::drivers;

/// The first segments of a small world's log.
fn log() -> Vec<u8> {
    let mut world = World::new(sim::Settings::new(1), drivers(1));
    world.run(3_000);
    world.log().expect("this world logs")
}

/// Reads and plays; whatever is wrong is told.
fn play(bytes: &[u8]) -> Result<bool, Problem> {
    let segment = Segment::read(bytes)?;
    let replay = Replay::new(&segment, Tokens::blank())?;
    let summary = replay.run(None, &mut |_| {})?;
    Ok(summary.difference.is_none())
}

#[test]
fn a_log_that_is_cut_anywhere_is_played_as_far_as_it_goes_or_refused_in_words() {
    let whole = log();
    assert_eq!(play(&whole), Ok(true));
    let mut played = 0;
    for end in (0..whole.len()).step_by(97).chain(0..200.min(whole.len())) {
        match play(&whole[..end]) {
            Ok(is_equal) => {
                assert!(is_equal, "cut at {end}");
                played += 1;
            }
            Err(problem) => assert_eq!(problem, Problem::Empty, "cut at {end}"),
        }
    }
    assert!(played > 0, "no cut left anything to play");
}

#[test]
fn a_flipped_bit_anywhere_is_told_or_cuts_the_tail() {
    let whole = log();
    for at in (0..whole.len()).step_by(31) {
        let mut broken = whole.clone();
        broken[at] ^= 1 << (at % 8);
        match play(&broken) {
            Ok(is_equal) => {
                let segment = Segment::read(&broken).expect("it was played");
                assert!(is_equal && segment.torn.is_some(), "bit at {at}");
            }
            Err(problem) => assert!(!problem.to_string().is_empty()),
        }
    }
}

#[test]
fn what_is_foreign_or_newer_is_refused_by_name() {
    assert_eq!(play(b"apiVersion: v1").unwrap_err(), Problem::Foreign);
    let mut newer = log();
    newer[8] = 9;
    assert_eq!(play(&newer).unwrap_err(), Problem::Newer { version: 9 });
}
