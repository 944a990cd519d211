//! What the socket holds against everybody: credentials, limits, slow and greedy clients.

#[path = "socket/asking.rs"]
mod asking;
#[path = "socket/asking_beside.rs"]
mod asking_beside;
#[path = "socket/credentials.rs"]
mod credentials;
#[path = "socket/crowd.rs"]
mod crowd;
#[path = "socket/pressure.rs"]
mod pressure;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use server::{Api, AuditLog, Identity, Limits, Listening, Socket, Start, StaticTokens};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server of its own, with `alice` (token `alice-token`, group `dev`).
struct Plane {
    api: Api,
    identity: Identity,
    listening: Option<Listening>,
    folder: PathBuf,
}

/// One answer, whole.
#[derive(Debug)]
struct Answer {
    code: u16,
    headers: http::HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Plane {
    async fn new() -> Plane {
        Plane::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Plane {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("katmai-socket-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("tokens");
        std::fs::write(&file, "alice-token,alice,7,dev\n").expect("a file");
        let identity = Identity::make().expect("credentials");
        let keys = identity.token_keys().expect("keys");
        let start = Start {
            settings: server::Settings {
                explains: true,
                ..server::Settings::default()
            },
            ..Start::default()
        };
        let api = Api::start(start, keys).expect("a plane");
        let socket = Socket {
            tokens: StaticTokens::read(&file).expect("tokens"),
            audit: Some(AuditLog::open(&folder.join("audit")).expect("a log")),
            limits,
            ..Socket::default()
        };
        let listening = server::listen(api.clone(), &identity, socket)
            .await
            .expect("a socket");
        Plane {
            api,
            identity,
            listening: Some(listening),
            folder,
        }
    }

    fn address(&self) -> SocketAddr {
        self.listening.as_ref().expect("a server").address
    }

    /// A connection; as the administrator with a certificate.
    async fn connect(&self, alpn: &str, as_admin: AsAdmin) -> TlsStream<TcpStream> {
        let socket = TcpStream::connect(self.address()).await.expect("a socket");
        let connector = TlsConnector::from(Arc::new(self.tls(alpn, as_admin)));
        let name = ServerName::try_from("localhost").expect("a name");
        connector.connect(name, socket).await.expect("TLS")
    }

    fn tls(&self, alpn: &str, as_admin: AsAdmin) -> rustls::ClientConfig {
        self.tls_to(&self.identity.authority, alpn, as_admin)
    }

    /// The same, to a server for which this authority vouches.
    fn tls_to(&self, authority: &str, alpn: &str, as_admin: AsAdmin) -> rustls::ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(authority.as_bytes());
        roots.add(authority.expect("PEM")).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match as_admin {
            AsAdmin::No => config.with_no_client_auth(),
            AsAdmin::Yes => {
                let text = self.identity.kubeconfig("");
                let certificate =
                    CertificateDer::from_pem_slice(&field(&text, "client-certificate-data"));
                let key = PrivateKeyDer::from_pem_slice(&field(&text, "client-key-data"));
                config
                    .with_client_auth_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
                    .expect("a client")
            }
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        config
    }

    /// Sends one request on a connection of its own.
    async fn send(&self, request: http::request::Builder, body: Value) -> Answer {
        self.send_on(self.connect("http/1.1", AsAdmin::No).await, request, body)
            .await
    }

    async fn send_on(
        &self,
        stream: TlsStream<TcpStream>,
        request: http::request::Builder,
        body: Value,
    ) -> Answer {
        let bytes = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let request = request.header("host", "localhost").body(Full::new(bytes));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        let response = sender.send_request(request.expect("a request")).await;
        whole(response.expect("an answer")).await
    }

    async fn as_alice(&self, method: &str, target: &str, body: Value) -> Answer {
        let request = http::Request::builder()
            .method(method)
            .uri(target)
            .header("authorization", "Bearer alice-token")
            .header("content-type", "application/json");
        self.send(request, body).await
    }

    async fn as_admin(&self, method: &str, target: &str, body: Value) -> Answer {
        let request = http::Request::builder()
            .method(method)
            .uri(target)
            .header("content-type", "application/json");
        let stream = self.connect("http/1.1", AsAdmin::Yes).await;
        self.send_on(stream, request, body).await
    }

    async fn http2(&self) -> hyper::client::conn::http2::SendRequest<Full<Bytes>> {
        let stream = self.connect("h2", AsAdmin::Yes).await;
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("HTTP/2");
        tokio::spawn(connection);
        sender
    }

    /// The lines of the audit log.
    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join("audit")).expect("the log");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// `alice` may do everything with config maps.
    async fn let_alice(&self, resources: &[&str]) {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({
            "metadata": { "name": "alices" },
            "rules": [{ "verbs": ["*"], "apiGroups": [""], "resources": resources }],
        });
        let target = format!("{rbac}/clusterroles");
        assert_eq!(self.as_admin("POST", &target, role).await.code, 201);
        let binding = json!({
            "metadata": { "name": "alices" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "alices" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" }],
        });
        let target = format!("{rbac}/clusterrolebindings");
        assert_eq!(self.as_admin("POST", &target, binding).await.code, 201);
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.api.stop();
        std::fs::remove_dir_all(&self.folder).expect("cleaned up");
    }
}

#[derive(Clone, Copy)]
enum AsAdmin {
    No,
    Yes,
}

async fn whole(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body: body.collect().await.expect("a body").to_bytes(),
    }
}

fn field(kubeconfig: &str, key: &str) -> Vec<u8> {
    use base64::Engine;
    let line = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix(key))
        .expect("the key");
    let text = line.trim_start_matches(':').trim();
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}

/// Certificates are judged by the real clock.
fn now() -> api::time::Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.expect("after 1970").as_secs();
    api::time::Time::from_seconds(i64::try_from(seconds).expect("not that late"))
}

fn map(name: &str, bytes: usize) -> Value {
    json!({ "metadata": { "name": name }, "data": { "text": "x".repeat(bytes) } })
}
