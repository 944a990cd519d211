//! Whether a batch Job ends, and why.

use api::core::PodPhase;
use api::time::Time;

use super::View;
use super::count::{completions, is_failed};
use super::indexes::Indexes;
use super::policy::{self, Verdict};
use crate::conditions;

/// Why a job ends.
pub(super) struct Ending {
    /// `Complete` or `Failed`.
    pub(super) condition: &'static str,
    /// What precedes it while pods are still ending.
    pub(super) herald: &'static str,
    /// Whether the stored status has the herald.
    pub(super) is_heralded: bool,
    /// One word, as in the condition.
    pub(super) reason: Box<str>,
    /// For people.
    pub(super) message: Box<str>,
}

impl Ending {
    fn complete(reason: &str, message: &str) -> Ending {
        Ending {
            condition: "Complete",
            herald: "SuccessCriteriaMet",
            is_heralded: false,
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn failed(reason: &str, message: &str) -> Ending {
        Ending {
            condition: "Failed",
            herald: "FailureTarget",
            ..Ending::complete(reason, message)
        }
    }

    /// Whether the job has done what it was to do.
    pub(super) fn is_success(&self) -> bool {
        self.condition == "Complete"
    }
}

impl View<'_> {
    /// When the job will have been active too long.
    pub(super) fn deadline(&self) -> Option<Time> {
        let seconds = self.job.spec.active_deadline_seconds?;
        let start = self.job.status.start_time.unwrap_or(self.inputs.now);
        let is_running = !self.is_suspended();
        is_running.then(|| start.plus_ms(seconds.saturating_mul(1_000)))
    }

    /// Whether it is to have no pods for now.
    pub(super) fn is_suspended(&self) -> bool {
        self.job.spec.suspend == Some(true)
    }

    /// Whether the job ends now, and how, apart from having all its completions.
    pub(super) fn ending(&self) -> Option<Ending> {
        self.heralded()
            .or_else(|| self.failing())
            .or_else(|| self.succeeding_early())
    }

    fn heralded(&self) -> Option<Ending> {
        let list = &self.job.status.conditions;
        for kind in ["SuccessCriteriaMet", "FailureTarget"] {
            let herald = conditions::find(list, kind).filter(|it| &*it.status == "True");
            if let Some(herald) = herald {
                let (reason, message) = (&herald.reason, &herald.message);
                let ending = match kind {
                    "FailureTarget" => Ending::failed(reason, message),
                    _ => Ending::complete(reason, message),
                };
                return Some(Ending {
                    is_heralded: true,
                    ..ending
                });
            }
        }
        None
    }

    fn failing(&self) -> Option<Ending> {
        let spec = &self.job.spec;
        if spec.pod_failure_policy.is_some() {
            let failed = self.pods.iter().filter(|pod| is_failed(self.job, pod));
            for pod in failed {
                if let Verdict::FailJob(message) = policy::verdict(self.job, pod) {
                    return Some(Ending::failed("PodFailurePolicy", &message));
                }
            }
        }
        if self.count.failed > self.backoff_limit() || self.restarts_too_often() {
            let message = "Job has reached the specified backoff limit";
            return Some(Ending::failed("BackoffLimitExceeded", message));
        }
        if self.deadline().is_some_and(|due| self.inputs.now >= due) {
            let message = "Job was active longer than specified deadline";
            return Some(Ending::failed("DeadlineExceeded", message));
        }
        let failed = self.count.failed_indexes.as_ref()?.len();
        let max = spec
            .max_failed_indexes
            .and_then(|max| u32::try_from(max).ok());
        if max.is_some_and(|max| failed > max) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Ending::failed("MaxFailedIndexesExceeded", message));
        }
        let all = completions(self.job).unwrap_or(0);
        let is_over = failed > 0 && failed + self.count.succeeded_indexes.len() >= all;
        is_over.then(|| Ending::failed("FailedIndexes", "Job has failed indexes"))
    }

    fn backoff_limit(&self) -> i32 {
        self.job.spec.backoff_limit.unwrap_or(6)
    }

    /// Containers that are restarted in place count like pods.
    fn restarts_too_often(&self) -> bool {
        let template = self.job.spec.template().unwrap_or_default();
        if &*template.spec.restart_policy != "OnFailure" {
            return false;
        }
        let working = self
            .pods
            .iter()
            .filter(|pod| matches!(pod.status.phase, PodPhase::Running | PodPhase::Pending));
        let restarts: i64 = working
            .flat_map(|pod| {
                let status = &pod.status;
                let early = status.init_container_statuses.iter();
                early.chain(&status.container_statuses)
            })
            .map(|container| i64::from(container.restart_count))
            .sum();
        match self.backoff_limit() {
            0 => restarts > 0,
            limit => restarts >= i64::from(limit),
        }
    }

    fn succeeding_early(&self) -> Option<Ending> {
        let completions = completions(self.job)?;
        let policy = self.job.spec.success_policy.as_ref()?;
        let succeeded = &self.count.succeeded_indexes;
        if succeeded.len() == 0 {
            return None;
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            let count = rule.succeeded_count.and_then(|it| u32::try_from(it).ok());
            let is_met = match &rule.succeeded_indexes {
                Some(text) => {
                    let wanted = Indexes::read(text, completions);
                    let met = wanted.common(succeeded);
                    wanted.len() > 0
                        && (met == wanted.len() || count.is_some_and(|count| met >= count))
                }
                None => count.is_some_and(|count| succeeded.len() >= count),
            };
            if is_met {
                let message = format!("Matched rules at index {index}");
                return Some(Ending::complete("SuccessPolicy", &message));
            }
        }
        None
    }

    /// Whether the job has all its completions; asked once no pod is to be made or removed.
    pub(super) fn completed(&self) -> Option<Ending> {
        let is_idle = self.count.active.is_empty();
        let is_done = match self.job.spec.completions {
            Some(completions) => self.count.succeeded >= completions && is_idle,
            None => self.count.succeeded > 0 && is_idle,
        };
        let message = "Reached expected number of succeeded pods";
        is_done.then(|| Ending::complete("CompletionsReached", message))
    }
}
