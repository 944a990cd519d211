//! Nothing that was acknowledged is lost, however the process dies.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use http_body_util::BodyExt;
use server::{Api, DataLock, DiskJournal, Durability, Start, TokenKeys};
use tower::ServiceExt;

/// How often the writer is killed; `KATMAI_KILL_ROUNDS` asks for more.
const ROUNDS: u64 = 5;
/// The writing half of this test, run as a process of its own that can be killed.
const WRITER: &str = "the_writer_writes_until_it_is_killed";
const DIRECTORY: &str = "KATMAI_KILL_DIRECTORY";

fn open(directory: &Path) -> Api {
    let start = Start {
        journal: Some(Box::new(
            DiskJournal::open(directory, Durability::Process).expect("a journal"),
        )),
        reviewer: Arc::new(review::review),
        ..Start::default()
    };
    Api::start(start, TokenKeys::make(0).expect("keys")).expect("a plane")
}

async fn send(api: &Api, method: &str, path: &str, body: String) -> (u16, serde_json::Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(bytes::Bytes::from(body)))
        .expect("a request");
    let response = api.service().oneshot(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Not a test of its own: without a directory it has nothing to do.
#[tokio::test]
async fn the_writer_writes_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let directory = Path::new(&directory);
    let _lock = DataLock::take(directory).expect("the lock");
    let api = open(directory);
    let mut out = std::io::stdout();
    for number in api.revision().. {
        let path = "/api/v1/namespaces/default/configmaps";
        let body = format!(
            r#"{{"metadata":{{"name":"n{number}"}},"data":{{"filler":"{}"}}}}"#,
            "x".repeat(500)
        );
        let (code, _) = send(&api, "POST", path, body).await;
        assert!(code == 201 || code == 409, "{code}");
        writeln!(out, "wrote n{number}").expect("a reader");
        out.flush().expect("a reader");
    }
}

fn spawn(directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", WRITER, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the writer")
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9() {
    let rounds = std::env::var("KATMAI_KILL_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS);
    let directory = std::env::temp_dir().join(format!("katmai-kill-{}", std::process::id()));
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..rounds {
        let mut writer = spawn(&directory);
        let lines = BufReader::new(writer.stdout.take().expect("its output")).lines();
        // A different moment each round, counted in writes, not in time.
        let last = 3 + (round * 7) % 40;
        let mut written = 0;
        for line in lines {
            let Ok(line) = line else { break };
            if let Some((_, name)) = line.split_once("wrote ") {
                acknowledged.push(name.to_owned());
                written += 1;
            }
            if written == last {
                writer.kill().expect("it can be killed");
            }
        }
        writer.wait().expect("it has ended");
        assert!(written >= last, "round {round}: the writer wrote {written}");
    }
    let api = open(&directory);
    for name in &acknowledged {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let (code, object) = send(&api, "GET", &path, String::new()).await;
        assert_eq!(code, 200, "{name} was acknowledged and is lost");
        assert_eq!(object["metadata"]["name"], serde_json::json!(name));
    }
    drop(api);
    std::fs::remove_dir_all(&directory).expect("the directory goes");
}
