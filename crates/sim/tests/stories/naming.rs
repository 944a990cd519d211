//! Pods that wait until DNS knows their peers, and a DNS that hears of them late or never answers.
//! `KATMAI_SIM_GANGS=300` lets more of them meet.

use std::ops::RangeInclusive;

use api::kind::Kind;
use controllers::ServiceGate;
use driver::Settings;
use serde_json::{Value, json};
use sim::{Fault, Faults, Meeting, World};

use crate::asked::asked;
use crate::asking::naming;
use crate::drivers::drivers;

/// Gangs that come in one story, half a minute after one another, unless more are asked for: a thousand pods in
/// both.
const GANGS: usize = 150;
/// No whole seconds, of which the wire tells: so they come at any time of one.
const APART_MS: i64 = 30_130;
const MINUTE_MS: i64 = 60_000;

/// A gang of so many that start together, and of so many in all. None ends before all have started.
fn job(name: &str, together: usize, pods: usize) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "minAvailable": together,
            "schedulerName": "volcano",
            "plugins": { "svc": [] },
            "tasks": [{ "name": "w", "replicas": pods, "template": {
                "metadata": { "annotations": { nodes::SIM_DURATION: "20s" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": "100m" } } }],
                },
            } }],
        },
    })
}

/// How many pods the gang of a number has: two to five.
fn size(at: usize) -> usize {
    2 + at % 4
}

/// So many gangs in which each needs all others.
fn gangs(count: usize) -> Vec<Value> {
    let gang = |at: usize| job(&format!("j{at}"), size(at), size(at));
    (0..count).map(gang).collect()
}

fn gangs_asked() -> usize {
    asked("KATMAI_SIM_GANGS").map_or(GANGS, |gangs| usize::try_from(gangs).expect("they are few"))
}

/// A name server that is deaf for half of the time, for up to half a minute and longer where one such
/// time begins in another.
fn deaf(seed: u64) -> sim::Settings {
    let mut settings = sim::Settings::new(seed);
    settings.latency_ms_max = 20;
    // One of them is played again from its log, answers of DNS included.
    settings.log_every_ms = settings.log_every_ms.filter(|_| seed == 3);
    settings.faults = Faults::NONE.with(Fault::DnsDelay, 15);
    settings
}

/// A name server that hears of everything so much later, and of nothing before what came before it.
fn late(seed: u64, ms: RangeInclusive<i64>) -> sim::Settings {
    let mut settings = deaf(seed);
    settings.faults = Faults::NONE;
    settings.names_ms_min = *ms.start();
    settings.names_ms_max = *ms.end();
    settings
}

/// These come in turn and all complete; what each of their pods found when it started.
fn meet(mut settings: sim::Settings, drivers: Settings, jobs: Vec<Value>) -> Vec<Meeting> {
    let span_ms = i64::try_from(jobs.len()).expect("they are few") * APART_MS;
    settings.faults.until_ms = span_ms + 2 * MINUTE_MS;
    let is_deaf = settings.faults.has(Fault::DnsDelay);
    let seed = settings.seed;
    let count = jobs.len();
    let mut world = World::new(settings, drivers);
    for (job, at) in jobs.into_iter().zip(0..) {
        world.create(at * APART_MS + 10, Kind::VcJob, job);
    }
    world.run(span_ms + 15 * MINUTE_MS);
    assert_eq!(world.findings(), [], "seed {seed}");
    assert_eq!(world.settled(), [], "seed {seed}");
    let jobs = world.objects(Kind::VcJob);
    assert_eq!(jobs.len(), count, "{}", world.transcript().text());
    for job in jobs {
        let state = &job["status"]["state"];
        assert_eq!(state["phase"], "Completed", "seed {seed}: {job}");
    }
    let strikes = world.coverage().strikes(Fault::DnsDelay);
    let least = count.min(10) as u64;
    assert!(
        if is_deaf {
            strikes > least
        } else {
            strikes == 0
        },
        "seed {seed}: {strikes}"
    );
    world.meetings().cloned().collect()
}

/// How many of them found every name that was certain.
fn whole(met: &[Meeting]) -> usize {
    met.iter().filter(|it| it.is_whole()).count()
}

/// Drivers that ask DNS and whose jobs' pods wait for names for two minutes.
fn patient(seed: u64) -> Settings {
    naming(3, drivers(seed))
}

