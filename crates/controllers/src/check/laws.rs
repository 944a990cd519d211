//! Laws that hold whatever the order of things, whenever the process dies.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use api::intent::ObjectKey;
use api::kind::Kind;
use serde_json::{Value, json};

use super::world::World;

fn world(job: Value) -> World {
    let mut world = World::of("vcjob");
    world.is_quiet = true;
    world.appear(Kind::Queue, "", "default", json!({}));
    let default = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
    let class =
        json!({ "metadata": { "annotations": default }, "provisioner": "katmai.dev/directory" });
    world.appear(Kind::StorageClass, "", "standard", class);
    world.appear(Kind::VcJob, "ml", "train", job);
    world
}

fn job(volumes: Value, policies: Value) -> Value {
    let task = |name: &str, replicas: u32| {
        json!({
            "name": name,
            "replicas": replicas,
            "policies": policies,
            "template": { "spec": { "containers": [{ "name": "main" }] } },
        })
    };
    json!({
        "metadata": { "uid": "job" },
        "spec": {
            "queue": "default",
            "minAvailable": 3,
            "maxRetry": 10,
            "schedulerName": "volcano",
            "plugins": { "svc": [], "env": [] },
            "volumes": volumes,
            "tasks": [task("master", 1), task("worker", 2)],
        },
    })
}

fn own_volume(path: &str) -> Value {
    let spec = json!({ "accessModes": ["ReadWriteMany"], "resources": { "requests": { "storage": "1Gi" } } });
    json!({ "mountPath": path, "volumeClaim": spec })
}

fn key() -> ObjectKey {
    ObjectKey::new(Kind::VcJob, "ml", "train")
}

fn orders(items: &[Value]) -> Vec<Vec<Value>> {
    if items.len() <= 1 {
        return vec![items.to_vec()];
    }
    let mut all = Vec::new();
    for first in 0..items.len() {
        let mut rest = items.to_vec();
        let item = rest.remove(first);
        for mut order in orders(&rest) {
            order.insert(0, item.clone());
            all.push(order);
        }
    }
    all
}

/// A small generator, so that a failure can be repeated from its seed.
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn s0_1_s0_3_a_job_with_a_missing_claim_creates_nothing_in_any_order_of_volumes() {
    let missing = |name: &str| json!({ "mountPath": format!("/{name}"), "volumeClaimName": name });
    let volumes = [
        own_volume("/a"),
        own_volume("/b"),
        own_volume("/c"),
        missing("x"),
        missing("z"),
    ];
    let mut attempts = 0;
    for order in orders(&volumes) {
        let mut world = world(job(json!(order), json!([])));
        world.run(&["vcjob"]);
        let writes = world.writes.len();
        for _ in 0..100 {
            world.step_now("vcjob", &key());
            attempts += 1;
        }
        assert_eq!(world.writes.len(), writes, "a blocked job costs no writes");
        for kind in [
            Kind::PersistentVolumeClaim,
            Kind::PodGroup,
            Kind::Service,
            Kind::ConfigMap,
            Kind::NetworkPolicy,
            Kind::Pod,
        ] {
            assert_eq!(world.count(kind), 0, "{kind:?} in {order:?}");
        }
        let state = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"]["state"];
        assert_eq!(state["phase"], "Pending");
        assert!(
            state["message"].as_str().unwrap().contains("x, z"),
            "{state}"
        );
    }
    assert!(attempts >= 10_000);
}

/// What the world around a job does; every stage can be repeated.
fn stage(world: &mut World, number: usize) {
    let pods = ["train-master-0", "train-worker-0", "train-worker-1"];
    let set = |world: &mut World, name: &str, phase: &str| {
        if world.get(Kind::Pod, "ml", name).is_some() {
            let status = json!({ "status": { "phase": phase } });
            world.change(Kind::Pod, "ml", name, &status);
        }
    };
    match number {
        0 => {}
        1 | 4 => {
            let bound = json!({ "spec": { "volumeName": "v" }, "status": { "phase": "Bound" } });
            for key in world.keys(Kind::PersistentVolumeClaim) {
                world.change(key.kind, &key.namespace, &key.name, &bound);
            }
            let phase = json!({ "status": { "phase": "Running" } });
            world.change(Kind::PodGroup, "ml", "train-job", &phase);
        }
        2 => pods.iter().for_each(|name| set(world, name, "Running")),
        3 => set(world, "train-worker-1", "Failed"),
        5 => pods.iter().for_each(|name| set(world, name, "Running")),
        _ => pods.iter().for_each(|name| set(world, name, "Succeeded")),
    }
}

