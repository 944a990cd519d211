//! `/healthz` without TLS, for whoever watches over the process.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::limits::{Connections, Limits};
use crate::listen::{Accepted, ListenError, Listening, accept, failed, http_of};

/// Connections of those who watch.
const CONNECTIONS_MAX: usize = 64;

/// Says `ok` at `/healthz` of this address until it is ended.
pub async fn serve_health(address: SocketAddr) -> Result<Listening, ListenError> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(failed(format!("listen on {address}")))?;
    let bound = listener
        .local_addr()
        .map_err(failed("read the listening address"))?;
    let (ending, ends) = watch::channel(false);
    let connections = Connections::new(CONNECTIONS_MAX);
    let task = tokio::spawn(accept(listener, connections, move |accepted| {
        serve(accepted, ends.clone())
    }));
    Ok(Listening::new(bound, task, ending))
}

async fn serve(
    (socket, _, place): Accepted,
    mut ends: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let builder = http_of(&Limits::default(), false);
    let service = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request)) });
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => done,
        _ = ends.wait_for(|ends| *ends) => Ok(()),
        () = place.connection.end.notified() => Ok(()),
    }
}

fn answer(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (code, text) = match request.uri().path() {
        "/healthz" => (StatusCode::OK, "ok"),
        _ => (StatusCode::NOT_FOUND, "there is only /healthz"),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response
}
