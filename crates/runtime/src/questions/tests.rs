//! A server on loopback that answers as the test says, or never.

use driver::{Ask, Door, Topic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Target, ask, target};

/// How somebody answers.
enum Manner {
    /// With this, and closes.
    Says(String),
    /// With a head, and bytes without end.
    Endless,
    /// Takes the question, and nothing more.
    Silent,
}

/// What is asked of a server of this manner, and what it heard.
async fn asked(
    manner: Manner,
    credentials: Option<(String, String)>,
) -> (Result<String, String>, String) {
    let within_ms = match manner {
        Manner::Silent => 200,
        Manner::Says(_) | Manner::Endless => 60_000,
    };
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("somebody comes");
        let mut heard = vec![0; 4_096];
        let count = socket.read(&mut heard).await.expect("a question");
        heard.truncate(count);
        match manner {
            Manner::Says(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                let _ = socket.shutdown().await;
            }
            Manner::Endless => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let mut wrote = socket.write_all(head.as_bytes()).await;
                while wrote.is_ok() {
                    wrote = socket.write_all(b"8\r\n        \r\n").await;
                }
            }
            Manner::Silent => {
                // It ends when the other side has gone.
                let mut rest = Vec::new();
                let _ = socket.read_to_end(&mut rest).await;
            }
        }
        String::from_utf8(heard).expect("a text")
    });
    let question = Ask {
        topic: Topic("a test".to_owned()),
        door: Door::Address {
            address: format!("http://{address}/below/"),
            insecure_skip_verify: false,
            credentials,
        },
        call: api::call::Call {
            method: "GET",
            target: "/api?query=1".to_owned(),
            content_type: "",
            body: Vec::new(),
        },
        // Only who never answers is waited for to the end.
        within_ms,
        bytes_max: 1_000,
    };
    let nobody = tower_nobody();
    let answer = ask(&nobody, &question).await;
    let answer = answer.map(|body| String::from_utf8(body).expect("a text"));
    (answer, server.await.expect("the server ends"))
}

fn tower_nobody() -> client::Cluster {
    let refuses = tower::service_fn(|_: http::Request<client::Body>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::new(
            bytes::Bytes::new(),
        )))
    });
    client::Cluster::in_process(refuses)
}

fn says(head: &str, body: &str) -> Manner {
    let length = body.len();
    Manner::Says(format!(
        "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

#[tokio::test]
async fn an_answer_is_its_body() {
    let (answer, heard) = asked(says("200 OK", "{}"), None).await;
    assert_eq!(answer, Ok("{}".to_owned()));
    assert!(
        heard.starts_with("GET /below/api?query=1 HTTP/1.1\r\n"),
        "{heard}"
    );
    assert!(!heard.to_lowercase().contains("authorization"), "{heard}");
}

#[tokio::test]
async fn who_wants_a_name_is_told_it() {
    let credentials = Some(("me".to_owned(), "secret".to_owned()));
    let (_, heard) = asked(says("200 OK", "{}"), credentials).await;
    // base64 of me:secret
    assert!(heard.contains("Basic bWU6c2VjcmV0"), "{heard}");
}

#[tokio::test]
async fn what_is_no_success_is_no_answer() {
    let (answer, _) = asked(says("503 Service Unavailable", "{}"), None).await;
    assert_eq!(answer, Err("it answered 503".to_owned()));
    let (answer, _) = asked(says("302 Found", ""), None).await;
    assert_eq!(answer, Err("it answered 302".to_owned()));
}

#[tokio::test]
async fn a_long_answer_is_given_up() {
    let (answer, _) = asked(says("200 OK", &" ".repeat(1_001)), None).await;
    assert_eq!(
        answer,
        Err("its answer is longer than 1000 bytes".to_owned())
    );
    let (answer, _) = asked(Manner::Endless, None).await;
    assert_eq!(
        answer,
        Err("its answer is longer than 1000 bytes".to_owned())
    );
}

#[tokio::test]
async fn who_never_answers_is_not_waited_for() {
    let (answer, _) = asked(Manner::Silent, None).await;
    assert_eq!(answer, Err("no answer came within 200 ms".to_owned()));
}

#[test]
fn an_address_has_a_scheme_and_a_host() {
    let found = target("https://prometheus.svc/prefix/", "/api").expect("an address");
    let expected = Target {
        is_secure: true,
        host: "prometheus.svc".to_owned(),
        port: 443,
        path: "/prefix/api".to_owned(),
    };
    assert_eq!(found, expected);
    let found = target("http://[::1]:9090", "/api").expect("an address");
    assert_eq!(
        (found.host.as_str(), found.port, found.path.as_str()),
        ("::1", 9090, "/api")
    );
    for wrong in [
        "",
        "prometheus:9090",
        "ftp://a",
        "http://",
        "http://a?b=c",
        "http://a b",
    ] {
        assert!(target(wrong, "/api").is_err(), "{wrong}");
    }
}
