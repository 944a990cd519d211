//! Slow, greedy and many clients: refused in bounded time, the others unaffected.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Answer, AsAdmin, MAPS, PODS, Plane, map, whole};

const SHORT: Duration = Duration::from_millis(50);
/// Longer than any test may wait for the server to end something.
const PATIENCE: Duration = Duration::from_secs(20);

fn alice(method: &str, target: &str) -> http::request::Builder {
    http::Request::builder()
        .method(method)
        .uri(target)
        .header("authorization", "Bearer alice-token")
        .header("content-type", "application/json")
}

/// The head of a creation whose body is `bytes` long and not sent.
fn half_a_creation(bytes: usize) -> String {
    format!(
        "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer alice-token\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    )
}

/// Everything until the server closes.
async fn rest_of(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
    // A connection that is cut may end without TLS's farewell.
    drop(read.expect("the server ends it"));
    String::from_utf8_lossy(&text).into_owned()
}

async fn get_as_admin(plane: &Plane, target: &str) -> Answer {
    let answer = plane.as_admin("GET", target, Value::Null);
    tokio::time::timeout(PATIENCE, answer)
        .await
        .expect("others are answered")
}

#[tokio::test]
async fn writes_in_flight_are_bounded_and_reads_and_watches_are_not_held_up() {
    let limits = Limits {
        mutating: 1,
        reading: 1,
        ..Limits::default()
    };
    let plane = Plane::with(limits).await;
    plane.let_alice(&["configmaps"]).await;
    let body = map("slow", 10).to_string();
    let mut slow = plane.connect("http/1.1", AsAdmin::No).await;
    slow.write_all(half_a_creation(body.len()).as_bytes())
        .await
        .expect("sent");
    slow.write_all(&body.as_bytes()[..5]).await.expect("sent");
    // The place is taken once the server has read the head: until then the next one gets in.
    let refused = loop {
        let answer = plane.send(alice("POST", MAPS), map("next", 1)).await;
        match answer.code {
            201 | 409 => tokio::task::yield_now().await,
            _ => break answer,
        }
    };
    assert_eq!(
        (refused.code, refused.text().as_str()),
        (429, "Too many requests, please try again later.\n")
    );
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(plane.send(alice("GET", MAPS), Value::Null).await.code, 200);
    let watch = plane.send(
        alice("GET", &format!("{MAPS}?watch=true&timeoutSeconds=1")),
        Value::Null,
    );
    assert_eq!(watch.await.code, 200);
    // A master is never refused for want of room.
    assert_eq!(
        plane.as_admin("POST", MAPS, map("master", 1)).await.code,
        201
    );
    slow.write_all(&body.as_bytes()[5..]).await.expect("sent");
    let mut head = [0; 12];
    slow.read_exact(&mut head).await.expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 201");
}

#[tokio::test]
async fn a_request_takes_no_longer_than_its_client_says() {
    let plane = Plane::new().await;
    plane.let_alice(&["configmaps"]).await;
    let mut slow = plane.connect("http/1.1", AsAdmin::No).await;
    let head = half_a_creation(100).replace(MAPS, &format!("{MAPS}?timeout=20ms"));
    slow.write_all(head.as_bytes()).await.expect("sent");
    let told = rest_of(&mut slow).await;
    assert!(told.starts_with("HTTP/1.1 504"), "{told}");
    assert!(
        told.contains("Timeout: request did not complete within the allotted timeout"),
        "{told}"
    );
    let odd = plane
        .send(alice("GET", &format!("{MAPS}?timeout=32")), Value::Null)
        .await;
    assert_eq!(
        (odd.code, odd.json()["message"].as_str()),
        (
            400,
            Some(
                "invalid timeout specified in the request URL - time: missing unit in duration \"32\""
            )
        )
    );
    let fine = plane
        .send(alice("GET", &format!("{MAPS}?timeout=32s")), Value::Null)
        .await;
    assert_eq!(fine.code, 200);
}

#[tokio::test]
async fn clients_that_say_nothing_or_little_are_cut_off() {
    let limits = Limits {
        head: SHORT,
        handshake: SHORT,
        ..Limits::default()
    };
    let plane = Plane::with(limits).await;
    let mut dumb = TcpStream::connect(plane.address()).await.expect("a socket");
    let mut quiet = plane.connect("http/1.1", AsAdmin::No).await;
    let mut quiet2 = plane.connect("h2", AsAdmin::No).await;
    let mut slow = plane.connect("http/1.1", AsAdmin::No).await;
    slow.write_all(b"GET /livez HTTP/1.1\r\nx: ")
        .await
        .expect("sent");
    rest_of(&mut dumb).await;
    rest_of(&mut quiet).await;
    rest_of(&mut quiet2).await;
    rest_of(&mut slow).await;
    assert_eq!(get_as_admin(&plane, "/livez").await.code, 200);
}

#[tokio::test]
async fn a_body_that_comes_drop_by_drop_is_not_waited_for() {
    let limits = Limits {
        request: Duration::from_millis(300),
        ..Limits::default()
    };
    let plane = Plane::with(limits).await;
    plane.let_alice(&["configmaps"]).await;
    let mut slow = plane.connect("http/1.1", AsAdmin::No).await;
    slow.write_all(half_a_creation(1 << 20).as_bytes())
        .await
        .expect("sent");
    let dripping = async {
        // A byte at a time, for as long as somebody takes it.
        while slow.write_all(b" ").await.is_ok() && slow.flush().await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, dripping)
        .await
        .expect("the server does not wait for all of it");
    assert_eq!(get_as_admin(&plane, "/livez").await.code, 200);
}

#[tokio::test]
async fn a_watch_whose_client_has_half_closed_ends() {
    let plane = Plane::new().await;
    let mut watch = plane.connect("http/1.1", AsAdmin::Yes).await;
    let head = format!("GET {PODS}?watch=true HTTP/1.1\r\nhost: localhost\r\n\r\n");
    watch.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    watch.read_exact(&mut answer).await.expect("an answer");
    watch.shutdown().await.expect("closed on this side");
    rest_of(&mut watch).await;
}

#[tokio::test]
async fn more_connections_than_there_may_be_close_the_idle_ones() {
    let limits = Limits {
        connections: 50,
        ..Limits::default()
    };
    let plane = Plane::with(limits).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(plane.connect("http/1.1", AsAdmin::No).await);
    }
    assert_eq!(get_as_admin(&plane, PODS).await.code, 200);
    for stream in &mut idle[..100] {
        assert_eq!(rest_of(stream).await, "");
    }
}

