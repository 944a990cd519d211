//! A cluster as a list of objects shows it: why something waits there, and what would happen if.

use std::collections::BTreeMap;

use api::ask::Subject;
use api::call::Call;
use api::kind::{KINDS, Kind};
use api::time::Time;
use driver::explain::Unanswered;
use serde_json::{Value, json};
use sim::{Change, Outcome, Random, Rehearsal, Settings, WHAT_IF, World};

use crate::drivers::{drivers, drivers_by};

const NOW: Time = Time::from_seconds(1_700_000_000);

fn queue(name: &str, cpu: Option<&str>) -> Value {
    let capability = cpu.map(|cpu| json!({ "cpu": cpu }));
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": { "name": name },
        "spec": { "weight": 1, "capability": capability, "reclaimable": true },
        "status": { "state": "Open" },
    })
}

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "rack": name } },
        "spec": {},
        "status": {
            "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

fn group(namespace: &str, name: &str, queue: &str, min: i32) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": namespace, "ownerReferences": [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name,
            "uid": format!("uid-of-{name}"), "controller": true,
        }] },
        "spec": { "minMember": min, "queue": queue },
        "status": { "phase": "Inqueue" },
    })
}

fn pod(namespace: &str, group: &str, at: u32, cpu: &str, on: Option<&str>) -> Value {
    let phase = if on.is_some() { "Running" } else { "Pending" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{group}-{at}"), "namespace": namespace,
            "annotations": { "scheduling.k8s.io/group-name": group },
        },
        "spec": {
            "schedulerName": "volcano", "nodeName": on,
            "containers": [
                { "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu } } },
            ],
        },
        "status": { "phase": phase },
    })
}

/// Two pods wait where another's holds a node.
fn crowded() -> Vec<Value> {
    vec![
        pod("team-b", "other", 0, "3", Some("n1")),
        pod("team-a", "train", 0, "2", None),
        pod("team-a", "train", 1, "2", None),
        group("team-a", "train", "default", 2),
        group("team-b", "other", "default", 1),
        node("n1", "4"),
        node("n2", "2"),
        queue("default", None),
    ]
}

/// Of a part of a cluster nobody knows what has no owner, and whether a node lives.
fn makers(seed: u64) -> driver::Settings {
    driver::Settings {
        controllers: controllers::WORKLOADS,
        ..drivers(seed)
    }
}

fn rehearsal(objects: Vec<Value>) -> Rehearsal {
    Rehearsal::of(objects, makers(1), NOW)
}

fn subject(kind: Kind, name: &str) -> Subject {
    Subject {
        kind,
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn an_object_that_cannot_be_read_is_named_and_the_others_are_there() {
    let mut objects = crowded();
    let mut broken = objects[0].clone();
    broken["metadata"]["name"] = json!("broken");
    broken["metadata"]["labels"] = json!(7);
    objects.push(broken);
    let mut rehearsal = rehearsal(objects);
    let told: Vec<String> = rehearsal
        .unreadable()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("broken"), "{told:?}");
    let found = rehearsal.explain(&subject(Kind::PodGroup, "train"));
    assert_eq!(found.expect("it is there").reason.as_deref(), Some("NoFit"));
}

#[test]
fn cards_that_a_config_map_tells_of_are_known_to_an_explanation() {
    let conf = "actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: gang}, {name: predicates}]
- plugins: [{name: deviceshare, arguments: {deviceshare.AscendHAMiVNPUEnable: true}}]
";
    let conf = driver::scheduler_conf::read(conf.as_bytes()).accepted();
    let rules = engine::Settings {
        placement: conf.expect("it is understood").placement,
        ..engine::Settings::default()
    };
    let kind = json!({ "vnpus": [{
        "commonWord": "Ascend910B3", "resourceName": "huawei.com/Ascend910B3",
        "resourceMemoryName": "huawei.com/Ascend910B3-memory",
        "memoryAllocatable": 65536, "memoryCapacity": 65536,
    }]});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "kube-system", "name": "volcano-vgpu-device-config" },
        "data": { "device-config.yaml": kind.to_string() },
    });
    let mut npus = node("n1", "4");
    npus["status"]["allocatable"]["huawei.com/Ascend910B3"] = json!("4");
    npus["metadata"]["annotations"]["hami.io/node-register-Ascend910B3"] =
        json!("[{\"id\":\"A\",\"count\":4,\"devmem\":65536,\"health\":true}]");
    let mut large = pod("team-a", "train", 0, "1", None);
    let limits = json!({ "cpu": "1", "huawei.com/Ascend910B3-memory": "70000" });
    large["spec"]["containers"][0]["resources"] = json!({ "requests": limits, "limits": limits });
    let objects = vec![
        large,
        group("team-a", "train", "default", 1),
        npus,
        queue("default", None),
        map,
    ];
    let mut rehearsal = Rehearsal::of(objects, drivers_by(1, rules), NOW);
    let found = rehearsal.explain(&subject(Kind::PodGroup, "train"));
    let message = found.expect("it is there").message.unwrap_or_default();
    assert!(
        message.contains("without enough suitable cards"),
        "{message}"
    );
}