/// The same that wait for as long as they do where nobody says otherwise: a minute.
fn usual(seed: u64) -> Settings {
    let mut drivers = patient(seed);
    let rules = &mut drivers.controller_settings;
    rules.service_gate_deadline_ms = controllers::Settings::default().service_gate_deadline_ms;
    drivers
}

/// S2.6: with the gate, and DNS up to half a minute late, the first question of every pod for every
/// peer is answered, and all jobs end. Each asks for all that its job has by its spec; half of them wait
/// no longer than is usual.
#[test]
fn s2_6_no_container_starts_before_dns_knows_its_peers_however_late_it_hears_of_them() {
    let count = gangs_asked();
    let pods: usize = (0..count).map(size).sum();
    for (seed, drivers) in [(3, patient(3)), (8, usual(8))] {
        let met = meet(deaf(seed), drivers, gangs(count));
        assert_eq!(met.len(), pods, "seed {seed}");
        for pod in &met {
            let at = pod.job[1..].parse().expect("it is a number");
            assert_eq!(pod.certain, size(at), "none is excused: {pod:?}");
            assert!(pod.is_whole() && !pod.in_vain, "seed {seed}: {pod:?}");
        }
    }
}

/// S2.6: where every name is late, by half a minute or any less, and nothing overtakes what is late, all
/// pods find all peers with the usual deadline. Where names are late by as long as pods wait it is too
/// short, as it counts from when a pod started, told in whole seconds, and its peers start a little after
/// it; whoever has such a DNS says a longer one. Nobody starts without its peers earlier than it was told,
/// and all jobs end.
#[test]
fn s2_6_the_usual_deadline_is_enough_where_every_name_is_late_by_half_a_minute() {
    for ms in [0..=30_000, 15_000..=30_000, 30_000..=30_000] {
        let met = meet(late(8, ms.clone()), usual(8), gangs(40));
        assert_eq!(whole(&met), met.len(), "{ms:?}");
        assert!(met.iter().all(|it| !it.in_vain), "{ms:?}");
    }
    let rows = [(59_000, 100..=100), (60_000, 1..=99), (61_000, 0..=0)];
    for (late_ms, percent) in rows {
        let met = meet(late(3, late_ms..=late_ms), usual(3), gangs(16));
        let share = whole(&met) * 100 / met.len();
        assert!(percent.contains(&share), "{late_ms} ms: {share} %");
        assert!(met.iter().all(|it| it.is_whole() || it.in_vain));
    }
    let met = meet(late(3, 61_000..=61_000), patient(3), gangs(16));
    assert_eq!(whole(&met), met.len());
}

/// S2.6: pods of a large gang find all others; of one with more names than are waited for at most, as
/// many as that.
#[test]
fn s2_6_pods_of_large_gangs_find_all_others_or_as_many_as_are_waited_for() {
    for (pods, least) in [(40, 40), (130, 128)] {
        let met = meet(deaf(3), patient(3), vec![job("large", pods, pods)]);
        assert_eq!(met.len(), pods);
        for pod in met {
            assert_eq!(pod.certain, pods, "none is excused");
            assert!(pod.found >= least && !pod.in_vain, "{pod:?}");
        }
    }
}

/// S2.6: pods of an elastic gang find as many as start together, and do not wait for those that may
/// never start. Those that start when the others have ended find fewer, unless DNS still knows these, and
/// wait for no more than there are: none in vain.
#[test]
fn s2_6_pods_of_an_elastic_gang_find_as_many_as_start_together() {
    let (together, pods, gangs) = (3, 5, 4);
    let elastic = |at: usize| {
        let mut job = job(&format!("j{at}"), together, pods);
        let container = &mut job["spec"]["tasks"][0]["template"]["spec"]["containers"][0];
        // No more than three find room.
        container["resources"]["requests"]["cpu"] = json!("10");
        job
    };
    for late_ms in [0, 10_000, 30_000] {
        let mut settings = late(3, late_ms..=late_ms);
        settings.nodes.nodes = 1;
        let met = meet(settings, usual(3), (0..gangs).map(elastic).collect());
        assert_eq!((met.len(), whole(&met)), (gangs * pods, gangs * pods));
        let (first, later): (Vec<&Meeting>, Vec<_>) =
            met.iter().partition(|it| it.certain == together);
        assert_eq!(first.len(), gangs * together);
        for pod in first {
            assert!(pod.found == together && !pod.in_vain, "{pod:?}");
        }
        assert!(later.iter().all(|it| !it.in_vain), "{late_ms}: {later:?}");
    }
}

