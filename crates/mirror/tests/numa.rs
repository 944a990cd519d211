//! NUMA nodes: what is told of them, what pods want and have, and what cannot be meant.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::{Key, NumaLayout, Tables};
use serde_json::{Value, json};

/// Tables after the objects have come.
fn fed(objects: &[(Kind, Value)]) -> Tables {
    let mut rows = Rows::new(vec!["volcano".into()]).with_numa();
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(*kind, &object.to_string());
        if let Some(change) = change.expect("the object is read") {
            rows.feed(&mirror, &change, &mut tables);
        }
    }
    tables
}

fn node() -> (Kind, Value) {
    let object = json!({
        "metadata": { "name": "n1", "uid": "n1", "resourceVersion": "1" },
        "status": { "allocatable": { "cpu": "8", "memory": "8Gi" } },
    });
    (Kind::Node, object)
}

fn topology(version: u32, spec: Value) -> (Kind, Value) {
    let object = json!({
        "metadata": { "name": "n1", "uid": "t", "resourceVersion": version.to_string() },
        "spec": spec,
    });
    (Kind::Numatopology, object)
}

/// Two sockets of two cores of two threads, where core numbers begin anew on each socket.
fn spec() -> Value {
    let cpu = |at: u32| json!({ "numa": at / 4, "socket": at / 4, "core": at % 4 / 2 });
    let detail: serde_json::Map<String, Value> =
        (0..8).map(|at| (at.to_string(), cpu(at))).collect();
    json!({
        "policies": { "CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted" },
        "resReserved": { "cpu": "1500m", "memory": "1Gi" },
        "numares": { "cpu": { "allocatable": "0-3,6-7,9", "capacity": 8 }, "memory": {} },
        "cpuDetail": detail,
    })
}

fn layout(tables: &Tables) -> Option<NumaLayout> {
    let id = tables.node_named("n1").expect("the node has a row");
    tables.node(id).spec.numa.as_deref().cloned()
}

fn pod(annotations: Value, on: &str, containers: Value) -> (Kind, Value) {
    let mut all = json!({ "scheduling.k8s.io/group-name": "g" });
    for (key, value) in annotations.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let object = json!({
        "metadata": {
            "name": "p", "namespace": "a", "uid": "u", "resourceVersion": "1", "annotations": all,
        },
        "spec": { "schedulerName": "volcano", "nodeName": on, "containers": containers },
    });
    (Kind::Pod, object)
}

/// Containers of these cpus, with as much requested as allowed.
fn containers(cpus: &[&str]) -> Value {
    let container = |(at, cpu): (usize, &&str)| {
        let amounts = json!({ "cpu": cpu, "memory": "1Gi" });
        json!({
            "name": format!("c{at}"),
            "resources": { "limits": amounts, "requests": amounts },
        })
    };
    cpus.iter().enumerate().map(container).collect()
}

fn wants(tables: &Tables) -> Option<String> {
    let task = tables.task_keyed(&Key::new("a", "p"));
    let task = task.expect("the pod has a row");
    let ask = tables.shape_of(task).spec.numa.as_deref()?;
    let units = |units: &[(std::sync::Arc<str>, u32)]| -> String {
        let each = units.iter().map(|(name, count)| format!(" {count} {name}"));
        each.collect()
    };
    let parts = ask.parts.iter();
    let parts: Vec<String> = parts
        .map(|part| format!("{}{}", part.container, units(&part.units)))
        .collect();
    Some(format!("{}: {}", ask.policy, parts.join(", ")))
}

fn holds(tables: &Tables) -> String {
    let task = tables.task_keyed(&Key::new("a", "p"));
    let task = tables.task(task.expect("the pod has a row"));
    let grants = task.grants.iter();
    let grants: Vec<String> = grants
        .map(|grant| format!("{}:{}", grant.card, grant.units))
        .collect();
    grants.join(" ")
}

#[test]
fn a_node_is_laid_out_as_is_told_whichever_comes_first() {
    let told = [
        fed(&[node(), topology(1, spec())]),
        fed(&[topology(1, spec()), node()]),
    ];
    for tables in told {
        let layout = layout(&tables).expect("it is told of");
        assert!(layout.pins_cpus && !layout.is_garbled);
        assert_eq!(&*layout.policy, "restricted");
        assert_eq!(layout.nodes, [0, 1]);
        let lists = |all: &[model::Units]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(lists(&layout.sockets), ["0-3", "4-7"]);
        let cores: Vec<String> = layout
            .cores
            .iter()
            .map(|(s, c)| format!("{s}:{c}"))
            .collect();
        assert_eq!(cores, ["0:0-1", "0:2-3", "1:4-5", "1:6-7"]);
        assert_eq!(layout.reserved_cpus, 2, "part of a cpu is kept whole");
        let [cpus] = &layout.resources[..] else {
            panic!("{layout:?}");
        };
        assert_eq!(cpus.open.to_string(), "0-3,6-7", "there is no cpu 9");
    }
}

