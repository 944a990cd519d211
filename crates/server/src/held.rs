//! A response body that holds on to something until it has been sent: a place among the requests
//! in flight, the last word of the audit log.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::api::Body;

struct Held<T> {
    body: Body,
    _kept: T,
}

/// The same answer; `kept` is dropped when its body is.
pub(crate) fn until_sent<T: Send + Unpin + 'static>(
    response: http::Response<Body>,
    kept: T,
) -> http::Response<Body> {
    response.map(|body| Held { body, _kept: kept }.boxed_unsync())
}

impl<T: Unpin> HttpBody for Held<T> {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
