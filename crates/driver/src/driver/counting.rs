//! Figures for those who ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kind::Kind;
use api::time::Time;
use api::volcano::Job;

use super::Driver;
use crate::census::{self, Census, Untold};
use crate::metrics::ControllerCounts;
use crate::settings::Settings;
use crate::tallies::Came;
use crate::work::{Ended, WorkKey};
use crate::writes::Over;

impl Driver {
    /// All figures as they are now. Costs what the opening of a cycle does, and a look at every gang; nothing
    /// is decided by it, and nothing is kept.
    pub fn census(&mut self, now: Time) -> Census {
        let decides = self.is_informed() && !self.is_standby();
        let figures = self.cycles.as_mut().filter(|_| decides);
        let figures = figures.map(|cycles| cycles.figures(now));
        let mut timings = self.tallies.timings().clone();
        if let Some(cycles) = &self.cycles {
            timings.extend(cycles.timings());
        }
        let looks_after = |name: &str| self.settings.controllers.iter().any(|it| it.name == name);
        let (groups, queues_untold) = match decides && looks_after("queue") {
            true => census::groups(&self.mirror),
            false => (Vec::new(), 0),
        };
        let untold = figures.as_ref().map(|it| it.untold()).unwrap_or_default();
        let jobs_of = (decides && looks_after("vcjob")).then_some(&self.mirror);
        Census {
            metrics: self.metrics(),
            leases: self.leases(now),
            timings,
            groups,
            blocked: self.tallies.blocked(jobs_of),
            job_ends: self.tallies.jobs(),
            flow_ends: self.tallies.flows(),
            untold: Untold {
                ends: self.tallies.forgotten(),
                queues: untold.queues.max(queues_untold),
                ..untold
            },
            figures,
        }
    }

    /// The parts that run here: controllers by their names, and who places pods.
    pub(super) fn parts(settings: &Settings) -> Arc<[&'static str]> {
        let rows = settings.controllers.iter().map(|row| row.name);
        let engine = settings.engine.iter().flat_map(|engine| {
            let serves =
                |names: &[Box<str>], part: &'static str| (!names.is_empty()).then_some(part);
            [
                serves(&engine.scheduler_names, "scheduler"),
                serves(&engine.agent_scheduler_names, "agent-scheduler"),
            ]
        });
        rows.chain(engine.flatten()).collect()
    }

    /// What each controller came to, with the keys that are ready or stuck now.
    pub(super) fn controller_counts(&self) -> BTreeMap<&'static str, ControllerCounts> {
        let mut counts = self.metrics.controllers.clone();
        let ready = self.work.ready_by_row();
        for (at, row) in self.settings.controllers.iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            if let Some(counts) = counts.get_mut(row.name) {
                counts.stuck = self.work.stuck_count(at);
                counts.ready = ready.get(&at).copied().unwrap_or(0);
            }
        }
        counts
    }

    /// A write of a controller is over.
    pub(super) fn tally(&mut self, work: &WorkKey, over: &Over, now: Time) {
        let is_pod = over.verb == "create" && over.target.kind == Kind::Pod;
        if !is_pod || work.key.kind != Kind::VcJob || over.ended != Ended::Done {
            return;
        }
        let job = self.mirror.get::<Job>(&work.key.namespace, &work.key.name);
        let Some(job) = job else {
            return;
        };
        if let Some(created) = job.metadata.creation_timestamp {
            self.tallies.pod_made(created, now);
        }
        let came = self.tallies.pod_after(&self.mirror, job, &over.target, now);
        if came == Some(Came::First) {
            self.metrics.service_inversions += 1;
        }
    }
}
