//! What a watch brings, from an imitation of an API.

use std::sync::Mutex;

use super::*;
use crate::cluster::imitation::Told;

/// Lists that follow one another, of which the last stays.
fn following(lists: Vec<Value>) -> Told<impl Fn(&str) -> (u16, Value)> {
    let lists = Mutex::new(lists);
    Told(move |_: &str| {
        let mut lists = lists.lock().unwrap();
        let list = match lists.len() {
            1 => lists[0].clone(),
            _ => lists.remove(0),
        };
        (200, list)
    })
}

fn list(versions: [u32; 2]) -> Value {
    let item = |name: &str, version: u32| json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version.to_string() } });
    let items = [item("a", versions[0]), item("b", versions[1])];
    json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "9" }, "items": items })
}

/// A machine that died keeps its connections open, and nothing comes from them.
#[tokio::test(start_paused = true)]
async fn a_watch_of_a_dead_server_is_given_up_and_tells_only_what_is_new() {
    let cluster = following(vec![list([1, 1]), list([1, 2])]);
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
