//! What pods say of which node is the better one for them, read from their annotations.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Key, Tables};
use serde_json::json;

/// What a pod says that requests 2 cpu and 1 GPU, in words.
fn said(strategy: &str, weights: Option<&str>) -> String {
    let mut rows = Rows::new(vec!["volcano".into()]);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let mut annotations = json!({
        "scheduling.k8s.io/group-name": "g",
        "volcano.sh/resource-strategy-scoring-type": strategy,
    });
    if let Some(weights) = weights {
        annotations["volcano.sh/resource-strategy-weight"] = json!(weights);
    }
    let requests = json!({ "requests": { "cpu": "2", "nvidia.com/gpu": "1" } });
    let pod = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "p", "resourceVersion": "1",
            "annotations": annotations,
        },
        "spec": { "schedulerName": "volcano", "containers": [{ "name": "c", "resources": requests }] },
        "status": { "phase": "Pending" },
    });
    let change = mirror.apply(Kind::Pod, &pod.to_string());
    let change = change.expect("the pod is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let task = tables.task_keyed(&Key::new("a", "p")).expect("a task");
    let Some(strategy) = &tables.shape_of(task).spec.strategy else {
        return "as configured".to_owned();
    };
    let weights = strategy.weights.iter().flatten();
    let weights = weights.map(|(kind, weight)| format!(" {}:{weight}", tables.kinds().name(*kind)));
    let weights = match &strategy.weights {
        None => " weighed as configured".to_owned(),
        Some(_) => weights.collect(),
    };
    format!("{:?}{weights}", strategy.fill)
}

#[test]
fn a_pod_says_which_node_is_the_better_one_and_what_counts() {
    let both = Some(r#"{"nvidia.com/gpu": 5, "cpu": 1}"#);
    assert_eq!(said("MostAllocated", both), "Most cpu:1 nvidia.com/gpu:5");
    assert_eq!(said("LeastAllocated", None), "Least weighed as configured");
    assert_eq!(said("", both), "as configured");
    assert_eq!(said("Fullest", both), "as configured");
}

#[test]
fn weights_of_what_it_does_not_request_or_that_are_none_are_left_out() {
    let others = Some(r#"{"cpu": 3, "memory": 9, "example.com/chip": 1}"#);
    assert_eq!(said("MostAllocated", others), "Most cpu:3");
    let odd = Some(r#"{"cpu": -1, "nvidia.com/gpu": 9000000000}"#);
    assert_eq!(said("MostAllocated", odd), "Most nvidia.com/gpu:1000000");
    for garbled in [
        "",
        "cpu",
        "[1]",
        r#"{"cpu": "2"}"#,
        r#"{"cpu": 1.5}"#,
        "{\"cpu\": 1e400}",
    ] {
        assert_eq!(said("LeastAllocated", Some(garbled)), "Least", "{garbled}");
    }
}
