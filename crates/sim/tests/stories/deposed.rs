//! A leader stands still while pods that it makes and binds are on their way; another takes over, and
//! then they arrive, whatever others did meanwhile.
//! `KATMAI_SIM_TAKEOVERS=1000` plays more of them, `KATMAI_SIM_SEED=17` one.

use std::collections::BTreeMap;

use api::call::Call;
use api::kind::Kind;
use api::quantity::{Format, Quantity};
use serde_json::{Value, json};
use sim::{End, Random, Settings, World};

use crate::asked::{asked, print};
use crate::plane::{phase, world};

/// Stories that are played unless more are asked for.
const STORIES: u64 = 8;
/// The first of them: among those that follow it something comes late in each way.
const FIRST: u64 = 8;
const NODES: u32 = 4;
const ROOM: u32 = 5;
/// They need all there is.
const PODS: u32 = NODES * ROOM;
/// By then somebody leads.
const COMES_MS: i64 = 10_000;
/// Nobody leads yet again.
const MEANWHILE_MS: i64 = 5_000;
/// What is late comes so much later: before, while or after another takes over.
const LATE_MS: [i64; 2] = [10_000, 30_000];
/// By then all that is late has come, and whoever stood still goes on.
const OVER_MS: i64 = 65_000;

/// What others do while nobody decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// Every second pod that is there is deleted.
    PodsGo,
    /// The job is deleted, and made again under its name.
    JobMadeAgain,
    /// Pods of nobody take all nodes.
    RoomTaken,
}

const MEANWHILE: [Meanwhile; 4] = [
    Meanwhile::Nothing,
    Meanwhile::PodsGo,
    Meanwhile::JobMadeAgain,
    Meanwhile::RoomTaken,
];

fn settings(seed: u64) -> Settings {
    let mut settings = Settings::new(seed);
    settings.replicas = 2;
    settings.latency_ms_min = 200;
    settings.latency_ms_max = 250;
    settings.log_every_ms = None;
    settings.nodes.nodes = NODES;
    settings.nodes.cpu = Quantity::from_value(i64::from(ROOM), Format::DecimalSi);
    settings
}

fn pod(cpu: u32, runs: &str) -> Value {
    json!({
        "metadata": { "annotations": { nodes::SIM_DURATION: runs } },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": cpu.to_string() } } }],
        },
    })
}

/// A gang that runs for longer than anything is late, and begins anew where a pod of it fails.
fn gang() -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": "training", "namespace": "default" },
        "spec": {
            "minAvailable": PODS,
            "maxRetry": 10,
            "schedulerName": "volcano",
            "plugins": { "svc": [] },
            "policies": [{ "event": "PodFailed", "action": "RestartJob" }],
            "tasks": [{ "name": "w", "replicas": PODS, "template": pod(1, "100s") }],
        },
    })
}

fn delete(world: &mut World, target: String) {
    let call = Call {
        method: "DELETE",
        target: format!("{target}?gracePeriodSeconds=0"),
        content_type: "",
        body: Vec::new(),
    };
    world.call(0, call);
}

fn meddle(world: &mut World, meanwhile: Meanwhile) {
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::PodsGo => {
            for pod in world.objects(Kind::Pod).iter().step_by(2) {
                let name = pod["metadata"]["name"].as_str().expect("it has a name");
                delete(world, Kind::Pod.path("default", name));
            }
        }
        Meanwhile::JobMadeAgain => {
            delete(world, Kind::VcJob.path("default", "training"));
            world.create(2_000, Kind::VcJob, gang());
        }
        Meanwhile::RoomTaken => {
            for node in world.objects(Kind::Node) {
                let name = node["metadata"]["name"].as_str().expect("it has a name");
                let mut pod = pod(ROOM, "60s");
                pod["metadata"]["name"] = json!(format!("of-{name}"));
                pod["metadata"]["namespace"] = json!("default");
                pod["spec"]["nodeName"] = json!(name);
                world.create(0, Kind::Pod, pod);
            }
        }
    }
}

/// What some stories came to: late pods and binds that were refused, and those that were taken.
#[derive(Debug, Default)]
struct Sum {
    refused: [usize; 2],
    taken: [usize; 2],
}

/// Reads which late writes came, and that no pod was bound twice.
fn read(lines: &[String], sum: &mut Sum) -> Result<(), String> {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bound: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let is_refused = line.contains(" refused ");
        let is_bind = line.contains("/binding");
        if let Some((_, deed)) = line.split_once(" post default/pods") {
            let name = deed.trim_start_matches('/').split(['/', ' ']).next();
            let name = name.unwrap_or_default();
            if !is_refused {
                let counts = if is_bind { &mut bound } else { &mut made };
                *counts.entry(name).or_default() += 1;
            }
            if line.contains("former driver") {
                let counts = match is_refused {
                    true => &mut sum.refused,
                    false => &mut sum.taken,
                };
                counts[usize::from(is_bind)] += 1;
            }
        }
    }
    let twice = bound
        .into_iter()
        .find(|(pod, count)| *count > made.get(pod).copied().unwrap_or(0));
    match twice {
        Some((pod, _)) => Err(format!("{pod} was bound more often than made")),
        None => Ok(()),
    }
}

