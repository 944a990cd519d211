//! Pods that wait until DNS knows their peers, and a DNS that hears of them late. `KATMAI_SIM_GANGS=300`
//! lets more of them meet.

use api::kind::Kind;
use driver::Settings;
use serde_json::{Value, json};
use sim::{Fault, Faults, World};

use crate::asked::asked;
use crate::asking::naming;
use crate::drivers::drivers;

/// Gangs that come in one story, half a minute after one another, unless more are asked for: a thousand pods in
/// both.
const GANGS: usize = 150;
const APART_MS: i64 = 30_000;
const MINUTE_MS: i64 = 60_000;

/// A gang of so many, in which each needs all others.
fn job(name: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": pods,
            "schedulerName": "volcano",
            "plugins": { "svc": [] },
            "tasks": [{ "name": "w", "replicas": pods, "template": {
                "metadata": { "annotations": { nodes::SIM_DURATION: "5s" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": "100m" } } }],
                },
            } }],
        },
    })
}

fn gangs() -> usize {
    asked("KATMAI_SIM_GANGS").map_or(GANGS, |gangs| usize::try_from(gangs).expect("they are few"))
}

/// Gangs come in the course of some minutes, in which the name server is deaf for half of the time; how
/// many of their pods started knowing their peers, and how many did not.
fn meet(seed: u64, gangs: usize, drivers: Settings) -> (u64, u64) {
    let span_ms = i64::try_from(gangs).expect("they are few") * APART_MS;
    let mut settings = sim::Settings::new(seed);
    settings.latency_ms_max = 20;
    // One of them is played again from its log, answers of DNS included.
    settings.log_every_ms = settings.log_every_ms.filter(|_| seed == 3);
    settings.faults = Faults::NONE.with(Fault::DnsDelay, 15);
    settings.faults.until_ms = span_ms + 2 * MINUTE_MS;
    let mut world = World::new(settings, drivers);
    for at in 0..gangs {
        let ms = i64::try_from(at).expect("they are few") * APART_MS;
        let body = job(&format!("j{at}"), 2 + at % 4);
        world.create(ms + 10, Kind::VcJob, body);
    }
    world.run(span_ms + 10 * MINUTE_MS);
    assert_eq!(world.findings(), [], "seed {seed}");
    assert_eq!(world.settled(), [], "seed {seed}");
    let jobs = world.objects(Kind::VcJob);
    assert_eq!(jobs.len(), gangs, "{}", world.transcript().text());
    for job in jobs {
        let state = &job["status"]["state"];
        assert_eq!(state["phase"], "Completed", "seed {seed}: {job}");
    }
    assert!(
        world.coverage().strikes(Fault::DnsDelay) > 10,
        "seed {seed}"
    );
    let met = world.meetings();
    (met.known, met.in_vain)
}

/// S2.6: with the gate, and DNS up to half a minute late, the first question of every pod for every
/// peer is answered, and all jobs end.
#[test]
fn s2_6_no_container_starts_before_dns_knows_its_peers_however_late_it_hears_of_them() {
    let pods: usize = (0..gangs()).map(|at| 2 + at % 4).sum();
    for seed in [3, 8] {
        let (known, in_vain) = meet(seed, gangs(), naming(seed, drivers(seed)));
        assert_eq!((known, in_vain), (pods as u64, 0), "seed {seed}");
    }
}

/// S2.4: who waits for less long than DNS is late starts without, and ends all the same.
#[test]
fn s2_4_pods_wait_no_longer_than_they_were_told() {
    let mut drivers = naming(3, drivers(3));
    drivers.controller_settings.service_gate_deadline_ms = 4_000;
    let (known, in_vain) = meet(3, 12, drivers);
    assert!(known > 0 && in_vain > 0, "{known} {in_vain}");
}

/// A watch ends by itself after half an hour to an hour. The name server then looks again at what it
/// knows already, which is no news: a world in which nothing else happens is at rest (seed 266314829517).
#[test]
fn a_name_server_that_looks_again_has_no_news() {
    let mut settings = sim::Settings::new(5);
    settings.latency_ms_max = 20;
    let mut world = World::new(settings, drivers(5));
    let mut lasting = job("lasting", 2);
    let template = &mut lasting["spec"]["tasks"][0]["template"];
    template["metadata"]["annotations"][nodes::SIM_DURATION] = json!("100h");
    world.create(10, Kind::VcJob, lasting);
    let hours: i64 = 3;
    for at in 1..hours * 60 {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": format!("m{at}"), "namespace": "default",
        } });
        world.create(at * MINUTE_MS, Kind::ConfigMap, map);
    }
    // Behind each of them, before the name server would hear of anything.
    world.run(MINUTE_MS / 2);
    for at in 1..hours * 60 {
        world.run(if at == 1 {
            MINUTE_MS / 2 + 200
        } else {
            MINUTE_MS
        });
        let name = format!("m{at}");
        let is_there =
            (world.objects(Kind::ConfigMap).iter()).any(|it| it["metadata"]["name"] == name);
        assert!(is_there, "{name} is there");
        assert!(
            !world.transcript().text().contains("what is new of names"),
            "{name}"
        );
    }
}
