//! The whole system on one thread: the real store, review rules, driver, controllers, engine and
//! imitation nodes and disks, under virtual time, from one seed.
//!
//! - [`World`] is the system; [`World::run`] lets time pass until nothing is left to do.
//! - [`Settings`] says how large it is, how many drivers there are (of several, one holds the Lease),
//!   how slow its wires are and what goes wrong ([`Faults`]).
//! - The transcript is what a passive watcher would have seen: the same seed gives the same bytes.
//! - [`Findings`](Finding) are broken laws: of the objects (a witness that watches the store
//!   without delay), of the tables (the checker, after every cycle), of the mirror (its copies are
//!   the store's objects, once the world is quiet).
//! - [`Story`] is a random workload with what must have become of each of its parts in the end;
//!   [`shrink`] makes one that fails smaller. [`Script`] is one that somebody wrote down.
//! - [`Trace`] is a user's own cluster and workload; [`Play`] lets its time pass, and [`Report`] says
//!   what a watcher of the stored objects saw of it.
//! - [`FAULTS`] lists everything that can go wrong, by name; [`Coverage`] counts what struck when.
//!
//! What it refuses to know: how anything is decided. Nothing here stands in for a decision; only
//! the wires (latency, order of delivery, loss) and the clock are imitated.
//!
//! Invariants: no real clock, thread or socket; every random choice comes from the seed; the
//! witness shares no code with the rooms that decide.

mod calls;
mod census;
mod chronicle;
mod counts;
mod coverage;
mod disk;
mod fault;
mod follower;
mod judge;
mod ledger;
mod logbook;
mod names;
mod play;
mod random;
mod rehearsal;
mod report;
mod script;
mod settings;
mod shrink;
mod stored;
mod story;
mod trace;
mod transcript;
mod wire;
mod witness;
mod world;

pub use counts::Counts;
pub use coverage::{Coverage, PHASES, Phase, cells};
pub use fault::{FAULTS, Fault, NOT_YET, NotYet, Strikes};
pub use judge::Finding;
pub use play::{Audience, Stage, Told};
pub use random::Random;
pub use rehearsal::{
    Before, Change, Fate, Gone, Leaves, Named, Outcome, Owner, Refused, Rehearsal, WHAT_IF,
};
pub use report::{QueueSum, Report, ResourceSum, Turned, Waits, Workload};
pub use script::{Mistake, Script};
pub use settings::{Faults, Settings};
pub use shrink::shrink;
pub use story::Story;
pub use trace::{
    FOR_MS_MAX, Flaw, Origin, Part, Play, SIM_ARRIVES, SIM_ARRIVES_JITTER, SIM_COUNT,
    SIM_DURATION_JITTER, SIM_EVERY, SIM_TIMES, Trace, TraceSettings,
};
pub use transcript::Transcript;
pub use world::{End, Meeting, World};
