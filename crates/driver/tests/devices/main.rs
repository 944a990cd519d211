//! Claims of devices in the loop: the claim gets them and is kept for its pod, and then the pod is bound.

mod extended;
mod joint;
mod late;
mod parts;
mod shared;
mod taints;
#[path = "../world/mod.rs"]
mod world;

use api::kind::Kind;
use driver::EngineSettings;
use engine::Engine;
use serde_json::{Value, json};
use world::{World, refusal, settings};

fn plane() -> World {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["volcano".into()],
        ..EngineSettings::new(Engine::with_defaults())
    });
    let mut world = World::new(settings);
    world.put_queues();
    world.put_object(Kind::DeviceClass, "gpu", &class());
    world
}

/// Devices of one driver; its drivers are told to be fast.
fn class() -> Value {
    json!({ "spec": {
        "selectors": [{ "cel": { "expression": "device.driver == 'gpu.example.com'" } }],
        "config": [{ "opaque": { "driver": "gpu.example.com", "parameters": { "mode": "fast" } } }],
    } })
}

fn node(world: &mut World, name: &str, models: &[&str]) {
    let status = json!({ "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "110" } });
    world.put_object(Kind::Node, name, &json!({ "status": status }));
    let place = json!({ "nodeName": name });
    slice(world, name, (name, 1, 1), place, models);
}

fn slice(
    world: &mut World,
    name: &str,
    (pool, generation, count): (&str, i64, i64),
    place: Value,
    models: &[&str],
) {
    let devices = models.iter().enumerate().map(|(at, model)| {
        json!({
            "name": format!("gpu-{at}"),
            "attributes": { "model": { "string": model } },
            "capacity": { "memory": { "value": "80Gi" } },
        })
    });
    let mut spec = json!({
        "driver": "gpu.example.com",
        "pool": { "name": pool, "generation": generation, "resourceSliceCount": count },
        "devices": devices.collect::<Vec<_>>(),
    });
    spec.as_object_mut()
        .expect("a map")
        .extend(place.as_object().expect("a map").clone());
    world.put_object(Kind::ResourceSlice, name, &json!({ "spec": spec }));
}

fn claim(world: &mut World, name: &str, request: Value) {
    let mut request = request;
    request["deviceClassName"] = json!("gpu");
    let requests = json!([{ "name": "r", "exactly": request }]);
    claim_of(world, name, json!({ "requests": requests }));
}

fn claim_of(world: &mut World, name: &str, devices: Value) {
    let spec = json!({ "spec": { "devices": devices } });
    world.put_object(Kind::ResourceClaim, name, &spec);
}

fn pod(world: &mut World, name: &str, claim: &str) {
    let pod = json!({
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }],
            "resourceClaims": [{ "name": "gpus", "resourceClaimName": claim }],
        },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::Pod, name, &pod);
}

fn gang(world: &mut World, pods: &[(&str, &str)]) {
    let group = json!({
        "spec": { "minMember": pods.len(), "queue": "default" },
        "status": { "phase": "Inqueue" },
    });
    world.put_object(Kind::PodGroup, "together", &group);
    for (name, claim) in pods {
        let group = json!({ "metadata": { "annotations": {
            "scheduling.k8s.io/group-name": "together",
        } } });
        world.put_object(Kind::Pod, name, &group);
        pod(world, name, claim);
    }
}

fn run(world: &mut World, name: &str) {
    let running = json!({ "status": { "phase": "Running" } });
    world.put_object(Kind::Pod, name, &running);
}

fn node_of(world: &World, name: &str) -> String {
    let node = &world.object(Kind::Pod, name)["spec"]["nodeName"];
    node.as_str().unwrap_or("-").to_owned()
}

fn why(world: &World, name: &str) -> String {
    let message = &world.object(Kind::Pod, name)["status"]["conditions"][0]["message"];
    mirror::plain_words(message.as_str().unwrap_or("")).to_owned()
}

