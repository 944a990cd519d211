//! Watch streams: each reads on at its own client's speed.

use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// What it takes to wake one watcher and to send it something, roughly. A topic with many watchers
/// is told of changes less often: so that waking them all takes no more than half of the time.
const WAKE_COST: Duration = Duration::from_micros(20);
/// The longest that a watcher rests after it was told something.
const REST_MAX: Duration = Duration::from_millis(20);
/// A shorter rest is not worth a timer.
const REST_MIN: Duration = Duration::from_millis(1);

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
    /// When it was told something last.
    told: Option<Instant>,
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
        told: None,
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
    /// Waits where many watch the same: what happens meanwhile is told in one piece.
    async fn rest(&mut self) {
        let Some(told) = self.told.take() else {
            return;
        };
        let watchers = u32::try_from(self.plane.watchers(self.watch.topic())).unwrap_or(u32::MAX);
        let rest = WAKE_COST.saturating_mul(watchers).min(REST_MAX);
        if rest >= REST_MIN {
            tokio::time::sleep_until((told + rest).into()).await;
        }
    }

    /// The next events, as soon as there are any; `None` at the end.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            if matches!(self.next, Next::Over) || *self.stopping.borrow() {
                return None;
            }
            self.rest().await;
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
                self.told = matches!(step, WatchStep::Wait { .. }).then(Instant::now);
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
