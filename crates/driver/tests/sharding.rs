//! Schedulers that share a cluster: by shards, by labels, by their part of a ring.

mod world;

use api::kind::Kind;
use api::volcano::ShardingMode;
use driver::EngineSettings;
use engine::Engine;
use mirror::{Reach, Slice};
use serde_json::{Value, json};
use world::{World, settings};

fn world(reach: Reach) -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["default-scheduler".into()],
        reach,
        ..EngineSettings::new(Engine::with_defaults())
    });
    let mut world = World::new(settings);
    for (name, zone) in [("n1", "a"), ("n2", "b"), ("n3", "c")] {
        let node = json!({
            "metadata": { "labels": { "zone": zone } },
            "status": { "allocatable": { "cpu": "1", "memory": "8Gi", "pods": "110" } },
        });
        world.put_object(Kind::Node, name, &node);
    }
    world.put_queues();
    world
}

fn shards(mode: ShardingMode) -> Reach {
    Reach {
        sharding: mode,
        shard: "volcano".into(),
        ..Reach::default()
    }
}

fn shard(world: &mut World, name: &str, desired: &[&str], in_use: &[&str]) {
    let shard = json!({
        "spec": { "nodesDesired": desired },
        "status": { "nodesInUse": in_use },
    });
    world.put_object(Kind::NodeShard, name, &shard);
}

fn pod(world: &mut World, name: &str, cpu: &str) {
    let pod = json!({
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn nodes_of(world: &World, pods: &[&str]) -> Vec<Value> {
    let node = |name: &&str| world.object(Kind::Pod, name)["spec"]["nodeName"].clone();
    pods.iter().map(node).collect()
}

fn status(world: &World) -> String {
    let status = &world.object(Kind::NodeShard, "volcano")["status"];
    format!(
        "uses {} adds {} removes {}",
        status["nodesInUse"], status["nodesToAdd"], status["nodesToRemove"]
    )
}

#[test]
fn a_node_is_used_once_the_other_shard_has_let_go_of_it() {
    let mut world = world(shards(ShardingMode::Hard));
    // Lists come in any order: ours is known before the other one.
    shard(&mut world, "volcano", &["n1", "n2"], &[]);
    shard(&mut world, "agent", &["n3"], &["n2", "n3"]);
    for name in ["a", "b", "c"] {
        pod(&mut world, name, "1");
    }
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a", "b"]), [json!("n1"), Value::Null]);
    assert_eq!(status(&world), r#"uses ["n1"] adds ["n2"] removes []"#);
    world.put_object(
        Kind::NodeShard,
        "agent",
        &json!({ "status": { "nodesInUse": ["n3"] } }),
    );
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["b", "c"]), [json!("n2"), Value::Null]);
    assert_eq!(status(&world), r#"uses ["n1","n2"] adds [] removes []"#);
    let told = &world.object(Kind::Pod, "c")["status"]["conditions"][0]["message"];
    let told = told.as_str().expect("a message");
    assert!(
        told.ends_with("and 1 node is outside this scheduler's shard"),
        "{told}"
    );
}

#[test]
fn the_status_is_written_when_it_changes_and_not_again() {
    let mut world = world(shards(ShardingMode::Hard));
    shard(&mut world, "volcano", &["n1"], &[]);
    world.pass_ms(5_000);
    let version = |world: &World| {
        world.object(Kind::NodeShard, "volcano")["metadata"]["resourceVersion"].clone()
    };
    let before = version(&world);
    assert_eq!(status(&world), r#"uses ["n1"] adds [] removes []"#);
    pod(&mut world, "a", "1");
    world.pass_ms(5_000);
    assert_eq!(nodes_of(&world, &["a"]), ["n1"]);
    assert_eq!(version(&world), before);
    shard(&mut world, "volcano", &["n2"], &["n1"]);
    world.pass_ms(5_000);
    assert_eq!(status(&world), r#"uses ["n2"] adds [] removes []"#);
}

#[test]
fn without_its_shard_a_scheduler_places_nothing_and_says_so() {
    let mut world = world(shards(ShardingMode::Hard));
    pod(&mut world, "a", "1");
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a"]), [Value::Null]);
    let message = |world: &World| {
        world.object(Kind::Pod, "a")["status"]["conditions"][0]["message"].to_string()
    };
    let told = message(&world);
    assert!(told.contains("shard volcano does not exist"), "{told}");
    shard(&mut world, "volcano", &["n3"], &[]);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a"]), ["n3"]);
    world.delete_object(Kind::NodeShard, "volcano");
    pod(&mut world, "b", "100m");
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["b"]), [Value::Null]);
}

#[test]
fn in_soft_mode_other_nodes_come_last() {
    let mut world = world(shards(ShardingMode::Soft));
    shard(&mut world, "volcano", &["n3"], &[]);
    world.pass_ms(100);
    for name in ["a", "b"] {
        pod(&mut world, name, "600m");
    }
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["a", "b"]), ["n3", "n1"]);
}

#[test]
fn only_nodes_with_one_of_the_labels_are_there() {
    let labels = [("zone", "b"), ("zone", "c")];
    let mut world = world(Reach {
        selector: labels.map(|(k, v)| (k.into(), v.into())).to_vec(),
        ..Reach::default()
    });
    for name in ["a", "b", "c"] {
        pod(&mut world, name, "1");
    }
    world.pass_ms(2_000);
    let nodes = nodes_of(&world, &["a", "b", "c"]);
    assert_eq!(nodes, [json!("n2"), json!("n3"), Value::Null]);
    let moved = json!({ "metadata": { "labels": { "zone": "b" } } });
    world.put_object(Kind::Node, "n1", &moved);
    world.pass_ms(2_000);
    assert_eq!(nodes_of(&world, &["c"]), ["n1"]);
}

#[test]
fn members_of_a_ring_share_nodes_and_pods_without_overlap() {
    let names: Vec<String> = (0..1_000).map(|at| format!("node-{at}")).collect();
    let owner = |of: u32, name: &str| {
        let members: Vec<u32> = (0..of)
            .filter(|index| Slice { index: *index, of }.owns(name))
            .collect();
        assert_eq!(members.len(), 1, "{name} of {of}");
        members[0]
    };
    for member in 0..4 {
        let count = names.iter().filter(|name| owner(4, name) == member).count();
        assert!((200..=300).contains(&count), "{member} has {count} of 1000");
    }
    // One member more takes names from the others, and moves none between them.
    for name in &names {
        let (before, after) = (owner(4, name), owner(5, name));
        assert!(after == before || after == 4, "{name}: {before} to {after}");
    }
}

#[test]
fn a_member_of_a_ring_leaves_the_pods_of_others_alone() {
    let slice = Slice { index: 0, of: 2 };
    let mut world = world(Reach {
        slice: Some(slice),
        ..Reach::default()
    });
    let names: Vec<String> = (0..8).map(|at| format!("p-{at}")).collect();
    for name in &names {
        pod(&mut world, name, "1m");
    }
    world.pass_ms(2_000);
    let has_node = ["n1", "n2", "n3"].iter().any(|name| slice.owns(name));
    assert!(has_node, "the test's names give it a node");
    for name in &names {
        let node = &world.object(Kind::Pod, name)["spec"]["nodeName"];
        assert_eq!(node.is_string(), slice.owns(name), "{name}");
        assert!(node.as_str().is_none_or(|node| slice.owns(node)), "{node}");
    }
}
