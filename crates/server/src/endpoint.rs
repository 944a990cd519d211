//! The webhooks of a cluster: `review`'s rules over HTTPS.
//!
//! What it does: takes an `AdmissionReview` at the path of a row of [`review::WEBHOOKS`], answers by
//! that row's rule and by [`FactTable`], serves with a certificate that changes while it serves
//! ([`CertificateKeeper`]), and tells the API server whom to ask ([`Registrar`]).
//!
//! Invariants: a body is refused by its length before it is read, and all bodies together have a
//! bound; a request that is not about what its path judges passes, and so does one at a path that does not
//! judge; nothing is written but registrations and the Secret of the certificate.

mod answer;
mod certificate;
mod facts;
mod keeper;
mod registrar;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::kind::Kind;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use review::{Settings, Webhook};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

pub use self::certificate::{CertificateError, ServedCertificate};
pub use self::facts::FactTable;
pub use self::keeper::{CertificateFiles, CertificateKeeper};
pub use self::registrar::{Registrar, Unasked};

use crate::limits::{Connections, Limits, Place};
use crate::listen::{Accepted, ListenError, Listening, accept, bind, failed, handshake, http_of};

/// The longest body, as upstream.
const BODY_BYTES_MAX: usize = 3 << 20;
/// A longer body is judged on a thread of its own, and has to find room among its like: the others
/// do not wait for it.
const QUICK_BYTES_MAX: usize = 128 << 10;
/// What a hyper-node counts for among these, however short it is: its patterns are compiled, which takes
/// time and memory.
const PATTERNS_BYTES: usize = 1 << 20;
/// All bodies of either sort that are being read or judged.
const BODIES_BYTES_MAX: usize = 64 << 20;

/// What the endpoint judges by.
pub struct Endpoint {
    /// Settings as they are now.
    settings: watch::Receiver<Arc<Settings>>,
    /// Those that judge; what the others are asked passes.
    webhooks: Vec<&'static Webhook>,
    facts: Arc<FactTable>,
    /// Bytes of short bodies that may still be taken in.
    quick: Arc<Semaphore>,
    /// Bytes of long ones.
    slow: Arc<Semaphore>,
    limits: Limits,
}

impl Endpoint {
    /// An endpoint of these webhooks; what is written to `settings` later counts from then on.
    pub fn new(
        settings: watch::Receiver<Arc<Settings>>,
        webhooks: Vec<&'static Webhook>,
        facts: Arc<FactTable>,
    ) -> Endpoint {
        Endpoint {
            settings,
            webhooks,
            facts,
            quick: Arc::new(Semaphore::new(BODIES_BYTES_MAX)),
            slow: Arc::new(Semaphore::new(BODIES_BYTES_MAX)),
            limits: Limits {
                request: Duration::from_secs(10),
                connections: 2_000,
                ..Limits::default()
            },
        }
    }

    /// Serves at `address` until it is ended.
    pub async fn listen(
        self,
        address: SocketAddr,
        certificate: &ServedCertificate,
    ) -> Result<Listening, ListenError> {
        let config = certificate
            .server_config(Some(certificate.callers()))
            .map_err(failed("serve webhooks with this certificate"))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (listener, bound) = bind(address).await?;
        let connections = Connections::new(self.limits.connections);
        let endpoint = Arc::new(self);
        let (ending, ends) = watch::channel(false);
        let task = tokio::spawn(accept(listener, connections, move |accepted| {
            serve(endpoint.clone(), acceptor.clone(), accepted, ends.clone())
        }));
        Ok(Listening::new(bound, task, ending))
    }

    async fn respond(self: Arc<Endpoint>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let within = self.limits.request;
        match tokio::time::timeout(within, self.judge(request)).await {
            Ok(Ok(body)) => json(body),
            Ok(Err((code, why))) => refusal(code, why),
            Err(_) => refusal(
                StatusCode::REQUEST_TIMEOUT,
                "the request took too long".to_owned(),
            ),
        }
    }

    async fn judge(
        self: Arc<Endpoint>,
        request: Request<Incoming>,
    ) -> Result<Vec<u8>, (StatusCode, String)> {
        let path = request.uri().path();
        let Some(webhook) = Webhook::at(path) else {
            let why = format!("no webhook is served at {path}");
            return Err((StatusCode::NOT_FOUND, why));
        };
        check_head(&request)?;
        // A body that does not tell its length may be as long as any.
        let length = declared_length(&request)?.unwrap_or(BODY_BYTES_MAX);
        let weight = Weight::of(webhook, length);
        let held = self.room(weight).await;
        let body = Limited::new(request.into_body(), length)
            .collect()
            .await
            .map_err(
                |cause| match cause.is::<http_body_util::LengthLimitError>() {
                    true => too_large(),
                    false => (StatusCode::BAD_REQUEST, cause.to_string()),
                },
            )?
            .to_bytes();
        let judged = if let Weight::Quick(_) = weight {
            self.answer(webhook, &body)
        } else {
            let endpoint = self.clone();
            aside(held, move || endpoint.answer(webhook, &body))
                .await
                .unwrap_or_else(|cause| Err(cause.to_string()))
        };
        judged.map_err(|why| (StatusCode::BAD_REQUEST, why))
    }

