//! Pods behind the gate that their queue opens.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::{Engine, PluginSettings, Settings};

use serde_json::{Value, json};
use world::{World, settings};

const GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

fn plane(queue_gates: bool) -> World {
    let mut rules = Settings::default();
    let tier = ["priority", "gang", "predicates", "capacity", "nodeorder"];
    rules.placement.tiers = vec![tier.map(PluginSettings::named).to_vec()];
    let (engine, _) = Engine::new(rules).expect("the actions are known");
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        queue_gates,
        ..EngineSettings::new(engine)
    });
    let mut world = World::new(settings);
    let node =
        json!({ "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" } } });
    world.put_object(Kind::Node, "node-1", &node);
    world.put_queues();
    let narrow = json!({ "spec": { "capability": { "cpu": "1" } } });
    world.put_object(Kind::Queue, "default", &narrow);
    world
}

fn gated(world: &mut World, name: &str, gates: &[&str]) {
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    let pod = json!({
        "metadata": { "annotations": {
            "scheduling.k8s.io/group-name": name,
            GATE: "true",
        } },
        "spec": {
            "schedulerName": "volcano",
            "schedulingGates": gates,
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn stands(world: &World, name: &str) -> (usize, Value) {
    let spec = &world.object(Kind::Pod, name)["spec"];
    let gates = spec["schedulingGates"].as_array();
    (gates.map_or(0, Vec::len), spec["nodeName"].clone())
}

#[test]
fn the_queue_opens_gates_while_it_has_room() {
    let mut world = plane(true);
    gated(&mut world, "first", &[GATE]);
    world.pass_ms(2_000);
    assert_eq!(stands(&world, "first"), (0, json!("node-1")));
    gated(&mut world, "second", &[GATE]);
    world.pass_ms(2_000);
    assert_eq!(stands(&world, "second"), (1, Value::Null));
    world.delete_object(Kind::Pod, "first");
    world.pass_ms(2_000);
    assert_eq!(stands(&world, "second"), (0, json!("node-1")));
}

#[test]
fn a_gate_of_somebody_else_is_left_alone_and_so_are_all_without_the_feature() {
    let mut world = plane(true);
    gated(&mut world, "two", &[GATE, "example.com/other"]);
    world.pass_ms(2_000);
    assert_eq!(stands(&world, "two"), (2, Value::Null));
    let mut world = plane(false);
    gated(&mut world, "off", &[GATE]);
    world.pass_ms(2_000);
    assert_eq!(stands(&world, "off"), (1, Value::Null));
}

/// The group of a bare pod is the pod's own. What keeps it out has other words upstream as long as the group
/// has no pod.
#[test]
fn a_bare_pod_in_a_full_queue_is_told_why_it_waits_once() {
    let mut world = plane(true);
    gated(&mut world, "first", &[GATE]);
    world.pass_ms(2_000);
    let owner = json!({
        "apiVersion": "v1", "kind": "Pod", "name": "second", "uid": "u", "controller": true,
    });
    let group = json!({
        "metadata": { "ownerReferences": [owner] },
        "spec": { "minResources": { "cpu": "1" } },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, "second", &group);
    world.pass_ms(3_000);
    gated(&mut world, "second", &[GATE]);
    world.put_object(
        Kind::PodGroup,
        "second",
        &json!({ "status": { "phase": "Pending" } }),
    );
    world.pass_ms(10_000);
    let events = world.events().into_iter();
    let told: Vec<String> = events
        .filter(|it| it.starts_with("Pod Warning Unschedulable"))
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
}
