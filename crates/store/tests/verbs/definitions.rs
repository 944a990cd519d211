//! Definitions that come and go, and the documents that tell of them.

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";

fn cats(field: &str) -> Value {
    json!({
        "metadata": { "name": "cats.pets.dev" },
        "spec": {
            "group": "pets.dev",
            "names": { "kind": "Cat", "plural": "cats" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    field: { "type": "string" },
                } } },
            }],
        },
    })
}

#[test]
fn documents_follow_the_definitions() {
    let mut plane = Plane::new();
    let document = "/openapi/v3/apis/pets.dev/v1";
    let url = |plane: &mut Plane, path: &str| {
        let (code, index) = plane.ask("GET", "/openapi/v3", &Value::Null);
        assert_eq!(code, 200);
        index["paths"][path]["serverRelativeURL"].clone()
    };
    let fields = |plane: &mut Plane| {
        let (_, made) = plane.ask("GET", document, &Value::Null);
        let cat = &made["components"]["schemas"]["dev.pets.v1.Cat"]["properties"];
        cat.as_object().map(|map| map.keys().cloned().collect())
    };
    let none: Option<Vec<String>> = None;
    assert_eq!(fields(&mut plane), none);
    assert!(url(&mut plane, "apis/pets.dev/v1").is_null());
    assert_eq!(plane.ask("GET", "/apis/pets.dev", &Value::Null).0, 404);

    plane.ask("POST", CRDS, &cats("fur"));
    let with_fur = fields(&mut plane).expect("a schema");
    assert_eq!(with_fur, ["apiVersion", "fur", "kind", "metadata"]);
    assert_eq!(fields(&mut plane), Some(with_fur));
    let before = url(&mut plane, "apis/pets.dev/v1");
    assert_eq!(plane.ask("GET", "/apis/pets.dev", &Value::Null).0, 200);

    let patch = json!({ "spec": { "versions": cats("tail")["spec"]["versions"] } });
    plane.ask("PATCH", &format!("{CRDS}/cats.pets.dev"), &patch);
    let with_tail = fields(&mut plane).expect("a schema");
    assert_eq!(with_tail, ["apiVersion", "kind", "metadata", "tail"]);
    assert_ne!(url(&mut plane, "apis/pets.dev/v1"), before);

    plane.ask("DELETE", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    assert_eq!(fields(&mut plane), none);
    assert_eq!(plane.ask("GET", "/apis/pets.dev", &Value::Null).0, 404);
}

#[test]
fn all_schemas_stand_in_one_document_in_the_form_that_each_client_asks_for() {
    let mut plane = Plane::new();
    plane.ask("POST", CRDS, &cats("fur"));
    let ask = |plane: &Plane, accept: &str| read(plane, "/openapi/v2", accept);
    let json = ask(&plane, "application/json");
    let whole: Value = serde_json::from_slice(&json.body).expect("JSON");
    let definitions = &whole["definitions"];
    assert_eq!(
        definitions["dev.pets.v1.Cat"]["properties"]["fur"]["type"],
        "string"
    );
    let meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(
        definitions["io.k8s.api.core.v1.ConfigMap"]["properties"]["metadata"]["$ref"],
        meta
    );
    let dangling = references(&whole)
        .into_iter()
        .find(|name| definitions[name].is_null());
    assert_eq!(dangling, None, "a reference leads nowhere");

    // kubectl names the form in one way, and takes it in another.
    let kubectl = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let short = ask(&plane, kubectl);
    assert_eq!(
        short.content_type,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    assert!(
        short.body.starts_with(b"\x0a\x032.0"),
        "{:?}",
        &short.body[..8]
    );
    assert!(short.body.len() < json.body.len());

    // It follows the definitions.
    plane.ask("DELETE", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    let later = ask(&plane, "application/json");
    assert!(!String::from_utf8_lossy(&later.body).contains("dev.pets"));
}

/// The answer to a client that takes these forms.
fn read(plane: &Plane, path: &str, accept: &str) -> Response {
    let request = Request {
        method: Method::Get,
        path: path.to_owned(),
        query: String::new(),
        accept: accept.to_owned(),
        content_type: String::new(),
        user_agent: String::new(),
        body: Vec::new(),
        user: User::admin(),
    };
    match plane.0.read(&request, NOW) {
        Some(Begin::Done(response)) => response,
        other => panic!("{other:?}"),
    }
}

/// The names that `$ref`s in a document lead to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, inner)| match (key.as_str(), inner.as_str()) {
                ("$ref", Some(reference)) => {
                    vec![reference.trim_start_matches("#/definitions/").to_owned()]
                }
                _ => references(inner),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn discovery_is_told_in_the_form_that_each_client_asks_for() {
    let plane = Plane::new();
    let ask = |accept: &str| read(&plane, "/apis", accept).content_type;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for _ in 0..2 {
        assert_eq!(ask(aggregated), aggregated);
        assert_eq!(ask("application/json"), "application/json");
    }
}

#[test]
fn a_newer_program_renews_the_definitions_that_it_brings_and_no_others() {
    let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
    let first = store.start(NOW).expect("objects to make");
    let mut records = vec![first.record];
    store.finish(first.ticket, NOW);
    let mut plane = Plane(store);
    let ours = format!("{CRDS}/queues.scheduling.volcano.sh");
    let (_, shipped) = plane.ask("GET", &ours, &Value::Null);
    // What an earlier program may have stored: a field is missing.
    let mut versions = shipped["spec"]["versions"].clone();
    let schema = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let fields = schema["properties"].as_object_mut().expect("fields");
    assert!(fields.remove("weight").is_some());
    let earlier = json!({ "spec": { "versions": versions } });
    for (method, target, body) in [("PATCH", &*ours, &earlier), ("POST", CRDS, &cats("fur"))] {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let Begin::Commit(commit) = plane.begin(method, target, content, body) else {
            panic!("a write");
        };
        records.push(commit.record);
        plane.0.finish(commit.ticket, NOW);
    }
    let (_, cats) = plane.ask("GET", &format!("{CRDS}/cats.pets.dev"), &Value::Null);

    let settings = Settings::default;
    let starts = [
        Store::new(settings(), Box::new(Counting(99))),
        plane.0.again(settings(), Box::new(Counting(99))),
    ];
    for mut again in starts {
        let mut records = records.clone();
        load(&mut again, &records);
        let renewal = again.start(NOW).expect("a definition to renew");
        records.push(renewal.record);
        again.finish(renewal.ticket, NOW);
        let mut again = Plane(again);
        let (_, renewed) = again.ask("GET", &ours, &Value::Null);
        assert_eq!(renewed["spec"], shipped["spec"]);
        assert_eq!(renewed["metadata"]["uid"], shipped["metadata"]["uid"]);
        assert_eq!(renewed["metadata"]["generation"], 3);
        let (_, kept) = again.ask("GET", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
        assert_eq!(kept, cats);
        let heavy = json!({ "metadata": { "name": "q" }, "spec": { "weight": 5 } });
        let (code, queue) = again.ask("POST", QUEUES, &heavy);
        assert_eq!((code, &queue["spec"]["weight"]), (201, &json!(5)));
        let (code, _) = again.ask("GET", "/apis/pets.dev/v1/cats", &Value::Null);
        assert_eq!(code, 200);

        let mut third = again.0.again(settings(), Box::new(Counting(7)));
        load(&mut third, &records);
        assert!(third.start(NOW).is_none(), "nothing is to be renewed twice");
    }
}

fn load(store: &mut Store, records: &[Vec<u8>]) {
    for record in records {
        store.load(record).expect("a whole record");
    }
}

const CATS: &str = "/apis/pets.dev/v1/namespaces/default/cats";

/// What a definition's conditions say, each as `Type=Status Reason`.
fn conditions(object: &Value) -> String {
    let all = object["status"]["conditions"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let texts: Vec<String> = all
        .into_iter()
        .flatten()
        .map(|one| {
            let [kind, status, reason] = ["type", "status", "reason"].map(|key| text(&one[key]));
            format!("{kind}={status} {reason}")
        })
        .collect();
    texts.join(", ")
}

pub(super) fn events(plane: &Plane, watch: &mut Watch) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    plane.0.poll_watch(watch, NOW, &mut out);
    let text = String::from_utf8(out).expect("text");
    text.lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect("JSON");
            let kind = event["type"].as_str().expect("a type").to_owned();
            (kind, event["object"].clone())
        })
        .collect()
}

#[test]
fn a_definition_is_accepted_and_established_step_by_step() {
    let mut plane = Plane::new();
    let mut watch = plane.watch(&format!(
        "{CRDS}?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Dcats.pets.dev"
    ));
    events(&plane, &mut watch);
    let mut watch = plane.watch(&format!(
        "{CRDS}?watch=1&fieldSelector=metadata.name%3Dcats.pets.dev"
    ));
    let (code, made) = plane.ask("POST", CRDS, &cats("fur"));
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["status"]["conditions"], Value::Null);
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    plane.ask("DELETE", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    let told: Vec<String> = events(&plane, &mut watch)
        .iter()
        .map(|(kind, object)| format!("{kind}: {}", conditions(object)))
        .collect();
    let names = "NamesAccepted=True NoConflicts";
    let ready = "NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted";
    assert_eq!(
        told,
        [
            "ADDED: ".to_owned(),
            format!("MODIFIED: {names}, Established=False Installing"),
            format!("MODIFIED: {ready}"),
            format!("MODIFIED: {ready}, Terminating=True InstanceDeletionPending"),
            format!("MODIFIED: {ready}, Terminating=True InstanceDeletionInProgress"),
            format!("DELETED: {ready}, Terminating=True InstanceDeletionInProgress"),
        ]
    );
}

#[test]
fn a_definition_waits_for_its_instances_and_takes_no_new_ones() {
    let mut plane = Plane::new();
    plane.ask("POST", CRDS, &cats("fur"));
    let held = json!({ "metadata": { "name": "a", "finalizers": ["pets.dev/x"] } });
    assert_eq!(plane.ask("POST", CATS, &held).0, 201);
    plane.ask("POST", CATS, &json!({ "metadata": { "name": "b" } }));
    let (code, _) = plane.ask("DELETE", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    assert_eq!(code, 200);
    let (_, list) = plane.ask("GET", CATS, &Value::Null);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let (code, refused) = plane.ask("POST", CATS, &json!({ "metadata": { "name": "c" } }));
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "cats.pets.dev \"c\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    let (_, waiting) = plane.ask("GET", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    assert!(conditions(&waiting).ends_with("Terminating=True InstanceDeletionInProgress"));
    let free = json!({ "metadata": { "finalizers": null } });
    assert_eq!(plane.ask("PATCH", &format!("{CATS}/a"), &free).0, 200);
    assert_eq!(
        plane
            .ask("GET", &format!("{CRDS}/cats.pets.dev"), &Value::Null)
            .0,
        404
    );
    assert_eq!(plane.ask("GET", CATS, &Value::Null).0, 404);
}

#[test]
fn names_that_are_taken_are_waited_for() {
    let mut plane = Plane::new();
    plane.ask("POST", CRDS, &cats("fur"));
    let mut rival = cats("fur");
    rival["metadata"]["name"] = json!("kittens.pets.dev");
    rival["spec"]["names"] = json!({ "kind": "Cat", "plural": "kittens", "singular": "kitten" });
    let (code, body) = plane.ask("POST", CRDS, &rival);
    assert_eq!(code, 201, "{body}");
    let target = format!("{CRDS}/kittens.pets.dev");
    let (_, waits) = plane.ask("GET", &target, &Value::Null);
    assert_eq!(
        conditions(&waits),
        "NamesAccepted=False ListKindConflict, Established=False NotAccepted"
    );
    assert_eq!(
        waits["status"]["conditions"][0]["message"],
        "\"CatList\" is already in use"
    );
    let kittens = "/apis/pets.dev/v1/kittens";
    assert_eq!(plane.ask("GET", kittens, &Value::Null).0, 404);
    plane.ask("DELETE", &format!("{CRDS}/cats.pets.dev"), &Value::Null);
    let (_, free) = plane.ask("GET", &target, &Value::Null);
    assert_eq!(
        conditions(&free),
        "NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted"
    );
    assert_eq!(plane.ask("GET", kittens, &Value::Null).0, 200);
}

/// Two versions, of which `stored` is stored.
pub(super) fn two_versions(stored: &str, conversion: Value) -> Value {
    let mut definition = cats("fur");
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == stored,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "fur": { "type": "string" }, "coat": { "type": "string" },
            } } },
        })
    };
    definition["spec"]["versions"] = json!([version("v1"), version("v2")]);
    definition["spec"]["conversion"] = conversion;
    definition
}

