//! The socket: TLS on loopback, who is calling, HTTP/1.1 and HTTP/2.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use store::{Refused, User};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, Body, reply};
use crate::door;
use crate::identity::Identity;

/// Streams that one HTTP/2 connection may hold: each is a watch.
const STREAMS_MAX: u32 = 10_000;
/// How long a caller may take for its TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long to rest after the system refused a connection (too many open files).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct ListenError {
    /// What was being attempted.
    pub action: String,
    /// Why it failed.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: impl Into<String>,
) -> impl FnOnce(E) -> ListenError {
    let action = action.into();
    move |cause| ListenError {
        action,
        cause: cause.into(),
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Listening {
    /// Where it listens.
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Listening {
    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the socket adds to the API.
struct Guard {
    api: Api,
    token: String,
    metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// Serves the API on loopback, at `port` or at a free one for 0. `metrics` is the text at
/// `/metrics`.
pub async fn listen(
    api: Api,
    identity: &Identity,
    port: u16,
    metrics: Box<dyn Fn() -> String + Send + Sync>,
) -> Result<Listening, ListenError> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(identity)?));
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(wanted)
        .await
        .map_err(failed(format!("listen on {wanted}")))?;
    let address = listener
        .local_addr()
        .map_err(failed("read the listening address"))?;
    let guard = Arc::new(Guard {
        api,
        token: identity.token.clone(),
        metrics,
    });
    let task = tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    let (acceptor, guard) = (acceptor.clone(), guard.clone());
                    tokio::spawn(async move {
                        if let Err(error) = serve(socket, acceptor, guard).await {
                            tracing::debug!("a connection ended: {error}");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    });
    Ok(Listening { address, task })
}

fn tls(identity: &Identity) -> Result<rustls::ServerConfig, ListenError> {
    let read = "read the plane's certificates";
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(identity.authority.as_bytes()).map_err(failed(read))?)
        .map_err(failed(read))?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(failed(read))?;
    let chain =
        vec![CertificateDer::from_pem_slice(identity.serving.as_bytes()).map_err(failed(read))?];
    let key =
        PrivateKeyDer::from_pem_slice(identity.serving_key.as_bytes()).map_err(failed(read))?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed(read))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(failed(read))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn serve(
    socket: TcpStream,
    acceptor: TlsAcceptor,
    guard: Arc<Guard>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    socket.set_nodelay(true)?;
    let socket = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(socket)).await??;
    let caller = socket
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|certificate| certificate_user(certificate));
    let service = service_fn(move |request| {
        let (guard, caller) = (guard.clone(), caller.clone());
        async move { Ok::<_, std::convert::Infallible>(guard.answer(request, caller).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(STREAMS_MAX);
    builder
        .serve_connection_with_upgrades(TokioIo::new(socket), service)
        .await
}

impl Guard {
    async fn answer(
        &self,
        request: http::Request<Incoming>,
        caller: Option<User>,
    ) -> http::Response<Body> {
        let path = request.uri().path();
        if let Some(answer) = door::health(path) {
            return answer;
        }
        let Some(user) = caller.or_else(|| self.token_user(&request)) else {
            return reply(Refused::unauthorized().response());
        };
        if path == "/metrics" {
            return door::metrics((self.metrics)());
        }
        self.api.answer(request, user).await
    }

    fn token_user(&self, request: &http::Request<Incoming>) -> Option<User> {
        let token = request
            .headers()
            .get(AUTHORIZATION)?
            .to_str()
            .ok()?
            .strip_prefix("Bearer ")?
            .trim();
        // Compared as digests, so that the time taken says nothing about the token.
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        if digest(token).as_ref() == digest(&self.token).as_ref() {
            return Some(User::admin());
        }
        self.api.token_user(token)
    }
}

/// Common name and organisations of a verified client certificate.
fn certificate_user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|organisation| organisation.as_str().ok().map(str::to_owned))
        .collect();
    groups.push("system:authenticated".to_owned());
    Some(User {
        name,
        groups,
        ..User::default()
    })
}
