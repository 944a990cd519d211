//! The whole system on one thread: the real store, review rules, driver, controllers, engine and
//! imitation nodes, under virtual time, from one seed.
//!
//! - [`World`] is the system; [`World::run`] lets time pass until nothing is left to do.
//! - [`Settings`] says how large it is and how slow its wires are.
//! - The transcript is what a passive watcher would have seen: the same seed gives the same bytes.
//!
//! What it refuses to know: how anything is decided. Nothing here stands in for a decision; only
//! the wires (latency, order of delivery) and the clock are imitated.
//!
//! Invariants: no real clock, thread or socket; every random choice comes from the seed; after
//! every write that was accepted the independent checker looks at the objects themselves.

mod judge;
mod random;
mod settings;
mod transcript;
mod wire;
mod world;

pub use judge::Finding;
pub use random::Random;
pub use settings::Settings;
pub use transcript::Transcript;
pub use world::{End, World};
