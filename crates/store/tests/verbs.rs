//! What clients rely on, one sentence a test, through the store's door.

#[path = "verbs/apply.rs"]
mod apply;
#[path = "verbs/bad_input.rs"]
mod bad_input;
#[path = "verbs/conversions.rs"]
mod conversions;
#[path = "verbs/deep.rs"]
mod deep;
#[path = "verbs/definitions.rs"]
mod definitions;
#[path = "verbs/fading.rs"]
mod fading;
#[path = "verbs/hostile.rs"]
mod hostile;
#[path = "verbs/kinds.rs"]
mod kinds;
#[path = "verbs/native_groups.rs"]
mod native_groups;
#[path = "verbs/numatopologies.rs"]
mod numatopologies;
#[path = "verbs/odd.rs"]
mod odd;
#[path = "verbs/plugins.rs"]
mod plugins;
#[path = "verbs/webhooks.rs"]
mod webhooks;

use api::admission::Verdict;
use api::time::Time;
use serde_json::{Value, json};
use store::{
    Begin, Entropy, Method, Request, Response, Settings, Store, Talk, User, Watch, WatchStep,
};

/// Counts instead of drawing: the same names in every run.
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

/// A body of a defined kind must say what it is; scenarios leave that to the path.
fn of_its_kind(method: &str, path: &str, body: Vec<u8>) -> Vec<u8> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ["apis", group, version, rest @ ..] = &parts[..] else {
        return body;
    };
    let is_defined = group.contains('.') && !group.ends_with(".k8s.io");
    let plural = match rest {
        ["namespaces", _, plural, ..] | [plural, ..] => *plural,
        [] => return body,
    };
    let says_kind = body.windows(7).any(|part| part == b"\"kind\":");
    if !is_defined || !matches!(method, "POST" | "PUT") || says_kind || !body.starts_with(b"{") {
        return body;
    }
    let kind = match plural {
        "podgroups" => "PodGroup".to_owned(),
        _ => {
            let singular = plural.trim_end_matches('s');
            singular[..1].to_uppercase() + &singular[1..]
        }
    };
    let head = format!(r#"{{"apiVersion":"{group}/{version}","kind":"{kind}""#);
    let comma = if body.len() > 2 { "," } else { "" };
    [head.as_bytes(), comma.as_bytes(), &body[1..]].concat()
}

impl Plane {
    fn new() -> Plane {
        let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
        let commit = store.start(NOW).expect("a new plane has objects to make");
        store.finish(commit.ticket, NOW);
        Plane(store)
    }

    fn begin(&mut self, method: &str, target: &str, content_type: &str, body: &Value) -> Begin {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        self.begin_bytes(method, target, content_type, body)
    }

    fn begin_bytes(&mut self, method: &str, target: &str, content: &str, body: Vec<u8>) -> Begin {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            method: Method::parse(method).expect("a method"),
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
            content_type: content.to_owned(),
            user_agent: "tests/1.0".to_owned(),
            body: of_its_kind(method, path, body),
            user: User::admin(),
        };
        self.0.begin(&request, NOW, &mut |_, _| Verdict::Allowed {
            object: None,
            warnings: Vec::new(),
        })
    }

    fn response(&mut self, method: &str, target: &str, content: &str, body: &Value) -> Response {
        let begin = self.begin(method, target, content, body);
        self.end(begin)
    }

    fn send(&mut self, method: &str, target: &str, content: &str, body: Vec<u8>) -> Response {
        let begin = self.begin_bytes(method, target, content, body);
        self.end(begin)
    }

    fn end(&mut self, begin: Begin) -> Response {
        match begin {
            Begin::Done(response) => response,
            Begin::Commit(commit) => self.0.finish(commit.ticket, NOW),
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, method: &str, target: &str, body: &Value) -> (u16, Value) {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let response = self.response(method, target, content, body);
        let value = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.code, value)
    }

    fn read_as(&self, target: &str, accept: &str) -> Value {
        let request = Request {
            method: Method::Get,
            path: target.to_owned(),
            query: String::new(),
            accept: accept.to_owned(),
            content_type: String::new(),
            user_agent: String::new(),
            body: Vec::new(),
            user: User::admin(),
        };
        match self.0.read(&request, NOW) {
            Some(Begin::Done(response)) => serde_json::from_slice(&response.body).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    fn watch(&mut self, target: &str) -> Box<Watch> {
        match self.begin("GET", target, "", &Value::Null) {
            Begin::Watch(watch) => watch,
            other => panic!("{other:?}"),
        }
    }

    /// What a watch says now: `ADDED name` and so on, and the step.
    fn said(&self, watch: &mut Watch, now: Time) -> (Vec<String>, WatchStep) {
        let mut out = Vec::new();
        let step = self.0.poll_watch(watch, now, &mut out);
        let lines = String::from_utf8(out).expect("text");
        let said = lines
            .lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line).expect("JSON");
                let what = event["object"]["metadata"]["name"]
                    .as_str()
                    .or(event["object"]["reason"].as_str())
                    .unwrap_or("-");
                format!("{} {what}", event["type"].as_str().expect("a type"))
            })
            .collect();
        (said, step)
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