const STAGES: usize = 7;

/// Plays a job's life; the process dies after so many of its own writes in one stage.
fn life(policies: &Value, death: Option<(usize, usize)>) -> World {
    let volumes = json!([own_volume("/a"), own_volume("/b")]);
    let mut world = world(job(volumes, policies.clone()));
    for number in 0..STAGES {
        stage(&mut world, number);
        if let Some((at, left)) = death.filter(|(at, _)| *at == number) {
            let _ = at;
            world.writes_left = Some(left);
            world.run(&["vcjob"]);
            world.restart();
        }
        world.run(&["vcjob"]);
    }
    world
}

fn ending(world: &World) -> Value {
    let status = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"];
    let mut ending = status.clone();
    ending["claims"] = json!(world.count(Kind::PersistentVolumeClaim));
    ending["pods"] = json!(world.count(Kind::Pod));
    ending["groups"] = json!(world.count(Kind::PodGroup));
    ending
}

#[test]
fn s0_5_dying_between_any_two_writes_changes_nothing_in_the_end() {
    for action in ["RestartTask", "RestartPod", "RestartJob"] {
        let policies = json!([{ "event": "PodFailed", "action": action }]);
        let expected = ending(&life(&policies, None));
        assert_eq!(
            expected["state"]["phase"], "Completed",
            "{action}: {expected}"
        );
        assert_eq!(expected["claims"], 2);
        assert_eq!(
            expected["retryCount"], 1,
            "one failure restarts once: {expected}"
        );
        for number in 0..STAGES {
            for left in 0..12 {
                let world = life(&policies, Some((number, left)));
                let seen = ending(&world);
                assert_eq!(
                    seen, expected,
                    "{action}, stage {number}, after {left} writes"
                );
                let made = |key: &&ObjectKey| key.kind == Kind::PersistentVolumeClaim;
                assert_eq!(world.writes.iter().filter(made).count(), 2);
            }
        }
    }
}

/// Whether its gang is let in or not, and whether pods have started or not.
#[test]
fn s0_6_a_terminated_job_leaves_claims_only_if_there_may_be_data_in_them() {
    let volumes = json!([own_volume("/a"), own_volume("/b")]);
    let target = json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "job" });
    let command = json!({ "action": "TerminateJob", "target": target });
    for (stages, left) in [(1, 0), (2, 0), (3, 2)] {
        for death in (0..12).map(Some).chain([None]) {
            let mut world = world(job(volumes.clone(), json!([])));
            for number in 0..stages {
                stage(&mut world, number);
                world.run(&["vcjob"]);
            }
            world.appear(Kind::Command, "ml", "end", command.clone());
            if death.is_some() {
                world.writes_left = death;
                world.run(&["vcjob"]);
                world.restart();
            }
            world.run(&["vcjob"]);
            let said = format!("{stages} stages, dead after {death:?}");
            assert_eq!(world.count(Kind::PersistentVolumeClaim), left, "{said}");
            let job = world.get(Kind::VcJob, "ml", "train").unwrap();
            assert_eq!(job["status"]["state"]["phase"], "Terminated", "{said}");
        }
    }
}

#[test]
fn s0_12_a_stale_mirror_makes_no_second_claim() {
    let volumes = json!([own_volume("/a"), own_volume("/b"), own_volume("/c")]);
    let mut world = world(job(volumes, json!([])));
    world.backlog = Some(Vec::new());
    for _ in 0..50 {
        world.step_now("vcjob", &key());
    }
    assert_eq!(world.count(Kind::PersistentVolumeClaim), 3);
    world.catch_up();
    world.run(&["vcjob"]);
    assert_eq!(world.count(Kind::PersistentVolumeClaim), 3);
    assert_eq!(world.count(Kind::Service), 1);
}

