//! The command line: verbs as rows, what was typed as values, what happened as text.
//!
//! What it does: parses arguments ([`parse`]), reads manifests ([`manifest`]), follows workloads to
//! their end ([`view`] decides what is said, [`printer`] says it), asks a plane that is up.
//!
//! What it refuses to know: how a plane is built. A verb that needs one returns a [`start::Start`]
//! to `app`, which hands back a [`cluster::Cluster`] to ask.
//!
//! The lists are [`verbs::VERBS`], alphabetical, and `processes::PROCESSES`, the parts beside a cluster; help,
//! completion, manual pages and docs/flags.md come from their rows.
//! The door is [`parse`], then [`answer`].
//!
//! Invariants: no verb reads a global; nothing is printed except through [`printer`] and
//! [`console`]; a bad manifest never reaches the API half-read; colours only on a terminal.

pub mod cluster;
pub mod console;
pub mod manifest;
pub mod printer;
pub mod scheduler_conf;
pub mod start;
pub mod state;
pub mod verbs;
pub mod view;

mod gates;
mod logs;
mod processes;
mod rehearse;
mod replay;
mod rest;
mod run;
mod simulate;
mod vcctl;

pub use rehearse::{Drivers, rehearse};
pub use replay::replay;
pub use simulate::simulate;
pub use start::{Outcome, Plane, Question, ReplayRequest, SimulateRequest, Start};
pub use verbs::{answer, parse, unasked};

/// The workload completed, or the verb did what it was told.
pub const EXIT_COMPLETE: u8 = 0;
/// A workload failed or was aborted, or the plane refused.
pub const EXIT_FAILED: u8 = 1;
/// The manifest or the command line is wrong.
pub const EXIT_BAD_INPUT: u8 = 2;
/// The time allowed ran out first.
pub const EXIT_TIMEOUT: u8 = 3;
