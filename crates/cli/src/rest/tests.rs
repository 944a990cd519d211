//! What a watch brings, from an imitation of an API.

use std::sync::Mutex;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;

use super::*;

/// Lists that follow one another, of which the last stays; its watches say nothing and never end.
struct Silent(Mutex<Vec<Value>>);

impl Cluster for Silent {
    fn call(&self, _: Call) -> BoxFuture<'static, Result<Answer, ClusterError>> {
        let mut lists = self.0.lock().unwrap();
        let list = match lists.len() {
            1 => lists[0].clone(),
            _ => lists.remove(0),
        };
        let answer = Answer {
            code: 200,
            body: Bytes::from(list.to_string()),
            warnings: Vec::new(),
        };
        Box::pin(async { Ok(answer) })
    }

    fn stream(&self, _: String) -> BoxFuture<'static, Result<ByteStream, ClusterError>> {
        Box::pin(async { Ok(stream::pending().boxed()) })
    }
}

fn list(versions: [u32; 2]) -> Value {
    let item = |name: &str, version: u32| json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version.to_string() } });
    let items = [item("a", versions[0]), item("b", versions[1])];
    json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "9" }, "items": items })
}

/// A machine that died keeps its connections open, and nothing comes from them.
#[tokio::test(start_paused = true)]
async fn a_watch_of_a_dead_server_is_given_up_and_tells_only_what_is_new() {
    let cluster = Silent(Mutex::new(vec![list([1, 1]), list([1, 2])]));
    let (seen, mut told) = mpsc::channel(4);
    let began = tokio::time::Instant::now();
    let watching =
        tokio::spawn(Rest::new(Arc::new(cluster)).watch("/api/v1/pods".to_owned(), seen));
    let mut heard = Vec::new();
    for _ in 0..3 {
        let Some(Seen::Changed(object)) = told.recv().await else {
            panic!("objects are told");
        };
        let meta = &object["metadata"];
        heard.push(format!(
            "{} {}",
            text(meta, &["name"]),
            text(meta, &["resourceVersion"])
        ));
    }
    assert_eq!(heard, ["a 1", "b 1", "b 2"]);
    assert_eq!(
        began.elapsed().as_secs(),
        WATCH_SECONDS + WATCH_SLACK_SECONDS
    );
    watching.abort();
}
