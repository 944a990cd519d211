//! What a job gets that does not say it: rows, which the webhook carries out here and which its
//! policy says in CEL.
//!
//! Source: `specs/volcano.md`, section 4.1.

use api::admission::Operation;
use api::volcano::DEFAULT_QUEUE;
use serde_json::{Map, Value};

use super::plugins;
use crate::fields::{inside, is_unset, number};
use crate::{Case, Settings};

const MAX_RETRY: i64 = 3;

/// A field that gets a value where it has none.
///
/// Zero and the empty text are taken for none, as upstream does: no new job has a maxRetry or a
/// minAvailable of 0.
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
    fn fill(
        &self,
        map: &mut Map<String, Value>,
        stored: Stored<'_>,
        settings: &Settings,
        place: usize,
    ) {
        if !is_unset(map, self.field) || !stored.says(self.field) {
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

/// What is stored of that which is filled in; a new object has nothing stored.
#[derive(Clone, Copy)]
struct Stored<'a>(Option<&'a Value>);

impl<'a> Stored<'a> {
    /// What is stored in this field of it.
    fn at(self, field: &str) -> Stored<'a> {
        Stored(self.0.map(|value| &value[field]))
    }

    /// What is stored in this place of it.
    fn nth(self, place: usize) -> Stored<'a> {
        Stored(self.0.map(|value| &value[place]))
    }

    /// Whether a default may stand in this field: what is stored without one stays without.
    fn says(self, field: &str) -> bool {
        self.0.is_none_or(|value| {
            let map = value.as_object();
            map.is_some_and(|map| !is_unset(map, field))
        })
    }

    /// The same of a field in which 0 is a value.
    fn has(self, field: &str) -> bool {
        self.0.is_none_or(|value| !value[field].is_null())
    }
}

/// Queue, scheduler, retries, names and sizes of tasks, gang size, implied plugins.
///
/// On update, so that a manifest that was applied once may be applied again; but then only what the stored job
/// says, too. One that was stored without defaults, when nobody was asked, could not be changed any more
/// otherwise, and pods are named after tasks.
pub(super) fn fill(case: &Case<'_>, object: &mut Value) {
    let Some(spec) = inside(object, "spec") else {
        return;
    };
    let is_update = case.operation == Operation::Update;
    let stored = Stored(is_update.then_some(&case.old["spec"]));
    for row in OF_JOB {
        row.fill(spec, stored, case.settings, 0);
    }
    if let Some(Value::Array(tasks)) = spec.get_mut("tasks") {
        for (place, task) in tasks.iter_mut().enumerate() {
            if let Value::Object(task) = task {
                fill_task(case.settings, place, task, stored.at("tasks").nth(place));
            }
        }
    }
    // What an update says is meant: a gang of none lets each of its pods start alone.
    let is_open = match is_update {
        true => spec.get("minAvailable").is_none_or(Value::is_null),
        false => is_unset(spec, "minAvailable"),
    };
    if is_open && stored.says("minAvailable") {
        let tasks = spec.get("tasks").and_then(Value::as_array);
        let sum = tasks.into_iter().flatten().fold(0_i64, |sum, task| {
            let least = task["minAvailable"].as_i64();
            sum.saturating_add(least.unwrap_or_else(|| number(task, "replicas")))
        });
        let sum = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        spec.insert("minAvailable".to_owned(), sum.into());
    }
    if let Some(Value::Object(plugins)) = spec.get_mut("plugins") {
        plugins::imply(plugins, |name| stored.at("plugins").has(name));
    }
}

fn fill_task(settings: &Settings, place: usize, task: &mut Map<String, Value>, stored: Stored<'_>) {
    for row in OF_TASK {
        row.fill(task, stored, settings, place);
    }
    let template = task.get_mut("template");
    if let Some(Value::Object(pod)) = template.and_then(|template| template.get_mut("spec"))
        && pod.get("hostNetwork") == Some(&Value::Bool(true))
    {
        for row in OF_HOST_POD {
            row.fill(pod, stored.at("template").at("spec"), settings, place);
        }
    }
    if task.get("minAvailable").is_none_or(Value::is_null) && stored.has("minAvailable") {
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
