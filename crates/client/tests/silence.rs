//! A server whose machine died without a word: what was asked of it ends all the same.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose server cannot answer has failed"
)]

use std::time::Duration;

use api::call::WatchLine;
use api::kind::Kind;
use client::{ClientError, Cluster};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

const LIST: &str = "HTTP/1.1 200 OK\r\ncontent-length: 47\r\n\r\n{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}";
/// A watch that has begun, and told of one pod.
const BEGUN: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
    4a\r\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"6\"}}}\n\r\n";
const SILENCE: &str = "";

type Watch = BoxStream<'static, Result<WatchLine, ClientError>>;

/// A server that says so much to each request of each connection, and then nothing more.
struct Server {
    cluster: Cluster,
    /// One for each request that came.
    came: mpsc::Receiver<()>,
}

impl Server {
    async fn saying(connections: &'static [&'static [&'static str]]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (come, came) = mpsc::channel(16);
        tokio::spawn(async move {
            for answers in connections {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(socket, answers, come.clone()));
            }
        });
        Server {
            cluster: cluster(&format!("http://{address}")).await,
            came,
        }
    }

    /// A watch that has told of the pod.
    async fn watch(&self) -> Watch {
        let mut lines = self.cluster.watch(Kind::Pod, 5, 300).await.unwrap();
        let first = lines.next().await;
        assert!(matches!(first, Some(Ok(WatchLine::Applied(_)))));
        lines
    }

    /// How long a watch takes to fail to which nobody answers. The clock stands still from when the server
    /// has it, and leaps to whatever is waited for.
    async fn fails(&mut self) -> Duration {
        let cluster = self.cluster.clone();
        let asked = tokio::spawn(async move { cluster.watch(Kind::Pod, 5, 300).await.err() });
        self.came.recv().await.unwrap();
        tokio::time::pause();
        let began = Instant::now();
        let error = asked.await.unwrap();
        assert!(matches!(error, Some(ClientError::Transport { .. })));
        let took = began.elapsed();
        tokio::time::resume();
        took
    }
}

async fn cluster(url: &str) -> Cluster {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{url}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n"
    );
    let port = url.rsplit(':').next().unwrap();
    let name = format!("katmai-silence-{}-{port}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let cluster = Cluster::from_kubeconfig(Some(&path), None).await;
    std::fs::remove_file(&path).unwrap();
    cluster.unwrap()
}

async fn answer(mut socket: TcpStream, answers: &[&str], come: mpsc::Sender<()>) {
    let mut bytes = Vec::new();
    for answer in answers {
        bytes.clear();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(socket.read_u8().await.unwrap());
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        come.send(()).await.unwrap();
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_watch_of_which_nothing_is_heard_any_more_ends_as_if_the_server_had_ended_it() {
    let server = Server::saying(&[&[BEGUN]]).await;
    let mut lines = server.watch().await;
    tokio::time::pause();
    let began = Instant::now();
    assert!(lines.next().await.is_none());
    let took = began.elapsed().as_secs();
    assert!((300..=330).contains(&took), "{took} s");
}

#[tokio::test]
async fn a_watch_that_does_not_begin_is_given_up_after_a_minute() {
    let mut server = Server::saying(&[&[SILENCE]]).await;
    let took = server.fails().await.as_secs();
    assert!((59..=60).contains(&took), "{took} s");
}

#[tokio::test]
async fn a_watch_that_took_a_dead_connection_takes_another_when_it_is_opened_again() {
    let mut server = Server::saying(&[&[LIST, SILENCE], &[BEGUN]]).await;
    let page = server.cluster.list(Kind::Pod, 0, "").await.unwrap();
    assert_eq!(page.revision, 5);
    server.came.recv().await.unwrap();
    let took = server.fails().await.as_secs();
    assert!((59..=60).contains(&took), "{took} s");
    drop(server.watch().await);
}

#[tokio::test]
async fn a_list_that_nobody_answers_is_given_up_after_a_minute() {
    let mut server = Server::saying(&[&[SILENCE]]).await;
    let cluster = server.cluster.clone();
    let asked = tokio::spawn(async move { cluster.list(Kind::Pod, 0, "").await.err() });
    server.came.recv().await.unwrap();
    tokio::time::pause();
    let error = asked.await.unwrap();
    assert!(matches!(error, Some(ClientError::Transport { .. })));
}
