//! S4: what a scheduler holds in memory, objects and all, for 10,000 nodes, 200,000 running and 20,000
//! waiting pods in 5,000 gangs of 500 queues, how long it takes to read them, and how long it is from the
//! first list to the first bind.
//!
//! `cargo run --release -p katmai-sim --example memory` prints one JSON object a line. Pods are as a
//! cluster stores them, 3.2 KB each; what is not read of an object is not held, what is read is. No text
//! of a list is kept: pages are made as they are asked for. Rows that end in `-cpu` count only the time
//! that the process was given, without the making of pages: they hold on a busy machine, too.
//! `-- objects` holds the objects alone, without tables, engine and driver; a number says how many gangs
//! there are instead of 5,000.
//!
//! `-- 5k-150k` tells the time from the first list to the first bind for 5,000 nodes and 150,040 pods, as
//! a scheduler has it that starts again: lists are encoded before, as a server holds them, and handed
//! over by another thread as bodies of 500 objects, one when it is asked for. What is counted is to take
//! a body, to part it into its objects, to read them into mirror and tables, and to decide for the first
//! time; no socket and no TLS.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock, and what it holds in memory"
)]

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use api::call::Page;
use api::intent::{Action, Refusal, WriteOutcome};
use api::kind::Kind;
use api::time::Time;
use driver::{Driver, EngineSettings, Limits, Request, RequestId, Settings};
use mirror::Mirror;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// As the binary's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 10_000;
/// Nodes and gangs of the cluster for which the time of a restart is told elsewhere: 150,040 pods.
const RESTART: (usize, usize) = (5_000, 3_410);
/// So many objects are on a page, as the driver asks for them.
const PAGE: usize = 500;
const QUEUES: usize = 500;
const GANGS: usize = 5_000;
/// Of a gang run so many pods, four to a node in two gangs' worth, and so many fit nowhere.
const RUNNING: usize = 40;
const WAITING: usize = 4;
const NAMESPACE: &str = "research";

fn main() {
    if std::env::args().any(|word| word == "objects") {
        return objects();
    }
    if is_restart() {
        return restart();
    }
    let before = resident_mb();
    let mut bytes = 0;
    let (driver, took) = read_and_plan(&mut |kind, limit, token| {
        let start = cpu();
        let page = page(kind, limit, token);
        if kind == Kind::Pod {
            let texts = page.items.iter();
            bytes += texts.map(|item| item.get().len()).sum::<usize>();
        }
        (page, cpu() - start)
    });
    let bytes = bytes / pods();
    assert!(bytes > 3_000, "{bytes} bytes are no real pod");
    for (row, took) in [
        ("S4-10k-220k-first-bind", took.first_bind),
        ("S4-10k-220k-first-bind-cpu", took.first_bind_cpu),
        ("S4-10k-220k-read", took.read),
        ("S4-10k-220k-read-cpu", took.read_cpu),
    ] {
        print(row, took.as_secs_f64(), "s", 8.0);
    }
    print("S4-10k-220k-rss", resident_mb() - before, "MB", 250.0);
    drop(driver);
}

/// From the first list that is asked for to the first bind, where the lists are there as a server has
/// them: encoded before, and handed over by another thread.
fn restart() {
    let (ask, asked) = mpsc::channel::<(Kind, usize, String)>();
    let (hand, handed) = mpsc::sync_channel::<Vec<u8>>(1);
    let (ready, is_ready) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let bodies = bodies();
        ready.send(()).expect("somebody waits for it");
        for (kind, limit, token) in asked {
            assert!(limit == PAGE || token.is_empty(), "pages are made before");
            // A copy, as a socket makes one.
            let body = match bodies.get(&(kind, from(&token))) {
                Some(body) => body.clone(),
                None => body(kind, limit, &token),
            };
            hand.send(body).expect("who asks waits for it");
        }
    });
    is_ready.recv().expect("pages can be made");
    let (driver, took) = read_and_plan(&mut |kind, limit, token| {
        let question = (kind, limit, token.to_owned());
        ask.send(question).expect("the server is there");
        let body = handed.recv().expect("the server answers");
        let page = api::call::page(&body).expect("it is a list");
        (page, Duration::ZERO)
    });
    drop((driver, ask));
    server.join().expect("the server ends in peace");
    for (row, took) in [
        ("restart-5k-150k-first-bind", took.first_bind),
        ("restart-5k-150k-first-bind-cpu", took.first_bind_cpu),
        ("restart-5k-150k-read-cpu", took.read_cpu),
    ] {
        print(row, took.as_secs_f64(), "s", 8.0);
    }
}

/// How long it was until when, and what time the process was given.
struct Took {
    first_bind: Duration,
    first_bind_cpu: Duration,
    read: Duration,
    read_cpu: Duration,
}

