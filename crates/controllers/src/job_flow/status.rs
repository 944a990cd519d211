//! What a flow tells of its jobs, and the phase that follows from them.

use api::volcano::{
    FlowCondition, FlowHistory, FlowJobStatus, FlowPhase, FlowState, Job, JobFlowStatus, JobPhase,
};

use super::{Member, ended, is_over};

/// The next status. Every job that there is or was stands in exactly one list of names.
pub(super) fn next(old: &JobFlowStatus, members: &[Member<'_>]) -> JobFlowStatus {
    let mut new = JobFlowStatus {
        state: FlowState {
            phase: phase(old.state.phase, members),
        },
        ..JobFlowStatus::default()
    };
    let is_over = is_over(new.state.phase);
    for member in members {
        let name: &str = &member.name;
        // Of a job that has gone is told what was seen last: its end, or whatever it was when the
        // flow came to its own.
        let record = member.record.filter(|it| is_over || ended(it).is_some());
        let (seen, condition) = match (member.job, record) {
            (Some(job), _) => (seen(job), condition(job)),
            (None, Some(record)) => {
                let condition = old.conditions.get(name).cloned();
                (record.clone(), condition.unwrap_or_default())
            }
            (None, None) => continue,
        };
        let phase = JobPhase::parse(&seen.state).unwrap_or_default();
        list(&mut new, phase).push(name.into());
        new.conditions.insert(name.into(), condition);
        new.job_status_list.push(seen);
    }
    new
}

/// Where a flow is. Success and failure are for good: a failed job that is restarted does not
/// revive its flow.
fn phase(old: FlowPhase, members: &[Member<'_>]) -> FlowPhase {
    if is_over(old) {
        return old;
    }
    let phases = || members.iter().filter_map(Member::phase);
    let has = |wanted: &[JobPhase]| phases().any(|phase| wanted.contains(&phase));
    let completed = phases().filter(|phase| *phase == JobPhase::Completed);
    if has(&[JobPhase::Failed, JobPhase::Terminated]) {
        FlowPhase::Failed
    } else if completed.count() == members.len() && !members.is_empty() {
        FlowPhase::Succeed
    } else if old == FlowPhase::Running || has(&[JobPhase::Running, JobPhase::Completed]) {
        FlowPhase::Running
    } else {
        FlowPhase::Pending
    }
}

/// The list of names for a phase.
fn list(status: &mut JobFlowStatus, phase: JobPhase) -> &mut Vec<Box<str>> {
    match phase {
        JobPhase::Pending => &mut status.pending_jobs,
        JobPhase::Running => &mut status.running_jobs,
        JobPhase::Completed => &mut status.completed_jobs,
        JobPhase::Failed => &mut status.failed_jobs,
        JobPhase::Terminated => &mut status.terminated_jobs,
        _ => &mut status.un_know_jobs,
    }
}

fn seen(job: &Job) -> FlowJobStatus {
    let state = &job.status.state;
    let is_over = state.phase.is_over();
    FlowJobStatus {
        name: (&job.metadata.name).into(),
        state: state.phase.text().into(),
        start_timestamp: job.metadata.creation_timestamp,
        end_timestamp: state.last_transition_time.filter(|_| is_over),
        restart_count: job.status.retry_count,
        running_histories: histories(job),
    }
}

/// The phases that a job was in, from its conditions, which name each phase once.
fn histories(job: &Job) -> Vec<FlowHistory> {
    let conditions = &job.status.conditions;
    let next = conditions.iter().skip(1).map(Some).chain([None]);
    (conditions.iter().zip(next))
        .map(|(condition, next)| FlowHistory {
            start_timestamp: condition.last_transition_time,
            end_timestamp: next.and_then(|next| next.last_transition_time),
            state: condition.status.text().into(),
        })
        .collect()
}

fn condition(job: &Job) -> FlowCondition {
    let status = &job.status;
    FlowCondition {
        phase: status.state.phase.text().into(),
        create_time: job.metadata.creation_timestamp,
        running_duration: status.running_duration,
        task_status_count: status.task_status_count.clone(),
    }
}