#[test]
fn a_gang_is_told_what_lacks_who_has_it_and_what_helps() {
    let found = rehearsal(crowded()).explain(&subject(Kind::PodGroup, "train"));
    let report = found.expect("it is there");
    assert_eq!(report.reason.as_deref(), Some("NoFit"));
    let words = "1 of 2 tasks fit: train-1 needs 2 cpu, n1 has 1 left";
    assert_eq!(report.message.as_deref(), Some(words));
    let nodes = report.nodes.expect("it waits for a node");
    let refusals = nodes.refusals.iter().map(|why| (why.nodes, &*why.are));
    assert_eq!(nodes.count, 2);
    assert_eq!(refusals.collect::<Vec<_>>(), [(2, "without enough cpu")]);
    let held = report.holders.iter().map(|held| {
        let name = held.name.as_deref().expect("a name");
        format!("{name} {}", held.holds())
    });
    assert_eq!(held.collect::<Vec<_>>(), ["other 3 cpu"]);
    let fixes: Vec<&str> = report.fixes.iter().map(|fix| &*fix.words).collect();
    let wanted = [
        "let it start with 1 instead of 2",
        "wait for 1 pod to end, or end them: team-b/other-0",
        "add 1 node like n1",
    ];
    assert_eq!(fixes, wanted);
}

#[test]
fn a_vcjob_and_a_pod_are_explained_by_their_gang() {
    let ask = |kind, name: &str| rehearsal(crowded()).explain(&subject(kind, name));
    let of_gang = ask(Kind::PodGroup, "train");
    assert_eq!(ask(Kind::VcJob, "train"), of_gang);
    assert_eq!(ask(Kind::Pod, "train-1"), of_gang);
    assert_eq!(ask(Kind::Pod, "nobody"), Err(Unanswered::Unknown));
    assert_eq!(ask(Kind::VcJob, "nobody"), Err(Unanswered::NoGroupOfJob));
}

fn tried(objects: Vec<Value>, changes: &[Value]) -> Outcome {
    let mut rehearsal = rehearsal(objects);
    assert!(rehearsal.settle(), "the cluster comes to rest");
    let before = rehearsal.look();
    for change in changes {
        let change = Change::read(change, "team-a").expect("it is understood");
        assert_eq!(rehearsal.change(&change), [], "nothing is refused");
    }
    assert!(rehearsal.settle(), "and again");
    rehearsal.outcome(&before)
}

#[test]
fn nothing_is_different_where_nothing_is_changed() {
    assert_eq!(tried(crowded(), &[]), Outcome::default());
}

#[test]
fn a_node_more_lets_a_gang_start() {
    let outcome = tried(crowded(), &[node("n3", "4")]);
    let [fate] = &outcome.starts[..] else {
        panic!("one starts: {outcome:?}");
    };
    assert_eq!((&*fate.name, fate.placed, fate.pods), ("train", 2, 2));
    assert_eq!(fate.nodes.values().sum::<usize>(), 2);
    assert_eq!((outcome.waits.len(), outcome.gone.len()), (0, 0));
}

#[test]
fn a_job_that_is_submitted_is_made_into_pods_and_placed_or_told_why_not() {
    let job = |name: &str, cpu: &str| {
        let resources = json!({ "requests": { "cpu": cpu } });
        json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": { "name": name },
            "spec": { "minAvailable": 2, "schedulerName": "volcano", "tasks": [{
                "name": "work", "replicas": 2, "template": { "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "c", "image": "i", "resources": resources }],
                } },
            }] },
        })
    };
    let cluster = vec![node("n1", "4"), queue("default", None)];
    let outcome = tried(cluster, &[job("fits", "1"), job("large", "3")]);
    let start = &outcome.starts[0];
    assert!(start.name.starts_with("fits-"), "{start:?}");
    assert_eq!(start.nodes, BTreeMap::from([("n1".to_owned(), 2)]));
    let wait = &outcome.waits[0];
    assert!(wait.name.starts_with("large-"), "{wait:?}");
    let reason = wait.reason.as_deref().expect("it says why");
    assert!(reason.contains("cpu"), "{reason}");
}

