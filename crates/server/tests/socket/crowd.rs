//! Ten thousand clients that say nothing: others do not notice them.
//!
//! Server and crowd are processes of their own, for neither has room for the other's sockets.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::Value;
use server::Limits;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;

const CROWD: usize = 10_000;
/// What else a process holds open.
const FILES_BESIDE: usize = 300;
/// Connections that are being made at once.
const AT_ONCE: usize = 64;
/// Longest that one request may take beside the crowd, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(5);
/// What an idle connection may take at most, in bytes.
const CONNECTION_BYTES_MAX: usize = 64 << 10;

const ROLE: &str = "KATMAI_CROWD_ROLE";
const SERVER: &str = "crowd::the_server_serves_beside_a_crowd";
const CLIENTS: &str = "crowd::the_crowd_comes_and_says_nothing";

/// Runs a test of this file as a process of its own, with all the files that it may open.
fn run(test: &str, role: &str) -> Child {
    let script = "ulimit -Sn \"$(ulimit -Hn)\"; exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// The words of this process's role, if it has one.
fn role(of: &str) -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    let words: Vec<String> = role.split(' ').map(str::to_owned).collect();
    (words[0] == of).then_some(words)
}

/// Tells the process that started this one; the harness may be in the middle of a line.
fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{text}").expect("somebody listens");
    out.flush().expect("somebody listens");
}

/// How many files this process may open.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.and_then(|text| text.parse().ok())
        .unwrap_or(usize::MAX)
}

/// Bytes of memory that this process uses.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * 4_096
}

#[test]
fn ten_thousand_idle_connections_hold_nobody_up() {
    let ended = run(SERVER, "server").wait_with_output().expect("its end");
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("held "), "{told}");
}

/// Not a test of its own: without a role it has nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_serves_beside_a_crowd() {
    if role("server").is_none() {
        return;
    }
    let count = CROWD.min(files_max().saturating_sub(FILES_BESIDE));
    let limits = Limits {
        // Whoever comes first is still there when the last has come.
        head: Duration::from_secs(600),
        handshake: Duration::from_secs(60),
        ..Limits::default()
    };
    let plane = Plane::with(limits).await;
    assert_eq!(
        plane.as_admin("POST", MAPS, map("before", 1)).await.code,
        201
    );
    let authority = plane.folder.join("authority");
    std::fs::write(&authority, plane.identity.authority.as_bytes()).expect("a file");
    let before = memory();

    let role = format!(
        "clients {} {} {count}",
        plane.address(),
        authority.display()
    );
    let mut crowd = run(CLIENTS, &role);
    let lines = BufReader::new(crowd.stdout.take().expect("its output")).lines();
    let here = tokio::task::spawn_blocking(move || {
        let mut lines = lines.map_while(Result::ok);
        let here = lines.find(|line| line.contains("here"));
        (here, lines)
    });
    let (here, lines) = here.await.expect("it reads");
    assert_eq!(here.as_deref(), Some(&*format!("here {count}")));

    for number in 0..20 {
        let began = Instant::now();
        let made = plane
            .as_admin("POST", MAPS, map(&format!("m{number}"), 10))
            .await;
        assert_eq!(made.code, 201);
        assert_eq!(plane.as_admin("GET", MAPS, Value::Null).await.code, 200);
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    }
    let each = memory().saturating_sub(before) / count;
    assert!(each < CONNECTION_BYTES_MAX, "{each} bytes a connection");
    // They are still served when they speak.
    crowd
        .stdin
        .take()
        .expect("its input")
        .write_all(b"speak\n")
        .expect("it listens");
    let spoke = tokio::task::spawn_blocking(move || {
        let mut lines = lines;
        let spoke = lines.find(|line| line.contains("spoke"));
        // Its harness wants to say how it ended, too.
        lines.for_each(drop);
        spoke
    });
    let spoke = spoke.await.expect("it reads");
    assert_eq!(spoke.as_deref(), Some("spoke"));
    assert!(crowd.wait().expect("its end").success());
    say(&format!("held {count} connections at {each} bytes each"));
}

/// Not a test of its own: without a role it has nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_crowd_comes_and_says_nothing() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let Some(words) = role("clients") else { return };
    let address: SocketAddr = words[1].parse().expect("an address");
    let authority = std::fs::read(&words[2]).expect("an authority");
    let count: usize = words[3].parse().expect("a number");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&authority).expect("PEM"))
        .expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let come = (0..count).map(|_| {
        let connector = connector.clone();
        async move {
            let socket = TcpStream::connect(address).await.expect("a socket");
            let name = ServerName::try_from("localhost").expect("a name");
            connector.connect(name, socket).await.expect("TLS")
        }
    });
    let come = futures::stream::iter(come).buffer_unordered(AT_ONCE);
    let mut crowd: Vec<TlsStream<TcpStream>> = come.collect().await;
    say(&format!("here {}", crowd.len()));
    let mut word = String::new();
    std::io::stdin().read_line(&mut word).expect("a word");
    for at in [0, count / 2, count - 1] {
        let head =
            b"GET /livez HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer alice-token\r\n\r\n";
        crowd[at].write_all(head).await.expect("sent");
        // Else it may lie here for ever: a task that has done much at once is told that its socket is busy.
        crowd[at].flush().await.expect("sent");
        let mut answer = [0; 12];
        crowd[at].read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    say("spoke");
}
