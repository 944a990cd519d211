//! Which other pods the terms of a pod speak of: `matchLabelKeys`, `mismatchLabelKeys` and
//! `namespaceSelector`.

mod fed;

use std::sync::Arc;

use api::kind::Kind;
use fed::tables;
use model::{Key, Labels, PodTerm, Requirement, ShapeSpec};
use serde_json::{Value, json};

/// What is read of a pod with these labels and this part of its spec.
fn shape(labels: Value, spec: Value) -> Arc<ShapeSpec> {
    let mut objects = vec![];
    for (name, team) in [("a", "red"), ("b", "red"), ("c", "blue")] {
        let namespace = json!({
            "metadata": {
                "name": name, "uid": name, "resourceVersion": "1", "labels": { "team": team },
            },
        });
        objects.push((Kind::Namespace, namespace));
    }
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1", "labels": labels,
            "annotations": { "scheduling.k8s.io/group-name": "g" },
        },
        "spec": { "schedulerName": "volcano" },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    objects.push((Kind::Pod, pod));
    let tables = tables(&objects);
    let task = tables.task_keyed(&Key::new("a", "p"));
    tables.shape_of(task.expect("it is a task")).spec.clone()
}

/// Whom a selector takes of pods of other revisions, tenants and apps, one of which has no such labels.
fn chosen(selector: &[Requirement]) -> Vec<&'static str> {
    let pods = [
        ("web v1 red", ["web", "v1", "red"]),
        ("web v2 red", ["web", "v2", "red"]),
        ("web v1 blue", ["web", "v1", "blue"]),
        ("web", ["web", "", ""]),
        ("db v1 red", ["db", "v1", "red"]),
    ];
    let taken = pods.into_iter().filter(|(_, values)| {
        let labels = ["app", "rev", "tenant"]
            .into_iter()
            .zip(values.iter().copied());
        let labels = labels.filter(|(_, value)| !value.is_empty());
        model::matches_all(selector, &Labels::of(labels))
    });
    taken.map(|(name, _)| name).collect()
}

fn own() -> Value {
    json!({ "app": "web", "rev": "v1", "tenant": "red" })
}

/// A term of the four places in which a pod can have one.
fn terms(labels: &Value, keys: Value) -> Vec<PodTerm> {
    let mut term = json!({
        "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "zone",
    });
    for (key, value) in keys.as_object().into_iter().flatten() {
        term[key] = value.clone();
    }
    let both = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 3, "podAffinityTerm": term }],
    });
    let spec = json!({ "affinity": { "podAffinity": both, "podAntiAffinity": both } });
    let shape = shape(labels.clone(), spec);
    let wished = shape.preferred_pods.iter();
    let weights: Vec<i32> = wished.clone().map(|it| it.weight).collect();
    assert_eq!(weights, [3, -3]);
    let wished = wished.map(|it| it.term.clone());
    let terms = shape.pod_affinity.iter().cloned();
    let terms = terms.chain(shape.pod_anti_affinity.iter().cloned());
    terms.chain(wished).collect()
}

#[test]
fn keys_of_labels_that_match_and_differ_narrow_a_term_by_the_pods_own_values() {
    for (keys, taken) in [
        (
            json!({}),
            &["web v1 red", "web v2 red", "web v1 blue", "web"][..],
        ),
        (
            json!({ "matchLabelKeys": ["rev"] }),
            &["web v1 red", "web v1 blue"],
        ),
        (
            json!({ "matchLabelKeys": ["rev", "tenant"] }),
            &["web v1 red"],
        ),
        // Who lacks the label differs, too.
        (
            json!({ "mismatchLabelKeys": ["tenant"] }),
            &["web v1 blue", "web"],
        ),
        (
            json!({ "matchLabelKeys": ["rev"], "mismatchLabelKeys": ["tenant"] }),
            &["web v1 blue"],
        ),
        // The pod does not have this label: the key says nothing.
        (
            json!({ "matchLabelKeys": ["zone", "rev"], "mismatchLabelKeys": ["none"] }),
            &["web v1 red", "web v1 blue"],
        ),
        // Nobody is selected to begin with.
        (
            json!({ "labelSelector": null, "matchLabelKeys": ["rev"] }),
            &[],
        ),
        (
            json!({ "labelSelector": null, "mismatchLabelKeys": ["tenant"] }),
            &[],
        ),
    ] {
        let terms = terms(&own(), keys.clone());
        assert_eq!(terms.len(), 4);
        for term in &terms {
            assert_eq!(chosen(&term.selector), taken, "{keys}");
        }
    }
}

#[test]
fn a_term_looks_in_its_own_namespace_in_those_it_names_and_in_those_with_the_labels() {
    let red = json!({ "matchLabels": { "team": "red" } });
    let nobody = json!({ "matchLabels": { "team": "green" } });
    let label = || Labels::of([("app", "web"), ("rev", "v1")]);
    for (keys, namespaces) in [
        (json!({}), "a"),
        (json!({ "namespaces": ["c"] }), "c"),
        (json!({ "namespaceSelector": red }), "a b"),
        (
            json!({ "namespaceSelector": red, "namespaces": ["c", "a"] }),
            "a b c",
        ),
        (json!({ "namespaceSelector": nobody }), ""),
        (json!({ "namespaceSelector": {} }), "a b c"),
        (
            json!({ "namespaceSelector": red, "matchLabelKeys": ["rev"] }),
            "a b",
        ),
    ] {
        for term in terms(&own(), keys.clone()) {
            let all = ["a", "b", "c"].into_iter();
            let looked: Vec<&str> = all.filter(|it| term.selects(it, &label())).collect();
            assert_eq!(looked.join(" "), namespaces, "{keys}");
        }
    }
    let revision = json!({ "namespaceSelector": red, "matchLabelKeys": ["rev"] });
    for term in terms(&own(), revision) {
        let other = Labels::of([("app", "web"), ("rev", "v2")]);
        assert!(!term.selects("b", &other), "another revision is not meant");
    }
}

#[test]
fn keys_of_labels_narrow_whom_a_spread_counts() {
    let counted = |labels: Value, keys: Value| {
        let mut constraint = json!({
            "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        });
        for (key, value) in keys.as_object().into_iter().flatten() {
            constraint[key] = value.clone();
        }
        let shape = shape(labels, json!({ "topologySpreadConstraints": [constraint] }));
        chosen(&shape.spread[0].selector)
    };
    let all = ["web v1 red", "web v2 red", "web v1 blue", "web"];
    assert_eq!(counted(own(), json!({})), all);
    let keys = json!({ "matchLabelKeys": ["rev"] });
    assert_eq!(counted(own(), keys.clone()), ["web v1 red", "web v1 blue"]);
    let both = json!({ "matchLabelKeys": ["rev", "tenant"] });
    assert_eq!(counted(own(), both), ["web v1 red"]);
    assert_eq!(
        counted(json!({ "app": "web" }), keys.clone()),
        all,
        "it has no such label"
    );
    let nothing = json!({ "labelSelector": null, "matchLabelKeys": ["rev"] });
    assert_eq!(counted(own(), nothing), Vec::<&str>::new());
}
