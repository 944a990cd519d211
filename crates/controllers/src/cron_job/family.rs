//! What Kubernetes' CronJobs and Volcano's do not share: kinds, words of events, and how a job tells
//! that it has ended.
//!
//! Words: `batch/v1` as Kubernetes 1.36 says them, Volcano's by `specs/volcano.md` 2.6.

use api::batch::{self, CronJobSpec, CronJobStatus};
use api::kind::Kind;
use api::meta::ObjectMeta;
use api::time::Time;
use api::volcano::{self, CRONJOB_TIMESTAMP, JobPhase};
use mirror::{Change, Mirror, Typed};

use super::edited;
use crate::conditions;

/// One sort of CronJob.
#[derive(Debug)]
pub(super) struct Family {
    /// The kind of the CronJob.
    pub(super) kind: Kind,
    /// The kind of its jobs.
    pub(super) job: Kind,
    /// Who speaks in its events.
    pub(super) component: &'static str,
    /// The annotation of a job with the time that it is for.
    pub(super) annotation: &'static str,
    /// Reasons of events.
    pub(super) words: Words,
    /// What events say.
    pub(super) texts: Texts,
    /// Whether it is told how a job ended of which no trace is to be kept.
    pub(super) tells_of_surplus: bool,
    /// Finds a CronJob.
    pub(super) find: for<'a> fn(&'a Mirror, &str, &str) -> Option<Parent<'a>>,
    /// Whether a change gives a CronJob another schedule.
    pub(super) reschedules: fn(&Change) -> bool,
    /// The jobs of the CronJob with this uid.
    pub(super) jobs: for<'a> fn(&'a Mirror, &str) -> Vec<Child<'a>>,
}

/// Reasons of events that the two call differently.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) bad_schedule: &'static str,
    pub(super) bad_zone: &'static str,
    pub(super) strange_job: &'static str,
    pub(super) missing_job: &'static str,
    pub(super) forbidden: &'static str,
    /// Told when jobs are replaced, where that is told at all; and what is said.
    pub(super) replaced: Option<(&'static str, &'static str)>,
    /// Whether a job that is missing, or still runs, is worth a warning.
    pub(super) warns: bool,
}

/// What events say; a job is given by its name.
#[derive(Debug)]
pub(super) struct Texts {
    /// A job, and its uid.
    pub(super) strange: fn(&str, &str) -> String,
    /// A job, and its uid.
    pub(super) missing: fn(&str, &str) -> String,
    /// A job, and what it calls its end.
    pub(super) completed: fn(&str, &str) -> String,
    /// A job, and the CronJob's key.
    pub(super) created: fn(&str, &str) -> String,
    /// A job.
    pub(super) deleted: fn(&str) -> String,
    /// What the API answered.
    pub(super) refused: fn(&str) -> String,
    pub(super) forbidden: &'static str,
}

/// A CronJob of either sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent<'a> {
    pub(super) meta: &'a ObjectMeta,
    pub(super) spec: &'a CronJobSpec,
    pub(super) status: &'a CronJobStatus,
}

/// A job of either sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child<'a> {
    pub(super) meta: &'a ObjectMeta,
    /// By what the oldest are told.
    pub(super) started: Option<Time>,
    /// How it ended, if it has.
    pub(super) ending: Option<Ending>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// What the job calls it.
    pub(super) word: &'static str,
    pub(super) is_success: bool,
    pub(super) at: Option<Time>,
}