/// S2.4: who waits for less long than DNS is late starts without, and ends all the same.
#[test]
fn s2_4_pods_wait_no_longer_than_they_were_told() {
    let mut drivers = patient(3);
    drivers.controller_settings.service_gate_deadline_ms = 4_000;
    let met = meet(deaf(3), drivers, gangs(12));
    let in_vain = met.iter().filter(|it| it.in_vain).count();
    assert!(in_vain > 0 && in_vain < met.len(), "{in_vain}");
    assert!(whole(&met) < met.len());
    assert!(met.iter().all(|it| it.is_whole() || it.in_vain));
}

/// S2.4: a DNS that never answers holds pods back until the gate's deadline, and then the status tells of
/// it. It is asked seldom for as long as jobs run, by one of them for all, and nothing is written for it;
/// once it answers all is as if it always had.
#[test]
fn s2_4_a_dns_that_never_answers_holds_pods_until_the_deadline_and_is_asked_seldom() {
    let jobs = 20;
    let mut settings = sim::Settings::new(4);
    settings.faults = Faults::NONE.with(Fault::AnswerNever, 1);
    settings.faults.until_ms = 60 * MINUTE_MS;
    let mut drivers = drivers(4);
    let rules = &mut drivers.controller_settings;
    rules.service_gate = ServiceGate::DnsAnswer;
    let deadline_ms = rules.service_gate_deadline_ms;
    let mut world = World::new(settings, drivers);
    for at in 0..jobs {
        let mut job = job(&format!("j{at}"), 2, 2);
        let template = &mut job["spec"]["tasks"][0]["template"];
        template["metadata"]["annotations"][nodes::SIM_DURATION] = json!("90m");
        world.create(10, Kind::VcJob, job);
    }
    // The wire tells in whole seconds when a Service was made.
    world.run(deadline_ms - 1_000);
    // One for each of them, and that of the API.
    assert_eq!(world.objects(Kind::Service).len(), 1 + jobs);
    assert_eq!(world.objects(Kind::Pod).len(), 0, "the gate is closed");
    world.run(2_000);
    assert_eq!(world.objects(Kind::Pod).len(), 2 * jobs);
    for job in world.objects(Kind::VcJob) {
        let state = &job["status"]["state"];
        assert_eq!(state["reason"], "ServiceNotReady", "{job}");
        let message = state["message"].as_str().expect("it is told");
        assert!(message.contains("no DNS answer"), "{message}");
    }
    // An answer, or that there is none, stands for five seconds at least.
    let each_may = usize::try_from(deadline_ms / 5_000).expect("it is short");
    let asked = (0..jobs).map(|at| unanswered(&world, &format!("j{at}.")));
    assert!(asked.max() <= Some(each_may) && unanswered(&world, "j") >= jobs);

    let writes = world.driver_writes();
    world.run(59 * MINUTE_MS);
    // A minute at last.
    let asked = (0..jobs).map(|at| unanswered(&world, &format!("j{at}.")));
    assert!(asked.max() <= Some(each_may + 60));
    let asked = unanswered(&world, "j");
    assert!(asked <= jobs * each_may + 60, "{asked} by all");
    let more = world.driver_writes() - writes;
    assert!(more <= jobs as u64, "{more} writes while nothing happens");

    world.run(60 * MINUTE_MS);
    assert_eq!(world.findings(), []);
    assert_eq!(world.settled(), []);
    for job in world.objects(Kind::VcJob) {
        let status = &job["status"];
        assert_eq!(status["state"]["phase"], "Completed", "{job}");
        assert_eq!(status["state"]["reason"], Value::Null, "{job}");
        let known = &status["controlledResources"][api::volcano::SERVICE_KNOWN];
        assert!(known.is_string(), "{job}");
    }
}

/// How many questions for names that begin so had no answer.
fn unanswered(world: &World, name: &str) -> usize {
    let told = format!("FAULT {} names {name}", Fault::AnswerNever.name());
    let lines = world.transcript().lines().iter();
    lines.filter(|line| line.contains(&told)).count()
}

/// A watch ends by itself after half an hour to an hour. The name server then looks again at what it
/// knows already, which is no news: a world in which nothing else happens is at rest (seed 266314829517).
#[test]
fn a_name_server_that_looks_again_has_no_news() {
    let mut settings = sim::Settings::new(5);
    settings.latency_ms_max = 20;
    let mut world = World::new(settings, drivers(5));
    let mut lasting = job("lasting", 2, 2);
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
