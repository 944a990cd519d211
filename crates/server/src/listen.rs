//! The socket: TLS on loopback, HTTP/1.1 and HTTP/2, connections that end.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use store::User;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::api::Api;
use crate::audit::AuditLog;
use crate::door::{Caller, Door};
use crate::doors::Page;
use crate::identity::Identity;
use crate::limits::{Connections, InFlight, Limits, Place};
use crate::static_tokens::StaticTokens;

/// Streams that one HTTP/2 connection may hold: each is a watch.
const STREAMS_MAX: u32 = 10_000;
/// How often an HTTP/2 client that is silent is asked whether it is there, and how long it may
/// think about it: a half-closed connection ends so.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long connections are given to end when the server does.
const FAREWELL_MAX: Duration = Duration::from_secs(5);
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

pub(crate) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: impl Into<String>,
) -> impl FnOnce(E) -> ListenError {
    let action = action.into();
    move |cause| ListenError {
        action,
        cause: cause.into(),
    }
}

/// What a socket is opened with.
pub struct Socket {
    /// 0 takes a free one.
    pub port: u16,
    /// The text at `/metrics`.
    pub metrics: Page,
    /// Tokens of a file, beside the administrator's and service accounts'.
    pub tokens: StaticTokens,
    /// Where requests are told.
    pub audit: Option<AuditLog>,
    /// What is borne.
    pub limits: Limits,
}

