//! Calls to webhooks: one request each over TLS, answered or failed in a Go client's words.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use store::{Answer, Call};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Most bytes of a webhook's answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Most bytes of a failed answer that are shown.
const SHOWN_BYTES_MAX: usize = 2_048;

/// Makes the calls side by side. Each is answered, or says why it is not.
pub(crate) async fn perform(calls: &[Call]) -> Vec<Answer> {
    join_all(calls.iter().map(one)).await
}

async fn one(call: &Call) -> Answer {
    let within = Duration::from_millis(call.timeout_ms);
    let answer = match tokio::time::timeout(within, exchange(call)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Transport("context deadline exceeded".to_owned())),
    };
    answer.map_err(|failure| {
        tracing::debug!(webhook = %call.name, url = %call.address.url, "a webhook did not answer");
        match failure {
            Failure::Transport(why) => format!("Post {:?}: {why}", call.address.url),
            Failure::Answer(why) => why,
        }
    })
}

/// Why there is no answer.
enum Failure {
    /// It was not reached.
    Transport(String),
    /// It answered something else.
    Answer(String),
}

fn transport(cause: impl std::fmt::Display) -> Failure {
    Failure::Transport(cause.to_string())
}

async fn exchange(call: &Call) -> Result<Vec<u8>, Failure> {
    let address = &call.address;
    let socket = TcpStream::connect((address.host.as_str(), address.port))
        .await
        .map_err(|cause| Failure::Transport(dial_error(call, &cause)))?;
    socket.set_nodelay(true).map_err(transport)?;
    let config = tls(&call.authority).map_err(Failure::Transport)?;
    let name = ServerName::try_from(address.server_name.clone())
        .map_err(|_| transport(format!("invalid host name {:?}", address.server_name)))?;
    let socket = TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
        .map_err(|cause| Failure::Transport(tls_error(&address.server_name, &cause)))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .map_err(transport)?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(&address.path)
        .header(HOST, &address.authority)
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(call.body.clone())))
        .map_err(transport)?;
    let answered = answered(sender.send_request(request).await).await;
    connection.abort();
    answered
}

async fn answered(
    response: Result<http::Response<hyper::body::Incoming>, hyper::Error>,
) -> Result<Vec<u8>, Failure> {
    let response = response.map_err(|cause| match cause.is_incomplete_message() {
        true => transport("EOF"),
        false => transport(cause),
    })?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(transport)?
        .to_bytes();
    if status.is_success() {
        return Ok(body.to_vec());
    }
    Err(Failure::Answer(refusal(status.as_u16(), &body)))
}

/// What a Go client says of an answer that is no success.
fn refusal(code: u16, body: &[u8]) -> String {
    let shown = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let shown = String::from_utf8_lossy(shown).trim().to_owned();
    let text = match code {
        401 => "the server has asked for the client to provide credentials",
        403 => return shown,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        415 => "the server was unable to respond with a content type that the client supports",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({shown:?}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    text.to_owned()
}

fn tls(authority: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if authority.is_empty() {
        for certificate in rustls_native_certs::load_native_certs().certs {
            // One that cannot be read vouches for nobody.
            let _ = roots.add(certificate);
        }
    }
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate = certificate.map_err(|cause| cause.to_string())?;
        roots.add(certificate).map_err(|cause| cause.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| cause.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn dial_error(call: &Call, cause: &std::io::Error) -> String {
    let (host, port) = (&call.address.host, call.address.port);
    let to = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    match cause.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {to}: connect: connection refused")
        }
        std::io::ErrorKind::TimedOut => format!("dial tcp {to}: i/o timeout"),
        std::io::ErrorKind::HostUnreachable => format!("dial tcp {to}: connect: no route to host"),
        std::io::ErrorKind::NetworkUnreachable => {
            format!("dial tcp {to}: connect: network is unreachable")
        }
        _ if cause.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {to}: {cause}"),
    }
}

fn tls_error(name: &str, cause: &std::io::Error) -> String {
    let inner = cause
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
            format!("x509: certificate is not valid for any names, but wanted to match {name}")
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) => {
            format!(
                "x509: certificate is valid for {}, not {name}",
                presented.join(", ")
            )
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "x509: certificate has expired or is not yet valid".to_owned(),
        Some(rustls::Error::InvalidCertificate(other)) => other.to_string(),
        _ => return cause.to_string(),
    };
    format!("tls: failed to verify certificate: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_webhook_read_as_a_go_client_reports_them() {
        let rows = [
            (404, "x", "the server could not find the requested resource"),
            (
                500,
                " boom\n",
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (403, "no", "no"),
            (
                302,
                "",
                "the server responded with the status code 302 but did not return more information",
            ),
        ];
        for (code, body, text) in rows {
            assert_eq!(refusal(code, body.as_bytes()), text);
        }
    }
}
