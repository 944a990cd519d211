//! Chips of which MindCluster's ConfigMaps tell, in a cluster that is a list of objects.

use api::ask::Subject;
use api::kind::Kind;
use serde_json::{Value, json};
use sim::{Change, Rehearsal, Trace, TraceSettings, WHAT_IF};

use crate::drivers::drivers_by;
use crate::rehearsed::{NOW, group, node, only_makers, pod, queue};

fn drivers() -> driver::Settings {
    let conf = "actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: gang}, {name: predicates}]
- plugins: [{name: deviceshare, arguments: {deviceshare.AscendMindClusterVNPUEnable: true}}]
";
    let conf = driver::scheduler_conf::read(conf.as_bytes()).accepted();
    let rules = engine::Settings {
        placement: conf.expect("it is understood").placement,
        ..engine::Settings::default()
    };
    drivers_by(1, rules)
}

/// A node with two chips, and what tells which they are, and those of another node.
fn plane() -> Vec<Value> {
    let mut npus = node("n1", "16");
    for list in ["allocatable", "capacity"] {
        npus["status"][list] = npus["status"]["allocatable"].clone();
        npus["status"][list]["huawei.com/npu-core"] = json!("16");
    }
    npus["metadata"]["labels"] =
        json!({ "accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8" });
    vec![npus, told("Ascend310P-0,Ascend310P-1")]
}

/// What tells which chips the node has, and those of another node.
fn told(free: &str) -> Value {
    let name = "cluster-info-device-0";
    let said = json!({
        "mindx-dl-deviceinfo-n1": { "DeviceList": { "huawei.com/Ascend310P": free } },
        "mindx-dl-deviceinfo-n2": { "DeviceList": { "huawei.com/Ascend310P": "Ascend310P-0" }},
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": "mindx-dl", "name": name, "labels": { "mx-consumer-volcano": "true" },
        },
        "data": { name: said.to_string() },
    })
}

fn wants(mut pod: Value, cores: u32) -> Value {
    let limits = json!({ "cpu": "1", "huawei.com/npu-core": cores.to_string() });
    pod["metadata"]["labels"] = json!({ "ring-controller.atlas": "ascend-310P" });
    pod["spec"]["containers"][0]["resources"] = json!({ "requests": limits, "limits": limits });
    pod
}

fn rehearsal(cores: u32) -> Rehearsal {
    rehearsal_in(plane(), cores)
}

fn rehearsal_in(mut objects: Vec<Value>, cores: u32) -> Rehearsal {
    objects.extend([
        wants(pod("team-a", "train", 0, "1", None), cores),
        group("team-a", "train", "default", 1),
        queue("default", None),
    ]);
    Rehearsal::of(objects, only_makers(drivers()), NOW)
}

#[test]
fn chips_that_a_config_map_tells_of_are_known_to_an_explanation() {
    let explained = |cores| {
        let subject = Subject {
            kind: Kind::PodGroup,
            namespace: "team-a".to_owned(),
            name: "train".to_owned(),
        };
        let found = rehearsal(cores).explain(&subject);
        found.expect("it is there").message.unwrap_or_default()
    };
    let message = explained(3);
    assert!(
        message.contains("neither whole chips nor a part"),
        "{message}"
    );
    let message = explained(16);
    assert!(!message.contains("no list of devices"), "{message}");
}

#[test]
fn chips_are_given_out_in_a_rehearsal() {
    let mut rehearsal = rehearsal(16);
    assert!(rehearsal.settle(), "the cluster comes to rest");
    let before = rehearsal.look();
    // Both chips of the one node are taken, of the other one is free.
    let more = wants(pod("team-a", "more", 0, "1", None), 8);
    let mut other = plane().remove(0);
    other["metadata"]["name"] = json!("n2");
    for object in [other, group("team-a", "more", "default", 1), more] {
        let change = Change::read(&object, "team-a").expect("it is understood");
        assert_eq!(rehearsal.change(&change), [], "nothing is refused");
    }
    assert!(rehearsal.settle(), "and again");
    let outcome = format!("{:?}", rehearsal.outcome(&before));
    assert!(outcome.contains("n2"), "{outcome}");
}

