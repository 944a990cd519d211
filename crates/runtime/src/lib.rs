//! Tokio around `driver`, and the node that runs pods as local processes.
//!
//! - [`ask`]: the door through which people ask the scheduler.
//! - [`clock`]: the wall clock.
//! - [`decisions`]: the decision log on disk.
//! - [`disk`]: directories behind volumes and snapshots.
//! - [`engine_loop`]: performs the driver's requests and feeds back what came of them.
//! - [`fleet_loop`]: the same around the imitation nodes.
//! - [`follow`]: a kind, listed and watched for whoever listens.
//! - [`process`], [`network`], [`volumes`]: the process node, its pod network, its volumes.
//! - [`node_api`]: the process node's questions, asked through `client`.
//! - `questions`: what is asked of others than the API, bounded in time and bytes.
//! - [`scheduler_conf`]: the scheduler's configuration, read again when it changes.
//! - [`snapshot`]: what a scheduler knows, written to a file when somebody asks.
//! - [`usage`]: what this process uses of its machine.
//! - [`metrics`]: the text at `/metrics`, from rows.
//!
//! What it refuses to know: what is decided and why. There is no branch on a job's phase here.
//!
//! Invariants: nothing outlives the plane; no decision waits for a socket; no answer is invented.

pub mod ask;
pub mod clock;
pub mod decisions;
pub mod disk;
pub mod engine_loop;
pub mod fleet_loop;
pub mod follow;
mod heartbeat;
pub mod metrics;
pub mod network;
pub mod node_api;
pub mod process;
mod questions;
pub mod scheduler_conf;
pub mod snapshot;
pub mod usage;
mod volumes;

pub use questions::Reach;
