//! Pods that name no group, in a plane that has no other scheduler: each is a gang of one.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::Engine;
use serde_json::{Value, json};
use world::{World, settings};

fn plane(cpu: &str) -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        scheduler_names: vec!["volcano".into(), "other".into()],
        lone_scheduler_names: vec!["default-scheduler".into()],
        agent_scheduler_names: vec!["agent-scheduler".into()],
        ..EngineSettings::new(Engine::with_defaults())
    });
    let mut world = World::new(settings);
    let node =
        json!({ "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } } });
    world.put_object(Kind::Node, "node-1", &node);
    world.put_queues();
    world
}

fn pod(world: &mut World, name: &str, scheduler: &str, cpu: &str) {
    let pod = json!({
        "spec": {
            "schedulerName": scheduler,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn node_of(world: &World, name: &str) -> Value {
    world.object(Kind::Pod, name)["spec"]["nodeName"].clone()
}

#[test]
fn a_plain_pod_is_bound_without_a_group_and_told_in_kube_schedulers_words() {
    let mut world = plane("1");
    pod(&mut world, "one", "default-scheduler", "100m");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "one"), "node-1");
    assert_eq!(
        world.events(),
        ["Pod Normal Scheduled: Successfully assigned ns/one to node-1"]
    );
}

#[test]
fn a_plain_pod_that_does_not_fit_waits_for_room_and_then_starts() {
    let mut world = plane("1");
    pod(&mut world, "large", "default-scheduler", "800m");
    world.pass_ms(100);
    pod(&mut world, "late", "default-scheduler", "300m");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "late"), Value::Null);
    let condition = &world.object(Kind::Pod, "late")["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    world.delete_object(Kind::Pod, "large");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "late"), "node-1");
}

#[test]
fn a_plain_pod_that_has_waited_for_too_long_is_kept_room_and_everybody_can_see_it() {
    let mut world = plane("1");
    for name in ["one", "two"] {
        pod(&mut world, name, "default-scheduler", "500m");
        world.pass_ms(100);
    }
    let long_ago = json!({ "metadata": { "creationTimestamp": "1960-01-01T00:00:00Z" } });
    world.put_object(Kind::Pod, "large", &long_ago);
    pod(&mut world, "large", "default-scheduler", "1");
    world.pass_ms(2_000);
    let status = &world.object(Kind::Pod, "large")["status"];
    assert_eq!(status["nominatedNodeName"], "node-1");
    let message = status["conditions"][0]["message"].as_str();
    let message = message.expect("it is told why it waits").to_owned();
    assert!(message.contains("it has waited for long"), "{message}");
    // Half of the room is free, and who comes later does not get it.
    world.delete_object(Kind::Pod, "one");
    pod(&mut world, "small", "default-scheduler", "500m");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "small"), Value::Null);
    world.delete_object(Kind::Pod, "two");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "large"), "node-1");
}

#[test]
fn a_pod_of_another_scheduler_is_left_alone() {
    let mut world = plane("1");
    pod(&mut world, "foreign", "somebody-else", "100m");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "foreign"), Value::Null);
    assert_eq!(world.events(), Vec::<String>::new());
}

#[test]
fn pods_that_start_are_looked_at_together_and_a_new_one_at_once() {
    let mut world = plane("4");
    for index in 0..20 {
        pod(
            &mut world,
            &format!("p-{index}"),
            "default-scheduler",
            "100m",
        );
    }
    world.pass_ms(2_000);
    let before = world.driver.cycles();
    for index in 0..20 {
        let running = json!({ "status": { "phase": "Running" } });
        world.put_object(Kind::Pod, &format!("p-{index}"), &running);
        world.pass_ms(1);
    }
    assert_eq!(world.driver.cycles() - before, 1, "nothing can be placed");
    pod(&mut world, "new", "default-scheduler", "100m");
    world.pass_ms(2);
    assert_eq!(node_of(&world, "new"), "node-1");
}

