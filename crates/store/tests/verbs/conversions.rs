//! Conversion webhooks: when they are asked, and that owners keep what they know in other versions.

use store::{Answer, Talk};

use super::definitions::{events, two_versions};
use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CATS: &str = "/apis/pets.dev/v1/namespaces/default/cats";

/// What is `fur` in v1 is `coat` in v2.
fn converted(body: &[u8]) -> Answer {
    let review: Value = serde_json::from_slice(body).expect("JSON");
    let wanted = review["request"]["desiredAPIVersion"].clone();
    let (from, to) = match wanted.as_str() {
        Some("pets.dev/v2") => ("fur", "coat"),
        _ => ("coat", "fur"),
    };
    let objects = review["request"]["objects"].as_array().expect("objects");
    let objects: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            object["apiVersion"] = wanted.clone();
            let map = object.as_object_mut().expect("an object");
            if let Some(value) = map.remove(from) {
                map.insert(to.to_owned(), value);
            }
            object
        })
        .collect();
    let answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"],
            "result": { "status": "Success" },
            "convertedObjects": objects,
        },
    });
    Ok(answer.to_string().into_bytes())
}

fn unreachable(_: &[u8]) -> Answer {
    Err("connection refused".to_owned())
}

/// A plane whose cats have two versions.
fn plane() -> Plane {
    let mut plane = Plane::new();
    let conversion = json!({ "strategy": "Webhook", "webhook": {
        "clientConfig": { "url": "https://hooks.example/convert" },
        "conversionReviewVersions": ["v1"],
    } });
    let (code, body) = plane.ask("POST", CRDS, &two_versions("v1", conversion));
    assert_eq!(code, 201, "{body}");
    plane
}

/// Carries a request through, letting `hook` answer each call.
fn through(
    plane: &mut Plane,
    hook: fn(&[u8]) -> Answer,
    (method, target): (&str, &str),
    body: &Value,
) -> (u16, Value) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let content_type = match method {
        "PATCH" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let request = Request {
        method: Method::parse(method).expect("a method"),
        path: path.to_owned(),
        query: query.to_owned(),
        accept: String::new(),
        content_type: content_type.to_owned(),
        body: match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        },
        user: User::admin(),
        user_agent: String::new(),
    };
    let mut talk = Talk::new(NOW);
    loop {
        let begin = plane
            .0
            .resume(&request, talk, &mut |_, _| Verdict::Allowed {
                object: None,
                warnings: Vec::new(),
            });
        let Begin::Call(calls) = begin else {
            let response = plane.end(begin);
            let body = serde_json::from_slice(&response.body).expect("JSON");
            return (response.code, body);
        };
        let answers = calls.calls.iter().map(|call| hook(&call.body)).collect();
        talk = calls.answer(answers);
    }
}

