//! Every policy of a vcjob, by what it answers to, what it does, whether it waits, in both phases in
//! which policies are heard, with and without `minSuccess`, and wherever the process dies on it.
//!
//! What must come of it is written down here once more, from the rule book (`specs/volcano.md` 2.1
//! and 2.1.1) and `docs/differences.md`, and not taken from the code.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;
use serde_json::{Value, json};

use super::machine::ACTIONS;
use super::world::World;

const MASTER: &str = "train-m-0";
/// The pod to which things happen; its partition is the second of its task.
const VICTIM: &str = "train-w-3";
const PODS: [&str; 5] = [MASTER, "train-w-0", "train-w-1", "train-w-2", VICTIM];
/// What a policy names, and what happens.
const EVENTS: [(&str, &str); 9] = [
    ("*", "PodFailed"),
    ("*", "PodPending"),
    ("exitCode", "PodFailed"),
    ("PodEvicted", "PodEvicted"),
    ("PodFailed", "PodFailed"),
    ("PodPending", "PodPending"),
    ("TaskCompleted", "TaskCompleted"),
    ("TaskFailed", "TaskFailed"),
    ("Unknown", "Unknown"),
];

/// One policy in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    named: &'static str,
    event: &'static str,
    action: &'static str,
    phase: &'static str,
    waits: bool,
    min_success: bool,
}

