//! Every path of a small vcjob: whatever its pods do, whatever is commanded in whichever phase, and
//! wherever the process dies. Each step is taken by a process that has just listed everything.
//!
//! What must come of a phase and an action is written down here once more, from the rule book
//! (`specs/volcano.md` 2.1.1) and `docs/differences.md`, and not taken from the code.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;
use serde_json::{Value, json};

use super::world::World;

const PODS: [&str; 2] = ["train-master-0", "train-worker-0"];
const MAX_RETRY: i64 = 2;
/// All that a policy or a command can ask for.
pub(super) const ACTIONS: [&str; 10] = [
    "AbortJob",
    "CompleteJob",
    "EnqueueJob",
    "RestartJob",
    "RestartPartition",
    "RestartPod",
    "RestartTask",
    "ResumeJob",
    "SyncJob",
    "TerminateJob",
];
const FINAL: [&str; 3] = ["Completed", "Failed", "Terminated"];
/// So many commands are given on a path at most, in any phases.
const COMMANDS: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    Command(&'static str),
    LetIn,
    Phase(&'static str, &'static str),
    /// A pod is taken away.
    Evict(&'static str),
    /// A pod that is being deleted has gone.
    Gone(&'static str),
}

/// What may still happen.
#[derive(Clone, Copy, Debug)]
struct Budget {
    commands: u32,
}

struct State {
    world: World,
    budget: Budget,
    path: Vec<String>,
}

fn job() -> Value {
    let task = |name: &str| {
        json!({
            "name": name,
            "replicas": 1,
            "template": { "spec": { "containers": [{ "name": "main" }] } },
        })
    };
    json!({
        "metadata": { "uid": "job" },
        "spec": {
            "queue": "default",
            "minAvailable": 2,
            "maxRetry": MAX_RETRY,
            "schedulerName": "volcano",
            "policies": [
                { "event": "PodFailed", "action": "RestartJob" },
                { "event": "PodEvicted", "action": "RestartTask" },
            ],
            "tasks": [task("master"), task("worker")],
        },
    })
}

/// What is seen of the job.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    phase: String,
    retries: i64,
    version: i64,
    alive: usize,
    /// The phases of pods that are not being deleted, by their uids.
    pods: BTreeMap<String, String>,
    text: String,
}

/// Whom a command kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    Nobody,
    /// Pods that have not ended.
    Alive,
    /// Pods that have not ended well.
    Unsuccessful,
    Everybody,
}

impl Kill {
    fn takes(self, phase: &str) -> bool {
        match self {
            Kill::Nobody => false,
            Kill::Alive => !matches!(phase, "Succeeded" | "Failed"),
            Kill::Unsuccessful => phase != "Succeeded",
            Kill::Everybody => true,
        }
    }
}

/// What a command does in some phases: the phases that may be seen once all that it causes has been done,
/// whom it kills, how many retries it uses up.
struct Rule {
    phases: &'static [&'static str],
    action: &'static str,
    may: &'static [&'static str],
    kill: Kill,
    retries: i64,
}

const ACTIVE: &[&str] = &["Pending", "Running", "Restarting"];
const STOPPED: &[&str] = &["Aborting", "Aborted"];
const UP_AGAIN: &[&str] = &["Restarting", "Pending", "Failed"];

/// The table. What is not in it changes nothing: a restart of one task, pod or partition is aimed at
/// nobody by a command; nothing but a resumption is heard by a job that is being ended or has ended;
/// and a job that restarts need not be resumed.
const RULES: &[Rule] = &[
    rule(ACTIVE, "AbortJob", STOPPED, Kill::Alive, 0),
    rule(
        ACTIVE,
        "CompleteJob",
        &["Completing", "Completed"],
        Kill::Alive,
        0,
    ),
    rule(
        ACTIVE,
        "TerminateJob",
        &["Terminating", "Terminated"],
        Kill::Alive,
        0,
    ),
    rule(
        &["Pending", "Running"],
        "RestartJob",
        UP_AGAIN,
        Kill::Everybody,
        1,
    ),
    rule(&["Restarting"], "RestartJob", UP_AGAIN, Kill::Everybody, 0),
    rule(STOPPED, "ResumeJob", UP_AGAIN, Kill::Unsuccessful, 1),
];

