//! One request at a time to any Kubernetes API, over HTTPS or in process ([`Cluster`]); and the
//! door to a node's containers ([`kubelet`]), which an API server reaches and a node answers.
//!
//! It refuses to know what the requests are for: no cache, no retry, no decision. A lost answer is
//! [`api::intent::WriteOutcome::Unknown`], never a guess.

mod cluster;
pub mod kubelet;
mod lines;

pub use cluster::{Answer, ClientError, Cluster};
pub use kube::client::Body;
pub use lines::LINE_BYTES_MAX;
