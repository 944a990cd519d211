//! What became of each workload, and what was used of which resource when: kept from the stored
//! objects as they change, without asking anybody who decides.

use std::collections::{BTreeMap, BTreeSet};

use api::kind::Kind;
use api::time::Time;
use api::volcano::{DEFAULT_QUEUE, GROUP_NAME, QUEUE_OF_POD};
use serde_json::Value;

use crate::stored::{controller, is_over, key, list, map, milli, text, uid};
use crate::witness::Change;

/// Amounts of resources, in thousandths.
pub(crate) type Amounts = BTreeMap<String, i128>;

/// A vcjob, a batch job or a pod of neither, from its creation to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) queue: String,
    pub(crate) arrived_ms: i64,
    /// When so many of its pods ran as it needs at least.
    pub(crate) started_ms: Option<i64>,
    pub(crate) ended_ms: Option<i64>,
    pub(crate) phase: String,
    /// Pods that were made for it.
    pub(crate) pods: u64,
    pub(crate) failed_pods: u64,
    /// Pods that were taken off their nodes before their end.
    pub(crate) evictions: u64,
    /// It is not to end: a pod of a Deployment, or one without a time to run.
    pub(crate) is_endless: bool,
    needed: usize,
    up: BTreeSet<String>,
    /// What it asks for while it is not over.
    asks: Amounts,
    /// What has come to its end well.
    spent: Amounts,
    /// What of it counts as asked for, as written into the steps.
    told: Amounts,
    is_gone: bool,
}

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Bound and not over.
    Used,
    /// Asked for by workloads that are not over, what is used among it.
    Asked,
    /// What all nodes have.
    Room,
}

/// A change of an amount.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) age_ms: i64,
    pub(crate) what: What,
    /// Empty for rooms.
    pub(crate) queue: String,
    pub(crate) amounts: Amounts,
}

/// The book.
#[derive(Debug)]
pub(crate) struct Ledger {
    begins: Time,
    lives: BTreeMap<String, Life>,
    steps: Vec<Step>,
    /// What each pod uses, and in which queue, by uid.
    bound: BTreeMap<String, (String, Amounts)>,
    /// Queues of PodGroups, by namespace and name.
    groups: BTreeMap<String, String>,
    n_over: usize,
    n_finite: usize,
    pub(crate) nodes_max: usize,
    nodes: usize,
}

impl Ledger {
    pub(crate) fn new(begins: Time) -> Ledger {
        Ledger {
            begins,
            lives: BTreeMap::new(),
            steps: Vec::new(),
            bound: BTreeMap::new(),
            groups: BTreeMap::new(),
            n_over: 0,
            n_finite: 0,
            nodes_max: 0,
            nodes: 0,
        }
    }

    /// Workloads by uid.
    pub(crate) fn lives(&self) -> &BTreeMap<String, Life> {
        &self.lives
    }