fn cat(version: &str, name: &str, fields: Value) -> Value {
    let mut cat = json!({
        "apiVersion": format!("pets.dev/{version}"),
        "kind": "Cat",
        "metadata": { "name": name },
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        cat[key] = value.clone();
    }
    cat
}

/// Who owns what: `manager version: fields`.
fn owners(cat: &Value) -> Vec<String> {
    let entries = cat["metadata"]["managedFields"].as_array();
    let told = |entry: &Value| {
        let (_, version) = entry["apiVersion"].as_str()?.split_once('/')?;
        let fields = &entry["fieldsV1"];
        Some(format!(
            "{} {version}: {fields}",
            entry["manager"].as_str()?
        ))
    };
    entries.into_iter().flatten().filter_map(told).collect()
}

#[test]
fn a_conversion_webhook_is_asked_for_reads_writes_and_watches() {
    let mut plane = plane();
    let second = CATS.replace("v1", "v2");
    let body = cat("v2", "a", json!({ "coat": "red" }));
    let (_, made) = through(&mut plane, converted, ("POST", &second), &body);
    assert_eq!(
        (&made["apiVersion"], &made["coat"]),
        (&json!("pets.dev/v2"), &json!("red"))
    );
    let (_, stored) = plane.ask("GET", &format!("{CATS}/a"), &Value::Null);
    assert_eq!(stored["fur"], "red");
    let (_, list) = through(&mut plane, converted, ("GET", &second), &Value::Null);
    assert_eq!(list["items"][0]["coat"], "red");

    let mut watch = plane.watch(&format!("{second}?watch=1"));
    let mut out = Vec::new();
    assert_eq!(
        plane.0.poll_watch(&mut watch, NOW, &mut out),
        WatchStep::Call
    );
    let calls = watch.take_calls();
    let answers = calls.iter().map(|call| converted(&call.body)).collect();
    watch.hear(calls, answers);
    let (kind, object) = events(&plane, &mut watch).remove(0);
    assert_eq!((&*kind, &object["coat"]), ("ADDED", &json!("red")));
}

#[test]
fn a_watch_whose_objects_cannot_be_converted_says_why_and_ends() {
    let mut plane = plane();
    let body = cat("v1", "a", json!({ "fur": "red" }));
    let (code, _) = plane.ask("POST", CATS, &body);
    assert_eq!(code, 201);
    let mut watch = plane.watch(&format!("{}?watch=1", CATS.replace("v1", "v2")));
    let mut out = Vec::new();
    plane.0.poll_watch(&mut watch, NOW, &mut out);
    let calls = watch.take_calls();
    let answers = calls.iter().map(|call| unreachable(&call.body)).collect();
    watch.hear(calls, answers);
    assert_eq!(
        plane.0.poll_watch(&mut watch, NOW, &mut out),
        WatchStep::End
    );
    let told = String::from_utf8(out).expect("text");
    assert!(
        told.contains("Kind=Cat failed: connection refused"),
        "{told}"
    );
}

#[test]
fn an_owner_in_another_version_is_asked_and_loses_what_is_taken() {
    let mut plane = plane();
    let first = ("PATCH", &*format!("{CATS}/a?fieldManager=one"));
    let body = cat("v1", "a", json!({ "fur": "red" }));
    let (code, made) = through(&mut plane, converted, first, &body);
    assert_eq!(
        (code, owners(&made)),
        (201, vec![r#"one v1: {"f:fur":{}}"#.into()])
    );

    let second = format!("{}/a?fieldManager=two", CATS.replace("v1", "v2"));
    let body = cat("v2", "a", json!({ "coat": "blue" }));
    let (code, refused) = through(&mut plane, converted, ("PATCH", &second), &body);
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"one\": .fur"
    );
    let forced = format!("{second}&force=true");
    let (code, taken) = through(&mut plane, converted, ("PATCH", &forced), &body);
    assert_eq!(
        (code, owners(&taken)),
        (200, vec![r#"two v2: {"f:coat":{}}"#.into()])
    );
}

#[test]
fn without_its_webhook_an_apply_fails_and_an_update_forgets_who_owned() {
    let mut plane = plane();
    let first = format!("{CATS}/a?fieldManager=one");
    let body = cat("v1", "a", json!({ "fur": "red" }));
    through(&mut plane, converted, ("PATCH", &first), &body);
    let second = format!("{}/a?fieldManager=two", CATS.replace("v1", "v2"));
    let body = cat("v2", "a", json!({ "coat": "red" }));
    let (code, both) = through(&mut plane, converted, ("PATCH", &second), &body);
    assert_eq!((code, owners(&both).len()), (200, 2));

    let mut body = cat("v1", "a", json!({ "fur": "blue" }));
    let (code, refused) = through(&mut plane, unreachable, ("PATCH", &first), &body);
    assert_eq!(code, 500);
    assert_eq!(
        refused["message"],
        "conversion webhook for pets.dev/v1, Kind=Cat failed: connection refused"
    );
    body["metadata"]["resourceVersion"] = both["metadata"]["resourceVersion"].clone();
    let whole = format!("{CATS}/a");
    let (code, put) = through(&mut plane, unreachable, ("PUT", &whole), &body);
    assert_eq!((code, &put["fur"]), (200, &json!("blue")));
    assert_eq!(owners(&put), Vec::<String>::new());
}
