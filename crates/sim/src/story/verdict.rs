//! What must have become of a part of a story once the world is quiet.

mod cron;
mod flow;

use std::collections::BTreeMap;

use api::kind::Kind;
use serde_json::Value;

use super::part::{Fate, Part, RETRIES};
use super::series::Series;
use crate::judge::Finding;
use crate::world::World;

/// The kinds of what parts are made of and leave.
const KINDS: &[Kind] = &[
    Kind::BatchJob,
    Kind::ConfigMap,
    Kind::JobFlow,
    Kind::JobTemplate,
    Kind::NetworkPolicy,
    Kind::PersistentVolumeClaim,
    Kind::Pod,
    Kind::PodGroup,
    Kind::Queue,
    Kind::Service,
    Kind::VcCronJob,
    Kind::VcJob,
];

/// A world at rest, and what is stored in it.
pub(super) struct AtRest<'a> {
    world: &'a World,
    stored: BTreeMap<Kind, Vec<Value>>,
}

impl AtRest<'_> {
    pub(super) fn of(world: &mut World) -> AtRest<'_> {
        let stored = KINDS.iter().map(|kind| (*kind, world.objects(*kind)));
        let stored = stored.collect();
        AtRest { world, stored }
    }

    fn objects(&self, kind: Kind) -> &[Value] {
        self.stored.get(&kind).map_or(&[], Vec::as_slice)
    }

    fn named(&self, kind: Kind, name: &str) -> Option<&Value> {
        let mut objects = self.objects(kind).iter();
        objects.find(|object| object["metadata"]["name"] == name)
    }
}

/// What is wrong with a part.
pub(super) fn of(part: &Part, rest: &AtRest<'_>) -> Vec<Finding> {
    match &part.fate {
        Fate::Bare => bare(part, rest),
        Fate::Batch | Fate::BatchSuspended { .. } => batch(part, rest),
        Fate::Deleted { .. } | Fate::Expires => gone(part, rest),
        _ => job(part, rest),
    }
}

/// What is wrong with a series, where nothing can go wrong any more since so many milliseconds after the
/// beginning.
pub(super) fn of_series(series: &Series, sound_ms: i64, rest: &AtRest<'_>) -> Vec<Finding> {
    match series {
        Series::Flow(flow) => flow::of(flow, rest),
        Series::Cron(cron) => cron::of(cron, sound_ms, rest),
    }
}

fn job(part: &Part, rest: &AtRest<'_>) -> Vec<Finding> {
    let name = part.name();
    let Some(job) = rest.named(Kind::VcJob, &name) else {
        return vec![finding("I6", format!("job {name} is not there"))];
    };
    let mut findings = Vec::new();
    let wanted = phase(&part.fate);
    let state = &job["status"]["state"];
    if job["metadata"]["uid"]
        .as_str()
        .is_some_and(|uid| rest.world.is_hurt(uid))
    {
        return hurt(&name, &state["phase"]);
    }
    if state["phase"] != wanted {
        let text = format!("job {name} is {state} and should be {wanted}");
        findings.push(finding("I6", text));
    }
    let uid = job["metadata"]["uid"].as_str().unwrap_or("");
    findings.extend(left_behind(job, uid, rest));
    if part.fate == Fate::NoClaim {
        findings.extend(blocked(&name, job, uid, rest.world));
    }
    if let Fate::Fails { action } = part.fate {
        findings.extend(retries(part, action, job, uid, rest.world));
    } else if job["status"]["retryCount"].as_i64().unwrap_or(0) > restarts(&part.fate) {
        let text = format!("job {name} was restarted too often: {}", job["status"]);
        findings.push(finding("S0.10", text));
    }
    findings
}

/// S0.6: of the claims that a job made, none is left without a volume once the job has ended.
fn left_behind(job: &Value, uid: &str, rest: &AtRest<'_>) -> Vec<Finding> {
    let phase = job["status"]["state"]["phase"].as_str();
    if !matches!(phase, Some("Completed" | "Failed" | "Terminated")) {
        return Vec::new();
    }
    let is_empty = |claim: &&Value| {
        let owner = &claim["metadata"]["ownerReferences"][0]["uid"];
        owner == uid && claim["status"]["phase"] != "Bound"
    };
    let claims = rest.objects(Kind::PersistentVolumeClaim).iter();
    let left = claims.filter(is_empty).map(|claim| {
        let text = format!(
            "claim {} was never bound and outlives its job, {phase:?}",
            claim["metadata"]["name"]
        );
        finding("S0.6", text)
    });
    left.collect()
}

/// A job to which something was done that it cannot help has ended in some way.
fn hurt(name: &str, phase: &Value) -> Vec<Finding> {
    match phase.as_str() {
        Some("Aborted" | "Completed" | "Failed" | "Terminated") => Vec::new(),
        _ => vec![finding(
            "I6",
            format!("job {name}, which was hurt, is {phase}"),
        )],
    }
}

/// How often a part that does not fail may be restarted.
fn restarts(fate: &Fate) -> i64 {
    let is_restarted = matches!(fate, Fate::RestartsForPod { .. } | Fate::Suspended { .. });
    i64::from(is_restarted)
}

