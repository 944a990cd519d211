//! Questions to others than the API, over HTTP, and to DNS: each is answered with a body, or with why
//! there is none.
//!
//! Whoever is asked may be slow, endless, or gone: time and bytes of an answer are bounded, no redirect is
//! followed, and what is not a success is none.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::address::Address;
use base64::Engine as _;
use bytes::Bytes;
use client::Cluster;
use client::kubelet::Duplex;
use driver::{Ask, Credentials, Door};
use futures::StreamExt;
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::process::{PodDoor, ProcessNode};

mod names;
mod secret;
mod trust;

/// Who can be asked, and how pods are reached.
#[derive(Clone)]
pub struct Reach {
    pub(crate) cluster: Cluster,
    pods: Option<PodDoor>,
    names: names::NameServers,
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reach").finish_non_exhaustive()
    }
}

impl From<Cluster> for Reach {
    /// Pods are reached as the host reaches any address.
    fn from(cluster: Cluster) -> Reach {
        Reach {
            cluster,
            pods: None,
            names: names::NameServers::at(Vec::new()),
        }
    }
}

impl Reach {
    /// Pods are reached through the network of the node on which they run.
    pub fn through(cluster: Cluster, node: &ProcessNode) -> Reach {
        Reach {
            cluster,
            pods: Some(node.pod_door()),
            names: names::NameServers::of(node),
        }
    }

    /// Names of pods are asked for there; where nobody is named, whom the system asks for any name.
    #[must_use]
    pub fn naming(mut self, servers: Vec<SocketAddr>) -> Reach {
        self.names = names::NameServers::at(servers);
        self
    }
}

/// Asks, and waits for no longer than the question says.
pub(crate) async fn ask(reach: &Reach, ask: &Ask) -> Result<Vec<u8>, String> {
    let within = Duration::from_millis(u64::try_from(ask.within_ms).unwrap_or(0));
    let work = async {
        match &ask.door {
            Door::Cluster => of_cluster(&reach.cluster, ask).await,
            Door::Address { .. } => outside(&reach.cluster, ask).await,
            Door::Names => names::ask(&reach.names, ask).await,
            Door::Pod { .. } => of_pod(reach.pods.as_ref(), ask).await,
        }
    };
    match tokio::time::timeout(within, work).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer came within {} ms", ask.within_ms)),
    }
}

/// Connects to a port of a pod, and asks there if that is wanted.
async fn of_pod(pods: Option<&PodDoor>, ask: &Ask) -> Result<Vec<u8>, String> {
    let Door::Pod {
        address,
        port,
        headers,
    } = &ask.door
    else {
        return Err("no pod is meant".to_owned());
    };
    let ip: IpAddr = address
        .parse()
        .map_err(|error| format!("{address} is no address: {error}"))?;
    let to = SocketAddr::new(ip, *port);
    let socket: Box<dyn Duplex> = match pods {
        Some(pods) => pods.dial(to).await,
        None => TcpStream::connect(to)
            .await
            .map(|socket| -> Box<dyn Duplex> { Box::new(socket) }),
    }
    .map_err(|error| format!("{to} cannot be reached: {error}"))?;
    if ask.call.target.is_empty() {
        return Ok(Vec::new());
    }
    let target = Target {
        is_secure: false,
        host: address.clone(),
        port: *port,
        path: ask.call.target.clone(),
    };
    exchange(socket, request(ask, &target, None, headers)?, ask).await
}

async fn of_cluster(cluster: &Cluster, ask: &Ask) -> Result<Vec<u8>, String> {
    let stream = cluster.stream(&ask.call).await;
    let mut stream = std::pin::pin!(stream.map_err(|error| error.to_string())?);
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| error.to_string())?;
        if body.len() + chunk.len() > ask.bytes_max {
            return Err(too_long(ask));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_long(ask: &Ask) -> String {
    format!("its answer is longer than {} bytes", ask.bytes_max)
}

/// Where a question goes.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    is_secure: bool,
    host: String,
    port: u16,
    path: String,
}

