//! Whether a batch Job ends, and why.

use api::core::condition;
use api::time::Time;

use super::View;

/// Why a job ends.
pub(super) struct Ending {
    /// `Complete` or `Failed`.
    pub(super) condition: &'static str,
    /// What precedes it while pods are still ending.
    pub(super) herald: &'static str,
    /// One word, as in the condition.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
}

impl View<'_> {
    /// When the job has been active too long.
    pub(super) fn deadline(&self) -> Option<Time> {
        let seconds = self.job.spec.active_deadline_seconds?;
        let start = self.job.status.start_time?;
        Some(start.plus_ms(seconds.saturating_mul(1_000)))
    }

    /// Whether the job ends now, and how.
    pub(super) fn ending(&self) -> Option<Ending> {
        let failed = |reason, message: &str| {
            Some(Ending {
                condition: "Failed",
                herald: "FailureTarget",
                reason,
                message: message.to_owned(),
            })
        };
        let heralded =
            |kind| condition(&self.job.status.conditions, kind).filter(|it| &*it.status == "True");
        if let Some(herald) = heralded("FailureTarget") {
            let reason = match &*herald.reason {
                "DeadlineExceeded" => "DeadlineExceeded",
                _ => "BackoffLimitExceeded",
            };
            return failed(reason, &herald.message);
        }
        let completed = || {
            Some(Ending {
                condition: "Complete",
                herald: "SuccessCriteriaMet",
                reason: "CompletionsReached",
                message: "Reached expected number of succeeded pods".to_owned(),
            })
        };
        if heralded("SuccessCriteriaMet").is_some() {
            return completed();
        }
        if self.tally.exceeds(self.job.spec.backoff_limit.unwrap_or(6)) {
            let message = "Job has reached the specified backoff limit";
            return failed("BackoffLimitExceeded", message);
        }
        if self.deadline().is_some_and(|due| self.inputs.now >= due) {
            let message = "Job was active longer than specified deadline";
            return failed("DeadlineExceeded", message);
        }
        let is_done = match self.job.spec.completions {
            Some(completions) => self.tally.succeeded >= completions,
            None => self.tally.succeeded > 0 && self.tally.active.is_empty(),
        };
        if is_done { completed() } else { None }
    }
}