#[tokio::test]
async fn large_answers_are_squeezed_for_those_who_take_it() {
    let plane = Plane::new().await;
    plane.let_alice(&["configmaps"]).await;
    assert_eq!(
        plane
            .send(alice("POST", MAPS), map("large", 200_000))
            .await
            .code,
        201
    );
    let plain = plane.send(alice("GET", MAPS), Value::Null).await;
    assert!(plain.headers.get("content-encoding").is_none());
    let takes =
        |target: &str| alice("GET", target).header("accept-encoding", "deflate, gzip;q=1.0");
    let squeezed = plane.send(takes(MAPS), Value::Null).await;
    assert_eq!(squeezed.headers["content-encoding"], "gzip");
    assert_eq!(squeezed.headers["vary"], "Accept-Encoding");
    assert!(squeezed.body.len() < 10_000, "{}", squeezed.body.len());
    let mut opened = Vec::new();
    flate2::read::GzDecoder::new(&*squeezed.body)
        .read_to_end(&mut opened)
        .expect("gzip");
    assert_eq!(opened, plain.body);
    let small = plane.send(takes("/api"), Value::Null).await;
    assert!(small.headers.get("content-encoding").is_none());
    let refused = alice("GET", MAPS).header("accept-encoding", "gzip;q=0");
    let refused = plane.send(refused, Value::Null).await;
    assert!(refused.headers.get("content-encoding").is_none());
}

