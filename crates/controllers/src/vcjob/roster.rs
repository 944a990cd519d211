//! The pods of a vcjob as they are, sorted by what they mean for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::volcano::{
    JOB_RETRY_COUNT, JOB_VERSION, Job, JobStatus, OUT_OF_SYNC, PARTITION_ID, TASK_INDEX, TASK_SPEC,
};

use super::dependants::Dependants;
use super::pods;
use super::restart::{LastKill, is_killing};

/// What a pod of the job is to it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Counts, and what happens to it matters.
    Current,
    /// Counts, but belongs to a former version: finished pods that a kill has kept.
    Former,
    /// Must be deleted: a kill, or a smaller task.
    Victim,
    /// Is being deleted already.
    Leaving,
}

/// One pod.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The pod.
    pub(super) pod: Arc<Pod>,
    /// Its task's name.
    pub(super) task: Box<str>,
    /// Its index within the task.
    pub(super) index: u32,
    /// What it is to the job.
    pub(super) standing: Standing,
    /// Whether it is a victim of no kill: its task shrank, or somebody has marked it as out of sync.
    pub(super) goes_alone: bool,
    /// Whether somebody has marked it as out of sync: its going is nothing that happened to the job.
    pub(super) is_marked: bool,
}

/// All pods of the job, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    /// The pods.
    pub(super) members: Vec<Member>,
    /// Positions of the members, those of one task side by side.
    by_task: Vec<usize>,
}

/// How many pods there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Waiting for a node or its start.
    pub(super) pending: i32,
    /// Running.
    pub(super) running: i32,
    /// Ended well.
    pub(super) succeeded: i32,
    /// Ended badly.
    pub(super) failed: i32,
    /// Being deleted, or about to be.
    pub(super) terminating: i32,
    /// Out of the node's sight.
    pub(super) unknown: i32,
}

impl Counts {
    /// Pods that have not ended.
    pub(super) fn alive(&self) -> i32 {
        self.pending + self.running + self.terminating + self.unknown
    }
}

impl Roster {
    /// Reads the job's pods under a status, which says whom the last kill takes.
    pub(super) fn read(dependants: &Dependants<'_>, job: &Job, status: &JobStatus) -> Roster {
        let replicas: BTreeMap<&str, i64> = job
            .spec
            .tasks
            .iter()
            .map(|task| (&*task.name, i64::from(task.replicas())))
            .collect();
        let kill = LastKill::of(status);
        // What has ended stays, however the job is changed afterwards.
        let is_over = is_killing(status.state.phase);
        let members: Vec<Member> = dependants
            .pods()
            .filter_map(|pod| {
                let mut member = Member::read(job, pod)?;
                let wanted = replicas.get(&*member.task).copied().unwrap_or(0);
                let is_surplus = i64::from(member.index) >= wanted;
                member.standing = if pod.is_terminating() {
                    Standing::Leaving
                } else if is_killed(status, &kill, &member) {
                    Standing::Victim
                } else if !is_over && (is_surplus || member.is_marked) {
                    member.goes_alone = true;
                    Standing::Victim
                } else if version_of(pod) < status.version {
                    Standing::Former
                } else {
                    Standing::Current
                };
                Some(member)
            })
            .collect();
        let mut by_task: Vec<usize> = (0..members.len()).collect();
        by_task.sort_by(|one, other| members[*one].task.cmp(&members[*other].task));
        Roster { members, by_task }
    }

    /// The pods of one task.
    pub(super) fn of_task(&self, task: &str) -> impl Iterator<Item = &Member> {
        let of_task = |position: &usize| &*self.members[*position].task;
        let start = self.by_task.partition_point(|it| of_task(it) < task);
        let rest = &self.by_task[start..];
        let end = rest.partition_point(|it| of_task(it) == task);
        rest[..end].iter().map(|position| &self.members[*position])
    }

