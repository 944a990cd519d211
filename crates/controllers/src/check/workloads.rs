//! Laws of the rows that keep pods: nothing is made twice, nothing is counted twice, and calm
//! follows, whatever the order of things and whenever the process dies.

use std::collections::BTreeSet;

use api::intent::ObjectKey;
use api::kind::Kind;
use serde_json::{Value, json};

use super::laws::Seed;
use super::world::World;

fn template() -> Value {
    json!({ "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "main" }] } })
}

/// What is played: a row, a kind, and a spec that wants six pods.
const WORKLOADS: [(&str, Kind); 4] = [
    ("batch_job", Kind::BatchJob),
    ("deployment", Kind::Deployment),
    ("replica_set", Kind::ReplicaSet),
    ("stateful_set", Kind::StatefulSet),
];

fn world(kind: Kind) -> World {
    let mut world = World::new();
    world.is_quiet = true;
    let selector = json!({ "matchLabels": { "app": "a" } });
    let spec = match kind {
        Kind::BatchJob => json!({
            "parallelism": 6, "completions": 6, "completionMode": "Indexed",
            "backoffLimit": 1_000, "template": template(),
        }),
        Kind::StatefulSet => json!({
            "replicas": 6, "podManagementPolicy": "Parallel", "selector": selector,
            "template": template(), "volumeClaimTemplates": [{ "metadata": { "name": "v" }, "spec": {} }],
        }),
        _ => json!({ "replicas": 6, "selector": selector, "template": template() }),
    };
    let meta = json!({ "uid": "owner", "generation": 1 });
    world.appear(kind, "ml", "a", json!({ "metadata": meta, "spec": spec }));
    world
}

fn rows(row: &'static str) -> Vec<&'static str> {
    match row {
        "deployment" => vec!["deployment", "replica_set"],
        row => vec![row],
    }
}

const MADE: [Kind; 4] = [
    Kind::ControllerRevision,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
    Kind::ReplicaSet,
];

fn made(world: &World) -> Vec<usize> {
    MADE.iter().map(|kind| world.count(*kind)).collect()
}

#[test]
fn dying_between_any_two_writes_makes_nothing_twice() {
    for (row, kind) in WORKLOADS {
        let mut calm = world(kind);
        calm.run(&rows(row));
        let expected = made(&calm);
        for left in 0..24 {
            let mut world = world(kind);
            world.writes_left = Some(left);
            world.run(&rows(row));
            world.restart();
            world.run(&rows(row));
            assert_eq!(made(&world), expected, "{row} after {left} writes");
        }
    }
}

#[test]
fn a_stale_mirror_makes_nothing_twice() {
    for (row, kind) in WORKLOADS {
        let mut calm = world(kind);
        calm.run(&rows(row));
        let expected = made(&calm);
        let mut world = world(kind);
        world.backlog = Some(Vec::new());
        for _ in 0..20 {
            world.step_now(row, &ObjectKey::new(kind, "ml", "a"));
        }
        world.catch_up();
        world.run(&rows(row));
        assert_eq!(made(&world), expected, "{row}");
    }
}

fn pods(world: &World) -> Vec<(String, String)> {
    let keys = world.keys(Kind::Pod);
    let named = keys.iter().map(|key| {
        let pod = world.get(Kind::Pod, "ml", &key.name).unwrap();
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        (key.name.to_string(), uid.to_owned())
    });
    named.collect()
}

fn is_over(world: &World, name: &str) -> bool {
    let pod = world.get(Kind::Pod, "ml", name).unwrap();
    let phase = pod["status"]["phase"].as_str().unwrap_or("");
    matches!(phase, "Succeeded" | "Failed") || !pod["metadata"]["deletionTimestamp"].is_null()
}

#[test]
fn every_pod_of_a_job_is_counted_exactly_once() {
    for start in 0..40 {
        let mut seed = Seed(start);
        let mut world = World::new();
        world.is_quiet = true;
        let spec = json!({
            "parallelism": 4, "completions": 9, "backoffLimit": 1_000, "template": template(),
        });
        world.appear(
            Kind::BatchJob,
            "ml",
            "a",
            json!({ "metadata": { "uid": "owner" }, "spec": spec }),
        );
        let (mut succeeded, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..80 {
            let alive: Vec<(String, String)> = pods(&world)
                .into_iter()
                .filter(|(name, _)| !is_over(&world, name))
                .collect();
            if !alive.is_empty() {
                let (name, uid) = &alive[seed.below(alive.len() as u64) as usize];
                let is_success = seed.below(3) > 0;
                let phase = if is_success { "Succeeded" } else { "Failed" };
                world.change(
                    Kind::Pod,
                    "ml",
                    name,
                    &json!({ "status": { "phase": phase } }),
                );
                let set = if is_success {
                    &mut succeeded
                } else {
                    &mut failed
                };
                set.insert(uid.clone());
            }
            if seed.below(3) == 0 {
                world.writes_left = Some(seed.below(5) as usize);
                world.run(&["batch_job"]);
                world.restart();
            }
            world.run(&["batch_job"]);
            world.pass("+600s");
            world.run(&["batch_job"]);
            let job = world.get(Kind::BatchJob, "ml", "a").unwrap();
            let conditions = job["status"]["conditions"].as_array().cloned();
            if conditions
                .unwrap_or_default()
                .iter()
                .any(|it| it["type"] == "Complete")
            {
                break;
            }
        }
        let status = &world.get(Kind::BatchJob, "ml", "a").unwrap()["status"];
        let number = |field: &str| status[field].as_u64().unwrap_or(0);
        assert_eq!(
            number("succeeded"),
            succeeded.len() as u64,
            "seed {start}: {status}"
        );
        assert_eq!(
            number("failed"),
            failed.len() as u64,
            "seed {start}: {status}"
        );
        assert_eq!(number("succeeded"), 9, "seed {start}: {status}");
    }
}

#[test]
fn after_any_storm_there_are_as_many_pods_as_are_wanted() {
    for (row, kind) in WORKLOADS
        .into_iter()
        .filter(|(_, kind)| *kind != Kind::BatchJob)
    {
        for start in 0..15 {
            let mut seed = Seed(start);
            let mut world = world(kind);
            let mut wanted = 6;
            for round in 0..12 {
                world.run(&rows(row));
                for (name, _) in pods(&world) {
                    match seed.below(4) {
                        0 => world.vanish(Kind::Pod, "ml", &name),
                        1 if !is_over(&world, &name) => {
                            let ready = json!([{ "type": "Ready", "status": "True" }]);
                            let status = json!({ "phase": "Running", "conditions": ready });
                            world.change(Kind::Pod, "ml", &name, &json!({ "status": status }));
                        }
                        2 => {
                            let failed = json!({ "status": { "phase": "Failed" } });
                            world.change(Kind::Pod, "ml", &name, &failed);
                        }
                        _ => {}
                    }
                }
                if seed.below(3) == 0 {
                    wanted = seed.below(8);
                    let image = seed.below(3).to_string();
                    let containers = json!([{ "name": "main", "image": image }]);
                    let template = json!({ "spec": { "containers": containers } });
                    let spec = json!({ "replicas": wanted, "template": template });
                    let meta = json!({ "generation": round + 2 });
                    world.change(kind, "ml", "a", &json!({ "metadata": meta, "spec": spec }));
                }
                world.writes_left = Some(seed.below(9) as usize);
                world.run(&rows(row));
                world.restart();
            }
            for _ in 0..40 {
                world.run(&rows(row));
                for (name, _) in pods(&world) {
                    if !is_over(&world, &name) {
                        let ready = json!([{ "type": "Ready", "status": "True" }]);
                        let status = json!({ "phase": "Running", "conditions": ready });
                        world.change(Kind::Pod, "ml", &name, &json!({ "status": status }));
                    }
                }
            }
            world.run(&rows(row));
            let alive = pods(&world)
                .into_iter()
                .filter(|(name, _)| !is_over(&world, name));
            assert_eq!(alive.count() as u64, wanted, "{row}, seed {start}");
        }
    }
}
