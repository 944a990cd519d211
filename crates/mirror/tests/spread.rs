//! Which nodes make domains of a spread, as pods say it.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Inclusion, Key, Tables};
use serde_json::{Value, json};

/// What is read of a pod with this constraint: whether it selects, and whether its taints matter.
fn read(policies: Value) -> (Inclusion, Inclusion) {
    let mut constraint = json!({
        "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    });
    for (key, value) in policies.as_object().expect("policies by name") {
        constraint[key] = value.clone();
    }
    let pod = json!({
        "metadata": { "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "schedulerName": "volcano", "topologySpreadConstraints": [constraint] },
    });
    let mut rows = Rows::new(vec!["volcano".into()]).with_lone(vec!["volcano".into()]);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let change = mirror.apply(Kind::Pod, &pod.to_string());
    let change = change.expect("it is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let task = tables.task_keyed(&Key::new("a", "p"));
    let shape = tables.shape_of(task.expect("it is a task"));
    let spread = &shape.spec.spread[0];
    (spread.affinity, spread.taints)
}

#[test]
fn policies_of_nodes_are_as_the_pod_says_or_as_in_kubernetes() {
    use Inclusion::{Honor, Ignore};
    assert_eq!(read(json!({})), (Honor, Ignore));
    let other = json!({ "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor" });
    assert_eq!(read(other), (Ignore, Honor));
    let same = json!({ "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore" });
    assert_eq!(read(same), (Honor, Ignore));
}
