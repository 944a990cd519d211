//! What the last kill of a vcjob was aimed at, kept in its status so that it outlives us.
//!
//! A restart is decided by one status write, which raises the retry count (and, for the whole
//! job, the version) and names the target. Pods carry both numbers of the time of their creation,
//! so every later step can tell the pods that must go from those that came after.

use api::core::PodPhase;
use api::volcano::{JobPhase, JobStatus};

use super::roster::{Member, retry_of, version_of};

/// Key in `status.controlledResources` under which the last kill stands.
pub(super) const LAST_KILL: &str = "katmai.dev/last-kill";

/// The last kill's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LastKill {
    /// None, or one that spares nothing that is alive and nothing else.
    None,
    /// Every pod of a former version.
    Job,
    /// Pods of a former version that have not ended.
    Unfinished,
    /// Pods of a former version that have not ended well.
    Unsuccessful,
    /// Pods of one task.
    Task(Box<str>),
    /// One pod.
    Pod(Box<str>),
    /// Pods of one partition of a task.
    Partition(Box<str>, Box<str>),
}

impl LastKill {
    /// Reads it from a status.
    pub(super) fn of(status: &JobStatus) -> LastKill {
        let Some(text) = status.controlled_resources.get(LAST_KILL) else {
            return LastKill::None;
        };
        let mut parts = text.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("Job"), None, None) => LastKill::Job,
            (Some("Unfinished"), None, None) => LastKill::Unfinished,
            (Some("Unsuccessful"), None, None) => LastKill::Unsuccessful,
            (Some("Task"), Some(task), None) => LastKill::Task(task.into()),
            (Some("Pod"), Some(pod), None) => LastKill::Pod(pod.into()),
            (Some("Partition"), Some(task), Some(id)) => {
                LastKill::Partition(task.into(), id.into())
            }
            _ => LastKill::None,
        }
    }

    /// How it is written.
    pub(super) fn text(&self) -> String {
        match self {
            LastKill::None => String::new(),
            LastKill::Job => "Job".to_owned(),
            LastKill::Unfinished => "Unfinished".to_owned(),
            LastKill::Unsuccessful => "Unsuccessful".to_owned(),
            LastKill::Task(task) => format!("Task/{task}"),
            LastKill::Pod(pod) => format!("Pod/{pod}"),
            LastKill::Partition(task, id) => format!("Partition/{task}/{id}"),
        }
    }

    /// Whether the whole job is its target.
    pub(super) fn is_whole(&self) -> bool {
        matches!(
            self,
            LastKill::Job | LastKill::Unfinished | LastKill::Unsuccessful
        )
    }

    /// Whether it aims at this pod, were it decided now.
    pub(super) fn aims_at(&self, member: &Member) -> bool {
        match self {
            LastKill::None => false,
            LastKill::Job => true,
            LastKill::Unfinished => !member.pod.is_finished(),
            LastKill::Unsuccessful => member.pod.status.phase != PodPhase::Succeeded,
            LastKill::Task(task) => member.task == *task,
            LastKill::Pod(pod) => member.pod.metadata.name == *pod,
            LastKill::Partition(task, id) => {
                member.task == *task && member.partition() == Some(&**id)
            }
        }
    }

    /// Whether it was aimed at the pod of this name, task and partition by one of them.
    pub(super) fn names(&self, of_task: &str, name: &str, part: Option<&str>) -> bool {
        match self {
            LastKill::Task(task) => **task == *of_task,
            LastKill::Pod(pod) => **pod == *name,
            LastKill::Partition(task, id) => **task == *of_task && part == Some(&**id),
            _ => false,
        }
    }

    /// Whether a pod must go because of it: it is aimed at and older than the decision.
    pub(super) fn takes(&self, status: &JobStatus, member: &Member) -> bool {
        let is_older = if self.is_whole() {
            version_of(&member.pod) < status.version
        } else {
            retry_of(&member.pod) < status.retry_count
        };
        is_older && self.aims_at(member)
    }
}

/// Phases in which everything that has not ended is killed.
pub(super) fn is_killing(phase: JobPhase) -> bool {
    matches!(
        phase,
        JobPhase::Aborting
            | JobPhase::Aborted
            | JobPhase::Completing
            | JobPhase::Completed
            | JobPhase::Terminating
            | JobPhase::Terminated
            | JobPhase::Failed
    )
}