#[test]
fn a_config_map_of_chips_counts_in_a_rehearsal_as_it_is_changed() {
    let free = ["Ascend310P-0", "Ascend310P-0,Ascend310P-1"];
    let delete = json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": "mindx-dl",
        "name": "cluster-info-device-0",
    }]});
    let more = wants(pod("team-a", "more", 0, "1", None), 8);
    for (stood, changed, wanted, starts) in [
        (free[0], told(free[1]), "train", true),
        (free[1], told(""), "more", false),
        (free[1], delete, "more", false),
        ("", told(free[0]), "more", true),
    ] {
        let cores = if wanted == "train" { 16 } else { 0 };
        let mut objects = plane();
        objects[1] = told(stood);
        let mut rehearsal = rehearsal_in(objects, cores);
        assert!(rehearsal.settle(), "the cluster comes to rest");
        let before = rehearsal.look();
        for object in [changed, group("team-a", "more", "default", 1), more.clone()] {
            let change = Change::read(&object, "team-a").expect("it is understood");
            assert_eq!(rehearsal.change(&change), [], "nothing is refused");
        }
        assert!(rehearsal.settle(), "and again");
        let outcome = rehearsal.outcome(&before);
        let started: Vec<&str> = outcome.starts.iter().map(|it| &*it.name).collect();
        assert_eq!(started.contains(&wanted), starts, "{stood}: {outcome:?}");
    }
}

#[test]
fn a_part_of_a_chip_is_made_at_once_in_a_rehearsal() {
    let mut rehearsal = rehearsal(2);
    assert!(rehearsal.settle(), "the cluster comes to rest");
    let before = rehearsal.look();
    // Beside a part that is not made yet the node would give out none of this size.
    let other = wants(pod("team-a", "other", 0, "1", None), 1);
    for object in [group("team-a", "other", "default", 1), other] {
        let change = Change::read(&object, "team-a").expect("it is understood");
        assert_eq!(rehearsal.change(&change), [], "nothing is refused");
    }
    assert!(rehearsal.settle(), "and again");
    let outcome = format!("{:?}", rehearsal.outcome(&before));
    assert!(outcome.contains("n1"), "{outcome}");
}

/// When each of these jobs, of ten minutes and so many cores, starts in a simulated cluster: in seconds.
fn started(jobs: &[(&str, u32)]) -> Vec<(String, Option<i64>)> {
    let asked = TraceSettings {
        seed: 1,
        for_ms: 3_600_000,
        namespace: "default".to_owned(),
        duration_ms: 600_000,
        faults: Vec::new(),
    };
    let job = |(name, cores): &(&str, u32)| {
        let template = wants(
            json!({ "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox" }],
            }}),
            *cores,
        );
        json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": { "name": name },
            "spec": {
                "queue": "default", "minAvailable": 1, "schedulerName": "volcano",
                "tasks": [{ "name": "work", "replicas": 1, "template": template }],
            },
        })
    };
    let jobs: Vec<Value> = jobs.iter().map(job).collect();
    let trace = Trace::read(&plane(), &jobs, asked);
    let mut play = trace
        .expect("it is understood")
        .begin(drivers())
        .expect("it is taken");
    while play.step() {}
    let report = play.report();
    assert_eq!(report.findings, []);
    let times = report.workloads.iter().map(|it| {
        let started = it.started_ms.map(|ms| ms / 1_000);
        (it.name.to_string(), started)
    });
    times.collect()
}

fn at(name: &str, seconds: i64) -> (String, Option<i64>) {
    (name.to_owned(), Some(seconds))
}

#[test]
fn chips_are_given_out_in_a_simulated_cluster() {
    let times = started(&[("one", 16), ("two", 8)]);
    assert_eq!(times, [at("one", 0), at("two", 600)]);
}

#[test]
fn parts_of_chips_are_made_in_a_simulated_cluster_when_their_pods_start() {
    // Beside a part that is not made yet the node would give out none of another size.
    let times = started(&[("one", 2), ("two", 1), ("three", 4)]);
    let at_once = times.iter().filter(|(_, at)| at.is_some_and(|at| at < 10));
    assert_eq!(at_once.count(), 3, "{times:?}");
}