/// A driver that has read everything and decided once. `list` gives a page, and what of the time that it
/// took is nobody's business here.
fn read_and_plan(list: &mut dyn FnMut(Kind, usize, &str) -> (Page, Duration)) -> (Driver, Took) {
    let now = Time::from_seconds(1_800_000_000);
    let mut driver = Driver::new(settings());
    let (began, began_cpu) = (Instant::now(), cpu());
    let (mut making, mut read, mut read_cpu) = Default::default();
    let mut first_bind = None;
    while let Some((id, request)) = driver.poll_request(now) {
        match request {
            Request::List {
                kind,
                limit,
                continue_token,
            } => {
                let (page, took) = list(kind, limit as usize, &continue_token);
                making += took;
                let (start, start_cpu) = (Instant::now(), cpu());
                driver.handle_page(id, Ok(page), now);
                read += start.elapsed();
                read_cpu += cpu() - start_cpu;
            }
            Request::Write(intent) => {
                if matches!(intent.action, Action::Bind { .. }) {
                    let taken = || (began.elapsed(), cpu() - began_cpu - making);
                    first_bind.get_or_insert_with(taken);
                }
                refuse(&mut driver, id, now);
            }
            Request::Watch { .. } | Request::Get { .. } | Request::Ask(_) => {}
        }
    }
    let tables = driver.tables().expect("the engine runs");
    assert_eq!(tables.tasks().count(), pods());
    let (first_bind, first_bind_cpu) = first_bind.expect("four pods find room");
    let took = Took {
        first_bind,
        first_bind_cpu,
        read,
        read_cpu,
    };
    (driver, took)
}

/// Every page that has something in it as a server sends it, by kind and by its first object.
fn bodies() -> BTreeMap<(Kind, usize), Vec<u8>> {
    let mut all = BTreeMap::new();
    for kind in [Kind::Node, Kind::Pod, Kind::PodGroup, Kind::Queue] {
        let firsts = (0..count(kind)).step_by(PAGE);
        all.extend(firsts.map(|first| ((kind, first), body(kind, PAGE, &first.to_string()))));
    }
    all
}

fn body(kind: Kind, limit: usize, token: &str) -> Vec<u8> {
    let page = page(kind, limit, token);
    let row = kind.row();
    let list = json!({
        "kind": format!("{}List", row.name),
        "metadata": { "resourceVersion": page.revision.to_string(), "continue": page.continue_token },
        "items": [],
    });
    let items: Vec<&str> = page.items.iter().map(|item| item.get()).collect();
    let list = list.to_string();
    list.replacen("[]", &format!("[{}]", items.join(",")), 1)
        .into_bytes()
}

/// What the objects alone take.
fn objects() {
    let before = resident_mb();
    let mut mirror = Mirror::new();
    for kind in [Kind::Node, Kind::Pod, Kind::PodGroup, Kind::Queue] {
        let listing = mirror.begin_list(kind);
        let mut token = String::new();
        loop {
            let page = page(kind, 500, &token);
            for item in &page.items {
                let change = mirror.list_item(&listing, item.get());
                assert!(change.expect("it can be read").is_some());
            }
            token = page.continue_token;
            if token.is_empty() {
                break;
            }
        }
        let _ = mirror.end_list(listing, 1_000_000);
        let row = format!("S4-objects-{}", kind.row().plural);
        print(&row, resident_mb() - before, "MB", 250.0);
    }
}

fn is_restart() -> bool {
    std::env::args().any(|word| word.ends_with("5k-150k"))
}

fn nodes() -> usize {
    match is_restart() {
        true => RESTART.0,
        false => NODES,
    }
}

fn gangs() -> usize {
    if is_restart() {
        return RESTART.1;
    }
    let mut words = std::env::args();
    let number = words.find_map(|word| word.parse().ok());
    number.unwrap_or(GANGS)
}

fn pods() -> usize {
    gangs() * (RUNNING + WAITING)
}

/// A scheduler without controllers, as `katmai scheduler` is.
fn settings() -> Settings {
    Settings {
        controllers: &[],
        controller_settings: controllers::Settings::default(),
        engine: Some(EngineSettings::new(engine::Engine::with_defaults())),
        unwatched: Vec::new(),
        limits: Limits::default(),
        election: None,
        seed: 1,
    }
}

/// Nobody takes a write: the tables stay as they were read.
fn refuse(driver: &mut Driver, id: RequestId, now: Time) {
    let refusal = Refusal {
        code: 503,
        reason: "ServiceUnavailable".into(),
        message: "this is a benchmark".into(),
        retry_after_seconds: Some(3_600),
    };
    driver.handle_written(id, WriteOutcome::Refused(refusal), now);
}

