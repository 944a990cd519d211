//! Which nodes make domains of a spread, as pods say it.

use api::kind::Kind;
use mirror::{Features, Mirror, Rows};
use model::{Inclusion, Key, Spread, Tables};
use serde_json::{Value, json};

/// What is read of a pod with this constraint: whether it selects, and whether its taints matter.
fn read(policies: Value) -> (Inclusion, Inclusion) {
    let spread = spread(policies, Features::default());
    (spread.affinity, spread.taints)
}

fn spread(policies: Value, features: Features) -> Spread {
    let mut constraint = json!({
        "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    });
    for (key, value) in policies.as_object().expect("policies by name") {
        constraint[key] = value.clone();
    }
    let pod = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1",
            "labels": { "version": "2" },
        },
        "spec": { "schedulerName": "volcano", "topologySpreadConstraints": [constraint] },
    });
    let mut rows = Rows::new(vec!["volcano".into()])
        .with_lone(vec!["volcano".into()])
        .with_features(features);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let change = mirror.apply(Kind::Pod, &pod.to_string());
    let change = change.expect("it is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let task = tables.task_keyed(&Key::new("a", "p"));
    let shape = tables.shape_of(task.expect("it is a task"));
    shape.spec.spread[0].clone()
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

#[test]
fn what_a_feature_gate_takes_away_is_as_if_the_pod_had_not_said_it() {
    let said = json!({
        "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["version"],
    });
    let all = spread(said.clone(), Features::default());
    assert_eq!(all.selector.len(), 2, "{all:?}");
    let plain = spread(json!({}), Features::default());
    let without_keys = Features {
        spread_label_keys: false,
        ..Features::default()
    };
    let of_labels = spread(said.clone(), without_keys);
    assert_eq!(of_labels.selector, plain.selector);
    assert_eq!(
        (of_labels.affinity, of_labels.taints),
        (all.affinity, all.taints)
    );
    let without_inclusion = Features {
        spread_inclusion: false,
        ..Features::default()
    };
    let of_nodes = spread(said, without_inclusion);
    assert_eq!(of_nodes.selector, all.selector);
    assert_eq!(
        (of_nodes.affinity, of_nodes.taints),
        (plain.affinity, plain.taints)
    );
}
