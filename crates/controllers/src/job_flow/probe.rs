//! Until when a job of a flow is waited for.
//!
//! Upstream ignores probes. Here a target has come far enough when it has completed, or when all that
//! the probe says of its tasks holds; a target of which it says nothing is waited for until it has
//! completed. Pods are asked over the network once everything else holds, in turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::volcano::{FlowProbe, Job, JobPhase, TASK_SPEC, Task};
use mirror::Mirror;

use super::Member;
use crate::ranking::is_active;
use crate::write::stable_suffix;
use crate::{Heard, Inquiry, Whom};

/// Between two turns of questions, in milliseconds.
pub(super) const PERIOD_MS: i64 = 5_000;
/// How long an answer may take, in milliseconds.
const WITHIN_MS: i64 = 2_000;
/// Most bytes of an answer, of which nothing is read but that it came.
const BYTES_MAX: usize = 1 << 20;
/// Most pods of a task that are asked: they stand for the others.
const PODS_MAX: usize = 16;
/// Most questions about one target.
const QUESTIONS_MAX: usize = 128;

/// How a target stands.
pub(super) enum Stands {
    /// It has come far enough.
    Met,
    /// It has not, and an event will tell when it has.
    Unmet,
    /// Nobody tells when it has: it has to be looked at again.
    Later,
    /// It has, if all of these are answered.
    Asks(Vec<Inquiry>),
}

impl Stands {
    /// Whether the target has come far enough, by what was heard.
    pub(super) fn is_met(&self, heard: &Heard) -> bool {
        let is_answered = |it: &Inquiry| matches!(heard.told(&it.topic), Some(Ok(_)));
        match self {
            Stands::Met => true,
            Stands::Unmet | Stands::Later => false,
            Stands::Asks(questions) => questions.iter().all(is_answered),
        }
    }
}

/// How a target stands before a flow with this probe.
pub(super) fn of(mirror: &Mirror, probe: Option<&FlowProbe>, target: &Member<'_>) -> Stands {
    if target.phase() == Some(JobPhase::Completed) {
        return Stands::Met;
    }
    let (Some(probe), Some(job)) = (probe, target.job) else {
        return Stands::Unmet;
    };
    if job.status.state.phase.is_over() {
        return Stands::Unmet;
    }
    let tasks = Tasks::of(job);
    let is_concerned = names(probe).any(|name| !tasks.meant(name).is_empty());
    if !is_concerned || !has_reached(probe, job, &tasks) {
        return Stands::Unmet;
    }
    match questions(mirror, probe, job, &tasks) {
        None => Stands::Later,
        Some(questions) if questions.is_empty() => Stands::Met,
        Some(questions) => Stands::Asks(questions),
    }
}

/// The tasks that a probe names and that none of these targets has; none while one of them has no job
/// here, whose tasks they may be.
pub(super) fn strange_tasks<'a>(
    probe: &'a FlowProbe,
    targets: &[&Member<'_>],
) -> BTreeSet<&'a str> {
    let jobs: Option<Vec<&Arc<Job>>> = targets.iter().map(|target| target.job).collect();
    let Some(jobs) = jobs else {
        return BTreeSet::new();
    };
    let tasks = jobs.iter().flat_map(|job| &job.spec.tasks);
    // By no name any of them is meant.
    let known: BTreeSet<&str> = tasks.flat_map(|task| ["", &*task.name]).collect();
    names(probe).filter(|name| !known.contains(name)).collect()
}

/// The names by which a probe speaks of tasks.
fn names(probe: &FlowProbe) -> impl Iterator<Item = &str> {
    let phases = probe.task_status_list.iter().map(|it| &*it.task_name);
    phases.chain(asks(probe).map(|it| it.task))
}

/// The tasks of a job by the names by which they are meant: their own, and none, which means all of them.
struct Tasks<'a>(BTreeMap<&'a str, Vec<&'a Task>>);

