//! What somebody saw who watched the stored objects: waits, use, shares, and what never started.

mod fair;
mod sums;

use api::kind::Kind;
use serde_json::Value;

use crate::judge::Finding;
use crate::ledger::Life;
use crate::stored::{list, text};
use crate::world::World;

/// Points of the course of a resource's use.
pub const POINTS: usize = 120;

/// What became of a simulated cluster and its workload. Times are in milliseconds after the moment
/// when the first workload could come.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed that it can be had from again.
    pub seed: u64,
    /// How long it lasted.
    pub lasted_ms: i64,
    /// Nodes that there were at most at a time.
    pub nodes: usize,
    /// From the first arrival to the last end, or to the end of the time.
    pub makespan_ms: i64,
    /// By arrival.
    pub workloads: Vec<Workload>,
    /// What was refused for good.
    pub turned_away: Vec<Turned>,
    /// Waits of all workloads.
    pub waits: Waits,
    /// By name, those that anything was asked for in.
    pub queues: Vec<QueueSum>,
    /// By name.
    pub resources: Vec<ResourceSum>,
    /// The resource that shares are told of: the scarcest.
    pub shared: String,
    /// Jain's index of what each queue used over its fair share, in thousandths: 1000 is as fair as
    /// can be.
    pub fairness_milli: Option<i64>,
    /// Laws that were broken: a defect of ours.
    pub findings: Vec<Finding>,
    /// Objects that were left out since their controllers make them.
    pub left_out: usize,
    /// Templates whose pods ran as long as the default says.
    pub undated: usize,
}

/// One workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// `vcjob`, `job` or `pod`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: String,
    /// When it was created.
    pub arrived_ms: i64,
    /// When as many of its pods ran as it needs.
    pub started_ms: Option<i64>,
    /// When it was over.
    pub ended_ms: Option<i64>,
    /// Its last phase.
    pub phase: String,
    /// Pods that were made for it.
    pub pods: u64,
    /// Those that failed.
    pub failed_pods: u64,
    /// Those that were taken off their nodes.
    pub evictions: u64,
    /// It is not to end.
    pub is_endless: bool,
    /// Why it has not started, where it has not and is not over.
    pub reason: String,
}

/// What was refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    /// When it was given up.
    pub at_ms: i64,
    /// What it is called: kind, namespace and name.
    pub name: String,
    /// The answer.
    pub reason: String,
}

/// How long workloads waited from their arrival to their start: the nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many started.
    pub count: usize,
    /// Half of them waited no longer.
    pub p50_ms: i64,
    /// 95 of 100 waited no longer.
    pub p95_ms: i64,
    /// Nobody waited longer.
    pub max_ms: i64,
}

/// One queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSum {
    /// Its name.
    pub name: String,
    /// Its weight among its siblings.
    pub weight: i64,
    /// Workloads that came to it.
    pub workloads: usize,
    /// Those that ended well.
    pub completed: usize,
    /// Waits of those that started.
    pub waits: Waits,
    /// What it used of the shared resource, in thousandths of a unit times hours.
    pub used_milli_hours: i64,
    /// What it would have used had each moment been shared by weight among those that asked.
    pub fair_milli_hours: i64,
    /// Both in thousandths of what all queues used.
    pub share_milli: i64,
    /// The same of the fair share.
    pub fair_share_milli: i64,
}

/// One resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSum {
    /// Its name.
    pub name: String,
    /// What all nodes have of it at most, in thousandths.
    pub room_milli: i64,
    /// Use over the makespan, in thousandths of the room.
    pub mean_milli: i64,
    /// The greatest use, in thousandths of the room.
    pub peak_milli: i64,
    /// Use over the whole time in equal parts, each in thousandths of the room.
    pub course_milli: Vec<i64>,
}

/// What the watcher cannot see.
pub(crate) struct Asked {
    pub(crate) seed: u64,
    /// The world is so old when the first workload can come.
    pub(crate) from_ms: i64,
    pub(crate) left_out: usize,
    pub(crate) undated: usize,
}

/// What was seen in a world so far.
pub(crate) fn of(world: &World, queues: &[Value], asked: &Asked) -> Report {
    let Some(ledger) = world.ledger() else {
        return Report::default();
    };
    let from = asked.from_ms;
    let lasted_ms = (world.age_ms() - from).max(0);
    let lives = ledger.lives().iter();
    let mut workloads: Vec<Workload> = lives
        .map(|(uid, life)| workload(world, uid, life, from))
        .collect();
    workloads.sort_by(|a, b| place(a).cmp(&place(b)));
    let span = span(&workloads, lasted_ms);
    let sums = sums::of(ledger, queues, from, lasted_ms, span);
    let queues = sums.queues.into_iter();
    let queues = queues.map(|queue| with_waits(queue, &workloads)).collect();
    let turned = world.turned_away().iter().map(|refused| Turned {
        at_ms: refused.age_ms - from,
        name: title(&refused.object),
        reason: refused.why.clone(),
    });
    Report {
        seed: asked.seed,
        lasted_ms,
        nodes: ledger.nodes_max,
        makespan_ms: span.1 - span.0,
        waits: waits(workloads.iter()),
        turned_away: turned.collect(),
        queues,
        resources: sums.resources,
        shared: sums.shared,
        fairness_milli: sums.fairness_milli,
        findings: world.findings().to_vec(),
        left_out: asked.left_out,
        undated: asked.undated,
        workloads,
    }
}