fn count(kind: Kind) -> usize {
    match kind {
        Kind::Node => nodes(),
        Kind::Pod => pods(),
        Kind::PodGroup => gangs(),
        Kind::Queue => QUEUES,
        _ => 0,
    }
}

fn from(token: &str) -> usize {
    token.parse().unwrap_or(0)
}

fn page(kind: Kind, limit: usize, token: &str) -> Page {
    let (from, count) = (from(token), count(kind));
    let object: fn(usize) -> Value = match kind {
        Kind::Node => node,
        Kind::Pod => pod,
        Kind::PodGroup => group,
        Kind::Queue => queue,
        _ => |_| Value::Null,
    };
    let to = count.min(from.saturating_add(limit));
    let text = |at| RawValue::from_string(object(at).to_string()).expect("it is JSON");
    Page {
        items: (from..to).map(text).collect(),
        continue_token: if to < count {
            to.to_string()
        } else {
            String::new()
        },
        revision: 1_000_000,
    }
}

fn uid(kind: usize, at: usize) -> String {
    format!("{kind:08x}-5a1c-4d2e-9f00-{at:012x}")
}

fn queue(at: usize) -> Value {
    json!({
        "metadata": { "name": format!("queue-{at}"), "uid": uid(1, at), "resourceVersion": "17" },
        "spec": { "weight": 1 },
        "status": { "state": "Open" },
    })
}

fn group(at: usize) -> Value {
    json!({
        "metadata": {
            "name": format!("train-{at:04}-{}", uid(2, at)), "namespace": NAMESPACE,
            "uid": uid(3, at), "resourceVersion": "1234567",
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "ownerReferences": [{
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": format!("train-{at:04}"),
                "uid": uid(2, at), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "minMember": RUNNING, "queue": format!("queue-{}", at % QUEUES) },
        "status": { "phase": "Running", "running": RUNNING },
    })
}

fn node(at: usize) -> Value {
    let name = format!("node-{at:05}");
    let amounts = json!({
        "cpu": "32", "memory": "263900520Ki", "pods": "110", "ephemeral-storage": "1843243432Ki",
        "nvidia.com/gpu": "8", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "KubeletHasNo", "message": "kubelet has no complaint",
            "lastHeartbeatTime": "2026-11-01T08:00:00Z", "lastTransitionTime": "2026-11-01T08:00:00Z",
        })
    };
    let image = |at: usize| {
        json!({
            "names": [format!("registry.example/team/image-{at}@sha256:{at:064x}"), format!("registry.example/team/image-{at}:v1")],
            "sizeBytes": 200_000_000 + at,
        })
    };
    json!({
        "metadata": {
            "name": name, "uid": uid(4, at), "resourceVersion": "1234567",
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": format!("zone-{}", at % 3),
                "topology.kubernetes.io/region": "here", "node.kubernetes.io/instance-type": "g8",
            },
            "annotations": { "node.alpha.kubernetes.io/ttl": "0" },
        },
        "spec": { "podCIDR": format!("10.{}.{}.0/24", at / 256, at % 256), "providerID": name },
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True"),
            ],
            "addresses": [{ "type": "InternalIP", "address": format!("172.16.{}.{}", at / 256, at % 256) }],
            "images": (0..20).map(image).collect::<Vec<_>>(),
            "nodeInfo": {
                "architecture": "amd64", "bootID": uid(5, at), "containerRuntimeVersion": "containerd://1.7.22",
                "kernelVersion": "6.8.0", "kubeletVersion": "v1.34.1", "kubeProxyVersion": "",
                "machineID": uid(6, at), "operatingSystem": "linux", "osImage": "Linux", "systemUUID": uid(7, at),
            },
        },
    })
}

