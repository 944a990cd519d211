//! Watch streams: each reads on at its own client's speed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use store::{Watch, WatchStep};

use crate::api::Body;
use crate::plane::{Plane, now};
use crate::webhook;

/// How far a stream has come.
enum Next {
    Poll,
    Over,
}

struct Streaming {
    plane: Arc<Plane>,
    watch: Watch,
    changed: tokio::sync::watch::Receiver<u64>,
    stopping: tokio::sync::watch::Receiver<bool>,
    next: Next,
    /// What was said before webhooks had to be asked.
    held: Vec<u8>,
}

/// The answer that streams a watch.
pub(crate) fn open(plane: Arc<Plane>, watch: Watch) -> http::Response<Body> {
    let content_type = watch.content_type();
    let streaming = Streaming {
        changed: plane.subscribe(watch.topic()),
        stopping: plane.stopping.subscribe(),
        plane,
        watch,
        next: Next::Poll,
        held: Vec::new(),
    };
    let frames = futures::stream::unfold(streaming, |mut streaming| async move {
        let bytes = streaming.next_bytes().await?;
        Some((Ok(Frame::data(bytes)), streaming))
    });
    let mut response = http::Response::new(StreamBody::new(frames.boxed()).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(
        "cache-control",
        HeaderValue::from_static("no-cache, private"),
    );
    if let Ok(value) = HeaderValue::from_str(&content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

impl Streaming {
    /// The next events, as soon as there are any; `None` at the end.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            if matches!(self.next, Next::Over) || *self.stopping.borrow() {
                return None;
            }
            // Seen before polling: a change in between wakes the wait below at once.
            self.changed.borrow_and_update();
            let mut out = std::mem::take(&mut self.held);
            let step = self
                .plane
                .read_store()
                .poll_watch(&mut self.watch, now(), &mut out);
            if step == WatchStep::End {
                self.next = Next::Over;
            }
            if !out.is_empty() && step != WatchStep::Call {
                return Some(out.into());
            }
            let until = match step {
                WatchStep::More | WatchStep::End => continue,
                WatchStep::Call => {
                    let calls = self.watch.take_calls();
                    let answers = webhook::perform(&calls).await;
                    self.watch.hear(calls, answers);
                    self.held = out;
                    continue;
                }
                WatchStep::Wait { until } => until,
            };
            let micros = until.map_or(i64::MAX / 2, |until| {
                until.micros().saturating_sub(now().micros()).max(1_000)
            });
            let pause = Duration::from_micros(micros.unsigned_abs());
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                stopping = self.stopping.changed() => stopping.ok()?,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}