#[test]
fn a_first_status_waits_ten_times_as_long_for_pods_that_are_being_made() {
    let mut world = world(job(json!([]), json!([])));
    world.settings.first_status_ms = 2_000;
    world.run(&["vcjob"]);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &let_in);
    // They are made at once, and come into sight much later.
    world.backlog = Some(Vec::new());
    for (more, is_told) in [("+0s", false), ("+19s", false), ("+1s", true)] {
        world.pass(more);
        world.step_now("vcjob", &key());
        let job = world.get(Kind::VcJob, "ml", "train").unwrap();
        let phase = &job["status"]["state"]["phase"];
        assert_eq!(*phase == "Pending", is_told, "{more}: {phase}");
    }
}

#[test]
fn a_first_status_tells_of_all_pods_though_they_are_made_in_several_steps() {
    let mut world = world(job(json!([]), json!([])));
    world.settings.first_status_ms = 2_000;
    world.settings.writes_per_step_max = 1;
    world.run(&["vcjob"]);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &let_in);
    let before = world.writes.len();
    world.run(&["vcjob"]);
    let told = world.writes[before..].iter();
    assert_eq!(told.filter(|it| it.kind == Kind::VcJob).count(), 1);
    let job = world.get(Kind::VcJob, "ml", "train").unwrap();
    assert_eq!(job["status"]["pending"], 3);
}

#[test]
fn s2_1_s2_2_restarts_leave_the_service_alone_and_pods_come_after_it() {
    for start in 0..60 {
        let mut seed = Seed(start);
        let action = ["RestartTask", "RestartPod"][seed.below(2) as usize];
        let policies = json!([{ "events": ["PodFailed", "PodEvicted"], "action": action }]);
        let mut world = world(job(json!([]), policies));
        world.run(&["vcjob"]);
        let uid = world.get(Kind::Service, "ml", "train").unwrap()["metadata"]["uid"].clone();
        stage(&mut world, 1);
        for _ in 0..12 {
            let name =
                ["train-master-0", "train-worker-0", "train-worker-1"][seed.below(3) as usize];
            let phase = ["Running", "Running", "Failed"][seed.below(3) as usize];
            match seed.below(4) {
                0 if world.get(Kind::Pod, "ml", name).is_some() => {
                    world.vanish(Kind::Pod, "ml", name)
                }
                _ if world.get(Kind::Pod, "ml", name).is_some() => {
                    let status = json!({ "status": { "phase": phase } });
                    world.change(Kind::Pod, "ml", name, &status);
                }
                _ => {}
            }
            if seed.below(3) == 0 {
                world.writes_left = Some(seed.below(4) as usize);
                world.run(&["vcjob"]);
                world.restart();
            }
            world.run(&["vcjob"]);
            let job = world.get(Kind::VcJob, "ml", "train").unwrap();
            let phase = job["status"]["state"]["phase"].as_str().unwrap();
            if matches!(phase, "Failed" | "Completed") {
                break;
            }
            let service = world.get(Kind::Service, "ml", "train");
            let now = service.map(|service| service["metadata"]["uid"].clone());
            assert_eq!(now, Some(uid.clone()), "seed {start}");
        }
        let first = |kind: Kind| {
            world
                .writes
                .iter()
                .position(|key| key.kind == kind)
                .unwrap()
        };
        assert!(first(Kind::Service) < first(Kind::Pod), "seed {start}");
    }
}

/// S2.3: that the Service was made anew is not enough, it has to be seen. The mirror is told of its end and
/// of the pod's, but of nothing that is made since.
#[test]
fn s2_3_no_pod_is_made_before_the_service_was_read_back() {
    let mut world = world(job(json!([]), json!([])));
    world.run(&["vcjob"]);
    stage(&mut world, 1);
    world.run(&["vcjob"]);
    assert_eq!(world.count(Kind::Pod), 3);
    world.vanish(Kind::Service, "ml", "train");
    world.vanish(Kind::Pod, "ml", "train-worker-1");
    world.backlog = Some(Vec::new());
    for _ in 0..50 {
        world.step_now("vcjob", &key());
    }
    assert_eq!((world.count(Kind::Service), world.count(Kind::Pod)), (1, 2));
    world.catch_up();
    world.run(&["vcjob"]);
    assert_eq!((world.count(Kind::Service), world.count(Kind::Pod)), (1, 3));
}

