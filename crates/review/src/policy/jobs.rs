//! The defaults of a job in CEL, made from the rows that the webhook fills in.
//!
//! A task is changed where it stands, by its place, so that its template stays as it was written.

use super::changes::Mutation;
use super::guard;
use crate::registration::quoted;
use crate::vcjob::defaults::{Filled, Given, OF_HOST_POD, OF_JOB, OF_TASK};
use crate::vcjob::plugins::implied;
use crate::{CREATES, Settings, WRITES};

const TASKS: &str = "/spec/tasks";
/// Where the rule says that a task needs this many of its pods.
const LEAST: &str = "has(task.partitionPolicy) && has(task.partitionPolicy.minPartitions) && task.partitionPolicy.minPartitions > 0 ? task.partitionPolicy.minPartitions * (has(task.partitionPolicy.partitionSize) ? task.partitionPolicy.partitionSize : 0) : (has(task.replicas) ? task.replicas : 0)";
/// The gang is all that its tasks need, as far as the number goes.
const SUM: &str = "has(object.spec.tasks) && object.spec.tasks.size() > 0 ? [[int(object.spec.tasks.map(t, has(t.minAvailable) ? t.minAvailable : has(t.replicas) ? t.replicas : 0).sum()), -2147483648].max(), 2147483647].min() : 0";

/// Whether the stored job has a task in that place.
const HAS_STORED_TASK: &str =
    "has(oldObject.spec) && has(oldObject.spec.tasks) && place < oldObject.spec.tasks.size()";
/// The task in that place of the stored job.
const STORED_TASK: &str = "oldObject.spec.tasks[place]";

/// All of them, in the order of the rule: each sees what those before it made.
pub(super) fn mutations(settings: &Settings) -> Vec<Mutation> {
    let mut all: Vec<Mutation> = OF_JOB
        .iter()
        .map(|row| {
            let stored = format!("has(oldObject.spec) && !({})", unset(row, "oldObject.spec"));
            let when = due(&unset(row, "object.spec"), &stored);
            of_job(when, row.field, given(row, settings))
        })
        .collect();
    all.extend(OF_TASK.iter().map(|row| {
        let at = format!("/{}", row.field);
        let stored = format!("{HAS_STORED_TASK} && !({})", unset(row, STORED_TASK));
        of_task(due(&unset(row, "task"), &stored), at, given(row, settings))
    }));
    all.extend(OF_HOST_POD.iter().map(|row| {
        let pod = "task.template.spec";
        let is_on_host = format!(
            "has(task.template) && has({pod}) && has({pod}.hostNetwork) && {pod}.hostNetwork == true"
        );
        let when = format!("{is_on_host} && ({})", unset(row, pod));
        let stored = format!(
            "{HAS_STORED_TASK} && has({STORED_TASK}.template) && has({STORED_TASK}.template.spec) && !({})",
            unset(row, &format!("{STORED_TASK}.template.spec"))
        );
        let at = format!("/template/spec/{}", row.field);
        of_task(due(&when, &stored), at, given(row, settings))
    }));
    all.push(of_task(
        due(
            "!has(task.minAvailable) || task.minAvailable == null",
            &format!("{HAS_STORED_TASK} && has({STORED_TASK}.minAvailable) && {STORED_TASK}.minAvailable != null"),
        ),
        "/minAvailable".to_owned(),
        LEAST.to_owned(),
    ));
    let absent = "!has(object.spec.minAvailable) || object.spec.minAvailable == null";
    let least = format!("{absent} || object.spec.minAvailable == 0");
    // What an update says is meant.
    let stored = format!(
        "({absent}) && has(oldObject.spec) && has(oldObject.spec.minAvailable) && oldObject.spec.minAvailable != null && oldObject.spec.minAvailable != 0"
    );
    let when = due(&least, &stored);
    all.push(of_job(when, "minAvailable", SUM.to_owned()));
    all.extend(implied().into_iter().map(|(name, by)| {
        let by: Vec<String> = by.into_iter().map(quoted).collect();
        let when = format!(
            "has(object.spec.plugins) && object.spec.plugins != null && !({} in object.spec.plugins) && [{}].exists(p, p in object.spec.plugins)",
            quoted(name),
            by.join(", ")
        );
        let stored = format!(
            "has(oldObject.spec) && has(oldObject.spec.plugins) && oldObject.spec.plugins != null && {} in oldObject.spec.plugins",
            quoted(name)
        );
        of_job(
            due(&when, &stored),
            &format!("plugins/{name}"),
            "[]".to_owned(),
        )
    }));
    all
}

fn of_job(when: String, field: &str, value: String) -> Mutation {
    Mutation {
        each: None,
        when,
        at: format!("/spec/{field}"),
        value,
    }
}

fn of_task(when: String, at: String, value: String) -> Mutation {
    Mutation {
        each: Some(TASKS),
        when,
        at,
        value,
    }
}

/// Where nothing is said, and the object is new or the stored one says something.
fn due(unset: &str, stored: &str) -> String {
    let creates = guard(CREATES, WRITES).unwrap_or_default();
    format!("({unset}) && ({creates} || ({stored}))")
}

/// Whether nothing is said in the row's field.
fn unset(row: &Filled, of: &str) -> String {
    let field = format!("{of}.{}", row.field);
    let zero = match row.given {
        Given::Number(_) => "0",
        Given::Placed(_) | Given::Scheduler | Given::Text(_) => "''",
    };
    format!("!has({field}) || {field} == null || {field} == {zero}")
}

/// What the row's field gets.
fn given(row: &Filled, settings: &Settings) -> String {
    match row.given {
        Given::Number(number) => number.to_string(),
        Given::Placed(text) => format!("{} + string(place)", quoted(text)),
        Given::Scheduler => quoted(settings.first_scheduler()),
        Given::Text(text) => quoted(text),
    }
}
