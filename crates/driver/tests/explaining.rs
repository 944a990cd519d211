//! What a running driver says of a workload that waits, and to whom.

mod world;

use api::ask::Subject;
use api::kind::Kind;
use driver::EngineSettings;
use driver::explain::{Found, Unanswered};
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

fn ask(world: &mut World, name: &str) -> Result<Found, Unanswered> {
    let subject = Subject {
        kind: Kind::PodGroup,
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
    };
    let now = world.now;
    world.driver.explain(&subject, now)
}

#[test]
fn an_object_of_another_tenant_is_counted_and_never_named() {
    let mut world = crowded();
    let found = ask(&mut world, "train").expect("it is there");
    let namespaces: Vec<String> = found.namespaces().iter().map(ToString::to_string).collect();
    assert_eq!(namespaces, ["team-b"], "whose objects would be named");
    let report = found.told(&|namespace| namespace == "team-a");
    let told = format!("{report:?}");
    assert!(
        !told.contains("secret") && !told.contains("team-b"),
        "{told}"
    );
    assert_eq!(report.holders[0].name, None);
    assert_eq!(report.holders[0].tasks, 1);
    let end = report.fixes.iter().find(|fix| fix.remedy == "EndTasks");
    let end = end.expect("it helps all the same");
    assert_eq!(end.words, "wait for 1 pod to end, or end them: 1 of others");
    let whole = found.told(&|_| true);
    assert_eq!(whole.holders[0].namespace.as_deref(), Some("team-b"));
}

#[test]
fn a_question_changes_nothing() {
    let mut world = crowded();
    let mut told = || ask(&mut world, "train").map(|found| found.told(&|_| true));
    let (first, again) = (told(), told());
    assert!(first.is_ok());
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
    let unseen = ask(&mut world, "train");
    assert_eq!(unseen.err(), Some(Unanswered::NotReady));
}