#[tokio::test]
async fn a_squeezed_body_is_not_opened() {
    let plane = Plane::new().await;
    plane.let_alice(&["configmaps"]).await;
    // 64 MB of nothing in 64 KB.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        std::io::Write::write_all(&mut bomb, &vec![b' '; 1 << 20]).expect("squeezed");
    }
    let bomb = bomb.finish().expect("squeezed");
    let request = alice("POST", MAPS)
        .header("host", "localhost")
        .header("content-encoding", "gzip")
        .body(Full::new(Bytes::from(bomb)))
        .expect("a request");
    let stream = plane.connect("http/1.1", AsAdmin::No).await;
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
        .await
        .expect("HTTP");
    tokio::spawn(connection);
    let answer = whole(sender.send_request(request).await.expect("an answer")).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
}

#[tokio::test]
async fn many_watches_share_one_connection() {
    let plane = Plane::new().await;
    let sender = plane.http2().await;
    let request = |target: String| {
        http::Request::builder()
            .uri(format!("https://localhost{target}"))
            .body(Full::new(Bytes::new()))
            .expect("a request")
    };
    let opened = (0..500).map(|_| {
        let mut sender = sender.clone();
        async move {
            sender.ready().await.expect("room for a stream");
            let watch =
                format!("{MAPS}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dx");
            sender
                .send_request(request(watch))
                .await
                .expect("an answer")
        }
    });
    let watches = join_all(opened).await;
    assert_eq!(plane.as_admin("POST", MAPS, map("x", 1)).await.code, 201);
    let told = watches.into_iter().map(|mut watch| async move {
        let frame = watch.frame().await.expect("a frame").expect("no error");
        frame.into_data().expect("bytes")
    });
    for bytes in join_all(told).await {
        assert!(bytes.starts_with(b"{\"type\":\"ADDED\""));
    }
}

#[tokio::test]
async fn the_end_waits_for_answers_and_takes_nobody_new() {
    let mut plane = Plane::new().await;
    plane.let_alice(&["configmaps"]).await;
    let body = map("last", 10).to_string();
    let mut slow = plane.connect("http/1.1", AsAdmin::No).await;
    slow.write_all(half_a_creation(body.len()).as_bytes())
        .await
        .expect("sent");
    let watch = plane.connect("http/1.1", AsAdmin::Yes);
    let mut watch = watch.await;
    let head = format!("GET {PODS}?watch=true HTTP/1.1\r\nhost: localhost\r\n\r\n");
    watch.write_all(head.as_bytes()).await.expect("sent");
    let mut started = [0; 12];
    watch.read_exact(&mut started).await.expect("an answer");
    let address = plane.address();
    plane.api.stop();
    let ending = tokio::spawn(plane.listening.take().expect("a server").end());
    // Once nobody new is taken, the slow one still gets its answer.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    slow.write_all(body.as_bytes()).await.expect("sent");
    let told = rest_of(&mut slow).await;
    assert!(told.starts_with("HTTP/1.1 201"), "{told}");
    rest_of(&mut watch).await;
    tokio::time::timeout(PATIENCE, ending)
        .await
        .expect("an end")
        .expect("no panic");
}

#[tokio::test]
async fn objects_and_bodies_have_their_limits() {
    let plane = Plane::new().await;
    plane.let_alice(&["configmaps"]).await;
    let large = plane.send(alice("POST", MAPS), map("large", 4 << 20)).await;
    assert_eq!(
        (large.code, large.json()["message"].as_str()),
        (413, Some("Request entity too large: limit is 3145728"))
    );
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = json!({ "metadata": { "name": "deep" }, "data": deep })
        .to_string()
        .replace('"', "");
    let answer = plane.send(alice("POST", MAPS), Value::String(deep)).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
}
