//! A connection to one Kubernetes API.

use std::path::Path;
use std::time::Duration;

use api::call::{self, Call, Page, WatchLine};
use api::intent::{Intent, Refusal, WriteOutcome};
use api::kind::Kind;
use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::keys;
use crate::lines::lines;

/// How long one request that is no watch and no log may take.
const REQUEST_SECONDS_MAX: u64 = 60;

/// A connection to one Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
}

/// Why a request brought no answer, or an answer that is a refusal.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("cannot read the kubeconfig {path}")]
    Kubeconfig {
        /// Which one, `default` for the usual places.
        path: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer came.
    #[error("cannot reach the API server for {target}")]
    Transport {
        /// Method and path.
        target: String,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
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
    /// Must be called inside a tokio runtime.
    pub fn in_process<S, B>(service: S) -> Cluster
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Cluster {
            client: kube::Client::new(service, "default"),
        }
    }

    /// Speaks to the cluster that a kubeconfig names: the file at `path`, else `$KUBECONFIG`, else
    /// the usual file, else the service account of the pod that we run in. `master` is the server's
    /// URL instead of the one found there; with it alone, no file is needed.
    pub async fn from_kubeconfig(
        path: Option<&Path>,
        master: Option<&str>,
    ) -> Result<Cluster, ClientError> {
        let shown = path.map_or_else(|| "default".to_owned(), |path| path.display().to_string());
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| ClientError::Kubeconfig {
            path: shown.clone(),
            cause,
        };
        let master: Option<http::Uri> = master
            .map(str::parse)
            .transpose()
            .map_err(|error: http::uri::InvalidUri| failed(Box::new(error)))?;
        let mut config = match path {
            Some(path) => {
                let file = kube::config::Kubeconfig::read_from(path)
                    .map_err(|error| failed(Box::new(error)))?;
                kube::Config::from_custom_kubeconfig(file, &Default::default())
                    .await
                    .map_err(|error| failed(Box::new(error)))?
            }
            None => match (kube::Config::infer().await, &master) {
                (Ok(config), _) => config,
                (Err(_), Some(master)) => kube::Config::new(master.clone()),
                (Err(error), None) => return Err(failed(Box::new(error))),
            },
        };
        if let Some(master) = master {
            config.cluster_url = master;
        }
        // Whoever asks decides about retries; a hidden one would turn a refusal into a wait.
        config.default_retry = false;
        config.read_timeout = None;
        let client = kube::Client::try_from(config).map_err(|error| failed(Box::new(error)))?;
        Ok(Cluster { client })
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
                .map_err(|error| transport(call, Box::new(error)))?
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
        let answer = self.send(&call).await?.accepted()?;
        call::page(&answer.body).map_err(|cause| malformed(&call, cause))
    }

    /// Watches a kind in all namespaces from just after `revision`.
    pub async fn watch(
        &self,
        kind: Kind,
        revision: u64,
        timeout_seconds: u32,
    ) -> Result<BoxStream<'static, Result<WatchLine, ClientError>>, ClientError> {
        self.watch_call(call::watch(kind, revision, timeout_seconds))
            .await
    }

    /// Opens any watch request.
    pub async fn watch_call(
        &self,
        call: Call,
    ) -> Result<BoxStream<'static, Result<WatchLine, ClientError>>, ClientError> {
        let stream = self.stream(&call).await?;
        let events = lines(stream).map(move |line| {
            let line = line.map_err(|error| transport(&call, Box::new(error)))?;
            call::watch_line(&line).map_err(|cause| malformed(&call, cause))
        });
        Ok(events.boxed())
    }

    /// Opens a request whose answer is read as it comes (logs).
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
                .map_err(|error| transport(call, Box::new(error)))?
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
        let call = match keys::filled(intent).await {
            Ok(intent) => call::write(&intent),
            Err(refusal) => return WriteOutcome::Refused(refusal),
        };
        let outcome = match self.send(&call).await {
            Ok(answer) => call::outcome(answer.code, answer.retry_after_seconds, &answer.body),
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

    async fn open(&self, call: &Call, accept: &str) -> Result<http::Response<Body>, ClientError> {
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
        self.client
            .send(request)
            .await
            .map_err(|error| transport(call, Box::new(error)))
    }
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
        cause,
    }
}

fn malformed(call: &Call, cause: serde_json::Error) -> ClientError {
    ClientError::Malformed {
        target: format!("{} {}", call.method, call.target),
        cause,
    }
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
