//! What controllers came to: how often jobs and flows have ended, by what is seen of their status, and how
//! long pods took to be made.

use api::intent::ObjectKey;
use api::time::Time;
use api::volcano::{FlowPhase, Job, JobFlow, JobPhase};
use mirror::Change;

use crate::census::JobEnds;
use crate::chronicle::between;
use crate::recent::Recent;
use crate::timings::{Timed, Timings};

/// Jobs whose ends are counted: each is a row of text at `/metrics` for as long as it is there.
const JOBS_MAX: usize = 1_000;
/// Namespaces of which the ends of flows are counted.
const NAMESPACES_MAX: usize = 1_000;

/// The tallies.
#[derive(Clone, Debug)]
pub(crate) struct Tallies {
    timings: Timings,
    jobs: Recent<ObjectKey, JobEnds>,
    flows: Recent<Box<str>, (u64, u64)>,
}

impl Default for Tallies {
    fn default() -> Tallies {
        Tallies {
            timings: Timings::default(),
            jobs: Recent::new(JOBS_MAX),
            flows: Recent::new(NAMESPACES_MAX),
        }
    }
}

impl Tallies {
    /// A pod of a job that was made then is made.
    pub(crate) fn pod_made(&mut self, job_created: Time, now: Time) {
        let took = between(job_created, now);
        self.timings.observe(Timed::PodMade, "", took);
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    /// An object has changed. What was found in its last phase is no end that was seen.
    pub(crate) fn changed(&mut self, change: &Change) {
        if let (Some(before), Some(after)) = (change.before::<Job>(), change.after::<Job>()) {
            let phase = after.status.state.phase;
            if before.status.state.phase != phase {
                self.job_turned(&change.key, after, phase);
            }
        } else if change.before::<Job>().is_some() {
            self.jobs.remove(&change.key);
        }
        if let (Some(before), Some(after)) = (change.before::<JobFlow>(), change.after::<JobFlow>())
            && before.status.state.phase != after.status.state.phase
        {
            let namespace = || change.key.namespace.clone();
            match after.status.state.phase {
                FlowPhase::Succeed => self.flows.touch(&namespace()).0 += 1,
                FlowPhase::Failed => self.flows.touch(&namespace()).1 += 1,
                _ => {}
            }
        }
    }

    fn job_turned(&mut self, key: &ObjectKey, job: &Job, phase: JobPhase) {
        if !matches!(phase, JobPhase::Completed | JobPhase::Failed) {
            return;
        }
        let ends = self.jobs.touch(key);
        ends.queue.clone_from(&job.spec.queue);
        match phase {
            JobPhase::Completed => ends.completed += 1,
            _ => ends.failed += 1,
        }
    }

    /// By job.
    pub(crate) fn jobs(&self) -> Vec<(ObjectKey, JobEnds)> {
        let all = self.jobs.iter();
        all.map(|(key, ends)| (key.clone(), ends.clone())).collect()
    }

    /// By namespace: how many flows have succeeded, and how many failed.
    pub(crate) fn flows(&self) -> Vec<(Box<str>, (u64, u64))> {
        let all = self.flows.iter();
        all.map(|(namespace, ends)| (namespace.clone(), *ends))
            .collect()
    }

    /// How many jobs and namespaces are not told for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.jobs.forgotten() + self.flows.forgotten()
    }
}
