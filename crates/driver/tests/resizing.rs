//! Pods that are resized in place hold what they have and what they want, whichever is more.

mod world;

use api::kind::Kind;
use serde_json::{Value, json};
use world::World;
use world::planes::{node_of, plane, pod};

const CONF: &str = "
actions: \"enqueue, allocate\"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
";

/// Its node says that the pod has so many cpus.
fn has(world: &mut World, name: &str, cpus: u32, conditions: Value) {
    let resources = json!({ "cpu": cpus.to_string() });
    let container = json!({
        "name": "c",
        "allocatedResources": resources,
        "resources": { "requests": resources },
    });
    let status = json!({
        "phase": "Running",
        "containerStatuses": [container],
        "conditions": conditions,
    });
    world.put_object(Kind::Pod, name, &json!({ "status": status }));
}

fn wants(world: &mut World, name: &str, cpus: u32) {
    let requests = json!({ "requests": { "cpu": cpus.to_string() } });
    let containers = json!([{ "name": "c", "resources": requests }]);
    world.put_object(
        Kind::Pod,
        name,
        &json!({ "spec": { "containers": containers } }),
    );
}

/// One node of four cores, on which a pod has three of them.
fn running() -> World {
    let mut world = plane(CONF, 1);
    pod(&mut world, "first", 3, None);
    world.pass_ms(2_000);
    has(&mut world, "first", 3, json!([]));
    world
}

#[test]
fn what_a_pod_gives_up_is_free_once_its_node_has_taken_it_back() {
    let mut world = running();
    wants(&mut world, "first", 1);
    pod(&mut world, "second", 2, None);
    world.pass_ms(2_000);
    assert_eq!(
        node_of(&world, "second"),
        Value::Null,
        "the first has three still"
    );
    has(&mut world, "first", 1, json!([]));
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "second"), "node-1");
}

#[test]
fn what_a_pod_will_get_is_kept_for_it_and_what_it_never_gets_is_not() {
    let pending =
        |reason: &str| json!([{ "type": "PodResizePending", "status": "True", "reason": reason }]);
    for (reason, expected) in [("Deferred", Value::Null), ("Infeasible", json!("node-1"))] {
        let mut world = running();
        wants(&mut world, "first", 4);
        has(&mut world, "first", 3, pending(reason));
        pod(&mut world, "second", 1, None);
        world.pass_ms(2_000);
        assert_eq!(node_of(&world, "second"), expected, "{reason}");
    }
}
