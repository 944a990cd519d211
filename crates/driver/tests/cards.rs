//! Cards in the loop: a pod is bound with what it gets, and whoever comes after a restart knows it.

#[path = "../../engine/tests/shared/dice.rs"]
mod dice;
mod world;

use api::kind::Kind;
use dice::Dice;
use driver::scheduler_conf::MetricsConf;
use driver::{EngineSettings, Settings};
use engine::Engine;
use serde_json::{Value, json};
use world::planes;
use world::segments::{played, segments};
use world::{World, settings};

fn engine(policy: &str) -> Engine {
    engine_with(&format!("deviceshare.SchedulePolicy: {policy}"))
}

fn engine_with(argument: &str) -> Engine {
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
      {argument}
"
    );
    planes::engine(&conf)
}

fn placing(engine: Engine) -> Settings {
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings::new(engine));
    settings
}

/// A node with two cards of 8000 MiB.
fn plane() -> World {
    plane_of(engine("spread"))
}

fn plane_of(engine: Engine) -> World {
    let mut world = World::new(placing(engine));
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
    let least = json!({
        "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": mib.to_string(),
        "volcano.sh/vgpu-memory-percentage": "50",
    });
    let amounts = json!({
        "cpu": "1", "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": mib.to_string(),
    });
    pod_with(world, name, (&least, &amounts));
}