/// `batch/v1`.
pub(super) const BATCH: Family = Family {
    kind: Kind::BatchCronJob,
    job: Kind::BatchJob,
    component: "cronjob-controller",
    annotation: "batch.kubernetes.io/cronjob-scheduled-timestamp",
    words: Words {
        bad_schedule: "UnparseableSchedule",
        bad_zone: "UnknownTimeZone",
        strange_job: "UnexpectedJob",
        missing_job: "MissingJob",
        forbidden: "JobAlreadyActive",
        replaced: None,
        warns: false,
    },
    texts: Texts {
        strange: |job, _| format!("Saw a job that the controller did not create or forgot: {job}"),
        missing: |job, _| format!("Active job went missing: {job}"),
        completed: |job, word| format!("Saw completed job: {job}, condition: {word}"),
        created: |job, _| format!("Created job {job}"),
        deleted: |job| format!("Deleted job {job}"),
        refused: |why| format!("Error creating job: {why}"),
        forbidden: "Not starting job because prior execution is running and concurrency policy is Forbid",
    },
    tells_of_surplus: false,
    find: |mirror, namespace, name| Some(parent_batch(mirror.get(namespace, name)?)),
    reschedules: |change| edited::reschedules(change, parent_batch),
    jobs: |mirror, uid| children(mirror, uid, of_batch),
};

/// `batch.volcano.sh/v1alpha1`.
pub(super) const VOLCANO: Family = Family {
    kind: Kind::VcCronJob,
    job: Kind::VcJob,
    component: "vc-controller-manager",
    annotation: CRONJOB_TIMESTAMP,
    words: Words {
        bad_schedule: "UnParseableCronJobSchedule",
        bad_zone: "InvalidTimeZone",
        strange_job: "OrphanedJob",
        missing_job: "StaleReference",
        forbidden: "ForbidConcurrent",
        replaced: Some(("ReplaceConcurrent", "Replacing active job for CronJob")),
        warns: true,
    },
    texts: Texts {
        strange: |job, uid| {
            format!(
                "Detected orphaned job forgotten or not managed by controller: {job} (UID: {uid})"
            )
        },
        missing: |job, uid| format!("Active job {job:?} no longer exists (UID: {uid})"),
        completed: |job, _| format!("Saw completed job: {job} in active, remove"),
        created: |job, key| format!("Created job {job} for CronJob {key}"),
        deleted: |job| format!("Deleted job {job:?}"),
        refused: |why| format!("Failed to create job: {why}"),
        forbidden: "Skipping job creation because another job is already running",
    },
    tells_of_surplus: true,
    find: |mirror, namespace, name| Some(parent_volcano(mirror.get(namespace, name)?)),
    reschedules: |change| edited::reschedules(change, parent_volcano),
    jobs: |mirror, uid| children(mirror, uid, of_volcano),
};

fn parent_batch(it: &batch::CronJob) -> Parent<'_> {
    Parent {
        meta: &it.metadata,
        spec: &it.spec,
        status: &it.status,
    }
}

fn parent_volcano(it: &volcano::CronJob) -> Parent<'_> {
    Parent {
        meta: &it.metadata,
        spec: &it.spec,
        status: &it.status,
    }
}

fn children<'a, T: Typed>(
    mirror: &'a Mirror,
    uid: &str,
    of: fn(&'a T) -> Child<'a>,
) -> Vec<Child<'a>> {
    let owned = mirror.owned_by::<T>(uid).map(|job| of(job));
    owned.filter(|job| job.meta.is_controlled_by(uid)).collect()
}

fn of_batch(job: &batch::Job) -> Child<'_> {
    let status = &job.status;
    let has_ended = |word: &&str| conditions::is_true(&status.conditions, word);
    let word = ["Complete", "Failed"].into_iter().find(has_ended);
    Child {
        meta: &job.metadata,
        started: status.start_time,
        ending: word.map(|word| Ending {
            word,
            is_success: word == "Complete",
            at: status.completion_time,
        }),
    }
}

/// A terminated job counts as failed: upstream keeps such jobs for ever.
fn of_volcano(job: &volcano::Job) -> Child<'_> {
    let state = &job.status.state;
    Child {
        meta: &job.metadata,
        started: job.metadata.creation_timestamp,
        ending: state.phase.is_over().then(|| Ending {
            word: state.phase.text(),
            is_success: state.phase == JobPhase::Completed,
            at: state.last_transition_time,
        }),
    }
}