    /// Changes of amounts, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many workloads that are to end have come, and how many have ended.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.n_finite, self.n_over)
    }

    /// An object has changed.
    pub(crate) fn take(&mut self, change: &Change, now: Time) {
        let age_ms = (now.micros() - self.begins.micros()) / 1_000;
        match change.kind {
            Kind::BatchJob | Kind::VcJob => self.job(change, age_ms),
            Kind::Node => self.node(change, age_ms),
            Kind::Pod => self.pod(change, age_ms),
            Kind::PodGroup => self.group(change, age_ms),
            _ => {}
        }
    }

    fn node(&mut self, change: &Change, age_ms: i64) {
        let room = |node: &Option<Value>| -> Amounts {
            let all = node.as_ref().map(|node| &node["status"]["allocatable"]);
            let rows = all.into_iter().flat_map(map);
            rows.map(|(name, amount)| (name.clone(), milli(amount)))
                .collect()
        };
        self.nodes += usize::from(change.after.is_some());
        self.nodes -= usize::from(change.before.is_some());
        self.nodes_max = self.nodes_max.max(self.nodes);
        let amounts = minus(room(&change.after), &room(&change.before));
        self.step(age_ms, What::Room, "", amounts);
    }

    fn group(&mut self, change: &Change, age_ms: i64) {
        let Some(group) = &change.after else { return };
        let queue = match text(&group["spec"]["queue"]) {
            "" => DEFAULT_QUEUE,
            queue => queue,
        };
        self.groups.insert(key(group), queue.to_owned());
        if let Some(owner) = controller(group).map(str::to_owned) {
            self.move_to(&owner, queue, age_ms);
        }
    }

    /// A workload belongs to another queue than was thought.
    fn move_to(&mut self, uid: &str, queue: &str, age_ms: i64) {
        let Some(life) = self.lives.get_mut(uid).filter(|it| it.queue != queue) else {
            return;
        };
        let from = std::mem::replace(&mut life.queue, queue.to_owned());
        let told = life.told.clone();
        self.step(age_ms, What::Asked, &from, minus(Amounts::new(), &told));
        self.step(age_ms, What::Asked, queue, told);
    }

    fn job(&mut self, change: &Change, age_ms: i64) {
        let Some(job) = change.after.as_ref().or(change.before.as_ref()) else {
            return;
        };
        let uid = uid(job).to_owned();
        if !self.lives.contains_key(&uid) {
            self.n_finite += 1;
            self.lives
                .insert(uid.clone(), born(change.kind, job, age_ms));
        }
        let Some(life) = self.lives.get_mut(&uid) else {
            return;
        };
        let was_over = life.ended_ms.is_some();
        if change.after.is_none() {
            life.is_gone = true;
        }
        let is_batch = change.kind == Kind::BatchJob;
        let phase = if is_batch {
            batch_phase(job)
        } else {
            vcjob_phase(job)
        };
        phase.clone_into(&mut life.phase);
        let is_over = life.is_gone || is_end(phase);
        if life.is_gone && !is_end(phase) {
            "Deleted".clone_into(&mut life.phase);
        }
        life.asks = if is_batch {
            batch_asks(job)
        } else {
            vcjob_asks(job)
        };
        life.ended_ms = match (was_over, is_over) {
            (true, true) => life.ended_ms,
            (false, true) => Some(age_ms),
            (_, false) => None,
        };
        self.n_over += usize::from(is_over);
        self.n_over -= usize::from(was_over);
        self.ask(&uid, age_ms);
    }

    fn pod(&mut self, change: &Change, age_ms: i64) {
        let Some(pod) = change.after.as_ref().or(change.before.as_ref()) else {
            return;
        };
        let pod_uid = uid(pod).to_owned();
        let owner = controller(pod).filter(|owner| self.lives.contains_key(*owner));
        let owner = owner.unwrap_or(&pod_uid).to_owned();
        let is_alone = owner == pod_uid;
        if is_alone && !self.lives.contains_key(&owner) {
            let life = lone(pod, age_ms);
            self.n_finite += usize::from(!life.is_endless);
            self.lives.insert(owner.clone(), life);
        }
        let group = text(&pod["metadata"]["annotations"][GROUP_NAME]);
        let group = format!("{}/{group}", text(&pod["metadata"]["namespace"]));
        if let Some(queue) = self.groups.get(&group).cloned() {
            self.move_to(&owner, &queue, age_ms);
        }
        self.use_of(change, &owner, &pod_uid, age_ms);
        self.stages(change, &owner, &pod_uid, age_ms);
        self.ask(&owner, age_ms);
    }

    /// What a pod uses: all that it asks for, from its bind to its end.
    fn use_of(&mut self, change: &Change, owner: &str, pod_uid: &str, age_ms: i64) {
        let holds = |pod: &&Value| !text(&pod["spec"]["nodeName"]).is_empty() && !is_over(pod);
        match change.after.as_ref().filter(holds) {
            Some(pod) if !self.bound.contains_key(pod_uid) => {
                let queue = self.lives.get(owner).map_or(DEFAULT_QUEUE, |it| &*it.queue);
                let (queue, amounts) = (queue.to_owned(), pod_asks(&pod["spec"]));
                self.step(age_ms, What::Used, &queue, amounts.clone());
                self.bound.insert(pod_uid.to_owned(), (queue, amounts));
            }
            Some(_) => {}
            None => {
                if let Some((queue, amounts)) = self.bound.remove(pod_uid) {
                    self.step(age_ms, What::Used, &queue, minus(Amounts::new(), &amounts));
                }
            }
        }
    }

    /// The parts of a pod's life that its workload is counted by.
    fn stages(&mut self, change: &Change, owner: &str, pod_uid: &str, age_ms: i64) {
        let Some(life) = self.lives.get_mut(owner) else {
            return;
        };
        let phase = |pod: &Option<Value>| {
            let pod = pod.as_ref();
            pod.map_or(String::new(), |pod| {
                text(&pod["status"]["phase"]).to_owned()
            })
        };
        let (before, after) = (phase(&change.before), phase(&change.after));
        life.pods += u64::from(change.before.is_none() && change.after.is_some());
        life.failed_pods += u64::from(before != "Failed" && after == "Failed");
        if before != "Succeeded" && after == "Succeeded" {
            let asks = pod_asks(&change.after.as_ref().map_or(&Value::Null, |it| it)["spec"]);
            life.spent = plus(std::mem::take(&mut life.spent), &asks);
        }
        if is_taken_off(change) && goes_on(life, owner == pod_uid) {
            life.evictions += 1;
        }
        match &*after {
            "Running" | "Succeeded" => {
                life.up.insert(pod_uid.to_owned());
            }
            _ => {
                life.up.remove(pod_uid);
            }
        }
        if life.started_ms.is_none() && life.up.len() >= life.needed.max(1) {
            life.started_ms = Some(age_ms);
        }
        if owner != pod_uid {
            return;
        }
        let ends = change.after.is_none() || matches!(&*after, "Succeeded" | "Failed");
        life.phase = match (&*after, ends) {
            ("", true) => "Deleted".to_owned(),
            _ => after,
        };
        if ends && life.ended_ms.is_none() {
            life.ended_ms = Some(age_ms);
            self.n_over += usize::from(!life.is_endless);
        }
    }

    /// Writes down what a workload asks for now, where that has changed.
    fn ask(&mut self, uid: &str, age_ms: i64) {
        let Some(life) = self.lives.get_mut(uid) else {
            return;
        };
        let asks = match life.ended_ms {
            Some(_) => Amounts::new(),
            None => {
                let mut left = minus(life.asks.clone(), &life.spent);
                left.retain(|_, amount| *amount > 0);
                left
            }
        };
        if asks == life.told {
            return;
        }
        let amounts = minus(asks.clone(), &life.told);
        life.told = asks;
        let queue = life.queue.clone();
        self.step(age_ms, What::Asked, &queue, amounts);
    }

    fn step(&mut self, age_ms: i64, what: What, queue: &str, mut amounts: Amounts) {
        amounts.retain(|_, amount| *amount != 0);
        if !amounts.is_empty() {
            self.steps.push(Step {
                age_ms,
                what,
                queue: queue.to_owned(),
                amounts,
            });
        }
    }
}

