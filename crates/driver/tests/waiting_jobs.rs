//! Many jobs that wait for claims, each for its own.

mod world;

use api::kind::Kind;
use controllers::{CONTROLLERS, Controller};
use serde_json::json;
use world::{World, settings};

const JOBS: usize = 10_000;
/// Of these, every so many-th gets its claim.
const STRIDE: usize = 97;
const SECOND_MS: i64 = 1_000;

/// The row of jobs alone.
fn jobs_only() -> &'static [Controller] {
    let row = CONTROLLERS.iter().find(|row| row.name == "vcjob");
    std::slice::from_ref(row.expect("there is a controller of jobs"))
}

fn claim_of(name: &str) -> impl Fn(&str) -> bool {
    let begin = format!("create PersistentVolumeClaim {name}-pvc-");
    move |line| line.starts_with(&begin)
}

/// S0.3, S0.4: while they wait nothing is written, and the claim that a job waits for is followed by the
/// job's own within a second, with no write for anybody else.
#[test]
fn of_ten_thousand_jobs_each_is_woken_by_its_own_claim() {
    let mut world = World::new(settings(jobs_only()));
    world.put_object(
        Kind::Queue,
        "default",
        &json!({ "spec": { "weight": 1 }, "status": { "state": "Open" } }),
    );
    for at in 0..JOBS {
        let own =
            json!({ "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } });
        let job = json!({ "spec": {
            "queue": "default", "minAvailable": 1,
            "volumes": [
                { "mountPath": "/own", "volumeClaim": own },
                { "mountPath": "/data", "volumeClaimName": format!("data-{at}") },
            ],
            "tasks": [{ "name": "w", "replicas": 1, "template": {
                "spec": { "containers": [{ "name": "main" }] },
            } }],
        } });
        world.put_object(Kind::VcJob, &format!("job-{at}"), &job);
    }
    world.pass_ms(60 * SECOND_MS);
    assert_eq!(world.writes().len(), JOBS, "each says once what it lacks");
    assert!(!world.has(Kind::PersistentVolumeClaim) && !world.has(Kind::PodGroup));
    world.pass_ms(3_600 * SECOND_MS);
    assert_eq!(world.writes(), Vec::<String>::new(), "nothing in an hour");

    let mut late = Vec::new();
    for at in (0..JOBS).step_by(STRIDE) {
        let data = json!({ "status": { "phase": "Bound" } });
        world.put_object(Kind::PersistentVolumeClaim, &format!("data-{at}"), &data);
        world.pass_ms(SECOND_MS);
        let name = format!("job-{at}");
        let written = world.writes();
        if !written.iter().any(|line| claim_of(&name)(line)) {
            late.push((at, written));
            continue;
        }
        let of_others: Vec<_> = (written.iter())
            .filter(|line| {
                !line
                    .split(' ')
                    .any(|word| word == name || word.starts_with(&format!("{name}-")))
            })
            .collect();
        assert!(of_others.is_empty(), "{name}: {of_others:?}");
    }
    assert!(late.is_empty(), "not within a second: {late:?}");
}
