//! Queues that limit devices by the claims of their pods, in the loop.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::{Engine, PluginSettings, Settings};
use serde_json::{Value, json};
use world::{World, settings};

/// A node of four GPUs, and a queue that may have two of them.
fn plane() -> World {
    let mut rules = Settings::default();
    let names = ["gang", "predicates", "capacity"];
    rules.placement.tiers = vec![names.map(PluginSettings::named).to_vec()];
    let (engine, _) = Engine::new(rules).expect("the plugins are known");
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["volcano".into()],
        ..EngineSettings::new(engine)
    });
    let mut world = World::new(settings);
    world.put_queues();
    let capability = json!({ "spec": { "capability": { "deviceclass/gpu": "2" } } });
    world.put_object(Kind::Queue, "default", &capability);
    let selectors = json!([{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }]);
    let class = json!({ "spec": { "selectors": selectors } });
    world.put_object(Kind::DeviceClass, "gpu", &class);
    let status = json!({ "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "110" } });
    world.put_object(Kind::Node, "node-1", &json!({ "status": status }));
    let devices = (0..4).map(|at| json!({ "name": format!("gpu-{at}") }));
    let slice = json!({ "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": { "name": "node-1", "generation": 1, "resourceSliceCount": 1 },
        "devices": devices.collect::<Vec<_>>(),
    } });
    world.put_object(Kind::ResourceSlice, "node-1", &slice);
    world
}

fn claim(world: &mut World, name: &str, count: u32) {
    let request = json!({ "deviceClassName": "gpu", "count": count });
    let requests = json!([{ "name": "r", "exactly": request }]);
    let claim = json!({ "spec": { "devices": { "requests": requests } } });
    world.put_object(Kind::ResourceClaim, name, &claim);
}

fn pod(world: &mut World, name: &str, claim: &str) {
    let pod = json!({
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            "resourceClaims": [{ "name": "gpus", "resourceClaimName": claim }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn placed(world: &World, pods: &[&str]) -> Vec<bool> {
    let node = |pod: &&str| &world.object(Kind::Pod, pod)["spec"]["nodeName"];
    pods.iter().map(|pod| node(pod).is_string()).collect()
}

fn shown(world: &World) -> Value {
    world.object(Kind::Queue, "default")["status"]["allocated"]["deviceclass/gpu"].clone()
}

#[test]
fn a_queue_has_no_more_devices_than_it_may_although_there_are_some() {
    let mut world = plane();
    for (name, count) in [("one", 1), ("two", 2)] {
        claim(&mut world, name, count);
        pod(&mut world, name, name);
        world.pass_ms(2_000);
    }
    assert_eq!(placed(&world, &["one", "two"]), [true, false]);
    let shown_why = &world.object(Kind::Pod, "two")["status"]["conditions"][0]["message"];
    assert_eq!(
        mirror::plain_words(shown_why.as_str().unwrap_or("")),
        "queue default has 1 left of its share, a task needs 2 deviceclass/gpu"
    );
    assert_eq!(shown(&world), "1");
    let over = json!({ "status": { "phase": "Succeeded" } });
    world.put_object(Kind::Pod, "one", &over);
    world.pass_ms(2_000);
    assert_eq!(placed(&world, &["two"]), [true]);
    assert_eq!(shown(&world), "2");
}

#[test]
fn a_claim_that_pods_share_counts_once() {
    let mut world = plane();
    claim(&mut world, "shared", 2);
    pod(&mut world, "one", "shared");
    world.pass_ms(2_000);
    pod(&mut world, "two", "shared");
    world.pass_ms(2_000);
    assert_eq!(placed(&world, &["one", "two"]), [true, true]);
    assert_eq!(shown(&world), "2");
    claim(&mut world, "another", 1);
    pod(&mut world, "three", "another");
    world.pass_ms(2_000);
    assert_eq!(placed(&world, &["three"]), [false]);
}
