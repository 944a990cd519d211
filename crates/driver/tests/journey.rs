//! The main journey with every controller and the engine in one loop: a job of five with a shared
//! claim, from its creation to pods bound on a node.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::Engine;
use serde_json::json;
use world::{World, settings};

fn plane() -> World {
    let mut settings = settings(controllers::CONTROLLERS);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    let active =
        json!({ "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" } });
    world.put_object(Kind::Namespace, "ns", &active);
    let node = json!({
        "metadata": { "labels": { "kubernetes.io/hostname": "node-1" } },
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" } },
    });
    world.put_object(Kind::Node, "node-1", &node);
    for (name, parent) in [("root", ""), ("default", "root")] {
        let queue = json!({
            "spec": { "weight": 1, "parent": parent },
            "status": { "state": "Open" },
        });
        world.put_object(Kind::Queue, name, &queue);
    }
    let class = json!({
        "metadata": { "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
        "provisioner": "katmai.dev/directory",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    world.put_object(Kind::StorageClass, "standard", &class);
    world.settle();
    world.asked();
    world
}

#[test]
fn a_job_of_five_with_a_shared_claim_is_bound_whole() {
    let mut world = plane();
    let claim = json!({
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "standard",
            "resources": { "requests": { "storage": "1Gi" } },
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PersistentVolumeClaim, "shared", &claim);
    let task = |name: &str, replicas: i32| {
        json!({
            "name": name,
            "replicas": replicas,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main",
                    "image": "sh",
                    "resources": { "requests": { "cpu": "100m" } },
                }],
            }},
        })
    };
    let job = json!({
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 5,
            "queue": "default",
            "maxRetry": 3,
            "plugins": { "env": [], "svc": [] },
            "volumes": [{ "mountPath": "/data", "volumeClaimName": "shared" }],
            "tasks": [task("master", 1), task("worker", 4)],
        },
    });
    world.put_object(Kind::VcJob, "training", &job);
    world.pass_ms(10_000);
    for name in [
        "training-master-0",
        "training-worker-0",
        "training-worker-3",
    ] {
        let pod = world.object(Kind::Pod, name);
        assert_eq!(
            pod["spec"]["nodeName"], "node-1",
            "{name}: {:#?}",
            world.log
        );
    }
    let binds = world
        .writes()
        .iter()
        .filter(|line| line.starts_with("bind"))
        .count();
    assert_eq!(binds, 5);
    for name in ["master-0", "worker-0", "worker-1", "worker-2", "worker-3"] {
        let running = json!({ "status": { "phase": "Running" } });
        world.put_object(Kind::Pod, &format!("training-{name}"), &running);
    }
    world.pass_ms(10_000);
    let state = &world.object(Kind::VcJob, "training")["status"]["state"];
    assert_eq!(state["phase"], "Running");
    for name in ["master-0", "worker-0", "worker-1", "worker-2", "worker-3"] {
        let over = json!({ "status": { "phase": "Succeeded" } });
        world.put_object(Kind::Pod, &format!("training-{name}"), &over);
    }
    world.pass_ms(10_000);
    let state = &world.object(Kind::VcJob, "training")["status"]["state"];
    assert_eq!(state["phase"], "Completed");
    world.asked();
    world.pass_ms(3_600_000);
    assert_eq!(
        world.writes(),
        Vec::<String>::new(),
        "I20: zero writes at rest"
    );
    assert!(world.driver.is_quiet());
    assert_eq!(world.driver.metrics().violations, 0);
}