    /// Pods that count, with those of former versions.
    pub(super) fn counting(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.counts())
    }

    /// Pods whose fate matters to policies.
    pub(super) fn current(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.standing == Standing::Current)
    }

    /// Pods to be deleted.
    pub(super) fn victims(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.standing == Standing::Victim)
    }

    /// The job's counters.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for member in &self.members {
            let counter = match (member.standing, member.pod.status.phase) {
                (Standing::Victim | Standing::Leaving, _) => &mut counts.terminating,
                (_, PodPhase::Unset | PodPhase::Pending) => &mut counts.pending,
                (_, PodPhase::Running) => &mut counts.running,
                (_, PodPhase::Succeeded) => &mut counts.succeeded,
                (_, PodPhase::Failed) => &mut counts.failed,
                (_, PodPhase::Unknown) => &mut counts.unknown,
            };
            *counter += 1;
        }
        counts
    }

    /// Per task and phase, how many pods count.
    pub(super) fn task_counts(&self) -> BTreeMap<Box<str>, BTreeMap<Box<str>, i32>> {
        let mut tasks: BTreeMap<Box<str>, BTreeMap<Box<str>, i32>> = BTreeMap::new();
        for member in self.counting() {
            let phase = match member.pod.status.phase {
                PodPhase::Unset => PodPhase::Pending,
                phase => phase,
            };
            *tasks
                .entry(member.task.clone())
                .or_default()
                .entry(phase.text().into())
                .or_default() += 1;
        }
        tasks
    }

    /// Indices of a task under which a pod exists, in whatever state, in order.
    pub(super) fn taken(&self, task: &str) -> Vec<u32> {
        let mut taken: Vec<u32> = self.of_task(task).map(|member| member.index).collect();
        taken.sort_unstable();
        taken
    }
}

impl Member {
    /// Reads a pod that names the job's uid among its owners; `None` where it is a stranger's all the
    /// same. Anybody in the namespace can write that reference: a pod is the job's if the job
    /// controls it and it bears the name that the job gives, by its marks or, where somebody has
    /// taken those away, for one of its tasks.
    fn read(job: &Job, pod: &Arc<Pod>) -> Option<Member> {
        let meta = &pod.metadata;
        if meta.namespace != job.metadata.namespace || !meta.is_controlled_by(&job.metadata.uid) {
            return None;
        }
        let mark = meta.annotations.get(OUT_OF_SYNC);
        let (task, index) = of_marks(job, pod).or_else(|| of_name(job, pod))?;
        Some(Member {
            task,
            index,
            standing: Standing::Current,
            goes_alone: false,
            is_marked: mark.is_some_and(|text| &**text == "true"),
            pod: Arc::clone(pod),
        })
    }

    /// Whether it stands in the job's counters other than as terminating.
    pub(super) fn counts(&self) -> bool {
        matches!(self.standing, Standing::Current | Standing::Former)
    }

    /// The partition label of the pod.
    pub(super) fn partition(&self) -> Option<&str> {
        let label = self.pod.metadata.labels.get(PARTITION_ID);
        label.map(|text| &**text)
    }
}

/// Task and index by the pod's annotations or labels, if its name is that of such a pod.
fn of_marks(job: &Job, pod: &Pod) -> Option<(Box<str>, u32)> {
    let meta = &pod.metadata;
    let mark = |name: &str| meta.annotations.get(name).or_else(|| meta.labels.get(name));
    let task = mark(TASK_SPEC)?;
    let index = mark(TASK_INDEX)?.parse().ok()?;
    pods::is_named(&meta.name, job, task, index).then(|| ((&**task).into(), index))
}

/// Task and index by the pod's name, if it is that of a pod that the job wants.
fn of_name(job: &Job, pod: &Pod) -> Option<(Box<str>, u32)> {
    job.spec.tasks.iter().find_map(|task| {
        let index = pods::index_of(job, task, &pod.metadata.name)?;
        (i64::from(index) < i64::from(task.replicas())).then(|| (task.name.clone(), index))
    })
}

/// The job's version at the pod's creation.
pub(super) fn version_of(pod: &Pod) -> i32 {
    number(pod, JOB_VERSION)
}

/// The job's retry count at the pod's creation.
pub(super) fn retry_of(pod: &Pod) -> i32 {
    number(pod, JOB_RETRY_COUNT)
}

fn number(pod: &Pod, annotation: &str) -> i32 {
    let text = pod.metadata.annotations.get(annotation);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn is_killed(status: &JobStatus, kill: &LastKill, member: &Member) -> bool {
    if is_killing(status.state.phase) {
        return !member.pod.is_finished();
    }
    kill.takes(status, member)
}

/// Whether all containers of a pod are ready. One that says nothing of them has none that is.
pub(super) fn has_ready_containers(pod: &Pod) -> bool {
    let statuses = &pod.status.container_statuses;
    !statuses.is_empty() && statuses.iter().all(|status| status.ready)
}

/// What of a pod can matter to its job: where it runs does not, but by which address it is reached.
pub(super) fn facts(pod: &Pod) -> (PodPhase, bool, bool, i64, bool, &str, Option<&str>) {
    let status = &pod.status;
    let restarts = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses);
    (
        status.phase,
        pod.is_terminating(),
        pod.metadata.annotations.contains_key(OUT_OF_SYNC),
        restarts.map(|status| i64::from(status.restart_count)).sum(),
        has_ready_containers(pod),
        &status.pod_ip,
        pod.metadata.controller().map(|owner| &*owner.uid),
    )
}
