//! The process node's questions to an API server, asked through `client`.

use std::time::Duration;

use api::call::{self, Call, WatchLine};
use api::intent::{Intent, ObjectKey, WriteOutcome};
use api::kind::Kind;
use client::{ClientError, Cluster};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::process::{Followed, NodeApi, ReadError, TokenRequest};

/// How long to wait after a kind could not be listed or watched.
const AGAIN_MS: u64 = 500;

/// Changes that may wait for their reader.
const WAITING_MAX: usize = 1_024;

/// An API server as the process node sees it.
#[derive(Clone)]
pub struct ClusterNodeApi {
    cluster: Cluster,
}

impl ClusterNodeApi {
    /// Asks through this connection.
    pub fn new(cluster: Cluster) -> ClusterNodeApi {
        ClusterNodeApi { cluster }
    }
}

impl NodeApi for ClusterNodeApi {
    fn follow(&self, kind: Kind, field_selector: Option<String>) -> BoxStream<'static, Followed> {
        let (tell, told) = mpsc::channel(WAITING_MAX);
        tokio::spawn(follow(self.cluster.clone(), kind, field_selector, tell));
        stream::unfold(
            told,
            |mut told| async move { Some((told.recv().await?, told)) },
        )
        .boxed()
    }

    fn read(&self, key: ObjectKey) -> BoxFuture<'static, Result<Option<Value>, ReadError>> {
        let cluster = self.cluster.clone();
        Box::pin(async move {
            let failed = |message: String| ReadError {
                what: format!("{:?} {}/{}", key.kind, key.namespace, key.name),
                message,
            };
            let call = call::get(key.kind, &key.namespace, &key.name);
            let answer = cluster
                .send(&call)
                .await
                .map_err(|error| failed(error.to_string()))?;
            if answer.code == 404 {
                return Ok(None);
            }
            let answer = answer
                .accepted()
                .map_err(|error| failed(error.to_string()))?;
            serde_json::from_slice(&answer.body)
                .map(Some)
                .map_err(|error| failed(error.to_string()))
        })
    }

    fn write(&self, intent: Intent) -> BoxFuture<'static, WriteOutcome> {
        let cluster = self.cluster.clone();
        Box::pin(async move { cluster.write(&intent).await })
    }

    fn token(&self, request: TokenRequest) -> BoxFuture<'static, Option<String>> {
        let cluster = self.cluster.clone();
        Box::pin(async move {
            let account = Kind::ServiceAccount.path(&request.namespace, &request.account);
            let (pod, uid) = &request.pod;
            let mut spec = json!({
                "expirationSeconds": request.expiration_seconds,
                "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid },
            });
            if !request.audience.is_empty() {
                spec["audiences"] = json!([request.audience]);
            }
            let body = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": spec,
            });
            let call = Call {
                method: "POST",
                target: format!("{account}/token"),
                content_type: "application/json",
                body: body.to_string().into_bytes(),
            };
            let answer = match cluster.send(&call).await.and_then(client::Answer::accepted) {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::warn!("cannot get a token of {}: {error}", request.account);
                    return None;
                }
            };
            let answer: Value = serde_json::from_slice(&answer.body).ok()?;
            answer["status"]["token"].as_str().map(str::to_owned)
        })
    }
}

/// Lists and watches for ever, until nobody listens.
async fn follow(
    cluster: Cluster,
    kind: Kind,
    field_selector: Option<String>,
    tell: mpsc::Sender<Followed>,
) {
    let selector = field_selector
        .map(|selector| format!("&fieldSelector={}", call::query_escape(&selector)))
        .unwrap_or_default();
    while !tell.is_closed() {
        let once = follow_once(&cluster, kind, &selector, &tell);
        tokio::select! {
            () = tell.closed() => return,
            end = once => match end {
                // The server ends long watches by and by; that is no trouble.
                Ok(()) => continue,
                Err(error) => tracing::debug!("following {kind:?} was interrupted: {error}"),
            },
        }
        tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
    }
}

async fn follow_once(
    cluster: &Cluster,
    kind: Kind,
    selector: &str,
    tell: &mpsc::Sender<Followed>,
) -> Result<(), ClientError> {
    let mut list = call::list(kind, 0, "");
    list.target.push_str(selector);
    let answer = cluster.send(&list).await?.accepted()?;
    let page = call::page(&answer.body).map_err(|cause| ClientError::Malformed {
        target: list.target.clone(),
        cause,
    })?;
    let revision = page.revision;
    let objects = page
        .items
        .iter()
        .filter_map(|item| value(item.get()))
        .collect();
    send(tell, Followed::Listed(objects)).await;
    let mut watch = call::watch(kind, revision, 300);
    watch.target.push_str(selector);
    let mut lines = cluster.watch_call(watch).await?;
    while let Some(line) = lines.next().await {
        match line? {
            WatchLine::Applied(object) => {
                if let Some(object) = value(object.get()) {
                    send(tell, Followed::Applied(object)).await;
                }
            }
            WatchLine::Deleted(object) => {
                if let Some(object) = value(object.get()) {
                    send(tell, Followed::Deleted(object)).await;
                }
            }
            WatchLine::Bookmark(_) => {}
            WatchLine::Failed(refusal) => return Err(ClientError::Refused(refusal)),
        }
    }
    Ok(())
}

/// A reader that has gone wants nothing more.
async fn send(tell: &mpsc::Sender<Followed>, what: Followed) {
    let _ = tell.send(what).await;
}

fn value(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!("cannot read an object: {error}");
            None
        }
    }
}
