//! The pods of a vcjob as they are, sorted by what they mean for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::{Pod, PodPhase};
use api::volcano::{
    JOB_RETRY_COUNT, JOB_VERSION, Job, JobStatus, OUT_OF_SYNC, PARTITION_ID, TASK_INDEX, TASK_SPEC,
};
use mirror::Mirror;

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
    /// Its index; `None` where the label is no number.
    pub(super) index: Option<u32>,
    /// What it is to the job.
    pub(super) standing: Standing,
    /// Whether it is a victim only because the task shrank.
    pub(super) is_surplus: bool,
}

/// All pods of the job, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    /// The pods.
    pub(super) members: Vec<Member>,
    /// Positions of the members of each task.
    tasks: BTreeMap<Box<str>, Vec<usize>>,
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
    pub(super) fn read(mirror: &Mirror, job: &Job, status: &JobStatus) -> Roster {
        let replicas: BTreeMap<&str, i64> = job
            .spec
            .tasks
            .iter()
            .map(|task| (&*task.name, i64::from(task.replicas())))
            .collect();
        let kill = LastKill::of(status);
        let members: Vec<Member> = mirror
            .owned_by::<Pod>(&job.metadata.uid)
            .map(|pod| {
                let mut member = Member::read(pod);
                let is_surplus = member.index.is_none_or(|index| {
                    replicas
                        .get(&*member.task)
                        .is_none_or(|replicas| i64::from(index) >= *replicas)
                });
                member.standing = if pod.is_terminating() {
                    Standing::Leaving
                } else if is_victim(status, &kill, &member) {
                    Standing::Victim
                } else if is_surplus {
                    member.is_surplus = true;
                    Standing::Victim
                } else if version_of(pod) < status.version {
                    Standing::Former
                } else {
                    Standing::Current
                };
                member
            })
            .collect();
        let mut tasks: BTreeMap<Box<str>, Vec<usize>> = BTreeMap::new();
        for (position, member) in members.iter().enumerate() {
            tasks.entry(member.task.clone()).or_default().push(position);
        }
        Roster { members, tasks }
    }

    /// The pods of one task.
    pub(super) fn of_task(&self, task: &str) -> impl Iterator<Item = &Member> {
        let positions = self.tasks.get(task).into_iter().flatten();
        positions.map(|position| &self.members[*position])
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

    /// Indices of a task under which a pod exists, in whatever state.
    pub(super) fn taken(&self, task: &str) -> BTreeSet<u32> {
        self.of_task(task)
            .filter_map(|member| member.index)
            .collect()
    }
}

impl Member {
    fn read(pod: &Arc<Pod>) -> Member {
        let annotation = |name: &str| {
            pod.metadata
                .annotations
                .get(name)
                .or_else(|| pod.metadata.labels.get(name))
        };
        Member {
            task: annotation(TASK_SPEC)
                .cloned()
                .unwrap_or_else(|| "default".into()),
            index: annotation(TASK_INDEX).and_then(|text| text.parse().ok()),
            standing: Standing::Current,
            is_surplus: false,
            pod: Arc::clone(pod),
        }
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

fn is_victim(status: &JobStatus, kill: &LastKill, member: &Member) -> bool {
    if member
        .pod
        .metadata
        .annotations
        .get(OUT_OF_SYNC)
        .is_some_and(|text| &**text == "true")
    {
        return true;
    }
    if is_killing(status.state.phase) {
        return !member.pod.is_finished();
    }
    kill.takes(status, member)
}

/// What of a pod can matter to its job: where it runs does not.
pub(super) fn facts(pod: &Pod) -> (PodPhase, bool, bool, i64, bool) {
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
        status.container_statuses.iter().all(|status| status.ready),
    )
}
