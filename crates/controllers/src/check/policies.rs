//! Every policy of a vcjob, by what it answers to, what it does, whether it waits, in every phase that a
//! job can be in when it happens, with and without `minSuccess`, and wherever the process dies on it.
//!
//! What must come of it stands here as tables, written from the rule book (`specs/volcano.md` 2.1 and
//! 2.1.1) and `docs/differences.md`, and not taken from the code.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;
use serde_json::{Value, json};

use super::machine::ACTIONS;
use super::world::World;

const MASTER: &str = "train-m-0";
/// The pod to which things happen; its partition is the second of its task.
const VICTIM: &str = "train-w-3";
const PODS: [&str; 5] = [MASTER, "train-w-0", "train-w-1", "train-w-2", VICTIM];
const GROUP: &str = "train-job";
/// The pod of another task, to which nothing happens but that it may be restarted before.
const OTHER: &str = "train-x-0";
/// What a policy names, and what happens.
const EVENTS: [(&str, &str); 13] = [
    ("*", "PodEvicted"),
    ("*", "PodFailed"),
    ("*", "PodPending"),
    ("*", "TaskCompleted"),
    ("*", "TaskFailed"),
    ("*", "Unknown"),
    ("exitCode", "PodFailed"),
    ("PodEvicted", "PodEvicted"),
    ("PodFailed", "PodFailed"),
    ("PodPending", "PodPending"),
    ("TaskCompleted", "TaskCompleted"),
    ("TaskFailed", "TaskFailed"),
    ("Unknown", "Unknown"),
];

/// What becomes of a job whose policy wants an action, by where the job is when the event comes. The rule
/// book's table (`specs/volcano.md` 2.1.1), and what it says before it of events of former versions:
/// `stop` ends the job; `all`, `task`, `pod` and `part` are made anew, with so many retries more; `-` is
/// nothing. `mid-task` is a restart of another task; from `mid-job` on, pods are of a former version.
const TABLE: &str = "
    action            Pending  Running  mid-task  mid-job  Aborting  Aborted  Completing  Completed  Terminating  Terminated  Failed
    AbortJob          stop     stop     stop      stop     -         -        -           -          -            -           -
    CompleteJob       stop     stop     stop      stop     -         -        -           -          -            -           -
    EnqueueJob        -        -        -         -        -         -        -           -          -            -           -
    RestartJob        all+1    all+1    all+0     all+0    -         -        -           -          -            -           -
    RestartPartition  part+1   part+1   part+0    part+0   -         -        -           -          -            -           -
    RestartPod        pod+1    pod+1    pod+0     pod+0    -         -        -           -          -            -           -
    RestartTask       task+1   task+1   task+0    task+0   -         -        -           -          -            -           -
    ResumeJob         -        -        -         -        -         -        -           -          -            -           -
    SyncJob           -        -        -         -        -         -        -           -          -            -           -
    TerminateJob      stop     stop     stop      stop     -         -        -           -          -            -           -
";

/// Of whom an event tells, which is whom a restart of a task, pod or partition can take, and whether it is
/// heard where all pods are of a former version. A PodGroup is made anew with each version.
const SUBJECTS: &str = "
    event          task  pod  part  former
    PodEvicted     w     w-3  w-3   no
    PodFailed      w     w-3  w-3   no
    PodPending     w     w-3  w-3   no
    TaskCompleted  m     -    -     no
    TaskFailed     w     w-3  w-3   no
    Unknown        -     -    -     yes
";

/// A cell of one of the tables.
fn cell(table: &'static str, row: &str, column: &str) -> &'static str {
    let mut lines = table.lines().map(|line| line.split_whitespace());
    let mut head = lines.by_ref().find(|line| line.clone().next().is_some());
    let at = head
        .as_mut()
        .and_then(|head| head.position(|it| it == column));
    let at = at.unwrap_or_else(|| panic!("no column {column}"));
    let line = lines.find(|line| line.clone().next() == Some(row));
    let mut line = line.unwrap_or_else(|| panic!("no row {row}"));
    line.nth(at).expect("a full row")
}

/// Where a job is: the word of the table, its phase, what it has used of its retries, and its phase once
/// pods that are being deleted have gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    word: &'static str,
    phase: &'static str,
    retries: i64,
    then: &'static str,
}

