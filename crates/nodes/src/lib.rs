//! Imitation nodes: a fleet of them behaves towards the API as kubelets would, and runs nothing.
//!
//! What it does: makes Node objects, takes the pods that are bound to them through their lives
//! (start, end, restart, removal) after delays that stage data gives, and writes their statuses. As a
//! device plugin would it says of pods with Ascend chips which they really have.
//!
//! What it refuses to know: who placed a pod and why, whose children pods are, how a write is
//! performed. It has no IO and no clock; every random choice follows from the seed.
//!
//! The list is the table of [`Stage`]s in [`Settings`]; the first that applies to a pod wins.
//! The door is [`Fleet`].
//!
//! Invariants, absences first: a node that has no pods is never looked at again, so an idle fleet
//! costs nothing and wakes nobody; a pod has at most one write on its way; no write is repeated
//! before its outcome is seen; pods of other nodes are not remembered, nor are pods that ended;
//! the same seed, pods and times make the same writes.
//!
//! Signs of life (leases, statuses that are told again) are the shell's: they say nothing new.

mod chips;
mod conditions;
mod fleet;
mod node;
mod resident;
mod settings;
mod stage;
mod status;

pub use chips::real_chips;
pub use conditions::{are_believed, conditions};
pub use fleet::Fleet;
pub use node::name;
pub use settings::Settings;
pub use stage::{Life, Next, STAGES, Stage};

/// Pod annotation: runs so long, as a Go duration; without it a pod runs for ever.
pub const SIM_DURATION: &str = "katmai.dev/sim-duration";
/// Pod annotation: ends with this exit code; 0 by default.
pub const SIM_EXIT_CODE: &str = "katmai.dev/sim-exit-code";
/// Pod annotation: starts so long after it was bound, as a Go duration.
pub const SIM_START_DELAY: &str = "katmai.dev/sim-start-delay";
/// Pod annotation: takes so long to stop, as a Go duration; never longer than its grace.
pub const SIM_STOP_DELAY: &str = "katmai.dev/sim-stop-delay";
/// Node label: marks an imitation.
pub const SIM_NODE: &str = "katmai.dev/simulated";