#[test]
fn a_node_that_is_drained_loses_its_pods_to_others() {
    let objects = vec![
        node("n1", "4"),
        node("n2", "4"),
        queue("default", None),
        group("team-a", "train", "default", 1),
        pod("team-a", "train", 0, "1", Some("n1")),
    ];
    let drain = json!({ "apiVersion": WHAT_IF, "kind": "Drain", "nodeSelector": { "rack": "n1" } });
    let outcome = tried(objects, &[drain]);
    let [gone] = &outcome.gone[..] else {
        panic!("one goes: {outcome:?}");
    };
    assert_eq!((&*gone.name, &*gone.node), ("train-0", "n1"));
    assert_eq!(gone.why, None, "it was not the scheduler");
}

#[test]
fn what_is_not_understood_is_named() {
    let wrong = |document: Value| Change::read(&document, "default").expect_err("it is wrong");
    let (field, _) = wrong(json!({ "apiVersion": WHAT_IF, "kind": "Drain" }));
    assert_eq!(field, "nodes");
    let (field, text) = wrong(json!({ "apiVersion": WHAT_IF, "kind": "Explode" }));
    assert_eq!(field, "kind");
    assert!(text.contains("Explode"), "{text}");
    let deleted = json!({ "apiVersion": "v1", "kind": "Pod" });
    let (field, _) =
        wrong(json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [deleted] }));
    assert_eq!(field, "objects[0].name");
    let (field, _) = wrong(json!({ "apiVersion": "v1", "kind": "Nonsense", "metadata": {} }));
    assert_eq!(field, "kind");
    let mut rehearsal = rehearsal(crowded());
    let drain = Change::Drain {
        nodes: vec!["n9".to_owned()],
        labels: BTreeMap::new(),
    };
    let refused = rehearsal.change(&drain);
    assert_eq!(
        (refused[0].code, &*refused[0].what),
        (404, "cordon Node n9")
    );
}

/// Where each pod is that has not ended, by its job and its uid.
fn places(pods: &[Value]) -> BTreeMap<(String, String), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let there = pods.iter().filter(|pod| {
        let phase = pod["status"]["phase"].as_str();
        !matches!(phase, Some("Succeeded" | "Failed"))
    });
    let row = |pod: &Value| {
        let name = text(&pod["metadata"]["name"]);
        let job = name.rsplit_once("-work-").map_or(&*name, |(job, _)| job);
        let key = (job.to_owned(), text(&pod["metadata"]["uid"]));
        (key, text(&pod["spec"]["nodeName"]))
    };
    there
        .map(row)
        .filter(|(_, node)| !node.is_empty())
        .collect()
}

fn everything(world: &mut World) -> Vec<Value> {
    let mut objects = Vec::new();
    for row in KINDS.iter().filter(|row| row.kind != Kind::Event) {
        let api_version = match row.group {
            "" => row.version.to_owned(),
            group => format!("{group}/{}", row.version),
        };
        for mut object in world.objects(row.kind) {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(row.name);
            objects.push(object);
        }
    }
    objects
}

fn job(random: &mut Random, name: &str) -> Value {
    let cpu = random.between(1, 3);
    let replicas = random.between(1, 6);
    let queue = ["default", "small"][usize::from(random.between(0, 2) == 0)];
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": random.between(1, replicas), "schedulerName": "volcano",
            "queue": queue,
            "tasks": [{ "name": "work", "replicas": replicas, "template": {
                "metadata": { "annotations": { "katmai.dev/sim-duration": "10h" } },
                "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "c", "image": "i",
                    "resources": { "requests": { "cpu": cpu.to_string() } },
                }] },
            } }],
        },
    })
}

/// A pod that nothing has made; of a group of Kubernetes' own, if it names one.
fn bare_pod(random: &mut Random, name: &str, group: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": { "katmai.dev/sim-duration": "10h" },
        },
        "spec": {
            "schedulerName": "volcano", "restartPolicy": "Never",
            "schedulingGroup": group.map(|group| json!({ "podGroupName": group })),
            "containers": [{
                "name": "c", "image": "i",
                "resources": { "requests": { "cpu": random.between(1, 3).to_string() } },
            }],
        },
    })
}

/// A gang of Kubernetes' own.
fn native_gang(random: &mut Random) -> Vec<Value> {
    let pods = random.between(1, 5);
    let mut gang = vec![json!({
        "apiVersion": Kind::NativeGroup.api_version(), "kind": "PodGroup",
        "metadata": { "name": "native", "namespace": "default" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": random.between(1, pods) } } },
    })];
    gang.extend((0..pods).map(|at| bare_pod(random, &format!("native-work-{at}"), Some("native"))));
    gang
}

/// What somebody may think of: a job, a pod, a gang, a ceiling, a drain, an end.
fn thought(random: &mut Random, jobs: i64) -> Vec<Value> {
    let early = format!("early-{}", random.between(0, jobs - 1));
    let one = match random.between(0, 5) {
        0 => job(random, "late"),
        1 => bare_pod(random, "lone", None),
        2 => queue("small", Some(&random.between(1, 9).to_string())),
        3 => json!({
            "apiVersion": WHAT_IF, "kind": "Drain",
            "nodes": [format!("sim-node-{}", random.between(0, 3))],
        }),
        4 => json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "namespace": "default", "name": early,
        }] }),
        _ => return native_gang(random),
    };
    vec![one]
}

