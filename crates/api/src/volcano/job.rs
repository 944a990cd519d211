//! `batch.volcano.sh/v1alpha1` Job.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{CREATED_BY_TEMPLATE, NetworkTopology};
use crate::core::{PodTemplate, TextMap};
use crate::duration::Duration;
use crate::meta::ObjectMeta;
use crate::time::Time;

texts! {
    /// Where a job is in its life.
    pub enum JobPhase {
        /// Its pods wait for room.
        Pending = "Pending",
        /// Its pods are being stopped; it may be resumed.
        Aborting = "Aborting",
        /// Stopped; it may be resumed.
        Aborted = "Aborted",
        /// Enough of its pods run.
        Running = "Running",
        /// Its pods are being stopped to start again.
        Restarting = "Restarting",
        /// Its pods are being stopped; it will count as completed.
        Completing = "Completing",
        /// Ended well.
        Completed = "Completed",
        /// Its pods are being stopped for good.
        Terminating = "Terminating",
        /// Stopped for good.
        Terminated = "Terminated",
        /// Ended badly.
        Failed = "Failed",
    }
}

impl JobPhase {
    /// Whether it has ended for good: Completed, Failed or Terminated.
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated
        )
    }

    /// Whether nothing more will happen by itself: Completed, Failed, Terminated or Aborted.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated | JobPhase::Aborted
        )
    }
}

round_trip! {
    /// Volcano's Job.
    pub struct Job {
        /// `batch.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `Job`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: JobSpec,
        /// What is.
        pub status: JobStatus,
    }

    /// What a job wants.
    pub struct JobSpec {
        /// Who places its pods.
        pub scheduler_name: Box<str>,
        /// So many pods start together. Webhook default: the sum over its tasks.
        pub min_available: Option<i32>,
        /// Claims mounted into every pod.
        pub volumes: Vec<JobVolume>,
        /// Its tasks.
        pub tasks: Vec<Task>,
        /// What it does about events.
        pub policies: Vec<Policy>,
        /// Plugin → arguments. `None` and an empty map differ in defaulting.
        pub plugins: Option<BTreeMap<Box<str>, Option<Vec<Box<str>>>>>,
        /// How long it is thought to run.
        pub running_estimate: Option<Duration>,
        /// Its queue; `default` by schema.
        pub queue: Box<str>,
        /// Restarts before it fails; 3 by schema.
        pub max_retry: Option<i32>,
        /// Deleted so long after its end; `None` means never.
        pub ttl_seconds_after_finished: Option<i32>,
        /// Priority of its pods and gang.
        pub priority_class_name: Box<str>,
        /// So many pods must succeed.
        pub min_success: Option<i32>,
        /// How close together its pods must be.
        pub network_topology: Option<NetworkTopology>,
    }

    /// A claim mounted into every pod.
    pub struct JobVolume {
        /// Where.
        pub mount_path: Box<str>,
        /// An existing claim, or the name of the one to be made.
        pub volume_claim_name: Box<str>,
        /// The spec of a claim to be made.
        pub volume_claim: Option<Value>,
    }

    /// Pods of one kind.
    pub struct Task {
        /// Name. Webhook default: `default<index>`.
        pub name: Box<str>,
        /// How many; absent counts as 0.
        pub replicas: Option<i32>,
        /// So many start together. Webhook default: `replicas`.
        pub min_available: Option<i32>,
        /// What a pod is made from.
        pub template: Value,
        /// What it does about events; asked before the job's own.
        pub policies: Vec<Policy>,
        /// How its pods sit on NUMA nodes.
        pub topology_policy: Box<str>,
        /// Restarts of a pod before the task fails; −1 for no limit.
        pub max_retry: Option<i32>,
        /// Which tasks go first.
        pub depends_on: Option<DependsOn>,
        /// Gangs within the task.
        pub partition_policy: Option<PartitionPolicy>,
    }

    /// Which tasks go first.
    pub struct DependsOn {
        /// Their names.
        pub name: Vec<Box<str>>,
        /// `any` or `all` of them must be on.
        pub iteration: Box<str>,
    }

    /// Gangs within a task.
    pub struct PartitionPolicy {
        /// How many.
        pub total_partitions: i32,
        /// How many pods each.
        pub partition_size: i32,
        /// How close together the pods of one must be.
        pub network_topology: Option<NetworkTopology>,
        /// So many start together.
        pub min_partitions: Option<i32>,
    }

    /// What is to be done when something happens.
    pub struct Policy {
        /// One of [`super::BusAction`].
        pub action: Box<str>,
        /// One of [`super::BusEvent`].
        pub event: Box<str>,
        /// More of them.
        pub events: Vec<Box<str>>,
        /// Instead of events: a pod's exit code.
        pub exit_code: Option<i32>,
        /// Acts only so long after the event.
        pub timeout: Option<Duration>,
    }

    /// What a job is.
    pub struct JobStatus {
        /// Its phase.
        pub state: JobState,
        /// As in the spec.
        pub min_available: i32,
        /// Pods per task and phase.
        pub task_status_count: BTreeMap<Box<str>, TaskCount>,
        /// Waiting pods.
        pub pending: i32,
        /// Running pods.
        pub running: i32,
        /// Pods that ended well.
        pub succeeded: i32,
        /// Pods that ended badly.
        pub failed: i32,
        /// Pods being deleted.
        pub terminating: i32,
        /// Pods of which nothing is known.
        pub unknown: i32,
        /// Grows with every stop of the whole job; pods of older versions do not count.
        pub version: i32,
        /// Restarts so far.
        pub retry_count: i32,
        /// From start to end.
        pub running_duration: Option<Duration>,
        /// What is made for it, and the claims that it names: `volume-pvc-<claim>` → `<claim>`, `plugin-<name>` → `<name>`.
        pub controlled_resources: TextMap,
        /// Phases it was in, the latest last, each at most once.
        pub conditions: Vec<JobCondition>,
    }

    /// The phase of a job, and why.
    pub struct JobState {
        /// Phase.
        pub phase: JobPhase,
        /// One word.
        pub reason: Box<str>,
        /// A sentence.
        pub message: Box<str>,
        /// Since when.
        pub last_transition_time: Option<Time>,
    }

    /// Pods of one task.
    pub struct TaskCount {
        /// Pods per phase.
        pub phase: BTreeMap<Box<str>, i32>,
    }

    /// A phase that a job was in.
    pub struct JobCondition {
        /// The phase.
        pub status: JobPhase,
        /// Since when.
        pub last_transition_time: Option<Time>,
    }
}