const fn rule(
    phases: &'static [&'static str],
    action: &'static str,
    may: &'static [&'static str],
    kill: Kill,
    retries: i64,
) -> Rule {
    Rule {
        phases,
        action,
        may,
        kill,
        retries,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn seen(world: &World) -> Seen {
    let job = world
        .get(Kind::VcJob, "ml", "train")
        .expect("the job stays");
    let status = &job["status"];
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    let mut pods = Vec::new();
    let mut alive = 0;
    let mut standing = BTreeMap::new();
    for name in PODS {
        let Some(pod) = world.get(Kind::Pod, "ml", name) else {
            continue;
        };
        let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
        let phase = match text(&pod["status"]["phase"]) {
            "" => "Pending",
            phase => phase,
        };
        alive += usize::from(!matches!(phase, "Succeeded" | "Failed"));
        if !is_leaving {
            standing.insert(text(&pod["metadata"]["uid"]).to_owned(), phase.to_owned());
        }
        *counts
            .entry(if is_leaving { "terminating" } else { phase })
            .or_default() += 1;
        let notes = &pod["metadata"]["annotations"];
        let born = [
            &notes["volcano.sh/job-version"],
            &notes["volcano.sh/job-retry-count"],
        ];
        pods.push(format!("{name} {phase} {is_leaving} {born:?}"));
    }
    for (field, phase) in [
        ("pending", "Pending"),
        ("running", "Running"),
        ("succeeded", "Succeeded"),
        ("failed", "Failed"),
        ("terminating", "terminating"),
    ] {
        let told = status[field].as_i64().unwrap_or(0);
        let real = counts.get(phase).copied().unwrap_or(0);
        assert_eq!(told, real, "{field} in {status} of {pods:?}");
    }
    let phase = text(&status["state"]["phase"]).to_owned();
    let group = world.get(Kind::PodGroup, "ml", "train-job");
    let group = group.map(|group| group["status"]["phase"].to_string());
    let kill = status["controlledResources"]["katmai.dev/last-kill"].to_string();
    let (retries, version) = (
        status["retryCount"].as_i64().unwrap_or(0),
        status["version"].as_i64().unwrap_or(0),
    );
    Seen {
        text: format!("{phase} {retries} {version} {pods:?} {group:?} {kill}"),
        phase,
        retries,
        version,
        alive,
        pods: standing,
    }
}

fn steps(state: &State) -> Vec<Step> {
    let mut steps = Vec::new();
    if state.budget.commands > 0 {
        steps.extend(ACTIONS.map(Step::Command));
    }
    let group = state.world.get(Kind::PodGroup, "ml", "train-job");
    if group.is_some_and(|group| matches!(text(&group["status"]["phase"]), "" | "Pending")) {
        steps.push(Step::LetIn);
    }
    for name in PODS {
        let Some(pod) = state.world.get(Kind::Pod, "ml", name) else {
            continue;
        };
        let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
        match text(&pod["status"]["phase"]) {
            _ if is_leaving => steps.push(Step::Gone(name)),
            "Running" => {
                steps.extend(["Succeeded", "Failed"].map(|phase| Step::Phase(name, phase)));
                steps.push(Step::Evict(name));
            }
            "Succeeded" | "Failed" => {}
            _ => steps.push(Step::Phase(name, "Running")),
        }
    }
    steps
}

fn perform(world: &mut World, step: Step, number: usize) {
    match step {
        Step::Command(action) => {
            let target = json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "job" });
            let command = json!({ "action": action, "target": target });
            world.appear(Kind::Command, "ml", &format!("c{number}"), command);
        }
        Step::LetIn => {
            let phase = json!({ "status": { "phase": "Inqueue" } });
            world.change(Kind::PodGroup, "ml", "train-job", &phase);
        }
        Step::Phase(name, phase) => {
            let patch = json!({ "spec": { "nodeName": "n" }, "status": { "phase": phase } });
            world.change(Kind::Pod, "ml", name, &patch);
        }
        Step::Evict(name) | Step::Gone(name) => world.vanish(Kind::Pod, "ml", name),
    }
}

