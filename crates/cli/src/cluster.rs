//! The narrow door through which verbs ask an API: one call, or one stream of bytes.
//!
//! Everything richer (apply, watch, logs) is built on these two in [`crate::rest`], so that a test
//! needs to imitate only this.

#[cfg(test)]
pub(crate) mod imitation;

use api::call::Call;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// An API that can be asked.
pub trait Cluster: Send + Sync {
    /// Performs one request. A refusal is an [`Answer`] with its code, not an error.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, ClusterError>>;
    /// Opens a long answer: a watch or a log. `target` is path and query of a GET.
    fn stream(&self, target: String) -> BoxFuture<'static, Result<ByteStream, ClusterError>>;
}

/// Bytes as they come.
pub type ByteStream = BoxStream<'static, Result<Bytes, ClusterError>>;

/// What an API answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP code.
    pub code: u16,
    /// JSON, usually.
    pub body: Bytes,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

/// Why a cluster could not be asked, or would not open a stream.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// It answered with a refusal.
    #[error("{message}")]
    Refused {
        /// HTTP code.
        code: u16,
        /// The Status message.
        message: String,
    },
    /// It could not be reached, or went away.
    #[error("{0}")]
    Unreachable(String),
}

impl Cluster for client::Cluster {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, ClusterError>> {
        let cluster = self.clone();
        Box::pin(async move {
            let answer = cluster.send(&call).await.map_err(failure)?;
            Ok(Answer {
                code: answer.code,
                body: answer.body,
                warnings: answer.warnings,
            })
        })
    }

    fn stream(&self, target: String) -> BoxFuture<'static, Result<ByteStream, ClusterError>> {
        let cluster = self.clone();
        Box::pin(async move {
            let call = Call {
                method: "GET",
                target,
                content_type: "",
                body: Vec::new(),
            };
            let stream = cluster.stream(&call).await.map_err(failure)?;
            Ok(stream
                .map(|chunk| {
                    chunk.map_err(|error| ClusterError::Unreachable(client::chain(&error)))
                })
                .boxed())
        })
    }
}

fn failure(error: client::ClientError) -> ClusterError {
    if let client::ClientError::Refused(refusal) = &error {
        return ClusterError::Refused {
            code: refusal.code,
            message: refusal.message.to_string(),
        };
    }
    ClusterError::Unreachable(client::chain(&error))
}