#[test]
fn s2_2_a_restart_of_a_partition_leaves_the_service_and_its_siblings_alone() {
    let supports = [
        (Kind::ConfigMap, "train-svc"),
        (Kind::NetworkPolicy, "train"),
        (Kind::Service, "train"),
    ];
    let names: Vec<String> = std::iter::once("train-master-0".to_owned())
        .chain((0..4).map(|at| format!("train-worker-{at}")))
        .collect();
    for start in 0..60 {
        let mut seed = Seed(start);
        let policies =
            json!([{ "events": ["PodFailed", "PodEvicted"], "action": "RestartPartition" }]);
        let mut body = job(json!([]), json!([]));
        body["spec"]["minAvailable"] = json!(5);
        let workers = &mut body["spec"]["tasks"][1];
        workers["replicas"] = json!(4);
        workers["policies"] = policies;
        workers["partitionPolicy"] = json!({ "totalPartitions": 2, "partitionSize": 2 });
        let mut world = world(body);
        world.run(&["vcjob"]);
        stage(&mut world, 1);
        world.run(&["vcjob"]);
        let is_as = |world: &World, kind, name: &str, field: &str| {
            world.get(kind, "ml", name).unwrap()["metadata"][field].clone()
        };
        let supported = |world: &World| {
            supports.map(|(kind, name)| is_as(world, kind, name, "resourceVersion"))
        };
        let untouched = supported(&world);
        let mut restarts = 0;
        for _ in 0..8 {
            for name in &names {
                let status = json!({ "status": { "phase": "Running" } });
                world.change(Kind::Pod, "ml", name, &status);
            }
            world.run(&["vcjob"]);
            let uids = |world: &World| -> Vec<Value> {
                let uids = names.iter();
                uids.map(|name| is_as(world, Kind::Pod, name, "uid"))
                    .collect()
            };
            let before = uids(&world);
            let hit = seed.below(4) as usize;
            let name = format!("train-worker-{hit}");
            match seed.below(2) {
                0 => world.vanish(Kind::Pod, "ml", &name),
                _ => {
                    let status = json!({ "status": { "phase": "Failed" } });
                    world.change(Kind::Pod, "ml", &name, &status);
                }
            }
            if seed.below(3) == 0 {
                world.writes_left = Some(seed.below(4) as usize);
                world.run(&["vcjob"]);
                world.restart();
            }
            world.run(&["vcjob"]);
            restarts += 1;
            for (at, (was, is)) in before.iter().zip(uids(&world)).enumerate() {
                // The master is of no partition; of the workers two and two are.
                let goes = at > 0 && (at - 1) / 2 == hit / 2;
                assert_eq!(*was != is, goes, "seed {start}, {name}: {}", names[at]);
            }
            assert_eq!(supported(&world), untouched, "seed {start}, {name}");
        }
        let status = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"];
        assert_eq!(status["retryCount"], restarts, "seed {start}: {status}");
    }
}

#[test]
fn a_huge_job_is_taken_in_bounded_steps() {
    let mut huge = job(json!([]), json!([]));
    huge["spec"]["plugins"] = json!({});
    huge["spec"]["tasks"][1]["replicas"] = json!(1_000_000);
    let mut world = world(huge);
    world.run(&["vcjob"]);
    let phase = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &phase);
    let before = world.writes.len();
    world.step_now("vcjob", &key());
    let made = world.writes.len() - before;
    assert!(made <= world.settings.writes_per_step_max + 2, "{made}");
    let plugins = json!({ "spec": { "plugins": { "svc": [] } } });
    world.change(Kind::VcJob, "ml", "train", &plugins);
    world.step_now("vcjob", &key());
    let state = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"]["state"];
    assert_eq!(state["reason"], "PluginError", "{state}");
}

