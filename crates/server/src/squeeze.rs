//! Large answers leave as gzip where the client takes that.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY,
};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;

use crate::api::{Body, full, reply};

/// Answers from here on are worth the work, in bytes (as upstream decides).
const BYTES_MIN: u64 = 128 << 10;
/// Answers from here on are squeezed beside the threads of the sockets, in bytes.
const ASIDE_BYTES_MIN: usize = 1 << 20;

/// Whether a client takes gzip.
pub(crate) fn wanted(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|choice| {
            let (name, weight) = choice.split_once(';').unwrap_or((choice, ""));
            let is_refused = matches!(weight.trim(), "q=0" | "q=0.0");
            matches!(name.trim(), "gzip" | "*") && !is_refused
        })
}

/// The answer, squeezed if it is a large one of known length.
pub(crate) async fn squeezed(response: http::Response<Body>) -> http::Response<Body> {
    let is_large = response
        .body()
        .size_hint()
        .exact()
        .is_some_and(|bytes| bytes >= BYTES_MIN);
    if !is_large || !is_text(&response) || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return reply(store::Refused::internal(&error.to_string()).response()),
    };
    let made = if bytes.len() < ASIDE_BYTES_MIN {
        gzip(&bytes)
    } else {
        let bytes = bytes.clone();
        tokio::task::spawn_blocking(move || gzip(&bytes))
            .await
            .unwrap_or_default()
    };
    // Nothing came of it: the answer leaves as it is.
    let Some(made) = made else {
        return http::Response::from_parts(parts, full(bytes));
    };
    parts
        .headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts
        .headers
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    parts.headers.remove(CONTENT_LENGTH);
    http::Response::from_parts(parts, full(made))
}

fn is_text(response: &http::Response<Body>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.contains("json"))
}

fn gzip(bytes: &Bytes) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}
