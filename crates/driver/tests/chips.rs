//! Chips in the loop: MindCluster's ConfigMaps are read, and pods are bound with what they get.

mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::kind::Kind;
use driver::{Ask, EngineSettings, scheduler_conf};
use engine::Engine;
use serde_json::{Value, json};
use world::planes;
use world::segments::{played, segments};
use world::{World, settings};

/// Answers by the path that is asked for; who is not there has no ConfigMaps.
type Maps = Rc<RefCell<BTreeMap<&'static str, Result<Value, String>>>>;

const CLUSTER: &str =
    "/api/v1/namespaces/mindx-dl/configmaps?labelSelector=mx-consumer-volcano%3Dtrue";
const PLUGINS: &str =
    "/api/v1/namespaces/kube-system/configmaps?labelSelector=mx-consumer-cim%3Dtrue";
const PLUGIN_NODES: &str = "/api/v1/namespaces/mindx-dl/configmaps";

fn engine(parameters: &str) -> Engine {
    let conf = format!(
        "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins:
  - name: predicates
  - name: proportion
  - name: deviceshare
    arguments:
      deviceshare.AscendMindClusterVNPUEnable: true
{parameters}
"
    );
    planes::engine(&conf)
}

/// A node with chips of 8 cores, of which only ConfigMaps say which they are.
fn plane(parameters: &str, maps: &Maps) -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(engine(parameters)));
    let mut world = World::new(settings);
    let maps = maps.clone();
    world.teller = Some(Box::new(move |ask: &Ask| {
        let empty = || Ok(json!({ "items": [] }));
        let said = maps.borrow().get(&*ask.call.target).cloned();
        let said = said.unwrap_or_else(empty);
        Some(said.map(|value| value.to_string().into_bytes()))
    }));
    world.driver.record(world.now);
    world.put_queues();
    let amounts =
        json!({ "cpu": "8", "memory": "8Gi", "pods": "110", "huawei.com/npu-core": "16" });
    let node = json!({
        "metadata": { "labels": {
            "accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8",
        }},
        "status": { "allocatable": amounts, "capacity": amounts },
    });
    world.put_object(Kind::Node, "node-1", &node);
    world
}

fn list(name: &str, key: &str, said: &Value) -> Result<Value, String> {
    let map = json!({ "metadata": { "name": name }, "data": { key: said.to_string() } });
    Ok(json!({ "items": [map] }))
}

fn devices(free: &str, unhealthy: &str) -> Value {
    json!({ "DeviceList": {
        "huawei.com/Ascend310P": free, "huawei.com/Ascend310P-Unhealthy": unhealthy,
    }})
}

const OF_CLUSTER: &str = "cluster-info-device-0";

fn by_cluster(said: &Value) -> Result<Value, String> {
    let said = json!({ "mindx-dl-deviceinfo-node-1": said });
    list(OF_CLUSTER, OF_CLUSTER, &said)
}

/// Events that tell what is wrong with it.
fn flaws(world: &World) -> Vec<String> {
    let all = world.events().into_iter();
    all.filter(|it| it.contains("InvalidDeviceInfo")).collect()
}