const fn place(word: &'static str, phase: &'static str, retries: i64, then: &'static str) -> Place {
    Place {
        word,
        phase,
        retries,
        then,
    }
}

const PLACES: [Place; 11] = [
    place("Pending", "Pending", 0, "Pending"),
    place("Running", "Running", 0, "Running"),
    place("mid-task", "Restarting", 1, "Pending"),
    place("mid-job", "Restarting", 1, "Pending"),
    place("Aborting", "Aborting", 0, "Aborted"),
    place("Aborted", "Aborted", 0, "Aborted"),
    place("Completing", "Completing", 0, "Completed"),
    place("Completed", "Completed", 0, "Completed"),
    place("Terminating", "Terminating", 0, "Terminated"),
    place("Terminated", "Terminated", 0, "Terminated"),
    place("Failed", "Failed", 1, "Failed"),
];

impl Place {
    fn is(self, words: &[&str]) -> bool {
        words.contains(&self.word)
    }

    /// What sends the job there.
    fn command(self) -> Option<&'static str> {
        match self.word {
            "Aborting" | "Aborted" => Some("AbortJob"),
            "Completing" | "Completed" => Some("CompleteJob"),
            "Terminating" | "Terminated" => Some("TerminateJob"),
            "mid-job" | "Failed" => Some("RestartJob"),
            _ => None,
        }
    }

    fn is_active(self) -> bool {
        self.is(&["Pending", "Running", "mid-task", "mid-job"])
    }
}

/// One policy in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    named: &'static str,
    event: &'static str,
    action: &'static str,
    place: Place,
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
    /// These pods were made anew, and no others; it is so many retries more.
    Restarted(Vec<&'static str>, i64),
}

