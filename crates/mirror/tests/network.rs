//! Hyper-nodes, and how close together a gang's pods must be, as rows.

use api::kind::Kind;
use mirror::{Mirror, Reach, Rows};
use model::{Closeness, Highest, Key, Tables};
use serde_json::{Value, json};

/// The settled tables after the objects have come.
fn tables(objects: Vec<(Kind, Value)>) -> Tables {
    tables_within(Reach::default(), objects)
}

/// The same for a scheduler that has only some of the nodes.
fn tables_within(reach: Reach, objects: Vec<(Kind, Value)>) -> Tables {
    let mut rows = Rows::new(vec!["volcano".into()]).within(reach);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    tables.settle();
    tables
}

fn node(name: &str, rack: &str) -> (Kind, Value) {
    let object = json!({
        "metadata": { "name": name, "resourceVersion": "1", "uid": name, "labels": { "rack": rack } },
    });
    (Kind::Node, object)
}

fn hyper_node(name: &str, tier: i64, members: Value) -> (Kind, Value) {
    let object = json!({
        "metadata": { "name": name, "resourceVersion": "1", "uid": name },
        "spec": { "tier": tier, "members": members },
    });
    (Kind::HyperNode, object)
}

fn nodes_of(tables: &Tables, name: &str) -> Vec<String> {
    let mut domains = tables.topology().domains();
    let (_, domain) = domains
        .find(|(_, domain)| *domain.name == *name)
        .expect("the hyper-node has its place");
    let names = domain.nodes.iter();
    names
        .map(|id| tables.node(*id).spec.name.to_string())
        .collect()
}

#[test]
fn members_are_selected_by_name_by_pattern_and_by_label() {
    let tables = tables(vec![
        hyper_node(
            "by-name",
            1,
            json!([{ "type": "Node", "selector": { "exactMatch": { "name": "n-1" } } }]),
        ),
        hyper_node(
            "by-label",
            1,
            json!([
                { "type": "Node", "selector": { "labelMatch": { "matchLabels": { "rack": "r2" } } } },
            ]),
        ),
        node("n-1", "r1"),
        node("n-2", "r2"),
        node("m-3", "r3"),
        // As in Go, a pattern may match anywhere in the name.
        hyper_node(
            "by-pattern",
            2,
            json!([{ "type": "Node", "selector": { "regexMatch": { "pattern": "-[13]" } } }]),
        ),
        hyper_node(
            "by-go-pattern",
            2,
            json!([{ "type": "Node", "selector": { "regexMatch": { "pattern": r"^\Qn-\E" } } }]),
        ),
        hyper_node(
            "above",
            3,
            json!([{ "type": "HyperNode", "selector": { "regexMatch": { "pattern": "^by-[nl]" } } }]),
        ),
    ]);
    assert_eq!(nodes_of(&tables, "by-name"), ["n-1"]);
    assert_eq!(nodes_of(&tables, "by-label"), ["n-2"]);
    assert_eq!(nodes_of(&tables, "by-pattern"), ["n-1", "m-3"]);
    assert_eq!(nodes_of(&tables, "by-go-pattern"), ["n-1", "n-2"]);
    assert_eq!(nodes_of(&tables, "above"), ["n-1", "n-2"]);
    assert_eq!(nodes_of(&tables, model::CLUSTER_TOP).len(), 3);
}

#[test]
fn what_cannot_be_read_selects_nothing() {
    let bomb = r"(\pL{100}){10}";
    let tables = tables(vec![
        node("n-1", "r1"),
        hyper_node(
            "broken",
            1,
            json!([
                { "type": "Node", "selector": { "regexMatch": { "pattern": "(" } } },
                { "type": "Node", "selector": { "regexMatch": { "pattern": bomb } } },
                { "type": "Node", "selector": { "regexMatch": { "pattern": "n-1**" } } },
                { "type": "Rack", "selector": { "exactMatch": { "name": "n-1" } } },
                { "type": "Node", "selector": {} },
                { "type": "Node" },
            ]),
        ),
        hyper_node(
            "far",
            i64::MAX,
            json!([{ "type": "Node", "selector": { "exactMatch": { "name": "n-1" } } }]),
        ),
    ]);
    assert!(nodes_of(&tables, "broken").is_empty());
    assert_eq!(nodes_of(&tables, "far"), ["n-1"]);
}

/// Members by patterns that take half a megabyte each once compiled.
fn large(name: &str, count: usize) -> (Kind, Value) {
    let patterns = (0..count).map(|at| {
        let pattern = format!("^{name}-{at}$|\\pL{{9}}!");
        json!({ "type": "Node", "selector": { "regexMatch": { "pattern": pattern } } })
    });
    hyper_node(name, 1, patterns.collect())
}

