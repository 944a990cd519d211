//! A server on loopback that answers as the test says, or never.

use driver::{Ask, Credentials, Door, Topic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Target, ask, target};

/// How somebody answers.
enum Manner {
    /// With this, and closes.
    Says(String),
    /// With this, and after it the same again and again, as often as anybody listens, but no more bytes than
    /// these.
    Pours(String, Vec<u8>, usize),
    /// Takes the question, and nothing more.
    Silent,
}

/// Bytes in pieces of 4,096, without end.
fn endless() -> Manner {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let piece = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    Manner::Pours(head.to_owned(), piece.into_bytes(), usize::MAX)
}

/// What is asked of a server of this manner, what it heard, and how much it poured out.
async fn put(manner: Manner, question: Ask) -> (Result<String, String>, String, usize) {
    put_beside(tower_nobody(), manner, question).await
}

/// The same beside a cluster that holds something.
async fn put_beside(
    cluster: client::Cluster,
    manner: Manner,
    mut question: Ask,
) -> (Result<String, String>, String, usize) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let at = listener.local_addr().expect("it has an address");
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("somebody comes");
        let mut heard = vec![0; 4_096];
        let count = socket.read(&mut heard).await.expect("a question");
        heard.truncate(count);
        let poured = answer(manner, &mut socket).await;
        (String::from_utf8(heard).expect("a text"), poured)
    });
    if let Door::Address { address, .. } = &mut question.door {
        *address = format!("http://{at}/below/");
    }
    let answer = ask(&cluster.into(), &question).await;
    let answer = answer.map(|body| String::from_utf8(body).expect("a text"));
    let (heard, poured) = server.await.expect("the server ends");
    (answer, heard, poured)
}

/// Answers in this manner; how much was poured out. Whoever asked may go before the end.
async fn answer(manner: Manner, socket: &mut TcpStream) -> usize {
    let mut poured = 0;
    match manner {
        Manner::Says(text) => {
            let _ = socket.write_all(text.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
        Manner::Pours(head, bytes, most) => {
            let mut wrote = socket.write_all(head.as_bytes()).await;
            while wrote.is_ok() && poured < most {
                wrote = socket.write_all(&bytes).await;
                poured += bytes.len();
            }
        }
        Manner::Silent => {
            // It ends when the other side has gone.
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest).await;
        }
    }
    poured
}

/// A question with this body, whose answer may be so long.
fn question(method: &'static str, body: &str, bytes_max: usize) -> Ask {
    Ask {
        topic: Topic("a test".to_owned()),
        door: Door::Address {
            address: String::new(),
            insecure_skip_verify: false,
            credentials: None,
        },
        call: api::call::Call {
            method,
            target: "/api?query=1".to_owned(),
            content_type: if body.is_empty() {
                ""
            } else {
                "application/json"
            },
            body: body.as_bytes().to_vec(),
        },
        within_ms: 60_000,
        bytes_max,
    }
}

/// What is asked of a server of this manner, and what it heard.
async fn asked(manner: Manner, who: Option<(String, String)>) -> (Result<String, String>, String) {
    let mut question = question("GET", "", 1_000);
    // Only who never answers is waited for to the end.
    if matches!(manner, Manner::Silent) {
        question.within_ms = 200;
    }
    if let Door::Address { credentials, .. } = &mut question.door {
        *credentials = who.map(|(name, password)| Credentials::Plain(name, password));
    }
    let (answer, heard, _) = put(manner, question).await;
    (answer, heard)
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
    let (answer, _) = asked(endless(), None).await;
    assert_eq!(
        answer,
        Err("its answer is longer than 1000 bytes".to_owned())
    );
}

/// What an extender may answer at most, and what a socket holds beside that, whoever made it.
const CAP: usize = 10 << 20;
const ON_ITS_WAY: usize = 16 << 20;

#[tokio::test]
async fn what_is_posted_is_not_answered_at_any_length() {
    let two_gigabytes = 2_usize << 30;
    let promised = format!("HTTP/1.1 200 OK\r\nContent-Length: {two_gigabytes}\r\n\r\n");
    let too_long = Err(format!("its answer is longer than {CAP} bytes"));
    for manner in [
        Manner::Pours(promised, vec![b'0'; 1 << 16], two_gigabytes),
        endless(),
    ] {
        let (answer, heard, poured) = put(manner, question("POST", "{\"task\":{}}", CAP)).await;
        assert_eq!(answer, too_long);
        assert!(
            heard.starts_with("POST /below/api?query=1 HTTP/1.1\r\n"),
            "{heard}"
        );
        assert!(poured < 2 * CAP + ON_ITS_WAY, "{poured} bytes were taken");
    }
}

#[tokio::test]
async fn a_head_without_end_is_no_answer() {
    let head = "HTTP/1.1 200 OK\r\n".to_owned();
    let manner = Manner::Pours(head, b"x-more: of the same\r\n".to_vec(), usize::MAX);
    let (answer, _, poured) = put(manner, question("POST", "{}", CAP)).await;
    assert!(answer.is_err(), "{answer:?}");
    assert!(poured < ON_ITS_WAY, "{poured} bytes were taken");
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
        "http://host:many",
        "http://host:65536",
    ] {
        let why = target(wrong, "/api").expect_err(wrong);
        let begin = format!("{wrong} is no address: ");
        assert!(why.starts_with(&begin), "{why}");
    }
}

