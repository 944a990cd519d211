//! Somebody outside deletes the Services of gangs, in each phase of their lives and whatever else goes
//! wrong: pods that are still to be made wait until it stands again.
//! `KATMAI_SIM_WORLDS=300` plays more worlds, `KATMAI_SIM_SEED=17` one.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::thread;

use api::call::Call;
use api::kind::Kind;
use serde_json::{Value, json};
use sim::{Fault, Random, Settings, World};

use crate::asked::{asked, print};
use crate::order::{APART_MS, MINUTE_MS, faulty};
use crate::plane::world;

/// Worlds that are played unless more are asked for.
const WORLDS: u64 = 6;
/// Jobs of one world; nobody touches the first.
const JOBS: u64 = 16;
const PODS: usize = 6;

/// What lets a driver hear of something, or lets a write arrive, much later than the wires need.
const LATE: [Fault; 6] = [
    Fault::LateEvent,
    Fault::LostEvent,
    Fault::SlowApi,
    Fault::StaleRead,
    Fault::TimeoutBeforeCommit,
    Fault::WatchDrop,
];

/// In every second world nothing is later than the wires are slow.
fn settings(seed: u64) -> (Settings, bool) {
    let mut settings = faulty(seed, JOBS);
    let is_prompt = seed.is_multiple_of(2);
    for fault in LATE.into_iter().filter(|_| is_prompt) {
        settings.faults.set(fault, 0);
    }
    (settings, is_prompt)
}

/// A gang that runs for longer than anybody meddles.
fn gang(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": PODS,
            "schedulerName": "volcano",
            "plugins": { "svc": [] },
            "tasks": [{ "name": "w", "replicas": PODS, "template": {
                "metadata": { "annotations": { nodes::SIM_DURATION: "10m" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": "100m" } } }],
                },
            } }],
        },
    })
}

fn delete(target: String) -> Call {
    Call {
        method: "DELETE",
        target,
        content_type: "",
        body: Vec::new(),
    }
}

fn hold(service: &str, finalizers: &Value) -> Call {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    Call {
        method: "PATCH",
        target: Kind::Service.path("default", service),
        content_type: "application/merge-patch+json",
        body: patch.to_string().into_bytes(),
    }
}

/// What somebody does to the Service of a job that comes at a time: once while pods are made, or twice in a
/// row, or while they run, when a pod goes with it; every third is held by a finalizer for a while.
fn meddle(world: &mut World, random: &mut Random, job: &str, comes_ms: i64, latency_ms: i64) {
    let early = |random: &mut Random| comes_ms + random.between(latency_ms, 9 * latency_ms);
    let service = Kind::Service.path("default", job);
    let at_ms = match random.between(0, 2) {
        0 => early(random),
        1 => {
            let first_ms = early(random);
            world.call(first_ms, delete(service.clone()));
            first_ms + random.between(latency_ms, 6 * latency_ms)
        }
        _ => {
            let at_ms = comes_ms + random.between(5_000, MINUTE_MS);
            let pod = Kind::Pod.path("default", &format!("{job}-w-0"));
            world.call(at_ms, delete(format!("{pod}?gracePeriodSeconds=0")));
            at_ms
        }
    };
    if random.once_in(3) {
        world.call(at_ms, hold(job, &json!(["katmai.dev/test"])));
        let held_ms = random.between(1_000, 20_000);
        world.call(at_ms + held_ms, hold(job, &Value::Null));
    }
    world.call(at_ms, delete(service));
}

/// What some worlds came to.
#[derive(Debug, Default)]
struct Sum {
    /// Services that were deleted before their jobs had a pod, while they had some, and when they had had
    /// all.
    before: usize,
    amid: usize,
    after: usize,
    /// Of these, those that a finalizer held, and those that were not the first of their jobs.
    held: usize,
    again: usize,
    /// Pods that were made where a Service was missing, as they were on their way when it went.
    overtaken: usize,
    /// Pods that were made after a Service was made again.
    waited: usize,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        let Sum {
            before,
            amid,
            after,
            held,
            again,
            overtaken,
            waited,
        } = other;
        self.before += before;
        self.amid += amid;
        self.after += after;
        self.held += held;
        self.again += again;
        self.overtaken += overtaken;
        self.waited += waited;
    }
}

/// A job, as far as the story has been read.
#[derive(Default)]
struct Read {
    pods: usize,
    deletions: usize,
    is_held: bool,
    /// When its Service was deleted that has no successor yet.
    gone_ms: Option<i64>,
}

/// Reads in the order of the writes what became of each Service and which pods came without one.
/// Nothing that was asked for before its driver could hear of a deletion is later than `late_ms`.
fn read(lines: &[String], late_ms: i64) -> Result<Sum, String> {
    let mut jobs: BTreeMap<&str, Read> = BTreeMap::new();
    let mut sum = Sum::default();
    let done = lines.iter().filter(|line| !line.contains(" refused "));
    for line in done {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, who, verb, place, ..] = words[..] else {
            continue;
        };
        let path: Vec<&str> = place.split('/').collect();
        let ["default", kind, name] = path[..] else {
            continue;
        };
        let name = name.split('-').next().unwrap_or(name);
        let job = jobs.entry(name).or_default();
        let at_ms = milliseconds(at);
        match (who, verb, kind) {
            ("user", "patch", "services") => job.is_held = job.gone_ms.is_none(),
            ("user", "delete", "services") if job.gone_ms.is_none() => {
                job.gone_ms = Some(at_ms);
                let phase = match job.pods {
                    0 => &mut sum.before,
                    1..PODS => &mut sum.amid,
                    _ => &mut sum.after,
                };
                *phase += 1;
                sum.held += usize::from(job.is_held);
                sum.again += usize::from(job.deletions > 0);
                job.deletions += 1;
            }
            ("driver", "post", "services") => job.gone_ms = None,
            ("driver", "post", "pods") => {
                job.pods += 1;
                match job.gone_ms {
                    Some(gone_ms) if at_ms - gone_ms > late_ms => {
                        return Err(format!("there was no Service, long since: {line}"));
                    }
                    Some(_) => sum.overtaken += 1,
                    None => sum.waited += usize::from(job.deletions > 0),
                }
            }
            _ => {}
        }
    }
    match jobs.iter().find(|(_, job)| job.gone_ms.is_some()) {
        Some((name, _)) => Err(format!("the Service of {name} was never made again")),
        None => Ok(sum),
    }
}

