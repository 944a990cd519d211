//! Hyper-nodes: a gang that must be close together is, stays so, and is told where.

mod world;

use api::kind::Kind;
use api::volcano::HyperNode;
use driver::EngineSettings;
use engine::Engine;
use serde_json::{Value, json};
use world::{World, refusal, settings};

fn plane() -> World {
    let mut settings = settings(controllers::CONTROLLERS);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    let mut world = World::new(settings);
    for (name, cpu) in [("n-1", "3"), ("n-2", "1"), ("n-3", "1")] {
        let node =
            json!({ "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } } });
        world.put_object(Kind::Node, name, &node);
    }
    world.put_queues();
    world
}

fn hyper_node(world: &mut World, name: &str, members: &[&str]) {
    let members = members
        .iter()
        .map(|name| json!({ "type": "Node", "selector": { "exactMatch": { "name": name } } }));
    let spec = json!({ "spec": { "tier": 1, "members": members.collect::<Vec<_>>() } });
    world.put_object(Kind::HyperNode, name, &spec);
}

fn node_of(world: &World, name: &str) -> Value {
    world.object(Kind::Pod, name)["spec"]["nodeName"].clone()
}

#[test]
fn a_gang_waits_for_a_hyper_node_and_is_told_which_one_it_got() {
    let mut world = plane();
    let group = json!({
        "spec": {
            "minMember": 2, "queue": "default",
            "networkTopology": { "mode": "hard", "highestTierAllowed": 1 },
        },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "g", &group);
    world.put_member("g", "p-0");
    world.put_member("g", "p-1");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-0"), Value::Null);
    let conditions = &world.object(Kind::PodGroup, "g")["status"]["conditions"];
    let message = conditions[0]["message"].as_str().expect("a message");
    let said = "Origin reason is: there is no hyper-node of tier 1 or lower";
    assert!(message.contains(said), "{message}");

    // One core each: only together they hold the gang, though n-1 would hold it alone.
    hyper_node(&mut world, "rack", &["n-2", "n-3"]);
    world.pass_ms(2_000);
    let nodes = [node_of(&world, "p-0"), node_of(&world, "p-1")];
    assert_eq!(nodes, ["n-2", "n-3"]);
    let group = world.object(Kind::PodGroup, "g");
    let told = &group["metadata"]["annotations"]["volcano.sh/job-allocated-hypernode"];
    assert_eq!(told, "rack");
    world.writes();
    world.pass_ms(10_000);
    let again = world.writes();
    assert!(
        !again.iter().any(|write| write.contains("PodGroup")),
        "{again:?}"
    );

    // Whoever comes later stays in the rack, and its message says where it was looked for.
    world.put_member("g", "p-2");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-2"), Value::Null);
    let message = &world.object(Kind::Pod, "p-2")["status"]["conditions"][0]["message"];
    let message = message.as_str().expect("a message");
    assert!(message.contains("in hyper-node rack"), "{message}");
}

#[test]
fn a_cluster_without_hyper_nodes_is_served_and_gets_them_when_they_come() {
    let mut world = plane();
    world.absent.extend([Kind::HyperNode, Kind::Numatopology]);
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "g", &group);
    world.put_member("g", "p-0");
    world.settle();
    assert!(world.driver.is_synced());
    assert!(node_of(&world, "p-0").is_string(), "it is placed");
    let lists = |asked: Vec<String>| {
        let lists = asked.into_iter();
        lists
            .filter(|line| line.starts_with("list hypernodes"))
            .count()
    };
    assert_eq!(lists(world.asked()), 1);
    world.pass_ms(59_000);
    assert_eq!(lists(world.asked()), 0, "it is looked again once a minute");
    world.absent.clear();
    hyper_node(&mut world, "h", &["n-1"]);
    world.pass_ms(2_000);
    let asked = world.asked();
    assert!(
        asked
            .iter()
            .any(|line| line.starts_with("watch hypernodes"))
    );
    let known = world.driver.mirror().list::<HyperNode>().count();
    assert_eq!(known, 1);
    // Its definition is deleted, and the hyper-node with it.
    world.absent.insert(Kind::HyperNode);
    world.close_watch_of(Kind::HyperNode, Some(refusal(404, "NotFound")));
    world.pass_ms(1_000);
    let known = world.driver.mirror().list::<HyperNode>().count();
    assert_eq!(known, 0);
    assert!(world.driver.is_synced());
}
