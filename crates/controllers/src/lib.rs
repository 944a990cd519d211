//! One module per kind: what has to be written, given the world as it is.
//!
//! The list is [`CONTROLLERS`]; the door is a row's `step`, a pure function from [`Inputs`] (the
//! mirror at one revision, a key, `now`, settings) to a [`Step`] (wanted writes, a time to wake,
//! an outcome). A step that cannot tell whether an object is there that another one names asks, and
//! is run again with the answer. Steps are level-triggered: what happened is read from what is there, and what has
//! been handled is written down in the object's own status.
//!
//! What it refuses to know: who calls, how writes are performed, retried or fenced on the wire,
//! what was seen before, what time it really is. It keeps no state at all.
//!
//! Invariants, absences first: a blocked object costs no writes; no child has a random name; no
//! side effect precedes a precondition; nothing is deleted without its uid; a step that has
//! nothing to change returns nothing.

mod adoption;
mod attributes_class;
mod batch_job;
mod child;
mod claim;
mod colocation;
mod command;
mod conditions;
mod cron_job;
mod deployment;
mod discovery;
mod disruption_budget;
mod endpoint_slice;
mod ephemeral_volume;
mod inquiry;
mod job_flow;
mod job_template;
mod keys;
mod lifting;
mod namespace;
mod node_health;
mod note;
mod ownership_gc;
mod pod_gc;
mod podgroup;
mod presence;
mod queue;
mod ranking;
mod replica_set;
mod resource_claim;
mod resource_quota;
mod row;
mod service_account;
mod settings;
mod sharding;
mod snapshot;
mod stateful_set;
mod taint_eviction;
mod template_hash;
mod vcjob;
mod vcjob_expiry;
mod workload_group;
mod write;

pub use inquiry::{Heard, Inquiry, Whom};
pub use lifting::{lifted_by, waits_ended};
pub use row::{Controller, Inputs, Last, Looked, Outcome, Refused, Step};
pub use settings::{Peers, ServiceGate, Settings, Sharding, SshRules};
pub use template_hash::word_of;
pub use vcjob::blocked_reasons;

/// Every controller, by name.
pub const CONTROLLERS: &[Controller] = &[
    attributes_class::CONTROLLER,
    batch_job::CONTROLLER,
    claim::CONTROLLER,
    colocation::CONTROLLER,
    cron_job::BATCH,
    cron_job::VOLCANO,
    deployment::CONTROLLER,
    discovery::COUNT,
    discovery::LABEL,
    discovery::UFM,
    disruption_budget::CONTROLLER,
    endpoint_slice::CONTROLLER,
    ephemeral_volume::CONTROLLER,
    job_flow::CONTROLLER,
    job_template::CONTROLLER,
    namespace::CONTROLLER,
    node_health::CONTROLLER,
    ownership_gc::CONTROLLER,
    pod_gc::CONTROLLER,
    podgroup::CONTROLLER,
    queue::CONTROLLER,
    replica_set::CONTROLLER,
    resource_claim::CONTROLLER,
    resource_quota::CONTROLLER,
    service_account::CONTROLLER,
    snapshot::CONTROLLER,
    stateful_set::CONTROLLER,
    taint_eviction::CONTROLLER,
    vcjob::CONTROLLER,
    vcjob_expiry::CONTROLLER,
    workload_group::CONTROLLER,
];

/// Those whose steps are tried on for ever, ever later, however often they fail: a limit of tries (Volcano's
/// `--max-requeue-num`) is not theirs (`specs/volcano.md` 2.0).
pub const TRIED_ON: &[&str] = &[
    "colocation",
    "hyper_node_count",
    "hyper_node_label",
    "hyper_node_ufm",
    "podgroup",
    "sharding",
    "sharding_by_period",
    "vc_cron_job",
    "vcjob_expiry",
    "workload_group",
];

/// Those that run only where somebody asks for them: they are no part of a plane.
pub const ON_REQUEST: &[Controller] = &[sharding::CONTROLLER, sharding::BY_PERIOD];

/// Those that make pods and groups of workloads, that which goes by taints, and that which finds hyper-nodes by
/// labels of nodes, for a cluster of which only a part is known: none takes away what nobody seems to own, and
/// none judges nodes by their signs of life.
pub const WORKLOADS: &[Controller] = &[
    batch_job::CONTROLLER,
    claim::CONTROLLER,
    deployment::CONTROLLER,
    discovery::LABEL,
    disruption_budget::CONTROLLER,
    endpoint_slice::CONTROLLER,
    ephemeral_volume::CONTROLLER,
    job_flow::CONTROLLER,
    job_template::CONTROLLER,
    podgroup::CONTROLLER,
    queue::CONTROLLER,
    replica_set::CONTROLLER,
    resource_claim::CONTROLLER,
    resource_quota::CONTROLLER,
    service_account::CONTROLLER,
    stateful_set::CONTROLLER,
    taint_eviction::CONTROLLER,
    vcjob::CONTROLLER,
    vcjob_expiry::CONTROLLER,
    workload_group::CONTROLLER,
];

#[cfg(test)]
#[test]
fn who_is_tried_on_is_a_row() {
    let rows: Vec<&str> = CONTROLLERS
        .iter()
        .chain(ON_REQUEST)
        .map(|row| row.name)
        .collect();
    assert!(TRIED_ON.iter().all(|name| rows.contains(name)));
    assert!(TRIED_ON.is_sorted());
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "scenarios are files, read by the test that plays them"
)]
mod check;