fn pod(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "c", "image": "i" }] } })
}

#[test]
fn refusals_speak_upstreams_words() {
    let mut plane = Plane::new();
    plane.ask("POST", MAPS, &map("taken"));
    let stale = json!({ "metadata": { "resourceVersion": "1" } });
    let stranger = json!({ "metadata": { "uid": "other" } });
    let rows = [
        (
            "GET",
            format!("{PODS}/x"),
            Value::Null,
            404,
            "pods \"x\" not found",
        ),
        (
            "POST",
            MAPS.to_owned(),
            map("taken"),
            409,
            "configmaps \"taken\" already exists",
        ),
        (
            "POST",
            MAPS.replace("default", "nowhere"),
            map("x"),
            404,
            "namespaces \"nowhere\" not found",
        ),
        (
            "PATCH",
            format!("{MAPS}/taken"),
            stale,
            409,
            "Operation cannot be fulfilled on configmaps \"taken\": the object has been modified; please apply your changes to the latest version and try again",
        ),
        (
            "PATCH",
            format!("{MAPS}/taken"),
            stranger,
            422,
            "ConfigMap \"taken\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable",
        ),
        (
            "GET",
            "/api/v1/nothing".to_owned(),
            Value::Null,
            404,
            "the server could not find the requested resource",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default".to_owned(),
            Value::Null,
            403,
            "namespaces \"default\" is forbidden: this namespace may not be deleted",
        ),
        (
            "POST",
            format!("{PODS}?fieldValidation=Strict"),
            json!({ "metadata": { "name": "x" }, "spec": { "color": 1, "containers": [] } }),
            400,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.color\"",
        ),
        (
            "POST",
            PODS.to_owned(),
            json!({ "metadata": { "name": "x" }, "spec": { "priorityClassName": "none", "containers": [{ "name": "c", "image": "i" }] } }),
            403,
            "pods \"x\" is forbidden: no PriorityClass with name none was found",
        ),
        (
            "GET",
            format!("{PODS}?fieldSelector=spec.color%3Dred"),
            Value::Null,
            400,
            "field label not supported: spec.color",
        ),
    ];
    for (method, target, body, code, message) in rows {
        let (seen, status) = plane.ask(method, &target, &body);
        assert_eq!(seen, code, "{method} {target}: {status}");
        let text = status["message"].as_str().expect("a message");
        assert!(text.starts_with(message), "{method} {target}: {text}");
    }
}

#[test]
fn a_write_is_seen_by_nobody_before_it_is_finished() {
    let mut plane = Plane::new();
    let mut watch = plane.watch(&format!("{MAPS}?watch=1"));
    let Begin::Commit(first) = plane.begin("POST", MAPS, "application/json", &map("a")) else {
        panic!("a create is a write");
    };
    assert_eq!(plane.ask("GET", &format!("{MAPS}/a"), &Value::Null).0, 404);
    assert_eq!(plane.said(&mut watch, NOW).0, Vec::<String>::new());
    // … but the next write knows of it.
    assert_eq!(plane.ask("POST", MAPS, &map("a")).0, 409);
    plane.0.finish(first.ticket, NOW);
    assert_eq!(plane.ask("GET", &format!("{MAPS}/a"), &Value::Null).0, 200);
    assert_eq!(plane.said(&mut watch, NOW).0, ["ADDED a"]);
}

