//! Questions to the scheduler over the API: who may ask, what may be told, and how it is shown.

use std::sync::{Arc, Mutex};

use client::ask::{AskDoor, Asker, Unanswered};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Answer, Plane};

pub(super) const TRAIN: &str =
    "/apis/ask.katmai.dev/v1/namespaces/team-a/explanations/podgroup.train";

/// Answers with who asks and which namespaces it sees, or that there is nothing.
pub(super) struct Parrot(pub(super) Mutex<Result<(), Unanswered>>);

impl AskDoor for Parrot {
    fn explain(
        &self,
        subject: api::ask::Subject,
        asker: Arc<dyn Asker>,
    ) -> BoxFuture<'static, Result<api::ask::Report, Unanswered>> {
        let answer = self.0.lock().expect("a lock").clone();
        async move {
            answer?;
            let (a, b) = (asker.sees("team-a").await, asker.sees("team-b").await);
            Ok(api::ask::Report {
                pod_group: subject.name,
                reason: Some("NoFit".to_owned()),
                message: Some(format!("{} {a} {b}", asker.name())),
                ..api::ask::Report::default()
            })
        }
        .boxed()
    }
}

async fn plane(answer: Result<(), Unanswered>) -> Plane {
    let plane = Plane::new().await;
    plane.api.set_ask_door(Arc::new(Parrot(Mutex::new(answer))));
    plane
}

/// `alice` gets the role `view` in a namespace.
async fn let_alice_view(plane: &Plane, namespace: &str) {
    let alice = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" });
    let_view(plane, namespace, alice).await;
}

/// Somebody gets that role in a new namespace.
pub(super) async fn let_view(plane: &Plane, namespace: &str, subject: Value) {
    let made = json!({ "metadata": { "name": namespace } });
    let made = plane.as_admin("POST", "/api/v1/namespaces", made).await;
    assert_eq!(made.code, 201);
    let binding = json!({
        "metadata": { "name": "viewer" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [subject],
    });
    let target = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    assert_eq!(plane.as_admin("POST", &target, binding).await.code, 201);
}

pub(super) fn message(answer: &Answer) -> Value {
    answer.json()["message"].clone()
}

#[tokio::test]
async fn who_may_view_a_namespace_may_ask_there_and_sees_no_other() {
    let plane = plane(Ok(())).await;
    let refused = plane.as_alice("GET", TRAIN, Value::Null).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    let_alice_view(&plane, "team-a").await;
    let answer = plane.as_alice("GET", TRAIN, Value::Null).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["status"]["message"], "alice true false");
    let elsewhere = TRAIN.replace("team-a", "team-b");
    let refused = plane.as_alice("GET", &elsewhere, Value::Null).await;
    assert_eq!(refused.code, 403, "whether or not it is there");
}

#[tokio::test]
async fn an_explanation_is_shown_in_every_form_of_an_object() {
    let plane = plane(Ok(())).await;
    let whole = plane.as_admin("GET", TRAIN, Value::Null).await.json();
    assert_eq!(whole["kind"], "Explanation");
    assert_eq!(whole["metadata"]["name"], "podgroup.train");
    assert_eq!(whole["status"]["podGroup"], "train");
    let request = http::Request::builder()
        .uri(TRAIN)
        .header("authorization", "Bearer alice-token")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let_alice_view(&plane, "team-a").await;
    let table = plane.send(request, Value::Null).await.json();
    let titles: Vec<_> = (table["columnDefinitions"].as_array().expect("columns"))
        .iter()
        .map(|column| column["name"].as_str().expect("a title"))
        .collect();
    assert_eq!(titles, ["Name", "Phase", "Reason", "Message", "Remedy"]);
    assert_eq!(table["rows"][0]["cells"][0], "podgroup.train");
    assert_eq!(table["rows"][0]["cells"][2], "NoFit");
    let listed = plane.as_admin("GET", "/apis/ask.katmai.dev/v1", Value::Null);
    let listed = listed.await.json();
    assert_eq!(listed["resources"][0]["name"], "explanations");
    assert_eq!(listed["resources"][0]["verbs"], json!(["get"]));
}

#[tokio::test]
async fn what_is_not_answered_says_why() {
    let odd = TRAIN.replace("podgroup.train", "train");
    let plane = plane(Err(Unanswered::Nothing(
        "there is no such object".to_owned(),
    )))
    .await;
    let nothing = plane.as_admin("GET", TRAIN, Value::Null).await;
    assert_eq!(nothing.code, 404);
    assert_eq!(
        message(&nothing),
        "explanations.ask.katmai.dev \"podgroup.train\": there is no such object"
    );
    let odd = plane.as_admin("GET", &odd, Value::Null).await;
    assert_eq!(odd.code, 400);
    assert_eq!(
        message(&odd),
        "\"train\" names no explanation: it is KIND.NAME, as in podgroup.train, with one of the kinds pod, podgroup, vcjob"
    );
    let many = Unanswered::TooMany {
        retry_after_seconds: 3,
    };
    plane
        .api
        .set_ask_door(Arc::new(Parrot(Mutex::new(Err(many)))));
    let many = plane.as_admin("GET", TRAIN, Value::Null).await;
    assert_eq!(many.code, 429);
    assert_eq!(many.headers["retry-after"], "3");
    let listed = TRAIN.replace("/podgroup.train", "");
    assert_eq!(plane.as_admin("GET", &listed, Value::Null).await.code, 405);
    assert_eq!(plane.as_admin("DELETE", TRAIN, Value::Null).await.code, 405);
}

#[tokio::test]
async fn a_plane_that_does_not_decide_says_so() {
    let plane = Plane::new().await;
    let answer = plane.as_admin("GET", TRAIN, Value::Null).await;
    assert_eq!(answer.code, 503);
    assert_eq!(message(&answer), "nobody of this plane decides yet");
}