/// What is asked of a pod of this manner, and what it heard.
async fn asked_of_pod(
    manner: Manner,
    path: &str,
    headers: Vec<(String, String)>,
) -> (Result<Vec<u8>, String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("somebody comes");
        let mut heard = vec![0; 4_096];
        let count = socket.read(&mut heard).await.expect("it is open");
        heard.truncate(count);
        if count > 0 {
            answer(manner, &mut socket).await;
        }
        String::from_utf8(heard).expect("a text")
    });
    let mut question = question("GET", "", 1_000);
    question.call.target = path.to_owned();
    question.door = Door::Pod {
        address: "127.0.0.1".to_owned(),
        port,
        headers,
    };
    let answer = ask(&tower_nobody().into(), &question).await;
    (answer, server.await.expect("the server ends"))
}

#[tokio::test]
async fn a_pod_is_asked_with_the_fields_that_are_wanted_or_only_connected_to() {
    let headers = vec![("Host".to_owned(), "inside".to_owned())];
    let (answer, heard) = asked_of_pod(says("200 OK", "fine"), "/healthz", headers).await;
    assert_eq!(answer, Ok(b"fine".to_vec()));
    assert!(heard.starts_with("GET /healthz HTTP/1.1\r\n"), "{heard}");
    assert_eq!(heard.to_lowercase().matches("host:").count(), 1, "{heard}");
    assert!(heard.to_lowercase().contains("host: inside"), "{heard}");

    let (answer, heard) = asked_of_pod(Manner::Silent, "", Vec::new()).await;
    assert_eq!((answer, &*heard), (Ok(Vec::new()), ""));
}

#[tokio::test]
async fn a_pod_that_is_not_there_and_words_that_cannot_be_sent_are_told() {
    let headers = vec![("X-A".to_owned(), "a\r\nb".to_owned())];
    let mut question = question("GET", "", 1_000);
    question.door = Door::Pod {
        address: "nowhere".to_owned(),
        port: 1,
        headers: headers.clone(),
    };
    let answer = ask(&tower_nobody().into(), &question).await;
    let why = answer.expect_err("it is no address");
    assert!(why.contains("no address"), "{why}");
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    question.call.target = "/".to_owned();
    question.door = Door::Pod {
        address: "127.0.0.1".to_owned(),
        port,
        headers,
    };
    let answer = ask(&tower_nobody().into(), &question).await;
    assert!(answer.is_err(), "{answer:?}");
}

/// A cluster that answers so when it is asked for the Secret of credentials.
fn holding(code: u16, secret: &'static str) -> client::Cluster {
    let holds = move |request: http::Request<client::Body>| {
        assert_eq!(request.uri().path(), "/api/v1/namespaces/ns/secrets/ufm");
        let response = http::Response::builder().status(code);
        let body = http_body_util::Full::new(bytes::Bytes::from(secret));
        std::future::ready(Ok::<_, std::convert::Infallible>(
            response.body(body).expect("a response"),
        ))
    };
    client::Cluster::in_process(tower::service_fn(holds))
}

fn ufm() -> api::intent::ObjectKey {
    api::intent::ObjectKey::new(api::kind::Kind::Secret, "ns", "ufm")
}

const SECRET: &str = r#"{"data": {"username": "bWU=", "password": "c2VjcmV0"}}"#;

#[tokio::test]
async fn credentials_of_a_secret_are_read_when_they_are_needed() {
    let read = super::secret::credentials(&holding(200, SECRET), &ufm()).await;
    assert_eq!(read, Ok(("me".to_owned(), "secret".to_owned())));
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_told_with_their_secret_and_not_with_what_is_in_it() {
    let unread = "the Secret ns/ufm with its credentials cannot be read: ";
    for (code, secret, why) in [
        (403, "", format!("{unread}403")),
        (404, "", format!("{unread}404")),
        (
            200,
            "",
            format!("{unread}EOF while parsing a value at line 1 column 0"),
        ),
        (
            200,
            r#"{"data": {"password": "c2VjcmV0"}}"#,
            "the Secret ns/ufm has no key username".to_owned(),
        ),
        (
            200,
            r#"{"data": {"username": "bWU="}}"#,
            "the Secret ns/ufm has no key password".to_owned(),
        ),
        (
            200,
            r#"{"data": {"username": "bWU=", "password": "secret!"}}"#,
            "the key password of the Secret ns/ufm is no base64".to_owned(),
        ),
        (
            200,
            r#"{"data": {"username": "/w==", "password": "c2VjcmV0"}}"#,
            "the key username of the Secret ns/ufm is no text".to_owned(),
        ),
    ] {
        let read = super::secret::credentials(&holding(code, secret), &ufm()).await;
        assert_eq!(read, Err(why), "{secret}");
    }
}

#[tokio::test]
async fn who_is_not_let_in_with_credentials_of_a_secret_is_told_which() {
    for (head, who, why) in [
        (
            "401 Unauthorized",
            Credentials::Secret(ufm()),
            "it answered 401 to username and password of the Secret ns/ufm",
        ),
        (
            "403 Forbidden",
            Credentials::Secret(ufm()),
            "it answered 403 to username and password of the Secret ns/ufm",
        ),
        (
            "500 Internal Server Error",
            Credentials::Secret(ufm()),
            "it answered 500",
        ),
        (
            "401 Unauthorized",
            Credentials::Plain("me".to_owned(), "secret".to_owned()),
            "it answered 401",
        ),
    ] {
        let mut question = question("GET", "", 1_000);
        if let Door::Address { credentials, .. } = &mut question.door {
            *credentials = Some(who);
        }
        let (answer, heard, _) = put_beside(holding(200, SECRET), says(head, "{}"), question).await;
        assert_eq!(answer, Err(why.to_owned()));
        // base64 of me:secret
        assert!(heard.contains("Basic bWU6c2VjcmV0"), "{heard}");
    }
}
