//! The end of vcjobs that have outlived their time to live (upstream's `gc-controller`).
//!
//! It is a row of its own, so that whoever leaves it out keeps his finished jobs, and whoever runs
//! it alone cleans up after another's.

use api::intent::{ObjectKey, Propagation};
use api::kind::Kind;
use api::volcano::Job;
use mirror::{Change, Mirror};

use crate::{Controller, Inputs, Step, job_flow, vcjob, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "vcjob_expiry",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::JobFlow, Kind::VcJob],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::VcJob {
        let job = change.after::<Job>();
        if job.is_some_and(|job| job.spec.ttl_seconds_after_finished.is_some()) {
            keys.push((*change.key).clone());
        }
        return;
    }
    // A job may wait for its flow before it goes.
    let jobs = mirror.owned_by::<Job>(change.latest().uid());
    keys.extend(jobs.map(|job| vcjob::key_of(job)));
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(job) = inputs.mirror.get::<Job>(namespace, name) else {
        return Step::idle();
    };
    let (meta, state) = (&job.metadata, &job.status.state);
    if meta.deletion_timestamp.is_some() || !state.phase.is_over() {
        return Step::idle();
    }
    let (Some(seconds), Some(ended)) = (
        job.spec.ttl_seconds_after_finished,
        state.last_transition_time,
    ) else {
        return Step::idle();
    };
    let due = ended.plus_ms(i64::from(seconds) * 1_000);
    if inputs.now < due {
        return Step::wake_at(due);
    }
    if let Some(first) = job_flow::before_going(inputs, job) {
        return first;
    }
    Step::write(vec![write::delete_with(
        Kind::VcJob,
        meta,
        None,
        Propagation::Foreground,
    )])
}