#[test]
fn an_abandoned_write_never_was() {
    let mut plane = Plane::new();
    let Begin::Commit(_) = plane.begin("POST", MAPS, "application/json", &map("a")) else {
        panic!("a create is a write");
    };
    let answers = plane.0.abandon("the disk is full");
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].1.code, 503);
    assert_eq!(plane.ask("POST", MAPS, &map("a")).0, 201);
}

#[test]
fn a_write_that_changes_nothing_makes_no_revision() {
    let mut plane = Plane::new();
    plane.ask("POST", MAPS, &map("a"));
    let before = plane.0.revision();
    let (code, _) = plane.ask(
        "PATCH",
        &format!("{MAPS}/a"),
        &json!({ "data": { "a": "1" } }),
    );
    assert_eq!((code, plane.0.revision()), (200, before));
    let (_, dry) = plane.ask(
        "PATCH",
        &format!("{MAPS}/a?dryRun=All"),
        &json!({ "data": { "a": "2" } }),
    );
    assert_eq!(
        (&dry["data"]["a"], plane.0.revision()),
        (&json!("2"), before)
    );
}

#[test]
fn pages_continue_from_the_moment_of_the_first() {
    let mut plane = Plane::new();
    for name in ["a", "b", "c"] {
        plane.ask("POST", MAPS, &map(name));
    }
    let (_, first) = plane.ask("GET", &format!("{MAPS}?limit=1"), &Value::Null);
    let token = first["metadata"]["continue"]
        .as_str()
        .expect("more")
        .to_owned();
    plane.ask("DELETE", &format!("{MAPS}/b"), &Value::Null);
    plane.ask("POST", MAPS, &map("bb"));
    plane.ask(
        "PATCH",
        &format!("{MAPS}/c"),
        &json!({ "data": { "a": "9" } }),
    );
    let (_, rest) = plane.ask(
        "GET",
        &format!("{MAPS}?limit=5&continue={token}"),
        &Value::Null,
    );
    let names: Vec<&str> = rest["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(rest["items"][1]["data"]["a"], "1");
    assert_eq!(
        rest["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
}

#[test]
fn a_selector_watch_sees_objects_come_and_go() {
    let mut plane = Plane::new();
    let mut watch = plane.watch(&format!("{MAPS}?watch=1&labelSelector=on%3Dyes"));
    plane.ask("POST", MAPS, &map("a"));
    plane.ask(
        "PATCH",
        &format!("{MAPS}/a"),
        &json!({ "metadata": { "labels": { "on": "yes" } } }),
    );
    plane.ask(
        "PATCH",
        &format!("{MAPS}/a"),
        &json!({ "data": { "b": "2" } }),
    );
    plane.ask(
        "PATCH",
        &format!("{MAPS}/a"),
        &json!({ "metadata": { "labels": { "on": "no" } } }),
    );
    plane.ask("DELETE", &format!("{MAPS}/a"), &Value::Null);
    assert_eq!(
        plane.said(&mut watch, NOW).0,
        ["ADDED a", "MODIFIED a", "DELETED a"]
    );
}

#[test]
fn a_streaming_list_ends_its_first_part_with_a_bookmark() {
    let mut plane = Plane::new();
    plane.ask("POST", MAPS, &map("a"));
    let mut watch = plane.watch(&format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=90"
    ));
    assert_eq!(plane.said(&mut watch, NOW).0, ["ADDED a", "BOOKMARK -"]);
    assert_eq!(
        plane.said(&mut watch, NOW.plus_ms(60_000)).0,
        ["BOOKMARK -"]
    );
    let (said, step) = plane.said(&mut watch, NOW.plus_ms(90_000));
    assert_eq!(
        (said, step),
        (vec!["BOOKMARK -".to_owned()], WatchStep::End)
    );
}

#[test]
fn a_watch_may_begin_with_the_plane_but_not_after_now() {
    let mut plane = Plane::new();
    // Before the first objects were there.
    let mut early = plane.watch(&format!("{MAPS}?watch=1&resourceVersion=1"));
    plane.ask("POST", MAPS, &map("first"));
    assert_eq!(plane.said(&mut early, NOW).0, ["ADDED first"]);
    let revision = plane.0.revision();
    let mut watch = plane.watch(&format!("{MAPS}?watch=1&resourceVersion={revision}"));
    plane.ask("POST", MAPS, &map("a"));
    assert_eq!(plane.said(&mut watch, NOW).0, ["ADDED a"]);
    let mut ahead = plane.watch(&format!(
        "{MAPS}?watch=1&resourceVersion={}",
        revision + 100
    ));
    assert_eq!(
        plane.said(&mut ahead, NOW),
        (vec!["ERROR Expired".to_owned()], WatchStep::End)
    );
}

#[test]
fn a_pod_on_a_node_waits_for_its_kubelet() {
    let mut plane = Plane::new();
    plane.ask("POST", PODS, &pod("free"));
    plane.ask("POST", PODS, &pod("placed"));
    let binding = json!({ "metadata": { "name": "placed", "annotations": { "k": "v" } }, "target": { "name": "n1" } });
    assert_eq!(
        plane
            .ask("POST", &format!("{PODS}/placed/binding"), &binding)
            .0,
        201
    );
    assert_eq!(
        plane
            .ask("POST", &format!("{PODS}/placed/binding"), &binding)
            .0,
        409
    );
    let (_, placed) = plane.ask("GET", &format!("{PODS}/placed"), &Value::Null);
    assert_eq!(placed["spec"]["nodeName"], "n1");
    assert_eq!(placed["metadata"]["annotations"]["k"], "v");
    assert_eq!(placed["status"]["conditions"][0]["type"], "PodScheduled");
    plane.ask("DELETE", &format!("{PODS}/free"), &Value::Null);
    assert_eq!(
        plane.ask("GET", &format!("{PODS}/free"), &Value::Null).0,
        404
    );
    plane.ask("DELETE", &format!("{PODS}/placed"), &Value::Null);
    let (_, dying) = plane.ask("GET", &format!("{PODS}/placed"), &Value::Null);
    assert_eq!(dying["metadata"]["deletionGracePeriodSeconds"], 30);
    plane.ask(
        "DELETE",
        &format!("{PODS}/placed"),
        &json!({ "gracePeriodSeconds": 0 }),
    );
    assert_eq!(
        plane.ask("GET", &format!("{PODS}/placed"), &Value::Null).0,
        404
    );
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut plane = Plane::new();
    let mut held = map("a");
    held["metadata"]["finalizers"] = json!(["x.dev/hold"]);
    plane.ask("POST", MAPS, &held);
    let (_, waiting) = plane.ask("DELETE", &format!("{MAPS}/a"), &Value::Null);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    plane.ask(
        "PATCH",
        &format!("{MAPS}/a"),
        &json!({ "metadata": { "finalizers": null } }),
    );
    assert_eq!(plane.ask("GET", &format!("{MAPS}/a"), &Value::Null).0, 404);
}

#[test]
fn status_is_written_only_through_its_subresource() {
    let mut plane = Plane::new();
    let queues = "/apis/scheduling.volcano.sh/v1beta1/queues";
    let queue = json!({ "metadata": { "name": "q" }, "spec": { "weight": 1 }, "status": { "state": "Closed" } });
    let (_, made) = plane.ask("POST", queues, &queue);
    assert!(made["status"].is_null(), "{made}");
    let (_, written) = plane.ask(
        "PATCH",
        &format!("{queues}/q/status"),
        &json!({ "status": { "state": "Open" }, "spec": { "weight": 9 } }),
    );
    assert_eq!(
        (&written["status"]["state"], &written["spec"]["weight"]),
        (&json!("Open"), &json!(1))
    );
    assert_eq!(written["metadata"]["generation"], 1);
    let (_, spec) = plane.ask(
        "PATCH",
        &format!("{queues}/q"),
        &json!({ "status": { "state": "Closed" }, "spec": { "weight": 9 } }),
    );
    assert_eq!(
        (&spec["status"]["state"], &spec["spec"]["weight"]),
        (&json!("Open"), &json!(9))
    );
    assert_eq!(spec["metadata"]["generation"], 2);
}

#[test]
fn patch_types_are_those_that_upstream_takes() {
    let mut plane = Plane::new();
    plane.ask("POST", PODS, &pod("p"));
    let strategic = "application/strategic-merge-patch+json";
    let body = json!({ "metadata": { "labels": { "a": "b" } } });
    let built_in = plane.response("PATCH", &format!("{PODS}/p"), strategic, &body);
    assert_eq!(built_in.code, 200);
    let queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default";
    assert_eq!(plane.response("PATCH", queue, strategic, &body).code, 415);
    let apply = plane.response(
        "PATCH",
        &format!("{PODS}/new"),
        "application/apply-patch+yaml",
        &body,
    );
    assert_eq!(apply.code, 422, "who applies must be named");
}

#[test]
fn a_users_definition_is_served_until_it_goes() {
    let mut plane = Plane::new();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "dogs.pets.dev" },
        "spec": {
            "group": "pets.dev",
            "names": { "kind": "Dog", "plural": "dogs" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "age": { "type": "integer", "minimum": 0, "default": 3 } } },
                } } },
            }],
        },
    });
    let (code, made) = plane.ask("POST", crds, &crd);
    assert_eq!(code, 201, "{made}");
    let (_, made) = plane.ask("GET", &format!("{crds}/dogs.pets.dev"), &Value::Null);
    assert_eq!(made["status"]["conditions"][1]["type"], "Established");
    let dogs = "/apis/pets.dev/v1/namespaces/default/dogs";
    let (_, dog) = plane.ask(
        "POST",
        dogs,
        &json!({ "metadata": { "name": "rex" }, "spec": { "tail": 1 } }),
    );
    assert_eq!(dog["spec"], json!({ "age": 3 }));
    let (code, bad) = plane.ask(
        "POST",
        dogs,
        &json!({ "metadata": { "name": "old" }, "spec": { "age": -1 } }),
    );
    assert_eq!(code, 422);
    assert!(
        bad["message"]
            .as_str()
            .expect("a text")
            .starts_with("Dog.pets.dev \"old\" is invalid: spec.age: Invalid value: -1"),
        "{bad}"
    );
    plane.ask("DELETE", &format!("{crds}/dogs.pets.dev"), &Value::Null);
    assert_eq!(plane.ask("GET", dogs, &Value::Null).0, 404);
}

