//! The engine beside a small, slow scheduler that tries everything. Both see the same little clusters
//! (at most 8 gangs and 6 nodes) and the same events; after every cycle the slow one says which gangs
//! are let in, which gang has its turn, whether it can start at all and which node is the best, and
//! the engine must have done no worse.
//!
//! `KATMAI_ORACLE_SEED=17 cargo test -p katmai-engine --test oracle` looks at one seed only,
//! `KATMAI_ORACLE_SEED=2000..20000` at those. A failure is shrunk: what is printed is a smallest list of
//! events that still shows it.

#[path = "../shared/dice.rs"]
mod dice;
mod instance;
mod shares;
mod slow;
mod stage;

use instance::{Event, events};
use stage::Stage;

const SEEDS: u64 = 2_000;

/// Plays the events and says what went wrong first, if anything.
fn play(events: &[Event]) -> Result<u32, String> {
    let mut stage = Stage::new();
    for event in events {
        stage.happen(event);
        stage.decide_until_quiet()?;
    }
    Ok(stage.placed)
}

/// Leaves out every event without which it still fails.
fn shrink(mut events: Vec<Event>) -> Vec<Event> {
    let mut at = 0;
    while at < events.len() {
        let mut fewer = events.clone();
        fewer.remove(at);
        if play(&fewer).is_err() {
            events = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    events
}

fn report(seed: u64, events: Vec<Event>) -> String {
    let least = shrink(events);
    let why = play(&least).expect_err("shrinking keeps the failure");
    let lines: Vec<String> = least.iter().map(|event| format!("  {event}")).collect();
    format!("seed {seed}\n{}\n{why}", lines.join("\n"))
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a person may ask for other seeds"
)]
fn the_engine_does_no_worse_than_one_that_tries_everything() {
    let asked = std::env::var("KATMAI_ORACLE_SEED").ok();
    let number = |text: &str| text.parse::<u64>().expect("a seed is a number");
    let seeds = match asked.as_deref().map(|text| (text, text.split_once(".."))) {
        None => 0..SEEDS,
        Some((_, Some((from, to)))) => number(from)..number(to),
        Some((only, None)) => number(only)..number(only) + 1,
    };
    let mut placed = 0;
    let mut failed = Vec::new();
    for seed in seeds {
        let events = events(seed);
        match play(&events) {
            Ok(count) => placed += u64::from(count),
            Err(_) => failed.push((seed, events)),
        }
    }
    let count = failed.len();
    let mut shown = failed
        .into_iter()
        .take(3)
        .map(|(seed, all)| report(seed, all));
    assert!(
        count == 0,
        "{count} seeds fail\n{}",
        shown.by_ref().collect::<Vec<_>>().join("\n")
    );
    assert!(
        placed > 500 || asked.is_some(),
        "only {placed} tasks were placed"
    );
    eprintln!("{placed} tasks placed");
}

#[test]
fn an_engine_without_nodes_to_choose_from_is_caught() {
    // The oracle is no oracle if it agrees with everything: it must object to a plan that leaves a
    // gang waiting that fits, to one that starts a gang in part, and to one in the wrong order.
    let words = "node 0 cpu=4; node 1 cpu=2; queue 0 weight=1; gang 0 queue=0 min=2 2 x cpu=1; gang 1 queue=0 min=1 1 x cpu=4 high";
    for spoiled in [
        stage::Spoil::Nothing,
        stage::Spoil::Part,
        stage::Spoil::Node,
    ] {
        let mut stage = Stage::new();
        stage.spoil = Some(spoiled);
        let said: Result<(), String> = instance::parse(words).iter().try_for_each(|event| {
            stage.happen(event);
            stage.decide_until_quiet()
        });
        assert!(said.is_err(), "{spoiled:?} goes unnoticed");
    }
}
