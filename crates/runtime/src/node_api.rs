//! The process node's questions to an API server, asked through `client`.

use api::call::{self, Call};
use api::intent::{Intent, ObjectKey, WriteOutcome};
use api::kind::Kind;
use client::Cluster;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::follow::{Wish, follow};
use crate::process::{Followed, NodeApi, ReadError, TokenRequest};

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
        let wish = Wish {
            kind,
            field_selector,
        };
        tokio::spawn(follow(self.cluster.clone(), wish, tell));
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

    fn token(
        &self,
        request: TokenRequest,
    ) -> BoxFuture<'static, Result<Option<String>, ReadError>> {
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
            let failed = |message: String| ReadError {
                what: format!("a token of {}", request.account),
                message,
            };
            let answer = cluster.send(&call).await;
            let answer = answer
                .and_then(client::Answer::accepted)
                .map_err(|error| failed(error.to_string()))?;
            let answer: Value =
                serde_json::from_slice(&answer.body).map_err(|error| failed(error.to_string()))?;
            Ok(answer["status"]["token"].as_str().map(str::to_owned))
        })
    }
}