impl<'a> Tasks<'a> {
    fn of(job: &'a Job) -> Tasks<'a> {
        let mut tasks: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in &job.spec.tasks {
            for name in BTreeSet::from(["", &*task.name]) {
                tasks.entry(name).or_default().push(task);
            }
        }
        Tasks(tasks)
    }

    fn meant(&self, name: &str) -> &[&'a Task] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Whether all phases are reached that a probe names.
fn has_reached(probe: &FlowProbe, job: &Job, tasks: &Tasks<'_>) -> bool {
    let wanted = probe.task_status_list.iter();
    let wanted: BTreeSet<(&str, &str)> = wanted.map(|it| (&*it.task_name, &*it.phase)).collect();
    let mut wanted = wanted.into_iter();
    wanted.all(|(name, phase)| {
        let mut tasks = tasks.meant(name).iter();
        tasks.all(|task| is_in(job, task, phase))
    })
}

/// Whether as many pods of a task are in the phase as must start together. A pod that has succeeded has
/// run, too.
fn is_in(job: &Job, task: &Task, phase: &str) -> bool {
    let counts = job.status.task_status_count.get(&task.name);
    let of = |phase: &str| counts.and_then(|counts| counts.phase.get(phase)).copied();
    let passed = match phase {
        "Running" => of("Succeeded").unwrap_or(0),
        _ => 0,
    };
    let there = of(phase).unwrap_or(0).saturating_add(passed);
    there >= task.min_available().max(1)
}

/// What the pods of tasks are to be asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ask<'a> {
    task: &'a str,
    port: i32,
    /// `None` only connects.
    request: Option<Request<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request<'a> {
    /// Without the slash at its beginning.
    path: &'a str,
    /// Name and value.
    header: Option<(&'a str, &'a str)>,
}

/// All that a probe says to ask, in its order.
fn asks(probe: &FlowProbe) -> impl Iterator<Item = Ask<'_>> {
    let requests = probe.http_get_list.iter().map(|it| Ask {
        task: &it.task_name,
        port: it.port,
        request: Some(Request {
            path: it.path.trim_start_matches('/'),
            header: it.http_header.as_ref().map(|it| (&*it.name, &*it.value)),
        }),
    });
    let ports = probe.tcp_socket_list.iter().map(|it| Ask {
        task: &it.task_name,
        port: it.port,
        request: None,
    });
    requests.chain(ports)
}

/// What the pods are asked; `None` while there are too few of them to be asked. A probe may say a hundred
/// thousand times what to ask, of a job with as many pods: each of both is looked at once, and no more
/// questions are made than are asked.
fn questions(
    mirror: &Mirror,
    probe: &FlowProbe,
    job: &Job,
    tasks: &Tasks<'_>,
) -> Option<Vec<Inquiry>> {
    let named: BTreeSet<&str> = asks(probe).map(|it| it.task).collect();
    if named.is_empty() {
        return Some(Vec::new());
    }
    let pods = pods(mirror, job);
    let of = |task: &Task| pods.get(&*task.name).map_or(&[][..], Vec::as_slice);
    let mut meant = named.iter().flat_map(|name| tasks.meant(name));
    if meant.any(|task| of(task).len() < asked_of(task)) {
        return None;
    }
    let mut questions = Vec::new();
    let mut asked = BTreeSet::new();
    for ask in asks(probe).filter(|it| asked.insert(*it)) {
        for task in tasks.meant(ask.task) {
            let room = QUESTIONS_MAX - questions.len();
            let pods = of(task).iter().take(asked_of(task).min(room));
            questions.extend(pods.map(|pod| question(pod, &ask)));
        }
        if questions.len() == QUESTIONS_MAX {
            break;
        }
    }
    Some(questions)
}

/// So many pods of a task are asked: as many as must start together.
fn asked_of(task: &Task) -> usize {
    let wanted = usize::try_from(task.min_available().max(1)).unwrap_or(1);
    wanted.min(PODS_MAX)
}

/// The pods of each task that can be asked, the first ones by name.
fn pods<'a>(mirror: &'a Mirror, job: &Job) -> BTreeMap<&'a str, Vec<&'a Arc<Pod>>> {
    let is_up = |pod: &&Arc<Pod>| {
        is_active(pod) && pod.status.phase == PodPhase::Running && !pod.status.pod_ip.is_empty()
    };
    let mut pods: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in mirror.owned_by::<Pod>(&job.metadata.uid).filter(is_up) {
        let Some(task) = pod.metadata.annotations.get(TASK_SPEC) else {
            continue;
        };
        let of_task = pods.entry(task).or_default();
        if of_task.len() < PODS_MAX {
            of_task.push(pod);
        }
    }
    pods
}

fn question(pod: &Pod, ask: &Ask<'_>) -> Inquiry {
    let (namespace, name, port) = (&pod.metadata.namespace, &pod.metadata.name, ask.port);
    let about = match &ask.request {
        Some(request) => format!("http {port}/{}{}", request.path, with_header(request)),
        None => format!("tcp {port}"),
    };
    let request = ask.request.map(|Request { path, header }| {
        let header = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (format!("/{path}"), header.into_iter().collect())
    });
    Inquiry {
        topic: format!("probe {namespace}/{name} {about}"),
        whom: Whom::Pod {
            address: pod.status.pod_ip.to_string(),
            // The schema allows no other; nobody listens at 0.
            port: u16::try_from(port).unwrap_or(0),
            request,
        },
        within_ms: WITHIN_MS,
        bytes_max: BYTES_MAX,
        stands_ms: 0,
        fails_ms: 0,
        read: |_| Ok(String::new()),
    }
}

/// What tells a request from one for the same path with another header field, whose value nobody is told.
fn with_header(request: &Request<'_>) -> String {
    match request.header {
        Some((name, value)) => format!(", {}", stable_suffix(&[name, value])),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
