//! Whether a task's pod template could become a pod: by Kubernetes' own rules, which are asked of the
//! facts, and by one of Volcano's.

use api::core::ResourceRequirements;
use api::volcano::Task;
use serde::Deserialize;
use serde_json::Value;

use crate::denials::jobs;
use crate::fields::items;
use crate::{Case, PodLevel};

/// `spec.task[i].<complaint>. <complaint>. `, or the rule on whole cpus, or nothing.
pub(super) fn message(index: usize, task: &Task, template: &Value, case: &Case<'_>) -> String {
    let complaints = match case.settings.pod_level {
        PodLevel::Judged => case.facts.template_faults(template),
        PodLevel::Passed => case.facts.template_faults(&without_pod_level(template)),
    };
    if !complaints.is_empty() {
        let text: String = complaints
            .iter()
            .map(|complaint| format!("{complaint}. "))
            .collect();
        return jobs::BAD_TEMPLATE.with(&[("task", &index), ("complaints", &text)]);
    }
    whole_cpus(index, task, &template["spec"]).unwrap_or_default()
}

/// The template as who does not know what whole pods may ask for sees it.
fn without_pod_level(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("resources");
    }
    template
}

/// With a NUMA policy every container must ask for whole cpus.
fn whole_cpus(index: usize, task: &Task, spec: &Value) -> Option<String> {
    if matches!(&*task.topology_policy, "" | "none") {
        return None;
    }
    let containers = items(spec, "containers")
        .iter()
        .chain(items(spec, "initContainers"));
    for (id, container) in containers.enumerate() {
        let resources =
            ResourceRequirements::deserialize(&container["resources"]).unwrap_or_default();
        let asked = if resources.requests.is_empty() {
            &resources.limits
        } else {
            &resources.requests
        };
        let cpu = asked.get("cpu").cloned().unwrap_or_default();
        if !cpu.is_whole() || cpu.is_zero() || cpu.is_negative() {
            return Some(jobs::CUT_CPU.with(&[("task", &index), ("container", &id)]));
        }
    }
    None
}