/// What the table says of a command.
fn judge_command(before: &Seen, action: &str, after: &Seen, said: &str) {
    let is_meant = |rule: &&Rule| rule.action == action && rule.phases.contains(&&*before.phase);
    let (may, kill, retries) = match RULES.iter().find(is_meant) {
        Some(rule) => (rule.may.to_vec(), rule.kill, rule.retries),
        None => (vec![&*before.phase], Kill::Nobody, 0),
    };
    assert!(may.contains(&&*after.phase), "{may:?} expected: {said}");
    assert_eq!(after.retries - before.retries, retries, "{said}");
    // Where no attempt follows, what has ended stays.
    let kill = match after.phase == "Failed" && kill != Kill::Nobody {
        true => Kill::Alive,
        false => kill,
    };
    for (uid, phase) in &before.pods {
        let is_killed = !after.pods.contains_key(uid);
        assert_eq!(is_killed, kill.takes(phase), "{kill:?}: {uid}, {said}");
    }
}

/// What must hold of every step, whatever it was.
fn judge(before: &Seen, step: Step, after: &Seen, path: &[String]) {
    let said = format!("{before:?}\n{step:?}\n{after:?}\nafter {path:?}");
    if let Step::Command(action) = step {
        judge_command(before, action, after, &said);
    }
    if FINAL.contains(&&*before.phase) {
        assert_eq!(before.phase, after.phase, "an end is an end: {said}");
        assert_eq!(before.retries, after.retries, "{said}");
    }
    let grown = after.retries - before.retries;
    assert!(
        (0..=1).contains(&grown),
        "one thing is one retry at most: {said}"
    );
    assert!(
        (0..=1).contains(&(after.version - before.version)),
        "{said}"
    );
    assert!(after.retries <= MAX_RETRY, "{said}");
    let is_spent = after.retries == MAX_RETRY;
    if after.phase == "Failed" && before.phase != "Failed" && !is_spent {
        assert_eq!(after.alive, 0, "it fails only when all is over: {said}");
    }
    if matches!(&*after.phase, "Aborted" | "Completed" | "Terminated")
        && before.phase != after.phase
    {
        let was_running = before.phase == "Running";
        assert!(
            after.alive == 0 || was_running,
            "it ends when all is over: {said}"
        );
    }
}

#[test]
fn every_path_of_a_small_job_is_one_of_the_rule_book() {
    let mut world = World::of("vcjob");
    world.is_quiet = true;
    world.appear(Kind::Queue, "", "default", json!({}));
    world.appear(Kind::VcJob, "ml", "train", job());
    world.run(&["vcjob"]);
    let budget = Budget { commands: COMMANDS };
    let mut open = std::collections::VecDeque::from([State {
        world,
        budget,
        path: Vec::new(),
    }]);
    let mut known = BTreeSet::new();
    let mut asked: BTreeSet<(String, &str)> = BTreeSet::new();
    let (mut states, mut taken) = (0, 0);
    while let Some(state) = open.pop_front() {
        states += 1;
        let before = seen(&state.world);
        for step in steps(&state) {
            // It dies after each of the step's writes, or not at all.
            let mut writes = 0;
            for death in std::iter::once(None).chain((1..).map(Some)) {
                if death.is_some_and(|after| after >= writes) {
                    break;
                }
                let mut world = state.world.retold();
                world.run(&["vcjob"]);
                perform(&mut world, step, state.path.len());
                let written = world.writes.len();
                if death.is_some() {
                    world.writes_left = death;
                    world.run(&["vcjob"]);
                    world.restart();
                }
                world.run(&["vcjob"]);
                // What only counts rests for a moment.
                world.pass("+1s");
                world.run(&["vcjob"]);
                if death.is_none() {
                    writes = world.writes.len() - written;
                }
                taken += 1;
                let after = seen(&world);
                judge(&before, step, &after, &state.path);
                assert_eq!(
                    world.count(Kind::Command),
                    0,
                    "{step:?} after {:?}",
                    state.path
                );
                if let Step::Command(action) = step {
                    asked.insert((before.phase.clone(), action));
                }
                let spent = u32::from(matches!(step, Step::Command(_)));
                let budget = Budget {
                    commands: state.budget.commands - spent,
                };
                if known.insert(format!("{} {budget:?}", after.text)) {
                    let mut path = state.path.clone();
                    path.push(format!("{step:?} {death:?}"));
                    open.push_back(State {
                        world,
                        budget,
                        path,
                    });
                }
            }
        }
    }
    let phases: BTreeSet<&str> = asked.iter().map(|(phase, _)| &**phase).collect();
    eprintln!("{states} states, {taken} steps, {asked:?}");
    assert_eq!(
        phases.len(),
        10,
        "every phase is met by a command: {phases:?}"
    );
    assert_eq!(asked.len(), 100, "every action in every phase");
    assert!(states > 600, "{states} states");
}