#[test]
fn services_get_addresses_of_their_own() {
    let mut plane = Plane::new();
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, ip: Value| json!({ "metadata": { "name": name }, "spec": { "clusterIP": ip, "ports": [{ "port": 80 }] } });
    let (_, first) = plane.ask("POST", services, &service("a", Value::Null));
    let (_, second) = plane.ask("POST", services, &service("b", Value::Null));
    let (_, headless) = plane.ask("POST", services, &service("c", json!("None")));
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let (code, _) = plane.ask(
        "POST",
        services,
        &service("d", first["spec"]["clusterIP"].clone()),
    );
    assert_eq!(code, 422);
}

#[test]
fn a_second_life_begins_where_the_first_ended() {
    let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
    let first = store.start(NOW).expect("objects to make");
    let mut records = vec![first.record];
    store.finish(first.ticket, NOW);
    let mut plane = Plane(store);
    for (method, target, body) in [
        ("POST", MAPS.to_owned(), map("a")),
        ("POST", MAPS.to_owned(), map("b")),
        ("DELETE", format!("{MAPS}/a"), Value::Null),
    ] {
        let Begin::Commit(commit) = plane.begin(method, &target, "application/json", &body) else {
            panic!("a write");
        };
        records.push(commit.record);
        plane.0.finish(commit.ticket, NOW);
    }
    let mut again = Store::new(Settings::default(), Box::new(Counting(99)));
    for record in &records {
        again.load(record).expect("a whole record");
    }
    assert!(again.start(NOW).is_none(), "nothing is missing");
    assert_eq!(again.revision(), plane.0.revision());
    let mut again = Plane(again);
    // What the first life told, it told only once.
    let mut early = again.watch(&format!("{MAPS}?watch=1&resourceVersion=1"));
    assert_eq!(
        again.said(&mut early, NOW),
        (vec!["ERROR Expired".to_owned()], WatchStep::End)
    );
    for target in [
        MAPS.to_owned(),
        "/api/v1/namespaces".to_owned(),
        PODS.to_owned(),
    ] {
        let before = plane.ask("GET", &target, &Value::Null);
        assert_eq!(again.ask("GET", &target, &Value::Null), before, "{target}");
    }
    let mut watch = again.watch(&format!("{MAPS}?watch=1&resourceVersion=1"));
    assert_eq!(again.said(&mut watch, NOW).0, ["ERROR Expired"]);
}

