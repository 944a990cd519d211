//! What a group says of its tasks reaches the scheduler, and its people hear of it when it is ignored.

mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::{Engine, PluginSettings, Settings};
use serde_json::{Value, json};
use world::{World, settings};

/// Two nodes of which the second one is larger, and a group of a ps and a worker with these annotations.
fn placed(annotations: &Value) -> World {
    let mut rules = Settings::default();
    let names = ["gang", "predicates", "task-topology"];
    rules.placement.tiers = vec![names.map(PluginSettings::named).to_vec()];
    let (engine, _) = Engine::new(rules).expect("the plugins are known");
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(engine));
    let mut world = World::new(settings);
    for (name, cpu) in [("node-1", "1"), ("node-2", "2")] {
        let room = json!({ "cpu": cpu, "memory": "8Gi", "pods": "110" });
        let node = json!({ "status": { "allocatable": room } });
        world.put_object(Kind::Node, name, &node);
    }
    world.put_queues();
    let group = json!({
        "metadata": { "annotations": annotations },
        "spec": { "minMember": 2, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "g", &group);
    for role in ["ps", "worker"] {
        let pod = json!({
            "metadata": { "annotations": {
                "scheduling.k8s.io/group-name": "g",
                "volcano.sh/task-spec": role,
            } },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
            },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::Pod, &format!("g-{role}-0"), &pod);
    }
    world.pass_ms(2_000);
    world
}

fn nodes(world: &World) -> [&Value; 2] {
    ["g-ps-0", "g-worker-0"].map(|pod| &world.object(Kind::Pod, pod)["spec"]["nodeName"])
}

fn ignored(world: &World) -> Vec<String> {
    let events = world.events().into_iter();
    events
        .filter(|it| it.contains("TaskTopologyIgnored"))
        .collect()
}

#[test]
fn tasks_that_like_each_other_go_to_the_node_that_takes_both() {
    let world = placed(&json!({ "volcano.sh/task-topology-affinity": "ps, worker;" }));
    assert_eq!(nodes(&world), ["node-2", "node-2"]);
    assert_eq!(ignored(&world), Vec::<String>::new());
}

#[test]
fn a_task_that_there_is_not_is_told_once_and_stops_nobody() {
    let mut world = placed(&json!({
        "volcano.sh/task-topology-affinity": "ps,worker",
        "volcano.sh/task-topology-task-order": "worker,trainer",
    }));
    assert_eq!(nodes(&world), ["node-1", "node-2"]);
    let told = [
        "PodGroup Warning TaskTopologyIgnored: its task topology is ignored: it has no task trainer",
    ];
    assert_eq!(ignored(&world), told);
    world.pass_ms(3_600_000);
    assert_eq!(ignored(&world), told, "nothing has changed");
}
