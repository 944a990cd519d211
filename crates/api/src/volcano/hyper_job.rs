//! `training.volcano.sh/v1alpha1` HyperJob: a shape that clients of several clusters write and
//! read. Nothing here acts on it, and upstream ships no definition of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{JobSpec, JobState};
use crate::meta::ObjectMeta;

round_trip! {
    /// One training that is divided among clusters.
    pub struct HyperJob {
        /// `training.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `HyperJob`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: HyperJobSpec,
        /// What is.
        pub status: HyperJobStatus,
    }

    /// What a HyperJob wants.
    pub struct HyperJobSpec {
        /// Its jobs, each under a name of its own.
        pub replicated_jobs: Vec<ReplicatedJob>,
        /// So many of them must run.
        pub min_available: Option<i32>,
        /// It is spread over so many domains at most.
        pub max_domains: Option<i32>,
        /// Plugins with their arguments.
        pub plugins: Option<BTreeMap<Box<str>, Option<Vec<Box<str>>>>>,
    }

    /// Jobs that are alike.
    pub struct ReplicatedJob {
        /// Name.
        pub name: Box<str>,
        /// What each of them wants.
        pub template_spec: JobSpec,
        /// How one is divided.
        pub split_policy: Option<SplitPolicy>,
        /// How many; 1 where nothing is said.
        pub replicas: Option<i32>,
        /// Where they may run.
        pub cluster_names: Vec<Box<str>>,
    }

    /// How a job is divided.
    pub struct SplitPolicy {
        /// `static` or `auto`.
        pub mode: Box<str>,
        /// By so many accelerators.
        pub accelerators: Option<i64>,
        /// Of this kind, as `nvidia.com/gpu`.
        pub accelerator_type: Option<Box<str>>,
    }

    /// What a HyperJob is.
    pub struct HyperJobStatus {
        /// `metav1.Condition`s.
        pub conditions: Vec<Value>,
        /// Its jobs.
        pub replicated_jobs_status: Vec<ReplicatedJobStatus>,
        /// Into how many vcjobs it was divided.
        pub split_count: Option<i32>,
        /// The generation that this is about.
        pub observed_generation: i64,
    }

    /// What became of jobs that are alike.
    pub struct ReplicatedJobStatus {
        /// Their name.
        pub name: Box<str>,
        /// The state of each vcjob, by its name.
        pub job_states: BTreeMap<Box<str>, JobState>,
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
    }
}
