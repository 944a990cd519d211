//! Volcano jobs: defaults on create, and all that upstream refuses on create and update.

pub(crate) mod defaults;
pub(crate) mod plugins;
mod policies;
mod template;
mod update;
mod volumes;

use std::collections::BTreeSet;

use api::admission::Operation;
use api::kind::Kind;
use api::names::{check_label, check_qualified, go_list};
use api::volcano::{Job, ROOT_QUEUE, Task};
use serde::Deserialize;

pub(crate) use self::update::FIXED;
use crate::fields::{items, text};
use crate::pod_group::{TIER_TWICE, names_tier_twice};
use crate::queue::{children_of, is_open, not_found, state_of};

use crate::{Case, MESSAGE_BYTES_MAX, Rule, WRITES, Webhook, order};

pub(crate) const MUTATE: Webhook = Webhook {
    path: "/jobs/mutate",
    name: "mutatejob.volcano.sh",
    kind: Kind::VcJob,
    operations: WRITES,
    rule: Rule::Mutate(|case| case.changed(|job| defaults::fill(case, job))),
};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/jobs/validate",
    name: "validatejob.volcano.sh",
    kind: Kind::VcJob,
    operations: WRITES,
    rule: Rule::Validate(validate),
};

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    let job = Job::deserialize(case.object).map_err(|error| error.to_string())?;
    if case.operation == Operation::Update {
        return update::check(&job, case.object, case.old).map(|()| Vec::new());
    }
    let message = create_message(case, &job)?;
    if message.is_empty() {
        Ok(plugins::warnings(&job.spec))
    } else {
        Err(message)
    }
}

/// Everything that is wrong with a new job, in one text; two faults end the search at once.
fn create_message(case: &Case<'_>, job: &Job) -> Result<String, String> {
    let spec = &job.spec;
    if spec.tasks.is_empty() {
        return Err("No task specified in job spec".to_owned());
    }
    if !plugins::has_master(spec) {
        return Err("The specified mpi master task was not found".to_owned());
    }
    let mut message = String::new();
    if names_tier_twice(spec.network_topology.as_ref()) {
        message.push_str(&format!(" {TIER_TWICE};"));
    }
    tasks_message(case, job, &mut message);
    let complaints = check_qualified(&job.metadata.name);
    if !complaints.is_empty() {
        message.push_str(&format!(
            " create job with name {} validate failed {};",
            job.metadata.name,
            go_list(&complaints)
        ));
    }
    if spec.replicas() < i64::from(spec.min_available()) {
        message.push_str(" job 'minAvailable' should not be greater than total replicas in tasks;");
    }
    if let Err(complaint) = policies::check(&spec.policies, "spec.policies") {
        message.push_str(&complaint);
    }
    plugins::check(case.settings, spec, &mut message);
    if let Err(complaint) = volumes::check(&spec.volumes) {
        message.push_str(&complaint);
    }
    queue_message(case, &spec.queue, &mut message);
    if spec.tasks.iter().any(|task| task.depends_on.is_some()) && !has_order(&spec.tasks) {
        message.push_str(
            " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);",
        );
    }
    Ok(message)
}

fn tasks_message(case: &Case<'_>, job: &Job, message: &mut String) {
    let mut names = BTreeSet::new();
    let templates = items(&case.object["spec"], "tasks");
    for (index, (task, raw)) in job.spec.tasks.iter().zip(templates).enumerate() {
        if message.len() > MESSAGE_BYTES_MAX {
            return;
        }
        let place = format!("in task: {}, job: {};", task.name, job.metadata.name);
        if task
            .min_available
            .is_some_and(|least| least > task.replicas())
        {
            message.push_str(&format!(
                " 'minAvailable' is greater than 'replicas' {place}"
            ));
        }
        if let Some(complaint) = partition_complaint(task) {
            message.push_str(&format!(" {complaint} {place}"));
        }
        let complaints = check_label(&task.name);
        if !complaints.is_empty() {
            message.push_str(&format!(" {};", go_list(&complaints)));
        }
        if !names.insert(&task.name) {
            message.push_str(&format!(" duplicated task name {};", task.name));
            return;
        }
        if let Err(complaint) = policies::check(&task.policies, "spec.tasks.policies") {
            message.push_str(&complaint);
        }
        let pod = format!("{}-{}-{index}", job.metadata.name, task.name);
        let complaints = check_qualified(&pod);
        if !complaints.is_empty() {
            message.push_str(&format!(
                " create pod with name {pod} validate failed {};",
                go_list(&complaints)
            ));
        }
        message.push_str(&template::message(index, task, &raw["template"], case));
    }
}

/// Partitions that do not add up.
fn partition_complaint(task: &Task) -> Option<String> {
    let policy = task.partition_policy.as_ref()?;
    let (total, size) = (
        i64::from(policy.total_partitions),
        i64::from(policy.partition_size),
    );
    let least = i64::from(policy.min_partitions.unwrap_or(0));
    let text = if total <= 0 {
        "'TotalPartitions' must be greater than 0"
    } else if size <= 0 {
        "'PartitionSize' must be greater than 0"
    } else if total * size != i64::from(task.replicas()) {
        "'Replicas' are not equal to TotalPartitions*PartitionSize"
    } else if least > 0 && least * size != i64::from(task.min_available()) {
        "'MinAvailable' is not equal to MinPartitions*PartitionSize"
    } else if names_tier_twice(policy.network_topology.as_ref()) {
        TIER_TWICE
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn queue_message(case: &Case<'_>, name: &str, message: &mut String) {
    let Some(queue) = case.facts.object(Kind::Queue, "", name) else {
        message.push_str(&format!(" unable to find job queue: {};", not_found(name)));
        return;
    };
    if !is_open(case, &queue) {
        let state = state_of(&queue);
        message.push_str(&format!(
            " can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        ));
    }
    if text(&queue["metadata"], "name") == ROOT_QUEUE {
        message.push_str(" can not submit job to root queue;");
        return;
    }
    let children = children_of(case, name).len();
    if children > 0 {
        message.push_str(&format!(
            " can only submit job to leaf queue, queue `{name}` has {children} child queues;"
        ));
    }
}

/// Whether every dependency names a task and none leads back to itself.
fn has_order(tasks: &[Task]) -> bool {
    let edges = tasks.iter().map(|task| {
        let first = task.depends_on.iter().flat_map(|depends| &depends.name);
        (&*task.name, first.map(|name| &**name).collect())
    });
    order::check(&edges.collect()).is_ok()
}
