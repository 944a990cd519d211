//! The end of a driver that holds a Lease, at an API that answers as it is told.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use client::Body;
use driver::{ElectionSettings, Limits, Settings};
use http_body_util::Full;

use super::*;

/// A cluster that gives these answers, and what it was asked.
fn cluster(answers: &'static [(u16, &str)]) -> (Cluster, Arc<Mutex<Vec<http::Method>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&asked);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let mut asked = hears.lock().expect("nobody panicked");
        let (code, text) = answers[asked.len()];
        asked.push(request.method().clone());
        let response = http::Response::builder().status(code);
        let response = response.body(Full::new(Bytes::from(text)));
        std::future::ready(Ok::<_, Infallible>(response.expect("a response")))
    });
    (Cluster::in_process(service), asked)
}

/// A driver that holds the first version of a Lease.
fn holder() -> Driver {
    let mut driver = Driver::new(Settings {
        controllers: &[],
        controller_settings: Default::default(),
        engine: None,
        unwatched: Vec::new(),
        limits: Limits::default(),
        election: Some(ElectionSettings::new("ns", "volcano", "me")),
        seed: 7,
    });
    let (id, _read) = driver.poll_request(now()).expect("it reads its lease");
    driver.handle_got(id, Ok(None), now());
    let (id, _write) = driver.poll_request(now()).expect("it takes its lease");
    let done = WriteOutcome::Done {
        revision: 1,
        uid: "u".into(),
    };
    driver.handle_written(id, done, now());
    assert!(driver.may_write(now()));
    driver
}

const CONFLICT: &str = r#"{"kind":"Status","code":409,"reason":"Conflict"}"#;
const OURS: &str = r#"{"metadata":{"name":"volcano","namespace":"ns","uid":"u","resourceVersion":"2"},
    "spec":{"holderIdentity":"me","leaseDurationSeconds":15}}"#;
const THEIRS: &str = r#"{"metadata":{"name":"volcano","namespace":"ns","uid":"u","resourceVersion":"2"},
    "spec":{"holderIdentity":"other","leaseDurationSeconds":15}}"#;

/// S1.3: a renewal that was on its way arrived before the farewell.
#[tokio::test]
async fn a_farewell_that_meets_a_conflict_is_said_once_more_where_the_lease_still_is_ours() {
    const DONE: (u16, &str) = (200, OURS);
    const REFUSED: (u16, &str) = (409, CONFLICT);
    let rows: [(&'static [(u16, &str)], &str); 3] = [
        (&[REFUSED, DONE, DONE], "PATCH GET PATCH"),
        (&[REFUSED, DONE, REFUSED], "PATCH GET PATCH"),
        (&[REFUSED, (200, THEIRS)], "PATCH GET"),
    ];
    for (answers, expected) in rows {
        let (cluster, asked) = cluster(answers);
        farewell(&mut holder(), &cluster).await;
        let asked = asked.lock().expect("nobody panicked");
        let asked: Vec<&str> = asked.iter().map(http::Method::as_str).collect();
        assert_eq!(asked.join(" "), expected);
    }
}