fn born(kind: Kind, job: &Value, age_ms: i64) -> Life {
    let is_batch = kind == Kind::BatchJob;
    let template = &job["spec"]["template"]["metadata"]["annotations"];
    let named = match is_batch {
        false => text(&job["spec"]["queue"]),
        true => text(&template[QUEUE_OF_POD]),
    };
    let needed = job["spec"]["minAvailable"].as_u64().unwrap_or(1);
    Life {
        kind: if is_batch { "job" } else { "vcjob" },
        namespace: text(&job["metadata"]["namespace"]).to_owned(),
        name: text(&job["metadata"]["name"]).to_owned(),
        queue: if named.is_empty() {
            DEFAULT_QUEUE
        } else {
            named
        }
        .to_owned(),
        arrived_ms: age_ms,
        needed: usize::try_from(needed).unwrap_or(usize::MAX),
        ..Life::default()
    }
}

/// A pod that belongs to neither kind of job.
fn lone(pod: &Value, age_ms: i64) -> Life {
    let annotations = &pod["metadata"]["annotations"];
    let queue = match text(&annotations[QUEUE_OF_POD]) {
        "" => DEFAULT_QUEUE,
        queue => queue,
    };
    Life {
        kind: "pod",
        namespace: text(&pod["metadata"]["namespace"]).to_owned(),
        name: text(&pod["metadata"]["name"]).to_owned(),
        queue: queue.to_owned(),
        arrived_ms: age_ms,
        is_endless: annotations[nodes::SIM_DURATION].is_null()
            || pod["spec"]["restartPolicy"] == "Always",
        asks: pod_asks(&pod["spec"]),
        ..Life::default()
    }
}

