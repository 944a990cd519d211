//! Until when a job of a flow is waited for.
//!
//! Upstream ignores probes. Here a target has come far enough when it has completed, or when all that
//! the probe says of its tasks holds; a target of which it says nothing is waited for until it has
//! completed. Pods are asked over the network once everything else holds, in turns.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::volcano::{FlowProbe, HttpProbe, Job, JobPhase, TASK_SPEC, Task, TaskProbe};
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
    if job.status.state.phase.is_over() || !concerns(probe, job) {
        return Stands::Unmet;
    }
    let mut phases = probe.task_status_list.iter();
    if !phases.all(|wanted| has_reached(job, wanted)) {
        return Stands::Unmet;
    }
    match questions(mirror, probe, job) {
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
    let is_strange = |name: &&str| jobs.iter().all(|job| tasks(job, name).next().is_none());
    names(probe).filter(is_strange).collect()
}

/// Whether a probe says anything of a job.
fn concerns(probe: &FlowProbe, job: &Job) -> bool {
    names(probe).any(|name| tasks(job, name).next().is_some())
}

/// The names by which a probe speaks of tasks.
fn names(probe: &FlowProbe) -> impl Iterator<Item = &str> {
    let phases = probe.task_status_list.iter().map(|it| &*it.task_name);
    let requests = probe.http_get_list.iter().map(|it| &*it.task_name);
    let ports = probe.tcp_socket_list.iter().map(|it| &*it.task_name);
    phases.chain(requests).chain(ports)
}

/// The tasks that are meant by a name; by none, all of them.
fn tasks<'a>(job: &'a Job, name: &'a str) -> impl Iterator<Item = &'a Task> {
    let tasks = job.spec.tasks.iter();
    tasks.filter(move |task| name.is_empty() || *task.name == *name)
}

/// Whether as many pods of each task meant are in the phase as must start together. A pod that has
/// succeeded has run, too.
fn has_reached(job: &Job, wanted: &TaskProbe) -> bool {
    tasks(job, &wanted.task_name).all(|task| {
        let counts = job.status.task_status_count.get(&task.name);
        let of = |phase: &str| counts.and_then(|counts| counts.phase.get(phase)).copied();
        let passed = match &*wanted.phase {
            "Running" => of("Succeeded").unwrap_or(0),
            _ => 0,
        };
        let there = of(&wanted.phase).unwrap_or(0).saturating_add(passed);
        there >= task.min_available().max(1)
    })
}

/// What the pods are asked; `None` while there are too few of them to be asked.
fn questions(mirror: &Mirror, probe: &FlowProbe, job: &Job) -> Option<Vec<Inquiry>> {
    let requests = probe.http_get_list.iter();
    let requests = requests.map(|it| (&it.task_name, it.port, Some(it)));
    let ports = probe.tcp_socket_list.iter();
    let ports = ports.map(|it| (&it.task_name, it.port, None));
    let mut questions = Vec::new();
    for (name, port, request) in requests.chain(ports) {
        for task in tasks(job, name) {
            let pods = pods(mirror, job, task)?;
            questions.extend(pods.iter().map(|pod| question(pod, port, request)));
        }
    }
    questions.truncate(QUESTIONS_MAX);
    Some(questions)
}

/// As many pods of a task as must start together, the first ones by name; `None` where fewer run.
fn pods<'a>(mirror: &'a Mirror, job: &Job, task: &Task) -> Option<Vec<&'a Arc<Pod>>> {
    let wanted = usize::try_from(task.min_available().max(1)).unwrap_or(1);
    let wanted = wanted.min(PODS_MAX);
    let is_up = |pod: &&Arc<Pod>| {
        let of_task = pod.metadata.annotations.get(TASK_SPEC);
        of_task.is_some_and(|name| **name == *task.name)
            && is_active(pod)
            && pod.status.phase == PodPhase::Running
            && !pod.status.pod_ip.is_empty()
    };
    let pods = mirror.owned_by::<Pod>(&job.metadata.uid).filter(is_up);
    let pods: Vec<_> = pods.take(wanted).collect();
    (pods.len() == wanted).then_some(pods)
}

fn question(pod: &Pod, port: i32, request: Option<&HttpProbe>) -> Inquiry {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let about = match request {
        Some(request) => format!("http {port}{}{}", path(request), with_headers(request)),
        None => format!("tcp {port}"),
    };
    let request = request.map(|request| {
        let header = request.http_header.iter();
        let headers = header.map(|it| (it.name.to_string(), it.value.to_string()));
        (path(request), headers.collect())
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

fn path(request: &HttpProbe) -> String {
    format!("/{}", request.path.trim_start_matches('/'))
}

/// What tells a request from one for the same path with other header fields, whose values nobody is told.
fn with_headers(request: &HttpProbe) -> String {
    let fields = request.http_header.iter();
    let fields: Vec<&str> = fields.flat_map(|it| [&*it.name, &*it.value]).collect();
    match fields.is_empty() {
        true => String::new(),
        false => format!(", {}", stable_suffix(&fields)),
    }
}
