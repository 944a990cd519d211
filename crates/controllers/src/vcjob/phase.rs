//! The state machine of a vcjob: phases × actions, and what counts make of a phase
//! (`specs/volcano.md` 2.1.1).

use api::volcano::{BusAction, Job, JobPhase, JobStatus};

use super::restart::LastKill;
use super::roster::Counts;

/// A change of phase that an action causes, with the kill that goes with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    /// The new phase.
    pub(super) phase: JobPhase,
    /// Whom it kills, for restarts.
    pub(super) kill: LastKill,
    /// Whether it uses up a retry.
    pub(super) is_retry: bool,
}

/// A change of phase that the counts cause, with the reason that goes into the status.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settled {
    /// The new phase.
    pub(super) phase: JobPhase,
    /// One word, empty for the good course of things.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
}

/// What an action does to a job in a phase; `None` where it means nothing there.
///
/// Upstream loses an abort, completion or termination that comes while a job restarts; here they
/// work as in any other active phase. A restart in the middle of a restart kills once more and is no
/// retry of its own. A resumption there, which upstream lets kill everything, has come true already.
pub(super) fn moved(job: &Job, action: BusAction, target: &LastKill) -> Option<Move> {
    use JobPhase::{
        Aborted, Aborting, Completing, Pending, Restarting, Running, Terminating, Unset,
    };
    let kill_into = |phase| {
        Some(Move {
            phase,
            kill: LastKill::None,
            is_retry: false,
        })
    };
    let phase = job.status.state.phase;
    let is_retry = phase != Restarting;
    // Where no attempt is left, the pods that have ended stay, so that they can be looked at.
    let retries = job.status.retry_count.saturating_add(i32::from(is_retry));
    let is_last = retries >= max_retry(job);
    let restart = |kill| {
        Some(Move {
            phase: Restarting,
            kill,
            is_retry,
        })
    };
    match (phase, action) {
        (Unset | Pending | Running | Restarting, BusAction::AbortJob) => kill_into(Aborting),
        (Unset | Pending | Running | Restarting, BusAction::TerminateJob) => kill_into(Terminating),
        (Unset | Pending | Running | Restarting, BusAction::CompleteJob) => kill_into(Completing),
        (Unset | Pending | Running | Restarting, BusAction::RestartJob) => restart(match is_last {
            true => LastKill::Unfinished,
            false => LastKill::Job,
        }),
        (
            Unset | Pending | Running | Restarting,
            BusAction::RestartTask | BusAction::RestartPod | BusAction::RestartPartition,
        ) if *target != LastKill::None => restart(target.clone()),
        // A failed pod that stayed would keep the place of one that its gang cannot start without.
        (Aborting | Aborted, BusAction::ResumeJob) => restart(match is_last {
            true => LastKill::Unfinished,
            false => LastKill::Unsuccessful,
        }),
        _ => None,
    }
}

/// How often a job may be restarted.
pub(super) fn max_retry(job: &Job) -> i32 {
    job.spec.max_retry.unwrap_or(3)
}

/// Whether a job restarts, by this status, that has no retry left.
pub(super) fn is_used_up(job: &Job, status: &JobStatus) -> bool {
    status.state.phase == JobPhase::Restarting && status.retry_count >= max_retry(job)
}

/// What the counts make of the phase; `None` where it stays.
pub(super) fn settled(job: &Job, status: &JobStatus, counts: &Counts) -> Option<Settled> {
    let to = |phase| {
        Some(Settled {
            phase,
            reason: "",
            message: String::new(),
        })
    };
    match status.state.phase {
        JobPhase::Pending => {
            let started = counts.running + counts.succeeded + counts.failed;
            (status.min_available <= started).then(|| to(JobPhase::Running))?
        }
        JobPhase::Running => of_running(job, status, counts),
        JobPhase::Restarting if status.retry_count >= max_retry(job) => Some(Settled {
            phase: JobPhase::Failed,
            reason: "MaxRetryReached",
            message: format!(
                "the job has used {} of {} retries",
                status.retry_count,
                max_retry(job)
            ),
        }),
        JobPhase::Restarting => {
            let free = job.spec.replicas() - i64::from(counts.terminating);
            (free >= i64::from(status.min_available)).then(|| to(JobPhase::Pending))?
        }
        JobPhase::Aborting => (counts.terminating + counts.pending + counts.running == 0)
            .then(|| to(JobPhase::Aborted))?,
        JobPhase::Completing => (counts.alive() == 0).then(|| to(JobPhase::Completed))?,
        JobPhase::Terminating => (counts.alive() == 0).then(|| to(JobPhase::Terminated))?,
        _ => None,
    }
}

fn of_running(job: &Job, status: &JobStatus, counts: &Counts) -> Option<Settled> {
    let total = job.spec.replicas();
    let completed = Some(Settled {
        phase: JobPhase::Completed,
        reason: "",
        message: String::new(),
    });
    let failed = |message| {
        Some(Settled {
            phase: JobPhase::Failed,
            reason: "TasksFailed",
            message,
        })
    };
    let succeeded = counts.succeeded;
    let min_success = job.spec.min_success;
    if total == 0 {
        return None;
    }
    if min_success.is_some_and(|wanted| succeeded >= wanted) {
        return completed;
    }
    if i64::from(succeeded) + i64::from(counts.failed) == total {
        if let Some(message) = short_task(job, status) {
            return failed(message);
        }
        if let Some(wanted) = min_success.filter(|wanted| succeeded < *wanted) {
            return failed(format!(
                "{succeeded} pods succeeded, minSuccess is {wanted}"
            ));
        }
        if succeeded >= status.min_available {
            return completed;
        }
        return failed(format!(
            "{succeeded} of {total} pods succeeded, minAvailable is {}",
            status.min_available
        ));
    }
    let spare = total - i64::from(status.min_available);
    (i64::from(counts.pending) > spare).then(|| Settled {
        phase: JobPhase::Pending,
        reason: "",
        message: String::new(),
    })
}

/// The first task that has fewer successes than its own minimum, where minimums of tasks count.
fn short_task(job: &Job, status: &JobStatus) -> Option<String> {
    let tasks = &job.spec.tasks;
    let wanted: i64 = tasks
        .iter()
        .map(|task| i64::from(task.min_available()))
        .sum();
    if i64::from(job.spec.min_available()) < wanted {
        return None;
    }
    tasks.iter().find_map(|task| {
        let wanted = task.min_available?;
        let phases = status.task_status_count.get(&task.name);
        let succeeded = phases
            .and_then(|count| count.phase.get("Succeeded"))
            .copied()
            .unwrap_or(0);
        (succeeded < wanted).then(|| {
            let name = &task.name;
            format!("{succeeded} pods of task {name} succeeded, its minAvailable is {wanted}")
        })
    })
}