/// The devices that a claim has.
fn devices(world: &World, name: &str) -> Vec<String> {
    let status = &world.object(Kind::ResourceClaim, name)["status"];
    let results = status["allocation"]["devices"]["results"].as_array();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or("").to_owned();
    results
        .into_iter()
        .flatten()
        .map(|it| {
            format!(
                "{}={}/{}",
                text(it, "request"),
                text(it, "pool"),
                text(it, "device")
            )
        })
        .collect()
}

/// The claim has the first device of n2 already, for the pod p.
fn has_device_of_n2(world: &mut World, claim: &str) {
    let device =
        json!({ "request": "r", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0" });
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["n2"] });
    let status = json!({
        "allocation": {
            "devices": { "results": [device] },
            "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [field] }] },
        },
        "reservedFor": [{ "resource": "pods", "name": "p", "uid": "uid-p" }],
    });
    world.put_object(Kind::ResourceClaim, claim, &json!({ "status": status }));
}

fn users(world: &World, name: &str) -> Vec<String> {
    let users = world.object(Kind::ResourceClaim, name)["status"]["reservedFor"].as_array();
    let name = |it: &Value| it["name"].as_str().unwrap_or("").to_owned();
    users.into_iter().flatten().map(name).collect()
}

fn about_claims(world: &mut World) -> Vec<String> {
    let lines = world.writes().into_iter();
    lines
        .filter(|it| it.contains("ResourceClaim") || it.starts_with("bind"))
        .collect()
}

#[test]
fn a_claim_gets_its_device_and_is_kept_for_its_pod_before_that_is_bound() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["h100", "h100"]);
    let h100 = r#"device.attributes["gpu.example.com"].model == "h100" && device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0"#;
    claim(
        &mut world,
        "mine",
        json!({ "selectors": [{ "cel": { "expression": h100 } }] }),
    );
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(
        about_claims(&mut world),
        [
            "patch ResourceClaim mine",
            "patch ResourceClaim mine",
            "bind Pod p"
        ]
    );
    assert_eq!(node_of(&world, "p"), "n2");
    let mine = world.object(Kind::ResourceClaim, "mine");
    assert_eq!(
        mine["metadata"]["finalizers"],
        json!(["resource.kubernetes.io/delete-protection"])
    );
    assert_eq!(
        mine["status"],
        json!({
            "allocation": {
                "devices": {
                    "results": [{
                        "request": "r", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0",
                    }],
                    "config": [{
                        "source": "FromClass",
                        "opaque": { "driver": "gpu.example.com", "parameters": { "mode": "fast" } },
                    }],
                },
                "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [
                    { "key": "metadata.name", "operator": "In", "values": ["n2"] },
                ] }] },
            },
            "reservedFor": [{ "resource": "pods", "name": "p", "uid": "uid-p" }],
        })
    );
}

#[test]
fn a_device_that_a_claim_has_is_given_to_nobody_else_until_it_is_given_back() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "first", json!({}));
    claim(&mut world, "second", json!({}));
    pod(&mut world, "p", "first");
    world.pass_ms(2_000);
    assert_eq!(devices(&world, "first"), ["r=n1/gpu-0"]);
    pod(&mut world, "q", "second");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "-");
    assert_eq!(
        why(&world, "q"),
        "0 of 1 tasks fit: q is refused by 1 node: 1 whose devices are taken"
    );
    // Its pod is over, and still the claim has it.
    run(&mut world, "p");
    let over = json!({ "status": { "phase": "Succeeded" } });
    world.put_object(Kind::Pod, "p", &over);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "-");
    let back = json!({ "status": { "allocation": null, "reservedFor": null } });
    world.put_object(Kind::ResourceClaim, "first", &back);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "q"), "n1");
    assert_eq!(devices(&world, "second"), ["r=n1/gpu-0"]);
}

#[test]
fn pods_that_share_a_claim_go_where_its_devices_are() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &[]);
    claim(&mut world, "shared", json!({}));
    gang(&mut world, &[("p-0", "shared"), ("p-1", "shared")]);
    world.pass_ms(2_000);
    assert_eq!(
        [node_of(&world, "p-0"), node_of(&world, "p-1")],
        ["n1", "n1"]
    );
    assert_eq!(users(&world, "shared"), ["p-0", "p-1"]);
    // Later ones only add themselves.
    about_claims(&mut world);
    pod(&mut world, "late", "shared");
    world.pass_ms(2_000);
    assert_eq!(
        about_claims(&mut world),
        ["patch ResourceClaim shared", "bind Pod late"]
    );
    assert_eq!(node_of(&world, "late"), "n1");
    assert_eq!(users(&world, "shared"), ["p-0", "p-1", "late"]);
}

