//! What an API server asks a node about running containers: logs, exec, attach, port-forward.
//!
//! `server` calls it for the pod subresources, `runtime`'s process node answers; they meet in
//! `app`. It stands here because `client` is the one shell that others may import.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::mpsc;

/// A node's answers about its containers.
pub trait Kubelet: Send + Sync {
    /// Streams a container's log.
    fn logs(&self, request: LogRequest) -> BoxFuture<'static, Result<ByteStream, KubeletError>>;
    /// Starts a command beside a container's processes, or attaches to its main one.
    fn exec(&self, request: ExecRequest) -> BoxFuture<'static, Result<ExecSession, KubeletError>>;
    /// Opens a stream to a port inside the pod.
    fn dial(
        &self,
        pod: PodRef,
        port: u16,
    ) -> BoxFuture<'static, Result<Box<dyn Duplex>, KubeletError>>;
}

/// Bytes as they come; an error ends the stream.
pub type ByteStream = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// A connection that can be read and written.
pub trait Duplex: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Duplex for T {}

/// Names a pod of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// `spec.nodeName`.
    pub node: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Identity: the same name with another uid is another pod.
    pub uid: String,
}

/// `PodLogOptions`, already checked.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// The pod.
    pub pod: PodRef,
    /// The container (never empty: the API server resolves the default).
    pub container: String,
    /// Keep the stream open for new lines until the container ends.
    pub follow: bool,
    /// The instance before the current one.
    pub previous: bool,
    /// Begin each line with an RFC 3339 time.
    pub timestamps: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only lines since this instant, microseconds since the epoch.
    pub since_micros: Option<i64>,
    /// Stop after so many bytes.
    pub limit_bytes: Option<u64>,
}

/// `PodExecOptions` or `PodAttachOptions`, already checked.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    /// The pod.
    pub pod: PodRef,
    /// The container.
    pub container: String,
    /// Empty means attach.
    pub command: Vec<String>,
    /// Whether the caller sends input.
    pub stdin: bool,
    /// Whether a terminal is wanted.
    pub tty: bool,
}

/// A running command.
pub struct ExecSession {
    /// Input; dropping it closes the command's input.
    pub stdin: mpsc::Sender<Bytes>,
    /// What the command prints: (false, bytes) is output, (true, bytes) is error output.
    pub output: mpsc::Receiver<(bool, Bytes)>,
    /// Terminal size changes: (columns, rows).
    pub resize: mpsc::Sender<(u16, u16)>,
    /// The exit code, once the command has ended and all output was delivered.
    pub exit: BoxFuture<'static, Result<i32, KubeletError>>,
}

/// Why a node cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// No such pod or container here; the text is kubelet's.
    #[error("{0}")]
    NotFound(String),
    /// The container is not in a state that allows this; the text is kubelet's.
    #[error("{0}")]
    BadRequest(String),
    /// Something failed underneath.
    #[error("cannot {action}")]
    Io {
        /// What was being attempted.
        action: String,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
}
