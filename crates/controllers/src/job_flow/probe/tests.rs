use api::kind::Kind;
use api::volcano::Flow;
use serde_json::{Value, json};

use super::*;

/// How a target with these tasks, of each of which 20 pods run and 16 are asked, stands before such a probe.
fn stands(tasks: &[&str], probe: &Value) -> Stands {
    let mut mirror = Mirror::new();
    let mut put = |kind, object: Value| {
        let change = mirror.apply(kind, &object.to_string());
        change.expect("the object is read").expect("it is news");
    };
    let spec = tasks.iter();
    let spec = spec.map(|name| json!({ "name": name, "replicas": 20, "minAvailable": 16 }));
    put(
        Kind::VcJob,
        json!({
            "metadata": { "namespace": "ml", "name": "x-s", "uid": "s", "resourceVersion": "1" },
            "spec": { "tasks": spec.collect::<Vec<_>>() },
            "status": { "state": { "phase": "Running" } },
        }),
    );
    for (task, at) in tasks
        .iter()
        .flat_map(|task| (0..20).map(move |at| (task, at)))
    {
        // One task has too few of them.
        let phase = match *task == "late" && at >= 15 {
            true => "Pending",
            false => "Running",
        };
        let owner = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "x-s", "uid": "s",
        });
        put(
            Kind::Pod,
            json!({
                "metadata": {
                    "namespace": "ml", "name": format!("x-s-{task}-{at}"), "resourceVersion": "1",
                    "annotations": { TASK_SPEC: task }, "ownerReferences": [owner],
                },
                "status": { "phase": phase, "podIP": "10.0.0.1" },
            }),
        );
    }
    let flow = json!({ "name": "s" });
    let flow: Flow = serde_json::from_value(flow).expect("a flow");
    let probe: FlowProbe = serde_json::from_value(probe.clone()).expect("a probe");
    let target = Member {
        flow: &flow,
        name: "x-s".to_owned(),
        job: mirror.get::<Job>("ml", "x-s"),
        record: None,
    };
    of(&mirror, Some(&probe), &target)
}

fn asked(stands: &Stands) -> &Vec<Inquiry> {
    match stands {
        Stands::Asks(questions) => questions,
        _ => panic!("nobody is asked"),
    }
}

#[test]
fn what_is_said_again_is_asked_once() {
    let port = json!({ "port": 1 });
    let path = json!({ "taskName": "a", "port": 1, "path": "up" });
    let same = json!({ "taskName": "a", "port": 1, "path": "/up" });
    let probe = json!({
        "tcpSocketList": vec![port; 60_000], "httpGetList": [path, same, path],
        "taskStatusList": [],
    });
    let stands = stands(&["a", "b"], &probe);
    assert_eq!(asked(&stands).len(), 16 + 2 * 16);
}

#[test]
fn no_more_questions_are_made_than_are_asked_and_their_answers_do() {
    let ports: Vec<Value> = (1..=2_000).map(|port| json!({ "port": port })).collect();
    let tasks = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let stands = stands(&tasks, &json!({ "tcpSocketList": ports }));
    let questions = asked(&stands);
    assert_eq!(questions.len(), QUESTIONS_MAX);
    assert!(questions.capacity() <= 2 * QUESTIONS_MAX);
    let mut heard = Heard::default();
    for question in &questions[1..] {
        heard.tell(&question.topic, Ok(String::new()));
    }
    assert!(!stands.is_met(&heard));
    heard.tell(&questions[0].topic, Ok(String::new()));
    assert!(stands.is_met(&heard));
}

#[test]
fn a_task_beyond_the_last_question_is_waited_for_as_well() {
    let mut ports: Vec<Value> = (1..=60_000)
        .map(|port| json!({ "taskName": "a", "port": port }))
        .collect();
    ports.push(json!({ "taskName": "late", "port": 1 }));
    let probe = json!({ "tcpSocketList": ports });
    assert!(matches!(stands(&["a", "late"], &probe), Stands::Later));
    assert_eq!(asked(&stands(&["a"], &probe)).len(), QUESTIONS_MAX);
}