#[test]
fn no_pod_joins_a_claim_that_256_use() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "full", json!({}));
    let users: Vec<Value> = (0..256)
        .map(|at| json!({ "resource": "pods", "name": format!("u{at}"), "uid": format!("u{at}") }))
        .collect();
    let device =
        json!({ "request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0" });
    let status =
        json!({ "allocation": { "devices": { "results": [device] } }, "reservedFor": users });
    world.put_object(Kind::ResourceClaim, "full", &json!({ "status": status }));
    pod(&mut world, "p", "full");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "-");
    assert_eq!(
        why(&world, "p"),
        "0 of 1 tasks fit: p needs claim full, which is used by 256 pods, and no more may"
    );
}

#[test]
fn a_gang_whose_devices_are_not_all_to_be_had_writes_nothing() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "one", json!({}));
    claim(&mut world, "two", json!({}));
    gang(&mut world, &[("p-0", "one"), ("p-1", "two")]);
    world.pass_ms(2_000);
    assert_eq!(about_claims(&mut world), Vec::<String>::new());
    node(&mut world, "n2", &["a100"]);
    world.pass_ms(2_000);
    assert_eq!(
        [devices(&world, "one"), devices(&world, "two")]
            .concat()
            .len(),
        2
    );
    assert_ne!(node_of(&world, "p-0"), node_of(&world, "p-1"));
}

#[test]
fn a_claim_write_that_is_refused_is_tried_again_and_the_pod_waits_for_it() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "mine", json!({}));
    world.pass_ms(100);
    world.refusals.push_back(refusal(500, "InternalError"));
    pod(&mut world, "p", "mine");
    world.pass_ms(5_000);
    assert_eq!(devices(&world, "mine"), ["r=n1/gpu-0"]);
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn who_loses_a_device_to_another_scheduler_is_placed_again() {
    let mut world = plane();
    node(&mut world, "n1", &["a100", "a100"]);
    claim(&mut world, "mine", json!({}));
    claim(&mut world, "theirs", json!({}));
    world.pass_ms(100);
    // The other one writes while our first write, of the finalizer, is on its way.
    world.is_answer_slow = true;
    pod(&mut world, "p", "mine");
    world.settle();
    let device =
        json!({ "request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0" });
    let status = json!({ "allocation": { "devices": { "results": [device] } } });
    world.put_object(Kind::ResourceClaim, "theirs", &json!({ "status": status }));
    world.settle();
    world.is_answer_slow = false;
    while world.answer() {}
    world.pass_ms(5_000);
    assert_eq!(devices(&world, "mine"), ["r=n1/gpu-1"]);
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn a_pod_whose_claim_got_devices_before_a_restart_is_bound_there() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    claim(&mut world, "mine", json!({}));
    has_device_of_n2(&mut world, "mine");
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(about_claims(&mut world), ["bind Pod p"]);
    assert_eq!(node_of(&world, "p"), "n2");
}

