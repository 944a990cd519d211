//! Creates so many pods of 2 KB through the store's door, without sockets and disks: what
//! `perf stat` and `perf record` are put on. `creates [COUNT]`.

use api::admission::Verdict;
use api::time::Time;
use serde_json::json;
use store::{Begin, Entropy, Method, Request, Settings, Store, User};

const NOW: Time = Time(1_800_000_000_000_000);

struct Counting(u64);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (self.0 >> 33) as u8;
        }
    }
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(20_000);
    let mut store = Store::new(Settings::default(), Box::new(Counting(7)));
    if let Some(commit) = store.start(NOW) {
        store.finish(commit.ticket, NOW);
    }
    for number in 0..count {
        let request = Request {
            method: Method::Post,
            path: "/api/v1/namespaces/default/pods".to_owned(),
            query: String::new(),
            accept: "application/json".to_owned(),
            content_type: "application/json".to_owned(),
            body: pod(number).to_string().into_bytes(),
            user: User::admin(),
            user_agent: "creates".to_owned(),
        };
        let begin = store.begin(&request, NOW, &mut |_, _| Verdict::Allowed {
            object: None,
            warnings: Vec::new(),
        });
        match begin {
            Begin::Commit(commit) => {
                let answer = store.finish(commit.ticket, NOW);
                assert_eq!(answer.code, 201);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(store.object_count() > count);
}

fn pod(number: usize) -> serde_json::Value {
    let env: Vec<serde_json::Value> = (0..12)
        .map(|at| json!({ "name": format!("SETTING_{at}"), "value": "a value of forty letters, more or less" }))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"),
            "labels": { "example.com/a": "1", "example.com/b": "2", "example.com/c": "3" },
            "annotations": { "note": "x".repeat(200) },
        },
        "spec": {
            "schedulerName": "nobody", "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "registry.example/a/fairly/long/name:v1.2.3",
                "command": ["/bin/sh", "-c", "exec sleep 3600"], "env": env,
                "resources": {
                    "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "2", "memory": "2Gi" },
                },
            }],
        },
    })
}
