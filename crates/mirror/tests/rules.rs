//! What the rules of the scheduler look at beside requests, read from pods and PodGroups.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Key, Tables};
use serde_json::{Value, json};

/// The tables after the objects have come.
fn tables(objects: &[(Kind, Value)]) -> Tables {
    let names = || vec!["volcano".into()];
    let rows = Rows::new(names()).with_lone(names());
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(*kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    tables
}

fn pod(annotations: Value, labels: Value, policy: Option<&str>) -> (Kind, Value) {
    let object = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
            "annotations": annotations, "labels": labels,
        },
        "spec": { "schedulerName": "volcano", "preemptionPolicy": policy },
    });
    (Kind::Pod, object)
}

#[test]
fn a_pod_says_whether_it_is_evicted_and_for_how_long_it_is_not() {
    let read = |object| {
        let tables = tables(&[object]);
        let id = tables
            .task_keyed(&Key::new("a", "p"))
            .expect("the pod has a row");
        let task = tables.task(id);
        (task.preemptable, task.preempts, task.cooldown_ms)
    };
    assert_eq!(read(pod(json!({}), json!({}), None)), (true, true, 0));
    let cooling = json!({ "volcano.sh/cooldown-time": "1m30s", "volcano.sh/preemptable": "false" });
    let never = Some("Never");
    assert_eq!(read(pod(cooling, json!({}), never)), (false, false, 90_000));
    let label = json!({ "volcano.sh/cooldown-time": "600ms" });
    assert_eq!(read(pod(json!({}), label, None)), (true, true, 600));
    for text in ["soon", "-5s", ""] {
        let wrong = json!({ "volcano.sh/cooldown-time": text });
        assert_eq!(read(pod(wrong, json!({}), None)), (true, true, 0), "{text}");
    }
}

#[test]
fn a_group_says_how_long_it_waits_at_most() {
    let read = |key: &str, value: &str| {
        let group = json!({
            "metadata": {
                "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "1",
                "annotations": { key: value },
            },
            "spec": { "minMember": 1 },
        });
        let tables = tables(&[(Kind::PodGroup, group)]);
        let id = tables
            .gang_keyed(&Key::new("a", "g"))
            .expect("the group has a row");
        tables.gang(id).spec.waits_at_most_ms
    };
    assert_eq!(read("sla-waiting-time", "2h"), Some(7_200_000));
    assert_eq!(read("volcano.sh/sla-waiting-time", "10s"), Some(10_000));
    assert_eq!(read("sla-waiting-time", "-1s"), None);
    assert_eq!(read("sla-waiting-time", "a while"), None);
    assert_eq!(read("other", "10s"), None);
}