/// Drivers that know groups of Kubernetes' own.
fn with_native(mut drivers: driver::Settings) -> driver::Settings {
    drivers.controller_settings.native_groups = true;
    if let Some(engine) = &mut drivers.engine {
        engine.native_groups = true;
    }
    drivers
}

/// Does in a world what somebody would do by hand.
fn make(world: &mut World, change: &Change) {
    let call = |method: &'static str, target: String, content_type: &'static str, body: &Value| {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        Call {
            method,
            target,
            content_type,
            body,
        }
    };
    match change {
        Change::Apply(key, object) => {
            let target = key.kind.path(&key.namespace, &key.name);
            let target = format!("{target}?fieldManager=somebody&force=true");
            world.call(
                0,
                call("PATCH", target, "application/apply-patch+yaml", object),
            );
        }
        Change::Delete(keys) => {
            for key in keys {
                let target = key.kind.path(&key.namespace, &key.name);
                world.call(0, call("DELETE", target, "application/json", &Value::Null));
            }
        }
        Change::Drain { nodes, .. } => {
            let pods = world.objects(Kind::Pod);
            for node in nodes {
                let target = Kind::Node.path("", node);
                let cordon = json!({ "spec": { "unschedulable": true } });
                let cordon = call("PATCH", target, "application/merge-patch+json", &cordon);
                world.call(0, cordon);
                for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"] == **node) {
                    let name = pod["metadata"]["name"].as_str().expect("it has a name");
                    let eviction = json!({
                        "apiVersion": "policy/v1", "kind": "Eviction",
                        "metadata": { "namespace": "default", "name": name },
                    });
                    let target = format!("{}/eviction", Kind::Pod.path("default", name));
                    world.call(0, call("POST", target, "application/json", &eviction));
                }
            }
        }
    }
}

/// What a rehearsal says of a change is what the world does when it is made.
#[test]
fn what_would_happen_is_what_happens() {
    let (mut started, mut gone) = (0, 0);
    for seed in 0..48 {
        let mut random = Random::new(seed);
        let mut settings = Settings::new(seed);
        settings.nodes.nodes = 4;
        let mut world = World::new(settings, with_native(drivers(seed)));
        world.create(1_000, Kind::Queue, queue("small", Some("4")));
        let jobs = random.between(2, 6);
        for at in 0..jobs {
            let job = job(&mut random, &format!("early-{at}"));
            world.create(5_000 + at * 2_000, Kind::VcJob, job);
        }
        world.run(60_000);
        let mut rehearsal = Rehearsal::of(everything(&mut world), with_native(makers(seed)), NOW);
        assert!(rehearsal.settle(), "seed {seed}: it comes to rest");
        let before = rehearsal.look();
        let thought = thought(&mut random, jobs);
        let read = |it: &Value| Change::read(it, "default").expect("a manifest");
        let changes: Vec<Change> = thought.iter().map(read).collect();
        for change in &changes {
            assert_eq!(rehearsal.change(change), [], "seed {seed}");
        }
        assert!(rehearsal.settle(), "seed {seed}: and again");
        let outcome = rehearsal.outcome(&before);
        let was = places(&world.objects(Kind::Pod));
        for change in &changes {
            make(&mut world, change);
        }
        world.run(60_000);
        let is = places(&world.objects(Kind::Pod));
        let mut came: BTreeMap<String, usize> = BTreeMap::new();
        for (job, _) in is.keys().filter(|key| !was.contains_key(*key)) {
            *came.entry(job.clone()).or_default() += 1;
        }
        let told: BTreeMap<String, usize> = (outcome.starts.iter())
            .map(|fate| {
                let job = match fate.name.rsplitn(6, '-').last() {
                    Some("podgroup") | None => "lone",
                    Some(job) => job,
                };
                (job.to_owned(), fate.nodes.values().sum())
            })
            .collect();
        assert_eq!(told, came, "seed {seed}: {thought:?} {outcome:?}");
        let lost = was.keys().filter(|key| !is.contains_key(*key)).count();
        assert_eq!(outcome.gone.len(), lost, "seed {seed}: {thought:?}");
        started += usize::from(!told.is_empty());
        gone += usize::from(lost > 0);
    }
    assert!(started > 16 && gone > 12, "{started} starts, {gone} losses");
}
