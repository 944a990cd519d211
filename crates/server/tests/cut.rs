//! A journal that was cut anywhere holds what was acknowledged before, whole, and nothing half.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use server::{Api, DiskJournal, Durability, Journal, Start, TokenKeys};
use store::journal::{Change, Record, State};
use tower::ServiceExt;

/// The length that the log is given before anything is written to it.
const LOG_BYTES: u64 = 64 << 20;

/// At how many of the cuts something is written behind them.
const NEXT_AT: usize = 7;

/// A directory that goes when this is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("katmai-cut-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    /// What stands in `from`, with these bytes for the log and zeros behind them up to `length`.
    fn copied(from: &Path, log: &[u8], length: u64) -> Directory {
        let copy = Directory::new();
        copy_all(from, &copy.0);
        let path = log_of(&copy.0);
        std::fs::write(&path, log).expect("a log");
        let file = std::fs::OpenOptions::new().write(true).open(&path);
        let file = file.expect("the log");
        file.set_len(length.max(log.len() as u64))
            .expect("its length");
        copy
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the directory goes");
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else if !is_log(&entry.path()) {
            std::fs::copy(entry.path(), &target).expect("a copy");
        } else {
            std::fs::write(&target, written(&entry.path())).expect("a copy");
        }
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}

/// The log below a data directory.
fn log_of(directory: &Path) -> PathBuf {
    let mut logs = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if is_log(&path) => logs.push(path),
                false => {}
            }
        }
    }
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

/// What was written to a log, without the zeros that it was made of.
fn written(log: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(log).expect("the log");
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut piece).expect("bytes");
        let used = piece[..read].iter().rposition(|byte| *byte != 0);
        match used {
            Some(last) => bytes.extend_from_slice(&piece[..=last]),
            None => return bytes,
        }
        if read == piece.len() && used != Some(read - 1) {
            return bytes;
        }
    }
}

/// Everything that a journal holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    revision: u64,
    objects: BTreeMap<(String, String), State>,
}

impl Kept {
    fn after(&self, record: &Record) -> Kept {
        let mut next = self.clone();
        next.revision = record.revision;
        for change in &record.changes {
            let key = (change.resource.to_string(), change.key.to_string());
            match &change.state {
                Some(state) => drop(next.objects.insert(key, state.clone())),
                None => drop(next.objects.remove(&key)),
            }
        }
        next
    }
}

fn loaded(directory: &Path) -> Result<Kept, String> {
    let mut kept = Kept::default();
    let opened = DiskJournal::open(directory, Durability::Process);
    let mut journal = opened.map_err(|error| error.chain())?;
    let read = journal.load(&mut |revision, change| {
        kept.revision = revision;
        if let Some(change) = change {
            let state = change.state.expect("what is kept is here");
            let key = (change.resource.to_string(), change.key.to_string());
            assert_eq!(kept.objects.insert(key, state), None, "each object once");
        }
        Ok(())
    });
    read.map(|()| kept).map_err(|error| error.chain())
}

fn change(key: &str, revision: u64, bytes: Option<&str>) -> Change {
    Change {
        resource: "/configmaps".into(),
        key: key.into(),
        state: bytes.map(|bytes| State {
            revision,
            bytes: bytes.as_bytes().to_vec(),
        }),
    }
}

fn records() -> Vec<Record> {
    let rows: [&[(&str, Option<&str>)]; 3] = [
        &[("default/a", Some("{\"a\":1}")), ("default/b", Some("{}"))],
        &[("default/a", None)],
        &[("default/c", Some("{\"c\":\"text\"}")), ("default/b", None)],
    ];
    let row = |(at, row): (usize, &&[(&str, Option<&str>)])| {
        let revision = 10 + at as u64;
        Record {
            revision,
            changes: row
                .iter()
                .map(|(key, bytes)| change(key, revision, *bytes))
                .collect(),
        }
    };
    rows.iter().enumerate().map(row).collect()
}

/// Writes the records one by one; where the log ended after each, and what was kept then.
fn run(directory: &Path) -> (Vec<u8>, Vec<(usize, Kept)>) {
    let mut journal = DiskJournal::open(directory, Durability::Process).expect("a journal");
    let log = log_of(directory);
    let mut states = vec![(written(&log).len(), Kept::default())];
    for record in records() {
        journal.append(&[record.encode()]).expect("it is kept");
        let next = states[states.len() - 1].1.after(&record);
        states.push((written(&log).len(), next));
    }
    (written(&log), states)
}

