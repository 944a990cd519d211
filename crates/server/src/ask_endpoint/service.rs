//! Tells the API server to pass questions on to us.

use api::ask;
use api::call::Call;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{ClientError, Cluster};
use serde_json::{Value, json};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Where the group and its version stand among others, as is usual for groups that are added.
const GROUP_PRIORITY: u32 = 1_000;
const VERSION_PRIORITY: u32 = 15;

/// The Service by which the API server reaches the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
}

impl AskService {
    /// Names by which the API server, and others in the cluster, call it.
    pub fn host_names(&self) -> Vec<String> {
        let host = format!("{}.{}.svc", self.name, self.namespace);
        vec![format!("{host}.cluster.local"), host]
    }

    /// Sees to it that the API server passes questions on to the Service, and believes these authorities
    /// (PEM) about its certificate. To be called now and then: what is as it should be is not written.
    ///
    /// # Errors
    /// The API server cannot be told, or not by us.
    pub async fn register(&self, cluster: &Cluster, authorities: &str) -> Result<(), ClientError> {
        let name = format!("{}.{}", ask::VERSION, ask::GROUP);
        let target = format!("{SERVICES}/{name}");
        let stored = cluster.send(&call("GET", &target, None)).await?;
        let spec = self.spec(authorities);
        let write = if stored.code == 404 {
            let service = json!({
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": { "name": name },
                "spec": spec,
            });
            call("POST", SERVICES, Some(&service))
        } else {
            let stored = stored.accepted()?;
            let mut service: Value =
                serde_json::from_slice(&stored.body).map_err(|cause| ClientError::Malformed {
                    target: target.clone(),
                    cause,
                })?;
            if service["spec"] == spec {
                return Ok(());
            }
            service["spec"] = spec;
            call("PUT", &target, Some(&service))
        };
        let answer = cluster.send(&write).await?;
        // Another replica was here first.
        if answer.code != 409 {
            answer.accepted()?;
        }
        Ok(())
    }

    fn spec(&self, authorities: &str) -> Value {
        json!({
            "group": ask::GROUP,
            "version": ask::VERSION,
            "groupPriorityMinimum": GROUP_PRIORITY,
            "versionPriority": VERSION_PRIORITY,
            "service": { "namespace": self.namespace, "name": self.name, "port": self.port },
            "caBundle": STANDARD.encode(authorities),
        })
    }
}

fn call(method: &'static str, target: &str, body: Option<&Value>) -> Call {
    let bytes = body.map(|body| body.to_string().into_bytes());
    Call {
        method,
        target: target.to_owned(),
        content_type: match &bytes {
            Some(_) => "application/json",
            None => "",
        },
        body: bytes.unwrap_or_default(),
    }
}
