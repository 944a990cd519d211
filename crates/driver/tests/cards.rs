//! Cards in the loop: a pod is bound with what it gets, and whoever comes after a restart knows it.

mod world;

use api::kind::Kind;
use driver::scheduler_conf::MetricsConf;
use driver::{EngineSettings, Settings, scheduler_conf};
use engine::Engine;
use serde_json::{Value, json};
use world::segments::{played, segments};
use world::{World, settings};

fn engine(policy: &str) -> Engine {
    let conf = format!(
        "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins:
  - name: predicates
  - name: overcommit
  - name: proportion
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: {policy}
"
    );
    let conf = scheduler_conf::read(conf.as_bytes()).accepted();
    let settings = engine::Settings {
        placement: conf.expect("it is understood").placement,
        ..engine::Settings::default()
    };
    Engine::new(settings).expect("its actions are known").0
}

fn placing(policy: &str) -> Settings {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(engine(policy)));
    settings
}

/// A node with two cards of 8000 MiB.
fn plane() -> World {
    let mut world = World::new(placing("spread"));
    world.driver.record(world.now);
    world.put_queues();
    let node = json!({
        "metadata": { "annotations": { "volcano.sh/node-vgpu-register":
            "GPU-a,10,8000,NVIDIA-A100,true,hami-core:GPU-b,10,8000,NVIDIA-A100,true,hami-core:",
        }},
        "status": { "allocatable": {
            "cpu": "8", "memory": "8Gi", "pods": "110", "volcano.sh/vgpu-number": "20",
            "volcano.sh/vgpu-memory": "16000", "volcano.sh/vgpu-cores": "200",
        }},
    });
    world.put_object(Kind::Node, "node-1", &node);
    world
}

fn pod(world: &mut World, name: &str, mib: u32) {
    let group = json!({
        "spec": { "minMember": 1, "queue": "default", "minResources": {
            "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": mib.to_string(),
            "volcano.sh/vgpu-memory-percentage": "50",
        }},
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    let amounts = json!({
        "cpu": "1", "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": mib.to_string(),
    });
    let pod = json!({
        "metadata": { "annotations": { "scheduling.k8s.io/group-name": name } },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": amounts, "limits": amounts } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
    world.pass_ms(2_000);
}

fn told(world: &World, pod: &str) -> Value {
    world.object(Kind::Pod, pod)["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"].clone()
}

#[test]
fn who_begins_anew_knows_whose_the_cards_are_and_every_segment_is_played_alike() {
    let mut world = plane();
    pod(&mut world, "one", 5_000);
    assert_eq!(told(&world, "one"), "GPU-b,NVIDIA,5000,0:");
    // Other rules begin with tables that are read anew from the API.
    let now = world.now;
    world
        .driver
        .handle_rules(engine("binpack"), MetricsConf::default(), now);
    world.pass_ms(2_000);
    pod(&mut world, "two", 2_000);
    assert_eq!(
        told(&world, "two"),
        "GPU-b,NVIDIA,2000,0:",
        "the fuller card"
    );
    pod(&mut world, "three", 4_000);
    assert_eq!(
        told(&world, "three"),
        "GPU-a,NVIDIA,4000,0:",
        "where it fits"
    );
    pod(&mut world, "four", 4_001);
    assert_eq!(told(&world, "four"), Value::Null, "nowhere");
    let conditions = &world.object(Kind::Pod, "four")["status"]["conditions"];
    let message = conditions[0]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("hami-vgpuDeviceSharing error"),
        "{message}"
    );

    world.delete_object(Kind::Pod, "one");
    world.pass_ms(2_000);
    assert_eq!(
        told(&world, "four"),
        "GPU-b,NVIDIA,4001,0:",
        "one has given it back"
    );

    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    for file in files {
        assert!(played(&file).places > 0);
    }
}
