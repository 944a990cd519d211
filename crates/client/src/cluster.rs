//! A connection to one Kubernetes API.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::call::{self, Call, Page, WatchLine};
use api::dialect::{self, Dialect, Spoken};
use api::intent::{Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::value::RawValue;
use tower::ServiceExt;

use crate::address::address;
use crate::keys;
use crate::lines::lines;

/// How long one request that is no watch and no log may take, and how long a watch may take to begin.
const REQUEST_SECONDS_MAX: u64 = 60;
/// How much longer a watch may last than was asked for. A server that is there has ended it by then; one
/// whose machine has died ends nothing, and the connection to it looks as if nothing happened.
const WATCH_SLACK_SECONDS: u64 = 30;

/// A connection to one Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    way: Way,
    /// In which versions the server speaks of kinds that have several, as far as it was asked. Shared by
    /// all clones.
    spoken: Arc<Mutex<Spoken>>,
}

/// The body of an answer.
type Reply = http_body_util::combinators::UnsyncBoxBody<Bytes, tower::BoxError>;

/// How a request gets there.
#[derive(Clone)]
enum Way {
    /// Over the network.
    Far(kube::Client),
    /// To a server in this process: asked by whoever asks, without a task and a queue between, which
    /// cost a switch of threads each way.
    Here(Arc<Here>),
}

type Here = dyn Fn(http::Request<Body>) -> BoxFuture<'static, Result<http::Response<Reply>, tower::BoxError>>
    + Send
    + Sync;

/// Why a request brought no answer, or an answer that is a refusal.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("cannot use {path}: {why}")]
    Kubeconfig {
        /// Which one, or where one was looked for.
        path: String,
        /// Why, all causes on one line.
        why: String,
    },
    /// No answer came.
    #[error("cannot reach the API server for {target}: {why}")]
    Transport {
        /// Method and path.
        target: String,
        /// The last of its causes; those before it say only in which layer it was met.
        why: String,
    },
    /// The server refused.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The answer is not what the API promises.
    #[error("cannot read the answer to {target}")]
    Malformed {
        /// Method and path.
        target: String,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// `Retry-After` in seconds, where given.
    pub retry_after_seconds: Option<u32>,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The answer, unless it is a refusal.
    pub fn accepted(self) -> Result<Answer, ClientError> {
        if (200..300).contains(&self.code) {
            return Ok(self);
        }
        Err(ClientError::Refused(call::refusal(
            self.code,
            self.retry_after_seconds,
            &self.body,
        )))
    }
}

