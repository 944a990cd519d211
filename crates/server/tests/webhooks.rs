//! The webhooks of a cluster over loopback: what they answer, what they do not read, a certificate
//! that changes while it is shown, and an API server that asks them.

#[path = "webhooks/asked.rs"]
mod asked;
#[path = "webhooks/certificate.rs"]
mod certificate;
#[path = "webhooks/reviews.rs"]
mod reviews;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use api::time::Time;
use bytes::Bytes;
use client::Cluster;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use review::{Settings, WEBHOOKS, Webhook};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use server::{
    Api, CertificateKeeper, Endpoint, FactTable, Listening, ServedCertificate, Start, TokenKeys,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const DAY_MS: i64 = 86_400_000;

/// An API server, and webhooks beside it.
struct World {
    api: Api,
    cluster: Cluster,
    facts: Arc<FactTable>,
    settings: watch::Sender<Arc<Settings>>,
    certificate: ServedCertificate,
    /// PEM, of who vouches for the certificate at first.
    authorities: String,
    listening: Listening,
}

impl World {
    async fn new() -> World {
        World::judging(WEBHOOKS.iter().collect()).await
    }

    /// A world whose webhooks are these.
    async fn judging(webhooks: Vec<&'static Webhook>) -> World {
        let keys = TokenKeys::make(0).expect("keys");
        let api = Api::start(Start::default(), keys).expect("an API server");
        let cluster = Cluster::in_process(api.service());
        let certificate = ServedCertificate::default();
        let keeper = keeper(&cluster);
        let kept = keeper.keep(&certificate, now().plus_ms(-61 * DAY_MS));
        let authorities = kept.await.expect("a certificate");
        let facts = Arc::new(FactTable::default());
        let (settings, judged_by) = watch::channel(Arc::new(Settings::default()));
        let endpoint = Endpoint::new(judged_by, webhooks, facts.clone());
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listening = endpoint.listen(loopback, &certificate).await;
        World {
            api,
            cluster,
            facts,
            settings,
            certificate,
            authorities,
            listening: listening.expect("a socket"),
        }
    }

    /// A connection that believes these authorities.
    async fn connect(&self, authorities: &str) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_as(authorities, None).await
    }

    /// Whether a request is answered on a connection that shows this certificate: of TLS 1.3 who connects hears
    /// only then whether it is believed.
    async fn answered(&self, own: Option<(String, String)>) -> std::io::Result<()> {
        let mut stream = self.connect_as(&self.authorities, own).await?;
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"HTTP/1.1");
        Ok(())
    }

    /// A connection that believes these authorities, and shows a certificate if it has one (PEM, with its key).
    async fn connect_as(
        &self,
        authorities: &str,
        own: Option<(String, String)>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            roots.add(authority.expect("PEM")).expect("a root");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut tls = match own {
            None => tls.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
                let chain = chain.collect::<Result<_, _>>().expect("PEM");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
                tls.with_client_auth_cert(chain, key)
                    .expect("a certificate")
            }
        };
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let socket = TcpStream::connect(self.listening.address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(Arc::new(tls));
        connector.connect(name, socket).await
    }

    /// Sends one request on a connection of its own: the code and the body of its answer.
    async fn send<B>(&self, request: http::Request<B>) -> (u16, Bytes)
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = self.connect(&self.authorities).await.expect("TLS");
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body");
        (code, body.to_bytes())
    }

    /// The `response` to the `request` of a review.
    async fn review(&self, path: &str, request: Value) -> Value {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
        });
        let (code, body) = self.send(post(path, review.to_string())).await;
        assert_eq!(code, 200, "{body:?}");
        let review: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(review["kind"], "AdmissionReview");
        assert_eq!(review["response"]["uid"], request["uid"]);
        review["response"].clone()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.api.stop();
    }
}

fn keeper(cluster: &Cluster) -> CertificateKeeper {
    CertificateKeeper::Secret {
        cluster: cluster.clone(),
        namespace: "default".to_owned(),
        name: "webhooks".to_owned(),
        server_names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
    }
}

/// Certificates are judged by the real clock.
fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.expect("after 1970").as_secs();
    Time::from_seconds(i64::try_from(seconds).expect("not that late"))
}

fn post(path: &str, body: impl Into<Bytes>) -> http::Request<Full<Bytes>> {
    http::Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .expect("a request")
}

/// A vcjob without any defaults.
fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "tasks": [{
            "replicas": 2,
            "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        }] },
    })
}
