//! A body is read no further than its limit, however long it is.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use server::{Api, Start, TokenKeys};
use tower::ServiceExt;

const PIECE_BYTES: usize = 64 << 10;
/// 100 MB.
const PIECES: usize = 1_600;

#[tokio::test]
async fn of_a_hundred_megabytes_three_are_read() {
    let api = Api::start(Start::default(), TokenKeys::make(0).expect("keys")).expect("a plane");
    let given = Arc::new(AtomicUsize::new(0));
    let counted = given.clone();
    let pieces = (0..PIECES).map(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; PIECE_BYTES])))
    });
    let request = http::Request::builder()
        .method("POST")
        .uri("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(StreamBody::new(futures::stream::iter(pieces)))
        .expect("a request");
    let response = api.service().oneshot(request).await.expect("an answer");
    assert_eq!(response.status().as_u16(), 413);
    let body = response.into_body().collect().await.expect("a body");
    let status: serde_json::Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    assert_eq!(
        status["message"],
        "Request entity too large: limit is 3145728"
    );
    let read = given.load(Ordering::Relaxed) * PIECE_BYTES;
    assert!(read <= (3 << 20) + 2 * PIECE_BYTES, "{read} bytes");
}