impl Cluster {
    /// Speaks to a server in this process: no socket, no TLS, the same bytes.
    pub fn in_process<S, B>(service: S) -> Cluster
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let here = move |request| {
            let answer = service.clone().oneshot(request);
            let answer = async move { Ok(answer.await.map_err(Into::into)?.map(reply)) };
            answer.boxed()
        };
        Cluster::of(Way::Here(Arc::new(here)))
    }

    /// Speaks to the cluster that a kubeconfig names: the file at `path`, else `$KUBECONFIG`, else
    /// the usual file, else the service account of the pod that we run in. `master` is the server's
    /// URL, or its host and port, instead of the one found there; with it alone, no file is needed.
    pub async fn from_kubeconfig(
        path: Option<&Path>,
        master: Option<&str>,
    ) -> Result<Cluster, ClientError> {
        let shown = match (path, std::env::var("KUBECONFIG")) {
            (Some(path), _) => format!("the kubeconfig {}", path.display()),
            (None, Ok(paths)) if !paths.is_empty() => format!("the KUBECONFIG {paths}"),
            (None, _) => "~/.kube/config, and this is no pod of a cluster".to_owned(),
        };
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| ClientError::Kubeconfig {
            path: shown.clone(),
            why: last_cause(&*cause),
        };
        let mut config = match path {
            Some(path) => {
                let file = kube::config::Kubeconfig::read_from(path)
                    .map_err(|error| failed(Box::new(error)))?;
                kube::Config::from_custom_kubeconfig(file, &Default::default())
                    .await
                    .map_err(|error| failed(Box::new(error)))?
            }
            None => match (kube::Config::infer().await, master) {
                (Ok(config), _) => config,
                (Err(_), Some(_)) => kube::Config::new(http::Uri::default()),
                (Err(error), None) => return Err(failed(Box::new(error))),
            },
        };
        let server = master.map_or_else(|| config.cluster_url.to_string(), str::to_owned);
        config.cluster_url = address(&server, &config).map_err(|why| ClientError::Kubeconfig {
            path: "the address of the API server".to_owned(),
            why,
        })?;
        // Whoever asks decides about retries; a hidden one would turn a refusal into a wait.
        config.default_retry = false;
        config.read_timeout = None;
        let client = kube::Client::try_from(config).map_err(|error| failed(Box::new(error)))?;
        Ok(Cluster::of(Way::Far(client)))
    }

    fn of(way: Way) -> Cluster {
        Cluster {
            way,
            spoken: Arc::default(),
        }
    }

    /// Sends one request and reads the whole answer, whatever its code.
    pub async fn send(&self, call: &Call) -> Result<Answer, ClientError> {
        let within = Duration::from_secs(REQUEST_SECONDS_MAX);
        let work = async {
            let response = self.open(call, "application/json").await?;
            let (parts, body) = response.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| transport(call, error))?
                .to_bytes();
            Ok(Answer {
                code: parts.status.as_u16(),
                retry_after_seconds: retry_after(&parts.headers),
                warnings: warnings(&parts.headers),
                body,
            })
        };
        match tokio::time::timeout(within, work).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(transport(call, Box::new(elapsed))),
        }
    }

    /// Reads one page of a kind in all namespaces. `limit` 0 asks for everything.
    pub async fn list(
        &self,
        kind: Kind,
        limit: u32,
        continue_token: &str,
    ) -> Result<Page, ClientError> {
        let call = call::list(kind, limit, continue_token);
        let (answer, spoken) = self.send_of(kind, &call).await?;
        let answer = answer.accepted()?;
        let mut page = call::page(&answer.body).map_err(|cause| malformed(&call, cause))?;
        if let Some(dialect) = spoken {
            let items = page.items.into_iter();
            page.items = items.map(|item| dialect.heard(item)).collect();
        }
        Ok(page)
    }

    /// Reads one object.
    pub async fn get(&self, key: &ObjectKey) -> Result<Box<RawValue>, ClientError> {
        let call = call::get(key.kind, &key.namespace, &key.name);
        let (answer, spoken) = self.send_of(key.kind, &call).await?;
        let answer = answer.accepted()?;
        let object: Box<RawValue> =
            serde_json::from_slice(&answer.body).map_err(|cause| malformed(&call, cause))?;
        Ok(match spoken {
            Some(dialect) => dialect.heard(object),
            None => object,
        })
    }

    /// Watches a kind in all namespaces from just after `revision`. It ends as [`Cluster::watch_call`] says.
    pub async fn watch(
        &self,
        kind: Kind,
        revision: u64,
        timeout_seconds: u32,
    ) -> Result<BoxStream<'static, Result<WatchLine, ClientError>>, ClientError> {
        let call = call::watch(kind, revision, timeout_seconds);
        let Some(dialect) = self.dialect(kind).await? else {
            return self.watch_call(call, timeout_seconds).await;
        };
        let call = dialect.said(call);
        let lines = self.watch_call(call, timeout_seconds).await?;
        let heard = move |line: Result<WatchLine, ClientError>| {
            line.map(|line| match line {
                WatchLine::Applied(object) => WatchLine::Applied(dialect.heard(object)),
                WatchLine::Deleted(object) => WatchLine::Deleted(dialect.heard(object)),
                WatchLine::Bookmark(_) | WatchLine::Failed(_) => line,
            })
        };
        Ok(lines.map(heard).boxed())
    }

    /// Opens any watch request that asks to be ended after `timeout_seconds`. Soon after that it ends as if
    /// the server had ended it, which need not be alive; one that does not begin within a minute has failed.
    pub async fn watch_call(
        &self,
        call: Call,
        timeout_seconds: u32,
    ) -> Result<BoxStream<'static, Result<WatchLine, ClientError>>, ClientError> {
        let within = Duration::from_secs(REQUEST_SECONDS_MAX);
        let stream = match tokio::time::timeout(within, self.stream(&call)).await {
            Ok(stream) => stream?,
            Err(elapsed) => return Err(transport(&call, Box::new(elapsed))),
        };
        let seconds_max = u64::from(timeout_seconds) + WATCH_SLACK_SECONDS;
        let end = tokio::time::sleep(Duration::from_secs(seconds_max));
        let events = lines(stream.take_until(end)).map(move |line| {
            let line = line.map_err(|error| transport(&call, Box::new(error)))?;
            call::watch_line(&line).map_err(|cause| malformed(&call, cause))
        });
        Ok(events.boxed())
    }

    /// Opens a request whose answer is read as it comes (logs). There is no limit of time: a server need not
    /// even begin before the first line of a log is written.
    pub async fn stream(
        &self,
        call: &Call,
    ) -> Result<impl Stream<Item = Result<Bytes, std::io::Error>> + Send + use<>, ClientError> {
        let response = self.open(call, "application/json").await?;
        let code = response.status().as_u16();
        if !(200..300).contains(&code) {
            let retry = retry_after(response.headers());
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|error| transport(call, error))?
                .to_bytes();
            return Err(ClientError::Refused(call::refusal(code, retry, &body)));
        }
        Ok(response
            .into_body()
            .into_data_stream()
            .map(|chunk| chunk.map_err(std::io::Error::other)))
    }

    /// Performs an intent; a key that it wants is drawn here, and known to nobody but its Secret.
    ///
    /// A create that meets an object of its name is done when that object has the controller that
    /// the intent names: names are deterministic, so it is our own, written before.
    pub async fn write(&self, intent: &Intent) -> WriteOutcome {
        let named = self.spoken().named(intent);
        let call = match keys::filled(&named).await {
            Ok(intent) => call::write(&intent),
            Err(refusal) => return WriteOutcome::Refused(refusal),
        };
        let outcome = match self.send_of(intent.target.kind, &call).await {
            Ok((answer, _)) => call::outcome(answer.code, answer.retry_after_seconds, &answer.body),
            Err(error) => {
                return WriteOutcome::Unknown {
                    message: chain(&error).into(),
                };
            }
        };
        let Some(read) = call::read_of_existing(intent, &outcome) else {
            return outcome;
        };
        match self.send(&read).await {
            Ok(found) => {
                call::outcome_of_existing(intent, found.code, &found.body).unwrap_or(outcome)
            }
            // The refusal was an answer; it stands.
            Err(_) => outcome,
        }
    }

    /// Sends a request about a kind in the version in which the server speaks of it; which one that was.
    /// Where it has stopped to since it was asked, it is asked again: nothing was done then.
    async fn send_of(
        &self,
        kind: Kind,
        call: &Call,
    ) -> Result<(Answer, Option<&'static Dialect>), ClientError> {
        if !dialect::has_several(kind) {
            return Ok((self.send(call).await?, None));
        }
        let mut is_news = self.spoken().of(kind).is_none();
        loop {
            let spoken = self.dialect(kind).await?;
            let answer = match spoken {
                Some(dialect) => self.send(&dialect.said(call.clone())).await?,
                None => self.send(call).await?,
            };
            if !dialect::is_unserved(answer.code, &answer.body) || is_news {
                return Ok((answer, spoken));
            }
            self.spoken().forget(kind);
            is_news = true;
        }
    }

    /// In which version the server speaks of the kind; ours if in none.
    async fn dialect(&self, kind: Kind) -> Result<Option<&'static Dialect>, ClientError> {
        if !dialect::has_several(kind) {
            return Ok(None);
        }
        if let Some(known) = self.spoken().of(kind) {
            return Ok(known);
        }
        for version in dialect::versions(kind) {
            let answer = self.send(&dialect::asked(kind, version)).await?;
            let serves = dialect::serves(kind, answer.code, &answer.body);
            if serves.map_err(ClientError::Refused)? {
                let spoken = Dialect::find(kind, version);
                self.spoken().note(kind, spoken);
                return Ok(spoken);
            }
        }
        Ok(None)
    }

    fn spoken(&self) -> MutexGuard<'_, Spoken> {
        // Whoever panicked left no half entry.
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, call: &Call, accept: &str) -> Result<http::Response<Reply>, ClientError> {
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(&call.target)
            .header(http::header::ACCEPT, accept);
        if !call.content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, call.content_type);
        }
        let request = request
            .body(Body::from(call.body.clone()))
            .map_err(|error| transport(call, Box::new(error)))?;
        match &self.way {
            Way::Far(client) => match client.send(request).await {
                Ok(response) => Ok(response.map(reply)),
                Err(error) => Err(transport(call, Box::new(error))),
            },
            Way::Here(here) => here(request).await.map_err(|error| transport(call, error)),
        }
    }
}

fn reply<B>(body: B) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

fn retry_after(headers: &http::HeaderMap) -> Option<u32> {
    headers
        .get(http::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn warnings(headers: &http::HeaderMap) -> Vec<String> {
    headers
        .get_all(http::header::WARNING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter_map(|text| text.strip_prefix("299 - \"")?.strip_suffix('"'))
        .map(|text| text.replace("\\\"", "\""))
        .collect()
}

fn transport(call: &Call, cause: Box<dyn std::error::Error + Send + Sync>) -> ClientError {
    ClientError::Transport {
        target: format!("{} {}", call.method, call.target),
        why: last_cause(&*cause),
    }
}

fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

fn malformed(call: &Call, cause: serde_json::Error) -> ClientError {
    ClientError::Malformed {
        target: format!("{} {}", call.method, call.target),
        cause,
    }
}

/// An error with its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