impl TaskCount {
    /// How many pods it has, in whatever phases.
    pub fn pods(&self) -> i64 {
        self.phase.values().map(|count| i64::from(*count)).sum()
    }
}

impl Job {
    /// The JobTemplate of its namespace that it was made from, as its annotation says, or its label.
    pub fn template(&self) -> Option<&str> {
        let meta = &self.metadata;
        let said = meta.annotations.get(CREATED_BY_TEMPLATE);
        let said = said.or_else(|| meta.labels.get(CREATED_BY_TEMPLATE))?;
        // Names of namespaces have no dots, those of templates may.
        let (namespace, name) = said.split_once('.')?;
        (*namespace == *meta.namespace).then_some(name)
    }
}

impl Task {
    /// The typed view of the template.
    pub fn template(&self) -> Result<PodTemplate, serde_json::Error> {
        serde::Deserialize::deserialize(&self.template)
    }

    /// How many pods are wanted.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(0)
    }

    /// How many pods must start together: all where nothing is said.
    pub fn min_available(&self) -> i32 {
        self.min_available.unwrap_or(self.replicas())
    }
}

impl JobSpec {
    /// Pods of all tasks, without overflow.
    pub fn replicas(&self) -> i64 {
        self.tasks
            .iter()
            .map(|task| i64::from(task.replicas()))
            .sum()
    }

    /// The gang size, 0 where nothing is said.
    pub fn min_available(&self) -> i32 {
        self.min_available.unwrap_or(0)
    }

    /// Whether this plugin is asked for.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.plugins
            .as_ref()
            .is_some_and(|plugins| plugins.contains_key(name))
    }

    /// The plugins with their arguments, sorted by name.
    pub fn plugins(&self) -> impl Iterator<Item = (&str, &[Box<str>])> {
        self.plugins
            .iter()
            .flatten()
            .map(|(name, arguments)| (&**name, arguments.as_deref().unwrap_or_default()))
    }
}

impl Policy {
    /// All events that it names.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        let single = (!self.event.is_empty()).then_some(&*self.event);
        single
            .into_iter()
            .chain(self.events.iter().map(|event| &**event))
    }
}
