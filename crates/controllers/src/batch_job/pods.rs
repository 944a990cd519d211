//! New pods of a batch Job, under names that follow from the job's uid and a number; and which of
//! its pods are given up.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::Pod;
use api::intent::Intent;
use api::kind::Kind;
use api::time::Time;
use serde_json::{Value, json};

use super::count::{
    INDEX, INDEX_FAILURES, INDEX_IGNORED, completions, index_failures, index_of,
    replaces_ended_only,
};
use super::policy::{self, Verdict};
use super::{TRACKING, View, backoff, is_tracked, release};
use crate::ranking::{self, Ages};
use crate::{child, write};

/// What is to be done about the number of pods.
#[derive(Default)]
pub(super) struct Managed {
    pub(super) intents: Vec<Intent>,
    /// When there is more to be done.
    pub(super) wake_at: Option<Time>,
}

impl View<'_> {
    /// Creates or removes pods, so that as many are active as should be.
    pub(super) fn manage(&self) -> Managed {
        let given_up = self.given_up();
        if !given_up.is_empty() {
            return Managed {
                intents: given_up,
                wake_at: None,
            };
        }
        let active = self.count.active.len();
        let ending = match replaces_ended_only(self.job) {
            true => self.count.terminating,
            false => 0,
        };
        let missing = self.wanted().saturating_sub(active + ending);
        if missing == 0 || self.is_suspended() {
            return Managed::default();
        }
        let is_by_index = self.count.failed_indexes.is_some();
        if !is_by_index && let Some(due) = self.retry_at().filter(|due| self.inputs.now < *due) {
            return Managed {
                intents: Vec::new(),
                wake_at: Some(due),
            };
        }
        self.create(missing.min(self.inputs.pods_at_once()))
    }

    /// How many pods should be active.
    fn wanted(&self) -> usize {
        let spec = &self.job.spec;
        let parallelism = spec.parallelism.unwrap_or(1).max(0);
        let wanted = match spec.completions {
            Some(completions) => {
                let missing = completions.saturating_sub(self.count.succeeded);
                parallelism.min(missing.max(0))
            }
            // Once one pod of a work queue has succeeded, no new ones are made.
            None if self.count.succeeded > 0 => return self.count.active.len(),
            None => parallelism,
        };
        usize::try_from(wanted).unwrap_or(0)
    }

    /// Deletes every active pod of a job that ends. They are still counted.
    pub(super) fn end_pods(&self) -> Vec<Intent> {
        let mut intents = Vec::new();
        for pod in &self.count.active {
            intents.extend(self.delete(pod));
        }
        intents
    }

    /// Gives up active pods that are too many, in two stages: first they lose the finalizer, so
    /// that they are not counted, then they are deleted.
    fn given_up(&self) -> Vec<Intent> {
        let max = self.inputs.settings.writes_per_step_max;
        let mut intents = Vec::new();
        let mut kept: Vec<Arc<Pod>> = Vec::new();
        for pod in &self.count.active {
            match is_tracked(pod) {
                true => kept.push(Arc::clone(pod)),
                false => intents.extend(self.delete(pod)),
            }
        }
        let wanted = match self.is_suspended() {
            true => 0,
            false => self.wanted(),
        };
        let mut doubled = self.doubled(&mut kept);
        let surplus = (kept.len() + doubled.len()).saturating_sub(wanted);
        ranking::sort(&mut kept, Ages::Exact, |_| 0, |_| 0);
        let more = surplus.saturating_sub(doubled.len());
        doubled.extend(kept.into_iter().take(more));
        intents.extend(doubled.iter().take(max).map(|pod| release(pod)));
        intents
    }

    /// Takes out pods that have no index of the job, or whose index another has.
    fn doubled(&self, pods: &mut Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        let Some(completions) = completions(self.job) else {
            return Vec::new();
        };
        let mut doubled = Vec::new();
        let mut by_index: BTreeMap<u32, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in pods.drain(..) {
            match index_of(&pod).filter(|index| *index < completions) {
                Some(index) => by_index.entry(index).or_default().push(pod),
                None => doubled.push(pod),
            }
        }
        for (_, mut same) in by_index {
            ranking::sort(&mut same, Ages::Exact, |_| 0, |_| 0);
            pods.extend(same.pop());
            doubled.extend(same);
        }
        doubled
    }

    fn delete(&self, pod: &Pod) -> [Intent; 2] {
        let message = format!("Deleted pod: {}", pod.metadata.name);
        let occasion = self.occasion(&pod.metadata.uid);
        let note = occasion.normal("SuccessfulDelete", &message, self.inputs.now);
        [write::delete(Kind::Pod, &pod.metadata), note]
    }

    fn create(&self, count: usize) -> Managed {
        let namespace = &self.job.metadata.namespace;
        let is_free = |name: &String| self.inputs.mirror.get::<Pod>(namespace, name).is_none();
        let stem = format!("{}-", self.job.metadata.name);
        let mut bodies = Vec::new();
        let mut wake_at = None;
        match completions(self.job) {
            None => {
                let free = (0u32..).map(|number| self.name(&stem, number));
                let free = free.filter(is_free);
                bodies.extend(free.take(count).map(|name| self.body(&stem, &name)));
            }
            Some(completions) => {
                let (now, later) = self.pending_indexes(completions, count);
                wake_at = later.filter(|_| now.is_empty());
                for index in now {
                    let stem = self.index_stem(index);
                    let mut free = (0u32..).map(|number| self.name(&stem, number));
                    let name = free.find(is_free);
                    let mut body = self.body(&stem, &name.unwrap_or_default());
                    self.mark(&mut body, index);
                    bodies.push(body);
                }
            }
        }
        let creates: Vec<Intent> = bodies
            .into_iter()
            .map(|body| write::create(Kind::Pod, body))
            .collect();
        let notes: Vec<Intent> = creates
            .iter()
            .map(|intent| {
                let message = format!("Created pod: {}", intent.target.name);
                // A name may come again, but not from the same state of the job.
                let occasion = self.occasion(&self.job.metadata.resource_version);
                occasion.normal("SuccessfulCreate", &message, self.inputs.now)
            })
            .collect();
        Managed {
            intents: creates.into_iter().chain(notes).collect(),
            wake_at,
        }
    }

    /// The first indexes that lack a pod and need not wait; else when the first wait ends.
    fn pending_indexes(&self, completions: u32, count: usize) -> (Vec<u32>, Option<Time>) {
        let indexes = |pods: &[Arc<Pod>]| -> Vec<u32> {
            pods.iter().filter_map(|pod| index_of(pod)).collect()
        };
        let mut taken = self
            .count
            .succeeded_indexes
            .with(indexes(&self.count.active));
        if replaces_ended_only(self.job) {
            let ending = self.pods.iter().filter(|pod| ranking::is_ending(pod));
            taken = taken.with(ending.filter_map(|pod| index_of(pod)));
        }
        if let Some(failed) = &self.count.failed_indexes {
            taken = taken.and(failed);
        }
        let mut now = Vec::new();
        let mut later: Option<Time> = None;
        for index in taken.gaps(completions).take(count) {
            let due = self
                .count
                .awaiting
                .get(&index)
                .map(|last| backoff::index_retry_at(last));
            match due.filter(|due| self.inputs.now < *due) {
                None => now.push(index),
                Some(due) => later = Some(later.map_or(due, |known| known.min(due))),
            }
        }
        (now, later)
    }

    fn name(&self, stem: &str, number: u32) -> String {
        child::name(stem, &[&self.job.metadata.uid, stem, &number.to_string()])
    }

    fn index_stem(&self, index: u32) -> String {
        /// What the API server leaves of a stem.
        const STEM_BYTES_MAX: usize = 58;
        let end = format!("-{index}-");
        let name = child::cut(&self.job.metadata.name, STEM_BYTES_MAX - end.len());
        format!("{name}{end}")
    }

    fn body(&self, stem: &str, name: &str) -> Value {
        let meta = &self.job.metadata;
        let template = self.job.spec.template.value();
        let mut body = child::pod(&template, (Kind::BatchJob, meta), stem, name);
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", &*meta.uid),
            ("batch.kubernetes.io/job-name", &*meta.name),
            ("controller-uid", &*meta.uid),
            ("job-name", &*meta.name),
        ] {
            body["metadata"]["labels"][key] = json!(value);
        }
        match body["metadata"]["finalizers"].as_array_mut() {
            Some(list) if list.contains(&json!(TRACKING)) => {}
            Some(list) => list.push(json!(TRACKING)),
            None => body["metadata"]["finalizers"] = json!([TRACKING]),
        }
        body
    }

    /// Tells a pod its index, and how often that has failed.
    fn mark(&self, body: &mut Value, index: u32) {
        body["metadata"]["labels"][INDEX] = json!(index.to_string());
        body["metadata"]["annotations"][INDEX] = json!(index.to_string());
        if self.count.failed_indexes.is_some() {
            let (mut counted, mut ignored) = (0_i32, 0_i32);
            if let Some(last) = self.count.awaiting.get(&index) {
                (counted, ignored) = index_failures(last);
                let number = match policy::verdict(self.job, last) {
                    Verdict::Ignore => &mut ignored,
                    _ => &mut counted,
                };
                *number = number.saturating_add(1);
            }
            body["metadata"]["annotations"][INDEX_FAILURES] = json!(counted.to_string());
            if ignored > 0 {
                body["metadata"]["annotations"][INDEX_IGNORED] = json!(ignored.to_string());
            }
        }
        let spec = &mut body["spec"];
        spec["hostname"] = json!(format!("{}-{index}", self.job.metadata.name));
        tell_index(spec);
    }
}

/// Gives every container the index, unless the template sets that variable itself.
fn tell_index(spec: &mut Value) {
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": format!("metadata.labels['{INDEX}']") } },
    });
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            match container.get_mut("env").and_then(Value::as_array_mut) {
                Some(env) => {
                    if !env.iter().any(|it| it["name"] == variable["name"]) {
                        env.push(variable.clone());
                    }
                }
                None => container["env"] = json!([variable]),
            }
        }
    }
}
