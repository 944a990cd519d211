//! Volcano jobs: defaults on create, and all that upstream refuses on create and update.

mod alike;
pub(crate) mod defaults;
pub(crate) mod plugins;
pub(crate) mod policies;
mod template;
mod update;
mod volumes;

use std::collections::BTreeSet;

use api::admission::Operation;
use api::kind::Kind;
use api::names::{check_label, check_qualified, go_list};
use api::volcano::{Job, ROOT_QUEUE, Task};
use serde::Deserialize;

use crate::denials::{Row, jobs};
use crate::fields::{items, text};
use crate::pod_group::names_tier_twice;
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
        return Err(jobs::NO_TASKS.plain());
    }
    if !plugins::has_master(spec) {
        return Err(jobs::NO_MASTER.plain());
    }
    let mut message = String::new();
    if names_tier_twice(spec.network_topology.as_ref()) {
        say(&jobs::TIER_TWICE, &[], &mut message);
    }
    tasks_message(case, job, &mut message);
    let complaints = check_qualified(&job.metadata.name);
    if !complaints.is_empty() {
        let given: Given<'_> = &[
            ("name", &job.metadata.name),
            ("complaints", &go_list(&complaints)),
        ];
        // The names alone follow what is before them without a blank, and a job's ends without a semicolon.
        message.push_str(&jobs::BAD_JOB_NAME.with(given));
    }
    if spec.replicas() < i64::from(spec.min_available()) {
        say(&jobs::GANG_OVER_REPLICAS, &[], &mut message);
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
        say(&jobs::NO_ORDER, &[], &mut message);
    }
    Ok(message)
}

/// What the holes of a text are filled with.
type Given<'a> = &'a [(&'a str, &'a dyn std::fmt::Display)];

/// Adds a refusal as upstream does: behind a blank and before a semicolon.
fn say(row: &Row, given: Given<'_>, message: &mut String) {
    message.push_str(&format!(" {};", row.with(given)));
}

fn tasks_message(case: &Case<'_>, job: &Job, message: &mut String) {
    let mut names = BTreeSet::new();
    let templates = items(&case.object["spec"], "tasks");
    for (index, (task, raw)) in job.spec.tasks.iter().zip(templates).enumerate() {
        if message.len() > MESSAGE_BYTES_MAX {
            return;
        }
        let place: Given<'_> = &[("task", &task.name), ("job", &job.metadata.name)];
        if task
            .min_available
            .is_some_and(|least| least > task.replicas())
        {
            say(&jobs::MIN_OVER_REPLICAS, place, message);
        }
        if let Some(complaint) = partition_complaint(task) {
            message.push_str(&format!(" {};", in_task(complaint, task, job)));
        }
        let complaints = check_label(&task.name);
        if !complaints.is_empty() {
            message.push_str(&format!(" {};", go_list(&complaints)));
        }
        if !names.insert(&task.name) {
            say(&jobs::TASK_TWICE, place, message);
            return;
        }
        if let Err(complaint) = policies::check(&task.policies, "spec.tasks.policies") {
            message.push_str(&complaint);
        }
        let pod = format!("{}-{}-{index}", job.metadata.name, task.name);
        let complaints = check_qualified(&pod);
        if !complaints.is_empty() {
            let given: Given<'_> = &[("name", &pod), ("complaints", &go_list(&complaints))];
            message.push_str(&format!("{};", jobs::BAD_POD_NAME.with(given)));
        }
        message.push_str(&template::message(index, task, &raw["template"], case));
    }
}

/// A complaint about partitions, with the task that it is about.
fn in_task(complaint: &Row, task: &Task, job: &Job) -> String {
    jobs::IN_TASK.with(&[
        ("complaint", &complaint.text),
        ("task", &task.name),
        ("job", &job.metadata.name),
    ])
}

/// Partitions that do not add up.
fn partition_complaint(task: &Task) -> Option<&'static Row> {
    let policy = task.partition_policy.as_ref()?;
    let (total, size) = (
        i64::from(policy.total_partitions),
        i64::from(policy.partition_size),
    );
    let least = i64::from(policy.min_partitions.unwrap_or(0));
    if total <= 0 {
        Some(&jobs::NO_PARTITIONS)
    } else if size <= 0 {
        Some(&jobs::EMPTY_PARTITIONS)
    } else if total * size != i64::from(task.replicas()) {
        Some(&jobs::PARTITIONS_LEAVE_A_REST)
    } else if least > 0 && least * size != i64::from(task.min_available()) {
        Some(&jobs::MIN_CUTS_PARTITIONS)
    } else if names_tier_twice(policy.network_topology.as_ref()) {
        Some(&jobs::TIER_TWICE)
    } else {
        None
    }
}

fn queue_message(case: &Case<'_>, name: &str, message: &mut String) {
    let Some(queue) = case.facts.object(Kind::Queue, "", name) else {
        say(&jobs::NO_QUEUE, &[("error", &not_found(name))], message);
        return;
    };
    if !is_open(case, &queue) {
        let given: Given<'_> = &[("queue", &name), ("state", &state_of(&queue))];
        say(&jobs::QUEUE_NOT_OPEN, given, message);
    }
    if text(&queue["metadata"], "name") == ROOT_QUEUE {
        say(&jobs::ROOT_QUEUE, &[], message);
        return;
    }
    let children = children_of(case, name).len();
    if children > 0 {
        let given: Given<'_> = &[("queue", &name), ("count", &children)];
        say(&jobs::QUEUE_WITH_CHILDREN, given, message);
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
