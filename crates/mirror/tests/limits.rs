//! What pods may use beyond what they request, as it comes to the tables where somebody looks at it, and what
//! counts for them beyond that.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Key, Tables};
use serde_json::{Value, json};

/// The burst of a pod of two containers, the second of which has none of either.
fn burst(rows: fn(Rows) -> Rows, resources: &Value) -> [i64; 2] {
    let mut rows = rows(Rows::new(vec!["volcano".into()]));
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let pod = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "p", "resourceVersion": "1",
            "annotations": { "scheduling.k8s.io/group-name": "g" },
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": resources }, { "name": "d" }],
        },
        "status": { "phase": "Pending" },
    });
    let change = mirror.apply(Kind::Pod, &pod.to_string());
    let change = change.expect("it is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let task = tables.task_keyed(&Key::new("a", "p"));
    tables.shape_of(task.expect("it is a task")).spec.burst
}

#[test]
fn a_limit_lets_a_pod_use_more_than_it_requests() {
    let requests = json!({ "cpu": "1", "memory": "1Gi" });
    for (limits, expected) in [
        (json!({ "cpu": "2500m", "memory": "3Gi" }), [1_500, 2 << 30]),
        (json!({ "cpu": "1", "memory": "1Gi" }), [0, 0]),
        (json!({ "cpu": "4" }), [3_000, 0]),
        (json!({ "example.com/chip": "4" }), [0, 0]),
        (json!({}), [0, 0]),
    ] {
        let resources = json!({ "requests": requests, "limits": limits });
        assert_eq!(burst(Rows::with_limits, &resources), expected, "{limits}");
    }
}

#[test]
fn limits_are_not_read_where_nobody_looks_at_them() {
    let resources = json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "4" } });
    assert_eq!(burst(|rows| rows, &resources), [0, 0]);
    assert_eq!(burst(Rows::with_limits, &resources), [3_000, 0]);
}

#[test]
fn containers_that_request_nothing_count_each_where_nodes_are_compared() {
    let pod = json!({
        "metadata": { "name": "p", "namespace": "a", "uid": "p", "resourceVersion": "1" },
        "spec": {
            "nodeName": "n",
            "containers": [
                { "name": "c", "resources": { "requests": { "cpu": "1" } } },
                { "name": "d" },
                { "name": "e" },
            ],
        },
    });
    let mut rows = Rows::new(vec!["volcano".into()]);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let change = mirror.apply(Kind::Pod, &pod.to_string());
    rows.feed(
        &mirror,
        &change.expect("it is read").expect("it is news"),
        &mut tables,
    );
    let node = tables.node_named("n").expect("the pod is on it");
    assert_eq!(tables.node(node).used_nonzero, [1_200, 600 << 20]);
    assert_eq!(tables.node(node).used.get(model::Kind::CPU), 1_000);
}