fn phase(fate: &Fate) -> &'static str {
    match fate {
        Fate::NoClaim | Fate::TooLarge => "Pending",
        Fate::Fails { action } => match *action {
            "AbortJob" => "Aborted",
            "CompleteJob" => "Completed",
            "TerminateJob" => "Terminated",
            _ => "Failed",
        },
        _ => "Completed",
    }
}

/// S0.1, S0.2: a job that waits for a claim owns nothing, and says what it waits for.
fn blocked(name: &str, job: &Value, uid: &str, world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kind in [
        Kind::PersistentVolumeClaim,
        Kind::Pod,
        Kind::PodGroup,
        Kind::Service,
    ] {
        let count = world.children_of(uid, kind).len();
        if count > 0 {
            let plural = kind.row().plural;
            let text = format!("blocked job {name} has made {count} {plural}");
            findings.push(finding("S0.1", text));
        }
    }
    let state = &job["status"]["state"];
    let message = state["message"].as_str().unwrap_or("");
    if state["reason"] != "PersistentVolumeClaimNotFound"
        || !message.contains(&format!("{name}-data"))
    {
        let text = format!("blocked job {name} says only {state}");
        findings.push(finding("S0.2", text));
    }
    findings
}

/// One failure is one retry, and no more than the job has.
fn retries(part: &Part, action: &str, job: &Value, uid: &str, world: &World) -> Vec<Finding> {
    let name = part.name();
    let count = job["status"]["retryCount"].as_i64().unwrap_or(0);
    let failures = i64::try_from(world.failures_of(uid)).unwrap_or(i64::MAX);
    let wanted = if action.starts_with("Restart") {
        RETRIES
    } else {
        0
    };
    let mut findings = Vec::new();
    if count != wanted {
        let text = format!("job {name} has used {count} retries and should have used {wanted}");
        findings.push(finding("S0.10", text));
    }
    if count > failures {
        let text = format!("job {name} has used {count} retries for {failures} failures");
        findings.push(finding("S0.10", text));
    }
    // With one pod that fails every time, the numbers are equal.
    if part.workers == 1 && wanted > 0 && count != failures {
        let text = format!("job {name} has used {count} retries for {failures} failures of a pod");
        findings.push(finding("S0.10", text));
    }
    findings
}

/// A job that has gone leaves nothing of its own behind.
fn gone(part: &Part, rest: &AtRest<'_>) -> Vec<Finding> {
    let name = part.name();
    if rest.named(Kind::VcJob, &name).is_some() {
        return vec![finding("I6", format!("job {name} is still there"))];
    }
    left_of(&name, rest)
}

/// What is called after something that is not there any more.
fn left_of(name: &str, rest: &AtRest<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kind in [
        Kind::ConfigMap,
        Kind::JobFlow,
        Kind::NetworkPolicy,
        Kind::PersistentVolumeClaim,
        Kind::Pod,
        Kind::PodGroup,
        Kind::Service,
        Kind::VcCronJob,
        Kind::VcJob,
    ] {
        for object in rest.objects(kind) {
            let left = object["metadata"]["name"].as_str().unwrap_or("");
            if left == name || left.starts_with(&format!("{name}-")) {
                let plural = kind.row().plural;
                let text = format!("{plural} {left} outlived {name}");
                findings.push(finding("I6", text));
            }
        }
    }
    findings
}

fn bare(part: &Part, rest: &AtRest<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for index in 0..part.workers {
        let name = format!("{}-{index}", part.name());
        let pod = rest.named(Kind::Pod, &name).unwrap_or(&Value::Null);
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        if rest.world.is_hurt(&name) && matches!(phase, "" | "Failed" | "Succeeded") {
            continue;
        }
        if pod["status"]["phase"] != "Succeeded" {
            let text = format!("pod {name} is {}", pod["status"]["phase"]);
            findings.push(finding("I6", text));
        }
    }
    findings
}

fn batch(part: &Part, rest: &AtRest<'_>) -> Vec<Finding> {
    let name = part.name();
    let job = rest.named(Kind::BatchJob, &name).unwrap_or(&Value::Null);
    let conditions = job["status"]["conditions"].as_array();
    let has = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        all.any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    let is_complete = has("Complete");
    let has_failed = has("Failed");
    let uid = job["metadata"]["uid"].as_str().unwrap_or("");
    if rest.world.is_hurt(uid) && (is_complete || has_failed) {
        return Vec::new();
    }
    if is_complete && job["status"]["succeeded"] == part.workers {
        return Vec::new();
    }
    vec![finding(
        "I6",
        format!("batch job {name} is {}", job["status"]),
    )]
}

/// Every queue of the tree is there and takes work, whatever was done to it meanwhile.
pub(super) fn of_queue(name: &str, rest: &AtRest<'_>) -> Option<Finding> {
    let Some(queue) = rest.named(Kind::Queue, name) else {
        return Some(finding("I6", format!("queue {name} is not there")));
    };
    let status = &queue["status"];
    (status["state"] != "Open").then(|| finding("I6", format!("queue {name} is {status}")))
}

fn finding(law: &'static str, text: String) -> Finding {
    Finding { law, text }
}
