//! How many volumes a node bears: from CSINodes, claims, volumes and classes to binds.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::Engine;
use serde_json::{Value, json};
use world::{World, settings};

fn plane() -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    world.put_queues();
    let allocatable = json!({ "cpu": "8", "memory": "8Gi", "pods": "110" });
    world.put_object(
        Kind::Node,
        "node-1",
        &json!({ "status": { "allocatable": allocatable } }),
    );
    world
}

fn bears(world: &mut World, allocatable: &Value) {
    let drivers = json!([
        { "name": "disk.csi", "nodeID": "i-1", "topologyKeys": null, "allocatable": allocatable },
        { "name": "files.csi", "nodeID": "i-1", "topologyKeys": [] },
    ]);
    world.put_object(
        Kind::CsiNode,
        "node-1",
        &json!({ "spec": { "drivers": drivers } }),
    );
}

fn bound_claim(world: &mut World, name: &str, driver: &str) {
    let volume = json!({ "spec": {
        "claimRef": { "namespace": "ns", "name": name },
        "csi": { "driver": driver, "volumeHandle": format!("vol-{name}") },
    }});
    world.put_object(Kind::PersistentVolume, &format!("pv-{name}"), &volume);
    let claim = json!({
        "spec": { "volumeName": format!("pv-{name}") },
        "status": { "phase": "Bound" },
    });
    world.put_object(Kind::PersistentVolumeClaim, name, &claim);
}

/// A claim of a class whose volumes `disk.csi` makes where their first consumer goes.
fn unbound_claim(world: &mut World, name: &str) {
    let class = json!({ "provisioner": "disk.csi", "volumeBindingMode": "WaitForFirstConsumer" });
    world.put_object(Kind::StorageClass, "late", &class);
    let claim = json!({ "spec": { "storageClassName": "late" }, "status": { "phase": "Pending" } });
    world.put_object(Kind::PersistentVolumeClaim, name, &claim);
}

/// A gang of one pod of its name, which mounts the claims.
fn pod(world: &mut World, name: &str, claims: &[&str]) {
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    let volumes = claims
        .iter()
        .map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }));
    let pod = json!({
        "metadata": { "annotations": { "scheduling.k8s.io/group-name": name } },
        "spec": {
            "schedulerName": "volcano",
            "volumes": volumes.collect::<Vec<_>>(),
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn is_bound(world: &World, pod: &str) -> bool {
    world.object(Kind::Pod, pod)["spec"]
        .get("nodeName")
        .is_some()
}

fn selected(world: &World, claim: &str) -> bool {
    let claim = world.object(Kind::PersistentVolumeClaim, claim);
    !claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_null()
}

#[test]
fn a_node_bears_as_many_volumes_of_a_driver_as_its_csi_node_says() {
    let mut world = plane();
    bears(&mut world, &json!({ "count": 1 }));
    for (name, driver) in [("a", "disk.csi"), ("b", "disk.csi"), ("c", "files.csi")] {
        bound_claim(&mut world, name, driver);
        pod(&mut world, name, &[name]);
    }
    pod(&mut world, "same", &["a"]);
    world.pass_ms(2_000);
    assert!(is_bound(&world, "a") && is_bound(&world, "c") && is_bound(&world, "same"));
    assert!(!is_bound(&world, "b"));
    let condition = &world.object(Kind::Pod, "b")["status"]["conditions"][0];
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("0/1 nodes are unavailable: 1 node(s) exceed max volume count."),
        "{message}"
    );

    bears(&mut world, &json!({ "count": 2 }));
    world.pass_ms(2_000);
    assert!(is_bound(&world, "b"));
}

#[test]
fn a_driver_that_tells_no_number_has_no_limit_nor_has_a_node_without_a_csi_node() {
    let mut world = plane();
    bears(&mut world, &json!({ "count": 0 }));
    for name in ["a", "b"] {
        bound_claim(&mut world, name, "disk.csi");
        pod(&mut world, name, &[name]);
    }
    world.pass_ms(2_000);
    assert!(!is_bound(&world, "a") && !is_bound(&world, "b"));
    bears(&mut world, &json!({}));
    world.pass_ms(2_000);
    assert!(is_bound(&world, "a") && is_bound(&world, "b"));

    bears(&mut world, &json!({ "count": 2 }));
    bound_claim(&mut world, "d", "disk.csi");
    pod(&mut world, "d", &["d"]);
    world.pass_ms(2_000);
    assert!(!is_bound(&world, "d"));
    world.delete_object(Kind::CsiNode, "node-1");
    world.pass_ms(2_000);
    assert!(is_bound(&world, "d"));
}

/// From the choice of the node until the volume is there its slot is taken, under one name or another.
#[test]
fn a_volume_that_has_yet_to_be_made_takes_its_slot() {
    let mut world = plane();
    bears(&mut world, &json!({ "count": 1 }));
    for name in ["web-0", "web-1"] {
        unbound_claim(&mut world, &format!("data-{name}"));
        pod(&mut world, name, &[&format!("data-{name}")]);
    }
    world.pass_ms(2_000);
    assert!(selected(&world, "data-web-0"));
    assert!(!selected(&world, "data-web-1"));

    bound_claim(&mut world, "data-web-0", "disk.csi");
    world.pass_ms(2_000);
    assert!(is_bound(&world, "web-0"));
    assert!(!selected(&world, "data-web-1"));

    bears(&mut world, &json!({ "count": 2 }));
    world.pass_ms(2_000);
    assert!(selected(&world, "data-web-1"));
}

#[test]
fn claims_of_one_pod_that_are_alike_take_a_slot_each() {
    let mut world = plane();
    bears(&mut world, &json!({ "count": 2 }));
    let claims = ["a-web-0", "b-web-0", "c-web-0"];
    for name in claims {
        unbound_claim(&mut world, name);
    }
    pod(&mut world, "web-0", &claims);
    world.pass_ms(2_000);
    assert!(claims.iter().all(|name| !selected(&world, name)));
    bears(&mut world, &json!({ "count": 3 }));
    world.pass_ms(2_000);
    assert!(claims.iter().all(|name| selected(&world, name)));
}