#[test]
fn where_gpus_are_may_be_told_too() {
    let mut spec = spec();
    spec["numares"]["nvidia.com/gpu"] = json!({ "allocatable": "0-2" });
    spec["gpuDetail"] =
        json!({ "0": {}, "1": { "numa": 1, "busID": "0000:3b" }, "2": { "numa": 4 } });
    let layout = layout(&fed(&[node(), topology(1, spec)])).expect("it is told of");
    assert_eq!(layout.nodes, [0, 1, 4]);
    let gpus: Vec<String> = layout.resources[1]
        .by_node
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(gpus, ["0", "1", "2"]);
}

#[test]
fn what_cannot_be_meant_is_garbled_and_keeps_its_policies() {
    let edits: &[(&str, Value)] = &[
        ("/numares/cpu/allocatable", json!("0-4294967295")),
        ("/numares/cpu/allocatable", json!("4-0")),
        ("/numares/cpu/allocatable", json!("all")),
        ("/cpuDetail/0/numa", json!(-1)),
        ("/cpuDetail/0/socket", json!(9_223_372_036_854_775_807_i64)),
        ("/cpuDetail/0/core", json!(4_096)),
        ("/cpuDetail", json!({ "4096": {} })),
        ("/cpuDetail", json!({ "-1": {} })),
        ("/cpuDetail", json!({ "1": {}, "01": { "numa": 1 } })),
        ("/cpuDetail", json!({ "one": {} })),
        ("/resReserved/cpu", json!("-1")),
        ("/resReserved/cpu", json!("much")),
    ];
    for (path, value) in edits {
        let mut spec = spec();
        *spec.pointer_mut(path).expect("the place is there") = value.clone();
        let layout = layout(&fed(&[node(), topology(1, spec)])).expect("it is told of");
        assert!(layout.is_garbled, "{path} {value}");
        assert!(layout.pins_cpus && &*layout.policy == "restricted");
        assert!(layout.resources.is_empty());
    }
    let nodes: serde_json::Map<String, Value> = (0..9)
        .map(|at| (at.to_string(), json!({ "numa": at })))
        .collect();
    let mut many = spec();
    many["cpuDetail"] = nodes.into();
    let layout = layout(&fed(&[node(), topology(1, many)])).expect("it is told of");
    assert!(layout.is_garbled, "nine NUMA nodes");
}

#[test]
fn a_list_as_long_as_an_object_may_be_is_read_in_no_time() {
    let mut spec = spec();
    let list = vec!["0-4095"; 200_000].join(",");
    spec["numares"]["cpu"]["allocatable"] = json!(list);
    let layout = layout(&fed(&[node(), topology(1, spec)])).expect("it is told of");
    assert_eq!(layout.resources[0].open.to_string(), "0-7");
}

