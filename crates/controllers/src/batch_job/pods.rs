//! New pods of a batch Job, under names that follow from the job's uid and a number.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::batch::Job;
use api::core::Pod;
use api::intent::Intent;
use api::kind::Kind;
use serde_json::{Map, Value, json};

use super::TRACKING;
use super::tally::{Tally, index_of};
use crate::write::{self, stable_suffix};

/// Label and annotation with a pod's completion index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The longest stem that leaves room for an index and a suffix in a pod's host name.
const STEM_MAX: usize = 46;

/// Creates of `count` pods.
pub(super) fn creates(job: &Job, pods: &[Arc<Pod>], tally: &Tally, count: usize) -> Vec<Intent> {
    let names: BTreeSet<&str> = pods.iter().map(|pod| &*pod.metadata.name).collect();
    if job.spec.completion_mode.as_deref() != Some("Indexed") {
        let free = (0u32..).map(|number| name(job, None, number));
        return free
            .filter(|name| !names.contains(&**name))
            .take(count)
            .map(|name| create(job, name, None))
            .collect();
    }
    let working: BTreeSet<u32> = tally
        .active
        .iter()
        .chain(&tally.dismissed)
        .filter_map(|pod| index_of(pod))
        .collect();
    let completions = u32::try_from(job.spec.completions.unwrap_or(0)).unwrap_or(0);
    (0..completions)
        .filter(|index| !tally.completed.contains(index) && !working.contains(index))
        .take(count)
        .filter_map(|index| {
            let mut free = (0u32..).map(|number| name(job, Some(index), number));
            let name = free.find(|name| !names.contains(&**name))?;
            Some(create(job, name, Some(index)))
        })
        .collect()
}

fn name(job: &Job, index: Option<u32>, number: u32) -> String {
    let stem: String = job.metadata.name.chars().take(STEM_MAX).collect();
    let index = index.map(|index| format!("{index}-")).unwrap_or_default();
    let suffix = stable_suffix(&[&job.metadata.uid, &index, &number.to_string()]);
    format!("{stem}-{index}{}", &suffix[..5])
}

fn create(job: &Job, name: String, index: Option<u32>) -> Intent {
    let template = &job.spec.template;
    let map = |value: &Value| match value {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    let mut labels = map(&template["metadata"]["labels"]);
    let mut annotations = map(&template["metadata"]["annotations"]);
    let meta = &job.metadata;
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &meta.uid),
        ("batch.kubernetes.io/job-name", &meta.name),
        ("controller-uid", &meta.uid),
        ("job-name", &meta.name),
    ] {
        labels.insert(key.to_owned(), json!(value));
    }
    let mut spec = Value::Object(map(&template["spec"]));
    if let Some(index) = index {
        labels.insert(INDEX.to_owned(), json!(index.to_string()));
        annotations.insert(INDEX.to_owned(), json!(index.to_string()));
        let stem: String = meta.name.chars().take(STEM_MAX).collect();
        if spec["hostname"].as_str().unwrap_or("").is_empty() {
            spec["hostname"] = json!(format!("{stem}-{index}"));
        }
        tell_index(&mut spec);
    }
    let mut finalizers = template["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    finalizers.push(json!(TRACKING));
    let body = json!({
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": annotations,
            "finalizers": finalizers,
            "ownerReferences": [write::controller_ref(Kind::BatchJob, meta)],
        },
        "spec": spec,
    });
    write::create(Kind::Pod, body)
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
