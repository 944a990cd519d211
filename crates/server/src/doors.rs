//! What a process that serves no API can be asked about itself: its metrics, and whether it is well.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::endpoint::CertificateFiles;
use crate::limits::{Connections, Limits, Place};
use crate::listen::{Accepted, ListenError, Listening, accept, bind, failed, http_of};

/// Connections of those who watch.
const CONNECTIONS_MAX: usize = 64;
const PLAIN: &str = "text/plain; charset=utf-8";
/// Prometheus' exposition format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text at `/metrics`.
pub type Page = Box<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;
/// Whether the process is ready for its work.
pub type Look = Box<dyn Fn() -> Readiness + Send + Sync>;

/// What `/readyz` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It is ready. What lacks all the same is told, a line each, to whoever reads the answer: who is not ready is
    /// not asked any more, which would make it worse.
    Ready(Vec<String>),
    /// It is not, and why.
    NotReady(String),
}

impl From<Option<String>> for Readiness {
    /// Why it is not ready, if it is not.
    fn from(why: Option<String>) -> Readiness {
        why.map_or(Readiness::Ready(Vec::new()), Readiness::NotReady)
    }
}

/// One door.
pub enum Door {
    /// `/metrics`.
    Metrics(Page),
    /// `/healthz` and `/livez` say `ok` while the process lives, `/readyz` while it is ready; over TLS where
    /// there are certificates. A caller who shows one must have it of that authority.
    Health(Look, Option<CertificateFiles>),
}

/// Serves a door at an address until it is ended.
///
/// # Errors
/// The address cannot be listened at, or the certificates cannot be used.
pub async fn open(address: SocketAddr, door: Door) -> Result<Listening, ListenError> {
    let acceptor = match &door {
        Door::Health(_, Some(files)) => Some(acceptor(files)?),
        Door::Health(_, None) | Door::Metrics(_) => None,
    };
    let (listener, bound) = bind(address).await?;
    let (ending, ends) = watch::channel(false);
    let door = Arc::new(door);
    let connections = Connections::new(CONNECTIONS_MAX);
    let task = tokio::spawn(accept(listener, connections, move |accepted| {
        serve(accepted, acceptor.clone(), door.clone(), ends.clone())
    }));
    Ok(Listening::new(bound, task, ending))
}

fn acceptor(files: &CertificateFiles) -> Result<TlsAcceptor, ListenError> {
    let read = |path: &PathBuf| format!("use the certificates of {}", path.display());
    let certificates = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>, ListenError> {
        let all = CertificateDer::pem_file_iter(path).map_err(failed(read(path)))?;
        all.collect::<Result<_, _>>().map_err(failed(read(path)))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in certificates(&files.authority)? {
        roots
            .add(authority)
            .map_err(failed(read(&files.authority)))?;
    }
    let callers = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(failed(read(&files.authority)))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(read(&files.key)))?;
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed(read(&files.chain)))?
        .with_client_cert_verifier(callers)
        .with_single_cert(certificates(&files.chain)?, key)
        .map_err(failed(read(&files.chain)))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Served = Result<(), Box<dyn std::error::Error + Send + Sync>>;

async fn serve(
    (socket, _, place): Accepted,
    acceptor: Option<TlsAcceptor>,
    door: Arc<Door>,
    ends: watch::Receiver<bool>,
) -> Served {
    let Some(acceptor) = acceptor else {
        return talk(socket, place, door, ends).await;
    };
    let shaken = tokio::time::timeout(Limits::default().handshake, acceptor.accept(socket));
    talk(shaken.await??, place, door, ends).await
}

async fn talk<S>(
    socket: S,
    place: Place,
    door: Arc<Door>,
    mut ends: watch::Receiver<bool>,
) -> Served
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = http_of(&Limits::default(), false);
    let service = service_fn(move |request: Request<Incoming>| {
        let door = Arc::clone(&door);
        async move {
            let answer = door.answer(request.method(), request.uri().path()).await;
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => done,
        _ = ends.wait_for(|ends| *ends) => Ok(()),
        () = place.connection.end.notified() => Ok(()),
    }
}

impl Door {
    async fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(
                StatusCode::METHOD_NOT_ALLOWED,
                PLAIN,
                "only GET is answered",
            );
        }
        match (self, path) {
            (Door::Metrics(page), "/metrics") => text(StatusCode::OK, EXPOSITION, page().await),
            (Door::Health(..), "/healthz" | "/livez") => text(StatusCode::OK, PLAIN, "ok"),
            (Door::Health(look, _), "/readyz") => match look() {
                Readiness::Ready(lacks) => {
                    let lines = std::iter::once("ok".to_owned()).chain(lacks);
                    text(StatusCode::OK, PLAIN, lines.collect::<Vec<_>>().join("\n"))
                }
                Readiness::NotReady(why) => text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
            },
            (Door::Metrics(_), _) => text(StatusCode::NOT_FOUND, PLAIN, "there is /metrics"),
            (Door::Health(..), _) => {
                let there = "there are /healthz, /livez and /readyz";
                text(StatusCode::NOT_FOUND, PLAIN, there)
            }
        }
    }
}

fn text(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn code(door: &Door, path: &str) -> u16 {
        door.answer(&Method::GET, path).await.status().as_u16()
    }

    #[tokio::test]
    async fn each_door_answers_what_it_is_for() {
        let metrics = Door::Metrics(Box::new(|| Box::pin(async { "one 1\n".to_owned() })));
        assert_eq!(code(&metrics, "/metrics").await, 200);
        assert_eq!(code(&metrics, "/healthz").await, 404);
        assert_eq!(
            metrics.answer(&Method::POST, "/metrics").await.status(),
            405
        );
        let well = Door::Health(Box::new(|| None.into()), None);
        let unwell = || Some("two want one lease".to_owned()).into();
        let unwell = Door::Health(Box::new(unwell), None);
        for path in ["/healthz", "/livez", "/readyz"] {
            assert_eq!(code(&well, path).await, 200, "{path}");
        }
        assert_eq!(code(&unwell, "/healthz").await, 200);
        assert_eq!(code(&unwell, "/readyz").await, 503);
        assert_eq!(code(&unwell, "/metrics").await, 404);
    }

    #[tokio::test]
    async fn who_is_ready_says_what_lacks_all_the_same() {
        for (lacks, body) in [(vec![], "ok"), (vec!["a lacks".to_owned()], "ok\na lacks")] {
            let look = move || Readiness::Ready(lacks.clone());
            let door = Door::Health(Box::new(look), None);
            let answer = door.answer(&Method::GET, "/readyz").await;
            assert_eq!(answer.status(), 200);
            let told = http_body_util::BodyExt::collect(answer.into_body()).await;
            assert_eq!(told.expect("it is whole").to_bytes(), body);
        }
    }
}