fn unreadable(tables: &Tables, name: &str) -> usize {
    let row = tables.hyper_node(name).expect("it has a row");
    row.unreadable.len()
}

#[test]
fn patterns_of_one_hyper_node_have_a_bound_together() {
    let tables = tables(vec![
        node("many-0", "r1"),
        node("many-1999", "r1"),
        node("other-0", "r1"),
        large("many", 2_000),
        large("other", 1),
    ]);
    assert!(unreadable(&tables, "many") > 1_900);
    assert_eq!(nodes_of(&tables, "many"), ["many-0"], "the first ones fit");
    assert_eq!(unreadable(&tables, "other"), 0);
    assert_eq!(nodes_of(&tables, "other"), ["other-0"]);
}

#[test]
fn a_thousand_small_patterns_fit() {
    let members = (0..900).map(|at| {
        let pattern = format!("^rack-{at}-[0-9]+$");
        json!({ "type": "Node", "selector": { "regexMatch": { "pattern": pattern } } })
    });
    let tables = tables(vec![
        node("rack-899-7", "r1"),
        hyper_node("racks", 1, members.collect()),
    ]);
    assert_eq!(unreadable(&tables, "racks"), 0);
    assert_eq!(nodes_of(&tables, "racks"), ["rack-899-7"]);
}

#[test]
fn a_group_says_how_close_together_its_pods_must_be() {
    let read = |topology: Value| {
        let group = json!({
            "metadata": { "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "1" },
            "spec": { "minMember": 1, "networkTopology": topology },
        });
        let tables = tables(vec![(Kind::PodGroup, group)]);
        let id = tables
            .gang_keyed(&Key::new("a", "g"))
            .expect("the group has a row");
        tables.gang(id).spec.closeness.clone()
    };
    let close = |highest| Some(Closeness::HyperNode(highest));
    let tier = |mode: &str| json!({ "mode": mode, "highestTierAllowed": 2 });
    assert_eq!(read(Value::Null), None);
    assert_eq!(read(tier("hard")), close(Highest::Tier(2)));
    assert_eq!(read(tier("soft")), close(Highest::Any));
    assert_eq!(read(json!({ "mode": "hard" })), close(Highest::Any));
    assert_eq!(
        read(json!({ "highestTierName": "rack" })),
        close(Highest::Named("rack".into()))
    );
}

#[test]
fn a_group_may_be_made_of_groups() {
    let group = json!({
        "metadata": { "name": "g", "namespace": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "minMember": 4, "subGroupPolicy": [{
            "name": "worker",
            "subGroupSize": 2,
            "minSubGroups": 2,
            "labelSelector": { "matchLabels": { "volcano.sh/task-spec": "worker" } },
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": { "highestTierAllowed": 1 },
        }, { "name": "other" }] },
    });
    let tables = tables(vec![(Kind::PodGroup, group)]);
    let id = tables
        .gang_keyed(&Key::new("a", "g"))
        .expect("the group has a row");
    let groups = &tables.gang(id).spec.sub_groups;
    assert_eq!((groups[0].size, groups[0].min), (2, 2));
    assert_eq!(groups[0].selector.len(), 1);
    assert_eq!(&*groups[0].keys[0], "volcano.sh/partition-id");
    let closeness = groups[0].closeness.clone();
    assert_eq!(closeness, Some(Closeness::HyperNode(Highest::Tier(1))));
    assert_eq!((groups[1].size, groups[1].min), (1, 0));
    assert!(groups[1].selector.is_empty() && groups[1].closeness.is_none());
}

#[test]
fn who_is_on_a_node_of_others_is_in_the_hyper_nodes_that_its_labels_say() {
    let reach = Reach {
        selector: vec![("owner".into(), "us".into())],
        ..Reach::default()
    };
    let rack = json!([
        { "type": "Node", "selector": { "labelMatch": { "matchLabels": { "rack": "r1" } } } },
    ]);
    let pod = json!({
        "metadata": { "name": "p", "namespace": "ns", "uid": "p", "resourceVersion": "1" },
        "spec": { "nodeName": "n-1", "containers": [{ "name": "c" }] },
        "status": { "phase": "Running" },
    });
    let objects = [
        hyper_node("r1", 1, rack),
        node("n-1", "r1"),
        (Kind::Pod, pod),
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 2, 0], [2, 1, 0]] {
        let ordered = order.map(|at| objects[at].clone()).to_vec();
        let tables = tables_within(reach.clone(), ordered);
        let id = tables.node_named("n-1").expect("a pod is on it");
        let found = tables.topology().domains();
        let mut found = found.filter(|(_, domain)| domain.left.contains(&id));
        assert!(!tables.node(id).known, "it is another's");
        assert!(
            found.any(|(_, domain)| *domain.name == *"r1"),
            "in the order {order:?}"
        );
    }
}
