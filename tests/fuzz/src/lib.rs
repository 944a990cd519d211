//! The store's door, with whatever bytes the fuzzer thinks of behind it.
//!
//! Every request is a dry run, so an input means the same whatever came before it.

use std::cell::RefCell;

use api::time::Time;
use serde_json::{Value, json};
use store::{Begin, Entropy, Method, Request, Settings, Store, User};

const NOW: Time = Time(1_800_000_000_000_000);

struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
    }
}

thread_local! {
    static STORE: RefCell<Store> = RefCell::new(filled());
}

fn filled() -> Store {
    let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
    let commit = store.start(NOW).expect("a new plane has objects to make");
    store.finish(commit.ticket, NOW);
    for (path, object) in [
        ("/api/v1/namespaces/default/configmaps", config_map()),
        ("/api/v1/namespaces/default/pods", pod()),
        ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", vcjob()),
    ] {
        let body = object.to_string().into_bytes();
        let request = request(Method::Post, path, "", "application/json", body);
        match begin(&mut store, &request) {
            Begin::Commit(commit) => drop(store.finish(commit.ticket, NOW)),
            other => panic!("{path} refused what everything else is tried on: {other:?}"),
        }
    }
    store
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "labels": {"a": "b"}}, "data": {"k": "v"}})
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": {
        "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "1"}], "ports": [{"containerPort": 80}]}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }})
}

fn vcjob() -> Value {
    json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "it"}, "spec": {
        "minAvailable": 1, "queue": "default",
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}],
    }})
}

fn request(method: Method, path: &str, query: &str, content: &str, body: Vec<u8>) -> Request {
    Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        accept: String::new(),
        content_type: content.to_owned(),
        body,
        user: User::admin(),
        user_agent: String::new(),
    }
}

fn begin(store: &mut Store, request: &Request) -> Begin {
    store.begin(request, NOW, &mut |review, facts| review::review(review, facts))
}

/// Sends one request as a dry run; answers its code, or none where no answer is due yet.
///
/// # Panics
/// If a dry run would write, or an answer is not one that a server may give.
pub fn send(method: &str, path: &str, query: &str, content: &str, body: &[u8]) -> Option<u16> {
    let method = Method::parse(method)?;
    let query = format!("{query}&dryRun=All");
    let request = request(method, path, &query, content, body.to_vec());
    STORE.with_borrow_mut(|store| match begin(store, &request) {
        Begin::Done(response) => {
            let told = String::from_utf8_lossy(&response.body);
            // Some requests that make no sense are the real server's own mistakes: it answers 500,
            // without a reason, and so do we. Ours have one.
            let is_answer = match response.code {
                0..500 | 501 | 504 => true,
                500 => !told.contains("\"reason\""),
                _ => false,
            };
            assert!(
                is_answer,
                "{} {path}?{query}: {} {told}",
                method.name(),
                response.code,
            );
            Some(response.code)
        }
        Begin::Commit(commit) => panic!("a dry run writes {:?}", commit.ticket),
        _ => None,
    })
}

/// Takes the first byte as a choice among the rows.
pub fn choose<'a, T>(rows: &'a [T], bytes: &'a [u8]) -> Option<(&'a T, &'a [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((&rows[usize::from(*first) % rows.len()], rest))
}
