//! Very many tiny jobs, whose names must be there before their pods are, whatever goes wrong.
//! `KATMAI_SIM_JOBS=100000 cargo test -p katmai-sim --release --test stories s2_1 -- --nocapture` plays
//! the volume that the law asks for; `KATMAI_SIM_FIRST=17` begins with another world.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use api::kind::Kind;
use api::quantity::{Format, Quantity};
use serde_json::{Value, json};
use sim::{Fault, Faults, Settings};

use crate::asked::{asked, print};
use crate::plane::world;

/// Jobs that are played unless more are asked for.
const JOBS: u64 = 100;
/// Jobs of one world: few, since whoever watches it looks through all of them.
const JOBS_AT_ONCE: u64 = 200;
pub const APART_MS: i64 = 1_000;
pub const MINUTE_MS: i64 = 60_000;

/// What goes wrong: slow wires, conflicts and crashes most of all, and what hides a Service from whoever
/// made it.
const RATES: [(Fault, u64); 13] = [
    (Fault::Conflict, 15),
    (Fault::Crash, 150),
    (Fault::DuplicateEvent, 50),
    (Fault::LateEvent, 1_000),
    (Fault::LostEvent, 1_000),
    (Fault::RequestLost, 40),
    (Fault::ServerError, 40),
    (Fault::SlowApi, 100),
    (Fault::StaleRead, 20),
    (Fault::TimeoutAfterCommit, 40),
    (Fault::TimeoutBeforeCommit, 40),
    (Fault::TooManyRequests, 100),
    (Fault::WatchDrop, 200),
];

/// The settings of a world in which that goes wrong until a while after so many jobs have come.
pub fn faulty(seed: u64, jobs: u64) -> Settings {
    let mut settings = Settings::new(seed);
    settings.latency_ms_max = [2, 20, 200][(seed % 3) as usize];
    settings.log_every_ms = None;
    settings.nodes.nodes = 4;
    settings.nodes.cpu = Quantity::from_value(32, Format::DecimalSi);
    let span_ms = i64::try_from(jobs).expect("they are few") * APART_MS;
    settings.faults = Faults {
        until_ms: span_ms + 5 * MINUTE_MS,
        down_ms_max: 2_000,
        ..Faults::NONE
    };
    for (fault, rate) in RATES {
        settings.faults.set(fault, rate);
    }
    settings
}

/// A job of one pod, which has a name.
fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "plugins": { "svc": [] },
            "tasks": [{ "name": "w", "replicas": 1, "template": {
                "metadata": { "annotations": { nodes::SIM_DURATION: "2s" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": "100m" } } }],
                },
            } }],
        },
    })
}

/// What came of some worlds.
#[derive(Default)]
struct Sum {
    jobs: u64,
    pods: u64,
    writes: u64,
    strikes: [u64; RATES.len()],
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.jobs += other.jobs;
        self.pods += other.pods;
        self.writes += other.writes;
        for (all, more) in self.strikes.iter_mut().zip(other.strikes) {
            *all += more;
        }
    }
}

/// Plays worlds from `first` on, with so many jobs in all, on all cores: no world knows of another.
fn play_all(first: u64, jobs: u64) -> (u64, Sum) {
    let worlds = jobs.div_ceil(JOBS_AT_ONCE);
    let next = AtomicU64::new(0);
    let work = || {
        let mut sum = Sum::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= worlds {
                return sum;
            }
            let jobs = JOBS_AT_ONCE.min(jobs - at * JOBS_AT_ONCE);
            play(first + at, jobs, &mut sum);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Sum::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            // A world that was found wanting says so by itself.
            sum.add(worker.join().expect("all worlds end well"));
        }
    });
    (worlds, sum)
}

/// Plays one world to its end; every pod of it is held against its job's Service when it is made.
fn play(seed: u64, jobs: u64, sum: &mut Sum) {
    let mut world = world(faulty(seed, jobs));
    for at in 0..jobs {
        let ms = i64::try_from(at).expect("they are few") * APART_MS;
        let target = Kind::VcJob.path("default", "");
        let call = api::call::Call {
            method: "POST",
            target,
            content_type: "application/json",
            body: job(&format!("j{at}")).to_string().into_bytes(),
        };
        world.insist(ms, call);
    }
    // Much longer than all of it takes: what is left undone is told.
    world.run(60 * MINUTE_MS);
    assert_eq!(world.findings(), [], "world {seed}");
    let there = world.objects(Kind::VcJob);
    assert_eq!(there.len() as u64, jobs, "world {seed}");
    for job in there {
        let name = &job["metadata"]["name"];
        let state = &job["status"]["state"];
        assert_eq!(state["phase"], "Completed", "world {seed}: {name} {state}");
        let uid = job["metadata"]["uid"].as_str().expect("it has a uid");
        let [services, pods] =
            [Kind::Service, Kind::Pod].map(|kind| world.children_of(uid, kind).len());
        assert!(services <= 1 && pods >= 1, "world {seed}: {name}");
        sum.jobs += 1;
        sum.pods += pods as u64;
    }
    sum.writes += world.revision();
    for (strikes, (fault, _)) in sum.strikes.iter_mut().zip(RATES) {
        *strikes += world.coverage().strikes(fault);
    }
}

/// S2.1: at the volume that is asked for, no pod is made before its job's Service.
#[test]
fn s2_1_however_many_jobs_no_pod_comes_before_its_service() {
    let first = asked("KATMAI_SIM_FIRST").unwrap_or(0);
    let jobs = asked("KATMAI_SIM_JOBS").unwrap_or(JOBS);
    let (worlds, sum) = play_all(first, jobs);
    let struck: Vec<String> = (RATES.iter().zip(sum.strikes))
        .map(|((fault, _), strikes)| format!("{} {strikes}", fault.name()))
        .collect();
    print(&format!(
        "{} jobs in {} worlds, {} pods, {} writes; {}",
        sum.jobs,
        worlds,
        sum.pods,
        sum.writes,
        struck.join(", ")
    ));
    // A fault that never strikes proves nothing; the rare ones do so only in a larger volume.
    let never = (RATES.iter().zip(sum.strikes)).find(|((fault, rate), strikes)| {
        let is_frequent = matches!(fault, Fault::Conflict | Fault::Crash | Fault::SlowApi);
        *strikes == 0 && (is_frequent || jobs > 10 * rate)
    });
    assert_eq!(never, None, "it never struck");
}
