//! Questions to a scheduler beside a cluster, over HTTPS: `ask.katmai.dev` without a store behind.
//!
//! Who asks is said by the cluster's API server, which passes questions on ([`FrontProxy`]), or is looked up
//! there by a bearer token; what is allowed and what may be told is asked of it, too ([`access`]). The
//! API server is told of all this by an APIService ([`AskService`]).
//!
//! Invariants: nobody is answered who was not named by either; a header that names somebody counts only on
//! a connection whose certificate may speak for others; nothing but the APIService is written.

mod access;
mod front;
mod service;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use client::Cluster;
use client::ask::AskDoor;
use http::HeaderValue;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::server::WebPkiClientVerifier;
use store::{Begin, Method, Refused, Response, User};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use self::front::FrontProxy;
pub use self::service::AskService;

use self::access::{Access, Looked};
use crate::api::{Body, reply};
use crate::ask;
use crate::endpoint::ServedCertificate;
use crate::limits::{Connections, Limits};
use crate::listen::{Accepted, ListenError, Listening, accept, bind, failed, handshake, http_of};
use crate::plane::now;

/// Connections: of API servers, and of those who ask without them.
const CONNECTIONS_MAX: usize = 200;
/// The code by which is said that somebody else has to be asked.
const UNAVAILABLE: u16 = 503;

/// Who answers, and who is asked about those who ask.
pub struct AskEndpoint {
    door: Arc<dyn AskDoor>,
    access: Arc<Access>,
    /// Who may speak for others, as it is now; nobody where there is none.
    front: watch::Receiver<Option<Arc<FrontProxy>>>,
    limits: Limits,
}

impl AskEndpoint {
    /// An endpoint before a scheduler's door, beside a cluster.
    pub fn new(
        door: Arc<dyn AskDoor>,
        cluster: Cluster,
        front: watch::Receiver<Option<Arc<FrontProxy>>>,
    ) -> AskEndpoint {
        AskEndpoint {
            door,
            access: Arc::new(Access::new(cluster)),
            front,
            limits: Limits {
                request: Duration::from_secs(60),
                connections: CONNECTIONS_MAX,
                ..Limits::default()
            },
        }
    }

    /// Serves at `address` until it is ended.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub async fn listen(
        self,
        address: SocketAddr,
        certificate: &ServedCertificate,
    ) -> Result<Listening, ListenError> {
        let (listener, bound) = bind(address).await?;
        let connections = Connections::new(self.limits.connections);
        let endpoint = Arc::new(self);
        let certificate = certificate.clone();
        let (ending, ends) = watch::channel(false);
        let task = tokio::spawn(accept(listener, connections, move |accepted| {
            serve(
                endpoint.clone(),
                certificate.clone(),
                accepted,
                ends.clone(),
            )
        }));
        Ok(Listening::new(bound, task, ending))
    }

    async fn respond(
        &self,
        request: http::Request<Incoming>,
        front: Option<&FrontProxy>,
    ) -> Response {
        let accept = text(&request, ACCEPT.as_str()).to_owned();
        let answered = tokio::time::timeout(self.limits.request, self.answer(&request, front));
        let late = "request did not complete within the allotted timeout";
        let answer = answered
            .await
            .unwrap_or_else(|_| Err(Refused::timeout(late)));
        answer
            .unwrap_or_else(|refused| refused.response())
            .spelled(&accept)
    }

    async fn answer(
        &self,
        request: &http::Request<Incoming>,
        front: Option<&FrontProxy>,
    ) -> Result<Response, Refused> {
        let user = self.user(request, front).await?;
        let asked = store::Request {
            method: Method::parse(request.method().as_str()).ok_or_else(Refused::no_method)?,
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept: text(request, ACCEPT.as_str()).to_owned(),
            content_type: String::new(),
            user_agent: String::new(),
            body: Vec::new(),
            user: user.clone(),
        };
        let explain = match store::ask_alone(&asked, now()) {
            Begin::Done(response) => return Ok(response),
            Begin::Explain(explain) => explain,
            _ => return Err(Refused::internal("a question was begun as something else")),
        };
        let wish = explain.asked();
        if !self.access.allows(&user, &wish).await? {
            return Err(wish.forbidden(&user.name, ""));
        }
        let asker = Arc::new(Looked::new(self.access.clone(), user));
        Ok(ask::answer_by(&*self.door, *explain, asker).await)
    }

    /// Who asks: whom the API server names, or whose token it knows.
    async fn user(
        &self,
        request: &http::Request<Incoming>,
        front: Option<&FrontProxy>,
    ) -> Result<User, Refused> {
        if let Some(user) = front.and_then(|front| front.user(request.headers())) {
            return Ok(user);
        }
        // To answer as if nobody were impersonated would be to tell too much.
        if !text(request, "impersonate-user").is_empty() {
            let why = "nobody is impersonated here: ask through the API server";
            return Err(Refused::bad_request(why));
        }
        let bearer = text(request, AUTHORIZATION.as_str()).strip_prefix("Bearer ");
        let token = bearer.map(str::trim).filter(|token| !token.is_empty());
        let token = token.ok_or_else(Refused::unauthorized)?;
        let known = self.access.user_of(token).await?;
        known.ok_or_else(Refused::unauthorized)
    }

    /// What a connection is secured with now, and who may speak for others on it.
    fn secured(
        &self,
        certificate: &ServedCertificate,
    ) -> Result<(TlsAcceptor, Option<Arc<FrontProxy>>), ListenError> {
        let action = "serve questions with this certificate";
        let front = self.front.borrow().clone();
        let callers = match &front {
            None => None,
            Some(front) => {
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let roots = Arc::new(front.roots().map_err(failed(action))?);
                let callers = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .allow_unauthenticated()
                    .build();
                Some(callers.map_err(failed(action))?)
            }
        };
        let config = certificate
            .server_config(callers.map(|callers| callers as _))
            .map_err(failed(action))?;
        Ok((TlsAcceptor::from(Arc::new(config)), front))
    }
}

/// A header as text; empty where there is none.
fn text<'a, B>(request: &'a http::Request<B>, name: &str) -> &'a str {
    let value = request.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn serve(
    endpoint: Arc<AskEndpoint>,
    certificate: ServedCertificate,
    (socket, _, place): Accepted,
    mut ends: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let limits = endpoint.limits;
    let (acceptor, front) = endpoint.secured(&certificate)?;
    let Some(socket) = handshake(socket, &acceptor, limits.handshake, &place).await? else {
        return Ok(());
    };
    let session = socket.get_ref().1;
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let shown = session.peer_certificates().and_then(|chain| chain.first());
    let front = front.filter(|front| shown.is_some_and(|shown| front.is_named(shown)));
    let place = Arc::new(place);
    let held = place.clone();
    let service = service_fn(move |request| {
        let (endpoint, front, held) = (endpoint.clone(), front.clone(), held.clone());
        async move {
            let busy = held.busy();
            let response = endpoint.respond(request, front.as_deref()).await;
            let is_unavailable = response.code == UNAVAILABLE;
            let mut response = reply(response);
            // Another replica decides: the next connection may find it.
            match (is_unavailable, is_http2) {
                (true, true) => held.connection.end.notify_one(),
                (true, false) => {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                (false, _) => {}
            }
            drop(busy);
            Ok::<http::Response<Body>, Infallible>(response)
        }
    });
    let builder = http_of(&limits, is_http2);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => return done,
        _ = ends.wait_for(|ends| *ends) => {}
        () = place.connection.end.notified() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}
