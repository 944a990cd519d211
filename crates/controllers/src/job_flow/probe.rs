//! Until when a job of a flow is waited for.

use api::volcano::{FlowProbe, Job, JobPhase, TaskProbe};

use super::Member;

/// Whether a target has come so far that the next one may start: it has completed, or all of its
/// tasks that the probe names are where the probe wants them.
///
/// Upstream ignores probes. Here those of tasks hold; a target that none of them names, and one with
/// questions that would go over the network, is waited for until it has completed.
pub(super) fn is_met(probe: Option<&FlowProbe>, target: &Member<'_>) -> bool {
    if target.phase() == Some(JobPhase::Completed) {
        return true;
    }
    let (Some(probe), Some(job)) = (probe, target.job) else {
        return false;
    };
    if probe.asks_the_network() || job.status.state.phase.is_over() {
        return false;
    }
    let concerns = |wanted: &&TaskProbe| {
        let mut tasks = job.spec.tasks.iter();
        wanted.task_name.is_empty() || tasks.any(|task| task.name == wanted.task_name)
    };
    let mut wanted = probe.task_status_list.iter().filter(concerns).peekable();
    wanted.peek().is_some() && wanted.all(|wanted| has_reached(job, wanted))
}

/// Whether as many pods of each task meant are in the phase as must start together. A pod that has
/// succeeded has run, too.
fn has_reached(job: &Job, wanted: &TaskProbe) -> bool {
    let mut tasks = (job.spec.tasks.iter())
        .filter(|task| wanted.task_name.is_empty() || task.name == wanted.task_name);
    tasks.all(|task| {
        let counts = job.status.task_status_count.get(&task.name);
        let of = |phase: &str| counts.and_then(|counts| counts.phase.get(phase)).copied();
        let passed = match &*wanted.phase {
            "Running" => of("Succeeded").unwrap_or(0),
            _ => 0,
        };
        let there = of(&wanted.phase).unwrap_or(0).saturating_add(passed);
        there >= task.min_available().max(1)
    })
}