#[test]
fn a_huge_job_makes_pods_only_so_far_ahead_of_the_room_there_is() {
    let mut huge = job(json!([]), json!([]));
    huge["spec"]["plugins"] = json!({});
    huge["spec"]["minAvailable"] = json!(7);
    huge["spec"]["tasks"][1]["replicas"] = json!(1_000_000);
    let mut world = world(huge);
    world.settings.pods_ahead_max = 5;
    world.run(&["vcjob"]);
    let phase = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &phase);
    world.run(&["vcjob"]);
    // The gang is made whole although nothing runs yet.
    assert_eq!(world.count(Kind::Pod), 7);
    let running = json!({ "status": { "phase": "Running" } });
    for name in ["train-worker-0", "train-worker-1", "train-worker-2"] {
        world.change(Kind::Pod, "ml", name, &running);
    }
    world.run(&["vcjob"]);
    assert_eq!(world.count(Kind::Pod), 8);
}

#[test]
fn a_job_of_ten_thousand_tasks_gets_its_pods_or_says_why_not() {
    let many = |plugins: Value| {
        let mut many = job(json!([]), json!([]));
        let task = |index: u32| {
            json!({
                "name": format!("t{index}"), "replicas": 1,
                "template": { "spec": { "containers": [{ "name": "main" }] } },
            })
        };
        many["spec"]["plugins"] = plugins;
        many["spec"]["minAvailable"] = json!(1);
        many["spec"]["tasks"] = (0..10_000).map(task).collect();
        let mut world = world(many);
        world.run(&["vcjob"]);
        world
    };
    let mut world = many(json!({}));
    let phase = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &phase);
    // In no more steps than a job of one task and as many pods takes.
    world.run(&["vcjob"]);
    assert_eq!(world.count(Kind::Pod), world.settings.pods_ahead_max);
    // Each pod would be told of each task: more than anybody stores.
    let world = many(json!({ "svc": [] }));
    let state = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"]["state"];
    assert_eq!(state["reason"], "PluginError", "{state}");
    let said = state["message"].as_str().unwrap();
    assert!(
        said.contains("variables of 10000 tasks do not fit"),
        "{said}"
    );
    let kinds = [Kind::ConfigMap, Kind::Service, Kind::PodGroup, Kind::Pod];
    assert_eq!(kinds.map(|kind| world.count(kind)), [0; 4]);
    // Where they are told of themselves alone, a step makes as many as of a job without plugins.
    let mut world = many(json!({ "svc": ["--inject-hosts-env=false"] }));
    world.change(Kind::PodGroup, "ml", "train-job", &phase);
    world.step_now("vcjob", &key());
    assert_eq!(world.count(Kind::Pod), world.settings.writes_per_step_max);
}

/// A step that looks through all tasks for each name that a task waits for takes minutes here; one that
/// finds them by name, a few seconds with all that is around it.
#[test]
fn a_job_of_ten_thousand_tasks_that_wait_for_many_is_looked_at_in_order_of_its_length() {
    const PATIENCE: Duration = Duration::from_secs(180);
    let (done, told) = mpsc::channel();
    let work = thread::spawn(move || {
        let mut many = job(json!([]), json!([]));
        let (last, others) = (9_999, vec!["t9998"; 50]);
        let task = |index: u32| {
            let mut task = json!({
                "name": format!("t{index}"), "replicas": 1, "minAvailable": 1,
                "template": { "spec": { "containers": [{ "name": "main" }] } },
            });
            if index < last {
                task["dependsOn"] = json!({ "name": others, "iteration": "any" });
            }
            task
        };
        many["spec"]["plugins"] = json!({});
        many["spec"]["minAvailable"] = json!(1);
        many["spec"]["tasks"] = (0..=last).map(task).collect();
        let mut world = world(many);
        world.run(&["vcjob"]);
        let phase = json!({ "status": { "phase": "Inqueue" } });
        world.change(Kind::PodGroup, "ml", "train-job", &phase);
        world.step_now("vcjob", &key());
        // Who has lost patience has said so.
        _ = done.send(world.count(Kind::Pod));
    });
    let pods = told.recv_timeout(PATIENCE);
    assert_ne!(pods, Err(RecvTimeoutError::Timeout), "the square of that");
    if let Err(panic) = work.join() {
        std::panic::resume_unwind(panic);
    }
    assert_eq!(pods, Ok(1), "who waits for nobody");
}

const PODS: usize = 10_000;