#[test]
fn namespaces_end_in_two_steps() {
    let mut plane = Plane::new();
    plane.ask(
        "POST",
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "n" } }),
    );
    plane.ask("DELETE", "/api/v1/namespaces/n", &Value::Null);
    let (code, status) = plane.ask("POST", &MAPS.replace("default", "n"), &map("a"));
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "configmaps \"a\" is forbidden: unable to create new content in namespace n because it is being terminated"
    );
    let emptied = json!({ "metadata": { "name": "n" }, "spec": { "finalizers": [] } });
    plane.ask("PUT", "/api/v1/namespaces/n/finalize", &emptied);
    assert_eq!(
        plane.ask("GET", "/api/v1/namespaces/n", &Value::Null).0,
        404
    );
}

#[test]
fn a_namespace_can_be_finalized_by_a_patch() {
    let mut plane = Plane::new();
    let made = json!({ "metadata": { "name": "n" } });
    plane.ask("POST", "/api/v1/namespaces", &made);
    plane.ask("DELETE", "/api/v1/namespaces/n", &Value::Null);
    let patch = json!({ "spec": { "finalizers": [] } });
    let (code, _) = plane.ask("PATCH", "/api/v1/namespaces/n/finalize", &patch);
    assert_eq!(code, 200);
    assert_eq!(
        plane.ask("GET", "/api/v1/namespaces/n", &Value::Null).0,
        404
    );
}