#[test]
fn a_pod_of_the_agents_mode_needs_neither_its_group_nor_an_open_queue() {
    let mut world = plane("1");
    let closed = json!({ "status": { "state": "Closed" } });
    world.put_object(Kind::Queue, "default", &closed);
    let grouped = json!({ "metadata": { "annotations": {
        "scheduling.k8s.io/group-name": "nobody-made-it",
    } } });
    world.put_object(Kind::Pod, "one", &grouped);
    pod(&mut world, "one", "agent-scheduler", "100m");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "one"), "node-1");
    assert_eq!(
        world.events(),
        ["Pod Normal Scheduled: Successfully assigned ns/one to node-1"]
    );
    let held = &world.object(Kind::Queue, "default")["status"]["allocated"];
    assert!(held.is_null(), "no queue counts it: {held}");
}

#[test]
fn each_of_several_names_is_served_in_its_own_way() {
    let mut world = plane("4");
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "g", &group);
    let grouped = json!({ "metadata": { "annotations": { "scheduling.k8s.io/group-name": "g" } } });
    for (name, scheduler) in [
        ("first", "volcano"),
        ("second", "other"),
        ("alone", "agent-scheduler"),
        ("plain", "default-scheduler"),
        ("foreign", "somebody-else"),
    ] {
        world.put_object(Kind::Pod, name, &grouped);
        pod(&mut world, name, scheduler, "100m");
    }
    world.pass_ms(2_000);
    for name in ["first", "second", "alone", "plain"] {
        assert_eq!(node_of(&world, name), "node-1", "{name}");
    }
    assert_eq!(node_of(&world, "foreign"), Value::Null);
    let held = &world.object(Kind::Queue, "default")["status"]["allocated"]["cpu"];
    assert_eq!(held, "300m", "the gang's and the plain one's");
}

/// A pod of a tenant, which goes where others of its tenant are and where nobody of another one is; in
/// all namespaces of the same team.
fn tenants_pod(world: &mut World, name: &str, tenant: &str) {
    let term = |keys: &str| {
        json!({
            "labelSelector": { "matchExpressions": [{ "key": "tenant", "operator": "Exists" }] },
            "namespaceSelector": { "matchLabels": { "team": "red" } },
            "topologyKey": "kubernetes.io/hostname",
            keys: ["tenant"],
        })
    };
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let pod = json!({
        "metadata": { "labels": { "tenant": tenant } },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
            "affinity": {
                "podAffinity": { required: [term("matchLabelKeys")] },
                "podAntiAffinity": { required: [term("mismatchLabelKeys")] },
            },
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
    world.pass_ms(2_000);
}

#[test]
fn tenants_share_no_node_by_keys_of_labels_that_match_and_differ() {
    let mut world = plane("1");
    let put_node = |world: &mut World, name: &str, cpu: &str| {
        let node = json!({
            "metadata": { "labels": { "kubernetes.io/hostname": name } },
            "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } },
        });
        world.put_object(Kind::Node, name, &node);
    };
    put_node(&mut world, "node-1", "1");
    put_node(&mut world, "node-2", "1");
    let team = json!({ "metadata": { "labels": { "team": "red" } } });
    world.put_object(Kind::Namespace, "ns", &team);
    for (name, tenant) in [
        ("a-0", "a"),
        ("b-0", "b"),
        ("a-1", "a"),
        ("b-1", "b"),
        ("a-2", "a"),
    ] {
        tenants_pod(&mut world, name, tenant);
    }
    let at = ["a-0", "a-1", "a-2", "b-0", "b-1"].map(|name| node_of(&world, name));
    assert_eq!(at, ["node-1", "node-1", "node-1", "node-2", "node-2"]);
    // A third tenant finds no node of its own.
    tenants_pod(&mut world, "c-0", "c");
    assert_eq!(node_of(&world, "c-0"), Value::Null);
    // Whoever is in a namespace of another team is nobody to keep away from.
    let team = json!({ "metadata": { "labels": { "team": "blue" } } });
    world.put_object(Kind::Namespace, "ns", &team);
    world.pass_ms(2_000);
    assert_eq!(
        node_of(&world, "c-0"),
        Value::Null,
        "nobody is there to be near to"
    );
    let team = json!({ "metadata": { "labels": { "team": "red" } } });
    world.put_object(Kind::Namespace, "ns", &team);
    put_node(&mut world, "node-3", "1");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "c-0"), "node-3");
}
