//! One request at a time to any Kubernetes API, over HTTPS or in process ([`Cluster`]); and the
//! doors that an API server reaches: to a node's containers ([`kubelet`]), and to the scheduler ([`ask`]).
//!
//! It refuses to know what the requests are for: no cache, no retry, no decision; only keys that a
//! request wants are drawn here, and the version in which a server speaks of a kind is found out and
//! spoken ([`api::dialect`]). A lost answer is
//! [`api::intent::WriteOutcome::Unknown`], never a guess.

mod address;
pub mod ask;
mod cluster;
mod keys;
pub mod kubelet;
mod lines;

pub use cluster::{Answer, ClientError, Cluster, chain};
pub use kube::client::Body;
pub use lines::LINE_BYTES_MAX;