/// What runs on each node has room there.
fn check_room(world: &mut World) -> Result<(), String> {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for pod in world.objects(Kind::Pod) {
        if let (Some(node), "Running") = (
            pod["spec"]["nodeName"].as_str(),
            text(&pod["status"]["phase"]),
        ) {
            let cpu = &pod["spec"]["containers"][0]["resources"]["requests"]["cpu"];
            let cpu: u32 = text(cpu).parse().expect("it is a number");
            *used.entry(node.to_owned()).or_default() += cpu;
        }
    }
    match used.iter().find(|(_, cpu)| **cpu > ROOM) {
        Some((node, cpu)) => Err(format!("{cpu} CPUs are in use on {node}")),
        None => Ok(()),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// When the first pod is made, or bound, where nothing goes wrong.
fn first_ms(seed: u64, is_bind: bool) -> i64 {
    let mut calm = world(settings(seed));
    calm.create(COMES_MS, Kind::VcJob, gang());
    loop {
        calm.run(10);
        let mut lines = calm.transcript().lines().iter();
        let is_it = |line: &String| {
            line.contains("driver post default/pods") && line.contains("/binding") == is_bind
        };
        if lines.any(is_it) {
            return calm.age_ms();
        }
    }
}

fn play(seed: u64, sum: &mut Sum) -> Result<(), String> {
    let mut random = Random::new(seed);
    let meanwhile = MEANWHILE[(seed % 4) as usize];
    // Up to all of them are on their way.
    let at_ms = first_ms(seed, (seed / 4).is_multiple_of(2)) + random.between(-150, 30);
    let late_ms = random.between(LATE_MS[0], LATE_MS[1]);
    let mut world = world(settings(seed));
    world.create(COMES_MS, Kind::VcJob, gang());
    world.supplant(at_ms, late_ms);
    world.run(at_ms + MEANWHILE_MS);
    meddle(&mut world, meanwhile);
    let told = |world: &World, why: &str| {
        let story = world.transcript().text();
        format!("{meanwhile:?} at {at_ms}, late by {late_ms}: {why}\n{story}")
    };
    while world.age_ms() < at_ms + OVER_MS {
        world.run(1_000);
        check_room(&mut world).map_err(|why| told(&world, &why))?;
    }
    if world.run(5 * 60_000) != End::Quiet {
        return Err(told(&world, "it does not come to rest"));
    }
    let findings = [world.findings().to_vec(), world.settled()].concat();
    if !findings.is_empty() {
        return Err(told(&world, &format!("{findings:#?}")));
    }
    if phase(&mut world, "training") != "Completed" {
        return Err(told(&world, "the job does not complete"));
    }
    let jobs = world.objects(Kind::VcJob);
    let uid = text(&jobs[0]["metadata"]["uid"]);
    let pods = world.children_of(uid, Kind::Pod).len();
    // Where no pod was deleted or has failed none is made again.
    let is_whole = meanwhile != Meanwhile::PodsGo && world.failures_of(uid) == 0;
    if is_whole && pods != PODS as usize {
        return Err(told(&world, &format!("it had {pods} pods")));
    }
    read(world.transcript().lines(), sum).map_err(|why| told(&world, &why))
}

/// S1.3, S1.7: pods and binds of a leader that was deposed while they were on their way come under its
/// successor. No pod is made or bound twice, no node runs more than it has room for, and the gang
/// ends whole.
#[test]
fn s1_7_pods_and_binds_of_a_deposed_leader_that_come_late_harm_nobody() {
    let seeds = match asked("KATMAI_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => FIRST..FIRST + asked("KATMAI_SIM_TAKEOVERS").unwrap_or(STORIES),
    };
    let stories = seeds.end - seeds.start;
    let mut sum = Sum::default();
    for seed in seeds {
        if let Err(why) = play(seed, &mut sum) {
            panic!("KATMAI_SIM_SEED={seed}: {why}");
        }
    }
    print(&format!("{stories} takeovers, of pods and binds: {sum:?}"));
    let counts = [sum.refused, sum.taken].concat();
    // Where nothing comes too late nothing is proved.
    assert!(
        stories < STORIES || counts.iter().all(|it| *it >= 3),
        "{sum:?}"
    );
}
