//! Pages that are not the API: health and metrics.

use http::header::{CONTENT_TYPE, HeaderValue};
use store::Response;

use crate::api::{Body, full, reply};

/// `/healthz`, `/livez`, `/readyz` and their parts.
pub(crate) fn health(path: &str) -> Option<http::Response<Body>> {
    let first = path.trim_start_matches('/').split('/').next()?;
    matches!(first, "healthz" | "livez" | "readyz").then(|| reply(Response::text(200, "ok")))
}

/// `/metrics`.
pub(crate) fn metrics(text: String) -> http::Response<Body> {
    let mut response = http::Response::new(full(text));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}