/// As the controller of jobs makes them, after the server and the kubelet wrote to them.
fn pod(at: usize) -> Value {
    let (gang, index) = (at / (RUNNING + WAITING), at % (RUNNING + WAITING));
    let is_running = index < RUNNING;
    let job = format!("train-{gang:04}");
    let name = format!("{job}-worker-{index}");
    // The waiting ones of the first gang find room.
    let cpu = if is_running || gang == 0 { "1" } else { "64" };
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": uid(8, at),
            "resourceVersion": (2_000_000 + at).to_string(), "generation": 1,
            "creationTimestamp": second(gang, 0),
            "labels": {
                "app": "train", "team": "vision", "volcano.sh/job-name": job,
                "volcano.sh/job-namespace": NAMESPACE, "volcano.sh/queue-name": format!("queue-{}", gang % QUEUES),
                "volcano.sh/task-index": index.to_string(), "volcano.sh/task-spec": "worker",
            },
            "annotations": {
                "scheduling.k8s.io/group-name": format!("{job}-{}", uid(2, gang)),
                "volcano.sh/job-name": job, "volcano.sh/job-retry-count": "0", "volcano.sh/job-version": "0",
                "volcano.sh/queue-name": format!("queue-{}", gang % QUEUES), "volcano.sh/task-index": index.to_string(),
                "volcano.sh/task-spec": "worker", "volcano.sh/template-uid": format!("{job}-worker"),
            },
            "ownerReferences": [{
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job,
                "uid": uid(2, gang), "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": [{
                "manager": "vc-controller-manager", "operation": "Update", "apiVersion": "v1",
                "time": "2026-11-01T08:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:metadata": { "f:annotations": { ".": {}, "f:scheduling.k8s.io/group-name": {} } } },
            }],
        },
        "spec": {
            "schedulerName": "volcano", "restartPolicy": "OnFailure", "dnsPolicy": "ClusterFirst",
            "hostname": name, "subdomain": job, "serviceAccountName": "default", "serviceAccount": "default",
            "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "priority": 0,
            "terminationGracePeriodSeconds": 30, "securityContext": {},
            "containers": [{
                "name": "main", "image": "registry.example/team/image-7:v1", "imagePullPolicy": "IfNotPresent",
                "command": ["python", "train.py"],
                "env": [
                    { "name": "VC_TASK_INDEX", "value": index.to_string() },
                    { "name": "VC_WORKER_HOSTS", "valueFrom": { "configMapKeyRef": { "name": format!("{job}-svc"), "key": "VC_WORKER_HOSTS" } } },
                    { "name": "VC_WORKER_NUM", "value": "44" },
                ],
                "ports": [{ "containerPort": 2222, "name": "train", "protocol": "TCP" }],
                "resources": { "requests": { "cpu": cpu, "memory": "1Gi" }, "limits": { "cpu": cpu, "memory": "1Gi" } },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [
                    { "name": format!("{job}-svc"), "mountPath": "/etc/volcano" },
                    { "name": format!("kube-api-access-{at:05}"), "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true },
                ],
            }],
            "tolerations": [
                { "effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300 },
                { "effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300 },
            ],
            "volumes": [
                { "name": format!("{job}-svc"), "configMap": { "name": format!("{job}-svc"), "defaultMode": 420 } },
                { "name": format!("kube-api-access-{at:05}"), "projected": { "defaultMode": 420, "sources": [
                    { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                    { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                ] } },
            ],
        },
        "status": { "phase": "Pending", "qosClass": "Guaranteed" },
    });
    if is_running {
        pod["spec"]["nodeName"] = json!(format!("node-{:05}", (gang * 20 + index / 2) % nodes()));
        pod["status"] = running(gang, index, at);
    }
    pod
}

/// A gang is made every third second; what becomes of its pods takes each of them its own time.
fn second(gang: usize, after: usize) -> String {
    let at = gang * 3 + after;
    let (hour, minute, second) = (8 + at / 3_600, at / 60 % 60, at % 60);
    format!("2026-11-01T{hour:02}:{minute:02}:{second:02}Z")
}

fn running(gang: usize, index: usize, at: usize) -> Value {
    let bound = 1 + index / 16;
    let pulled = bound + 1 + index * 7 % 5;
    let ready = pulled + 1 + index % 2;
    let condition = |kind: &str, after: usize| {
        json!({
            "type": kind, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": second(gang, after),
        })
    };
    let address = format!("10.{}.{}.{}", at >> 16, (at >> 8) & 255, at & 255);
    json!({
        "phase": "Running", "qosClass": "Guaranteed", "hostIP": "172.16.0.1", "hostIPs": [{ "ip": "172.16.0.1" }],
        "podIP": address, "podIPs": [{ "ip": address }], "startTime": second(gang, bound),
        "conditions": [
            condition("PodReadyToStartContainers", pulled), condition("Initialized", bound),
            condition("Ready", ready), condition("ContainersReady", ready), condition("PodScheduled", bound),
        ],
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "restartCount": 0,
            "image": "registry.example/team/image-7:v1",
            "imageID": format!("registry.example/team/image-7@sha256:{:064x}", 7),
            "containerID": format!("containerd://{at:064x}"),
            "state": { "running": { "startedAt": second(gang, pulled) } }, "lastState": {},
        }],
    })
}

/// What the process holds in memory.
fn resident_mb() -> f64 {
    let text =
        std::fs::read_to_string("/proc/self/statm").expect("Linux tells what a process holds");
    let pages: Option<f64> = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.expect("the second word is a number") * 4_096.0 / 1e6
}

/// What time the process was given so far.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat");
    let text = text.expect("Linux tells what time it gave");
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("the first word is a number"))
}

/// One JSON object a line.
fn print(row: &str, value: f64, unit: &str, reach: f64) {
    let ok = value <= reach;
    println!(r#"{{"row":"{row}","value":{value:.4},"unit":"{unit}","reach":{reach},"ok":{ok}}}"#);
}
