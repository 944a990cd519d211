//! A client that costs little: connections that each carry one request after the other, over TLS.
//!
//! The same for our server and for the real one, so that what differs is the servers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// No request of a measurement takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server and the right to ask it.
#[derive(Clone)]
pub struct Target {
    address: String,
    connector: TlsConnector,
    authorization: Option<HeaderValue>,
}

/// One request.
pub struct Ask {
    /// `POST` …
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Media type of the body; may be empty.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Ask {
    /// A read.
    pub fn get(target: impl Into<String>) -> Ask {
        Ask {
            method: "GET",
            target: target.into(),
            content_type: "",
            body: Vec::new(),
        }
    }
}

/// What a storm of requests came to.
pub struct Storm {
    /// Requests a second.
    pub rate: f64,
    /// How long each took, in milliseconds; from when its turn was called, where a pace was kept,
    /// whether a connection was free for it or not.
    pub times: Vec<f64>,
}

/// How many requests there are, and when.
#[derive(Clone, Copy)]
pub enum Pace {
    /// So many, as fast as they go.
    Count(usize),
    /// As many as go for so long.
    For(Duration),
    /// So many a second for so long.
    Rate(f64, Duration),
}

impl Target {
    /// Reads a kubeconfig: certificates or a token of its first user.
    pub fn read(kubeconfig: &Path) -> anyhow::Result<Target> {
        let text = std::fs::read_to_string(kubeconfig)?;
        let config: Value = serde_saphyr::from_str(&text)?;
        let (cluster, user) = (
            &config["clusters"][0]["cluster"],
            &config["users"][0]["user"],
        );
        let server = cluster["server"].as_str().context("no server")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&part(
            cluster,
            "certificate-authority",
        )?)?)?;
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let tls = match part(user, "client-certificate") {
            Ok(certificate) => tls.with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&certificate)?],
                PrivateKeyDer::from_pem_slice(&part(user, "client-key")?)?,
            )?,
            Err(_) => tls.with_no_client_auth(),
        };
        let authorization = match user["token"].as_str() {
            Some(token) => Some(HeaderValue::from_str(&format!("Bearer {token}"))?),
            None => None,
        };
        Ok(Target {
            address: server.trim_start_matches("https://").to_owned(),
            connector: TlsConnector::from(Arc::new(tls)),
            authorization,
        })
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = self.connector.connect(name, socket).await?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; what goes wrong before is told to whoever sends.
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send(
        &self,
        sender: &mut SendRequest<Full<Bytes>>,
        ask: Ask,
    ) -> anyhow::Result<http::Response<Incoming>> {
        let mut request = http::Request::builder()
            .method(ask.method)
            .uri(&ask.target)
            .header("host", &self.address);
        if !ask.content_type.is_empty() {
            request = request.header("content-type", ask.content_type);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Full::new(Bytes::from(ask.body)))?;
        sender.ready().await?;
        let answer = tokio::time::timeout(PATIENCE, sender.send_request(request));
        Ok(answer.await.context("a request took too long")??)
    }

    /// Sends one request on a connection of its own; the body of its answer.
    pub async fn ask(&self, ask: Ask) -> anyhow::Result<Bytes> {
        let mut sender = self.connect().await?;
        let what = format!("{} {}", ask.method, ask.target);
        let answer = self.send(&mut sender, ask).await?;
        let code = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if !code.is_success() {
            bail!("{what}: {code} {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    /// Opens a stream on a connection of its own.
    pub async fn open(
        &self,
        target: String,
    ) -> anyhow::Result<(SendRequest<Full<Bytes>>, Incoming)> {
        let mut sender = self.connect().await?;
        let answer = self.send(&mut sender, Ask::get(target)).await?;
        if !answer.status().is_success() {
            bail!("a stream was refused: {}", answer.status());
        }
        Ok((sender, answer.into_body()))
    }

    /// Sends what `make` makes of each number, over so many connections at once.
    pub async fn storm(
        &self,
        connections: usize,
        pace: Pace,
        make: impl Fn(usize) -> Ask + Send + Sync + 'static,
    ) -> anyhow::Result<Storm> {
        let make = Arc::new(make);
        let mut senders = Vec::new();
        for _ in 0..connections {
            senders.push(self.connect().await?);
        }
        let began = Instant::now();
        let turns = Arc::new(Turns::new(pace, began));
        let tasks: Vec<_> = senders
            .into_iter()
            .map(|sender| {
                let (target, turns, make) = (self.clone(), turns.clone(), make.clone());
                tokio::spawn(async move { target.part_of_storm(sender, &turns, &*make).await })
            })
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        let rate = times.len() as f64 / began.elapsed().as_secs_f64();
        Ok(Storm { rate, times })
    }

    async fn part_of_storm(
        &self,
        mut sender: SendRequest<Full<Bytes>>,
        turns: &Turns,
        make: &(impl Fn(usize) -> Ask + Send + Sync),
    ) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::new();
        while let Some((number, due)) = turns.next().await {
            let ask = make(number);
            let what = format!("{} {}", ask.method, ask.target);
            let answer = self.send(&mut sender, ask).await?;
            let code = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            if !code.is_success() {
                bail!("{what}: {code} {}", String::from_utf8_lossy(&body));
            }
            times.push(due.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(times)
    }
}

/// Whose turn it is.
enum Turns {
    /// As fast as it goes, until so many or so long.
    Free {
        next: AtomicUsize,
        count: usize,
        until: Option<Instant>,
    },
    /// Turns that a clock calls.
    Called(tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<(usize, Instant)>>),
}

impl Turns {
    fn new(pace: Pace, began: Instant) -> Turns {
        let free = |count, until| Turns::Free {
            next: AtomicUsize::new(0),
            count,
            until,
        };
        match pace {
            Pace::Count(count) => free(count, None),
            Pace::For(time) => free(usize::MAX, Some(began + time)),
            Pace::Rate(rate, time) => {
                let (call, turns) = tokio::sync::mpsc::unbounded_channel();
                // A thread's sleep is twenty times as exact as the runtime's timers. It waits for
                // nobody: whoever is late has all the lateness in its time.
                std::thread::spawn(move || {
                    for number in 0_u32.. {
                        let due = Duration::from_secs_f64(f64::from(number) / rate);
                        if due >= time {
                            return;
                        }
                        std::thread::sleep((began + due).saturating_duration_since(Instant::now()));
                        if call.send((number as usize, Instant::now())).is_err() {
                            return;
                        }
                    }
                });
                Turns::Called(tokio::sync::Mutex::new(turns))
            }
        }
    }

    async fn next(&self) -> Option<(usize, Instant)> {
        match self {
            Turns::Free { next, count, until } => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let now = Instant::now();
                let is_over = number >= *count || until.is_some_and(|until| now >= until);
                (!is_over).then_some((number, now))
            }
            Turns::Called(turns) => turns.lock().await.recv().await,
        }
    }
}

/// A part that stands in a kubeconfig, or in a file that it names.
fn part(map: &Value, key: &str) -> anyhow::Result<Vec<u8>> {
    use base64::Engine;
    if let Some(data) = map[format!("{key}-data")].as_str() {
        return Ok(base64::engine::general_purpose::STANDARD.decode(data)?);
    }
    let path = map[key].as_str().with_context(|| format!("no {key}"))?;
    Ok(std::fs::read(path)?)
}