fn target(address: &str, path: &str) -> Result<Target, String> {
    let read = Address::read(address).map_err(|why| format!("{address} is no address: {why}"))?;
    Ok(Target {
        is_secure: read.is_secure,
        host: read.host.to_owned(),
        port: read.port,
        path: format!("{}{path}", read.path.trim_end_matches('/')),
    })
}

async fn outside(cluster: &Cluster, ask: &Ask) -> Result<Vec<u8>, String> {
    let Door::Address {
        address,
        insecure_skip_verify,
        credentials,
    } = &ask.door
    else {
        return Err("no server outside is meant".to_owned());
    };
    let target = target(address, &ask.call.target)?;
    let credentials = match credentials {
        None => None,
        Some(Credentials::Plain(name, password)) => Some((name.clone(), password.clone())),
        Some(Credentials::Secret(key)) => Some(secret::credentials(cluster, key).await?),
    };
    let socket = TcpStream::connect((target.host.as_str(), target.port)).await;
    let socket = socket.map_err(|error| format!("{address} cannot be reached: {error}"))?;
    let request = request(ask, &target, credentials.as_ref(), &[])?;
    if !target.is_secure {
        return exchange(socket, request, ask).await;
    }
    let config = trust::config(*insecure_skip_verify)?;
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let socket = connector.connect(name, socket).await;
    let socket = socket.map_err(|error| format!("{address} is not trusted: {error}"))?;
    exchange(socket, request, ask).await
}

fn request(
    ask: &Ask,
    target: &Target,
    credentials: Option<&(String, String)>,
    headers: &[(String, String)],
) -> Result<http::Request<Full<Bytes>>, String> {
    let host = match target.host.contains(':') {
        true => format!("[{}]:{}", target.host, target.port),
        false => format!("{}:{}", target.host, target.port),
    };
    let mut request = http::Request::builder()
        .method(ask.call.method)
        .uri(&target.path)
        .header(USER_AGENT, "katmai");
    let is_named = |wanted: &str| {
        headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    if !is_named("host") {
        request = request.header(HOST, host);
    }
    if !is_named("accept") {
        request = request.header(ACCEPT, "application/json");
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if !ask.call.content_type.is_empty() {
        request = request.header(CONTENT_TYPE, ask.call.content_type);
    }
    if let Some((name, password)) = credentials {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
        request = request.header(AUTHORIZATION, format!("Basic {pair}"));
    }
    let body = Full::new(Bytes::from(ask.call.body.clone()));
    request.body(body).map_err(|error| error.to_string())
}

async fn exchange<S>(
    socket: S,
    request: http::Request<Full<Bytes>>,
    ask: &Ask,
) -> Result<Vec<u8>, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .map_err(|error| error.to_string())?;
    let connection = Connection(tokio::spawn(async move {
        // How it ends is told to whoever waits for the answer.
        let _ = connection.await;
    }));
    let answered = async {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| format!("no answer came: {error}"))?;
        let status = response.status();
        if !status.is_success() {
            return Err(unsuccessful(status, &ask.door));
        }
        let body = Limited::new(response.into_body(), ask.bytes_max)
            .collect()
            .await;
        match body {
            Ok(body) => Ok(body.to_bytes().to_vec()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_long(ask)),
            Err(error) => Err(format!("its answer broke off: {error}")),
        }
    };
    let answer = answered.await;
    drop(connection);
    answer
}

/// What an answer says that is no success: to credentials of a Secret, which Secret, since it may be wrong.
fn unsuccessful(status: StatusCode, door: &Door) -> String {
    let told = format!("it answered {}", status.as_u16());
    match door {
        Door::Address {
            credentials: Some(Credentials::Secret(key)),
            ..
        } if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) => {
            format!("{told} to username and password of {}", secret::title(key))
        }
        _ => told,
    }
}

/// A connection that ends with whoever holds it: also where the time is over in the middle.
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
