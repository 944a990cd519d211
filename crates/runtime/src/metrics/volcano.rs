//! Volcano's metrics under Volcano's names (`specs/volcano.md` chapter 7), as rows. Their order is the
//! chapter's.

use std::sync::Arc;

use driver::census::{Ceilings, Census, Figures, JobFigures, QueueFigures};
use driver::timings::Timed;

use super::exposition::{Family, Type, millionth, thousandth};

/// What all names begin with.
pub const PREFIX: &str = "volcano_";

/// One metric.
pub(super) struct Row {
    /// Its name without [`PREFIX`].
    pub(super) name: &'static str,
    pub(super) kind: Type,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) tell: fn(&Census, &mut Family<'_>),
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    tell: fn(&Census, &mut Family<'_>),
) -> Row {
    Row {
        name,
        kind: Type::Gauge,
        labels,
        help,
        tell,
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    tell: fn(&Census, &mut Family<'_>),
) -> Row {
    Row {
        kind: Type::Counter,
        ..gauge(name, labels, help, tell)
    }
}

const fn timed(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    tell: fn(&Census, &mut Family<'_>),
) -> Row {
    Row {
        kind: Type::Histogram,
        ..gauge(name, labels, help, tell)
    }
}

/// Histograms by one label, or by none.
fn times(census: &Census, family: &mut Family<'_>, what: Timed) {
    for (label, histogram) in census.timings.of(what) {
        let label = [label];
        let labels: &[&str] = if label[0].is_empty() { &[] } else { &label };
        family.histogram(labels, what.scale(), histogram);
    }
}

fn figures(census: &Census, mut tell: impl FnMut(&Figures)) {
    census.figures.iter().for_each(&mut tell);
}

fn jobs(census: &Census, mut tell: impl FnMut(&JobFigures)) {
    figures(census, |figures| figures.jobs.iter().for_each(&mut tell));
}

fn queues(census: &Census, mut tell: impl FnMut(&QueueFigures)) {
    figures(census, |figures| figures.queues.iter().for_each(&mut tell));
}

/// One amount of each queue.
fn of_queues(census: &Census, family: &mut Family<'_>, read: fn(&QueueFigures) -> Option<i64>) {
    queues(census, |queue| {
        if let Some(value) = read(queue) {
            family.sample(&[&queue.name], value);
        }
    });
}

/// Amounts beside cpu and memory, by name.
type Others = Vec<(Arc<str>, i64)>;

/// Amounts of each queue beside cpu and memory.
fn others_of_queues(
    census: &Census,
    family: &mut Family<'_>,
    read: fn(&QueueFigures) -> Option<&Others>,
) {
    queues(census, |queue| {
        for (resource, value) in read(queue).into_iter().flatten() {
            family.sample(&[&queue.name, resource], value);
        }
    });
}

fn own(queue: &QueueFigures) -> Option<&Ceilings> {
    queue.ceilings.as_ref().map(|(own, _)| own)
}

fn real(queue: &QueueFigures) -> Option<&Ceilings> {
    queue.ceilings.as_ref().map(|(_, real)| real)
}

/// A ceiling of nothing is none.
fn ceiling(value: i64) -> Option<i64> {
    (value > 0).then_some(value)
}

fn of_groups(census: &Census, family: &mut Family<'_>, phase: usize) {
    for (queue, counts) in &census.groups {
        family.sample(&[queue], counts[phase]);
    }
}

const JOB: &[&str] = &["job_name", "queue", "job_namespace"];
const QUEUE: &[&str] = &["queue_name"];
const AMOUNT: &[&str] = &["queue_name", "resource"];
const CARD: &[&str] = &["devID", "NodeName"];
const GRANT: &[&str] = &["devID", "NodeName", "podName"];

/// All of them.
pub(super) const ROWS: &[&[Row]] = &[CYCLES, GANGS, QUEUES, SCALARS, CARDS, CONTROLLERS];

const CYCLES: &[Row] = &[
    timed(
        "e2e_scheduling_latency_milliseconds",
        &[],
        "How long cycles took.",
        |census, family| times(census, family, Timed::Cycle),
    ),
    timed(
        "open_session_duration_milliseconds",
        &[],
        "How long plugins took to compute their state at the start of a cycle.",
        |census, family| times(census, family, Timed::Opening),
    ),
    timed(
        "e2e_job_scheduling_latency_milliseconds",
        &[],
        "From the making of a gang to its start, once a start.",
        |census, family| times(census, family, Timed::Gang),
    ),
    timed(
        "plugin_scheduling_latency_milliseconds",
        &["plugin", "OnSession"],
        "How long a plugin took to compute its state at the start of a cycle.",
        |census, family| {
            for (plugin, histogram) in census.timings.of(Timed::Plugin) {
                let scale = Timed::Plugin.scale();
                family.histogram(&[plugin, "OnSessionOpen"], scale, histogram);
            }
        },
    ),
    timed(
        "action_scheduling_latency_milliseconds",
        &["action"],
        "How long an action of a cycle took.",
        |census, family| times(census, family, Timed::Action),
    ),
    timed(
        "task_scheduling_latency_milliseconds",
        &["stage"],
        "From the making of a pod to a stage on its way to a node.",
        |census, family| times(census, family, Timed::Pod),
    ),
    timed(
        "scheduling_stage_duration_milliseconds",
        &["stage"],
        "How long a stage of a pod's way to a node took.",
        |census, family| times(census, family, Timed::Stage),
    ),
    timed(
        "worker_scheduling_cycle_duration_milliseconds",
        &[],
        "How long cycles took where pods are placed one by one.",
        |census, family| times(census, family, Timed::WorkerCycle),
    ),
    counter(
        "schedule_attempts_total",
        &["result"],
        "Tasks that were placed, that a look at their gang left without a node, and whose binds came to nothing.",
        |census, family| {
            figures(census, |figures| {
                family.sample(&["scheduled"], figures.attempts.placed);
                family.sample(&["unschedulable"], figures.attempts.refused);
                family.sample(&["error"], figures.attempts.failed);
            });
        },
    ),
    gauge(
        "pod_preemption_victims",
        &[],
        "Tasks that went for the last gang of preempt.",
        |census, family| {
            figures(census, |figures| {
                family.sample(&[], figures.attempts.last_victims);
            });
        },
    ),
    counter(
        "total_preemption_attempts",
        &[],
        "Gangs for which preempt sent tasks away.",
        |census, family| {
            figures(census, |figures| {
                let count = figures.attempts.evicted_for.get("preempt");
                family.sample(&[], count.unwrap_or(&0));
            });
        },
    ),
    counter(
        "eviction_transactions_total",
        &["action"],
        "Gangs for which an action sent tasks away.",
        |census, family| {
            figures(census, |figures| {
                for action in ["preempt", "reclaim", "gangpreempt", "gangreclaim"] {
                    let count = figures.attempts.evicted_for.get(action);
                    family.sample(&[action], count.unwrap_or(&0));
                }
            });
        },
    ),
];

const GANGS: &[Row] = &[
    gauge(
        "e2e_job_scheduling_duration",
        JOB,
        "Milliseconds from a job's making to when a task of it was placed last.",
        |census, family| {
            jobs(census, |job| {
                if let Some(placed) = job.placed {
                    let micros = placed.micros().saturating_sub(job.created.micros());
                    let micros = u64::try_from(micros).unwrap_or(0);
                    let labels = [&*job.key.name, &*job.queue, &*job.key.namespace];
                    family.sample(&labels, thousandth(micros));
                }
            });
        },
    ),
    gauge(
        "e2e_job_scheduling_start_time",
        JOB,
        "When a job was made, in seconds since 1970.",
        |census, family| {
            jobs(census, |job| {
                let labels = [&*job.key.name, &*job.queue, &*job.key.namespace];
                family.sample(&labels, job.created.micros() / 1_000_000);
            });
        },
    ),
    gauge(
        "e2e_job_scheduling_last_time",
        JOB,
        "When a task of a job was placed last, in seconds since 1970.",
        |census, family| {
            jobs(census, |job| {
                if let Some(placed) = job.placed {
                    let labels = [&*job.key.name, &*job.queue, &*job.key.namespace];
                    family.sample(&labels, placed.micros() / 1_000_000);
                }
            });
        },
    ),
    gauge(
        "unschedule_task_count",
        &["job_id"],
        "How many tasks a job that waits lacks to start; job_id is its namespace and name.",
        |census, family| {
            jobs(census, |job| {
                if let Some(lacks) = job.lacks {
                    family.sample(&[&job.key.to_string()], lacks);
                }
            });
        },
    ),
    gauge(
        "unschedule_job_count",
        &[],
        "How many jobs wait.",
        |census, family| {
            figures(census, |figures| family.sample(&[], figures.waiting));
        },
    ),
    counter(
        "job_retry_counts",
        &["job_id"],
        "How often a job was looked at in vain; job_id is its namespace and name.",
        |census, family| {
            jobs(census, |job| {
                if job.in_vain > 0 {
                    family.sample(&[&job.key.to_string()], job.in_vain);
                }
            });
        },
    ),
    gauge(
        "job_share",
        &["job_ns", "job_id"],
        "A job's share of the cluster, by the resource of which it has most.",
        |census, family| {
            jobs(census, |job| {
                if let Some(share) = job.share {
                    family.sample(&[&*job.key.namespace, &*job.key.name], millionth(share));
                }
            });
        },
    ),
];

const QUEUES: &[Row] = &[
    gauge(
        "queue_allocated_milli_cpu",
        QUEUE,
        "What a queue's tasks hold.",
        |census, family| of_queues(census, family, |it| Some(it.allocated.cpu)),
    ),
    gauge(
        "queue_allocated_memory_bytes",
        QUEUE,
        "What a queue's tasks hold.",
        |census, family| of_queues(census, family, |it| Some(it.allocated.memory)),
    ),
    gauge(
        "queue_request_milli_cpu",
        QUEUE,
        "What a queue's tasks hold and want.",
        |census, family| of_queues(census, family, |it| Some(it.request.cpu)),
    ),
    gauge(
        "queue_request_memory_bytes",
        QUEUE,
        "What a queue's tasks hold and want.",
        |census, family| of_queues(census, family, |it| Some(it.request.memory)),
    ),
    gauge(
        "queue_deserved_milli_cpu",
        QUEUE,
        "What a queue should have.",
        |census, family| of_queues(census, family, |it| Some(it.deserved.cpu)),
    ),
    gauge(
        "queue_deserved_memory_bytes",
        QUEUE,
        "What a queue should have.",
        |census, family| of_queues(census, family, |it| Some(it.deserved.memory)),
    ),
    gauge(
        "queue_inqueue_milli_cpu",
        QUEUE,
        "What jobs of a queue were let in for and do not hold yet.",
        |census, family| of_queues(census, family, |it| Some(it.inqueue.cpu)),
    ),
    gauge(
        "queue_inqueue_memory_bytes",
        QUEUE,
        "What jobs of a queue were let in for and do not hold yet.",
        |census, family| of_queues(census, family, |it| Some(it.inqueue.memory)),
    ),
    gauge(
        "queue_capacity_milli_cpu",
        QUEUE,
        "A queue's own ceiling, where it has one.",
        |census, family| {
            of_queues(census, family, |it| {
                own(it).and_then(|it| it.cpu.and_then(ceiling))
            })
        },
    ),
    gauge(
        "queue_capacity_memory_bytes",
        QUEUE,
        "A queue's own ceiling, where it has one.",
        |census, family| {
            of_queues(census, family, |it| {
                own(it).and_then(|it| it.memory.and_then(ceiling))
            });
        },
    ),
    gauge(
        "queue_real_capacity_milli_cpu",
        QUEUE,
        "The ceiling that what others are guaranteed leaves a queue, where it has one.",
        |census, family| of_queues(census, family, |it| real(it).and_then(|it| it.cpu)),
    ),
    gauge(
        "queue_real_capacity_memory_bytes",
        QUEUE,
        "The ceiling that what others are guaranteed leaves a queue, where it has one.",
        |census, family| of_queues(census, family, |it| real(it).and_then(|it| it.memory)),
    ),
    gauge(
        "queue_share",
        QUEUE,
        "How much a queue has of what it should have, by the resource of which it has most.",
        |census, family| {
            queues(census, |it| {
                family.sample(&[&it.name], millionth(it.share));
            });
        },
    ),
    gauge(
        "queue_weight",
        QUEUE,
        "A queue's weight, where weights count.",
        |census, family| of_queues(census, family, |it| it.weight.map(i64::from)),
    ),
    gauge(
        "queue_overused",
        QUEUE,
        "1 where a queue has all that it should have, or more.",
        |census, family| of_queues(census, family, |it| Some(i64::from(it.is_overused))),
    ),
];

/// In thousandths, but pods in pieces.
const SCALARS: &[Row] = &[
    gauge(
        "queue_allocated_scalar_resources",
        AMOUNT,
        "What a queue's tasks hold of other resources.",
        |census, family| others_of_queues(census, family, |it| Some(&it.allocated.others)),
    ),
    gauge(
        "queue_request_scalar_resources",
        AMOUNT,
        "What a queue's tasks hold and want of other resources.",
        |census, family| others_of_queues(census, family, |it| Some(&it.request.others)),
    ),
    gauge(
        "queue_deserved_scalar_resources",
        AMOUNT,
        "What a queue should have of other resources.",
        |census, family| others_of_queues(census, family, |it| Some(&it.deserved.others)),
    ),
    gauge(
        "queue_inqueue_scalar_resources",
        AMOUNT,
        "What jobs of a queue were let in for of other resources.",
        |census, family| others_of_queues(census, family, |it| Some(&it.inqueue.others)),
    ),
    gauge(
        "queue_capacity_scalar_resources",
        AMOUNT,
        "A queue's own ceilings for other resources.",
        |census, family| others_of_queues(census, family, |it| own(it).map(|it| &it.others)),
    ),
    gauge(
        "queue_real_capacity_scalar_resources",
        AMOUNT,
        "The ceilings that what others are guaranteed leaves a queue, for other resources.",
        |census, family| others_of_queues(census, family, |it| real(it).map(|it| &it.others)),
    ),
];

const CARDS: &[Row] = &[
    gauge(
        "vgpu_device_shared_number",
        CARD,
        "How many hold a part of a card.",
        |census, family| cards(census, family, |it| it.users),
    ),
    gauge(
        "vgpu_device_allocated_memory",
        CARD,
        "How many MiB of a card are held.",
        |census, family| cards(census, family, |it| it.memory),
    ),
    gauge(
        "vgpu_device_allocated_cores",
        CARD,
        "How many percent of a card's cores are held.",
        |census, family| cards(census, family, |it| it.cores),
    ),
    gauge(
        "vgpu_device_memory_limit",
        CARD,
        "How many MiB a card has.",
        |census, family| cards(census, family, |it| it.memory_whole),
    ),
    gauge(
        "vgpu_device_memory_allocation_for_a_certain_pod",
        GRANT,
        "How many MiB of a card a pod holds; podName is its namespace and name.",
        |census, family| grants(census, family, |it| it.memory),
    ),
    gauge(
        "vgpu_device_core_allocation_for_a_certain_pod",
        GRANT,
        "How many percent of a card's cores a pod holds; podName is its namespace and name.",
        |census, family| grants(census, family, |it| it.cores),
    ),
];

fn cards(census: &Census, family: &mut Family<'_>, read: fn(&driver::census::CardFigures) -> i64) {
    figures(census, |figures| {
        for it in &figures.cards {
            family.sample(&[&it.card, &it.node], read(it));
        }
    });
}

fn grants(
    census: &Census,
    family: &mut Family<'_>,
    read: fn(&driver::census::GrantFigures) -> i64,
) {
    figures(census, |figures| {
        for it in &figures.grants {
            family.sample(&[&it.card, &it.node, &it.pod.to_string()], read(it));
        }
    });
}

const CONTROLLERS: &[Row] = &[
    timed(
        "controller_job_to_pod_creation_latency_milliseconds",
        &[],
        "From the making of a job to that of each of its pods.",
        |census, family| times(census, family, Timed::PodMade),
    ),
    counter(
        "job_completed_phase_count",
        &["job_name", "queue_name"],
        "How often a job has completed; job_name is its namespace and name.",
        |census, family| job_ends(census, family, |it| it.completed),
    ),
    counter(
        "job_failed_phase_count",
        &["job_name", "queue_name"],
        "How often a job has failed; job_name is its namespace and name.",
        |census, family| job_ends(census, family, |it| it.failed),
    ),
    // In the order of `GROUP_PHASES`.
    gauge(
        "queue_pod_group_completed_count",
        QUEUE,
        "How many groups of a queue are over.",
        |census, family| of_groups(census, family, 0),
    ),
    gauge(
        "queue_pod_group_inqueue_count",
        QUEUE,
        "How many groups of a queue were let in and do not run.",
        |census, family| of_groups(census, family, 1),
    ),
    gauge(
        "queue_pod_group_pending_count",
        QUEUE,
        "How many groups of a queue were not let in.",
        |census, family| of_groups(census, family, 2),
    ),
    gauge(
        "queue_pod_group_running_count",
        QUEUE,
        "How many groups of a queue run.",
        |census, family| of_groups(census, family, 3),
    ),
    gauge(
        "queue_pod_group_unknown_count",
        QUEUE,
        "How many groups of a queue run in part and lack room for the rest.",
        |census, family| of_groups(census, family, 4),
    ),
    counter(
        "jobflow_succeed_phase_count",
        &["jobflow_namespace"],
        "How many flows have succeeded.",
        |census, family| flow_ends(census, family, |it| it.0),
    ),
    counter(
        "jobflow_failed_phase_count",
        &["jobflow_namespace"],
        "How many flows have failed.",
        |census, family| flow_ends(census, family, |it| it.1),
    ),
];

fn job_ends(census: &Census, family: &mut Family<'_>, read: fn(&driver::census::JobEnds) -> u64) {
    for (key, ends) in &census.job_ends {
        let name = format!("{}/{}", key.namespace, key.name);
        if read(ends) > 0 {
            family.sample(&[&name, &ends.queue], read(ends));
        }
    }
}

fn flow_ends(census: &Census, family: &mut Family<'_>, read: fn((u64, u64)) -> u64) {
    for (namespace, ends) in &census.flow_ends {
        if read(*ends) > 0 {
            family.sample(&[namespace], read(*ends));
        }
    }
}
