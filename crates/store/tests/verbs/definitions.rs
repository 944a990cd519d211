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
fn discovery_is_told_in_the_form_that_each_client_asks_for() {
    let plane = Plane::new();
    let ask = |accept: &str| {
        let request = Request {
            method: Method::Get,
            path: "/apis".to_owned(),
            query: String::new(),
            accept: accept.to_owned(),
            content_type: String::new(),
            user_agent: String::new(),
            body: Vec::new(),
            user: User::admin(),
        };
        match plane.0.read(&request, NOW) {
            Some(Begin::Done(response)) => response.content_type,
            other => panic!("{other:?}"),
        }
    };
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

    let mut again = Store::new(Settings::default(), Box::new(Counting(99)));
    for record in &records {
        again.load(record).expect("a whole record");
    }
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

    let mut third = Store::new(Settings::default(), Box::new(Counting(7)));
    for record in &records {
        third.load(record).expect("a whole record");
    }
    assert!(third.start(NOW).is_none(), "nothing is to be renewed twice");
}
