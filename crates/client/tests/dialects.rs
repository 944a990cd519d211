//! Which version of a kind a server speaks is found out by asking it, and again when it changes.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose server cannot answer has failed"
)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use api::call::WatchLine;
use api::intent::{Action, Intent, ObjectKey, Part, WriteOutcome};
use api::kind::Kind;
use bytes::Bytes;
use client::{Body, ClientError, Cluster};
use futures::StreamExt;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// A server that serves PodGroups of `scheduling.k8s.io` in one version, and what it was asked.
#[derive(Clone, Default)]
struct Server {
    serves: Arc<Mutex<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<Value>>>,
}

const OLD: &str =
    r#"{"metadata":{"name":"g","resourceVersion":"5"},"spec":{"disruptionMode":"PodGroup"}}"#;
const NEW: &str =
    r#"{"metadata":{"name":"g","resourceVersion":"5"},"spec":{"disruptionMode":{"all":{}}}}"#;

impl Server {
    fn serving(version: &'static str) -> (Server, Cluster) {
        let server = Server::default();
        server.serve(version);
        let answering = server.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = answering.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let (code, answer) = server.answer(&head.method, &head.uri, &body);
                let response = http::Response::builder().status(code);
                Ok::<_, Infallible>(response.body(Full::new(Bytes::from(answer))).unwrap())
            }
        });
        (server, Cluster::in_process(service))
    }

    fn serve(&self, version: &'static str) {
        *self.serves.lock().unwrap() = version;
    }

    fn answer(&self, method: &http::Method, uri: &http::Uri, body: &[u8]) -> (u16, String) {
        self.asked
            .lock()
            .unwrap()
            .push(format!("{method} {}", uri.path()));
        let version = *self.serves.lock().unwrap();
        let served = format!("/apis/scheduling.k8s.io/{version}");
        let Some(rest) = uri.path().strip_prefix(&served) else {
            return (404, "404 page not found\n".to_owned());
        };
        let group = if version == "v1alpha2" { OLD } else { NEW };
        let query = uri.query().unwrap_or_default();
        match (method.as_str(), rest) {
            ("GET", "") => (
                200,
                json!({ "resources": [{ "name": "podgroups" }] }).to_string(),
            ),
            ("GET", "/podgroups") if query.contains("watch=true") => {
                (200, format!("{{\"type\":\"ADDED\",\"object\":{group}}}\n"))
            }
            ("GET", "/podgroups") => (
                200,
                format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{group}]}}"#),
            ),
            ("GET", "/namespaces/ml/podgroups/gone") => (
                404,
                json!({ "reason": "NotFound", "code": 404 }).to_string(),
            ),
            ("GET", _) => (200, group.to_owned()),
            _ => {
                let mut told = self.told.lock().unwrap();
                told.push(serde_json::from_slice(body).unwrap());
                (200, group.to_owned())
            }
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn mode(text: &str) -> Value {
    let object: Value = serde_json::from_str(text).unwrap();
    object["spec"]["disruptionMode"].clone()
}

#[tokio::test]
async fn whatever_is_served_is_read_and_told_in_its_words() {
    for (version, condition) in [
        ("v1beta1", "PodGroupInitiallyScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1alpha2", "PodGroupScheduled"),
    ] {
        let (server, cluster) = Server::serving(version);
        let key = ObjectKey::new(Kind::NativeGroup, "ml", "g");
        let all = json!({ "all": {} });
        let page = cluster.list(Kind::NativeGroup, 0, "").await.unwrap();
        assert_eq!(mode(page.items[0].get()), all, "{version}");
        let mut lines = cluster.watch(Kind::NativeGroup, 5, 60).await.unwrap();
        let Some(Ok(WatchLine::Applied(object))) = lines.next().await else {
            panic!("{version}: the group is told of");
        };
        assert_eq!(mode(object.get()), all, "{version}");
        let object = cluster.get(&key).await.unwrap();
        assert_eq!(mode(object.get()), all, "{version}");
        let conditions = json!([{ "type": "PodGroupInitiallyScheduled", "status": "True" }]);
        let write = Intent {
            target: key,
            action: Action::Patch {
                uid: "u1".into(),
                resource_version: "5".into(),
                part: Part::Status,
                patch: json!({ "status": { "conditions": conditions } }),
            },
        };
        let outcome = cluster.write(&write).await;
        assert!(matches!(outcome, WriteOutcome::Done { revision: 5, .. }));
        let told = &server.told.lock().unwrap()[0]["status"]["conditions"][0];
        assert_eq!(told["type"], condition, "{version}");
        let asked = server.asked();
        let ends_at =
            format!("PATCH /apis/scheduling.k8s.io/{version}/namespaces/ml/podgroups/g/status");
        assert_eq!(asked.last(), Some(&ends_at));
    }
}

#[tokio::test]
async fn it_is_asked_once_and_again_when_what_it_served_has_gone() {
    let (server, cluster) = Server::serving("v1alpha3");
    cluster.list(Kind::NativeGroup, 0, "").await.unwrap();
    let group = "GET /apis/scheduling.k8s.io";
    let expected = [
        format!("{group}/v1beta1"),
        format!("{group}/v1alpha3"),
        format!("{group}/v1alpha3/podgroups"),
    ];
    assert_eq!(server.asked(), expected);
    cluster
        .clone()
        .list(Kind::NativeGroup, 0, "")
        .await
        .unwrap();
    assert_eq!(server.asked(), expected[2..]);
    server.serve("v1beta1");
    let page = cluster.list(Kind::NativeGroup, 0, "").await.unwrap();
    assert_eq!(page.items.len(), 1);
    let again = [
        expected[2].clone(),
        expected[0].clone(),
        format!("{group}/v1beta1/podgroups"),
    ];
    assert_eq!(server.asked(), again);
    server.serve("v1alpha2");
    assert!(cluster.watch(Kind::NativeGroup, 5, 60).await.is_err());
    server.asked();
    cluster.list(Kind::NativeGroup, 0, "").await.unwrap();
    assert_eq!(
        server.asked().last(),
        Some(&format!("{group}/v1alpha2/podgroups"))
    );
}

#[tokio::test]
async fn a_group_that_is_not_there_is_no_version_that_is_not_served() {
    let (server, cluster) = Server::serving("v1beta1");
    let gone = ObjectKey::new(Kind::NativeGroup, "ml", "gone");
    let absent = |error: ClientError| match error {
        ClientError::Refused(refusal) => refusal.is_absence(),
        _ => false,
    };
    assert!(cluster.get(&gone).await.is_err_and(absent));
    server.asked();
    assert!(cluster.get(&gone).await.is_err_and(absent));
    assert_eq!(server.asked().len(), 1, "nothing is asked anew");
}

#[tokio::test]
async fn who_serves_none_of_them_says_so_to_each_list() {
    let (server, cluster) = Server::serving("v2");
    for _ in 0..2 {
        let error = cluster.list(Kind::NativeGroup, 0, "").await.unwrap_err();
        assert!(matches!(error, ClientError::Refused(refusal) if refusal.code == 404));
        assert_eq!(server.asked().len(), 4, "three versions, and the list");
    }
    let pods = cluster.list(Kind::Pod, 0, "").await;
    assert!(pods.is_err());
    assert_eq!(server.asked(), ["GET /api/v1/pods"]);
}