    /// Room for a body of this length, once there is some.
    async fn room(&self, weight: Weight) -> OwnedSemaphorePermit {
        let (room, bytes) = match weight {
            Weight::Quick(bytes) => (&self.quick, bytes),
            Weight::Slow(bytes) => (&self.slow, bytes),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let held = room.clone().acquire_many_owned(bytes).await;
        held.expect("rooms are never closed")
    }

    fn answer(&self, webhook: &Webhook, body: &[u8]) -> Result<Vec<u8>, String> {
        // A registration may be older than our settings, or somebody else's.
        if self.webhooks.iter().all(|it| it.path != webhook.path) {
            return answer::pass(webhook, body);
        }
        let settings = self.settings.borrow().clone();
        answer::answer(webhook, &settings, body, &*self.facts)
    }
}

/// The bytes that a body counts for, among those that are judged in no time or among the others.
#[derive(Clone, Copy)]
enum Weight {
    Quick(usize),
    Slow(usize),
}

impl Weight {
    fn of(webhook: &Webhook, length: usize) -> Weight {
        if webhook.kind == Kind::HyperNode {
            return Weight::Slow(length.max(PATTERNS_BYTES));
        }
        match length <= QUICK_BYTES_MAX {
            true => Weight::Quick(length),
            false => Weight::Slow(length),
        }
    }
}

/// Judges on a thread of its own. Whoever asked may be gone long before that has ended; the room is taken
/// until then.
async fn aside<T: Send + 'static>(
    held: OwnedSemaphorePermit,
    judge: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let judged = tokio::task::spawn_blocking(move || {
        let judged = judge();
        drop(held);
        judged
    });
    judged.await
}

fn check_head(request: &Request<Incoming>) -> Result<(), (StatusCode, String)> {
    if request.method() != Method::POST {
        let why = "a review is posted".to_owned();
        return Err((StatusCode::METHOD_NOT_ALLOWED, why));
    }
    let content_type = request.headers().get(CONTENT_TYPE);
    if content_type.is_none_or(|value| value != "application/json") {
        let why = "a review is application/json".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

fn declared_length(request: &Request<Incoming>) -> Result<Option<usize>, (StatusCode, String)> {
    let Some(length) = request.headers().get(CONTENT_LENGTH) else {
        return Ok(None);
    };
    let length = length.to_str().ok().and_then(|text| text.parse().ok());
    match length {
        Some(length) if length <= BODY_BYTES_MAX => Ok(Some(length)),
        _ => Err(too_large()),
    }
}

fn too_large() -> (StatusCode, String) {
    let why = format!("a review may have {BODY_BYTES_MAX} bytes");
    (StatusCode::PAYLOAD_TOO_LARGE, why)
}

fn json(body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn refusal(code: StatusCode, why: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(why + "\n")));
    *response.status_mut() = code;
    if code == StatusCode::METHOD_NOT_ALLOWED {
        let post = http::HeaderValue::from_static("POST");
        response.headers_mut().insert(ALLOW, post);
    }
    response
}

async fn serve(
    endpoint: Arc<Endpoint>,
    acceptor: TlsAcceptor,
    (socket, _, place): Accepted,
    ends: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let limits = endpoint.limits;
    let Some(socket) = handshake(socket, &acceptor, limits.handshake, &place).await? else {
        return Ok(());
    };
    let is_http2 = socket.get_ref().1.alpn_protocol() == Some(b"h2");
    talk(endpoint, socket, is_http2, place, ends).await
}

async fn talk(
    endpoint: Arc<Endpoint>,
    socket: tokio_rustls::server::TlsStream<TcpStream>,
    is_http2: bool,
    place: Place,
    mut ends: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let limits = endpoint.limits;
    let place = Arc::new(place);
    let held = place.clone();
    let service = service_fn(move |request| {
        let (endpoint, busy) = (endpoint.clone(), held.busy());
        async move {
            let response = endpoint.respond(request).await;
            drop(busy);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let builder = http_of(&limits, is_http2);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => return done,
        _ = ends.wait_for(|ends| *ends) => {}
        () = place.connection.end.notified() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_taken_until_it_is_judged_whoever_waits() {
        let room = Arc::new(Semaphore::new(1));
        let held = room.clone().acquire_owned().await.expect("there is room");
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let judged = aside(held, move || ends.recv());
        tokio::select! {
            biased;
            _ = judged => unreachable!("nobody has ended it"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(room.available_permits(), 0);
        end.send(()).expect("it is still judged");
        assert!(room.acquire().await.is_ok());
    }

    #[test]
    fn patterns_take_long_however_short_they_are() {
        let of = |path| Weight::of(Webhook::at(path).expect("it is served"), 100);
        assert!(matches!(of("/jobs/validate"), Weight::Quick(100)));
        let patterns = of("/hypernodes/validate");
        assert!(matches!(patterns, Weight::Slow(PATTERNS_BYTES)));
    }
}