/// Whether a pod was bound and not over, and is now told to go, or gone without that.
fn is_taken_off(change: &Change) -> bool {
    let Some(before) = &change.before else {
        return false;
    };
    let is_told = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    let had_node = !text(&before["spec"]["nodeName"]).is_empty();
    let goes = change.after.as_ref().is_none_or(is_told);
    had_node && goes && !is_told(before) && !is_over(before)
}

/// Whether a workload was to go on when it lost a pod.
fn goes_on(life: &Life, is_alone: bool) -> bool {
    let phases = ["Pending", "Inqueue", "Running", ""];
    !life.is_gone && life.ended_ms.is_none() && (is_alone || phases.contains(&&*life.phase))
}

fn vcjob_phase(job: &Value) -> &str {
    text(&job["status"]["state"]["phase"])
}

fn batch_phase(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let mut conditions = list(&job["status"]["conditions"]).iter();
        conditions.any(|it| it["type"] == kind && it["status"] == "True")
    };
    match (has("Complete"), has("Failed")) {
        (true, _) => "Completed",
        (_, true) => "Failed",
        _ if job["status"]["active"].as_i64() > Some(0) => "Running",
        _ => "Pending",
    }
}

fn is_end(phase: &str) -> bool {
    matches!(phase, "Completed" | "Failed" | "Terminated" | "Aborted")
}

/// What all tasks of a vcjob ask for together.
fn vcjob_asks(job: &Value) -> Amounts {
    let tasks = list(&job["spec"]["tasks"]).iter();
    tasks.fold(Amounts::new(), |sum, task| {
        let pods = task["replicas"].as_i64().unwrap_or(1);
        plus(sum, &times(pod_asks(&task["template"]["spec"]), pods))
    })
}

/// What a batch job asks for at a time. Its ended pods are counted off by itself, so that they are
/// added here.
fn batch_asks(job: &Value) -> Amounts {
    let spec = &job["spec"];
    let done = job["status"]["succeeded"].as_i64().unwrap_or(0);
    let at_once = spec["parallelism"].as_i64().unwrap_or(1);
    let left = spec["completions"]
        .as_i64()
        .map_or(at_once, |all| all - done);
    let pods = at_once.min(left).max(0) + done;
    times(pod_asks(&spec["template"]["spec"]), pods)
}

/// What a pod asks for: its containers together or its largest first step, and what it costs.
pub(crate) fn pod_asks(spec: &Value) -> Amounts {
    let asks = |container: &Value| -> Amounts {
        let rows = map(&container["resources"]["requests"]);
        rows.map(|(name, amount)| (name.clone(), milli(amount)))
            .collect()
    };
    let mut together = Amounts::new();
    for container in list(&spec["containers"]) {
        together = plus(together, &asks(container));
    }
    let mut first = Amounts::new();
    let mut stay = Amounts::new();
    for container in list(&spec["initContainers"]) {
        let own = asks(container);
        if container["restartPolicy"] == "Always" {
            stay = plus(stay, &own);
            first = most(first, &stay);
        } else {
            first = most(first, &plus(own, &stay));
        }
    }
    let mut all = most(plus(together, &stay), &first);
    for (name, amount) in map(&spec["overhead"]) {
        *all.entry(name.clone()).or_default() += milli(amount);
    }
    *all.entry("pods".to_owned()).or_default() += 1_000;
    all
}

fn plus(mut sum: Amounts, more: &Amounts) -> Amounts {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
    sum
}

fn minus(mut sum: Amounts, less: &Amounts) -> Amounts {
    for (name, amount) in less {
        *sum.entry(name.clone()).or_default() -= amount;
    }
    sum
}

fn most(mut sum: Amounts, other: &Amounts) -> Amounts {
    for (name, amount) in other {
        let own = sum.entry(name.clone()).or_default();
        *own = (*own).max(*amount);
    }
    sum
}

fn times(mut amounts: Amounts, count: i64) -> Amounts {
    for amount in amounts.values_mut() {
        *amount *= i128::from(count.max(0));
    }
    amounts
}
