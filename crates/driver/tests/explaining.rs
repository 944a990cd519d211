//! What a running driver says of a workload that waits, and to whom.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use driver::explain::{Report, Subject, Unanswered};
use engine::Engine;
use serde_json::json;
use world::{World, settings};

fn group(world: &mut World, namespace: &str, name: &str, min: u32) {
    let body = json!({
        "metadata": { "namespace": namespace },
        "spec": { "minMember": min, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &body);
}

fn pod(world: &mut World, namespace: &str, group: &str, at: u32, cpu: &str, on: Option<&str>) {
    let phase = if on.is_some() { "Running" } else { "Pending" };
    let body = json!({
        "metadata": {
            "namespace": namespace,
            "annotations": { "scheduling.k8s.io/group-name": group },
        },
        "spec": {
            "schedulerName": "volcano", "nodeName": on,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": phase },
    });
    world.put_object(Kind::Pod, &format!("{group}-{at}"), &body);
}

/// Team a's gang waits where team b holds a node.
fn crowded() -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    for (name, cpu) in [("n1", "4"), ("n2", "2")] {
        let allocatable = json!({ "cpu": cpu, "memory": "8Gi", "pods": "110" });
        let body = json!({ "status": { "allocatable": allocatable } });
        world.put_object(Kind::Node, name, &body);
    }
    world.put_queues();
    group(&mut world, "team-b", "secret", 1);
    pod(&mut world, "team-b", "secret", 0, "3", Some("n1"));
    group(&mut world, "team-a", "train", 2);
    for at in 0..2 {
        pod(&mut world, "team-a", "train", at, "2", None);
    }
    world.pass_ms(2_000);
    world
}

fn ask(world: &mut World, name: &str, sees: &dyn Fn(&str) -> bool) -> Result<Report, Unanswered> {
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
    };
    let now = world.now;
    world.driver.explain(&subject, sees, now)
}

#[test]
fn an_object_of_another_tenant_is_counted_and_never_named() {
    let mut world = crowded();
    let report = ask(&mut world, "train", &|namespace| namespace == "team-a");
    let report = report.expect("its own namespace may be seen");
    let told = format!("{report:?} {}", report.json());
    assert!(
        !told.contains("secret") && !told.contains("team-b"),
        "{told}"
    );
    assert_eq!(report.holders[0].who, None);
    assert_eq!(report.holders[0].tasks, 1);
    let end = report.fixes.iter().find(|fix| fix.code == "EndTasks");
    let end = end.expect("it helps all the same");
    assert_eq!(end.words, "wait for 1 pod to end, or end them: 1 of others");
    let hidden = ask(&mut world, "train", &|_| false);
    assert_eq!(hidden, Err(Unanswered::Unknown), "as if it were not there");
}

#[test]
fn a_question_changes_nothing() {
    let mut world = crowded();
    let first = ask(&mut world, "train", &|_| true).expect("it is there");
    let again = ask(&mut world, "train", &|_| true).expect("it is there");
    assert_eq!(first, again);
    world.log.clear();
    world.pass_ms(60_000);
    let told = world.log.iter().filter(|line| !line.starts_with("watch"));
    assert_eq!(told.count(), 0, "nothing is written: {:?}", world.log);
}

#[test]
fn nothing_is_said_before_everything_was_seen() {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    let unseen = ask(&mut world, "train", &|_| true);
    assert_eq!(unseen, Err(Unanswered::NotReady));
}