#[test]
fn a_node_that_is_not_there_gets_no_row_and_one_that_tells_no_more_has_no_layout() {
    let tables = fed(&[topology(1, spec())]);
    assert!(tables.node_named("n1").is_none());

    let mut rows = Rows::new(vec!["volcano".into()]).with_numa();
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in [node(), topology(1, spec())] {
        let change = mirror.apply(kind, &object.to_string());
        let change = change.expect("it is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    assert!(layout(&tables).is_some());
    let change = mirror.delete(Kind::Numatopology, &topology(2, spec()).1.to_string());
    let change = change.expect("it is read").expect("it was there");
    rows.feed(&mirror, &change, &mut tables);
    assert_eq!(layout(&tables), None);
}

#[test]
fn news_of_a_node_leave_its_layout_and_news_of_that_are_seen_after_them() {
    let mut rows = Rows::new(vec!["volcano".into()]).with_numa();
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let mut feed = |object: &(Kind, Value)| {
        let change = mirror.apply(object.0, &object.1.to_string());
        let change = change.expect("it is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
        let id = tables.node_named("n1").expect("the node has a row");
        tables.node(id).spec.numa.clone()
    };
    let beat = |version: u32| {
        let (kind, mut node) = node();
        node["metadata"]["resourceVersion"] = json!(version.to_string());
        node["metadata"]["labels"] = json!({ "beat": version.to_string() });
        (kind, node)
    };
    assert_eq!(feed(&node()), None);
    let before = feed(&topology(1, spec())).expect("it is told of");
    let after = feed(&beat(2)).expect("it is still told of");
    assert!(
        std::sync::Arc::ptr_eq(&before, &after),
        "nothing is read again"
    );
    let mut less = spec();
    less["numares"]["cpu"]["allocatable"] = json!("0");
    for news in [topology(2, less), beat(3)] {
        let layout = feed(&news).expect("it is told of");
        assert_eq!(layout.resources[0].open.to_string(), "0");
    }
}

#[test]
fn who_wants_what_of_numa_nodes() {
    let asks = |annotations: Value, containers: Value| {
        wants(&fed(&[node(), pod(annotations, "", containers)]))
    };
    let policy = |policy: &str| json!({ "volcano.sh/numa-topology-policy": policy });
    let restricted = || policy("restricted");
    assert_eq!(
        asks(restricted(), containers(&["2", "500m", "3"])).as_deref(),
        Some("restricted: c0 2 cpu, c2 3 cpu")
    );
    assert_eq!(
        asks(policy("none"), containers(&["2"])).as_deref(),
        Some(": c0 2 cpu"),
        "none is no policy"
    );
    assert_eq!(asks(json!({}), containers(&["500m"])), None);
    assert_eq!(
        asks(restricted(), containers(&["1500m"])).as_deref(),
        Some("restricted: "),
        "its node must have the policy all the same"
    );
    assert_eq!(
        asks(restricted(), containers(&["99999999999999"])).as_deref(),
        Some("restricted: c0 4096 cpu")
    );
    let loose = json!([{ "name": "c", "resources": { "requests": { "cpu": "2" } } }]);
    assert_eq!(asks(restricted(), loose), None, "not Guaranteed");
    let only_limits = json!([{ "name": "c", "resources": { "limits": { "cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1" } } }]);
    assert_eq!(
        asks(restricted(), only_limits).as_deref(),
        Some("restricted: c 2 cpu 1 nvidia.com/gpu")
    );
}

#[test]
fn what_a_pod_has_is_what_its_node_tells_else_what_was_decided() {
    let decided = |units: &str| json!({ "katmai.dev/numa-units": units });
    let bound = |units: &str| pod(decided(units), "n1", containers(&["2", "1"]));
    let told = |allocation: Value| {
        let mut spec = spec();
        spec["podAllocations"] = json!([allocation]);
        topology(2, spec)
    };
    let given = |lists: &[&str]| -> Value {
        let given = |list: &&str| json!({ "allocations": { "cpu": list } });
        lists.iter().map(given).collect()
    };
    let first = || [node(), topology(1, spec()), bound(r#"{"cpu":"0-2"}"#)];
    assert_eq!(holds(&fed(&first())), "cpu:0-2");

    let after = |allocation: Value| {
        let mut objects = first().to_vec();
        objects.push(told(allocation));
        fed(&objects)
    };
    let by_uid = json!({ "uid": "u", "containerAllocations": given(&["4", "5,7"]) });
    let tables = after(by_uid);
    assert_eq!(holds(&tables), "cpu:4-5,7");
    let open = layout(&tables).map(|it| it.resources[0].open.to_string());
    assert_eq!(
        open.as_deref(),
        Some("0-7"),
        "what it has is somebody else's once it is gone"
    );

    let by_name = json!({ "name": "p", "namespace": "a", "containerAllocations": given(&["6"]) });
    assert_eq!(holds(&after(by_name)), "cpu:6");
    let other =
        json!({ "name": "p", "namespace": "b", "uid": "v", "containerAllocations": given(&["6"]) });
    assert_eq!(holds(&after(other)), "cpu:0-2");
    let nothing_yet = json!({ "uid": "u", "containerAllocations": given(&[""]) });
    assert_eq!(holds(&after(nothing_yet)), "cpu:0-2");
    let garbled = json!({ "uid": "u", "containerAllocations": given(&["x"]) });
    assert_eq!(holds(&after(garbled)), "cpu:0-2");

    for units in [
        r#"{"cpu":"0-3"}"#,
        "[]",
        "{",
        r#"{"cpu":3}"#,
        r#"{"cpu":"a"}"#,
        r#"{"gpu":"0"}"#,
    ] {
        let tables = fed(&[node(), topology(1, spec()), bound(units)]);
        assert_eq!(
            holds(&tables),
            "",
            "{units} is more than it wants, or nothing"
        );
    }
}