#[test]
fn a_log_that_is_cut_at_any_byte_holds_every_write_before_it() {
    let directory = Directory::new();
    let (log, states) = run(&directory.0);
    let begin = states[0].0;
    for length in [0, LOG_BYTES] {
        // Cut short, or never written where it was made of zeros.
        for cut in begin..=log.len() {
            let copy = Directory::copied(&directory.0, &log[..cut], length);
            let kept = loaded(&copy.0).unwrap_or_else(|why| panic!("cut at {cut}: {why}"));
            let done = states.iter().filter(|(end, _)| *end <= cut).count();
            // One that is written but for a zero at its end is written, too.
            let is_right = states[done - 1..]
                .iter()
                .take(2)
                .any(|(_, state)| *state == kept);
            assert!(
                is_right,
                "cut at {cut} of {length}, after {done} writes: {kept:?}"
            );
            // What was cut off does not come back, and what comes next is kept.
            if cut % NEXT_AT != 0 {
                continue;
            }
            let mut journal = DiskJournal::open(&copy.0, Durability::Process).expect("again");
            let next = Record {
                revision: 99,
                changes: vec![change("default/z", 99, Some("{}"))],
            };
            journal.append(&[next.encode()]).expect("it is kept");
            drop(journal);
            assert_eq!(loaded(&copy.0), Ok(kept.after(&next)), "cut at {cut}");
        }
    }
}

fn open(directory: &Path) -> Api {
    let journal = DiskJournal::open(directory, Durability::Process).expect("a journal");
    let start = Start {
        journal: Some(Box::new(journal)),
        reviewer: Arc::new(review::review),
        ..Start::default()
    };
    Api::start(start, TokenKeys::make(0).expect("keys")).expect("a plane")
}

async fn send(api: &Api, method: &str, path: &str, body: &Value) -> Value {
    let patch = "application/merge-patch+json";
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(
            "content-type",
            if method == "PATCH" {
                patch
            } else {
                "application/json"
            },
        )
        .body(http_body_util::Full::new(bytes::Bytes::from(
            body.to_string(),
        )))
        .expect("a request");
    let response = api.service().oneshot(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    let answer: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    assert!(code < 300, "{method} {path}: {answer}");
    answer
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Lists that tell what a plane holds.
async fn told(api: &Api) -> Vec<Value> {
    let mut lists = Vec::new();
    for list in [
        MAPS,
        CRDS,
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/secrets",
    ] {
        lists.push(send(api, "GET", list, &Value::Null).await);
    }
    lists
}

#[tokio::test]
async fn after_every_write_of_a_run_a_plane_starts_with_what_was_answered() {
    let directory = Directory::new();
    let api = open(&directory.0);
    let named = |name: &str, data: &str| json!({"metadata": {"name": name}, "data": {"k": data}});
    let definition = json!({"metadata": {"name": "cats.pets.dev"}, "spec": {
        "group": "pets.dev", "names": {"kind": "Cat", "plural": "cats"}, "scope": "Cluster",
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }});
    let held = json!({"metadata": {"name": "held", "finalizers": ["a.dev/b"]}});
    let one = format!("{MAPS}/one");
    let held_one = format!("{MAPS}/held");
    let writes = [
        ("POST", MAPS, named("one", "1")),
        ("PUT", &one, named("one", "2")),
        (
            "PATCH",
            &one,
            json!({"data": {"k": null}, "metadata": {"labels": {"a": "b"}}}),
        ),
        ("POST", CRDS, definition),
        ("POST", MAPS, held),
        ("DELETE", &held_one, Value::Null),
        (
            "PATCH",
            &held_one,
            json!({"metadata": {"finalizers": null}}),
        ),
        ("DELETE", &one, Value::Null),
        ("POST", MAPS, named("two", &"x".repeat(100_000))),
        ("DELETE", MAPS, Value::Null),
        ("POST", MAPS, named("three", "3")),
    ];
    for (method, path, body) in writes {
        send(&api, method, path, &body).await;
        let wanted = told(&api).await;
        let log = written(&log_of(&directory.0));
        let copy = Directory::copied(&directory.0, &log, 0);
        let after = open(&copy.0);
        assert_eq!(told(&after).await, wanted, "{method} {path}");
        drop(after);
    }
}
