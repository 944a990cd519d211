//! The API over HTTP values: the same for a socket and for a caller in this process.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use client::ask::AskDoor;
use client::kubelet::Kubelet;
use http::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER, USER_AGENT,
    WARNING,
};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use store::{Asked, Begin, Cache, Method, Refused, Request, Response, TokenUser, User};

use crate::journal::JournalError;
use crate::keys::TokenKeys;
use crate::plane::{Plane, Start, now};
use crate::{ask, connect, stream};

/// Longest that a request body may be, in bytes; the store refuses a little earlier, with words.
const BODY_BYTES_MAX: usize = (3 << 20) + 1;

/// A response body.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The API of one plane. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    pub(crate) plane: Arc<Plane>,
}

impl Api {
    /// Loads a plane. `token_keys` sign service account tokens.
    pub fn start(start: Start, token_keys: TokenKeys) -> Result<Api, JournalError> {
        Ok(Api {
            plane: Plane::start(start, token_keys)?,
        })
    }

    /// The service under an in-process client: every request is the administrator's.
    pub fn service(&self) -> Service {
        Service { api: self.clone() }
    }

    /// Says who answers about containers, where that is known only after the start.
    pub fn set_kubelet(&self, kubelet: Arc<dyn Kubelet>) {
        self.plane.set_kubelet(kubelet);
    }

    /// Says who answers questions to the scheduler. They are refused until then.
    pub fn set_ask_door(&self, door: Arc<dyn AskDoor>) {
        self.plane.set_ask_door(door);
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        self.plane.read_store().revision()
    }

    /// How many objects are stored.
    pub fn object_count(&self) -> usize {
        self.plane.read_store().object_count()
    }

    /// Ends all streams; later writes are still answered until the last clone is gone.
    pub fn stop(&self) {
        self.plane.stopping.send_replace(true);
    }

    /// Whom a service account's token speaks for, to one of these audiences.
    pub(crate) fn check_token(
        &self,
        text: &str,
        audiences: &[String],
    ) -> Result<TokenUser, String> {
        let claims = self.plane.token_keys.claims(text);
        let claims = claims.ok_or_else(|| store::UNKNOWN_TOKEN.to_owned())?;
        let store = self.plane.read_store();
        store.token_user(&claims, audiences, now())
    }

    /// Refuses what this user may not do.
    pub(crate) fn authorise(&self, user: &User, asked: &Asked) -> Result<(), Refused> {
        self.plane.read_store().authorise(user, asked)
    }

    /// Answers one request of an authenticated user.
    pub async fn answer<B>(&self, mut request: http::Request<B>, user: User) -> http::Response<Body>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Some(method) = Method::parse(request.method().as_str()) else {
            return reply(Refused::no_method().response());
        };
        let upgrade = connect::Upgrade::take(&mut request);
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return reply(Refused::too_large(BODY_BYTES_MAX - 1).response());
            }
            Err(error) => return reply(Refused::bad_request(error.to_string()).response()),
        };
        let header = |name| {
            parts
                .headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let asked = Request {
            method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            accept: header(ACCEPT),
            content_type: header(CONTENT_TYPE),
            user_agent: header(USER_AGENT),
            body,
            user: user.clone(),
        };
        let accept = asked.accept.clone();
        let known = header(IF_NONE_MATCH);
        match self.plane.ask(asked).await {
            Begin::Done(response) => unless_known(reply(response.spelled(&accept)), &known),
            Begin::Watch(watch) => stream::open(self.plane.clone(), *watch),
            Begin::Explain(explain) => {
                let (door, plane) = (self.plane.ask_door(), self.plane.clone());
                reply(
                    ask::answer(door, plane, *explain, user)
                        .await
                        .spelled(&accept),
                )
            }
            Begin::Connect(ask) => connect::answer(self.plane.kubelet(), *ask, upgrade).await,
            Begin::Mint(mint) => match self.plane.token_keys.sign(*mint) {
                Ok(signed) => reply(Response::json(201, &signed)),
                Err(why) => {
                    reply(Refused::internal(&format!("failed to generate token: {why}")).response())
                }
            },
            Begin::Check(check) => {
                let found = self.check_token(&check.token, &check.audiences);
                reply(check.answered(found))
            }
            Begin::Call(_) | Begin::Commit(_) => {
                reply(Refused::internal("a begun write was not finished").response())
            }
        }
    }
}

/// The in-process service.
#[derive(Clone)]
pub struct Service {
    api: Api,
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let api = self.api.clone();
        Box::pin(async move { Ok(api.answer(request, User::admin()).await) })
    }
}

/// An answer of the store as HTTP.
pub(crate) fn reply(response: Response) -> http::Response<Body> {
    let mut reply = http::Response::new(full(response.body));
    *reply.status_mut() = http::StatusCode::from_u16(response.code)
        .unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&response.content_type)
        && !value.is_empty()
    {
        headers.insert(CONTENT_TYPE, value);
    }
    if let Some(Ok(value)) = response.location.as_deref().map(HeaderValue::from_str) {
        headers.insert(LOCATION, value);
    }
    cache(headers, &response.cache);
    if let Some(seconds) = response.retry_after_seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    for warning in &response.warnings {
        let quoted = warning
            .chars()
            .filter(|letter| !letter.is_control())
            .collect::<String>()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
    reply
}

/// An answer whose tag the client knows already need not be sent again.
fn unless_known(mut reply: http::Response<Body>, known: &str) -> http::Response<Body> {
    let tag = reply.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    let is_known = tag.is_some_and(|tag| {
        let mut all = known
            .split(',')
            .map(|one| one.trim().trim_start_matches("W/"));
        all.any(|one| one == tag || one == "*")
    });
    if is_known && reply.status() == http::StatusCode::OK {
        *reply.status_mut() = http::StatusCode::NOT_MODIFIED;
        reply.headers_mut().remove(CONTENT_TYPE);
        *reply.body_mut() = full(Bytes::new());
    }
    reply
}

fn cache(headers: &mut http::HeaderMap, cache: &Cache) {
    let (how, tag) = match cache {
        Cache::Private => ("no-cache, private", None),
        Cache::Own(tag) => ("no-cache, private", Some(tag)),
        Cache::Tagged(tag) => ("public", Some(tag)),
        Cache::Forever(tag) => ("public, immutable", Some(tag)),
    };
    headers.insert("cache-control", HeaderValue::from_static(how));
    if let Some(tag) = tag {
        headers.insert("vary", HeaderValue::from_static("Accept"));
        if let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\"")) {
            headers.insert("etag", value);
        }
    }
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
