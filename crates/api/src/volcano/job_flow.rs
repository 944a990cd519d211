//! `flow.volcano.sh/v1alpha1` JobFlow and JobTemplate.

use std::collections::BTreeMap;

use super::TaskCount;
use crate::duration::Duration;
use crate::meta::ObjectMeta;
use crate::raw::RawJson;
use crate::time::Time;

texts! {
    /// Where a flow is in its life.
    pub enum FlowPhase {
        /// All of its jobs have completed.
        Succeed = "Succeed",
        /// It is being taken down.
        Terminating = "Terminating",
        /// One of its jobs has failed or was terminated; no other one is made.
        Failed = "Failed",
        /// One of its jobs runs or has completed.
        Running = "Running",
        /// None of its jobs has started.
        Pending = "Pending",
    }
}

texts! {
    /// What becomes of the jobs of a flow that has succeeded.
    pub enum RetainPolicy {
        /// They stay.
        Retain = "retain",
        /// They are deleted.
        Delete = "delete",
    }
}

read_only! {
    /// Jobs that come one after the other.
    pub struct JobFlow {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: JobFlowSpec,
        /// What is.
        pub status: JobFlowStatus,
    }

    /// What a flow wants.
    pub struct JobFlowSpec {
        /// Its jobs.
        pub flows: Vec<Flow>,
        /// What becomes of them after a success; they stay where nothing is said.
        pub job_retain_policy: RetainPolicy,
    }

    /// One job of a flow.
    pub struct Flow {
        /// The JobTemplate of the same namespace that it is made from.
        pub name: Box<str>,
        /// Which others come first.
        pub depends_on: Option<FlowDependsOn>,
        /// What differs from the template.
        pub patch: Option<FlowPatch>,
    }

    /// Which jobs come first.
    pub struct FlowDependsOn {
        /// Names of flows.
        pub targets: Vec<Box<str>>,
        /// Until when they are waited for; their completion, where nothing is said.
        pub probe: Option<FlowProbe>,
    }

    /// Until when the targets are waited for.
    pub struct FlowProbe {
        /// Requests that must be answered.
        pub http_get_list: Vec<HttpProbe>,
        /// Ports that must be open.
        pub tcp_socket_list: Vec<TcpProbe>,
        /// Phases that tasks must have reached.
        pub task_status_list: Vec<TaskProbe>,
    }

    /// A request to the pods of a task.
    pub struct HttpProbe {
        /// Which task.
        pub task_name: Box<str>,
        /// Path of the request.
        pub path: Box<str>,
        /// Port.
        pub port: i32,
        /// A header field of the request.
        pub http_header: Option<HttpHeader>,
    }

    /// A header field.
    pub struct HttpHeader {
        /// Its name.
        pub name: Box<str>,
        /// What it says.
        pub value: Box<str>,
    }

    /// A port of the pods of a task.
    pub struct TcpProbe {
        /// Which task.
        pub task_name: Box<str>,
        /// Port.
        pub port: i32,
    }

    /// A phase that the pods of a task must have reached.
    pub struct TaskProbe {
        /// Which task.
        pub task_name: Box<str>,
        /// A pod's phase.
        pub phase: Box<str>,
    }

    /// What differs from the template.
    pub struct FlowPatch {
        /// Fields of a job's spec.
        pub job_spec: RawJson,
    }

    /// What a flow is. Every job that was made is in exactly one of the lists of names.
    pub struct JobFlowStatus {
        /// Jobs that wait.
        pub pending_jobs: Vec<Box<str>>,
        /// Jobs that run.
        pub running_jobs: Vec<Box<str>>,
        /// Jobs that have failed.
        pub failed_jobs: Vec<Box<str>>,
        /// Jobs that have completed.
        pub completed_jobs: Vec<Box<str>>,
        /// Jobs that were terminated.
        pub terminated_jobs: Vec<Box<str>>,
        /// Jobs in any other phase. The name is upstream's.
        pub un_know_jobs: Vec<Box<str>>,
        /// What was seen of each job.
        pub job_status_list: Vec<FlowJobStatus>,
        /// The same, by the name of the job.
        pub conditions: BTreeMap<Box<str>, FlowCondition>,
        /// The phase.
        pub state: FlowState,
    }

    /// The phase of a flow.
    pub struct FlowState {
        /// Phase.
        pub phase: FlowPhase,
    }

    /// What was seen of a job of a flow.
    pub struct FlowJobStatus {
        /// The job.
        pub name: Box<str>,
        /// Its phase.
        pub state: Box<str>,
        /// When it was made.
        pub start_timestamp: Option<Time>,
        /// When it ended.
        pub end_timestamp: Option<Time>,
        /// How often it was restarted.
        pub restart_count: i32,
        /// The phases it was in.
        pub running_histories: Vec<FlowHistory>,
    }

    /// A phase that a job of a flow was in.
    pub struct FlowHistory {
        /// Since when.
        pub start_timestamp: Option<Time>,
        /// Until when.
        pub end_timestamp: Option<Time>,
        /// The phase.
        pub state: Box<str>,
    }

    /// What was seen of a job of a flow.
    pub struct FlowCondition {
        /// Its phase.
        pub phase: Box<str>,
        /// When it was made.
        pub create_time: Option<Time>,
        /// How long it ran.
        pub running_duration: Option<Duration>,
        /// Its pods per task and phase.
        pub task_status_count: BTreeMap<Box<str>, TaskCount>,
    }

    /// What jobs of a flow are made from.
    pub struct JobTemplate {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// A job's spec.
        pub spec: RawJson,
        /// What is.
        pub status: JobTemplateStatus,
    }

    /// What a template is.
    pub struct JobTemplateStatus {
        /// Jobs that were made from it.
        pub job_depends_on_list: Vec<Box<str>>,
    }
}

impl Flow {
    /// The flows that come first.
    pub fn targets(&self) -> &[Box<str>] {
        self.depends_on
            .as_ref()
            .map_or(&[], |depends_on| &depends_on.targets)
    }

    /// What the targets must have reached, where it is not their completion.
    pub fn probe(&self) -> Option<&FlowProbe> {
        self.depends_on.as_ref()?.probe.as_ref()
    }
}