#[test]
fn objects_are_shown_in_the_version_that_is_asked_for() {
    let mut plane = Plane::new();
    let none = json!({ "strategy": "None" });
    plane.ask("POST", CRDS, &two_versions("v1", none.clone()));
    let cat = json!({ "metadata": { "name": "a" }, "fur": "red" });
    assert_eq!(plane.ask("POST", CATS, &cat).0, 201);
    let second = CATS.replace("v1", "v2");
    let (_, shown) = plane.ask("GET", &format!("{second}/a"), &Value::Null);
    assert_eq!(
        (&shown["apiVersion"], &shown["fur"]),
        (&json!("pets.dev/v2"), &json!("red"))
    );
    let versions = two_versions("v2", none)["spec"]["versions"].clone();
    let change = json!({ "spec": { "versions": versions } });
    let (_, changed) = plane.ask("PATCH", &format!("{CRDS}/cats.pets.dev"), &change);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    let (_, list) = plane.ask("GET", CATS, &Value::Null);
    assert_eq!(list["items"][0]["apiVersion"], "pets.dev/v1");
    let (_, list) = plane.ask("GET", &second, &Value::Null);
    assert_eq!(list["items"][0]["apiVersion"], "pets.dev/v2");
}

#[test]
fn a_deprecated_version_is_warned_of() {
    let mut plane = Plane::new();
    let mut definition = two_versions("v2", json!({ "strategy": "None" }));
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    plane.ask("POST", CRDS, &definition);
    let cat = json!({ "metadata": { "name": "a" } });
    for (method, target, body) in [("POST", CATS, &cat), ("GET", CATS, &Value::Null)] {
        let response = plane.response(method, target, "application/json", body);
        assert_eq!(
            response.warnings,
            ["pets.dev/v1 Cat is deprecated; use pets.dev/v2 Cat"]
        );
    }
}