fn expected(case: Case) -> End {
    // One success is enough, and it came before the policy was due.
    let is_running = case.place.is(&["Running"]);
    let is_enough = case.min_success && case.event == "TaskCompleted" && is_running;
    let otherwise = match is_enough {
        true => End::Stopped(["Completed"; 2]),
        false => End::Nothing,
    };
    let subject = |column| cell(SUBJECTS, case.event, column);
    let is_heard = !case.place.is(&["mid-job"]) || subject("former") == "yes";
    let is_too_late = is_enough && case.waits;
    // A pending pod is nothing unusual.
    let is_usual = case.event == "PodPending" && !case.waits;
    if !is_heard || is_too_late || is_usual {
        return otherwise;
    }
    let word = cell(TABLE, case.action, case.place.word);
    let (kill, retries) = word.split_once('+').unwrap_or((word, "0"));
    let aimed: Vec<&'static str> = match (kill, subject("task"), subject("pod")) {
        ("stop", ..) => {
            let (on_the_way, there) = match case.action {
                "AbortJob" => ("Aborting", "Aborted"),
                "CompleteJob" => ("Completing", "Completed"),
                _ => ("Terminating", "Terminated"),
            };
            return End::Stopped([on_the_way, there]);
        }
        ("all", ..) => PODS.to_vec(),
        ("task", "m", _) => vec![MASTER],
        ("task", "w", _) => PODS[1..].to_vec(),
        ("pod", _, "w-3") => vec![VICTIM],
        ("part", ..) if subject("part") == "w-3" => PODS[3..].to_vec(),
        _ => return otherwise,
    };
    End::Restarted(aimed, retries.parse().expect("a number"))
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
    // Whose restart is a restart of another task.
    let mut other = task("x", 1);
    other["policies"] = json!([{ "event": "PodFailed", "action": "RestartTask" }]);
    let mut spec = json!({
        "queue": "default",
        "minAvailable": if case.place.is(&["Running"]) { 4 } else { 7 },
        "maxRetry": if case.place.is(&["Failed"]) { 1 } else { 3 },
        "policies": [policy],
        "tasks": [task("m", 1), worker, never, other],
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

/// A job where it is to be, and what it had before it came there.
struct Start {
    world: World,
    former: [(Kind, &'static str, Value); 3],
}

impl Start {
    /// What has gone turns up once more, as it was: somebody brings it back, or it was thought gone too early.
    fn turn_up(&self, world: &mut World, place: Place) {
        for (kind, name, was) in &self.former {
            if !place.is_active() && world.get(*kind, "ml", name).is_none() {
                world.appear(*kind, "ml", name, was.clone());
            }
        }
    }
}

/// The job where it is to be, with all of its pods running, but the one of which it is to be said that it
/// waits. Where pods were killed they are on their way out, or have gone.
fn started(case: Case) -> Start {
    let mut world = World::of("vcjob");
    world.is_quiet = true;
    world.appear(Kind::Queue, "", "default", json!({}));
    world.appear(Kind::VcJob, "ml", "train", job(case));
    world.run(&["vcjob"]);
    let let_in = json!({ "status": { "phase": "Inqueue" } });
    world.change(Kind::PodGroup, "ml", GROUP, &let_in);
    world.run(&["vcjob"]);
    for name in PODS.into_iter().chain([OTHER]) {
        let is_waiting = name == VICTIM && case.event == "PodPending";
        let phase = if is_waiting { "Pending" } else { "Running" };
        patch_pod(&mut world, name, json!({ "phase": phase }));
    }
    world.run(&["vcjob"]);
    let of = |kind, name| world.get(kind, "ml", name).cloned().unwrap_or_default();
    let former = [
        (Kind::Pod, MASTER, of(Kind::Pod, MASTER)),
        (Kind::Pod, VICTIM, of(Kind::Pod, VICTIM)),
        (Kind::PodGroup, GROUP, of(Kind::PodGroup, GROUP)),
    ];
    if case.place.is(&["mid-task"]) {
        // Its pod takes its time to go.
        let held = json!({ "metadata": { "finalizers": ["katmai.dev/test"] } });
        world.change(Kind::Pod, "ml", OTHER, &held);
        patch_pod(&mut world, OTHER, json!({ "phase": "Failed" }));
    }
    if let Some(action) = case.place.command() {
        let target = json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "job" });
        let command = json!({ "action": action, "target": target });
        world.appear(Kind::Command, "ml", "there", command);
    }
    world.run(&["vcjob"]);
    if case.place.is(&["Aborted", "Completed", "Terminated"]) {
        end_pods(&mut world);
    }
    Start { world, former }
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
            world.change(Kind::PodGroup, "ml", GROUP, &lost);
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
    if world.get(Kind::PodGroup, "ml", GROUP).is_some() {
        world.change(Kind::PodGroup, "ml", GROUP, &group);
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

/// Pods of the job that have not ended.
fn alive(world: &World) -> usize {
    let names = PODS.into_iter().chain([OTHER]);
    let pods = names.filter_map(|name| world.get(Kind::Pod, "ml", name));
    let is_alive = |pod: &&Value| {
        let phase = pod["status"]["phase"].as_str();
        !matches!(phase, Some("Succeeded" | "Failed"))
    };
    pods.filter(is_alive).count()
}

fn judge(case: Case, world: &World, before: &BTreeMap<String, String>, said: &str) {
    let (phase, retries, after) = seen(world);
    let renewed: Vec<&str> = PODS
        .into_iter()
        .filter(|name| after.get(*name) != before.get(*name))
        .collect();
    let end = expected(case);
    let said = format!("{end:?} of {case:?}, {said}: {phase} {retries} {renewed:?}");
    let used = case.place.retries;
    match end {
        // All pods but those that have ended are killed, and none is made.
        End::Nothing if !case.place.is_active() => {
            assert_eq!((&*phase, retries), (case.place.then, used), "{said}");
            assert_eq!(alive(world), 0, "{said}");
        }
        // A pod that was taken away is made good, whatever the policy says.
        End::Nothing => {
            let gone: &[&str] = match (case.place.word, case.event) {
                ("mid-job", _) => &PODS,
                (_, "PodEvicted") => &[VICTIM],
                _ => &[],
            };
            let wanted = (case.place.then, used, gone);
            assert_eq!((&*phase, retries, &*renewed), wanted, "{said}");
        }
        End::Stopped(phases) => {
            assert!(phases.contains(&&*phase) && retries == used, "{said}");
            assert_eq!(alive(world), 0, "{said}");
        }
        End::Restarted(pods, more) => {
            let mut wanted: BTreeSet<&str> = pods.into_iter().collect();
            wanted.extend((case.event == "PodEvicted").then_some(VICTIM));
            assert_eq!(renewed, wanted.into_iter().collect::<Vec<_>>(), "{said}");
            assert_eq!(retries, used + more, "{said}");
            let is_up = matches!(&*phase, "Restarting" | "Pending" | "Running");
            assert!(is_up && after.len() == PODS.len() + 1, "{said}");
        }
    }
}

/// Plays one case to its end; of a job that goes on, and without `minSuccess`, once for each write after
/// which the process may die, too.
fn play(case: Case) {
    let mut start = started(case);
    let (phase, retries, before) = seen(&start.world);
    let place = case.place;
    assert_eq!((&*phase, retries), (place.phase, place.retries), "{case:?}");
    let befall = |start: &Start, world: &mut World| {
        start.turn_up(world, place);
        happen(world, case.event);
    };
    if case.waits {
        let mut world = std::mem::replace(&mut start.world, World::of("vcjob"));
        befall(&start, &mut world);
        world.run(&["vcjob"]);
        // The pod that is made good waits like the one that was lost.
        world.pass("+29s");
        world.run(&["vcjob"]);
        let (early, retries, _) = seen(&world);
        let is_over = expected(case) == End::Stopped(["Completed"; 2]);
        let is_there = early == place.phase && retries == place.retries;
        assert!(is_over || is_there, "too early: {early} {case:?}");
        start.world = world;
    }
    let mut writes = 0;
    for death in std::iter::once(None).chain((0..).map(Some)) {
        if death.is_some_and(|after| after >= writes) {
            break;
        }
        let mut world = start.world.retold();
        world.run(&["vcjob"]);
        if case.waits {
            world.pass("+1s");
        } else {
            befall(&start, &mut world);
        }
        let written = settle(&mut world, death);
        // Where a success is enough the same writes follow; where nothing is heard, hardly any.
        writes = match case.min_success || !place.is_active() {
            true => 0,
            false => written.max(writes),
        };
        end_pods(&mut world);
        judge(case, &world, &before, &format!("dead after {death:?}"));
    }
}

#[test]
fn every_policy_does_in_every_phase_what_the_rule_book_says_and_no_more() {
    let mut played = BTreeSet::new();
    for (named, event) in EVENTS {
        for (action, place) in ACTIONS.into_iter().flat_map(|it| PLACES.map(|at| (it, at))) {
            // What a job's successes are worth is looked at while it runs, or may run again.
            let also = place.is(&["Pending", "Running"]).then_some(true);
            for min_success in [Some(false), also].into_iter().flatten() {
                for waits in [false, true] {
                    let case = Case {
                        named,
                        event,
                        action,
                        place,
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
    assert_eq!(reached(|case| case.place.phase).len(), 10);
    assert_eq!(played.len(), EVENTS.len() * ACTIONS.len() * (2 * 4 + 9 * 2));
    let moved = played
        .iter()
        .filter(|case| expected(**case) != End::Nothing);
    assert!(moved.count() > 450, "most policies do something");
}
