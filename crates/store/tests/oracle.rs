//! What a real API server answered to thousands of slightly wrong objects, and we answer the same.
//!
//! `oracle/bases.json` has a valid object of every kind; each line of `oracle/create.jsonl` changes
//! one place in one of them and says what the real server answered (see `oracle/README.md`).

use std::collections::BTreeMap;

use api::admission::Verdict;
use api::time::Time;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Begin, Entropy, Method, Request, Settings, Store, User};

const BASES: &str = include_str!("oracle/bases.json");
const CREATE: &str = include_str!("oracle/create.jsonl");
const BOUNDS: &str = include_str!("oracle/bounds.jsonl");

/// Where a kind is made, and a valid object of it.
#[derive(Deserialize)]
struct Base {
    path: String,
    object: Value,
}

/// One change of a base and the answer to it.
#[derive(Deserialize)]
struct Case {
    base: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    op: String,
    #[serde(default)]
    value: Value,
    answer: Answer,
}

/// One step of a story and what was answered.
#[derive(Deserialize)]
struct Step {
    method: String,
    path: String,
    body: Value,
    code: u16,
    #[serde(default)]
    message: String,
    #[serde(default)]
    causes: Value,
    /// A place in the answer, and what stood there.
    #[serde(default)]
    show: String,
    #[serde(default)]
    value: Value,
}

/// What matters of an answer.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Answer {
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    causes: usize,
}

struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
    }
}

const NOW: Time = Time(1_800_000_000_000_000);

struct Plane(Store);

impl Plane {
    fn new() -> Plane {
        let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
        let commit = store.start(NOW).expect("a new plane has objects to make");
        store.finish(commit.ticket, NOW);
        let mut plane = Plane(store);
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "sweep" },
        });
        plane.post("/api/v1/namespaces", "", &namespace);
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" },
            "automountServiceAccountToken": false,
        });
        plane.post("/api/v1/namespaces/sweep/serviceaccounts", "", &account);
        plane
    }

    fn post(&mut self, path: &str, query: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::Post, path, query, body)
    }

    fn ask(&mut self, method: Method, path: &str, query: &str, body: &Value) -> (u16, Value) {
        let content_type = match method {
            Method::Patch => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
            content_type: content_type.to_owned(),
            body,
            user: User::admin(),
            user_agent: String::new(),
        };
        let begin = self.0.begin(&request, NOW, &mut |_, _| Verdict::Allowed {
            object: None,
            warnings: Vec::new(),
        });
        let response = match begin {
            Begin::Done(response) => response,
            Begin::Commit(commit) => self.0.finish(commit.ticket, NOW),
            other => panic!("{other:?}"),
        };
        let body = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.code, body)
    }
}

fn changed(base: &Value, case: &Case) -> Value {
    let mut object = base.clone();
    let Some((parent, last)) = case.at.rsplit_once('/') else {
        return object;
    };
    if case.op == "add" {
        let entry = case.value.as_array().expect("a key and a value");
        let key = entry[0].as_str().expect("a key").to_owned();
        let at = if case.at == "/" { "" } else { case.at.as_str() };
        object.pointer_mut(at).expect("a place")[key] = entry[1].clone();
        return object;
    }
    let last = last.replace("~1", "/").replace("~0", "~");
    match (
        object.pointer_mut(parent).expect("a place"),
        case.op.as_str(),
    ) {
        (Value::Object(map), "drop") => {
            map.remove(&last);
        }
        (Value::Array(list), "drop") => {
            list.remove(last.parse().expect("an index"));
        }
        (Value::Array(list), _) => {
            let index: usize = last.parse().expect("an index");
            list[index] = case.value.clone();
        }
        (parent, _) => parent[last.as_str()] = case.value.clone(),
    }
    object
}

fn answer(code: u16, body: &Value) -> Answer {
    if body["kind"] != "Status" {
        return Answer {
            code,
            ..Answer::default()
        };
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Answer {
        code,
        reason: text(&body["reason"]),
        message: text(&body["message"]),
        causes: body["details"]["causes"].as_array().map_or(0, Vec::len),
    }
}

#[test]
fn wrong_objects_are_answered_as_the_real_server_answers_them() {
    let bases: BTreeMap<String, Base> = serde_json::from_str(BASES).expect("JSON");
    let mut plane = Plane::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in CREATE.lines() {
        let case: Case = serde_json::from_str(line).expect("JSON");
        let base = &bases[&case.base];
        let object = changed(&base.object, &case);
        let query = "dryRun=All&fieldValidation=Strict";
        let (code, body) = plane.post(&base.path, query, &object);
        let ours = answer(code, &body);
        count += 1;
        if ours != case.answer {
            wrong.push(format!(
                "{} {} {} {}\n  real {} {} {} {}\n  ours {} {} {} {}",
                case.base,
                case.op,
                case.at,
                case.value,
                case.answer.code,
                case.answer.reason,
                case.answer.causes,
                case.answer.message,
                ours.code,
                ours.reason,
                ours.causes,
                ours.message
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} answers differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn ranges_quotas_and_budgets_bind_as_on_the_real_server() {
    let mut plane = Plane::new();
    for (path, kind, name) in [
        ("/api/v1/namespaces", "Namespace", "bounds"),
        (
            "/api/v1/namespaces/bounds/serviceaccounts",
            "ServiceAccount",
            "default",
        ),
    ] {
        let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
        plane.post(path, "", &object);
    }
    let mut wrong = Vec::new();
    for (index, line) in BOUNDS.lines().enumerate() {
        let step: Step = serde_json::from_str(line).expect("JSON");
        let method = Method::parse(&step.method).expect("a method");
        let (code, body) = plane.ask(method, &step.path, "", &step.body);
        let is_failure = body["kind"] == "Status" && code >= 400;
        let message = match is_failure {
            true => body["message"].as_str().unwrap_or_default(),
            false => "",
        };
        let causes = match is_failure {
            true => body["details"]["causes"].clone(),
            false => Value::Null,
        };
        let shown = match &*step.show {
            "" => &Value::Null,
            place => body.pointer(place).unwrap_or(&Value::Null),
        };
        if (code, message, &causes, shown) != (step.code, &*step.message, &step.causes, &step.value)
        {
            wrong.push(format!("line {}: {line}\n  ours {code} {body}", index + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