impl Default for Socket {
    fn default() -> Socket {
        Socket {
            port: 0,
            metrics: Box::new(|| Box::pin(std::future::ready(String::new()))),
            tokens: StaticTokens::default(),
            audit: None,
            limits: Limits::default(),
        }
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Listening {
    /// Where it listens.
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
    ending: watch::Sender<bool>,
}

impl Listening {
    pub(crate) fn new(
        address: SocketAddr,
        task: tokio::task::JoinHandle<()>,
        ending: watch::Sender<bool>,
    ) -> Listening {
        Listening {
            address,
            task,
            ending,
        }
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Takes no more connections, and waits (not for ever) until those that are open have had
    /// their answers.
    pub async fn end(self) {
        self.end_within(FAREWELL_MAX).await;
    }

    /// The same, with the time that those that are open are given.
    pub async fn end_within(mut self, farewell: Duration) {
        self.ending.send_replace(true);
        self.task.abort();
        // An aborted task ends as cancelled: that is what was asked for.
        drop((&mut self.task).await);
        let closed = self.ending.closed();
        if tokio::time::timeout(farewell, closed).await.is_err() {
            tracing::warn!("connections were cut: they did not end in time");
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves the API on loopback.
pub async fn listen(
    api: Api,
    identity: &Identity,
    socket: Socket,
) -> Result<Listening, ListenError> {
    let Socket {
        port,
        metrics,
        tokens,
        audit,
        limits,
    } = socket;
    let acceptor = TlsAcceptor::from(Arc::new(tls(identity)?));
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (listener, address) = bind(wanted).await?;
    api.plane.set_address(&address.to_string());
    let door = Arc::new(Door {
        api,
        tokens: tokens.with(&identity.token, User::admin()),
        metrics,
        audit,
        limits,
        in_flight: InFlight::new(&limits),
        url: format!("https://{address}"),
    });
    let (ending, ends) = watch::channel(false);
    let connections = Connections::new(limits.connections);
    let task = tokio::spawn(accept(listener, connections, move |accepted| {
        serve(accepted, acceptor.clone(), door.clone(), ends.clone())
    }));
    Ok(Listening::new(address, task, ending))
}

/// Listens at an address; the port that was taken is told where any would do. All addresses of a machine
/// without IPv6 are those of IPv4, which the log says.
pub(crate) async fn bind(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    let listener = bind_by(wanted, TcpListener::bind)
        .await
        .map_err(failed(format!("listen on {wanted}")))?;
    let address = listener
        .local_addr()
        .map_err(failed("read the listening address"))?;
    Ok((listener, address))
}

async fn bind_by<T, F>(
    wanted: SocketAddr,
    bind: impl Fn(SocketAddr) -> F,
) -> Result<T, std::io::Error>
where
    F: Future<Output = Result<T, std::io::Error>>,
{
    let refused = match bind(wanted).await {
        Ok(listener) => return Ok(listener),
        Err(refused) => refused,
    };
    let is_about_the_port = matches!(
        refused.kind(),
        ErrorKind::AddrInUse | ErrorKind::PermissionDenied
    );
    if is_about_the_port || wanted.ip() != Ipv6Addr::UNSPECIFIED {
        return Err(refused);
    }
    let instead = SocketAddr::from((Ipv4Addr::UNSPECIFIED, wanted.port()));
    match bind(instead).await {
        Ok(listener) => {
            tracing::warn!("listens on {instead}: this machine has no IPv6 ({refused})");
            Ok(listener)
        }
        // It was not for want of IPv6.
        Err(_) => Err(refused),
    }
}

/// A connection that was accepted, who it is, and its place among all.
pub(crate) type Accepted = (TcpStream, SocketAddr, Place);

/// Accepts connections for as long as it is polled, and serves each as a task.
pub(crate) async fn accept<S, F>(listener: TcpListener, connections: Arc<Connections>, serve: S)
where
    S: Fn(Accepted) -> F,
    F: Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((socket, address)) => {
                let Some(place) = connections.enter() else {
                    tracing::warn!("a connection was refused: all that there may be are busy");
                    continue;
                };
                let served = serve((socket, address, place));
                tokio::spawn(async move {
                    if let Err(error) = served.await {
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

/// Shakes hands with whoever has connected, within that time; `None` where the connection was ended
/// meanwhile, since its place is wanted.
///
/// # Errors
/// The other side does not speak TLS, has no certificate that counts, or takes too long.
pub(crate) async fn handshake(
    socket: TcpStream,
    acceptor: &TlsAcceptor,
    within: Duration,
    place: &Place,
) -> Result<Option<TlsStream<TcpStream>>, std::io::Error> {
    socket.set_nodelay(true)?;
    tokio::select! {
        socket = tokio::time::timeout(within, acceptor.accept(socket)) => Ok(Some(socket??)),
        () = place.connection.end.notified() => Ok(None),
    }
}

async fn serve(
    (socket, address, place): Accepted,
    acceptor: TlsAcceptor,
    door: Arc<Door>,
    mut ends: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let limits = door.limits;
    let Some(socket) = handshake(socket, &acceptor, limits.handshake, &place).await? else {
        return Ok(());
    };
    let session = socket.get_ref().1;
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let user = session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|certificate| certificate_user(certificate));
    let caller = Arc::new(Caller { user, address });
    let place = Arc::new(place);
    let held = place.clone();
    let service = service_fn(move |request| {
        let (door, caller, busy) = (door.clone(), caller.clone(), held.busy());
        async move { Ok::<_, std::convert::Infallible>(door.answer(request, &caller, busy).await) }
    });
    let builder = http_of(&limits, is_http2);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let silence = tokio::time::sleep(limits.head);
    tokio::pin!(silence);
    let mut is_waiting = true;
    loop {
        tokio::select! {
            done = connection.as_mut() => return done,
            () = silence.as_mut(), if is_waiting => {
                // hyper has no limit for the first bytes of HTTP/2.
                if !place.connection.spoke.load(Ordering::Relaxed) {
                    return Ok(());
                }
                is_waiting = false;
            }
            _ = ends.wait_for(|ends| *ends) => break,
            () = place.connection.end.notified() => break,
        }
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

pub(crate) fn http_of(limits: &Limits, is_http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .max_concurrent_streams(STREAMS_MAX);
    if is_http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
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
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let digest: String = digest
        .as_ref()
        .iter()
        .map(|it| format!("{it:02x}"))
        .collect();
    let extra = BTreeMap::from([(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![format!("X509SHA256={digest}")],
    )]);
    Some(User {
        name,
        groups,
        extra,
        ..User::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine without IPv6 takes, and one where that port is taken.
    async fn bound(wanted: &str, why: ErrorKind) -> Result<String, ErrorKind> {
        let wanted = wanted.parse().expect("it is an address");
        let bind = async |at: SocketAddr| match at.is_ipv4() {
            true => Ok(at.to_string()),
            false => Err(why.into()),
        };
        let bound = bind_by(wanted, bind).await;
        bound.map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn all_addresses_of_a_machine_without_ipv6_are_those_of_ipv4() {
        let without = ErrorKind::Unsupported;
        let all = bound("[::]:8080", without).await;
        assert_eq!(all, Ok("0.0.0.0:8080".to_owned()));
        // What somebody asked for by its name is not another.
        assert_eq!(bound("[::1]:8080", without).await, Err(without));
        for taken in [ErrorKind::AddrInUse, ErrorKind::PermissionDenied] {
            assert_eq!(bound("[::]:8080", taken).await, Err(taken));
        }
    }
}