fn pod(world: &mut World, name: &str, cores: u32) {
    let amounts = json!({ "cpu": "1", "huawei.com/npu-core": cores.to_string() });
    let group = json!({
        "spec": { "minMember": 1, "queue": "default" }, "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, name, &group);
    let pod = json!({
        "metadata": {
            "annotations": { "scheduling.k8s.io/group-name": name },
            "labels": { "ring-controller.atlas": "ascend-310P" },
        },
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
    world.object(Kind::Pod, pod)["metadata"]["annotations"]["huawei.com/npu-core"].clone()
}

fn settle(world: &mut World, pod: &str) {
    let real = json!({ "huawei.com/AscendReal": "Ascend310P-2c.1cpu-100-0_1" });
    world.put_object(
        Kind::Pod,
        pod,
        &json!({ "metadata": { "annotations": real } }),
    );
    world.pass_ms(2_000);
}

fn message(world: &World, pod: &str) -> String {
    let conditions = &world.object(Kind::Pod, pod)["status"]["conditions"];
    conditions[0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn chips_are_given_out_that_cluster_d_tells_of_and_a_wrong_list_changes_nothing() {
    let maps = Maps::default();
    let mut world = plane("", &maps);
    pod(&mut world, "one", 2);
    assert_eq!(told(&world, "one"), Value::Null, "nobody knows any chip");
    let both = by_cluster(&devices("Ascend310P-0,Ascend310P-1", ""));
    maps.borrow_mut().insert(CLUSTER, both);
    world.pass_ms(62_000);
    assert_eq!(told(&world, "one"), "0-vir02_1c");
    let at = &world.object(Kind::Pod, "one")["metadata"]["annotations"]["predicate-time"];
    let at: i64 = at
        .as_str()
        .and_then(|at| at.parse().ok())
        .expect("a number");
    let ago_ms = (world.now.micros() - at / 1_000) / 1_000;
    assert!((0..62_000).contains(&ago_ms), "in nanoseconds: {at}");
    pod(&mut world, "two", 1);
    assert_eq!(told(&world, "two"), Value::Null, "one is not made yet");
    let text = message(&world, "two");
    let wanted = "node(s) whose device plugin has yet to make parts of another size";
    assert!(text.contains(wanted), "{text}");
    settle(&mut world, "one");
    assert_eq!(told(&world, "two"), "0-vir01");

    // Who uses a chip strikes it out, and what cannot be understood is told once.
    let wrong = by_cluster(&json!({ "DeviceList": 7 }));
    maps.borrow_mut().insert(CLUSTER, wrong);
    world.pass_ms(130_000);
    let notices: Vec<String> = std::iter::from_fn(|| world.driver.poll_notice())
        .map(|notice| notice.text)
        .filter(|text| text.contains("MindCluster"))
        .collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("cluster-info-device-0"), "{notices:?}");
    maps.borrow_mut().insert(CLUSTER, Err("away".to_owned()));
    world.pass_ms(62_000);
    pod(&mut world, "three", 8);
    assert_eq!(told(&world, "three"), "1", "what was known still is");

    let none = by_cluster(&devices("", "Ascend310P-1"));
    maps.borrow_mut().insert(CLUSTER, none);
    world.delete_object(Kind::Pod, "three");
    world.pass_ms(62_000);
    settle(&mut world, "two");
    pod(&mut world, "four", 8);
    assert_eq!(
        told(&world, "four"),
        Value::Null,
        "it is not healthy any more"
    );
    pod(&mut world, "five", 1);
    assert_eq!(
        told(&world, "five"),
        "0-vir01",
        "its pods speak of the other"
    );

    let files = segments(&mut world);
    assert_eq!(files.len(), 1);
    assert_eq!(played(&files[0]).places, 4);
}

#[test]
fn what_is_wrong_is_told_at_the_node_of_which_it_speaks_else_at_the_config_map() {
    let maps = Maps::default();
    let mut world = plane("", &maps);
    let say = |world: &mut World, said: Result<Value, String>| {
        maps.borrow_mut().insert(CLUSTER, said);
        world.pass_ms(62_000);
        flaws(world)
    };
    let of_node = by_cluster(&json!({ "DeviceList": 7 }));
    let told = say(&mut world, of_node.clone());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("Node "), "{told:?}");
    assert!(told[0].contains("integer `7`"), "{told:?}");
    let told = say(&mut world, Err("away".to_owned()));
    assert_eq!(told.len(), 1, "nobody has said anything: {told:?}");
    assert_eq!(say(&mut world, of_node).len(), 1, "it is known");
    let told = say(&mut world, by_cluster(&json!({ "DeviceList": 8 })));
    assert_eq!(told.len(), 2, "another thing: {told:?}");
    let told = say(&mut world, list(OF_CLUSTER, OF_CLUSTER, &json!(7)));
    assert_eq!(told.len(), 3, "{told:?}");
    let of_map = told.iter().find(|it| it.starts_with("ConfigMap "));
    let of_map = of_map.expect("it speaks of no node");
    assert!(
        of_map.contains("mindx-dl/cluster-info-device-0"),
        "{of_map}"
    );
    let files = segments(&mut world);
    assert_eq!(files.len(), 1);
    played(&files[0]);
}

#[test]
fn without_cluster_d_each_device_plugin_tells_and_a_node_that_is_set_apart_gives_none() {
    let parameters =
        "configurations: [{name: init-params, arguments: {useClusterInfoManager: \"false\"}}]";
    let maps = Maps::default();
    maps.borrow_mut()
        .insert(CLUSTER, by_cluster(&devices("Ascend310P-7", "")));
    let own = json!({ "DeviceInfo": devices("Ascend310P-0,Ascend310P-1", ""), "CheckCode": "c" });
    let own = list("mindx-dl-deviceinfo-node-1", "DeviceInfoCfg", &own);
    let status = |status: &str| {
        let said = json!({ "NodeInfo": { "NodeStatus": status }, "CheckCode": "c" });
        list("mindx-dl-nodeinfo-node-1", "NodeInfo", &said)
    };
    maps.borrow_mut().insert(PLUGINS, own);
    maps.borrow_mut()
        .insert(PLUGIN_NODES, status("PreSeparate"));
    let mut world = plane(parameters, &maps);
    pod(&mut world, "one", 16);
    assert_eq!(told(&world, "one"), Value::Null);
    maps.borrow_mut().insert(PLUGIN_NODES, status("Healthy"));
    world.pass_ms(62_000);
    assert_eq!(told(&world, "one"), "0,1");
    // Whoever begins anew knows whose they are.
    let now = world.now;
    let metrics = scheduler_conf::MetricsConf::default();
    let other = engine(&format!(
        "      deviceshare.ScheduleWeight: 3\n{parameters}"
    ));
    world.driver.handle_rules(other, metrics, now);
    world.pass_ms(2_000);
    pod(&mut world, "two", 8);
    assert_eq!(told(&world, "two"), Value::Null);
    world.delete_object(Kind::Pod, "one");
    world.pass_ms(2_000);
    assert_eq!(told(&world, "two"), "0");
    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    for file in files {
        assert!(played(&file).places > 0);
    }
}

#[test]
fn of_chips_that_only_their_node_tells_of_none_is_given_where_the_lists_alone_count() {
    for (hears, expected) in [("true", json!("0,1")), ("false", Value::Null)] {
        let parameters = format!(
            "configurations: [{{name: init-params, arguments: {{self-maintain-available-card: \"{hears}\"}}}}]"
        );
        let maps = Maps::default();
        let listed = by_cluster(&devices("Ascend310P-0", ""));
        maps.borrow_mut().insert(CLUSTER, listed);
        let mut world = plane(&parameters, &maps);
        let base = json!({ "baseDeviceInfos": r#"{"Ascend310P-0":{},"Ascend310P-1":{}}"# });
        let node = json!({ "metadata": { "annotations": base } });
        world.put_object(Kind::Node, "node-1", &node);
        pod(&mut world, "one", 16);
        assert_eq!(told(&world, "one"), expected, "{hears}");
    }
}

#[test]
fn nothing_is_placed_before_both_lists_were_read() {
    let maps = Maps::default();
    let mut world = plane("", &maps);
    world.teller = Some(Box::new(|_| None));
    pod(&mut world, "one", 0);
    let bound = |world: &World| world.object(Kind::Pod, "one")["spec"]["nodeName"].clone();
    world.pass_ms(10_000);
    assert_eq!(bound(&world), Value::Null);
    // Who never answers is given up, twice.
    world.pass_ms(40_000);
    assert_eq!(bound(&world), "node-1");
    let asked = world.log.iter().filter(|line| line.contains("MindCluster"));
    assert_eq!(asked.count(), 2);
}

#[test]
fn a_segment_begins_with_what_was_known_of_chips_though_nobody_tells_of_them_any_more() {
    let maps = Maps::default();
    let mut world = plane("", &maps);
    let both = by_cluster(&devices("Ascend310P-0,Ascend310P-1", ""));
    maps.borrow_mut().insert(CLUSTER, both);
    pod(&mut world, "one", 8);
    assert_eq!(told(&world, "one"), "0");
    let wrong = by_cluster(&json!({ "DeviceList": 7 }));
    maps.borrow_mut().insert(CLUSTER, wrong);
    world.pass_ms(62_000);
    assert_eq!(flaws(&world).len(), 1);

    // An hour is over; and then other rules hold.
    world.driver.handle_checkpoint(world.now);
    pod(&mut world, "two", 8);
    assert_eq!(told(&world, "two"), "1", "what was known still is");
    world.pass_ms(62_000);
    assert_eq!(flaws(&world).len(), 1, "and what is wrong is told");
    maps.borrow_mut().insert(CLUSTER, Err("away".to_owned()));
    let other = engine("      deviceshare.ScheduleWeight: 3\n");
    let metrics = scheduler_conf::MetricsConf::default();
    world.driver.handle_rules(other, metrics, world.now);
    world.delete_object(Kind::Pod, "one");
    world.pass_ms(2_000);
    pod(&mut world, "three", 8);
    assert_eq!(told(&world, "three"), "0");
    let files = segments(&mut world);
    assert_eq!(files.len(), 3);
    for file in files {
        assert_eq!(played(&file).places, 1);
    }
}

#[test]
fn what_was_known_of_chips_is_forgotten_where_others_are_to_tell_of_them() {
    let maps = Maps::default();
    let mut world = plane("", &maps);
    let one = by_cluster(&devices("Ascend310P-0", ""));
    maps.borrow_mut().insert(CLUSTER, one);
    world.pass_ms(2_000);
    let other = engine(
        "configurations: [{name: init-params, arguments: {useClusterInfoManager: \"false\"}}]",
    );
    let metrics = scheduler_conf::MetricsConf::default();
    world.driver.handle_rules(other, metrics, world.now);
    pod(&mut world, "one", 8);
    assert_eq!(told(&world, "one"), Value::Null);
    let text = message(&world, "one");
    assert!(text.contains("no list of devices is known"), "{text}");
    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    for file in files {
        played(&file);
    }
}
