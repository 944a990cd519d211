//! Volcano's kinds: Job, CronJob, JobFlow, JobTemplate, HyperNode, NodeShard, Numatopology,
//! ColocationConfiguration, Queue, PodGroup and Command; and HyperJob, DataSource and
//! DataSourceClaim, which are shapes only. Those of which more than the status is written back keep
//! unknown fields in `rest`, and fields whose absence means something are `Option`s.
//!
//! Source: `specs/volcano.md`, sections 1.2 to 1.14.

mod card_keys;
pub mod chip_devices;
mod colocation;
mod cron_job;
mod data_source;
pub mod device_config;
mod discovery_conf;
mod hyper_job;
mod hyper_node;
mod job;
mod job_flow;
mod job_plugins;
mod keys;
mod member_pattern;
mod numatopology;
mod podgroup;
mod queue;
pub mod scheduler_conf;
mod shard;
mod shard_conf;

pub use card_keys::*;
pub use colocation::*;
pub use cron_job::*;
pub use data_source::*;
pub use discovery_conf::*;
pub use hyper_job::*;
pub use hyper_node::*;
pub use job::*;
pub use job_flow::*;
pub use job_plugins::*;
pub use keys::*;
pub use member_pattern::*;
pub use numatopology::*;
pub use podgroup::*;
pub use queue::*;
pub use shard::*;
pub use shard_conf::*;

use crate::intent::ObjectKey;
use crate::kind::Kind;
use crate::meta::{ObjectMeta, OwnerReference};

/// The queue of jobs and gangs that name none.
pub const DEFAULT_QUEUE: &str = "default";
/// The queue above all others.
pub const ROOT_QUEUE: &str = "root";
/// The scheduler's own name.
pub const SCHEDULER_NAME: &str = "volcano";
/// Annotation of a PodGroup with the scheduler whose pods it will have; one that has none is for
/// Volcano's.
pub const SCHEDULER: &str = "katmai.dev/scheduler-name";
/// The task name of pods that state none.
pub const DEFAULT_TASK: &str = "default";

round_trip! {
    /// `bus.volcano.sh/v1alpha1` Command: one instruction, deleted before it is carried out.
    pub struct Command {
        /// `bus.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `Command`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// An action such as `AbortJob` or `OpenQueue`.
        pub action: Box<str>,
        /// Whom it is for.
        pub target: Option<OwnerReference>,
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
    }
}

impl Command {
    /// The job or queue that it is for, by name; `None` where it is for neither. A job is one of its own
    /// namespace: who may write commands in one namespace has no say in another.
    pub fn addressee(&self) -> Option<ObjectKey> {
        let target = self.target.as_ref()?;
        let kind = Kind::find(&target.api_version, &target.kind)?;
        let namespace = match kind {
            Kind::VcJob => &*self.metadata.namespace,
            Kind::Queue => "",
            _ => return None,
        };
        Some(ObjectKey::new(kind, namespace, &target.name))
    }
}

texts! {
    /// What may be done to a job, by policy or command, or to a queue, by command.
    pub enum BusAction {
        /// Stops the job; it can be resumed.
        AbortJob = "AbortJob",
        /// Stops all pods and starts again.
        RestartJob = "RestartJob",
        /// Stops the pods of one task and starts them again.
        RestartTask = "RestartTask",
        /// Stops one pod and starts it again.
        RestartPod = "RestartPod",
        /// Stops the pods of one partition and starts them again.
        RestartPartition = "RestartPartition",
        /// Stops the job for good.
        TerminateJob = "TerminateJob",
        /// Ends the job as completed.
        CompleteJob = "CompleteJob",
        /// Starts an aborted job again.
        ResumeJob = "ResumeJob",
        /// Internal: looks at the job.
        SyncJob = "SyncJob",
        /// Internal: the job may enter.
        EnqueueJob = "EnqueueJob",
        /// Internal: looks at the queue.
        SyncQueue = "SyncQueue",
        /// Lets a queue take jobs.
        OpenQueue = "OpenQueue",
        /// Lets a queue run empty.
        CloseQueue = "CloseQueue",
    }
}

texts! {
    /// What a policy may answer to.
    pub enum BusEvent {
        /// Any of those that a policy may name.
        Any = "*",
        /// A pod waits; matches only with a timeout.
        PodPending = "PodPending",
        /// Internal: a pod runs.
        PodRunning = "PodRunning",
        /// A pod failed.
        PodFailed = "PodFailed",
        /// A pod was evicted or deleted.
        PodEvicted = "PodEvicted",
        /// The gang is no longer whole.
        Unknown = "Unknown",
        /// All pods of a task succeeded.
        TaskCompleted = "TaskCompleted",
        /// Internal: a pod is not what it should be.
        OutOfSync = "OutOfSync",
        /// Internal: a command came.
        CommandIssued = "CommandIssued",
        /// Accepted in policies; nothing says it.
        JobUpdated = "JobUpdated",
        /// A task used up its retries.
        TaskFailed = "TaskFailed",
    }
}