/// What becomes of the job.
#[derive(Debug, PartialEq)]
enum End {
    /// Nothing at all.
    Nothing,
    /// It is in one of these phases, and all that was alive is gone.
    Stopped([&'static str; 2]),
    /// These pods were made anew, and no others; it is one retry.
    Restarted(Vec<&'static str>),
}

fn expected(case: Case) -> End {
    let workers = || PODS[1..].to_vec();
    if case.event == "PodPending" && !case.waits {
        return End::Nothing;
    }
    // One success is enough, and it came before the policy was due.
    let is_enough = case.min_success && case.event == "TaskCompleted" && case.phase == "Running";
    if is_enough && case.waits {
        return End::Stopped(["Completed"; 2]);
    }
    let is_of_pod = !matches!(case.event, "TaskCompleted" | "Unknown");
    match case.action {
        "AbortJob" => End::Stopped(["Aborting", "Aborted"]),
        "CompleteJob" => End::Stopped(["Completing", "Completed"]),
        "TerminateJob" => End::Stopped(["Terminating", "Terminated"]),
        "RestartJob" => End::Restarted(PODS.to_vec()),
        "RestartTask" if case.event == "TaskCompleted" => End::Restarted(vec![MASTER]),
        "RestartTask" if is_of_pod => End::Restarted(workers()),
        "RestartPod" if is_of_pod => End::Restarted(vec![VICTIM]),
        "RestartPartition" if is_of_pod => End::Restarted(workers()[2..].to_vec()),
        _ if is_enough => End::Stopped(["Completed"; 2]),
        _ => End::Nothing,
    }
}

fn job(case: Case) -> Value {
    let task = |name: &str, replicas: u32| {
        json!({
            "name": name,
            "replicas": replicas,
            "template": { "spec": { "containers": [{ "name": "main" }] } },
        })
    };
    let mut worker = task("w", 4);
    worker["partitionPolicy"] = json!({ "totalPartitions": 2, "partitionSize": 2 });
    // It is never made, so a job that needs it stays pending.
    let mut never = task("never", 1);
    never["dependsOn"] = json!({ "name": ["w"] });
    let mut policy = json!({ "action": case.action });
    match case.named {
        "exitCode" => policy["exitCode"] = json!(3),
        event => policy["event"] = json!(event),
    }
    if case.waits {
        policy["timeout"] = json!("30s");
    }
    let mut spec = json!({
        "queue": "default",
        "minAvailable": if case.phase == "Pending" { 6 } else { 4 },
        "maxRetry": 3,
        "policies": [policy],
        "tasks": [task("m", 1), worker, never],
    });
    if case.min_success {
        spec["minSuccess"] = json!(1);
    }
    json!({ "metadata": { "uid": "job" }, "spec": spec })
}

fn patch_pod(world: &mut World, name: &str, status: Value) {
    let patch = json!({ "spec": { "nodeName": "n" }, "status": status });
    world.change(Kind::Pod, "ml", name, &patch);
}

/// The job with all of its pods running, but the one of which it is to be said that it waits.
fn started(case: Case) -> World {
    let mut world = World::new();
    world.is_quiet = true;
    world.appear(Kind::Queue, "", "default", json!({}));
    world.appear(Kind::VcJob, "ml", "train", job(case));
    world.run(&["vcjob"]);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", "train-job", &let_in);
    world.run(&["vcjob"]);
    for name in PODS {
        if name != VICTIM || case.event != "PodPending" {
            patch_pod(&mut world, name, json!({ "phase": "Running" }));
        }
    }
    world.run(&["vcjob"]);
    world
}

fn happen(world: &mut World, event: &str) {
    match event {
        "PodFailed" => {
            let ended = json!({ "terminated": { "exitCode": 3 } });
            let containers = json!([{ "name": "main", "state": ended }]);
            let status = json!({ "phase": "Failed", "containerStatuses": containers });
            patch_pod(world, VICTIM, status);
        }
        "PodEvicted" => world.vanish(Kind::Pod, "ml", VICTIM),
        "TaskCompleted" => patch_pod(world, MASTER, json!({ "phase": "Succeeded" })),
        "TaskFailed" => {
            let containers = json!([{ "name": "main", "restartCount": 3 }]);
            patch_pod(world, VICTIM, json!({ "containerStatuses": containers }));
        }
        "Unknown" => {
            let lost = json!({ "status": { "phase": "Unknown" } });
            world.change(Kind::PodGroup, "ml", "train-job", &lost);
        }
        _ => {}
    }
}

/// Pods on a node end some time after they were deleted.
fn end_pods(world: &mut World) {
    for key in world.keys(Kind::Pod) {
        let pod = world.get(Kind::Pod, "ml", &key.name);
        if pod.is_some_and(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            world.vanish(Kind::Pod, "ml", &key.name);
        }
    }
    world.run(&["vcjob"]);
    let group = json!({ "status": { "phase": "Inqueue" } });
    if world.get(Kind::PodGroup, "ml", "train-job").is_some() {
        world.change(Kind::PodGroup, "ml", "train-job", &group);
        world.run(&["vcjob"]);
    }
}

/// Phase, retries, and the uid of each pod.
fn seen(world: &World) -> (String, i64, BTreeMap<String, String>) {
    let job = world
        .get(Kind::VcJob, "ml", "train")
        .expect("the job stays");
    let uids = world.keys(Kind::Pod).into_iter().filter_map(|key| {
        let uid = world.get(Kind::Pod, "ml", &key.name)?["metadata"]["uid"].as_str()?;
        Some((key.name.to_string(), uid.to_owned()))
    });
    let status = &job["status"];
    let phase = status["state"]["phase"].as_str().unwrap_or("");
    (
        phase.to_owned(),
        status["retryCount"].as_i64().unwrap_or(0),
        uids.collect(),
    )
}

/// Lets the process die after so many writes of a step, or not at all; says how many there were.
fn settle(world: &mut World, death: Option<usize>) -> usize {
    let before = world.writes.len();
    if death.is_some() {
        world.writes_left = death;
        world.run(&["vcjob"]);
        world.restart();
    }
    world.run(&["vcjob"]);
    world.writes.len() - before
}

fn judge(case: Case, world: &World, before: &BTreeMap<String, String>, said: &str) {
    let (phase, retries, after) = seen(world);
    let renewed: Vec<&str> = PODS
        .into_iter()
        .filter(|name| after.get(*name) != before.get(*name))
        .collect();
    let end = expected(case);
    let said = format!("{end:?} of {case:?}, {said}: {phase} {retries} {renewed:?}");
    match end {
        // A pod that was taken away is made good, whatever the policy says.
        End::Nothing => {
            let gone: &[&str] = if case.event == "PodEvicted" {
                &[VICTIM]
            } else {
                &[]
            };
            assert_eq!(
                (&*phase, retries, &*renewed),
                (case.phase, 0, gone),
                "{said}"
            );
        }
        End::Stopped(phases) => {
            assert!(phases.contains(&&*phase) && retries == 0, "{said}");
            let is_alive = |name: &&&str| {
                let pod = world.get(Kind::Pod, "ml", name);
                pod.is_some_and(|pod| {
                    !matches!(
                        pod["status"]["phase"].as_str(),
                        Some("Succeeded" | "Failed")
                    )
                })
            };
            assert_eq!(PODS.iter().filter(is_alive).count(), 0, "{said}");
        }
        End::Restarted(pods) => {
            let mut wanted: BTreeSet<&str> = pods.into_iter().collect();
            wanted.extend((case.event == "PodEvicted").then_some(VICTIM));
            assert_eq!(renewed, wanted.into_iter().collect::<Vec<_>>(), "{said}");
            assert_eq!(retries, 1, "{said}");
            let is_up = matches!(&*phase, "Restarting" | "Pending" | "Running");
            assert!(is_up && after.len() == PODS.len(), "{said}");
        }
    }
}

/// Plays one case to its end; without `minSuccess` once for each write after which the process may
/// die, too.
fn play(case: Case) {
    let mut ready = started(case);
    let (phase, _, before) = seen(&ready);
    assert_eq!(phase, case.phase, "{case:?}");
    if case.waits {
        happen(&mut ready, case.event);
        ready.run(&["vcjob"]);
        // The pod that is made good waits like the one that was lost.
        ready.pass("+29s");
        ready.run(&["vcjob"]);
        let (early, retries, _) = seen(&ready);
        let is_over = expected(case) == End::Stopped(["Completed"; 2]);
        assert!(
            is_over || early == case.phase,
            "too early: {early} {case:?}"
        );
        assert_eq!(retries, 0, "too early: {case:?}");
    }
    let mut writes = 0;
    for death in std::iter::once(None).chain((0..).map(Some)) {
        if death.is_some_and(|after| after >= writes) {
            break;
        }
        let mut world = ready.retold();
        world.run(&["vcjob"]);
        if case.waits {
            world.pass("+1s");
        } else {
            happen(&mut world, case.event);
        }
        let written = settle(&mut world, death);
        // Where a success is enough, the same writes follow.
        writes = if case.min_success {
            0
        } else {
            written.max(writes)
        };
        end_pods(&mut world);
        judge(case, &world, &before, &format!("dead after {death:?}"));
    }
}

#[test]
fn every_policy_does_what_the_rule_book_says_and_no_more() {
    let mut played = BTreeSet::new();
    for (named, event) in EVENTS {
        for action in ACTIONS {
            for phase in ["Pending", "Running"] {
                for (waits, min_success) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let case = Case {
                        named,
                        event,
                        action,
                        phase,
                        waits,
                        min_success,
                    };
                    play(case);
                    played.insert(case);
                }
            }
        }
    }
    let reached = |of: fn(&Case) -> &'static str| played.iter().map(of).collect::<BTreeSet<_>>();
    assert_eq!(reached(|case| case.action).len(), ACTIONS.len());
    assert_eq!(reached(|case| case.event).len(), 6);
    assert_eq!(played.len(), EVENTS.len() * ACTIONS.len() * 2 * 4);
    let moved = played
        .iter()
        .filter(|case| expected(**case) != End::Nothing);
    assert!(moved.count() > 350, "most policies do something");
}
