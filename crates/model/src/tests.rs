//! Laws of the small things, each against the plainest way of saying it: whatever is built of them
//! is tried elsewhere, and would forgive a mistake here.

mod amounts;
#[path = "../../engine/tests/shared/dice.rs"]
pub(crate) mod dice;
mod ends;
mod glances;
mod histories;
mod holdings;
mod likeness;
mod matching;
mod outside;
mod sentences;
mod sets;

/// How many random cases a law is tried with.
const CASES: u64 = 3_000;

/// One of these.
fn one<'a, T>(dice: &mut dice::Dice, all: &'a [T]) -> &'a T {
    &all[dice.roll(all.len() as u64) as usize]
}
