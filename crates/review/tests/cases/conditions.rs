//! About which pods somebody is asked: those that are given something, and nobody else's.

use cel::{Answer, Expression, Scene};
use review::registration::{Address, Registration};
use review::{ResourceGroup, Settings, Webhook};
use serde_json::{Value, json};

use super::file::{File, yaml};
use super::{files, world};

/// The condition of `/pods/mutate`; `None` where it is asked about every pod.
fn condition(settings: &Settings) -> Option<String> {
    let webhook = Webhook::at("/pods/mutate").unwrap();
    let registration = Registration {
        address: Address::Url("https://here".to_owned()),
        own_namespace: String::new(),
        authorities: String::new(),
    };
    let made = webhook.configuration(settings, &registration);
    let made = &made["webhooks"][0]["matchConditions"];
    assert_eq!(made.is_null(), webhook.is_asked_about_every_pod(settings));
    let expression = made[0]["expression"].as_str()?;
    assert_eq!(made.as_array().map(Vec::len), Some(1));
    let taken = Scene::WEBHOOK.check(expression, Answer::Bool);
    assert_eq!(taken, Ok(()), "{}", expression.len());
    Some(expression.to_owned())
}

fn is_asked(condition: &str, pod: &Value) -> bool {
    let request = json!({ "operation": "CREATE", "namespace": pod["metadata"]["namespace"] });
    let values = [("object", pod), ("request", &request)];
    let condition = Expression::compile(condition).unwrap();
    condition.truth(&values).unwrap()
}

fn groups(file: Value) -> Settings {
    Settings {
        resource_groups: ResourceGroup::read(file).unwrap(),
        ..Settings::default()
    }
}

#[test]
fn who_is_given_something_is_asked_about() {
    let mut given = 0;
    for path in files() {
        let file = File::read(&std::fs::read_to_string(&path).unwrap());
        for case in file.cases.iter().filter(|_| file.kind == "Pod") {
            let (_, pod) = case.objects(&file.base);
            let condition = condition(&world::settings(case)).unwrap();
            if case.answer.len() > 1 && case.answer[0] == "allowed" {
                assert!(is_asked(&condition, &pod), "{condition}: {pod}");
                given += 1;
            }
        }
    }
    assert!(given >= 10, "{given}");
}

#[test]
fn nobody_is_asked_about_a_pod_of_no_group() {
    let settings = groups(yaml(
        "resourceGroups: [{object: {key: namespace, value: [ml, 'o''dd']}}, {object: {key: annotation, value: ['team: a', 'team: b', 'with''quote: \\']}}, {resourceGroup: gpu}, {object: {key: namespace, value: [web]}}]",
    ));
    let gates = Settings {
        queue_gates: true,
        ..settings.clone()
    };
    // Namespace, annotations, scheduler, whether somebody is asked: without gates of queues, and with them.
    for (namespace, annotations, scheduler, wanted) in [
        ("ml", json!(null), "other", [true, true]),
        ("o'dd", json!(null), "volcano", [true, true]),
        ("web", json!({}), "other", [true, true]),
        ("shop", json!(null), "volcano", [false, false]),
        ("shop", json!({ "team": "a" }), "other", [true, true]),
        (
            "shop",
            json!({ "x": "y", "team": "b" }),
            "other",
            [true, true],
        ),
        ("shop", json!({ "team": "c" }), "other", [false, false]),
        ("shop", json!({ "with'quote": "\\" }), "other", [true, true]),
        (
            "shop",
            json!({ "volcano.sh/resource-group": "gpu" }),
            "other",
            [true, true],
        ),
        (
            "shop",
            json!({ "volcano.sh/resource-group": "cpu" }),
            "other",
            [false, false],
        ),
        (
            "shop",
            json!({ "scheduling.volcano.sh/queue-allocation-gate": "true" }),
            "volcano",
            [false, true],
        ),
        (
            "shop",
            json!({ "scheduling.volcano.sh/queue-allocation-gate": "true" }),
            "other",
            [false, false],
        ),
    ] {
        let mut pod = json!({ "metadata": { "name": "p", "namespace": namespace }, "spec": { "schedulerName": scheduler } });
        if !annotations.is_null() {
            pod["metadata"]["annotations"] = annotations;
        }
        let found = [&settings, &gates].map(|it| is_asked(&condition(it).unwrap(), &pod));
        assert_eq!(found, wanted, "{pod}");
    }
    let nobody = groups(yaml("resourceGroups: [{object: {key: namespace}}]"));
    let nobody = condition(&nobody).unwrap();
    let pod = json!({ "metadata": { "namespace": "ml" }, "spec": {} });
    assert!(!is_asked(&nobody, &pod));
}

/// What a file may hold that CEL writes otherwise.
#[test]
fn any_text_can_stand_in_a_condition() {
    let odd = "a\nb\t\u{7f}\u{0}\"c'd\\e \u{2028}é";
    let file = json!({ "resourceGroups": [{ "object": { "key": "namespace", "value": [odd] } }] });
    let condition = condition(&groups(file)).unwrap();
    let pod = json!({ "metadata": { "namespace": odd }, "spec": {} });
    assert!(is_asked(&condition, &pod));
}

/// An API server bounds the length of an expression, and what it costs for each pod.
#[test]
fn what_is_too_long_for_a_condition_is_none() {
    let of = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("namespace-{at:05}")).collect();
        let pairs: Vec<String> = (0..count).map(|at| format!("key-{at}: value")).collect();
        groups(json!({ "resourceGroups": [
            { "object": { "key": "namespace", "value": names } },
            { "object": { "key": "annotation", "value": pairs } },
        ] }))
    };
    let long = (1..1_000).rev().find_map(|count| condition(&of(count)));
    let long = long.unwrap();
    assert!(long.len() > 49_000, "{}", long.len());
    let mut pod = json!({ "metadata": { "namespace": "x", "annotations": {} }, "spec": {} });
    for at in 0..1_000 {
        pod["metadata"]["annotations"][format!("other-{at}")] = "value".into();
    }
    assert!(!is_asked(&long, &pod));
    assert_eq!(condition(&of(2_000)), None);
}
