//! Imitations of an API, for tests: they answer at once, without a wire.

use api::call::Call;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use serde_json::Value;

use super::{Answer, ByteStream, Cluster, ClusterError};

/// Whoever answers calls in a test.
pub(crate) trait Imitation: Send + Sync {
    /// The code and the body of the answer.
    fn answer(&self, call: &Call) -> (u16, Value);

    /// What a watch or a log brings; a watch says nothing and never ends.
    fn stream(&self, _target: &str) -> ByteStream {
        stream::pending().boxed()
    }
}

impl<T: Imitation> Cluster for T {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, ClusterError>> {
        let (code, body) = self.answer(&call);
        let answer = Answer {
            code,
            body: Bytes::from(body.to_string()),
            warnings: Vec::new(),
        };
        Box::pin(async { Ok(answer) })
    }

    fn stream(&self, target: String) -> BoxFuture<'static, Result<ByteStream, ClusterError>> {
        let stream = Imitation::stream(self, &target);
        Box::pin(async { Ok(stream) })
    }
}

/// A cluster that says of a target what a function does.
pub(crate) struct Told<F>(pub(crate) F);

impl<F: Fn(&str) -> (u16, Value) + Send + Sync> Imitation for Told<F> {
    fn answer(&self, call: &Call) -> (u16, Value) {
        (self.0)(&call.target)
    }
}
