//! Definitions that come and go, and the documents that tell of them.

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

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