impl Workload {
    /// How long it waited for its start; nothing for one that has not started.
    pub fn wait_ms(&self) -> Option<i64> {
        self.started_ms.map(|at| at - self.arrived_ms)
    }

    /// Whether it ended well.
    pub fn is_completed(&self) -> bool {
        matches!(&*self.phase, "Completed" | "Succeeded")
    }

    /// Whether it ended in another way.
    pub fn has_failed(&self) -> bool {
        self.ended_ms.is_some() && !self.is_completed()
    }
}

fn place(one: &Workload) -> (i64, &str, &str, &str) {
    (one.arrived_ms, &one.namespace, &one.name, one.kind)
}

fn workload(world: &World, uid: &str, life: &Life, from: i64) -> Workload {
    let is_waiting = life.started_ms.is_none() && life.ended_ms.is_none();
    Workload {
        kind: life.kind,
        namespace: life.namespace.clone(),
        name: life.name.clone(),
        queue: life.queue.clone(),
        arrived_ms: life.arrived_ms - from,
        started_ms: life.started_ms.map(|at| at - from),
        ended_ms: life.ended_ms.map(|at| at - from),
        phase: life.phase.clone(),
        pods: life.pods,
        failed_pods: life.failed_pods,
        evictions: life.evictions,
        is_endless: life.is_endless,
        reason: match is_waiting {
            true => reason(world, uid, life),
            false => String::new(),
        },
    }
}

/// What is stored about why something waits: of its gang, of itself, of one of its pods.
fn reason(world: &World, uid: &str, life: &Life) -> String {
    let owns = |object: &&Value| {
        let mut owners = list(&object["metadata"]["ownerReferences"]).iter();
        owners.any(|owner| owner["uid"] == uid)
    };
    let groups = world.seen(Kind::PodGroup).filter(owns);
    let of_gang = groups.flat_map(|group| list(&group["status"]["conditions"]).iter().rev());
    let mut of_gang = of_gang.filter(|it| it["status"] == "True");
    if let Some(found) = of_gang.find_map(|it| said(&it["message"])) {
        return found;
    }
    let kind = match life.kind {
        "vcjob" => Kind::VcJob,
        "job" => Kind::BatchJob,
        _ => Kind::Pod,
    };
    let mut own = world.seen(kind).filter(|it| it["metadata"]["uid"] == uid);
    let own_pods = world.seen(Kind::Pod).filter(owns);
    let state = own.next().map(|it| &it["status"]);
    let told = state.and_then(|it| said(&it["state"]["message"]));
    let of_itself = state.and_then(unplaced);
    let mut of_pods = own_pods.filter_map(|pod| unplaced(&pod["status"]));
    told.or(of_itself)
        .or_else(|| of_pods.next())
        .unwrap_or_else(|| "nothing says why".to_owned())
}

/// Why a pod has no node.
fn unplaced(status: &Value) -> Option<String> {
    let mut conditions = list(&status["conditions"]).iter();
    let found = conditions.find(|it| it["type"] == "PodScheduled" && it["status"] == "False")?;
    said(&found["message"])
}

fn said(message: &Value) -> Option<String> {
    let message = text(message);
    (!message.is_empty()).then(|| message.to_owned())
}

/// From the first arrival to the last end, or to the end of the time where something goes on.
fn span(workloads: &[Workload], lasted_ms: i64) -> (i64, i64) {
    let finite = || workloads.iter().filter(|it| !it.is_endless);
    let first = finite().map(|it| it.arrived_ms).min().unwrap_or(0);
    let ends = finite().map(|it| it.ended_ms.unwrap_or(lasted_ms));
    let last = ends.max().unwrap_or(lasted_ms);
    (first.max(0), last.max(first.max(0)))
}

fn with_waits(mut queue: QueueSum, workloads: &[Workload]) -> QueueSum {
    let own = || workloads.iter().filter(|it| it.queue == queue.name);
    let (count, completed) = (own().count(), own().filter(|it| it.is_completed()).count());
    let waits = waits(own());
    queue.workloads = count;
    queue.completed = completed;
    queue.waits = waits;
    queue
}

fn waits<'a>(workloads: impl Iterator<Item = &'a Workload>) -> Waits {
    let mut all: Vec<i64> = workloads.filter_map(Workload::wait_ms).collect();
    all.sort_unstable();
    let rank = |percent: usize| {
        let at = (all.len() * percent).div_ceil(100).max(1) - 1;
        all.get(at).copied().unwrap_or(0)
    };
    Waits {
        count: all.len(),
        p50_ms: rank(50),
        p95_ms: rank(95),
        max_ms: rank(100),
    }
}

fn title(object: &Value) -> String {
    let meta = &object["metadata"];
    let kind = text(&object["kind"]).to_lowercase();
    match text(&meta["namespace"]) {
        "" => format!("{kind} {}", text(&meta["name"])),
        space => format!("{kind} {space}/{}", text(&meta["name"])),
    }
}
