//! Laws of the rows that make jobs one after the other: each is made once, and in its turn, whatever
//! the order of things and whenever the process dies.

use std::collections::BTreeSet;

use api::intent::ObjectKey;
use api::kind::Kind;
use serde_json::{Value, json};

use super::laws::Seed;
use super::world::World;

const ROWS: [&str; 2] = ["job_flow", "job_template"];
const FLOWS: usize = 6;

/// A flow of six jobs, each after some of those before it.
fn flows(seed: &mut Seed) -> Vec<Vec<usize>> {
    let targets = |number: usize, seed: &mut Seed| {
        let all = 0..number;
        all.filter(|_| seed.below(3) == 0).collect::<Vec<usize>>()
    };
    (0..FLOWS).map(|number| targets(number, seed)).collect()
}

fn world(flows: &[Vec<usize>]) -> World {
    let mut world = World::new();
    world.is_quiet = true;
    let list: Vec<Value> = (flows.iter().enumerate().rev())
        .map(|(number, targets)| {
            let targets: Vec<String> = targets.iter().map(|it| format!("t{it}")).collect();
            json!({ "name": format!("t{number}"), "dependsOn": { "targets": targets } })
        })
        .collect();
    for number in 0..FLOWS {
        let spec = json!({ "spec": { "tasks": [] } });
        world.appear(Kind::JobTemplate, "ml", &format!("t{number}"), spec);
    }
    let meta = json!({ "uid": "flow" });
    world.appear(
        Kind::JobFlow,
        "ml",
        "f",
        json!({ "metadata": meta, "spec": { "flows": list } }),
    );
    world
}

fn phase_of(world: &World, number: usize) -> Option<String> {
    let job = world.get(Kind::VcJob, "ml", &format!("f-t{number}"))?;
    Some(
        job["status"]["state"]["phase"]
            .as_str()
            .unwrap_or("")
            .to_owned(),
    )
}

/// Moves a job that there is a step on; what has completed may go.
fn advance(world: &mut World, number: usize, failing: Option<usize>, gone: &mut BTreeSet<usize>) {
    let name = format!("f-t{number}");
    let Some(phase) = phase_of(world, number) else {
        return;
    };
    let taken_down = world.get(Kind::JobFlow, "ml", "f").is_some_and(|flow| {
        let list = flow["status"]["completedJobs"].as_array();
        list.is_some_and(|list| list.contains(&json!(name)))
    });
    let next = match &*phase {
        "" => "Running",
        "Running" if failing == Some(number) => "Failed",
        "Running" => "Completed",
        "Completed" if taken_down => {
            gone.insert(number);
            return world.vanish(Kind::VcJob, "ml", &name);
        }
        _ => return,
    };
    let state = json!({ "status": { "state": { "phase": next } } });
    world.change(Kind::VcJob, "ml", &name, &state);
}

#[test]
fn every_job_of_a_flow_comes_once_and_in_its_turn() {
    let mut ends = BTreeSet::new();
    for start in 0..120 {
        let mut seed = Seed(start);
        let flows = flows(&mut seed);
        let failing = (seed.below(3) == 0).then(|| seed.below(FLOWS as u64) as usize);
        let mut world = world(&flows);
        let (mut done, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..90 {
            world.writes_left = (seed.below(2) == 0).then(|| seed.below(4) as usize);
            world.run(&ROWS);
            if seed.below(3) == 0 {
                world.restart();
            }
            world.writes_left = None;
            let number = seed.below(FLOWS as u64) as usize;
            if let Some(phase) = phase_of(&world, number) {
                assert!(
                    flows[number].iter().all(|target| done.contains(target)),
                    "seed {start}: job {number} of {flows:?} came before its turn"
                );
                assert!(!gone.contains(&number), "seed {start}: made again");
                if phase == "Completed" {
                    done.insert(number);
                }
            }
            advance(&mut world, number, failing, &mut gone);
            if phase_of(&world, number).as_deref() == Some("Completed") {
                done.insert(number);
            }
        }
        world.restart();
        world.run(&ROWS);
        let made = (world.writes.iter())
            .filter(|key| key.kind == Kind::VcJob)
            .collect::<Vec<&ObjectKey>>();
        let names: BTreeSet<&ObjectKey> = made.iter().copied().collect();
        assert_eq!(
            made.len(),
            names.len(),
            "seed {start}: made twice: {made:?}"
        );
        let flow = world.get(Kind::JobFlow, "ml", "f").unwrap();
        let end = flow["status"]["state"]["phase"].as_str().unwrap_or("");
        let is_whole = done.len() == FLOWS;
        assert_eq!(end == "Succeed", is_whole, "seed {start}: {flow}");
        ends.insert(end.to_owned());
    }
    for end in ["Failed", "Succeed"] {
        assert!(ends.contains(end), "{ends:?}");
    }
}

#[test]
fn each_minute_of_a_schedule_gets_one_job_whenever_the_process_dies() {
    let rows = [
        ("cron_job", Kind::BatchCronJob, Kind::BatchJob),
        ("vc_cron_job", Kind::VcCronJob, Kind::VcJob),
    ];
    for (row, kind, job) in rows {
        for left in 0..12 {
            let mut world = World::new();
            world.is_quiet = true;
            let meta = json!({ "creationTimestamp": "2027-01-15T07:59:30Z" });
            let template = json!({ "spec": { "template": {}, "tasks": [] } });
            let spec = json!({ "schedule": "* * * * *", "jobTemplate": template });
            world.appear(kind, "ml", "c", json!({ "metadata": meta, "spec": spec }));
            for _ in 0..3 {
                world.writes_left = Some(left);
                world.run(&[row]);
                world.restart();
                world.run(&[row]);
                world.pass("+60s");
            }
            assert_eq!(world.count(job), 3, "{row} after {left} writes");
            let active = &world.get(kind, "ml", "c").unwrap()["status"]["active"];
            assert_eq!(active.as_array().map(Vec::len), Some(3), "{row}: {active}");
        }
    }
}
