//! What every request passes: who asks, whether there is room, how long it may take, the log.

use std::net::SocketAddr;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use ring::rand::SecureRandom;
use store::{API_AUDIENCE, Asked, Refused, Response, User};

use crate::api::{Api, Body, full, reply};
use crate::audit::{AuditLog, Received, Trail};
use crate::doors::Page;
use crate::held::until_sent;
use crate::keys::TokenKeys;
use crate::limits::{Busy, InFlight, Limits, duration};
use crate::plane::now;
use crate::static_tokens::StaticTokens;
use crate::{impersonate, squeeze};

/// Paths that may be asked for without a credential; what is there is still a matter of roles.
const ANONYMOUS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// Subresources whose answers are streams.
const STREAMS: &[&str] = &["attach", "exec", "log", "portforward", "proxy"];

/// What the socket adds to the API.
pub(crate) struct Door {
    pub(crate) api: Api,
    pub(crate) tokens: StaticTokens,
    pub(crate) metrics: Page,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) limits: Limits,
    pub(crate) in_flight: InFlight,
    /// `https://127.0.0.1:PORT`.
    pub(crate) url: String,
}

/// What a connection says of its client.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Of a verified certificate.
    pub(crate) user: Option<User>,
    pub(crate) address: SocketAddr,
}

/// Who asks, and in whose name.
struct Asking {
    user: User,
    impersonated: Option<User>,
}

/// Writes the last line of a stream.
struct Ended(Option<Trail>, u16);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(trail) = &mut self.0 {
            trail.write("ResponseComplete", self.1);
        }
    }
}

impl Door {
    /// Answers one request of a connection.
    pub(crate) async fn answer<B>(
        &self,
        request: http::Request<B>,
        caller: &Caller,
        busy: Busy,
    ) -> http::Response<Body>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let id = audit_id(&request);
        let mut response = self.logged(request, caller, busy, &id).await;
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert("audit-id", id);
        }
        response
    }

    async fn logged<B>(
        &self,
        request: http::Request<B>,
        caller: &Caller,
        busy: Busy,
        id: &str,
    ) -> http::Response<Body>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let at = now();
        let uri = request.uri().clone();
        let asked = Asked::read(
            request.method().as_str(),
            uri.path(),
            uri.query().unwrap_or_default(),
        );
        let asking = match self.asking(&request, caller, &asked) {
            Ok(asking) => asking,
            Err(refused) => return reply(refused.response()),
        };
        let mut trail = self.audit.as_ref().map(|log| {
            let agent = request.headers().get(USER_AGENT);
            Trail::begin(
                log,
                &Received {
                    id,
                    uri: &uri.to_string(),
                    source: &caller.address.ip().to_string(),
                    agent: agent.and_then(|it| it.to_str().ok()).unwrap_or_default(),
                    asked: &asked,
                    user: &asking.user,
                    impersonated: asking.impersonated.as_ref(),
                    at,
                },
            )
        });
        let streams = is_stream(&asked);
        let user = asking.impersonated.unwrap_or(asking.user);
        let place = if streams || user.is_master() {
            None
        } else {
            let is_reading = request.method() == http::Method::GET;
            match self.in_flight.enter(is_reading) {
                Some(place) => Some(place),
                None => return too_many(),
            }
        };
        let takes_gzip =
            request.headers().contains_key(ACCEPT_ENCODING) && squeeze::wanted(request.headers());
        let mut response = self.timed(request, user, &asked, streams).await;
        let code = response.status().as_u16();
        if takes_gzip && !streams {
            response = squeeze::squeezed(response).await;
        }
        if let Some(trail) = &mut trail {
            trail.decided(code);
            trail.write(
                if streams {
                    "ResponseStarted"
                } else {
                    "ResponseComplete"
                },
                code,
            );
        }
        let ended = Ended(trail.filter(|_| streams), code);
        until_sent(response, (busy, place, ended))
    }

    /// Who asks: by certificate, by token, or nobody where nobody need be named.
    fn asking<B>(
        &self,
        request: &http::Request<B>,
        caller: &Caller,
        asked: &Asked,
    ) -> Result<Asking, Refused> {
        let user = match (&caller.user, bearer(request)) {
            (Some(user), _) => user.clone(),
            (None, Some(token)) => self.token_user(token).ok_or_else(Refused::unauthorized)?,
            (None, None) if ANONYMOUS.contains(&&*asked.path) => User {
                name: "system:anonymous".to_owned(),
                groups: vec!["system:unauthenticated".to_owned()],
                ..User::default()
            },
            (None, None) => return Err(Refused::unauthorized()),
        };
        let impersonated = impersonate::user(&self.api, request.headers(), &user)?;
        Ok(Asking { user, impersonated })
    }

    fn token_user(&self, token: &str) -> Option<User> {
        if let Some(user) = self.tokens.user(token) {
            return Some(user);
        }
        let audiences = [API_AUDIENCE.to_owned()];
        let found = self.api.check_token(token, &audiences).ok()?;
        Some(found.user)
    }

    async fn timed<B>(
        &self,
        request: http::Request<B>,
        user: User,
        asked: &Asked,
        streams: bool,
    ) -> http::Response<Body>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if asked.target.is_none()
            && let Some(answer) = self.page(&user, asked, request.uri().query()).await
        {
            return answer;
        }
        if streams {
            return self.api.answer(request, user).await;
        }
        let limit = match limit_of(request.uri().query(), &self.limits) {
            Ok(limit) => limit,
            Err(refused) => return reply(refused.response()),
        };
        match tokio::time::timeout(limit, self.api.answer(request, user)).await {
            Ok(answer) => answer,
            Err(_) => reply(
                Refused::timeout("request did not complete within the allotted timeout").response(),
            ),
        }
    }

    /// Pages that are not the API: health, metrics, the public token keys.
    async fn page(
        &self,
        user: &User,
        asked: &Asked,
        query: Option<&str>,
    ) -> Option<http::Response<Body>> {
        let first = asked.path.trim_start_matches('/').split('/').next()?;
        let is_page = matches!(
            first,
            ".well-known" | "healthz" | "livez" | "metrics" | "openid" | "readyz"
        );
        if !is_page {
            return None;
        }
        if let Err(refused) = self.api.authorise(user, asked) {
            return Some(reply(refused.response()));
        }
        let page = match (first, &*asked.path) {
            ("healthz" | "livez" | "readyz", _) => {
                let is_verbose = query.is_some_and(|query| query.contains("verbose"));
                reply(health(first, is_verbose))
            }
            (_, "/metrics") => metrics((self.metrics)().await),
            (_, "/openid/v1/jwks") => reply(Response {
                content_type: "application/jwk-set+json".to_owned(),
                ..Response::json(200, &self.api.plane.token_keys.public())
            }),
            (_, "/.well-known/openid-configuration") => {
                reply(Response::json(200, &TokenKeys::discovery(&self.url)))
            }
            _ => reply(Refused::no_resource().response()),
        };
        Some(page)
    }
}

