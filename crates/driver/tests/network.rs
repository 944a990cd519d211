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
    let absent = [
        Kind::HyperNode,
        Kind::Numatopology,
        Kind::DeviceTaintRule,
        Kind::NativeGroup,
    ];
    world.absent.extend(absent);
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "g", &group);
    world.put_member("g", "p-0");
    world.settle();
    assert!(world.driver.is_synced());
    assert!(node_of(&world, "p-0").is_string(), "it is placed");
    let said: Vec<String> = std::iter::from_fn(|| world.driver.poll_notice())
        .map(|notice| notice.text)
        .filter(|text| text.contains("serves no"))
        .collect();
    let of = |plural: &str| said.iter().filter(|text| text.contains(plural)).count();
    assert_eq!((of("hypernodes"), of("numatopologies")), (1, 1), "{said:?}");
    assert_eq!(
        said.len(),
        2,
        "what no cluster has unasked is no news: {said:?}"
    );
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

/// The events of hyper-nodes that were not `seen` before, in order of what they say.
fn told(world: &mut World, seen: &mut Vec<String>) -> Vec<String> {
    world.pass_ms(2_000);
    let events = world.events();
    let of_hyper_nodes = events
        .iter()
        .filter(|event| event.starts_with("HyperNode "));
    let all: Vec<String> = of_hyper_nodes.cloned().collect();
    let mut news = all.clone();
    news.sort();
    for event in std::mem::replace(seen, all) {
        let at = news.iter().position(|other| *other == event);
        news.remove(at.expect("events stay"));
    }
    news
}

fn hyper_node_of(world: &mut World, name: &str, tier: i64, members: &[(&str, &str)]) {
    let members = members.iter().map(|(word, value)| {
        let selector = match *word {
            "pattern" => json!({ "regexMatch": { "pattern": value } }),
            _ => json!({ "exactMatch": { "name": value } }),
        };
        json!({ "type": "HyperNode", "selector": selector })
    });
    let members = members.collect::<Vec<_>>();
    let spec = json!({ "spec": { "tier": tier, "members": members } });
    world.put_object(Kind::HyperNode, name, &spec);
}

#[test]
fn hyper_nodes_that_contain_themselves_or_one_another_are_told_once_for_each_change() {
    let mut world = plane();
    let mut seen = Vec::new();
    hyper_node_of(&mut world, "own", 1, &[("name", "own")]);
    hyper_node_of(&mut world, "ring-a", 2, &[("name", "ring-b")]);
    hyper_node_of(&mut world, "ring-b", 2, &[("name", "ring-a")]);
    let ignored = "HyperNode Warning MemberIgnored: its member";
    assert_eq!(
        told(&mut world, &mut seen),
        [
            "HyperNode Warning MemberIgnored: it names itself as its member".to_owned(),
            format!("{ignored} ring-a does not hang below it: the tier of ring-a is not lower"),
            format!("{ignored} ring-b does not hang below it: the tier of ring-b is not lower"),
        ]
    );
    // Nothing has changed about these.
    hyper_node_of(&mut world, "ring-c", 4, &[("name", "ring-a")]);
    hyper_node(&mut world, "leaf", &["n-1"]);
    assert_eq!(told(&mut world, &mut seen), Vec::<String>::new());
    // Another wants what hangs already.
    hyper_node_of(&mut world, "ring-d", 5, &[("name", "ring-a")]);
    assert_eq!(
        told(&mut world, &mut seen),
        [format!(
            "{ignored} ring-a does not hang below it: it hangs below ring-c already"
        )]
    );
    // One that was put right and goes wrong again is told again.
    hyper_node_of(&mut world, "own", 2, &[("name", "leaf")]);
    assert_eq!(told(&mut world, &mut seen).len(), 0);
    let next = json!({ "metadata": { "generation": 2 } });
    world.put_object(Kind::HyperNode, "own", &next);
    hyper_node_of(&mut world, "own", 2, &[("name", "own")]);
    assert_eq!(told(&mut world, &mut seen).len(), 1);
}

#[test]
fn patterns_of_members_that_cannot_be_used_are_told() {
    let mut world = plane();
    let mut seen = Vec::new();
    hyper_node_of(&mut world, "bomb", 2, &[("pattern", "(a{1000}){1000}")]);
    hyper_node_of(&mut world, "torn", 2, &[("pattern", "(")]);
    hyper_node_of(&mut world, "fine", 3, &[("pattern", "^rack-")]);
    let of = |pattern: &str| {
        format!(
            "HyperNode Warning MemberIgnored: the pattern {pattern} of a member accepts no name: \
             it cannot be read or is too large"
        )
    };
    let expected = [of("("), of("(a{1000}){1000}")];
    assert_eq!(told(&mut world, &mut seen), expected);
}

#[test]
fn labels_of_members_that_cannot_be_read_are_told() {
    let mut world = plane();
    let mut seen = Vec::new();
    let wrong =
        json!({ "matchExpressions": [{ "key": "rack", "operator": "Like", "values": ["a"] }] });
    let fine = json!({ "matchLabels": { "rack": "a" } });
    for (name, labels) in [("wrong", wrong), ("fine", fine)] {
        let member = json!({ "type": "Node", "selector": { "labelMatch": labels } });
        let spec = json!({ "spec": { "tier": 1, "members": [member] } });
        world.put_object(Kind::HyperNode, name, &spec);
    }
    assert_eq!(
        told(&mut world, &mut seen),
        [
            "HyperNode Warning MemberIgnored: the labels of a member cannot be read: \"Like\" is not a valid \
             label selector operator"
        ]
    );
}

#[test]
fn what_is_wrong_with_members_is_told_once_whatever_rules_hold() {
    let mut world = plane();
    let mut seen = Vec::new();
    hyper_node_of(&mut world, "own", 1, &[("name", "own")]);
    assert_eq!(told(&mut world, &mut seen).len(), 1);
    let mut rules = engine::Settings::default();
    rules.placement.actions.truncate(2);
    let (engine, _) = Engine::new(rules).expect("the actions are known");
    let now = world.now;
    world
        .driver
        .handle_rules(engine, driver::scheduler_conf::MetricsConf::default(), now);
    assert_eq!(told(&mut world, &mut seen), Vec::<String>::new());
}
