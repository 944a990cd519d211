//! `batch/v1` Job and CronJob, as much of them as our rooms read.

use crate::core::{DatedCondition, ObjectReference, PodTemplate};
use crate::meta::ObjectMeta;
use crate::raw::RawJson;
use crate::selector::LabelSelector;
use crate::time::Time;

read_only! {
    /// `batch/v1` Job.
    pub struct Job {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: JobSpec,
        /// What is.
        pub status: JobStatus,
    }

    /// What a batch job wants.
    pub struct JobSpec {
        /// Pods at a time; 1 by default.
        pub parallelism: Option<i32>,
        /// Successes wanted; `None` means any one success ends it.
        pub completions: Option<i32>,
        /// Greatest run time.
        pub active_deadline_seconds: Option<i64>,
        /// Rules on failed pods.
        pub pod_failure_policy: Option<PodFailurePolicy>,
        /// Rules on early success.
        pub success_policy: Option<SuccessPolicy>,
        /// Failures before it fails; 6 by default.
        pub backoff_limit: Option<i32>,
        /// Failures of one index before that index fails.
        pub backoff_limit_per_index: Option<i32>,
        /// Failed indexes before the job fails.
        pub max_failed_indexes: Option<i32>,
        /// Its pods.
        pub selector: Option<LabelSelector>,
        /// The selector is the user's own.
        pub manual_selector: Option<bool>,
        /// What a pod is made from.
        pub template: RawJson,
        /// Deleted so long after its end.
        pub ttl_seconds_after_finished: Option<i32>,
        /// `NonIndexed` (default) or `Indexed`.
        pub completion_mode: Option<Box<str>>,
        /// No pods while true.
        pub suspend: Option<bool>,
        /// `TerminatingOrFailed` (default) or `Failed`.
        pub pod_replacement_policy: Option<Box<str>>,
        /// Another controller's job, if named and not Kubernetes' own.
        pub managed_by: Option<Box<str>>,
    }

    /// Rules on failed pods; the first that matches wins.
    pub struct PodFailurePolicy {
        /// The rules.
        pub rules: Vec<PodFailureRule>,
    }

    /// One rule on failed pods.
    pub struct PodFailureRule {
        /// `FailJob`, `FailIndex`, `Ignore` or `Count`.
        pub action: Box<str>,
        /// On exit codes.
        pub on_exit_codes: Option<ExitCodes>,
        /// On conditions of the pod.
        pub on_pod_conditions: Vec<PodConditionPattern>,
    }

    /// Which exit codes.
    pub struct ExitCodes {
        /// Of this container; of any if `None`.
        pub container_name: Option<Box<str>>,
        /// `In` or `NotIn`.
        pub operator: Box<str>,
        /// The codes.
        pub values: Vec<i32>,
    }

    /// Which condition of a pod.
    pub struct PodConditionPattern {
        /// Its type.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Its status; `True` if empty.
        pub status: Box<str>,
    }

    /// Rules on early success.
    pub struct SuccessPolicy {
        /// Alternatives.
        pub rules: Vec<SuccessRule>,
    }

    /// One rule on early success.
    pub struct SuccessRule {
        /// These indexes must succeed, `0,2-4`.
        pub succeeded_indexes: Option<Box<str>>,
        /// So many must succeed.
        pub succeeded_count: Option<i32>,
    }

    /// What a batch job is.
    pub struct JobStatus {
        /// `Complete`, `Failed`, `Suspended`, `FailureTarget`, `SuccessCriteriaMet`.
        pub conditions: Vec<DatedCondition>,
        /// When it (re)started.
        pub start_time: Option<Time>,
        /// When it completed.
        pub completion_time: Option<Time>,
        /// Pods that neither ended nor are being deleted.
        pub active: i32,
        /// Successes.
        pub succeeded: i32,
        /// Failures.
        pub failed: i32,
        /// Pods being deleted.
        pub terminating: Option<i32>,
        /// `0,2-4`.
        pub completed_indexes: Box<str>,
        /// `0,2-4`.
        pub failed_indexes: Option<Box<str>>,
        /// Pods that ended and are not yet counted.
        pub uncounted_terminated_pods: Option<UncountedPods>,
        /// Pods that are ready.
        pub ready: Option<i32>,
    }

    /// Pods by uid that ended and are not yet counted.
    pub struct UncountedPods {
        /// Successes.
        pub succeeded: Vec<Box<str>>,
        /// Failures.
        pub failed: Vec<Box<str>>,
    }

    /// `batch/v1` CronJob.
    pub struct CronJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CronJobSpec,
        /// What is.
        pub status: CronJobStatus,
    }

    /// What a CronJob wants.
    pub struct CronJobSpec {
        /// When.
        pub schedule: Box<str>,
        /// Whose clock; the plane's (UTC) if `None`.
        pub time_zone: Option<Box<str>>,
        /// A start so late is not made up for.
        pub starting_deadline_seconds: Option<i64>,
        /// `Allow` (also when empty), `Forbid` or `Replace`.
        pub concurrency_policy: Box<str>,
        /// No starts while true.
        pub suspend: Option<bool>,
        /// What a job is made from.
        pub job_template: RawJson,
        /// Successful jobs that are kept; 3 by default.
        pub successful_jobs_history_limit: Option<i32>,
        /// Failed jobs that are kept; 1 by default.
        pub failed_jobs_history_limit: Option<i32>,
    }

    /// What a CronJob is.
    pub struct CronJobStatus {
        /// Jobs that have not ended.
        pub active: Vec<ObjectReference>,
        /// The last time for which a job was made.
        pub last_schedule_time: Option<Time>,
        /// When a job last completed.
        pub last_successful_time: Option<Time>,
    }
}

impl JobSpec {
    /// The typed view of the template.
    pub fn template(&self) -> Result<PodTemplate, serde_json::Error> {
        self.template.read()
    }
}

impl Job {
    /// Whether it has completed or failed.
    pub fn is_finished(&self) -> bool {
        self.status.conditions.iter().any(|condition| {
            matches!(&*condition.kind, "Complete" | "Failed") && &*condition.status == "True"
        })
    }
}