#[test]
fn devices_that_keep_their_pod_from_every_node_are_given_back_and_it_gets_others() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    let cordoned = json!({ "spec": { "unschedulable": true } });
    world.put_object(Kind::Node, "n2", &cordoned);
    claim(&mut world, "mine", json!({}));
    has_device_of_n2(&mut world, "mine");
    pod(&mut world, "p", "mine");
    world.pass_ms(5_000);
    assert_eq!(devices(&world, "mine"), ["r=n1/gpu-0"]);
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn a_device_that_all_nodes_reach_is_given_once() {
    let mut world = plane();
    node(&mut world, "n1", &[]);
    node(&mut world, "n2", &[]);
    slice(
        &mut world,
        "network",
        ("network", 1, 1),
        json!({ "allNodes": true }),
        &["a100", "a100"],
    );
    for claim in ["c0", "c1", "c2"] {
        self::claim(&mut world, claim, json!({}));
    }
    gang(&mut world, &[("p-0", "c0"), ("p-1", "c1")]);
    world.pass_ms(2_000);
    let mut given = [devices(&world, "c0"), devices(&world, "c1")].concat();
    given.sort();
    assert_eq!(given, ["r=network/gpu-0", "r=network/gpu-1"]);
    let selector = &world.object(Kind::ResourceClaim, "c0")["status"]["allocation"]["nodeSelector"];
    assert_eq!(*selector, Value::Null);
    pod(&mut world, "late", "c2");
    world.pass_ms(2_000);
    assert_eq!(
        why(&world, "late"),
        "0 of 1 tasks fit: late is refused by 2 nodes: 2 whose devices are taken"
    );
}

#[test]
fn only_the_newest_generation_of_a_pool_counts() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    let place = json!({ "nodeName": "n1" });
    slice(&mut world, "newer", ("n1", 2, 2), place.clone(), &["h100"]);
    let all = json!({ "allocationMode": "All" });
    claim(&mut world, "all", all);
    pod(&mut world, "p", "all");
    world.pass_ms(2_000);
    assert_eq!(
        why(&world, "p"),
        "0 of 1 tasks fit: p is refused by 1 node: 1 that have not told all of their devices"
    );
    let second = json!({ "spec": {
        "driver": "gpu.example.com", "nodeName": "n1",
        "pool": { "name": "n1", "generation": 2, "resourceSliceCount": 2 },
        "devices": [{ "name": "other" }],
    } });
    world.put_object(Kind::ResourceSlice, "newest", &second);
    world.pass_ms(2_000);
    assert_eq!(devices(&world, "all"), ["r=n1/gpu-0", "r=n1/other"]);
}

#[test]
fn what_a_claim_asks_for_in_vain_is_said() {
    let rows = [
        (
            json!({ "deviceClassName": "tpu" }),
            "0 of 1 tasks fit: p needs claim vain, which names class tpu, which does not exist",
        ),
        (
            json!({ "capacity": { "requests": { "memory": "much" } } }),
            "0 of 1 tasks fit: p needs claim vain, which asks for memory by no amount, which this scheduler does not allocate",
        ),
        (
            json!({ "adminAccess": true }),
            "0 of 1 tasks fit: p needs claim vain, which asks for admin access, for which its namespace has no label, which this scheduler does not allocate",
        ),
        (
            json!({ "selectors": [{ "cel": { "expression": "device.model" } }] }),
            "0 of 1 tasks fit: p needs claim vain, which has a selector that is none: selector device.model: compilation failed: ERROR: <input>:1:7: undefined field 'model'",
        ),
        (
            json!({ "selectors": [{ "cel": { "expression": "device.attributes['gpu.example.com'].size > 1" } }] }),
            "0 of 1 tasks fit: p is refused by 1 node: 1 that selector device.attributes['gpu.example.com'].size > 1 of device gpu-0: no such key: size does not judge",
        ),
    ];
    for (request, expected) in rows {
        let mut world = plane();
        node(&mut world, "n1", &["a100"]);
        let mut exactly = json!({ "deviceClassName": "gpu" });
        exactly
            .as_object_mut()
            .expect("a map")
            .extend(request.as_object().expect("a map").clone());
        let requests = json!([{ "name": "r", "exactly": exactly }]);
        claim_of(&mut world, "vain", json!({ "requests": requests }));
        pod(&mut world, "p", "vain");
        world.pass_ms(2_000);
        assert_eq!(why(&world, "p"), expected);
        assert_eq!(about_claims(&mut world), Vec::<String>::new());
    }
}

#[test]
fn a_class_that_comes_later_wakes_who_waits_for_it() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    world.delete_object(Kind::DeviceClass, "gpu");
    claim(&mut world, "mine", json!({}));
    pod(&mut world, "p", "mine");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "-");
    world.put_object(Kind::DeviceClass, "gpu", &class());
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1");
}

