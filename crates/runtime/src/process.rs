//! The process node: it runs pods' commands as local processes, as a kubelet runs containers.
//!
//! What is here: the agent that registers a Node and follows the pods bound to it ([`agent`]), one
//! worker a pod, the hidden verbs of the same binary that set up namespaces and mounts before a
//! command starts ([`child`]), probes, logs, exec, limits by cgroup. Decisions (restart and
//! back-off, phase and conditions, environment) are pure functions in files of their own.
//!
//! What it refuses to know: which API server it talks to (it sees [`NodeApi`]), images (nothing is
//! pulled: the root file system is the host's, or one that an image map names), who schedules.
//!
//! Invariants: no process of a pod outlives the plane, however it ends; the host's files are never
//! changed by setting a container up; no status is written for a pod with another uid.
//!
//! The door: [`ProcessNode::start`], which answers [`client::kubelet::Kubelet`], and [`child_main`],
//! which a binary must call before it does anything else when [`is_child`] says so.

mod agent;
mod cgroup;
mod child;
mod door;
mod env;
mod exec;
pub(crate) mod frame;
mod images;
mod init;
mod launch;
mod log;
mod phase;
mod pod;
mod probe;
mod report;
mod restart;
mod rootfs;
mod sources;
mod worker;

use std::path::PathBuf;

use api::intent::{Intent, ObjectKey, WriteOutcome};
use api::kind::Kind;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;

pub use crate::follow::Followed;
pub(crate) use agent::PodDoor;
pub use agent::ProcessNode;
pub use child::{child_main, is_child};
pub use images::{ImageError, ImageMap, ImageRow};

pub(crate) use crate::clock::now;
pub(crate) use child::NETWORK as NETWORK_VERB;

/// What the node needs of an API server; `client` answers it, tests imitate it.
pub trait NodeApi: Send + Sync + 'static {
    /// Follows a kind for ever: a whole list first and after every interruption, changes between.
    /// The field selector is Kubernetes' (`spec.nodeName=node-1`).
    fn follow(&self, kind: Kind, field_selector: Option<String>) -> BoxStream<'static, Followed>;

    /// Reads one object; `None` where it does not exist.
    fn read(&self, key: ObjectKey) -> BoxFuture<'static, Result<Option<Value>, ReadError>>;

    /// Performs one write, once.
    fn write(&self, intent: Intent) -> BoxFuture<'static, WriteOutcome>;

    /// A token of a service account for a pod (`serviceaccounts/token`), or `None` where the server
    /// makes none; the file is then left out.
    fn token(
        &self,
        request: TokenRequest,
    ) -> BoxFuture<'static, Result<Option<String>, ReadError>> {
        drop(request);
        Box::pin(async { Ok(None) })
    }
}

/// An object could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read {what}: {message}")]
pub struct ReadError {
    /// Kind and name of the object.
    pub what: String,
    /// What the server or the connection said.
    pub message: String,
}

/// A wish for a service account's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// Namespace of the account and of the pod.
    pub namespace: String,
    /// The account's name.
    pub account: String,
    /// Audience, empty for the server's own.
    pub audience: String,
    /// Wanted life in seconds.
    pub expiration_seconds: i64,
    /// The pod that the token is bound to: name and uid.
    pub pod: (String, String),
}

/// How a process node is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The Node's name.
    pub node_name: String,
    /// Pods' directories and logs lie below it.
    pub state_dir: PathBuf,
    /// The executable whose `main` calls [`child_main`]; usually this very one.
    pub executable: PathBuf,
    /// Allocatable cpu in thousandths; `None` takes the host's.
    pub cpu_milli: Option<i64>,
    /// Allocatable memory in bytes; `None` takes the host's.
    pub memory_bytes: Option<i64>,
    /// Allocatable pods.
    pub pods_max: u32,
    /// What images stand for.
    pub images: ImageMap,
    /// How far pods are kept apart.
    pub network: NetworkWish,
    /// `kubeletVersion` of the Node.
    pub version: String,
    /// `PATH` of commands whose manifest sets none.
    pub search_path: String,
    /// A container's log is turned over at this size; one older part is kept.
    pub log_bytes_max: u64,
    /// Where the API server listens on the host; the `kubernetes` Service leads there.
    pub api_server: Option<std::net::SocketAddr>,
}

impl Settings {
    /// The usual settings for a node of that name with its state in that directory.
    pub fn new(node_name: &str, state_dir: PathBuf, executable: PathBuf) -> Settings {
        Settings {
            node_name: node_name.to_owned(),
            state_dir,
            executable,
            cpu_milli: None,
            memory_bytes: None,
            pods_max: 250,
            images: ImageMap::default(),
            network: NetworkWish::Best,
            version: "v1.36.0".to_owned(),
            search_path: std::env::var("PATH").unwrap_or_else(|_| DEFAULT_PATH.to_owned()),
            log_bytes_max: 10 << 20,
            api_server: None,
        }
    }
}

/// The search path of most images.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Which network level is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkWish {
    /// The *pod* level where the host allows it, else the *host* level.
    Best,
    /// The *host* level: pods share the host's network and mounts.
    Host,
}

/// The node could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the process node: {action}")]
pub struct StartError {
    /// What was being attempted.
    pub action: String,
    /// Why it failed.
    #[source]
    pub cause: std::io::Error,
}

impl StartError {
    fn new(action: impl Into<String>, cause: std::io::Error) -> StartError {
        StartError {
            action: action.into(),
            cause,
        }
    }
}