#[test]
fn what_was_wrong_before_and_has_not_changed_is_tolerated() {
    let mut plane = Plane::new();
    let spec = |fields: Value, rules: Value| {
        let mut definition = cats("fur");
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
            json!({ "type": "object", "properties": fields, "x-kubernetes-validations": rules });
        definition
    };
    let loose = spec(
        json!({ "a": { "type": "integer" }, "b": { "type": "string" } }),
        json!([]),
    );
    plane.ask("POST", CRDS, &loose);
    let cat = json!({ "metadata": { "name": "a" }, "spec": { "a": 1, "b": "x" } });
    assert_eq!(plane.ask("POST", CATS, &cat).0, 201);
    let tight = spec(
        json!({ "a": { "type": "integer", "minimum": 100 }, "b": { "type": "string" } }),
        json!([{ "rule": "self.a > 50", "message": "a is small" }]),
    );
    let change = json!({ "spec": { "versions": tight["spec"]["versions"] } });
    assert_eq!(
        plane
            .ask("PATCH", &format!("{CRDS}/cats.pets.dev"), &change)
            .0,
        200
    );
    let target = format!("{CATS}/a");
    let labelled = json!({ "metadata": { "labels": { "x": "y" } } });
    let merge = "application/merge-patch+json";
    let response = plane.response("PATCH", &target, merge, &labelled);
    assert_eq!(response.code, 200);
    assert_eq!(response.warnings, ["spec: Invalid value: a is small"]);
    let rows = [
        (
            json!({ "spec": { "b": "y" } }),
            "spec: Invalid value: a is small",
        ),
        (
            json!({ "spec": { "a": 2 } }),
            "[spec.a: Invalid value: 2: spec.a in body should be greater than or equal to 100, spec: Invalid value: a is small]",
        ),
    ];
    for (change, text) in rows {
        let (code, body) = plane.ask("PATCH", &target, &change);
        assert_eq!(code, 422);
        let wanted = format!("Cat.pets.dev \"a\" is invalid: {text}");
        assert_eq!(body["message"], wanted.as_str());
    }
}
