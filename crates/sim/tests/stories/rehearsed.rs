//! A cluster as a list of objects shows it: why something waits there, and what would happen if.

use std::collections::BTreeMap;

use api::ask::Subject;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use driver::explain::Unanswered;
use serde_json::{Value, json};
use sim::{Change, Named, Outcome, Rehearsal, WHAT_IF};

use crate::drivers::{drivers, drivers_by};

pub(super) const NOW: Time = Time::from_seconds(1_700_000_000);

pub(super) fn queue(name: &str, cpu: Option<&str>) -> Value {
    let capability = cpu.map(|cpu| json!({ "cpu": cpu }));
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": { "name": name },
        "spec": { "weight": 1, "capability": capability, "reclaimable": true },
        "status": { "state": "Open" },
    })
}

pub(super) fn node(name: &str, cpu: &str) -> Value {
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

pub(super) fn group(namespace: &str, name: &str, queue: &str, min: i32) -> Value {
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

pub(super) fn pod(namespace: &str, group: &str, at: u32, cpu: &str, on: Option<&str>) -> Value {
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
pub(super) fn only_makers(settings: driver::Settings) -> driver::Settings {
    driver::Settings {
        controllers: controllers::WORKLOADS,
        ..settings
    }
}

pub(super) fn rehearsal(objects: Vec<Value>) -> Rehearsal {
    Rehearsal::of(objects, only_makers(drivers(1)), NOW)
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

pub(super) fn tried(objects: Vec<Value>, changes: &[Value]) -> Outcome {
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

/// A job of so many pods, which starts with `min` of them.
pub(super) fn job(name: &str, (min, replicas): (u32, u32), cpu: &str) -> Value {
    let resources = json!({ "requests": { "cpu": cpu } });
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name },
        "spec": { "minAvailable": min, "schedulerName": "volcano", "tasks": [{
            "name": "work", "replicas": replicas, "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "c", "image": "i", "resources": resources }],
            } },
        }] },
    })
}

#[test]
fn a_job_that_is_submitted_is_made_into_pods_and_placed_or_told_why_not() {
    let cluster = vec![node("n1", "4"), queue("default", None)];
    let outcome = tried(
        cluster,
        &[job("fits", (2, 2), "1"), job("large", (2, 2), "3")],
    );
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
fn a_pod_that_a_node_shows_of_its_own_files_is_not_drained() {
    let mut shown = pod("team-a", "train", 0, "1", Some("n1"));
    shown["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("of-a-file");
    let objects = vec![
        node("n1", "4"),
        queue("default", None),
        group("team-a", "train", "default", 1),
        shown,
    ];
    let drain = json!({ "apiVersion": WHAT_IF, "kind": "Drain", "nodes": ["n1"] });
    let outcome = tried(objects, &[drain]);
    assert_eq!(outcome.gone.len(), 0, "{outcome:?}");
}

#[test]
fn pods_that_own_each_other_are_deleted_once() {
    let owned = |at: u32, owner: u32| {
        let mut pod = pod("team-a", "train", at, "1", Some("n1"));
        let owner = json!({
            "apiVersion": "v1", "kind": "Pod", "name": format!("train-{owner}"),
            "uid": format!("uid-of-train-{owner}"),
        });
        pod["metadata"]["uid"] = json!(format!("uid-of-train-{at}"));
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod["metadata"]["finalizers"] = json!(["example.com/stays"]);
        pod
    };
    let mut rehearsal = rehearsal(vec![
        node("n1", "4"),
        queue("default", None),
        group("team-a", "train", "default", 1),
        owned(0, 1),
        owned(1, 0),
        owned(2, 2),
    ]);
    let named = |name: &str| Named::Known(ObjectKey::new(Kind::Pod, "team-a", name));
    let delete = Change::Delete(vec![named("train-0"), named("train-2")]);
    assert_eq!(rehearsal.change(&delete), []);
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
    for (object, at, why) in [
        (json!("pod/a"), "objects[0]", "is one object"),
        (
            json!({ "apiVersion": "v1", "name": "a" }),
            "objects[0].kind",
            "is missing",
        ),
        (
            json!({ "kind": "Pod", "name": "a" }),
            "objects[0].apiVersion",
            "is missing",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": 7 }),
            "objects[0].namespace",
            "is a text",
        ),
    ] {
        let (field, text) =
            wrong(json!({ "apiVersion": WHAT_IF, "kind": "Delete", "objects": [object] }));
        assert_eq!(field, at);
        assert!(text.starts_with(why), "{text}");
    }
    let later = json!({ "apiVersion": "whatif.katmai.dev/v2", "kind": "Drain", "nodes": ["n1"] });
    let (field, text) = wrong(later);
    assert_eq!((&*field, &*text), ("apiVersion", "is whatif.katmai.dev/v1"));
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
