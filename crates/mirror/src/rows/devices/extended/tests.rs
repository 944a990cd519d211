use serde_json::{Value, json};

use super::*;

fn pod(init: &Value, main: &Value) -> Pod {
    let spec = json!({ "initContainers": init, "containers": main });
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).expect("a pod")
}

fn container(name: &str, chips: i64) -> Value {
    let requests = json!({ "cpu": "1", "example.com/chip": chips.to_string(), "memory": "1Gi" });
    json!({ "name": name, "resources": { "requests": requests } })
}

fn sidecar(name: &str, chips: i64) -> Value {
    let mut sidecar = container(name, chips);
    sidecar["restartPolicy"] = json!("Always");
    sidecar
}

/// The requests, and what each container has.
fn asked(init: &Value, main: &Value) -> (String, String) {
    let all = requests(&pod(init, main), ["example.com/chip"]);
    let short = |name: &str| name.replace("container-", "").replace("-request-1", "");
    let wants = all.requests.iter();
    let wants = wants.map(|it| format!("{}:{}", short(&it.name), it.count));
    let uses = all.mappings.iter();
    let uses = uses.map(|it| format!("{}={}", it.container_name, short(&it.request_name)));
    (
        wants.collect::<Vec<_>>().join(" "),
        uses.collect::<Vec<_>>().join(" "),
    )
}

#[test]
fn containers_have_devices_of_their_own_and_init_containers_those_of_later_ones() {
    let none = json!([]);
    let (a, b) = (container("a", 2), container("b", 1));
    for (init, main, wants, uses) in [
        (none.clone(), json!([a, b]), "0:2 1:1", "a=0 b=1"),
        (none.clone(), json!([container("a", 0), b]), "1:1", "b=1"),
        // It finds all it wants, or so much of it, with those who come later.
        (
            json!([container("i", 1)]),
            json!([a, b]),
            "1:2 2:1",
            "a=1 b=2 i=1",
        ),
        (
            json!([container("i", 3)]),
            json!([a, b]),
            "1:2 2:1",
            "a=1 b=2 i=1 i=2",
        ),
        (
            json!([container("i", 5)]),
            json!([a, b]),
            "0:2 1:2 2:1",
            "a=1 b=2 i=1 i=2 i=0",
        ),
        // What several lack is had once.
        (
            json!([container("i", 4), container("j", 6), container("k", 3)]),
            json!([a, b]),
            "1:3 3:2 4:1",
            "a=3 b=4 i=3 i=4 i=1 j=3 j=4 j=1 k=3 k=4",
        ),
        // A sidecar that was started before is in use, one that comes later is not yet.
        (
            json!([sidecar("s", 1), container("i", 2)]),
            json!([b]),
            "0:1 1:1 2:1",
            "s=0 b=2 i=2 i=1",
        ),
        (
            json!([container("i", 2), sidecar("s", 1)]),
            json!([b]),
            "1:1 2:1",
            "s=1 b=2 i=1 i=2",
        ),
        (json!([container("i", 2)]), none.clone(), "0:2", "i=0"),
    ] {
        let expected = (wants.to_owned(), uses.to_owned());
        assert_eq!(asked(&init, &main), expected, "{init} {main}");
    }
}

#[test]
fn requests_are_named_after_the_places_of_containers_and_resources() {
    let requests_of =
        |requests: Value| json!([{ "name": "c", "resources": { "requests": requests } }]);
    let main = requests_of(json!({
        "cpu": "1", "a.example.com/nic": "1", "b.example.com/chip": "2", "memory": "1Gi",
    }));
    let all = requests(
        &pod(&json!([]), &main),
        ["a.example.com/nic", "b.example.com/chip"],
    );
    let names = all
        .requests
        .iter()
        .map(|it| (it.name.as_str(), &*it.resource, it.count));
    let names: Vec<_> = names.collect();
    assert_eq!(
        names,
        [
            ("container-0-request-0", "a.example.com/nic", 1),
            ("container-0-request-1", "b.example.com/chip", 2),
        ]
    );
}