/// `+12.345s` in milliseconds.
fn milliseconds(at: &str) -> i64 {
    let digits: String = at.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a line begins with its time")
}

/// Plays one world to its end.
fn play(seed: u64) -> Result<Sum, String> {
    let (settings, is_prompt) = settings(seed);
    let latency_ms = settings.latency_ms_max;
    let mut world = world(settings);
    let mut random = Random::new(seed);
    for (at, comes_ms) in (0..JOBS).zip((0..).step_by(APART_MS as usize)) {
        let name = format!("j{at}");
        world.create(comes_ms, Kind::VcJob, gang(&name));
        if at > 0 {
            meddle(&mut world, &mut random, &name, comes_ms, latency_ms);
        }
    }
    // Nothing goes wrong any more, and all run.
    world.run(6 * MINUTE_MS + JOBS as i64 * APART_MS);
    let services = world.objects(Kind::Service);
    let spec = |job: &str| {
        let mut named = services.iter();
        let service = named.find(|it| it["metadata"]["name"] == job)?;
        let mut spec = service["spec"].clone();
        assert_eq!(spec["selector"]["volcano.sh/job-name"].take(), job);
        // A list that is none is told of what was patched.
        spec.as_object_mut()?.retain(|_, value| !value.is_null());
        Some(spec)
    };
    for at in 0..JOBS {
        let name = format!("j{at}");
        let pods = world.objects(Kind::Pod);
        let of_job = |it: &&Value| it["metadata"]["labels"]["volcano.sh/job-name"] == name;
        let runs = pods.iter().filter(of_job);
        if runs.filter(|it| it["status"]["phase"] == "Running").count() != PODS {
            return Err(format!("{name} does not run whole"));
        }
        if spec(&name).is_none() || spec(&name) != spec("j0") {
            return Err(format!(
                "{name} has {:?}, not {:?}",
                spec(&name),
                spec("j0")
            ));
        }
    }
    world.run(60 * MINUTE_MS);
    let (findings, settled) = (world.findings().to_vec(), world.settled());
    if !findings.is_empty() || !settled.is_empty() {
        return Err(format!("{findings:#?} {settled:#?}"));
    }
    let is_over = |job: &Value| job["status"]["state"]["phase"] == "Completed";
    if let Some(job) = world.objects(Kind::VcJob).iter().find(|it| !is_over(it)) {
        return Err(format!("it does not complete: {job}"));
    }
    // A line and a request.
    let late_ms = if is_prompt { 2 * latency_ms } else { i64::MAX };
    read(world.transcript().lines(), late_ms)
}

/// Plays these worlds on all cores: none knows of another.
fn play_all(seeds: &[u64]) -> Sum {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = |share: &[u64]| {
        let mut sum = Sum::default();
        for seed in share {
            match play(*seed) {
                Ok(more) => sum += more,
                Err(why) => panic!("KATMAI_SIM_SEED={seed}: {why}"),
            }
        }
        sum
    };
    let mut sum = Sum::default();
    thread::scope(|scope| {
        let shares = seeds.chunks(seeds.len().div_ceil(threads));
        let workers: Vec<_> = shares
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        for worker in workers {
            // A world that was found wanting says so by itself.
            sum += worker.join().expect("all worlds end well");
        }
    });
    sum
}

/// S2.7: whenever a Service is deleted it is made again as it was, and until then no pod of its job is
/// made but those that were on their way. That nobody asks for a pod who knows better is a law of
/// every world.
#[test]
fn s2_7_pods_wait_while_a_service_that_somebody_deleted_is_made_again() {
    let seeds = match asked("KATMAI_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..asked("KATMAI_SIM_WORLDS").unwrap_or(WORLDS),
    };
    let worlds = seeds.end - seeds.start;
    let sum = play_all(&seeds.collect::<Vec<_>>());
    print(&format!("{worlds} worlds: {sum:?}"));
    let each = [sum.before, sum.amid, sum.after, sum.held, sum.again];
    // Where none is deleted nothing is proved.
    assert!(worlds < WORLDS || each.iter().all(|it| *it >= 5), "{sum:?}");
    assert!(worlds < WORLDS || sum.waited > 20, "{sum:?}");
}

#[test]
fn a_pod_that_comes_long_after_its_service_went_is_told() {
    let told = |pod: &str, again: &str| {
        let gone = "+1.000s user delete default/services/j1";
        read(&[gone, pod, again].map(str::to_owned), 40).map(|sum| (sum.overtaken, sum.waited))
    };
    let pod = |at: &str| format!("+{at}s driver post default/pods/j1-w-0");
    let again = "+2.000s driver post default/services/j1";
    assert_eq!(told(&pod("1.040"), again), Ok((1, 0)));
    assert_eq!(told(again, &pod("2.001")), Ok((0, 1)));
    assert!(told(&pod("1.041"), again).is_err());
    let refused = format!("{again} refused 409 AlreadyExists");
    assert!(told(&pod("1.040"), &refused).is_err());
}
