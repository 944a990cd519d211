//! HTTP to one server: answers as values, watches as lines.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// An answer whose body has been read.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub code: u16,
    /// Lower-case names and values, sorted.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Bytes,
}

impl Answer {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// How to reach a server.
#[derive(Clone)]
pub struct Server {
    /// `127.0.0.1:PORT`.
    pub address: String,
    tls: TlsConnector,
}

impl Server {
    /// A server at an address, trusted through its authority's certificate.
    pub fn new(address: &str, authority: &str) -> anyhow::Result<Server> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Server {
            address: address.to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// A new connection.
    pub async fn connect(&self) -> anyhow::Result<Connection> {
        let socket = TcpStream::connect(&self.address)
            .await
            .with_context(|| format!("cannot reach {}", self.address))?;
        socket.set_nodelay(true)?;
        let socket = self
            .tls
            .connect(ServerName::try_from("localhost")?, socket)
            .await?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        // Ends with the connection; what went wrong is told to whoever waits for an answer.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { sender })
    }
}

/// A connection for one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Whether another request may be sent.
    pub fn is_usable(&self) -> bool {
        self.sender.is_ready()
    }

    /// Sends a request and gives the answer's head; the body is still to be read.
    pub async fn open(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> anyhow::Result<http::Response<Incoming>> {
        self.sender.send_request(request).await.context("no answer")
    }
}

/// Reads the rest of an answer.
pub async fn read(response: http::Response<Incoming>) -> anyhow::Result<Answer> {
    let (parts, body) = response.into_parts();
    let body = body
        .collect()
        .await
        .context("the answer broke off")?
        .to_bytes();
    let mut headers: Vec<(String, String)> = parts
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        })
        .collect();
    headers.sort();
    Ok(Answer {
        code: parts.status.as_u16(),
        headers,
        body,
    })
}

/// A body that comes line by line.
pub struct Lines {
    body: Incoming,
    held: Vec<u8>,
}

impl Lines {
    /// The lines of this body.
    pub fn new(body: Incoming) -> Lines {
        Lines {
            body,
            held: Vec::new(),
        }
    }

    /// The next line; `None` at the end of the stream.
    pub async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.pop();
                return Ok(Some(line));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.context("the stream broke off")?.into_data() {
                        self.held.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