/// A device that takes so many of a pool's slots.
fn part(name: &str, slots: &str, place: &Value) -> Value {
    let counters = json!({ "slots": { "value": slots } });
    let mut device = json!({
        "name": name,
        "consumesCounters": [{ "counterSet": "card", "counters": counters }],
    });
    let device_map = device.as_object_mut().expect("a map");
    device_map.extend(place.as_object().expect("a map").clone());
    device
}

/// A pool of two slices: what its devices are made of, and the devices.
fn pool_of_parts(world: &mut World, place: &Value, devices: &[Value]) {
    let mut spec = json!({
        "driver": "gpu.example.com",
        "pool": { "name": "parts", "generation": 1, "resourceSliceCount": 2 },
    });
    let map = spec.as_object_mut().expect("a map");
    map.extend(place.as_object().expect("a map").clone());
    let mut counters = spec.clone();
    counters["sharedCounters"] =
        json!([{ "name": "card", "counters": { "slots": { "value": "7" } } }]);
    spec["devices"] = json!(devices);
    world.put_object(Kind::ResourceSlice, "parts", &json!({ "spec": spec }));
    let counters = json!({ "spec": counters });
    world.put_object(Kind::ResourceSlice, "parts-counters", &counters);
}

#[test]
fn parts_of_a_card_are_given_while_there_is_enough_of_it() {
    let mut world = plane();
    node(&mut world, "n1", &[]);
    world.delete_object(Kind::ResourceSlice, "n1");
    let here = json!({});
    let devices = [
        part("whole", "7", &here),
        part("four", "4", &here),
        part("three-0", "3", &here),
        part("three-1", "3", &here),
    ];
    pool_of_parts(&mut world, &json!({ "nodeName": "n1" }), &devices);
    for name in ["first", "second", "third"] {
        claim(&mut world, name, json!({}));
    }
    // The first device that there is: the whole card.
    pod(&mut world, "p", "first");
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "first"), "whole");
    pod(&mut world, "q", "second");
    world.pass_ms(2_000);
    assert_eq!(
        why(&world, "q"),
        "0 of 1 tasks fit: q is refused by 1 node: 1 whose devices are taken"
    );
    let back = json!({ "status": { "allocation": null, "reservedFor": null } });
    let four = json!({ "spec": { "devices": devices[1..] } });
    world.put_object(Kind::ResourceSlice, "parts", &four);
    world.put_object(Kind::ResourceClaim, "first", &back);
    world.delete_object(Kind::Pod, "p");
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "second"), "four");
    pod(&mut world, "r", "third");
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "third"), "three-0");
    claim(&mut world, "fourth", json!({}));
    pod(&mut world, "s", "fourth");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "s"), "-");
}

fn devices_of(world: &World, claim: &str) -> String {
    let devices = devices(world, claim);
    let names = devices.iter().map(|it| it.rsplit('/').next().unwrap_or(""));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn devices_of_two_nodes_that_are_made_of_one_thing_are_counted_together() {
    let mut world = plane();
    node(&mut world, "n1", &[]);
    node(&mut world, "n2", &[]);
    let devices = [
        part("left", "4", &json!({ "nodeName": "n1" })),
        part("right", "4", &json!({ "nodeName": "n2" })),
    ];
    let each = json!({ "perDeviceNodeSelection": true });
    pool_of_parts(&mut world, &each, &devices);
    claim(&mut world, "first", json!({}));
    claim(&mut world, "second", json!({}));
    gang(&mut world, &[("p-0", "first"), ("p-1", "second")]);
    world.pass_ms(2_000);
    assert_eq!(about_claims(&mut world), Vec::<String>::new());
    let alone = json!({ "spec": { "minMember": 1 } });
    world.put_object(Kind::PodGroup, "together", &alone);
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "first"), "left");
    assert_eq!(node_of(&world, "p-0"), "n1");
    // It stays so when whoever has the one runs, and after a new start.
    run(&mut world, "p-0");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p-1"), "-");
    let back = json!({ "status": { "allocation": null, "reservedFor": null } });
    world.put_object(Kind::ResourceClaim, "first", &back);
    world.delete_object(Kind::Pod, "p-0");
    world.pass_ms(2_000);
    assert_eq!(devices_of(&world, "second"), "left");
    assert_eq!(node_of(&world, "p-1"), "n1");
}

