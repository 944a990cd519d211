//! Several schedulers of different names in one cluster: what each of them says of whose groups.

mod world;

use api::kind::Kind;
use driver::{ElectionSettings, EngineSettings, Settings};
use engine::Engine;
use serde_json::{Value, json};
use world::beside::Beside;
use world::{World, settings};

/// A scheduler of that name.
fn scheduler(name: &str) -> Settings {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        scheduler_names: vec![name.into()],
        ..EngineSettings::new(Engine::with_defaults())
    });
    settings
}

/// A cluster with room, seen by a scheduler of that name.
fn seen_by(name: &str) -> World {
    let mut world = World::new(scheduler(name));
    let room = json!({ "cpu": "8", "memory": "8Gi", "pods": "110" });
    let node = json!({ "status": { "allocatable": room } });
    world.put_object(Kind::Node, "node-1", &node);
    world.put_queues();
    world
}

fn group(world: &mut World, scheduler: Option<&str>, phase: &str) {
    let mut group = json!({
        "spec": { "minMember": 1, "queue": "default", "minResources": { "cpu": "1" } },
        "status": { "phase": phase },
    });
    if let Some(scheduler) = scheduler {
        group["metadata"]["annotations"]["katmai.dev/scheduler-name"] = json!(scheduler);
    }
    world.put_object(Kind::PodGroup, "g", &group);
}

fn pod(world: &mut World, name: &str, scheduler: &str, node: Option<&str>) {
    let mut pod = json!({
        "metadata": { "annotations": { "scheduling.k8s.io/group-name": "g" } },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
        },
        "status": { "phase": if node.is_some() { "Running" } else { "Pending" } },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    world.put_object(Kind::Pod, name, &pod);
}

fn phase(world: &World) -> &Value {
    &world.object(Kind::PodGroup, "g")["status"]["phase"]
}

/// Everything that is asked of the API in ten minutes, without reads.
fn writes(world: &mut World) -> Vec<String> {
    world.pass_ms(600_000);
    world.writes()
}

/// Two schedulers wrote the status of one group in turn, each what it saw, some hundred times a
/// second.
#[test]
fn s1_2_a_group_whose_pods_are_anothers_is_left_to_it() {
    for node in [None, Some("node-1")] {
        let mut world = seen_by("other");
        group(&mut world, None, "Inqueue");
        pod(&mut world, "g-0", "volcano", node);
        world.settle();
        world.asked();
        let wrote = writes(&mut world);
        let is_about_it = |line: &&String| !line.contains("Queue");
        assert_eq!(wrote.iter().find(is_about_it), None, "{wrote:?}");
        assert_eq!(phase(&world), "Inqueue");
    }
}

/// Otherwise two schedulers would give out one queue twice, and write its status in turn.
#[test]
fn s1_2_what_pods_of_others_hold_counts_in_their_queue() {
    let mut world = seen_by("other");
    group(&mut world, None, "Running");
    pod(&mut world, "g-0", "volcano", Some("node-1"));
    world.pass_ms(10_000);
    let allocated = &world.object(Kind::Queue, "default")["status"]["allocated"];
    assert_eq!(allocated["cpu"], "1");
}

#[test]
fn s1_2_a_group_without_pods_is_for_whom_its_annotation_says() {
    for (annotation, let_in_by) in [(Some("other"), "other"), (None, "volcano")] {
        for name in ["other", "volcano", "third"] {
            let mut world = seen_by(name);
            group(&mut world, annotation, "Pending");
            let wrote = writes(&mut world);
            let is_let_in = phase(&world) == "Inqueue";
            match annotation {
                // Nobody can say whose it is: who comes first lets it in, and says no more.
                None if name != let_in_by => {
                    assert!(is_let_in, "{name}: {wrote:?}");
                    let status = &world.object(Kind::PodGroup, "g")["status"];
                    assert_eq!(status.get("conditions"), None, "{status}");
                }
                _ => assert_eq!(is_let_in, name == let_in_by, "{name}: {wrote:?}"),
            }
        }
    }
}

#[test]
fn a_group_changes_hands_with_its_pods() {
    let mut world = seen_by("other");
    group(&mut world, None, "Inqueue");
    pod(&mut world, "g-0", "volcano", Some("node-1"));
    world.pass_ms(10_000);
    pod(&mut world, "g-1", "other", None);
    world.pass_ms(10_000);
    assert_eq!(world.object(Kind::Pod, "g-1")["spec"]["nodeName"], "node-1");
    assert_eq!(phase(&world), "Running");
    world.delete_object(Kind::Pod, "g-1");
    world.pass_ms(10_000);
    world.asked();
    let wrote = writes(&mut world);
    assert_eq!(wrote, Vec::<String>::new());
}

/// A gang of two of that name, and its pods, which that scheduler is to place.
fn put_gang(world: &mut World, scheduler: &str) {
    let group = json!({
        "metadata": { "annotations": { "katmai.dev/scheduler-name": scheduler } },
        "spec": { "minMember": 2, "queue": "default", "minResources": { "cpu": "2" } },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, scheduler, &group);
    for index in 0..2 {
        let name = format!("{scheduler}-{index}");
        world.put_member(scheduler, &name);
        let named = json!({ "spec": { "schedulerName": scheduler } });
        world.put_object(Kind::Pod, &name, &named);
    }
}

#[test]
fn s1_2_three_names_have_three_leases_and_each_leader_places_the_pods_that_name_it() {
    const NAMES: [&str; 3] = ["other", "third", "volcano"];
    let mut world = seen_by("nobody");
    let mut schedulers = NAMES.map(|name| {
        let mut settings = scheduler(name);
        let identity = format!("process of {name}");
        let election = ElectionSettings::new("ns", name, &identity);
        settings.election = Some(election);
        (name, Beside::new(settings))
    });
    NAMES.iter().for_each(|name| put_gang(&mut world, name));
    let mut bound = Vec::new();
    for _ in 0..100 {
        for (name, scheduler) in &mut schedulers {
            let asked = world.turn(scheduler);
            let pods = asked.iter().filter_map(|it| it.strip_prefix("bind Pod "));
            bound.extend(pods.map(|pod| format!("{name} places {pod}")));
        }
        world.now = world.now.plus_ms(100);
    }
    let leases: Vec<&str> = world.names_of(Kind::Lease).collect();
    assert_eq!(leases, NAMES);
    for name in NAMES {
        let holder = &world.object(Kind::Lease, name)["spec"]["holderIdentity"];
        assert_eq!(*holder, format!("process of {name}"));
    }
    bound.sort();
    let own = |name| [0, 1].map(|index| format!("{name} places {name}-{index}"));
    assert_eq!(bound, NAMES.map(own).concat());
}