/// A task waits for the same one many times over, all of whose pods run.
fn pods_of_one_that_names_a_task_very_often() -> usize {
    let mut body = job(json!([]), json!([]));
    body["spec"]["plugins"] = json!({});
    body["spec"]["tasks"][0]["replicas"] = json!(PODS);
    body["spec"]["tasks"][1]["dependsOn"] = json!({ "name": vec!["master"; 500_000] });
    let mut world = world(body);
    world.run(&["vcjob"]);
    let owner = json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "job", "controller": true });
    for at in 0..PODS {
        let ready = json!({ "name": "main", "ready": true });
        let pod = json!({
            "metadata": { "ownerReferences": [owner] },
            "status": { "phase": "Running", "containerStatuses": [ready] },
        });
        world.appear(Kind::Pod, "ml", &format!("train-master-{at}"), pod);
    }
    let phase = json!({ "status": { "phase": "Running" } });
    world.change(Kind::PodGroup, "ml", "train-job", &phase);
    world.step_now("vcjob", &key());
    world.count(Kind::Pod)
}

/// Whoever may write one job must not stop the work for all others, which one thread does: a few hundred
/// kilobytes of it would come to gigabytes and minutes where each volume met each other one, each container
/// each volume, or each name all the pods that bear it.
#[test]
fn a_job_that_would_come_to_gigabytes_says_so_at_once() {
    const PATIENCE: Duration = Duration::from_secs(180);
    const SAID_BYTES_MAX: usize = 100_000;
    let many = |count: u32, volume: &dyn Fn(u32) -> Value, containers: u32| {
        let mut many = job((0..count).map(volume).collect(), json!([]));
        let container = |at: u32| json!({ "name": format!("c{at}") });
        let spec = &mut many["spec"]["tasks"][1]["template"]["spec"];
        spec["containers"] = (0..containers).map(container).collect();
        many
    };
    let named = |at: u32| json!({ "mountPath": format!("/{at}"), "volumeClaimName": "there" });
    let absent = |at: u32| json!({ "mountPath": "/a", "volumeClaimName": format!("c{at}") });
    let empty = |at: u32| json!({ "mountPath": format!("/{at}"), "volumeClaim": {} });
    let rows = [
        (
            many(35_000, &absent, 1),
            "PersistentVolumeClaimNotFound",
            "and 34990 more",
        ),
        (many(35_000, &empty, 1), "ZeroCapacity", "and 34990 more"),
        (
            many(4_000, &named, 4_000),
            "TooManyMounts",
            "4000 volumes, each mounted in every one of 4000 containers",
        ),
    ];
    // Where pods are as large as may be, a step makes fewer of them.
    let mut large = many(2_000, &named, 1);
    large["spec"]["plugins"] = json!({});
    large["spec"]["tasks"][1]["replicas"] = json!(1_000);
    let (done, told) = mpsc::channel();
    let work = thread::spawn(move || {
        for (body, reason, said) in rows {
            let mut world = world(body);
            world.appear(Kind::PersistentVolumeClaim, "ml", "there", json!({}));
            world.step_now("vcjob", &key());
            let state = &world.get(Kind::VcJob, "ml", "train").unwrap()["status"]["state"];
            assert_eq!(state["reason"], reason);
            let message = state["message"].as_str().unwrap();
            assert!(message.len() < SAID_BYTES_MAX, "{} bytes", message.len());
            assert!(message.contains(said), "{message}");
            assert_eq!(world.count(Kind::PodGroup), 0, "{reason}");
        }
        let mut world = world(large);
        world.appear(Kind::PersistentVolumeClaim, "ml", "there", json!({}));
        world.run(&["vcjob"]);
        let phase = json!({ "status": { "phase": "Inqueue" } });
        world.change(Kind::PodGroup, "ml", "train-job", &phase);
        world.step_now("vcjob", &key());
        let share = world.settings.writes_per_step_max.div_ceil(3);
        assert_eq!(world.count(Kind::Pod), share);
        assert_eq!(pods_of_one_that_names_a_task_very_often(), PODS + 2);
        // Who has lost patience has said so.
        _ = done.send(());
    });
    let seen = told.recv_timeout(PATIENCE);
    assert_ne!(seen, Err(RecvTimeoutError::Timeout), "the square of that");
    if let Err(panic) = work.join() {
        std::panic::resume_unwind(panic);
    }
}