#[test]
fn a_device_of_all_nodes_in_a_claim_with_one_of_the_node_is_given_once() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    node(&mut world, "n2", &["a100"]);
    slice(
        &mut world,
        "network",
        ("network", 1, 1),
        json!({ "allNodes": true }),
        &["nic"],
    );
    let of = |model: &str| {
        let expression = format!("device.attributes['gpu.example.com'].model == '{model}'");
        let selectors = json!([{ "cel": { "expression": expression } }]);
        json!({ "name": model, "exactly": { "deviceClassName": "gpu", "selectors": selectors } })
    };
    for name in ["first", "second"] {
        let requests = json!([of("a100"), of("nic")]);
        claim_of(&mut world, name, json!({ "requests": requests }));
    }
    pod(&mut world, "p", "first");
    world.pass_ms(2_000);
    run(&mut world, "p");
    world.pass_ms(2_000);
    assert_eq!(
        devices(&world, "first"),
        ["a100=n1/gpu-0", "nic=network/gpu-0"]
    );
    about_claims(&mut world);
    pod(&mut world, "q", "second");
    world.pass_ms(2_000);
    assert_eq!(about_claims(&mut world), Vec::<String>::new());
    assert_eq!(
        why(&world, "q"),
        "0 of 1 tasks fit: q is refused by 2 nodes: 2 whose devices are taken"
    );
}

#[test]
fn devices_of_a_claim_may_have_to_differ() {
    let mut world = plane();
    node(&mut world, "n1", &["a100", "a100", "h100"]);
    let requests = json!([{ "name": "r", "exactly": { "deviceClassName": "gpu", "count": 2 } }]);
    let distinct = json!([{ "distinctAttribute": "gpu.example.com/model" }]);
    claim_of(
        &mut world,
        "mixed",
        json!({ "requests": requests, "constraints": distinct }),
    );
    pod(&mut world, "p", "mixed");
    world.pass_ms(2_000);
    assert_eq!(devices(&world, "mixed"), ["r=n1/gpu-0", "r=n1/gpu-2"]);
}

#[test]
fn a_namespace_that_is_labelled_later_gets_admin_access() {
    let mut world = plane();
    node(&mut world, "n1", &["a100"]);
    let exactly = json!({ "deviceClassName": "gpu", "adminAccess": true });
    let requests = json!([{ "name": "r", "exactly": exactly }]);
    claim_of(&mut world, "looks", json!({ "requests": requests }));
    pod(&mut world, "p", "looks");
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "-");
    let labels = json!({ "resource.kubernetes.io/admin-access": "true" });
    let namespace = json!({ "metadata": { "labels": labels } });
    world.put_object(Kind::Namespace, "ns", &namespace);
    world.pass_ms(2_000);
    assert_eq!(node_of(&world, "p"), "n1");
}

#[test]
fn without_the_feature_pods_are_placed_as_if_they_claimed_no_devices() {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        lone_scheduler_names: vec!["volcano".into()],
        features: mirror::Features {
            device_claims: false,
            ..mirror::Features::default()
        },
        ..EngineSettings::new(Engine::with_defaults())
    });
    let mut world = World::new(settings);
    world.put_queues();
    world.put_object(Kind::DeviceClass, "gpu", &class());
    node(&mut world, "n1", &["a100"]);
    claim(&mut world, "one", json!({}));
    for name in ["p", "q"] {
        pod(&mut world, name, "one");
    }
    pod(&mut world, "r", "missing");
    world.pass_ms(2_000);
    for name in ["p", "q", "r"] {
        assert_eq!(node_of(&world, name), "n1");
    }
    let claim = world.object(Kind::ResourceClaim, "one");
    assert!(claim["status"].get("allocation").is_none(), "{claim}");
    assert!(claim["status"].get("reservedFor").is_none(), "{claim}");
}
