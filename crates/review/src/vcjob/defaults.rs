//! What a job gets that does not say it: rows, which the webhook carries out here and which its
//! policy says in CEL.
//!
//! Source: `specs/volcano.md`, section 4.1.

use api::volcano::DEFAULT_QUEUE;
use serde_json::{Map, Value};

use super::plugins;
use crate::fields::{inside, is_unset, number};
use crate::{Case, Settings};

const MAX_RETRY: i64 = 3;

/// A field that gets a value where it has none.
///
/// Zero and the empty text are taken for none, as upstream does: neither maxRetry nor minAvailable
/// can be 0.
pub(crate) struct Filled {
    /// Its name.
    pub(crate) field: &'static str,
    /// What it gets.
    pub(crate) given: Given,
}

/// What a field gets.
#[derive(Clone, Copy)]
pub(crate) enum Given {
    /// Always this number.
    Number(i64),
    /// This text, and the place of the task among the others.
    Placed(&'static str),
    /// The name of our first scheduler.
    Scheduler,
    /// Always this text.
    Text(&'static str),
}

const fn fill_in(field: &'static str, given: Given) -> Filled {
    Filled { field, given }
}

/// Fields of a job's spec, in the order in which upstream fills them in.
pub(crate) const OF_JOB: &[Filled] = &[
    fill_in("queue", Given::Text(DEFAULT_QUEUE)),
    fill_in("schedulerName", Given::Scheduler),
    fill_in("maxRetry", Given::Number(MAX_RETRY)),
];
/// Fields of a task.
pub(crate) const OF_TASK: &[Filled] = &[
    fill_in("name", Given::Placed("default")),
    fill_in("maxRetry", Given::Number(MAX_RETRY)),
];
/// Fields of a task's pod that is on the network of its node: it finds the cluster's names all the
/// same.
pub(crate) const OF_HOST_POD: &[Filled] =
    &[fill_in("dnsPolicy", Given::Text("ClusterFirstWithHostNet"))];

impl Filled {
    fn fill(&self, map: &mut Map<String, Value>, settings: &Settings, place: usize) {
        if !is_unset(map, self.field) {
            return;
        }
        let value = match self.given {
            Given::Number(number) => number.into(),
            Given::Placed(text) => format!("{text}{place}").into(),
            Given::Scheduler => settings.first_scheduler().into(),
            Given::Text(text) => text.into(),
        };
        map.insert(self.field.to_owned(), value);
    }
}

/// Queue, scheduler, retries, names and sizes of tasks, gang size, implied plugins.
///
/// The same on update: a manifest that was applied once may be applied again.
pub(super) fn fill(case: &Case<'_>, object: &mut Value) {
    let Some(spec) = inside(object, "spec") else {
        return;
    };
    for row in OF_JOB {
        row.fill(spec, case.settings, 0);
    }
    if let Some(Value::Array(tasks)) = spec.get_mut("tasks") {
        for (place, task) in tasks.iter_mut().enumerate() {
            if let Value::Object(task) = task {
                fill_task(case.settings, place, task);
            }
        }
    }
    if is_unset(spec, "minAvailable") {
        let tasks = spec.get("tasks").and_then(Value::as_array);
        let sum = tasks.into_iter().flatten().fold(0_i64, |sum, task| {
            let least = task["minAvailable"].as_i64();
            sum.saturating_add(least.unwrap_or_else(|| number(task, "replicas")))
        });
        let sum = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        spec.insert("minAvailable".to_owned(), sum.into());
    }
    if let Some(Value::Object(plugins)) = spec.get_mut("plugins") {
        plugins::imply(plugins);
    }
}

fn fill_task(settings: &Settings, place: usize, task: &mut Map<String, Value>) {
    for row in OF_TASK {
        row.fill(task, settings, place);
    }
    let template = task.get_mut("template");
    if let Some(Value::Object(pod)) = template.and_then(|template| template.get_mut("spec"))
        && pod.get("hostNetwork") == Some(&Value::Bool(true))
    {
        for row in OF_HOST_POD {
            row.fill(pod, settings, place);
        }
    }
    if task.get("minAvailable").is_none_or(Value::is_null) {
        let policy = task.get("partitionPolicy").unwrap_or(&Value::Null);
        let partitions = number(policy, "minPartitions");
        let least = if partitions > 0 {
            partitions.saturating_mul(number(policy, "partitionSize"))
        } else {
            task.get("replicas").and_then(Value::as_i64).unwrap_or(0)
        };
        task.insert("minAvailable".to_owned(), least.into());
    }
}