fn pod_with(world: &mut World, name: &str, (least, amounts): (&Value, &Value)) {
    let group = json!({
        "spec": { "minMember": 1, "queue": "default", "minResources": least },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, name, &group);
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
fn a_queue_shows_what_its_pods_have_of_cards_and_gets_no_more_than_it_may() {
    let conf = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates}
  - {name: capacity}
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
";
    let mut world = plane_of(planes::engine(conf));
    let most = json!({ "volcano.sh/vgpu-memory": "9000" });
    let capability = json!({ "spec": { "capability": most } });
    world.put_object(Kind::Queue, "default", &capability);
    let shown = |world: &World| {
        let queue = world.object(Kind::Queue, "default");
        let shown = &queue["status"]["allocated"];
        ["number", "memory", "cores"].map(|it| shown[format!("volcano.sh/vgpu-{it}")].clone())
    };
    let none = json!({});
    let part = json!({
        "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-cores": "30",
        "volcano.sh/vgpu-memory-percentage": "25",
    });
    pod_with(&mut world, "parts", (&none, &part));
    // Of two cards of 8000 MiB a quarter each.
    assert_eq!(shown(&world), [json!("2"), json!("4k"), json!("60")]);
    // Who names no memory gets all of a card, which is more than the queue has left.
    pod_with(
        &mut world,
        "all",
        (&none, &json!({ "volcano.sh/vgpu-number": "1" })),
    );
    assert!(!is_bound(&world, "all"));
    pod(&mut world, "some", 5_000);
    assert!(is_bound(&world, "some"));
    assert_eq!(shown(&world), [json!("3"), json!("9k"), json!("60")]);
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

const NPUS: &str = "
vnpus:
- {commonWord: Ascend910B3, resourceName: huawei.com/Ascend910B3,
   resourceMemoryName: huawei.com/Ascend910B3-memory, memoryAllocatable: 65536,
   memoryCapacity: 65536, templates: [{name: vir05_1c_16g, memory: 16384}]}
";

/// A cluster with a node of two NPUs of a kind that only a ConfigMap tells of.
fn with_npus() -> World {
    let mut world = World::new(placing(engine_with(
        "deviceshare.AscendHAMiVNPUEnable: true",
    )));
    world.driver.record(world.now);
    world.put_queues();
    put_npus(&mut world, json!({}));
    world
}

/// The node with two NPUs tells this beside them.
fn put_npus(world: &mut World, mut annotations: Value) {
    let npu = |id: &str| json!({ "id": id, "count": 4, "devmem": 65536, "health": true });
    let register = json!([npu("A"), npu("B")]).to_string();
    annotations["hami.io/node-register-Ascend910B3"] = json!(register);
    let node = json!({
        "metadata": { "annotations": annotations },
        "status": { "allocatable": {
            "cpu": "8", "memory": "8Gi", "pods": "110", "huawei.com/Ascend910B3": "8",
        }},
    });
    world.put_object(Kind::Node, "node-1", &node);
}

fn npu_pod(world: &mut World, name: &str) {
    let amounts = json!({
        "cpu": "1", "huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "4000",
    });
    pod_with(world, name, (&json!({}), &amounts));
}

fn npus_of(world: &World, pod: &str) -> Value {
    let annotations = &world.object(Kind::Pod, pod)["metadata"]["annotations"];
    annotations["huawei.com/Ascend910B3"].clone()
}

fn put_config(world: &mut World, text: &str) {
    put_config_named(world, ("kube-system", "volcano-vgpu-device-config"), text);
}

fn put_config_named(world: &mut World, (namespace, name): (&str, &str), text: &str) {
    let map = json!({
        "metadata": { "namespace": namespace }, "data": { "device-config.yaml": text },
    });
    world.put_object(Kind::ConfigMap, name, &map);
    // It is looked at once a minute.
    world.pass_ms(62_000);
}

#[test]
fn a_config_map_tells_of_cards_and_a_wrong_one_changes_nothing() {
    let mut world = with_npus();
    npu_pod(&mut world, "one");
    assert_eq!(npus_of(&world, "one"), Value::Null, "nobody knows the kind");
    put_config(&mut world, NPUS);
    let part = |id: &str| format!("[{{\"UUID\":\"{id}\",\"temp\":\"vir05_1c_16g\"}}]");
    assert_eq!(npus_of(&world, "one"), part("B"));

    let events = |world: &World| {
        let all = world.events().into_iter();
        let wrong: Vec<String> = all
            .filter(|it| it.contains("InvalidDeviceConfig"))
            .collect();
        wrong
    };
    assert!(events(&world).is_empty());
    put_config(&mut world, "vnpus: [{commonWord: 7}]");
    world.pass_ms(120_000);
    let told = events(&world);
    assert_eq!(told.len(), 1, "once and not each minute: {told:?}");
    assert!(told[0].contains("vnpus[0]"), "{told:?}");
    npu_pod(&mut world, "two");
    assert_eq!(npus_of(&world, "two"), part("B"), "what was known still is");

    world.delete_object(Kind::ConfigMap, "volcano-vgpu-device-config");
    world.pass_ms(62_000);
    npu_pod(&mut world, "three");
    assert_eq!(
        npus_of(&world, "three"),
        Value::Null,
        "nobody knows it any more"
    );

    let files = segments(&mut world);
    assert_eq!(files.len(), 1);
    let summary = played(&files[0]);
    assert_eq!(summary.places, 2);
}

#[test]
fn a_segment_begins_with_what_was_known_of_cards_though_the_config_map_is_wrong_by_now() {
    let mut world = with_npus();
    put_config(&mut world, NPUS);
    put_config(&mut world, "vnpus: [{commonWord: 7}]");
    world.driver.handle_checkpoint(world.now);
    world.pass_ms(2_000);
    npu_pod(&mut world, "one");
    let part = "[{\"UUID\":\"B\",\"temp\":\"vir05_1c_16g\"}]";
    assert_eq!(npus_of(&world, "one"), part);
    world.pass_ms(62_000);
    let events = world.events().into_iter();
    let wrong = events.filter(|it| it.contains("InvalidDeviceConfig"));
    assert_eq!(wrong.count(), 1, "it is told once");
    let files = segments(&mut world);
    assert_eq!(files.len(), 2);
    assert_eq!(played(&files[1]).places, 1);
}

fn soft_pod(world: &mut World, name: &str, mib: u32, cores: u32) {
    let amounts = json!({
        "cpu": "1", "huawei.com/Ascend910B3": "1",
        "huawei.com/Ascend910B3-memory": mib.to_string(),
        "huawei.com/Ascend910B3-core": cores.to_string(),
    });
    pod_with(world, name, (&amounts, &amounts));
}

#[test]
fn soft_parts_of_npus_are_given_where_a_library_divides_them_and_known_to_who_begins_anew() {
    let mut world = with_npus();
    put_config(&mut world, NPUS);
    soft_pod(&mut world, "one", 40_000, 60);
    assert_eq!(npus_of(&world, "one"), Value::Null, "no node divides so");
    let kinds = NPUS.trim_start().strip_prefix("vnpus:");
    let kinds = kinds.expect("it lists kinds").replace('\n', "\n  ");
    let soft = format!("vnpus:\n  hamiVnpuMode: hami-core\n  configs:{kinds}");
    put_config(&mut world, &soft);
    let part = |id: &str, memory: u32, cores: u32| {
        json!(format!(
            "[{{\"UUID\":\"{id}\",\"memory\":{memory},\"core\":{cores}}}]"
        ))
    };
    assert_eq!(npus_of(&world, "one"), part("B", 40_000, 60));
    let mode = |world: &World, pod: &str| {
        world.object(Kind::Pod, pod)["metadata"]["annotations"]["huawei.com/vnpu-mode"].clone()
    };
    assert_eq!(mode(&world, "one"), "hami-core");

    // Other rules begin with tables that are read anew from the API.
    let (now, rules) = (
        world.now,
        engine_with("deviceshare.AscendHAMiVNPUEnable: true"),
    );
    world
        .driver
        .handle_rules(rules, MetricsConf::default(), now);
    world.pass_ms(62_000);
    soft_pod(&mut world, "two", 20_000, 41);
    assert_eq!(
        npus_of(&world, "two"),
        part("A", 20_000, 41),
        "of cores B has too few left"
    );
    soft_pod(&mut world, "three", 25_536, 40);
    assert_eq!(
        npus_of(&world, "three"),
        part("B", 25_536, 40),
        "it is full now"
    );

    put_npus(&mut world, json!({ "hami-vnpu-core": "false" }));
    soft_pod(&mut world, "four", 100, 1);
    assert_eq!(npus_of(&world, "four"), Value::Null, "the node has a say");
    npu_pod(&mut world, "five");
    let template = "[{\"UUID\":\"A\",\"temp\":\"vir05_1c_16g\"}]";
    assert_eq!(npus_of(&world, "five"), template);
    assert_eq!(mode(&world, "five"), Value::Null);
    let files = segments(&mut world);
    assert!(files.iter().all(|file| played(file).places > 0));
}

const RENAMED: &str = "
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
";

#[test]
fn a_config_map_that_renames_resources_counts_for_what_is_there_already() {
    let mut world = World::new(placing(engine("binpack")));
    world.driver.record(world.now);
    world.put_queues();
    let node = json!({
        "metadata": { "annotations": { "volcano.sh/node-vgpu-register":
            "GPU-a,10,4000,NVIDIA-A100,true,hami-core:GPU-b,10,4000,NVIDIA-A100,true,hami-core:",
        }},
        "status": { "allocatable": {
            "cpu": "8", "pods": "110", "nvidia.com/gpu": "20", "nvidia.com/gpumem": "8000",
            "nvidia.com/gpucores": "200",
        }},
    });
    world.put_object(Kind::Node, "node-1", &node);
    let ask = |world: &mut World, name: &str, mib: &str| {
        let amounts = json!({ "cpu": "1", "nvidia.com/gpu": "1", "nvidia.com/gpumem": mib });
        pod_with(world, name, (&amounts, &amounts));
    };
    put_config(&mut world, RENAMED);
    ask(&mut world, "one", "3000");
    let first = told(&world, "one");
    ask(&mut world, "two", "5000");
    assert_eq!(told(&world, "two"), Value::Null, "no card has so much");
    assert!(!is_bound(&world, "two"));
    // The names are taken back: what it wants is a resource like any other, and the node has it.
    put_config(&mut world, "nvidia: {deviceSplitCount: 10}");
    assert!(is_bound(&world, "two"));
    assert_eq!(
        told(&world, "two"),
        Value::Null,
        "and no virtual card is given"
    );
    put_config(&mut world, RENAMED);
    ask(&mut world, "three", "4000");
    let cards = [first, told(&world, "three")];
    let cards = cards.map(|it| it.as_str().unwrap_or_default().to_owned());
    let of = |card: &str, mib: u32| format!("{card},NVIDIA,{mib},0:");
    let told = [of("GPU-b", 3_000), of("GPU-a", 4_000)];
    assert_eq!(cards, told, "the one has its card still");
    for file in segments(&mut world) {
        assert!(played(&file).places > 0);
    }
}

#[test]
fn the_config_map_has_the_namespace_and_name_that_are_configured() {
    let arguments = "deviceshare.KnownGeometriesCMNamespace: gpus
      deviceshare.KnownGeometriesCMName: of-ours";
    let mut world = plane_of(engine_with(arguments));
    let ask = |world: &mut World, name: &str| {
        let amounts = json!({ "cpu": "1", "x/gpu": "1", "x/mem": "1000" });
        pod_with(world, name, (&json!({}), &amounts));
    };
    let node = json!({
        "metadata": { "annotations": { "volcano.sh/node-vgpu-register":
            "GPU-a,10,8000,NVIDIA-A100,true,hami-core:",
        }},
        "status": { "allocatable": {
            "cpu": "8", "pods": "110", "x/gpu": "10", "x/mem": "8000", "x/cores": "100",
        }},
    });
    world.put_object(Kind::Node, "node-1", &node);
    let names = "nvidia: {resourceCountName: x/gpu, resourceMemoryName: x/mem, \
                 resourceMemoryPercentageName: x/percent, resourceCoreName: x/cores}";
    for other in [
        ("kube-system", "volcano-vgpu-device-config"),
        ("gpus", "volcano-vgpu-device-config"),
        ("kube-system", "of-ours"),
    ] {
        put_config_named(&mut world, other, names);
    }
    ask(&mut world, "one");
    assert!(is_bound(&world, "one"), "as with any other resource");
    assert_eq!(told(&world, "one"), Value::Null);
    put_config_named(&mut world, ("gpus", "of-ours"), names);
    ask(&mut world, "two");
    assert_eq!(told(&world, "two"), "GPU-a,NVIDIA,1000,0:");
}

#[test]
fn nothing_is_placed_before_the_config_map_was_read() {
    let mut world = World::new(placing(engine("spread")));
    world.is_get_slow = true;
    world.put_queues();
    let node = json!({ "status": { "allocatable": { "cpu": "8", "pods": "110" } } });
    world.put_object(Kind::Node, "node-1", &node);
    pod_with(&mut world, "one", (&json!({}), &json!({ "cpu": "1" })));
    world.pass_ms(30_000);
    let bound = |world: &World| world.object(Kind::Pod, "one")["spec"]["nodeName"].clone();
    assert_eq!(bound(&world), Value::Null);
    // One that cannot be read is none: what is known counts.
    world
        .get_refusals
        .push_back(world::refusal(403, "Forbidden"));
    world.answer_gets();
    world.pass_ms(2_000);
    assert_eq!(bound(&world), "node-1");
}

/// A node with two cards, which is locked for whoever is bound to it.
fn locked_plane() -> World {
    let mut world = plane_of(engine_with("deviceshare.NodeLockEnable: true"));
    world.pass_ms(1_000);
    world
}

fn lock_of(world: &World) -> Option<String> {
    let annotations = &world.object(Kind::Node, "node-1")["metadata"]["annotations"];
    annotations["hamivgpu"].as_str().map(str::to_owned)
}

fn put_lock(world: &mut World, lock: &Value) {
    let node = json!({ "metadata": { "annotations": { "hamivgpu": lock } } });
    world.put_object(Kind::Node, "node-1", &node);
}

fn put_phase(world: &mut World, pod: &str, phase: &str) {
    world.put_object(Kind::Pod, pod, &json!({ "status": { "phase": phase } }));
    world.pass_ms(1_000);
}

fn is_bound(world: &World, pod: &str) -> bool {
    world.object(Kind::Pod, pod)["spec"]["nodeName"] == "node-1"
}

#[test]
fn pods_with_cards_are_bound_one_after_the_other_under_their_nodes_lock() {
    let mut world = locked_plane();
    let began = world.now.plus_ms(-1_000).seconds_text();
    pod(&mut world, "one", 1_000);
    pod(&mut world, "two", 1_000);
    pod(&mut world, "three", 1_000);
    let bare = json!({ "cpu": "1" });
    pod_with(&mut world, "four", (&json!({}), &bare));
    let bound = |world: &World| ["one", "two", "three", "four"].map(|pod| is_bound(world, pod));
    assert_eq!(
        bound(&world),
        [true, false, false, true],
        "who gets no cards waits for none"
    );
    let stamp = lock_of(&world).expect("it is locked");
    assert!(stamp >= began && stamp.ends_with('Z'), "{stamp}");
    // The device plugin has handed the cards out.
    put_lock(&mut world, &Value::Null);
    world.pass_ms(1_000);
    assert_eq!(bound(&world), [true, true, false, true]);
    // One that says nothing: the pod runs.
    put_phase(&mut world, "two", "Running");
    assert_eq!(bound(&world), [true; 4]);
    assert!(lock_of(&world).is_some());
    world.delete_object(Kind::Pod, "three");
    world.pass_ms(1_000);
    assert_eq!(lock_of(&world), None, "nobody is left who needs it");
    let files = segments(&mut world);
    assert_eq!(files.len(), 1);
    assert_eq!(played(&files[0]).places, 4);
}

#[test]
fn a_lock_ends_after_five_minutes() {
    let mut world = locked_plane();
    pod(&mut world, "one", 1_000);
    pod(&mut world, "two", 1_000);
    world.pass_ms(290_000);
    assert!(!is_bound(&world, "two"));
    world.pass_ms(20_000);
    assert!(is_bound(&world, "two"), "one is still Pending");
}

#[test]
fn locks_of_others_count_and_those_that_are_no_times_as_long() {
    // Minutes from now, or no time at all.
    for (minutes, waits_ms) in [
        (Some(-3), 120_000),
        (Some(1_000_000), 300_000),
        (None, 300_000),
        (Some(-6), 0),
    ] {
        let mut world = locked_plane();
        let at = minutes.map(|it: i64| world.now.plus_ms(it * 60_000).seconds_text());
        let lock = json!(at.as_deref().unwrap_or("x"));
        put_lock(&mut world, &lock);
        // It takes two seconds.
        pod(&mut world, "one", 1_000);
        assert_eq!(is_bound(&world, "one"), waits_ms == 0, "{lock}");
        world.pass_ms((waits_ms - 10_000).max(0));
        assert_eq!(is_bound(&world, "one"), waits_ms == 0, "{lock}");
        world.pass_ms(10_000);
        assert!(is_bound(&world, "one"), "{lock}");
    }
}

#[test]
fn a_lock_that_is_lost_to_another_write_is_tried_again() {
    for refusals in [1, 5, 6, 20] {
        let mut world = locked_plane();
        // What else is written meanwhile may be among them.
        let conflict = || world::refusal(409, "Conflict");
        world.refusals.extend((0..refusals).map(|_| conflict()));
        pod(&mut world, "one", 1_000);
        world.pass_ms(60_000);
        assert!(is_bound(&world, "one"), "after {refusals}");
        assert!(lock_of(&world).is_some(), "after {refusals}");
    }
}

/// Nobody may write the node: the pod's place is looked for ever more seldom, and at once more in the end.
#[test]
fn a_lock_that_is_refused_for_good_is_not_tried_on_and_on() {
    let mut world = locked_plane();
    let forbidden = || world::refusal(403, "Forbidden");
    let of_nodes = world.refusals_of.entry(Kind::Node).or_default();
    of_nodes.extend((0..1_000).map(|_| forbidden()));
    pod(&mut world, "one", 1_000);
    world.pass_ms(600_000);
    assert!(!is_bound(&world, "one"));
    let tries = 1_000 - world.refusals_of[&Kind::Node].len();
    assert!((6..=200).contains(&tries), "{tries} tries in ten minutes");
    world.refusals_of.clear();
    world.pass_ms(1_000_000);
    assert!(is_bound(&world, "one"));
}

#[test]
fn a_pod_that_goes_while_it_waits_leaves_its_place_to_the_next() {
    let mut world = locked_plane();
    for name in ["one", "two", "three"] {
        pod(&mut world, name, 1_000);
    }
    world.delete_object(Kind::Pod, "two");
    world.pass_ms(1_000);
    put_phase(&mut world, "one", "Failed");
    assert!(is_bound(&world, "three"));
}

#[test]
fn without_its_switch_no_node_is_locked() {
    let mut world = plane();
    pod(&mut world, "one", 1_000);
    pod(&mut world, "two", 1_000);
    assert!(is_bound(&world, "one") && is_bound(&world, "two"));
    assert_eq!(lock_of(&world), None);
}

#[test]
fn a_lock_that_is_not_seen_yet_is_no_lock_that_was_taken_out() {
    let mut world = locked_plane();
    world.is_watch_slow = true;
    pod(&mut world, "one", 1_000);
    pod(&mut world, "two", 1_000);
    for _ in 0..20 {
        world.deliver();
        world.settle();
        let bound = ["one", "two"].map(|pod| is_bound(&world, pod));
        assert!(bound != [true; 2], "both under one lock");
    }
    assert!(is_bound(&world, "one"));
}

/// What may happen to pods, the lock and writes between two looks.
fn something(world: &mut World, dice: &mut Dice, pods: &[String]) {
    let pod = pods.get(dice.roll(8) as usize);
    match (dice.roll(6), pod) {
        (0, Some(pod)) if is_bound(world, pod) => put_phase(world, pod, "Running"),
        (1, Some(pod)) if is_bound(world, pod) => put_phase(world, pod, "Failed"),
        (2, _) => put_lock(world, &Value::Null),
        (3, _) => {
            let conflict = || world::refusal(409, "Conflict");
            world.refusals.extend((0..dice.roll(8)).map(|_| conflict()));
        }
        (4, _) => world.is_watch_slow = !world.is_watch_slow,
        _ => {}
    }
}

#[test]
fn whatever_happens_one_pod_at_a_time_waits_for_the_device_plugin() {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let mut world = locked_plane();
        let pods: Vec<String> = (0..8).map(|at| format!("p{at}")).collect();
        pods.iter().for_each(|name| pod(&mut world, name, 100));
        let bound = |world: &World| pods.iter().filter(|it| is_bound(world, it)).count();
        let mut before = bound(&world);
        for _ in 0..40 {
            // Less than a lock counts: who is bound in a step has the lock at its end.
            something(&mut world, &mut dice, &pods);
            let now = bound(&world);
            assert!(now <= before + 1, "seed {seed}: {before} and then {now}");
            before = now;
            world.pass_ms(1_000 + 1_000 * dice.roll(60) as i64);
            let now = bound(&world);
            assert!(now <= before + 1, "seed {seed}: {before} and then {now}");
            before = now;
        }
        world.is_watch_slow = false;
        world.refusals.clear();
        world.pass_ms(3_600_000);
        assert_eq!(bound(&world), pods.len(), "seed {seed}: nobody is left out");
    }
}
