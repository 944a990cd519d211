//! One request at a time to any Kubernetes API, over HTTPS or in process; and the door to a node's
//! containers ([`kubelet`]), which an API server reaches and a node answers.
//!
//! It refuses to know what the requests are for: no cache, no retry, no decision.

pub mod kubelet;
