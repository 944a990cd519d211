//! A client's wish to leave HTTP, and what it wants to speak afterwards.

use std::future::Future;

use bytes::Bytes;
use http::header::HeaderValue;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use store::Refused;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::api::{Body, full};
use crate::spdy;

/// The bytes after HTTP.
pub(super) type Io = TokioIo<Upgraded>;

/// What can be spoken: the value of an `Upgrade` header, and the name of what runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    upgrade: &'static str,
    protocol: &'static str,
}

const WEBSOCKET: &str = "websocket";

impl Way {
    /// Numbered channels in the messages of a websocket, one of which closes others.
    pub(super) const CHANNELS_5: Way = Way::new(WEBSOCKET, "v5.channel.k8s.io");
    /// The same without that one.
    pub(super) const CHANNELS_4: Way = Way::new(WEBSOCKET, "v4.channel.k8s.io");
    /// A stream of SPDY for each of exec's channels.
    pub(super) const STREAMS_4: Way = Way::new(spdy::NAME, "v4.channel.k8s.io");
    /// Two streams of SPDY for each forwarded connection.
    pub(super) const FORWARD: Way = Way::new(spdy::NAME, "portforward.k8s.io");
    /// That inside a websocket.
    pub(super) const TUNNEL: Way = Way::new(WEBSOCKET, "SPDY/3.1+portforward.k8s.io");

    const fn new(upgrade: &'static str, protocol: &'static str) -> Way {
        Way { upgrade, protocol }
    }
}

/// A client's wish to leave HTTP.
pub(crate) struct Upgrade {
    on: OnUpgrade,
    upgrade: &'static str,
    /// Of a websocket.
    key: String,
    protocols: Vec<String>,
}

impl Upgrade {
    /// Takes the wish out of a request, if there is one.
    pub(crate) fn take<B>(request: &mut http::Request<B>) -> Option<Upgrade> {
        let all = |name: &str| -> Vec<String> {
            let values = request.headers().get_all(name).iter();
            values
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .map(|one| one.trim().to_owned())
                .collect()
        };
        let wanted = all("upgrade");
        let upgrade = [WEBSOCKET, spdy::NAME]
            .into_iter()
            .find(|known| wanted.iter().any(|one| one.eq_ignore_ascii_case(known)))?;
        let (key, protocols) = if upgrade == WEBSOCKET {
            let key = all("sec-websocket-key").pop().unwrap_or_default();
            (key, all("sec-websocket-protocol"))
        } else {
            (String::new(), all("x-stream-protocol-version"))
        };
        Some(Upgrade {
            on: request.extensions_mut().remove::<OnUpgrade>()?,
            upgrade,
            key,
            protocols,
        })
    }

    /// The first of some ways that the client knows.
    pub(super) fn choose(&self, ways: &[Way]) -> Result<Way, Refused> {
        let mut open = ways.iter().filter(|way| way.upgrade == self.upgrade);
        let found = open
            .clone()
            .find(|way| self.protocols.iter().any(|one| one == way.protocol));
        found.copied().ok_or_else(|| {
            let names: Vec<_> = open.by_ref().map(|way| way.protocol).collect();
            let message = format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                self.protocols.join(" "),
                names.join(" ")
            );
            Refused::bad_request(message)
        })
    }

    /// Leaves HTTP; `speak` is called with the bytes that follow.
    pub(super) fn leave<F>(
        self,
        way: Way,
        speak: impl FnOnce(Io) -> F + Send + 'static,
    ) -> http::Response<Body>
    where
        F: Future<Output = ()> + Send,
    {
        let mut response = http::Response::new(full(Bytes::new()));
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert("connection", HeaderValue::from_static("Upgrade"));
        headers.insert("upgrade", HeaderValue::from_static(way.upgrade));
        let protocol = HeaderValue::from_static(way.protocol);
        if way.upgrade == WEBSOCKET {
            headers.insert("sec-websocket-protocol", protocol);
            if let Ok(value) = HeaderValue::from_str(&derive_accept_key(self.key.as_bytes())) {
                headers.insert("sec-websocket-accept", value);
            }
        } else {
            headers.insert("x-stream-protocol-version", protocol);
        }
        tokio::spawn(async move {
            match self.on.await {
                Ok(io) => speak(TokioIo::new(io)).await,
                Err(error) => tracing::debug!("a connection did not leave HTTP: {error}"),
            }
        });
        response
    }
}
