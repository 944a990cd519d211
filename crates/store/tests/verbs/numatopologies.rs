//! Volcano's Numatopology, as its schema has it.

use serde_json::{Value, json};

use super::Plane;

const ALL: &str = "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies";

fn topology(spec: &Value) -> Value {
    json!({
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology",
        "metadata": { "name": "node-1" }, "spec": spec,
    })
}

#[test]
fn it_lives_beside_its_node_and_has_no_status() {
    let mut plane = Plane::new();
    let spec = json!({
        "policies": { "CPUManagerPolicy": "static" },
        "numares": { "cpu": { "allocatable": "0-3", "capacity": 4 } },
        "cpuDetail": { "0": { "numa": 0, "socket": 0, "core": 0 } },
        "podAllocations": [{ "uid": "u", "containerAllocations": [{ "allocations": { "cpu": "1" } }] }],
    });
    let (code, made) = plane.ask("POST", ALL, &topology(&spec));
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"], spec);
    assert_eq!(
        plane
            .ask("GET", &format!("{ALL}/node-1/status"), &Value::Null)
            .0,
        404
    );
    let (_, kinds) = plane.ask("GET", "/apis/nodeinfo.volcano.sh/v1alpha1", &Value::Null);
    let row = &kinds["resources"][0];
    assert_eq!(
        (&row["namespaced"], &row["shortNames"]),
        (&json!(false), &json!(["numatopo"]))
    );
}

#[test]
fn numbers_below_zero_and_of_another_kind_are_refused() {
    let mut plane = Plane::new();
    for (spec, part) in [
        (
            json!({ "cpuDetail": { "0": { "numa": -1 } } }),
            "greater than or equal to 0",
        ),
        (
            json!({ "cpuDetail": { "0": { "core": "a" } } }),
            "must be of type integer",
        ),
        (
            json!({ "numares": { "cpu": { "allocatable": 3 } } }),
            "must be of type string",
        ),
        (json!({ "podAllocations": {} }), "must be of type array"),
    ] {
        let (code, said) = plane.ask("POST", ALL, &topology(&spec));
        assert_eq!(code, 422, "{said}");
        let message = said["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{message}");
    }
}