fn bearer<B>(request: &http::Request<B>) -> Option<&str> {
    let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|token| !token.is_empty())
}

fn is_stream(asked: &Asked) -> bool {
    asked.verb == "watch"
        || asked
            .target
            .as_ref()
            .is_some_and(|target| STREAMS.contains(&&*target.subresource))
}

/// How long a request may take: what its client says, up to what the server grants.
fn limit_of(query: Option<&str>, limits: &Limits) -> Result<std::time::Duration, Refused> {
    let wanted = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("timeout="))
        .filter(|text| !text.is_empty());
    let Some(text) = wanted else {
        return Ok(limits.request);
    };
    match duration(text) {
        Some(wanted) if wanted.is_zero() => Ok(limits.request),
        Some(wanted) => Ok(wanted.min(limits.request)),
        None => {
            let why = if text.chars().all(|letter| letter.is_ascii_digit()) {
                "missing unit in duration"
            } else {
                "invalid duration"
            };
            Err(Refused::bad_request(format!(
                "invalid timeout specified in the request URL - time: {why} {text:?}"
            )))
        }
    }
}

fn health(which: &str, is_verbose: bool) -> Response {
    if is_verbose {
        Response::text(200, &format!("[+]ping ok\n{which} check passed\n"))
    } else {
        Response::text(200, "ok")
    }
}

fn metrics(text: String) -> http::Response<Body> {
    let mut response = http::Response::new(full(text));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}

/// Upstream's own words, which are no Status here.
fn too_many() -> http::Response<Body> {
    let text = "Too many requests, please try again later.\n";
    let mut response = reply(Response::text(429, text));
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The client's own id of the request, or a new one.
fn audit_id<B>(request: &http::Request<B>) -> String {
    let given = request.headers().get("audit-id");
    if let Some(given) = given.and_then(|given| given.to_str().ok())
        && !given.is_empty()
        && given.len() <= 64
    {
        return given.to_owned();
    }
    let mut bytes = [0; 16];
    // An id that is not unpredictable is still an id.
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    let number = u128::from_be_bytes(bytes);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        (number >> 96) as u32,
        (number >> 80) as u16,
        (number >> 64) as u16 & 0xfff,
        (number >> 48) as u16 & 0xfff,
        number & 0xffff_ffff_ffff
    )
}