#[test]
fn malformed_requests_are_refused_and_nothing_breaks() {
    let mut plane = Plane::new();
    let bodies = [
        json!([]),
        json!("x"),
        json!(5),
        json!({ "metadata": [] }),
        json!({ "metadata": { "name": 5 } }),
        json!({ "metadata": { "name": "x", "labels": [] } }),
        json!({ "metadata": { "name": "x" }, "spec": "no" }),
        json!({ "metadata": { "name": "x", "finalizers": {} }, "status": [], "spec": [] }),
        json!({ "metadata": null }),
        json!({ "metadata": { "annotations": { "a": {} } } }),
    ];
    let targets = [
        PODS,
        MAPS,
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/api/v1/namespaces/default/services",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ];
    for target in targets {
        for body in &bodies {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                for suffix in [
                    "",
                    "/x",
                    "/x/status",
                    "/x/binding",
                    "/x/finalize",
                    "/x/scale",
                    "/x/eviction",
                ] {
                    let (code, answer) = plane.ask(method, &format!("{target}{suffix}"), body);
                    // The real server takes a binding to nowhere for a failure of its own.
                    let is_known = answer["message"] == "target.name: Required value";
                    assert!(
                        code != 500 || is_known,
                        "{method} {target}{suffix} {body}: {answer}"
                    );
                }
            }
        }
    }
}
