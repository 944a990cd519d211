//! Reviews and what is none.

use std::convert::Infallible;

use api::kind::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{Empty, Full, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::{World, job, post};

const BYTES_MAX: usize = 3 << 20;

fn request(operation: &str, resource: &str, object: &Value) -> Value {
    json!({
        "uid": "7", "operation": operation, "namespace": "default", "name": "j",
        "resource": { "group": "batch.volcano.sh", "version": "v1alpha1", "resource": resource },
        "object": object,
    })
}

#[tokio::test]
async fn a_path_that_changes_answers_with_a_patch() {
    let world = World::new().await;
    let asked = request("CREATE", "jobs", &job("j"));
    let response = world.review("/jobs/mutate", asked).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD.decode(response["patch"].as_str().expect("a patch"));
    let patch: Value = serde_json::from_slice(&patch.expect("base64")).expect("JSON");
    let added = |path: &str| {
        let mut all = patch.as_array().expect("a list").iter();
        let found = all.find(|it| it["op"] == "add" && it["path"] == path);
        found.map_or(Value::Null, |it| it["value"].clone())
    };
    assert_eq!(added("/spec/queue"), "default");
    assert_eq!(added("/spec/minAvailable"), 2);
    assert_eq!(added("/spec/tasks/0/name"), "default0");
}

#[tokio::test]
async fn a_path_that_judges_answers_by_what_is_known_of_the_cluster() {
    let world = World::new().await;
    let mut whole = job("j");
    whole["spec"]["queue"] = "lab".into();
    whole["spec"]["tasks"][0]["name"] = "t".into();
    let asked = request("CREATE", "jobs", &whole);
    for (state, said) in [
        (None, "unable to find job queue"),
        (
            Some("Closed"),
            "can only submit job to queue with state `Open`",
        ),
        (Some("Open"), ""),
    ] {
        if let Some(state) = state {
            let queue = json!({ "metadata": { "name": "lab" }, "status": { "state": state } });
            world.facts.apply(Kind::Queue, queue);
        }
        let response = world.review("/jobs/validate", asked.clone()).await;
        assert_eq!(response["allowed"], said.is_empty(), "{response}");
        // As upstream: a text, and neither a code nor a reason.
        let status = &response["status"];
        let text = status["message"].as_str().unwrap_or_default();
        assert!(text.starts_with(said), "{text}");
        assert_eq!(status.as_object().map_or(1, |it| it.len()), 1);
    }
}

#[tokio::test]
async fn settings_that_change_count_for_the_next_request() {
    let world = World::new().await;
    let asked = request("CREATE", "jobs", &job("j"));
    let before = world.review("/jobs/mutate", asked.clone()).await;
    let settings = review::Settings {
        scheduler_names: vec!["mine".into()],
        ..review::Settings::default()
    };
    world.settings.send_replace(std::sync::Arc::new(settings));
    let after = world.review("/jobs/mutate", asked).await;
    let given = |response: &Value, name: &str| {
        let patch = STANDARD.decode(response["patch"].as_str().expect("a patch"));
        let patch = String::from_utf8(patch.expect("base64")).expect("text");
        patch.contains(&format!("{name:?}"))
    };
    assert!(given(&before, "volcano") && !given(&before, "mine"));
    assert!(given(&after, "mine") && !given(&after, "volcano"));
}

#[tokio::test]
async fn what_a_path_does_not_judge_passes_whatever_the_registration_said() {
    let world = World::new().await;
    let bad = json!({ "spec": {} });
    let foreign = world.review("/jobs/validate", request("CREATE", "pods", &bad));
    let foreign = foreign.await;
    assert_eq!(foreign["allowed"], true);
    assert!(foreign["warnings"][0].is_string());
    for operation in ["CONNECT", "DELETE", "?"] {
        let passed = world.review("/jobs/validate", request(operation, "jobs", &bad));
        assert_eq!(passed.await["allowed"], true, "{operation}");
    }
    let mut below = request("UPDATE", "jobs", &bad);
    below["subResource"] = "status".into();
    assert_eq!(world.review("/jobs/validate", below).await["allowed"], true);
    let judged = world.review("/jobs/validate", request("CREATE", "jobs", &bad));
    assert_eq!(judged.await["allowed"], false);
}

#[tokio::test]
async fn what_is_no_review_is_refused() {
    let world = World::new().await;
    let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#;
    let old = r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}"#;
    for (path, body, code) in [
        ("/jobs/guess", review, 404),
        ("/jobs/validate", "", 400),
        ("/jobs/validate", "{", 400),
        ("/jobs/validate", "[]", 400),
        ("/jobs/validate", "null", 400),
        ("/jobs/validate", review, 400),
        ("/jobs/validate", old, 400),
    ] {
        let answer = world.send(post(path, body)).await;
        assert_eq!(answer.0, code, "{path} {body}: {answer:?}");
    }
    let read = http::Request::get("/jobs/validate").header("host", "localhost");
    let answer = world.send(read.body(Empty::<Bytes>::new()).expect("a request"));
    assert_eq!(answer.await.0, 405);
    let mut typed = post("/jobs/validate", review);
    let yaml = http::HeaderValue::from_static("application/yaml");
    typed.headers_mut().insert("content-type", yaml);
    assert_eq!(world.send(typed).await.0, 415);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read() {
    let world = World::new().await;
    // Only its length is told: who answers has not waited for it.
    let mut told = post("/jobs/validate", "");
    let length = http::HeaderValue::from(BYTES_MAX + 1);
    told.headers_mut().insert("content-length", length);
    let (parts, _) = told.into_parts();
    let nothing = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let told = http::Request::from_parts(parts, nothing);
    assert_eq!(world.send(told).await.0, 413);
    // Nobody told how long it is.
    let piece = Bytes::from(vec![b' '; 64 << 10]);
    let pieces =
        futures::stream::repeat_with(move || Ok::<_, Infallible>(Frame::data(piece.clone())));
    let (parts, _) = post("/jobs/validate", "").into_parts();
    let endless = http::Request::from_parts(parts, StreamBody::new(pieces));
    assert_eq!(world.send(endless).await.0, 413);
}

#[tokio::test]
async fn long_bodies_that_never_come_hold_up_no_short_ones() {
    let world = World::new().await;
    let mut waiting = Vec::new();
    for _ in 0..30 {
        let mut request = post("/jobs/validate", "");
        let length = http::HeaderValue::from(BYTES_MAX);
        request.headers_mut().insert("content-length", length);
        let (parts, _) = request.into_parts();
        let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let stream = world.connect(&world.authorities).await.expect("TLS");
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        waiting.push(tokio::spawn(async move {
            sender
                .send_request(http::Request::from_parts(parts, never))
                .await
        }));
    }
    let asked = request("CREATE", "jobs", &job("j"));
    let response = world.review("/jobs/mutate", asked);
    // The long ones are given up after ten seconds.
    let within = std::time::Duration::from_secs(8);
    let response = tokio::time::timeout(within, response).await;
    assert_eq!(response.expect("it does not wait")["allowed"], true);
    for one in &waiting {
        one.abort();
    }
}

#[tokio::test]
async fn the_largest_bodies_are_judged() {
    let world = World::new().await;
    let mut large = job("j");
    let text = "x".repeat(BYTES_MAX - 1_000);
    large["metadata"]["annotations"] = json!({ "text": text });
    let response = world.review("/jobs/mutate", request("CREATE", "jobs", &large));
    assert_eq!(response.await["allowed"], true);
}

#[tokio::test]
async fn health_is_told_without_tls() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let door = server::Door::Health(Box::new(|| None.into()), None);
    let listening = server::open(address, door).await.expect("a socket");
    let mut codes = Vec::new();
    for path in ["/healthz", "/else"] {
        let socket = tokio::net::TcpStream::connect(listening.address).await;
        let io = hyper_util::rt::TokioIo::new(socket.expect("a socket"));
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        let request = http::Request::get(path).header("host", "localhost");
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        codes.push(answer.status().as_u16());
    }
    assert_eq!(codes, [200, 404]);
    listening.end().await;
}
